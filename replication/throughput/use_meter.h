// SPDX-License-Identifier: Apache-2.0
// What is used of a throughput: in the last second, and in the busiest second of each hour, which
// is what an autoscaled one is booked for. Pure.
#pragma once

#include <cstdint>

#include "replication/throughput/used_throughput.h"

namespace tetrad::replication {

/// Counts by seconds and hours of a wall clock. Where the clock goes back a second ends, so that no
/// second is ever longer; the hour goes on, where it goes back by more than one under the earlier
/// name.
class UseMeter {
 public:
  /// `weight` of requests was let in. One that is given back is given back of the present second.
  void add(uint64_t weight, int64_t wall_us);
  void give_back(uint64_t weight, int64_t wall_us);
  /// Goes on where another holder was.
  void go_on(const UsedThroughput& before, int64_t wall_us);
  /// Request units, rounded up.
  UsedThroughput used(int64_t wall_us);

 private:
  /// Closes the second and the hour that are over at `wall_us`.
  void advance(int64_t wall_us);
  void close_second();

  int64_t second_ = 0;
  int64_t weight_ = 0;  // of the second that is open
  UsedThroughput used_;
};

}  // namespace tetrad::replication
