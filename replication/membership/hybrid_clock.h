// SPDX-License-Identifier: Apache-2.0
// The hybrid clock of a node (design, rule 28): its own wall clock, but never behind what other
// nodes' messages have told. Clients' timestamps never move it. One per node; any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace tetrad::replication {

/// How far ahead of its own clock a node follows that of another.
inline constexpr int64_t kClockSkewMaxUs = 10'000'000;

class HybridClock {
 public:
  explicit HybridClock(int64_t skew_max_us = kClockSkewMaxUs) : skew_max_us_(skew_max_us) {}

  /// False: too far ahead of `wall_us`, not followed.
  bool observe(int64_t told_us, int64_t wall_us) {
    if (!is_within_bound(told_us, wall_us)) return false;
    int64_t known = observed_us_.load(std::memory_order_relaxed);
    while (told_us > known &&
           !observed_us_.compare_exchange_weak(known, told_us, std::memory_order_relaxed)) {
    }
    return true;
  }
  /// Not below any timestamp that was observed.
  int64_t now_us(int64_t wall_us) const {
    return std::max(wall_us, observed_us_.load(std::memory_order_relaxed));
  }
  bool is_within_bound(int64_t told_us, int64_t wall_us) const {
    return told_us <= wall_us || told_us - skew_max_us_ <= wall_us;
  }

 private:
  const int64_t skew_max_us_;
  std::atomic<int64_t> observed_us_{std::numeric_limits<int64_t>::min()};
};

}  // namespace tetrad::replication
