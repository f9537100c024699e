// SPDX-License-Identifier: Apache-2.0
// When a physical partition is split, and where. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "partitioner/tablet_map.h"

namespace tetrad::partitioner {

/// How many bytes lie at which place.
struct SplitSample {
  RingPosition position;  // of a partition key
  uint64_t bytes;  // from the sample before (or the range's start) up to and with this partition
};

/// The tablets past `bytes_max`, largest first. A tablet whose members are changing, or that is
/// full, is left alone.
std::vector<TabletId> tablets_to_split(const TabletMap& map,
                                       const std::function<uint64_t(TabletId)>& bytes_of,
                                       uint64_t bytes_max);

/// Where to cut `tablet` so that its bytes halve, never inside one logical partition. `samples`
/// ascend by position; those outside of the tablet are ignored. The cut belongs to the left half
/// and lies strictly inside the range. Errors: kLimit when all bytes belong to a single logical
/// partition.
Result<RingPosition> choose_split_point(const Tablet& tablet, std::span<const SplitSample> samples);

}  // namespace tetrad::partitioner
