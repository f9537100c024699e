// SPDX-License-Identifier: Apache-2.0
// Signals that do not end a node: SIGHUP (logrotate sends it, and a terminal that closes), SIGUSR1,
// SIGUSR2.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace tetrad::server {

/// At most one at a time in a process: how signals are handled belongs to the process.
class HeardSignals {
 public:
  /// They have no effect while none of these is there. At the start of the program.
  static void ignore();

  /// `heard` runs on the loop, once for as many of one kind as came since it ran. The loop outlives
  /// this. Throws std::system_error where the process has no descriptor left.
  HeardSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard);
  ~HeardSignals();
  HeardSignals(const HeardSignals&) = delete;
  HeardSignals& operator=(const HeardSignals&) = delete;

 private:
  void wait();

  boost::asio::posix::stream_descriptor wake_;  // an eventfd, which the handler writes to
  const std::function<void(int signal)> heard_;
};

}  // namespace tetrad::server
