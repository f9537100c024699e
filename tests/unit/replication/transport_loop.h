// SPDX-License-Identifier: Apache-2.0
// Transports of several nodes in one thread, over real sockets and a clock that the test moves.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <boost/asio/io_context.hpp>

#include "replication/rpc/tcp_transport.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {

/// Runs sockets and reactor until the condition holds, for ten seconds at most.
struct Loop {
  boost::asio::io_context io{1};
  tests::ManualReactor reactor;

  template <class Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      io.restart();
      io.poll();
      reactor.run_until_idle();
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      reactor.advance_us(1000);
    }
    return condition();
  }
  std::unique_ptr<TcpTransport> open(TcpTransportOptions options = {}) {
    if (options.listen_port == 7000) options.listen_port = 0;
    auto transport = TcpTransport::open(io, reactor, options, Logger());
    if (!transport) throw std::runtime_error(transport.error().message);
    return std::move(*transport);
  }
};

inline Endpoint at(const TcpTransport& transport) {
  return make_endpoint("127.0.0.1", transport.port());
}

}  // namespace tetrad::replication
