// SPDX-License-Identifier: Apache-2.0
// The level of a bucket is brought up to date lazily, by each call, in whole tokens; `rest_` keeps
// the fraction, so that many short calls let in as much as one long one.
#include "replication/throughput/token_bucket.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSecondUs = 1'000'000;
/// What spills in a longer time is of no use to anybody; counting on would overflow.
constexpr int64_t kCountedUs = 320 * kSecondUs;
constexpr int64_t kSpilledMax = int64_t{1} << 45;

}  // namespace

void TokenBucket::set_rate(uint64_t per_s, base::MonotonicUs now_us) {
  TETRAD_ASSERT(per_s >= 1 && per_s <= kPerSecondMax);
  const auto wanted = static_cast<int64_t>(per_s);
  if (wanted == per_s_) return;
  fill(now_us);
  per_s_ = wanted;
  // A debt shrinks with the rate, too: it would take longer than kDebt_s to flow in.
  level_ = std::clamp(level_, -per_s_ * kDebt_s, per_s_ * kHeld_s);
}

void TokenBucket::take(uint64_t tokens, base::MonotonicUs now_us) {
  fill(now_us);
  const int64_t debt_max = per_s_ * kDebt_s;
  const uint64_t until_then = static_cast<uint64_t>(level_ + debt_max);
  TETRAD_ASSERT(level_ >= -debt_max);
  // Unsigned, since `tokens` may be any number that a request has cost.
  level_ = tokens >= until_then ? -debt_max : level_ - static_cast<int64_t>(tokens);
}

int64_t TokenBucket::us_until(int64_t wanted, base::MonotonicUs now_us) {
  fill(now_us);
  const int64_t missing = std::min(wanted, per_s_ * kHeld_s) - level_;
  if (missing <= 0) return 0;
  TETRAD_ASSERT(rest_ >= 0 && rest_ < kSecondUs);
  // Rounded up: at that time the level is `wanted`, not one token less.
  return (missing * kSecondUs - rest_ + per_s_ - 1) / per_s_;
}

void TokenBucket::put(uint64_t tokens, base::MonotonicUs now_us) {
  fill(now_us);
  level_ += static_cast<int64_t>(std::min(tokens, kPerSecondMax));
  level_ = std::min(level_, static_cast<int64_t>(kPerSecondMax));
}

uint64_t TokenBucket::take_spilled(base::MonotonicUs now_us) {
  fill(now_us);
  TETRAD_ASSERT(spilled_ >= 0);
  return static_cast<uint64_t>(std::exchange(spilled_, 0));
}

void TokenBucket::fill(base::MonotonicUs now_us) {
  const int64_t passed_us = std::min(now_us - filled_us_, kCountedUs);
  if (passed_us <= 0) return;
  filled_us_ = now_us;
  // Whole seconds and the rest apart: the product of 320 s in microseconds and a large rate would
  // overflow.
  const int64_t part = passed_us % kSecondUs * per_s_ + rest_;
  TETRAD_ASSERT(part >= 0);
  const int64_t flowed = passed_us / kSecondUs * per_s_ + part / kSecondUs;
  rest_ = part % kSecondUs;
  // What was put in by others may stand above what the bucket holds; then nothing flows in.
  const int64_t room = std::max<int64_t>(held() - level_, 0);
  level_ += std::min(flowed, room);
  if (flowed < room) return;
  spilled_ = std::min(spilled_ + flowed - room, kSpilledMax);
  // Full: the fraction of a token spills with the rest.
  rest_ = 0;
}

}  // namespace tetrad::replication
