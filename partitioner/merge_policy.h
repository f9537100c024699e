// SPDX-License-Identifier: Apache-2.0
// Which neighbours become one tablet, and how their members come to be the same. Pure.
//
// Two are merged that have been cold and small for long: together they have less than half of what
// would split the whole, so that it is not split again at once. Where a merge was undone before,
// "long" is ten and sixty times as long. Pairs come first that are on the same stores already, then
// those that cost the least bytes to bring together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partitioner/tablet_map.h"
#include "partitioner/topology.h"

namespace tetrad::partitioner {

/// A tablet as the policy sees it; neighbours in a row, as in their map.
struct MergeTablet {
  const Tablet* tablet = nullptr;
  /// Sound and at rest: it is not changing, all of its members are there, its size is known.
  bool may_merge = false;
  uint64_t bytes = 0;
  /// Of the busiest second of the last minute at least.
  uint64_t ru_per_s = 0, bytes_per_s = 0;
  /// How long it has had its range, as far as is known.
  int64_t age_us = 0;
};

/// When two tablets are merged.
struct MergeLimits {
  uint64_t bytes = 0;                      // both together have less,
  uint64_t ru_per_s = 0, bytes_per_s = 0;  // also of these; 0: whatever they have
  int64_t age_us = 0;                      // and each is at least as old as this
  size_t tablets_min = 1;                  // the table keeps at least these
};

/// Neighbours: the tablet at `left` and the one behind it.
struct MergePair {
  size_t left = 0;
  uint64_t bytes_to_move = 0;  // 0: they are on the same stores
  bool operator==(const MergePair&) const = default;
};

/// How many times the age of a tablet must be as high, the more often merges here were undone.
int64_t age_factor(uint8_t bounces);

/// Pairs that have no tablet in common, those to begin with first.
std::vector<MergePair> choose_merges(std::span<const MergeTablet> tablets,
                                     const MergeLimits& limits);

/// The half that goes to the other's stores: the one with fewer bytes.
bool left_half_moves(const MergeTablet& left, const MergeTablet& right);

/// The members of `moving` after the next step towards those of `target`: one of them is exchanged,
/// in its place, for one of the same node, else of the same rack, else of the same data centre.
/// Unset: no exchange leads there. `moving` itself: both have the same members.
std::optional<std::vector<StoreAddress>> step_towards(std::span<const StoreAddress> moving,
                                                      std::span<const StoreAddress> target,
                                                      std::span<const RingNode> nodes);

}  // namespace tetrad::partitioner
