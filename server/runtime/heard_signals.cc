// SPDX-License-Identifier: Apache-2.0
// As StopSignals: the handler notes the signal and wakes the loop through an eventfd.
#include "server/runtime/heard_signals.h"

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <unistd.h>

#include "server/runtime/signal_wake.h"

namespace tetrad::server {

namespace {

std::atomic<uint32_t> noted = 0;  // a bit for each signal's number
std::atomic<int> wake_descriptor = -1;

static_assert(std::atomic<uint32_t>::is_always_lock_free);  // a handler must not wait

constexpr std::initializer_list<int> kHeard = {SIGHUP, SIGUSR1, SIGUSR2};

extern "C" void note_heard_signal(int signal) {
  noted.fetch_or(uint32_t{1} << signal);
  wake_loop(wake_descriptor);
}

}  // namespace

void HeardSignals::ignore() { handle_signals(kHeard, SIG_IGN); }

HeardSignals::HeardSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard)
    : wake_(loop), heard_(std::move(heard)) {
  const int descriptor = make_wake_descriptor();
  wake_.assign(descriptor);
  noted = 0;
  wake_descriptor = descriptor;
  handle_signals(kHeard, note_heard_signal);
  wait();
}

HeardSignals::~HeardSignals() { ignore(); }

void HeardSignals::wait() {
  wake_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this](const boost::system::error_code& error) {
                     if (error) return;
                     // Emptied before the signals are taken: one that comes in between wakes the loop again.
                     uint64_t count = 0;
                     [[maybe_unused]] const ssize_t got =
                         ::read(wake_.native_handle(), &count, sizeof count);
                     const uint32_t came = noted.exchange(0);
                     for (const int signal : kHeard)
                       if ((came & (uint32_t{1} << signal)) != 0) heard_(signal);
                     wait();
                   });
}

}  // namespace tetrad::server
