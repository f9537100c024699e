// SPDX-License-Identifier: Apache-2.0
// What clients use of the throughput of one tablet, or of one keyspace: counted where its bucket is
// kept, and reported to all nodes (throughput_board.h). In request units.
#pragma once

#include <cstdint>

namespace tetrad::replication {

/// Names the bucket of a tablet or of a keyspace: one for each of the cluster (bucket_of()).
using ThroughputKey = uint64_t;

/// What clients use of one bucket. A value: it travels in reports, and two equal ones are not
/// reported twice. `banked_ru` is what the tablet has saved for bursts.
struct UsedThroughput {
  uint32_t used_ru_per_s = 0;  // in the last second
  /// Of the busiest second, since the hour began and in the hour before.
  uint32_t busiest_ru_per_s = 0, busiest_before_ru_per_s = 0;
  /// The hour that `busiest_ru_per_s` is of, by the wall clock of the node that counts, since 1970;
  /// 0: nothing was counted.
  uint32_t hour = 0;
  uint64_t refused = 0;  // requests, since its present holder began
  uint32_t banked_ru = 0;

  friend bool operator==(const UsedThroughput&, const UsedThroughput&) = default;
};

}  // namespace tetrad::replication
