// SPDX-License-Identifier: Apache-2.0
// Stages of a change of members.
#include "replication/tablets/tablet_move.h"

#include <algorithm>

#include "partitioner/placement.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

bool quorum_confirmed(const std::vector<StoreAddress>& set, const MoveProgress& progress) {
  const auto confirmed = std::count_if(set.begin(), set.end(), [&](const StoreAddress& member) {
    return progress.confirmed.contains(member);
  });
  return static_cast<size_t>(confirmed) >= write_quorum(set.size());
}

bool has_host(const std::vector<StoreAddress>& set, HostId host) {
  return std::any_of(set.begin(), set.end(),
                     [&](const StoreAddress& member) { return member.host == host; });
}

}  // namespace

std::vector<StoreAddress> all_members(const Tablet& tablet) {
  std::vector<StoreAddress> members = tablet.replicas;
  const std::vector<StoreAddress> added = added_members(tablet);
  members.insert(members.end(), added.begin(), added.end());
  return members;
}

std::vector<StoreAddress> added_members(const Tablet& tablet) {
  std::vector<StoreAddress> added;
  for (const StoreAddress& member : tablet.new_replicas) {
    if (std::find(tablet.replicas.begin(), tablet.replicas.end(), member) == tablet.replicas.end())
      added.push_back(member);
  }
  return added;
}

std::optional<TabletStage> next_stage(const Tablet& tablet, const MoveProgress& progress) {
  if (tablet.stage == TabletStage::kNormal || progress.epoch != tablet.epoch) return std::nullopt;
  if (!quorum_confirmed(tablet.replicas, progress) ||
      !quorum_confirmed(tablet.new_replicas, progress))
    return std::nullopt;
  if (tablet.stage == TabletStage::kStream) {
    for (const StoreAddress& member : added_members(tablet))
      if (!progress.filled.contains(member)) return std::nullopt;
  }
  if (tablet.stage == TabletStage::kWriteNew) return TabletStage::kNormal;
  return static_cast<TabletStage>(static_cast<int>(tablet.stage) + 1);
}

std::optional<std::vector<StoreAddress>> grown_members(const partitioner::Ring& ring,
                                                       const Tablet& tablet,
                                                       const std::function<bool(HostId)>& is_live) {
  if (tablet.stage != TabletStage::kNormal) return std::nullopt;
  const partitioner::StoreLoad no_load;
  const std::vector<StoreAddress> wanted =
      partitioner::desired_replicas(ring, tablet, partitioner::kReplicasPerDataCenter, no_load);
  if (wanted.size() <= tablet.replicas.size()) return std::nullopt;
  const auto live = std::count_if(tablet.replicas.begin(), tablet.replicas.end(),
                                  [&](const StoreAddress& member) { return is_live(member.host); });
  if (static_cast<size_t>(live) < write_quorum(tablet.replicas.size())) return std::nullopt;
  std::vector<StoreAddress> members = tablet.replicas;
  for (const StoreAddress& member : wanted) {
    if (members.size() >= wanted.size()) break;
    if (has_host(members, member.host)) continue;
    if (!is_live(member.host)) return std::nullopt;
    members.push_back(member);
  }
  return members;
}

}  // namespace tetrad::replication
