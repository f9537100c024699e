// SPDX-License-Identifier: Apache-2.0
// What the handler may do is little: it notes the signal, and wakes the loop. A signal_set of Boost.Asio does not serve here: what it has not
// delivered when its loop ends, nobody can ask for.
#include "server/runtime/stop_signals.h"

#include <atomic>
#include <csignal>

#include "server/runtime/signal_wake.h"

namespace tetrad::server {

namespace {

std::atomic<int> first_signal = 0;  // since construction; 0: none
std::atomic<int> wake_descriptor = -1;

static_assert(std::atomic<int>::is_always_lock_free);  // a handler must not wait

extern "C" void take_stop_signal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  wake_loop(wake_descriptor);
}

void handle_stop_signals(void (*handler)(int)) { handle_signals({SIGTERM, SIGINT}, handler); }

}  // namespace

StopSignals::StopSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard)
    : wake_(loop), heard_(std::move(heard)) {
  const int descriptor = make_wake_descriptor();
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
