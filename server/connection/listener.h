// SPDX-License-Identifier: Apache-2.0
// Accepts the clients of one shard. With several shards each has a listener on the same port
// (SO_REUSEPORT).
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "server/connection/connection.h"

namespace tetrad::server {

class Listener {
 public:
  /// Errors: kConfig with the address and the reason (in use, not of this machine).
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& io,
                                                ConnectionContext& context,
                                                const std::string& address, uint16_t port,
                                                uint32_t connections_max);
  Listener(boost::asio::io_context& io, ConnectionContext& context, uint32_t connections_max);
  void stop();

 private:
  void accept();

  boost::asio::ip::tcp::acceptor acceptor_;
  ConnectionContext& context_;
  const uint32_t connections_max_;
};

}  // namespace tetrad::server
