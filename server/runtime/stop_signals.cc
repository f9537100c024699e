// SPDX-License-Identifier: Apache-2.0
// What the handler may do is little: it notes the signal, and wakes the loop through an eventfd
// (signal-safety(7) allows write). A signal_set of Boost.Asio does not serve here: what it has not
// delivered when its loop ends, nobody can ask for.
#include "server/runtime/stop_signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace tetrad::server {

namespace {

std::atomic<int> first_signal = 0;  // since construction; 0: none
std::atomic<int> wake_descriptor = -1;

static_assert(std::atomic<int>::is_always_lock_free);  // a handler must not wait

extern "C" void take_stop_signal(int signal) {
  const int errno_before = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  const uint64_t one = 1;
  // Full it cannot be, and closed it is only when this handler is no longer set.
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor, &one, sizeof one);
  errno = errno_before;
}

void handle_stop_signals(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes of files go on
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard)
    : wake_(loop), heard_(std::move(heard)) {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  wake_.assign(descriptor);
  first_signal = 0;
  wake_descriptor = descriptor;
  handle_stop_signals(take_stop_signal);
  wait();
}

StopSignals::~StopSignals() { end(); }

void StopSignals::wait() {
  wake_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this](const boost::system::error_code& error) {
                     if (!error) heard_(first_signal);
                   });
}

int StopSignals::end() {
  // In this order: what comes in between is either noted or ends the process. A handler that has
  // begun has noted its signal: Linux gives a process' signals to the main thread, which calls this.
  if (!has_ended_) handle_stop_signals(SIG_DFL);
  has_ended_ = true;
  return first_signal;
}

}  // namespace tetrad::server
