// SPDX-License-Identifier: Apache-2.0
// A token bucket: fills at a steady rate, and what is taken from it may leave a debt. Pure.
#pragma once

#include <cstdint>

#include "base/reactor.h"

namespace tetrad::replication {

/// Tokens that flow in at a rate, and may be owed. Pure: time is handed in. Invariant: the level is
/// between minus kDebt_s and plus kHeld_s seconds of the rate.
class TokenBucket {
 public:
  /// The bucket holds this many seconds of its rate.
  static constexpr int64_t kHeld_s = 1;
  /// A debt is never more than flows in meanwhile: one large scan does not lock a table for hours.
  static constexpr int64_t kDebt_s = 10;
  static constexpr uint64_t kPerSecondMax = uint64_t{1} << 36;

  /// Full. `per_s` from 1 to kPerSecondMax.
  TokenBucket(uint64_t per_s, base::MonotonicUs now_us)
      : per_s_(static_cast<int64_t>(per_s)), level_(per_s_ * kHeld_s), filled_us_(now_us) {}

  /// What is in it stays, as far as it fits.
  void set_rate(uint64_t per_s, base::MonotonicUs now_us);
  /// Below zero: the debt.
  int64_t level(base::MonotonicUs now_us) {
    fill(now_us);
    return level_;
  }
  void take(uint64_t tokens, base::MonotonicUs now_us);
  /// How long until the level is `wanted`; that is at most what is held.
  int64_t us_until(int64_t wanted, base::MonotonicUs now_us);

 private:
  void fill(base::MonotonicUs now_us);

  int64_t per_s_;
  int64_t level_;
  int64_t rest_ = 0;  // millionths of a token that have flowed in as well
  base::MonotonicUs filled_us_;
};

}  // namespace tetrad::replication
