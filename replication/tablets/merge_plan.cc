// SPDX-License-Identifier: Apache-2.0
// What a merge of two neighbouring tablets needs next: the same members, then the same time of the
// last repair, then one command. Decided anew from the map at each step, so nothing is lost when
// the leader changes.
#include "replication/tablets/merge_plan.h"

#include <algorithm>

#include "base/assert.h"
#include "partitioner/merge_policy.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

Result<FoundHalves> find_halves(const MetaState& state, const MergeHalves& halves) {
  FoundHalves found;
  found.table = state.table(halves.incarnation);
  if (found.table == nullptr) return fail(ErrorCode::kNotFound, "the table is gone");
  const std::vector<Tablet>& tablets = found.table->tablets.tablets();
  // Either may have been split or merged since the pair was chosen.
  const auto left = std::ranges::find(tablets, halves.left, &Tablet::id);
  if (left == tablets.end() || std::next(left) == tablets.end() ||
      std::next(left)->id != halves.right)
    return fail(ErrorCode::kNotFound, "physical partitions {} and {} are not neighbours",
                halves.left.value, halves.right.value);
  found.left = &*left;
  found.right = &*std::next(left);
  return found;
}

Result<NextMergeStep> next_merge_step(const FoundHalves& found, bool left_moves,
                                      std::span<const partitioner::RingNode> nodes) {
  TETRAD_ASSERT(found.left != nullptr);
  TETRAD_ASSERT(found.right != nullptr);
  const Tablet& moving = left_moves ? *found.left : *found.right;
  const Tablet& other = left_moves ? *found.right : *found.left;
  NextMergeStep next;
  for (const Tablet* half : {found.left, found.right}) {
    if (half->full)
      return fail(ErrorCode::kConflict, "physical partition {} is a logical one at its limit",
                  half->id.value);
    // A change of members is under way: wait for its end.
    if (half->stage != TabletStage::kNormal) return next;
  }
  const auto members = partitioner::step_towards(moving.replicas, other.replicas, nodes);
  if (!members)
    return fail(ErrorCode::kConflict,
                "the replicas of physical partitions {} and {} cannot be brought together",
                found.left->id.value, found.right->id.value);
  if (*members != moving.replicas) {
    next.step = MergeStep::kExchange;
    next.moving = &moving;
    next.members = *members;
    // The merged tablet has one purge horizon, so both halves must have been made equal at the same
    // time.
  } else if (found.left->repaired_us != found.right->repaired_us) {
    next.step = MergeStep::kRepair;
  } else {
    next.step = MergeStep::kMerge;
  }
  return next;
}

MergeTablets merge_command(const FoundHalves& found, uint32_t tablets_min, uint8_t bounces_most) {
  TETRAD_ASSERT(found.left->range.end == found.right->range.start);
  MergeTablets command;
  command.incarnation = found.table->incarnation;
  command.left = found.left->id;
  command.right = found.right->id;
  // The group applies it only to the tablets of these epochs: anything that happens in between
  // makes it void.
  command.left_epoch = found.left->epoch;
  command.right_epoch = found.right->epoch;
  command.range = {found.left->range.start, found.right->range.end};
  command.cut = found.left->range.end;
  command.tablets_min = tablets_min;
  command.bounces_most = bounces_most;
  return command;
}

}  // namespace tetrad::replication
