// SPDX-License-Identifier: Apache-2.0
// A connection that another node has made and that should speak TLS, or show the cluster's secret:
// from its first byte until its peer has proved that it is of the cluster and has sent enough to
// know what it carries. Bounded in time; who is refused gets the reason, and the log has it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/ip/tcp.hpp>

#include "base/reactor.h"
#include "base/result.h"
#include "base/tls_session.h"
#include "replication/rpc/cluster_secret.h"

namespace tetrad::replication {

/// Which connections between nodes are taken, and made.
enum class InternodeEncryption : uint8_t {
  kNone,
  kOptional,  // both are taken; TLS is tried first: for the time in which a cluster changes over
  kAll
};

/// Why a node without TLS refuses a connection. While a cluster changes over this is said of nodes
/// that have TLS already: with `optional` they come again without it.
inline constexpr const char* kSpeaksTls =
    "it speaks TLS, which this node does not (internode_encryption); with 'optional' it goes on "
    "without, and this ends when this node has TLS too";

/// Runs the first off the loop, then the second on it.
using OffLoop = std::function<void(base::Callback work, base::Callback done)>;

/// What has arrived. `session` is null: it speaks without TLS, and may.
struct Arrived {
  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<base::TlsSession> session;
  Bytes first;  // what the peer has sent, decrypted
};

/// Keeps itself alive until it has called `done`, once; what it refers to outlives it or is shared.
class Arrival : public std::enable_shared_from_this<Arrival> {
 public:
  /// An error: the peer is refused. The connection is already closed, or closes by itself.
  using Done = std::function<void(Result<Arrived>)>;
  /// What a connection that has just come must do, and how long it may take.
  struct Terms {
    std::shared_ptr<const base::TlsContext> context;  // null: it must not speak TLS
    InternodeEncryption encryption = InternodeEncryption::kAll;
    std::shared_ptr<const ClusterSecret> secret;  // of who speaks without TLS; null: none is asked
    base::Random* random = nullptr;               // with a secret; outlives the arrival
    OffLoop off_loop;                             // empty: on the loop
    size_t bytes_wanted = 0;                      // of what the peer sends; more may come
    int64_t time_us = 5'000'000;                  // for all of it
  };

  Arrival(boost::asio::ip::tcp::socket socket, base::Reactor& reactor, Terms terms, Done done);
  void start();
  /// At once, without a word. `done` is not called any more.
  void close();
  /// A step is under way off the loop: it is our turn, not the peer's.
  bool is_stepping() const { return stepping_; }

 private:
  /// Asks the socket for more; take() gets what comes.
  void read();
  void take(BytesView wire);
  /// By its first byte.
  Result<void> choose(char first);
  void take_plain(BytesView wire);
  /// One step of the handshake, off the loop where the terms say so; stepped() runs on it.
  void step();
  void stepped();
  void take_decrypted();
  /// What the session has to say to the peer; or `out`, of a peer that speaks without TLS.
  void send();
  void send(Bytes& out);
  /// Hands the connection over.
  void arrived();
  /// Says why to the peer, if it can be told, and to `done`.
  void refuse(std::string why);
  /// Keeps a refused connection for a moment: closed at once, the reason would be lost with a reset.
  void linger();
  /// What it has not done yet, for who waits no longer.
  const char* undone() const;

  boost::asio::ip::tcp::socket socket_;
  base::Reactor& reactor_;
  const Terms terms_;
  Done done_;
  std::unique_ptr<base::TlsSession> session_;
  bool is_plain_ = false;               // its first byte has shown it
  std::optional<AcceptorProof> proof_;  // until it has been given
  Result<bool> is_over_ = false;        // the handshake
  Bytes room_, first_;
  bool reading_ = false, stepping_ = false, lingering_ = false, closed_ = false;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
