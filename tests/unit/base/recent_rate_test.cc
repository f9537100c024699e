// SPDX-License-Identifier: Apache-2.0
#include "base/recent_rate.h"

#include <catch2/catch.hpp>

namespace tetrad::base {
namespace {

constexpr int64_t kSecond_us = 1'000'000;

}  // namespace

TEST_CASE("the first look sets the rate, later ones move it by the part of the span that passed") {
  RecentRate rate(7 * kSecond_us);
  CHECK(rate.per_second() == 0);
  rate.look(500, 12 * kSecond_us);
  CHECK(rate.per_second() == Approx(100));
  // Nothing for a quarter of an hour, in steps of any length: an e-th is left.
  int64_t now_us = 12 * kSecond_us;
  for (const int64_t step_s : {5, 5, 290, 1, 299, 300})
    rate.look(500, now_us += step_s * kSecond_us);
  CHECK(rate.per_second() == Approx(100 / std::exp(1)));
}

TEST_CASE("a steady rate stays what it is, and two looks at one time are one") {
  RecentRate rate(0);
  for (int64_t s = 5; s <= 3600; s += 5) {
    rate.look(static_cast<uint64_t>(s * 40), s * kSecond_us);
    rate.look(static_cast<uint64_t>(s * 40), s * kSecond_us);
  }
  CHECK(rate.per_second() == Approx(40));
}

}  // namespace tetrad::base
