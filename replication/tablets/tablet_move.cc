// SPDX-License-Identifier: Apache-2.0
// Stages of a change of members.
#include "replication/tablets/tablet_move.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "partitioner/balance_policy.h"
#include "partitioner/placement.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// More than any store has; half, so that adding to it does not overflow.
constexpr uint64_t kLoadOfNoUse = UINT64_MAX / 2;

bool has_host(const std::vector<StoreAddress>& set, HostId host) {
  return std::any_of(set.begin(), set.end(),
                     [&](const StoreAddress& member) { return member.host == host; });
}

using Set = std::vector<StoreAddress>;

/// Empty for one that is not on the ring.
std::string_view data_center_of(const partitioner::Ring& ring, HostId host) {
  const auto node = std::ranges::find(ring.nodes(), host, &partitioner::RingNode::host);
  return node == ring.nodes().end() ? std::string_view() : node->data_center;
}

size_t excess_with(const partitioner::Ring& ring, Set members, const StoreAddress& added) {
  if (TETRAD_MUTANT(racks_forgotten)) return 0;
  members.push_back(added);
  // Racks count within the data centre of the one that comes.
  return partitioner::rack_excess(ring.nodes(), members,
                                  std::string(data_center_of(ring, added.host)));
}

/// Those that the ring wants, then a store of each other node: the one with the fewest tablets of
/// the table, then of all. The walk along the ring takes no care of racks past the first round.
Set candidates_of(const partitioner::Ring& ring, const Set& by_ring,
                  const partitioner::StoreLoad& of_table, const partitioner::StoreLoad& load) {
  const auto count_in = [](const partitioner::StoreLoad& counts, const StoreAddress& store) {
    const auto found = counts.find(store);
    return found == counts.end() ? 0 : found->second;
  };
  // The ring's own come first: of two that are equally good it is they who are taken.
  Set candidates = by_ring;
  for (const partitioner::RingNode& node : ring.nodes()) {
    if (has_host(by_ring, node.host)) continue;
    StoreAddress best{node.host, 0};
    for (uint32_t store = 1; store < node.store_count; ++store) {
      const StoreAddress other{node.host, store};
      if (std::pair(count_in(of_table, other), count_in(load, other)) <
          std::pair(count_in(of_table, best), count_in(load, best)))
        best = other;
    }
    candidates.push_back(best);
  }
  return candidates;
}

/// Which member of `data_center` goes where the set has one too many there: one that is down, else
/// one whose rack has most; of equals the last, since the first acts for the tablet.
size_t surplus_member(const partitioner::Ring& ring, const Set& members,
                      const std::string& data_center, const Outlook& outlook) {
  size_t best = members.size();
  std::pair<bool, size_t> least;
  for (size_t i = members.size(); i-- > 0;) {
    if (data_center_of(ring, members[i].host) != data_center) continue;
    Set others = members;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    const std::pair without(outlook(members[i]).is_live,
                            partitioner::rack_excess(ring.nodes(), others, data_center));
    if (best < members.size() && without >= least) continue;
    best = i;
    least = without;
  }
  TETRAD_ASSERT(best < members.size());
  return best;
}

/// The set with one member less in a rack that has too many, and one more of the same data centre
/// where there are too few. Unset: as it is, or there is nobody who could take it.
std::optional<Set> with_rack_restored(const partitioner::Ring& ring, const Set& members,
                                      const Set& candidates, const Outlook& outlook) {
  std::optional<Set> best;
  size_t least = SIZE_MAX;
  // From the last: the first member acts for the tablet, and stays if another will do.
  for (size_t i = members.size(); i-- > 0;) {
    Set others = members;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    const size_t before = excess_with(ring, others, members[i]);
    for (const StoreAddress& added : candidates) {
      const StoreOutlook seen = outlook(added);
      if (has_host(members, added.host) || !seen.is_live || !seen.may_get) continue;
      if (data_center_of(ring, added.host) != data_center_of(ring, members[i].host)) continue;
      const size_t after = excess_with(ring, others, added);
      // Only what is better than now, and better than the best so far.
      if (after >= std::min(before, least)) continue;
      least = after;
      best = others;
      best->push_back(added);
    }
  }
  return best;
}

