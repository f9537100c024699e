// SPDX-License-Identifier: Apache-2.0
// When a physical partition is split, and where. Pure.
#pragma once

#include <cstdint>
#include <optional>
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

/// Where to cut `tablet` so that its bytes halve, never inside one logical partition. `samples`
/// ascend by position; those outside of the tablet are ignored. The cut belongs to the left half
/// and lies strictly inside the range. Errors: kLimit when all bytes belong to a single logical
/// partition.
Result<RingPosition> choose_split_point(const Tablet& tablet, std::span<const SplitSample> samples);

/// Where to cut `tablet`, whose only logical partition is at `position`, so that it comes to be
/// alone: its size is then that partition's, and others next to it are not refused when it is full.
/// None when the tablet is that one position.
std::optional<RingPosition> choose_isolating_cut(const Tablet& tablet, RingPosition position);

/// Whether the tablet covers a single position: an isolated logical partition, whose size is the
/// tablet's.
bool is_set_apart(const Tablet& tablet);

/// Which tablets to split now so that there come to be `wanted`: places in map.tablets(), the
/// widest range first, of equal ones the lower id; at most as many as are missing. Those that are
/// changing members, or are one position, stay.
std::vector<size_t> choose_tablets_to_split(const TabletMap& map, size_t wanted);

/// Where to cut a tablet that holds nothing: in the middle of its tokens. None when it is one
/// position.
std::optional<RingPosition> choose_middle(const Tablet& tablet);

}  // namespace tetrad::partitioner
