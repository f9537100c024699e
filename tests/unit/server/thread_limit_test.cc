// SPDX-License-Identifier: Apache-2.0
// A limit of threads is found before a library meets it.
#include "server/runtime/thread_limit.h"

#include <cstdint>
#include <fstream>
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
    // Stacks are of 8 MiB each: a limit of memory holds for the superuser, too. Sanitizers have
    // terabytes of address space from the start.
    const rlim_t most = address_space_bytes() + (512 << 20);
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto checked = check_threads(2'000);
    const bool is_told = !checked && checked.error().code == ErrorCode::kLimit &&
                         checked.error().message.starts_with("2000 threads are needed, and only ");
    ::_exit(is_told ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace tetrad::server
