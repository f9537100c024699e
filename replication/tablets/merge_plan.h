// SPDX-License-Identifier: Apache-2.0
// What is to be done next so that two neighbours become one tablet. Pure: who does it looks at each
// new state anew, so that nothing has to be taken back where a node dies, a half is split or the
// table goes.
//
//   1. The members of one half are exchanged, one after another, until both halves have the same.
//   2. Both are repaired together, so that they have one purge horizon; with equal ones this is
//      left out.
//   3. MergeTablets names both as they are now. If one has changed it is refused, and all begins
//      anew.
#pragma once

#include <vector>

#include "partitioner/topology.h"
#include "replication/meta/meta_command.h"

namespace tetrad::replication {

/// Two neighbours that are to be merged. They keep their numbers until they are one.
struct MergeHalves {
  TableIncarnation incarnation;
  TabletId left, right;
};

/// The table's tablets of these numbers, as they are now.
struct FoundHalves {
  const TableInfo* table = nullptr;
  const partitioner::Tablet* left = nullptr;
  const partitioner::Tablet* right = nullptr;
};
/// Errors: kNotFound: the table is gone, or they are no longer neighbours.
Result<FoundHalves> find_halves(const MetaState& state, const MergeHalves& halves);

/// What comes next on the way to one tablet. A step may come again when a half has changed.
enum class MergeStep {
  kWait,      // a half is changing its members
  kExchange,  // `moving` gets `members`
  kRepair,    // both, together
  kMerge,
};

/// A step with what it needs. `moving` is into the state that it was planned by; null unless the
/// step is kExchange.
struct NextMergeStep {
  MergeStep step = MergeStep::kWait;
  const partitioner::Tablet* moving = nullptr;
  std::vector<StoreAddress> members;
};

/// Errors: kNotFound as above; kConflict: they cannot be merged as they are, with why.
Result<NextMergeStep> next_merge_step(const FoundHalves& found, bool left_moves,
                                      std::span<const partitioner::RingNode> nodes);

/// The command for halves that next_merge_step() has found ready; it names their epochs.
MergeTablets merge_command(const FoundHalves& found, uint32_t tablets_min, uint8_t bounces_most);

}  // namespace tetrad::replication
