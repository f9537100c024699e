// SPDX-License-Identifier: Apache-2.0
// Latencies of one run of the load generator.
//
// Recording costs an addition, so that it does not show in what is measured; memory is 10 KiB
// whatever is recorded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tetrad::bench {

/// Buckets of 1/32 of a power of two of microseconds: within 3 %.
class Latencies {
 public:
  // Beyond the last bucket a latency counts into it; max_us() is exact.
  void record(uint64_t us) {
    ++buckets_[index_of(us)];
    ++count_;
    max_us_ = std::max(max_us_, us);
  }
  /// In microseconds, the lower bound of the bucket; `share` from 0 to 1. Without latencies 0.
  uint64_t percentile(double share) const {
    uint64_t left = static_cast<uint64_t>(share * static_cast<double>(count_));
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i] > left) return value_of(i);
      left -= buckets_[i];
    }
    return max_us_;
  }
  uint64_t max_us() const { return max_us_; }

 private:
  // Below 32 each value has its own bucket; above, the five bits behind the highest one say which
  // of its 32.
  static size_t index_of(uint64_t us) {
    if (us < 32) return us;
    const int shift = 63 - __builtin_clzll(us) - 5;
    return std::min<size_t>(static_cast<size_t>(shift + 1) * 32 + ((us >> shift) & 31),
                            kBuckets - 1);
  }
  // The least value of a bucket: the inverse of index_of().
  static uint64_t value_of(size_t index) {
    if (index < 32) return index;
    const size_t shift = index / 32 - 1;
    return (32 + index % 32) << shift;
  }
  // Up to 2^44 us, half a year.
  static constexpr size_t kBuckets = 32 * 40;
  // Counts by bucket; count_ is their sum.
  std::vector<uint64_t> buckets_ = std::vector<uint64_t>(kBuckets);
  uint64_t count_ = 0, max_us_ = 0;
};

}  // namespace tetrad::bench
