// SPDX-License-Identifier: Apache-2.0
// A connection that another node has made and that should speak TLS: from its first byte until its
// peer has shown a certificate of the cluster and has sent enough to know what it carries. Bounded
// in time; who is refused is told why by an alert, and the log is.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/ip/tcp.hpp>

#include "base/reactor.h"
#include "base/result.h"
#include "base/tls_session.h"

namespace tetrad::replication {

/// Which connections between nodes are taken, and made.
enum class InternodeEncryption : uint8_t {
  kNone,
  kOptional,  // both are taken; TLS is tried first: for the time in which a cluster changes over
  kAll
};

/// Runs the first off the loop, then the second on it.
using OffLoop = std::function<void(base::Callback work, base::Callback done)>;

/// What has arrived. `session` is null: it speaks without TLS, and may.
struct Arrived {
  boost::asio::ip::tcp::socket socket;
  std::unique_ptr<base::TlsSession> session;
  Bytes first;  // what the peer has sent, decrypted
};

/// Keeps itself alive until it has called `done`, once; what it refers to outlives it or is shared.
class TlsArrival : public std::enable_shared_from_this<TlsArrival> {
 public:
  /// An error: the peer is refused. The connection is already closed, or closes by itself.
  using Done = std::function<void(Result<Arrived>)>;
  /// What a connection that has just come must do, and how long it may take.
  struct Terms {
    std::shared_ptr<const base::TlsContext> context;
    InternodeEncryption encryption = InternodeEncryption::kAll;
    OffLoop off_loop;             // empty: on the loop
    size_t bytes_wanted = 0;      // of what the peer sends; more may come
    int64_t time_us = 5'000'000;  // for all of it
  };

  TlsArrival(boost::asio::ip::tcp::socket socket, base::Reactor& reactor, Terms terms, Done done);
  void start();
  /// At once, without a word. `done` is not called any more.
  void close();
  /// A step is under way off the loop: it is our turn, not the peer's.
  bool is_stepping() const { return stepping_; }

 private:
  void read();
  void take(BytesView wire);
  void step();
  void stepped();
  void take_decrypted();
  void send();
  void arrived();
  void refuse(std::string why);
  void linger();

  boost::asio::ip::tcp::socket socket_;
  base::Reactor& reactor_;
  const Terms terms_;
  Done done_;
  std::unique_ptr<base::TlsSession> session_;
  Result<bool> is_over_ = false;  // the handshake
  Bytes room_, first_;
  bool reading_ = false, stepping_ = false, lingering_ = false, closed_ = false;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
