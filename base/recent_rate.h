// SPDX-License-Identifier: Apache-2.0
// How often something has happened of late, from looks at a number that only rises.
//
//   Each look moves the rate towards the rate since the look before, by 1 - e^(-passed / 15 minutes);
//   the first one sets it. Those are the fifteen-minute rates of Cassandra, which looks every five
//   seconds.
#pragma once

#include <cmath>
#include <cstdint>

namespace tetrad::base {

/// A rate over about the last quarter of an hour. One thread's.
class RecentRate {
 public:
  static constexpr double kSpanUs = 15 * 60e6;

  /// The number is 0 at this time. `now_us`: any steady clock, always the same.
  explicit RecentRate(int64_t now_us) : looked_us_(now_us) {}

  /// `count`: the number now.
  void look(uint64_t count, int64_t now_us) {
    if (now_us <= looked_us_) return;
    const auto passed_us = static_cast<double>(now_us - looked_us_);
    const double since = static_cast<double>(count - count_) * 1e6 / passed_us;
    per_second_ +=
        has_looked_ ? (1 - std::exp(-passed_us / kSpanUs)) * (since - per_second_) : since;
    has_looked_ = true;
    count_ = count;
    looked_us_ = now_us;
  }
  /// As of the last look; 0 before the first.
  double per_second() const { return per_second_; }

 private:
  bool has_looked_ = false;
  uint64_t count_ = 0;
  int64_t looked_us_;
  double per_second_ = 0;
};

}  // namespace tetrad::base
