// SPDX-License-Identifier: Apache-2.0
#include "base/request_timer.h"

#include <catch2/catch.hpp>

#include "tests/support/manual_reactor.h"

namespace tetrad::base {

TEST_CASE("one request a millisecond is timed, and every sixteenth") {
  tests::ManualReactor reactor;
  RequestTimer timer;
  uint32_t timed = 0, stand_for = 0;
  for (int i = 0; i < 1'601; ++i) {
    const TimedRequest request = timer.begin(reactor);
    timed += request.is_timed() ? 1 : 0;
    stand_for += request.weight;
  }
  CHECK(timed == 101);
  CHECK(stand_for == 1'601);
  reactor.advance_us(1'000);
  CHECK(timer.begin(reactor).is_timed());
  CHECK_FALSE(timer.begin(reactor).is_timed());
}

TEST_CASE("a request that is taken back counts for nothing") {
  tests::ManualReactor reactor;
  RequestTimer timer;
  timer.take_back(timer.begin(reactor));
  CHECK(timer.begin(reactor).is_timed());
}

TEST_CASE("what ends within a turn took what the last such one did that was timed") {
  RequestLatencies latencies;
  CHECK(latencies.of(std::nullopt, 0) == 0);  // none was timed yet
  CHECK(latencies.of(7, 0) == 7);
  CHECK(latencies.of(std::nullopt, 0) == 7);
  CHECK(latencies.of(std::nullopt, 300) == 300);
  CHECK(latencies.of(290, 300) == 290);
  CHECK(latencies.of(std::nullopt, 0) == 7);
}

}  // namespace tetrad::base
