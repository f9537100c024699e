// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/asio_reactor.h"

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

int64_t boot_now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

}  // namespace

// Writes are stamped with it: one that comes to a node that slept must not be older than what
// another node has answered meanwhile.
TEST_CASE("what wakes a loop that slept sees the time of now") {
  AsioReactor reactor;
  struct Seen {
    base::MonotonicUs before_us, now_us;
    int64_t boot_before_us, boot_us;
  };
  std::vector<Seen> seen;
  std::thread waker([&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      reactor.post_from_any_thread(
          [&, before_us = monotonic_now_us(), boot_before_us = boot_now_us()] {
            seen.push_back({before_us, reactor.now_us(), boot_before_us, reactor.boot_time_us()});
            if (seen.size() == 5) reactor.stop();
          });
    }
  });
  reactor.run();
  waker.join();
  REQUIRE(seen.size() == 5);
  for (const Seen& one : seen) {
    CHECK(one.now_us >= one.before_us);
    CHECK(one.boot_us >= one.boot_before_us);
  }
}

}  // namespace tetrad::server
