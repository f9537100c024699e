// SPDX-License-Identifier: Apache-2.0
// The signals that ask a process to stop. None is lost between two lives of a node: what comes when
// the loop no longer runs is kept until end() asks for it, and what comes after that ends the process.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace tetrad::server {

/// SIGTERM and SIGINT, from construction to end(). At most one at a time in a process: how signals
/// are handled belongs to the process. Of the loop's thread.
class StopSignals {
 public:
  /// `heard` runs on the loop, once, with the first signal. The loop outlives this.
  /// Throws std::system_error where the process has no descriptor left.
  StopSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Later signals end the process, as they did before. Gives the first that has come till now,
  /// whether or not the loop has heard it; 0: none. Again: the same.
  int end();

 private:
  void wait();

  boost::asio::posix::stream_descriptor wake_;  // an eventfd, which the handler writes to
  const std::function<void(int signal)> heard_;
  bool has_ended_ = false;
};

}  // namespace tetrad::server
