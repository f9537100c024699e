// SPDX-License-Identifier: Apache-2.0
// What of a tablet may be purged (design, rule 18).
//
// A repair that began at R and that all members finished leaves all of them equal in what was
// written before R, but for what was still under way then: a request goes on for no longer than the
// longest deadline after it began, by a clock that is off by no more than the bound. So a hint made
// before R less both is of no use. A hint that was made later, and is still brought, may hold what
// was written by that much earlier: what is purged must be older than that.
#pragma once

#include <limits>

#include "partitioner/tablet_map.h"
#include "replication/membership/hybrid_clock.h"

namespace tetrad::replication {

/// What horizons leave for clocks that differ and for requests under way: what one node purges
/// another must not be about to write.
struct HorizonSlack {
  int64_t clock_skew_us = kClockSkewMaxUs;
  /// Longer than any request may go on after its coordinator has begun it.
  int64_t longest_deadline_us = 60'000'000;
};

/// Hints made before it are of no use. The lowest number: nothing is known.
inline int64_t hint_horizon_us(const partitioner::Tablet& tablet, const HorizonSlack& slack) {
  if (tablet.repaired_us == 0) return std::numeric_limits<int64_t>::min();
  return tablet.repaired_us - slack.clock_skew_us - slack.longest_deadline_us;
}

/// Everything with an older deletion time (with TTL: write time) is on all members, or on none, and
/// nothing that it hides is on its way to one. The lowest number: nothing is known.
inline int64_t purge_horizon_s(const partitioner::Tablet& tablet, const HorizonSlack& slack) {
  if (tablet.repaired_us == 0) return std::numeric_limits<int64_t>::min();
  return (hint_horizon_us(tablet, slack) - slack.clock_skew_us - slack.longest_deadline_us) /
         1'000'000;
}

/// Values of conditional statements with an older timestamp are not accepted or committed any more
/// and count as never proposed, for what hides them may be purged: those that anybody has heard of
/// are in the rows of all members.
inline int64_t paxos_floor_us(const partitioner::Tablet& tablet, const HorizonSlack& slack) {
  const int64_t horizon_s = purge_horizon_s(tablet, slack);
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  return horizon_s == kNone ? kNone : horizon_s * 1'000'000;
}

}  // namespace tetrad::replication
