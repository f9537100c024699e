// SPDX-License-Identifier: Apache-2.0
// The real Transport: one TCP connection per peer, direction and lane over Asio. All messages of a
// turn leave in one write; all complete frames that have arrived are read in one turn. A connection
// that breaks is made anew when there is something to send, after a pause that doubles from 50 ms
// to half a second; at once when the peer was heard. What is sent in a pause is lost. With TLS, who
// connects and who accepts both show a certificate of the cluster, with a secret both prove that
// they have it (arrival.h, outgoing.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/log.h"
#include "base/random.h"
#include "base/reactor.h"
#include "base/result.h"
#include "replication/rpc/arrival.h"
#include "replication/rpc/cluster_secret.h"
#include "replication/rpc/open_links.h"
#include "replication/rpc/peer_traffic.h"
#include "replication/rpc/transport.h"

namespace boost::asio {
class io_context;
}

namespace tetrad::replication {

/// A connection that another node has made, and the bytes that have come over it already.
struct Accepted {
  int socket = -1;
  std::unique_ptr<base::TlsSession> session;  // null: it speaks without TLS
  Bytes first;                                // decrypted
};

/// Where a transport listens, what it may buffer, and how it is encrypted.
struct TcpTransportOptions {
  std::string listen_address = "127.0.0.1";
  uint16_t listen_port = 7000;  // 0: any free one
  /// False: connections come by adopt() only.
  bool listen = true;
  /// Connections are given to this shard (0) and the others in turn: to those by `hand_over`, whose
  /// transport adopts the socket on its own thread. Those of the control lane stay here, whose
  /// messages they carry, whatever another shard is busy with.
  uint32_t shard_count = 1;
  std::function<void(uint32_t shard, Accepted)> hand_over;
  /// Per peer and lane; what comes on top is dropped.
  uint64_t queue_bytes_max = uint64_t{64} << 20;
  uint32_t accepted_connections_max = 1024;
  int64_t connect_timeout_us = 2'000'000;
  InternodeEncryption encryption = InternodeEncryption::kNone;
  std::shared_ptr<base::TlsCredentials> credentials;  // null: without encryption
  OffLoop off_loop;                                   // for handshakes; empty: on the loop
  /// On connections without TLS; null: none is asked. `random` draws for it, and outlives the
  /// transport.
  std::shared_ptr<const ClusterSecret> secret;
  base::Random* random = nullptr;
};

/// Messages between nodes over TCP: one connection to each peer for each lane, and those that come
/// from them. Owned by its shard, on its thread. Always: a message is sent once; what a broken
/// connection had is lost.
class TcpTransport : public Transport {
 public:
  /// Binds and listens. Everything handed in outlives it; `reactor` runs on `io`'s one thread.
  /// Errors: kConfig (an address that is none), kIo (the port is taken).
  static Result<std::unique_ptr<TcpTransport>> open(boost::asio::io_context& io,
                                                    base::Reactor& reactor,
                                                    TcpTransportOptions options, Logger logger);
  virtual uint16_t port() const = 0;
  /// Reads from a connection that another shard's transport has accepted, and owns its socket.
  virtual void adopt(Accepted accepted) = 0;
  /// Why the peer and this node refuse each other, though one has reached the other; "": they do
  /// not, as far as the last attempt has shown.
  virtual std::string refusal(const Endpoint& peer) const = 0;
  /// Something takes connections there, be it a node or not.
  virtual bool is_reached(const Endpoint& peer) const = 0;
  /// Whether what is sent to the peer over the control lane is encrypted; unset: there is no
  /// connection.
  virtual std::optional<bool> is_encrypted(const Endpoint& peer) const = 0;
  /// Of all lanes. It outlives the transport.
  virtual std::shared_ptr<const OpenLinks> open_links() const = 0;
  /// By peer: of all that something was to be sent to, and of all that have sent something; but of
  /// many that are gone not all.
  virtual std::map<Endpoint, SentTraffic> sent() const = 0;
  virtual std::map<Endpoint, ReceivedTraffic> received() const = 0;
};

}  // namespace tetrad::replication
