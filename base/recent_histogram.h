// SPDX-License-Identifier: Apache-2.0
// How values of the last minutes are spread, in less than half a kilobyte.
//
//   Buckets: a value below 4 has one of its own; above, each power of two has four, so a bound is at
//            most a quarter above the values in it. The last bucket also has all that is larger.
//   Decay:   every minute all weights are halved, as Cassandra's reservoirs forget by half in a
//            minute. It is done when the histogram is next written or read: there is no timer.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tetrad::base {

/// One thread's; a copy may be read by others.
class RecentHistogram {
 public:
  static constexpr int kBuckets = 104;  // up to 2^27: in microseconds two minutes
  static constexpr int64_t kHalfLifeUs = 60'000'000;

  /// A value that stands for `weight` like it. `now_us`: any steady clock, always the same.
  void record(uint64_t value, uint32_t weight, int64_t now_us) {
    if (now_us - decayed_us_ >= kHalfLifeUs) decay(now_us);
    weights_[static_cast<size_t>(bucket_of(value))] += kParts * weight;
  }

  static constexpr int bucket_of(uint64_t value) {
    if (value < 4) return static_cast<int>(value);
    const int power = std::bit_width(value) - 1;
    const int bucket = 4 * (power - 1) + static_cast<int>((value >> (power - 2)) & 3);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  /// The least value that is above all of the bucket.
  static constexpr uint64_t bound_of(int bucket) {
    const int next = bucket + 1;
    if (next < 4) return static_cast<uint64_t>(next);
    return static_cast<uint64_t>(4 + next % 4) << (next / 4 - 1);
  }

 private:
  friend struct RecentFigures;
  // A single value counts for some minutes before it is halved to nothing. At 2 million values a
  // second a weight stays below its type's most.
  static constexpr uint32_t kParts = 16;
  void decay(int64_t now_us);

  std::array<uint32_t, kBuckets> weights_{};
  int64_t decayed_us_ = INT64_MIN / 2;  // long ago: nothing was recorded yet
  double window_us_ = 0;                // the length of time that the weights of then stand for
};

/// Several histograms together: of shards, of tables.
struct RecentFigures {
  std::array<uint64_t, RecentHistogram::kBuckets> weights{};
  double per_second = 0;  // how many values came

  void add(const RecentHistogram& histogram, int64_t now_us);
  void add(const RecentFigures& other);
  /// The bound of the bucket at or below which `part` of the values lies, 0 to 1; 0 is the least
  /// value's, 1 the largest's. 0 without values.
  double at(double part) const;
  /// By the middles of the buckets; 0 without values.
  double mean() const;
};

}  // namespace tetrad::base