/// Members that decide together, those of a data centre or all, of whom so few decide in the new set
/// that all of these may have missed a decision of the old one.
struct Shrinking {
  Set staying;       // in both sets
  int deciding = 0;  // W of the new set
};

std::vector<Shrinking> shrinking_groups(const Tablet& tablet, const DataCenters* centers) {
  std::vector<Shrinking> out;
  const auto look_at = [&](const auto& is_of) {
    const auto is_in_new = [&](const StoreAddress& member) {
      return index_in(tablet.new_replicas, member) >= 0;
    };
    Shrinking group;
    int old_count = 0;
    for (const StoreAddress& member : tablet.replicas) {
      if (!is_of(member)) continue;
      ++old_count;
      if (is_in_new(member)) group.staying.push_back(member);
    }
    group.deciding =
        write_quorum(static_cast<int>(std::ranges::count_if(tablet.new_replicas, is_of)));
    // As many as a quorum of the old set need not have had.
    const int missing = old_count - write_quorum(old_count);
    if (std::min(missing, static_cast<int>(group.staying.size())) >= group.deciding)
      out.push_back(std::move(group));
  };
  look_at([](const StoreAddress&) { return true; });
  if (centers == nullptr) return out;
  // LOCAL_SERIAL is decided in one data centre.
  std::set<uint32_t> of_new;
  for (const StoreAddress& member : tablet.new_replicas) of_new.insert(centers->of(member.host));
  for (const uint32_t center : of_new)
    look_at([&](const StoreAddress& member) { return centers->of(member.host) == center; });
  return out;
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

std::vector<StoreAddress> members_to_fill(const Tablet& tablet, const DataCenters* centers) {
  Set members = added_members(tablet);
  for (const Shrinking& group : shrinking_groups(tablet, centers))
    for (const StoreAddress& member : group.staying)
      if (index_in(members, member) < 0) members.push_back(member);
  return members;
}

bool is_confirmed(const Tablet& tablet, const MoveProgress& progress, const DataCenters* centers) {
  const auto by_w_of = [&](const Set& set) {
    return closing(centers, set).is_met_by(members_in(set, progress.confirmed));
  };
  // Where members were lost what any of the others has counts, so all of them have ended what they
  // took before.
  if (has_lost_members(tablet) &&
      members_in(tablet.replicas, progress.confirmed) != all_of(tablet.replicas))
    return false;
  return by_w_of(tablet.replicas) && by_w_of(tablet.new_replicas);
}

std::optional<TabletStage> next_stage(const Tablet& tablet, const MoveProgress& progress,
                                      const DataCenters* centers) {
  if (tablet.stage == TabletStage::kNormal || progress.epoch != tablet.epoch) return std::nullopt;
  if (!is_confirmed(tablet, progress, centers) && !TETRAD_MUTANT(confirmations_skipped))
    return std::nullopt;
  if (tablet.stage == TabletStage::kStream && !TETRAD_MUTANT(fill_not_awaited)) {
    for (const StoreAddress& member : added_members(tablet))
      if (!progress.filled.contains(member)) return std::nullopt;
    // One of each quorum is enough.
    for (const Shrinking& group : shrinking_groups(tablet, centers)) {
      const auto is_left = [&](const auto& member) { return !progress.filled.contains(member); };
      if (std::ranges::count_if(group.staying, is_left) >= group.deciding) return std::nullopt;
    }
  }
  // In this stage `filled` has who has settled the tablet (rule 9); one is enough.
  if (tablet.stage == TabletStage::kReadNew && progress.filled.empty() &&
      !TETRAD_MUTANT(settling_skipped) && !TETRAD_MUTANT(confirmations_skipped))
    return std::nullopt;
  TETRAD_ASSERT(!tablet.new_replicas.empty());
  // The numbers of the stages are in their order; the last one leads back to rest.
  if (tablet.stage == TabletStage::kWriteNew) return TabletStage::kNormal;
  if (TETRAD_MUTANT(stage_skipped) && tablet.stage == TabletStage::kWriteBoth)
    return TabletStage::kReadNew;
  return static_cast<TabletStage>(static_cast<int>(tablet.stage) + 1);
}

std::optional<std::vector<StoreAddress>> wanted_members(
    const partitioner::Ring& ring, const Tablet& tablet, const partitioner::StoreLoad& of_table,
    const partitioner::StoreLoad& load, const Outlook& outlook, const DataCenters* centers) {
  if (tablet.stage != TabletStage::kNormal) return std::nullopt;
  std::map<HostId, std::string_view> center_of;
  for (const partitioner::RingNode& node : ring.nodes()) center_of[node.host] = node.data_center;
  Tablet staying = tablet;
  // What is vacated counts as gone already, so that somebody is chosen in its place.
  std::erase_if(staying.replicas, [&](const auto& member) { return outlook(member).is_vacated; });
  partitioner::StoreLoad to_choose_by = of_table;
  if (staying.replicas.size() < tablet.replicas.size()) {
    // The others of their nodes take over, as far as they can.
    for (const partitioner::RingNode& node : ring.nodes())
      for (uint32_t store = 0; store < node.store_count; ++store)
        if (!outlook({node.host, store}).may_get) to_choose_by[{node.host, store}] = kLoadOfNoUse;
  }
  const std::vector<StoreAddress> by_ring = partitioner::desired_replicas(
      ring, staying, partitioner::kReplicasPerDataCenter, to_choose_by, load);
  std::map<std::string_view, size_t> wanted, has;
  for (const StoreAddress& member : by_ring) ++wanted[center_of[member.host]];
  std::vector<StoreAddress> members;
  for (const StoreAddress& member : staying.replicas) {
    const auto on_ring = center_of.find(member.host);
    // Its node is removed, leaves, or may not hold the keyspace any more.
    if (on_ring == center_of.end()) continue;
    ++has[on_ring->second];
    members.push_back(member);
  }
  for (auto& [data_center, count] : has) {
    for (; count > wanted[data_center]; --count)
      members.erase(members.begin() + static_cast<ptrdiff_t>(surplus_member(
                                          ring, members, std::string(data_center), outlook)));
  }
  const Set candidates = candidates_of(ring, by_ring, to_choose_by, load);
  while (true) {
    // Where the fewest are in its rack, then as the ring has them.
    std::optional<StoreAddress> next;
    bool may_come = false;
    for (const StoreAddress& member : candidates) {
      const std::string_view data_center = center_of[member.host];
      if (has_host(members, member.host) || has[data_center] >= wanted[data_center]) continue;
      const StoreOutlook seen = outlook(member);
      if (!seen.is_live || !seen.may_get) {  // nothing waits for it while others can take its place
        may_come |= !seen.is_gone || TETRAD_MUTANT(dead_awaited);
        continue;
      }
      if (!next || excess_with(ring, members, member) < excess_with(ring, members, *next))
        next = member;
    }
    // Somebody who is down may come back: a smaller set is not taken for that.
    if (!next && may_come && members.size() < tablet.replicas.size()) return std::nullopt;
    if (!next) break;
    ++has[center_of[next->host]];
    members.push_back(*next);
  }
  if (members == tablet.replicas) {
    if (auto restored = with_rack_restored(ring, members, candidates, outlook))
      members = std::move(*restored);
  }
  if (members == tablet.replicas || members.empty()) return std::nullopt;
  // Three conditions before it begins, since a change that stalls holds up others: some who may
  // give all that was acknowledged, and a live quorum of either set.
  const auto is_live = [&](const StoreAddress& member) { return outlook(member).is_live; };
  const Members giving = members_that(tablet.replicas, [&](const StoreAddress& member) {
    const StoreOutlook seen = outlook(member);
    return seen.is_live && (seen.may_give || TETRAD_MUTANT(damaged_is_source));
  });
  if (!finding(centers, tablet.replicas).is_met_by(giving)) return std::nullopt;
  if (!has_live_quorum(centers, tablet.replicas, is_live) ||
      !has_live_quorum(centers, members, is_live))
    return std::nullopt;
  return members;
}

}  // namespace tetrad::replication
