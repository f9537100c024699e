// SPDX-License-Identifier: Apache-2.0
// Where a hot tablet is cut. Pure.
//
//   A position with more than half of the work is set apart: a cut before it and one behind it.
//   Else the tablet is cut where the halves are nearest to equal. Where no cut halves it well,
//   since a position with much of the work is in the middle, that one is set apart, too: three
//   parts then carry less each than two would.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "partitioner/tablet_map.h"

namespace tetrad::partitioner {

/// The cuts of a hot tablet, and what comes of them as far as the sample tells.
struct HeatCuts {
  std::vector<RingPosition> cuts;  // one or two, ascending; each belongs to the part left of it
  double largest = 0;              // share of the work that the busiest part keeps
  bool sets_apart = false;         // a position with much of the work comes to be alone
};

/// Of fewer samples nothing is concluded.
inline constexpr size_t kHeatSamplesLeast = 200;

/// `samples`: positions of work, ascending, each as often as it was drawn; those outside of the
/// tablet are ignored. No part may keep more than `largest_allowed` of the work. Errors: kLimit,
/// with why it cannot be cut: too few samples, all at one position, or a part that is too large.
Result<HeatCuts> choose_heat_cuts(const Tablet& tablet, std::span<const RingPosition> samples,
                                  double largest_allowed = 1.0);

}  // namespace tetrad::partitioner
