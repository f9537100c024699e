// SPDX-License-Identifier: Apache-2.0
// A shard whose loop does not come round is told of, and told of again when it does.
#include "server/runtime/loop_watch.h"

#include <catch2/catch.hpp>

#include "tests/support/manual_reactor.h"

namespace tetrad::server {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

TEST_CASE("a loop that hangs is told of after five seconds, and when it comes round again") {
  tests::ManualReactor first, second, third;
  std::vector<std::pair<uint32_t, bool>> told;
  LoopWatch watch({&first, &second, &third},
                  [&](uint32_t shard, bool hangs) { told.emplace_back(shard, hangs); });
  watch.start();
  const auto pass = [&](int seconds, bool second_runs) {
    for (int i = 0; i < seconds; ++i) {
      first.advance_us(kSecondUs);
      if (second_runs) second.advance_us(kSecondUs);
      third.advance_us(kSecondUs);
      first.advance_us(1);
    }
  };
  pass(20, true);
  CHECK(told.empty());
  pass(4, false);
  CHECK(told.empty());
  pass(30, false);
  CHECK(told == std::vector<std::pair<uint32_t, bool>>{{1, true}});
  pass(3, true);
  CHECK(told == std::vector<std::pair<uint32_t, bool>>{{1, true}, {1, false}});
  pass(20, true);
  CHECK(told.size() == 2);
}

TEST_CASE("an answer that comes when nobody watches any more changes nothing") {
  tests::ManualReactor first, second;
  int told = 0;
  {
    LoopWatch watch({&first, &second}, [&](uint32_t, bool) { ++told; });
    watch.start();
    first.advance_us(2 * kSecondUs);
  }
  second.advance_us(kSecondUs);
  first.advance_us(20 * kSecondUs);
  CHECK(told == 0);
}

}  // namespace tetrad::server
