// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/signal_wake.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace tetrad::server {

void handle_signals(std::initializer_list<int> signals, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes of files go on
  ::sigemptyset(&action.sa_mask);
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

int make_wake_descriptor() {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  return descriptor;
}

void wake_loop(int descriptor) {
  const int errno_before = errno;
  const uint64_t one = 1;
  // Full it cannot be, and closed it is only when no handler is set any more.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
  errno = errno_before;
}

}  // namespace tetrad::server
