// SPDX-License-Identifier: Apache-2.0
// As StopSignals: the handler notes the signal and wakes the loop through an eventfd.
#include "server/runtime/heard_signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace tetrad::server {

namespace {

std::atomic<uint32_t> noted = 0;  // a bit for each signal's number
std::atomic<int> wake_descriptor = -1;

static_assert(std::atomic<uint32_t>::is_always_lock_free);  // a handler must not wait

constexpr int kHeard[] = {SIGHUP, SIGUSR1, SIGUSR2};

extern "C" void note_heard_signal(int signal) {
  const int errno_before = errno;
  noted.fetch_or(uint32_t{1} << signal);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor, &one, sizeof one);
  errno = errno_before;
}

void handle_heard_signals(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes of files go on
  ::sigemptyset(&action.sa_mask);
  for (const int signal : kHeard) ::sigaction(signal, &action, nullptr);
}

}  // namespace

void HeardSignals::ignore() { handle_heard_signals(SIG_IGN); }

HeardSignals::HeardSignals(boost::asio::io_context& loop, std::function<void(int signal)> heard)
    : wake_(loop), heard_(std::move(heard)) {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  wake_.assign(descriptor);
  noted = 0;
  wake_descriptor = descriptor;
  handle_heard_signals(note_heard_signal);
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
