// SPDX-License-Identifier: Apache-2.0
// One lane to one peer, of a TcpTransport: makes the connection, with TLS where nodes are to speak
// it, or with a proof of the cluster's secret, sends what is queued, and waits before it tries
// again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/log.h"
#include "replication/rpc/open_links.h"
#include "replication/rpc/peer_traffic.h"
#include "replication/rpc/tcp_transport.h"

namespace tetrad::replication {

inline constexpr int64_t kBackoffFirstUs = 50'000;

/// Of any connection between nodes.
void set_socket_options(boost::asio::ip::tcp::socket& socket);

/// The connection to one peer, over which this node only sends.
struct Outgoing : std::enable_shared_from_this<Outgoing> {
  /// kIdle has no socket, kConnecting one that may come to nothing; only kConnected writes.
  enum class State : uint8_t { kIdle, kConnecting, kConnected };

  Outgoing(boost::asio::io_context& i, base::Reactor& r, Endpoint e, Lane l_,
           const TcpTransportOptions& o, std::shared_ptr<size_t> f, std::shared_ptr<OpenLinks> ol,
           Logger l)
      : io(i),
        reactor(r),
        endpoint(std::move(e)),
        lane(l_),
        options(o),
        failing_peers(std::move(f)),
        open_links(std::move(ol)),
        logger(std::move(l)) {}

  boost::asio::io_context& io;
  base::Reactor& reactor;
  const Endpoint endpoint;
  const Lane lane;
  const TcpTransportOptions options;
  const std::shared_ptr<size_t> failing_peers;  // of the transport: how many are not connected
  const std::shared_ptr<OpenLinks> open_links;  // of the transport
  const Logger logger;
  std::function<void()> nobody_listens;  // empty, or after each attempt that was refused
  std::optional<boost::asio::ip::tcp::socket> socket;
  std::optional<boost::asio::ip::tcp::resolver> resolver;
  State state = State::kIdle;
  Bytes queued;                                        // frames that wait
  Bytes writing;                                       // frames the socket is being given
  uint64_t queued_messages = 0, writing_messages = 0;  // in them
  SentTraffic traffic;  // but what is pending; of all connections that there were
  std::unique_ptr<base::TlsSession> session;
  OpenLink open_link;                // while it is connected
  std::optional<OpenerProof> proof;  // while it is given
  Bytes wire;                        // of `writing` what is encrypted and under way
  size_t encrypted = 0;              // of `writing`
  bool without_tls = false;          // where both are taken: the next attempt
  bool without_secret = false;       // where it is not required: the next attempt
  bool write_under_way = false;
  bool closed = false;
  uint64_t connection = 0;  // counts connections: handlers of an earlier one do nothing
  int64_t backoff_us = kBackoffFirstUs;
  base::MonotonicUs not_before_us = 0, connecting_since_us = 0;
  bool failing = false;                        // since the last connection
  bool early = false, last_was_early = false;  // attempts that did not wait for the pause's end
  base::Reactor::TimerId connect_timer = 0;
  base::MonotonicUs connected_us = 0;
  std::string said;  // why it fails, and when that was logged
  base::MonotonicUs said_us = 0;
  std::string refusal;       // of the last attempt that failed; "": it failed for another reason
  bool was_reached = false;  // by the last attempt that failed
  char received[256];
  /// At the end of what waits.
  void queue(BytesView message);
  /// What there has been, and what is pending.
  SentTraffic traffic_now() const;
  /// Nothing waits, and there is no connection: the last attempt, if there was one, failed.
  bool is_idle() const { return state == State::kIdle && queued.empty(); }
  /// Sends what is queued; connects first if it must. Drops it while the peer is in its pause.
  void flush();
  /// The peer is up. Not twice in a row: one that is heard and cannot be reached costs little.
  void try_now();
  /// One attempt, with its own time limit: resolve, connect, TLS or proof.
  void connect();
  /// Whether a handler of connection `mine` may go on.
  bool is_connecting(uint64_t mine) const;
  void failed_to_look_up(const std::string& why);
  void connect_to(const boost::asio::ip::tcp::endpoint& target, uint64_t mine);
  /// The first moment at which frames may be sent: the stream begins with its preface.
  void connected();
  void begin_tls(uint64_t mine);
  void shake_hands(uint64_t mine);
  void begin_proof(uint64_t mine);
  /// Sends what there is of it, and reads on.
  void prove(uint64_t mine);
  /// Takes what is queued for one write; what comes meanwhile is the next.
  void write();
  /// With TLS a piece of it: a large one would hold up the loop.
  void write_more();
  void written();
  /// The peer never sends here but to refuse: a read ends when the connection does.
  void watch_for_end();
  /// Bytes that a peer sends back are a sign why it refuses.
  bool may_go_on(BytesView got);
  /// `refused`: the two disagree about encryption or the secret, which somebody has to mend.
  void failed(const std::string& why, bool refused = false);
  /// Where both are taken: the next attempt does without what this one was refused for. False:
  /// there is nothing that it could do without.
  bool gives_in();
  /// Drops what waits.
  void lose_queued();
  /// Of one lane: the others fail alike.
  void say(const std::string& why);
  /// Why the two refuse each other; "": they do not, as far as is known.
  std::string refused_for() const;
  /// Something takes connections there, as far as the last attempt has shown.
  bool is_reached() const { return state == State::kConnected || was_reached; }
  /// Counts in failing_peers, once.
  void set_failing(bool now);
  void cancel_timer();
  /// Handlers that are out see another connection number.
  void drop_socket();
  void close();
};

}  // namespace tetrad::replication
