// SPDX-License-Identifier: Apache-2.0
// getrandom(2) with flags 0 waits for the kernel's first seed only. It may give less than was asked
// for, or be interrupted by a signal.
#include "server/runtime/os_random.h"

#include <cerrno>
#include <sys/random.h>

#include "base/assert.h"

namespace tetrad::server {

void os_random(std::span<uint64_t> words) {
  auto* next = reinterpret_cast<char*>(words.data());
  size_t left = words.size_bytes();
  while (left > 0) {
    const ssize_t got = ::getrandom(next, left, 0);
    TETRAD_ASSERT(got > 0 || errno == EINTR);
    if (got <= 0) continue;
    next += got;
    left -= static_cast<size_t>(got);
  }
}

}  // namespace tetrad::server
