// SPDX-License-Identifier: Apache-2.0
// Accepts the clients of a node, on shard 0, and gives each to the shard that has the fewest. Where
// a connection is, it stays.
//
// A closed port is how a node says that it serves nobody: it listens only once all shards are
// ready, and not while clients are disabled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/log.h"
#include "base/result.h"
#include "server/connection/connection.h"

namespace tetrad::server {

/// Whether clients could be accepted there, before a node joins a cluster that could not serve any.
/// Errors: kConfig with the address and the reason (in use, not of this machine).
Result<void> check_free(boost::asio::io_context& io, const std::string& address, uint16_t port);

/// Accepts clients and gives them to the shards in turn. Belongs to the first shard's thread.
class Listener {
 public:
  /// A shard's loop and what its connections share; both outlive the listener.
  struct Shard {
    boost::asio::io_context& io;
    ConnectionContext& context;
  };

  /// `shards` by number; the listener belongs to the thread of the first.
  Listener(std::vector<Shard> shards, uint32_t connections_max, Logger logger);
  /// First, and again after stop(). Errors: kConfig with the address and the reason (in use, not of
  /// this machine).
  Result<void> listen(const std::string& address, uint16_t port);
  void stop();

 private:
  /// Connections given to a shard and not closed yet, on their way to it among them.
  uint64_t open_at(size_t shard) const;
  /// Ends when `round` is over.
  void accept(uint64_t round);
  /// A client, if one waits. False: none can be taken now.
  bool accept_one();
  // To the shard with the fewest open connections.
  void place(Accepted accepted);
  /// Counts it, and says so at most every ten seconds.
  void refused(const std::string& why);

  const std::vector<Shard> shards_;
  // With the shard's own count of closed ones it says how many are open there, without asking its
  // thread.
  std::vector<uint64_t> given_;  // by shard
  boost::asio::ip::tcp::acceptor acceptor_;
  const uint32_t connections_max_;
  const Logger logger_;
  // An accept that is under way when the listener stops belongs to an old round and is dropped.
  uint64_t round_ = 0;  // rises with listen() and stop()
  uint64_t refused_unsaid_ = 0;
  std::optional<base::MonotonicUs> refused_said_us_;
};

}  // namespace tetrad::server
