// SPDX-License-Identifier: Apache-2.0
// A limit of threads is found before a library meets it.
#include "server/runtime/thread_limit.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

uint64_t address_space_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("threads that may be made are no error, and those that may not are one") {
  CHECK(check_threads(0));
  CHECK(check_threads(100));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // A limit of memory holds for the superuser, too. Four stacks of this size fit below it, and half
    // a stack is left: what a sanitizer takes beside each thread must not meet the limit, since a
    // sanitizer ends the process there. It has terabytes of address space from the start.
    constexpr size_t kStackBytes = 256 << 20;
    pthread_attr_t of_threads;
    ::pthread_attr_init(&of_threads);
    ::pthread_attr_setstacksize(&of_threads, kStackBytes);
    ::pthread_setattr_default_np(&of_threads);
    const rlim_t most = address_space_bytes() + 4 * kStackBytes + kStackBytes / 2;
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto checked = check_threads(2'000);
    const bool is_told = !checked && checked.error().code == ErrorCode::kLimit &&
                         checked.error().message.starts_with("2000 threads are needed, and only ");
    if (!is_told) {
      std::fprintf(stderr, "check_threads: %s\n",
                   checked ? "no error" : checked.error().message.c_str());
    }
    ::_exit(is_told ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace tetrad::server
