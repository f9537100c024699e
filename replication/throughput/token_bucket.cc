// SPDX-License-Identifier: Apache-2.0
#include "replication/throughput/token_bucket.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSecondUs = 1'000'000;
/// After this time any bucket is full; counting on would overflow.
constexpr int64_t kFullUs = (TokenBucket::kHeld_s + TokenBucket::kDebt_s) * kSecondUs;

}  // namespace

void TokenBucket::set_rate(uint64_t per_s, base::MonotonicUs now_us) {
  TETRAD_ASSERT(per_s >= 1 && per_s <= kPerSecondMax);
  const auto wanted = static_cast<int64_t>(per_s);
  if (wanted == per_s_) return;
  fill(now_us);
  per_s_ = wanted;
  level_ = std::clamp(level_, -per_s_ * kDebt_s, per_s_ * kHeld_s);
}

void TokenBucket::take(uint64_t tokens, base::MonotonicUs now_us) {
  fill(now_us);
  const int64_t debt_max = per_s_ * kDebt_s;
  const uint64_t until_then = static_cast<uint64_t>(level_ + debt_max);
  TETRAD_ASSERT(level_ >= -debt_max);
  level_ = tokens >= until_then ? -debt_max : level_ - static_cast<int64_t>(tokens);
}

int64_t TokenBucket::us_until(int64_t wanted, base::MonotonicUs now_us) {
  fill(now_us);
  const int64_t missing = std::min(wanted, per_s_ * kHeld_s) - level_;
  if (missing <= 0) return 0;
  TETRAD_ASSERT(rest_ >= 0 && rest_ < kSecondUs);
  return (missing * kSecondUs - rest_ + per_s_ - 1) / per_s_;
}

void TokenBucket::fill(base::MonotonicUs now_us) {
  const int64_t passed_us = std::min(now_us - filled_us_, kFullUs);
  if (passed_us <= 0) return;
  filled_us_ = now_us;
  const int64_t flowed = passed_us * per_s_ + rest_;
  TETRAD_ASSERT(flowed >= 0);
  level_ += flowed / kSecondUs;
  rest_ = flowed % kSecondUs;
  const int64_t held = per_s_ * kHeld_s;
  if (level_ < held) return;
  level_ = held;
  rest_ = 0;
}

}  // namespace tetrad::replication
