// SPDX-License-Identifier: Apache-2.0
// What of a tablet may be purged (design, rule 18).
#pragma once

#include "partitioner/tablet_map.h"
#include "replication/membership/hybrid_clock.h"

namespace tetrad::replication {

/// Longer than any request may go on after its coordinator has begun it.
inline constexpr int64_t kLongestDeadlineUs = 60'000'000;

/// Everything with an older deletion time (with TTL: write time) is on all members, or on none;
/// hints made before it are of no use. The lowest number: nothing is known.
inline int64_t purge_horizon_us(const partitioner::Tablet& tablet) {
  if (tablet.repaired_us == 0) return std::numeric_limits<int64_t>::min();
  return tablet.repaired_us - kClockSkewMaxUs - kLongestDeadlineUs;
}

}  // namespace tetrad::replication
