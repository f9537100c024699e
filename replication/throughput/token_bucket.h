// SPDX-License-Identifier: Apache-2.0
// A token bucket: fills at a steady rate, and what is taken from it may leave a debt. Pure.
#pragma once

#include <cstdint>

#include "base/reactor.h"

namespace tetrad::replication {

/// Tokens that flow in at a rate, and may be owed. Pure: time is handed in. Invariant: the level is
/// at least minus kDebt_s seconds of the rate; nothing flows in past kHeld_s seconds of it.
class TokenBucket {
 public:
  /// The bucket holds this many seconds of its rate.
  static constexpr int64_t kHeld_s = 1;
  /// A debt is never more than flows in meanwhile: one large scan does not lock a table for hours.
  static constexpr int64_t kDebt_s = 10;
  static constexpr uint64_t kPerSecondMax = uint64_t{1} << 36;

  /// Full. `per_s` from 1 to kPerSecondMax.
  TokenBucket(uint64_t per_s, base::MonotonicUs now_us)
      : TokenBucket(per_s, static_cast<int64_t>(per_s) * kHeld_s, now_us) {}
  /// `level` as put() would leave it.
  TokenBucket(uint64_t per_s, int64_t level, base::MonotonicUs now_us)
      : per_s_(static_cast<int64_t>(per_s)), level_(level), filled_us_(now_us) {}

  /// What is in it stays, as far as it fits.
  void set_rate(uint64_t per_s, base::MonotonicUs now_us);
  /// Below zero: the debt.
  int64_t level(base::MonotonicUs now_us) {
    fill(now_us);
    return level_;
  }
  /// Of its rate; what is put in may be more.
  int64_t held() const { return per_s_ * kHeld_s; }
  /// Below zero if need be, down to the largest debt; what is beyond that is forgiven.
  void take(uint64_t tokens, base::MonotonicUs now_us);
  /// Puts in what was taken from this bucket or another. All of it stays until it is taken.
  void put(uint64_t tokens, base::MonotonicUs now_us);
  /// How long until the level is `wanted`; that is at most what is held.
  int64_t us_until(int64_t wanted, base::MonotonicUs now_us);
  /// What would have flowed in since the last call and did not fit.
  uint64_t take_spilled(base::MonotonicUs now_us);

 private:
  /// Lets in what has flowed since the last call. A clock that stands still or goes back adds
  /// nothing.
  void fill(base::MonotonicUs now_us);

  int64_t per_s_;
  int64_t level_;
  int64_t rest_ = 0;  // millionths of a token that have flowed in as well
  int64_t spilled_ = 0;
  base::MonotonicUs filled_us_;
};

}  // namespace tetrad::replication
