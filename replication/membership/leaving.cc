// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/leaving.h"

#include <algorithm>
#include <set>

#include "partitioner/topology.h"
#include "replication/meta/lost_nodes.h"
#include "replication/meta/placed_in.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {
namespace {

bool names(const std::vector<StoreAddress>& set, HostId host) {
  return std::any_of(set.begin(), set.end(),
                     [&](const StoreAddress& member) { return member.host == host; });
}

/// Calls `look(table, tablet, set)` for every set of members that has the host.
template <class Look>
void for_sets_of(const MetaState& state, HostId host, Look look) {
  for (const auto& [id, table] : state.tables) {
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas})
        if (names(*set, host)) look(*table, tablet, *set);
    }
  }
}

/// No keyspace would be without a node.
Result<void> check_keyspaces(const MetaState& state, const NodeInfo& leaving) {
  for (const auto& [id, table] : state.tables) {
    const auto data_centers = placed_in(state, table->keyspace);
    if (!data_centers.contains(leaving.data_center)) continue;
    const bool others_stay = std::ranges::any_of(state.nodes, [&](const auto& entry) {
      return entry.first != leaving.host && entry.second.state == NodeState::kNormal &&
             data_centers.contains(entry.second.data_center);
    });
    if (!others_stay)
      return fail(ErrorCode::kConflict,
                  "keyspace {} has its rows on node {} ({}) alone: no other node is in a data "
                  "center that it names; ALTER KEYSPACE first",
                  table->keyspace, leaving.host.to_string(), leaving.address);
  }
  return {};
}

/// Whether those that are left (`is_left`, of a member) have all that was acknowledged, and can end a
/// change of members that is under way.
template <class IsLeft>
bool goes_on_without(const MetaState& state, const partitioner::Tablet& tablet, IsLeft is_left) {
  using partitioner::TabletStage;
  const auto is_closed_by = [&](const std::vector<StoreAddress>& set) {
    return closing(state.data_centers.get(), set).is_met_by(members_that(set, is_left));
  };
  // Others were lost before: all that are left are waited for.
  if (has_lost_members(tablet)) return std::ranges::all_of(tablet.replicas, is_left);
  // From here on there is no way back, and writes of the last stage are on the new set alone.
  const bool needs_new =
      tablet.stage == TabletStage::kReadNew || tablet.stage == TabletStage::kWriteNew;
  return is_closed_by(tablet.replicas) && (!needs_new || is_closed_by(tablet.new_replicas));
}

}  // namespace

size_t replicas_on(const MetaState& state, HostId host) {
  size_t count = 0;
  for_sets_of(state, host, [&](const auto&, const auto&, const auto&) { ++count; });
  return count;
}

Result<void> check_leaving(const MetaState& state, HostId host, bool dead, const IsLive& is_live) {
  const NodeInfo* node = state.node(host);
  if (node == nullptr) return fail(ErrorCode::kNotFound, "there is no node {}", host.to_string());
  if (node->state == NodeState::kRemoved)
    return fail(ErrorCode::kConflict, "node {} has been removed already", host.to_string());
  if (dead && is_live(host))
    return fail(ErrorCode::kConflict,
                "node {} ({}) is alive: `tetractl -h {} decommission` makes it leave, or stop it "
                "first",
                host.to_string(), node->address, node->address);
  if (node->state == NodeState::kLeaving) return {};  // it goes on
  size_t others = 0;
  for (const auto& [other, info] : state.nodes) {
    if (other == host) continue;
    if (info.state == NodeState::kLeaving)
      return fail(
          ErrorCode::kConflict,
          "node {} ({}) is leaving; one node leaves at a time: `tetractl -h {} decommission "
          "--cancel` keeps it",
          other.to_string(), info.address, info.address);
    if (info.state == NodeState::kNormal) ++others;
  }
  if (others == 0)
    return fail(ErrorCode::kConflict, "node {} is the only one of its cluster", host.to_string());
  TETRAD_TRY_VOID(check_keyspaces(state, *node));
  Result<void> result;
  for_sets_of(state, host, [&](const TableInfo& table, const auto& tablet, const auto& set) {
    const Members alive =
        members_that(set, [&](const StoreAddress& member) { return is_live(member.host); });
    const Need needed = closing(state.data_centers.get(), set);
    const Need::Group* const unmet = needed.first_unmet(alive);
    if (unmet == nullptr || !result) return;
    result =
        fail(ErrorCode::kUnavailable,
             "physical partition {} of {}.{} has {} of {} replicas alive and needs {} to be "
             "rebuilt; start the others first (if they are gone for good: `tetractl "
             "remove-lost-nodes`)",
             tablet.id.value, table.keyspace, table.name, std::popcount(alive & unmet->members),
             std::popcount(unmet->members), unmet->count);
  });
  return result;
}

Result<LossWith> check_lost(const MetaState& state, const std::vector<HostId>& hosts,
                            const IsLive& is_live) {
  constexpr size_t kNamed = 1'000;
  const std::set<HostId> lost(hosts.begin(), hosts.end());
  for (const HostId& host : lost) {
    const NodeInfo* node = state.node(host);
    if (node == nullptr) return fail(ErrorCode::kNotFound, "there is no node {}", host.to_string());
    if (node->state == NodeState::kRemoved)
      return fail(ErrorCode::kConflict, "node {} has been removed already", host.to_string());
    if (is_live(host))
      return fail(ErrorCode::kConflict, "node {} ({}) is alive: nothing of it is lost",
                  host.to_string(), node->address);
  }
  TETRAD_TRY_VOID(check_readers(state, hosts));
  LossWith out;
  for (const auto& [id, table] : state.tables) {
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      const auto is_left = [&](const StoreAddress& one) { return !lost.contains(one.host); };
      const Members left = members_that(tablet.replicas, is_left);
      if (left == all_of(tablet.replicas) && std::ranges::all_of(tablet.new_replicas, is_left))
        continue;
      ++out.partitions;
      if (goes_on_without(state, tablet, is_left)) continue;
      ++out.in_doubt;
      ++out.by_table[table->keyspace + "." + table->name];
      if (left == 0 && std::ranges::none_of(tablet.new_replicas, is_left)) ++out.without_any;
      if (out.named.size() < kNamed)
        out.named.push_back(
            fmt::format("{}.{}: physical partition {}, tokens {} to {}, {} of {} replicas are left",
                        table->keyspace, table->name, tablet.id.value, tablet.range.start.token,
                        tablet.range.end.token, std::popcount(left), tablet.replicas.size()));
    }
  }
  if (out.in_doubt == 0)
    return fail(ErrorCode::kConflict,
                "nothing would be lost: take them out one after the other, by `tetractl "
                "remove-node`");
  return out;
}

CopiesWithout copies_without(const MetaState& state, HostId host) {
  CopiesWithout out;
  if (const NodeInfo* node = state.node(host)) out.data_center = node->data_center;
  for (const auto& [other, info] : state.nodes) {
    if (other != host && info.state == NodeState::kNormal && info.data_center == out.data_center)
      ++out.nodes_then;
  }
  const size_t copies_most = partitioner::kReplicasPerDataCenter;
  out.copies_now = std::min(out.nodes_then + 1, copies_most);
  out.copies_then = std::min(out.nodes_then, copies_most);
  return out;
}

Result<void> check_copies(const CopiesWithout& without) {
  constexpr size_t kCopiesLeast = 3;
  if (without.copies_now < kCopiesLeast || without.copies_then >= kCopiesLeast) return {};
  return fail(ErrorCode::kConflict,
              "only {} nodes would remain in data center {}: rows would have {} copies, and no "
              "quorum while one of these is away; `tetractl decommission --force` if that is meant",
              without.nodes_then, without.data_center, without.copies_then);
}

Result<HostId> host_named(const MetaState& state, const std::string& name) {
  // An unknown host id has an error of its own, where it is used.
  if (const auto id = Uuid::parse(name)) return HostId{*id};
  std::vector<HostId> found;
  for (const auto& [host, node] : state.nodes)
    if (node.state != NodeState::kRemoved && node.address == name) found.push_back(host);
  if (found.empty())
    return fail(ErrorCode::kNotFound,
                "'{}' is no host id and no address of a node; `tetractl status` lists both", name);
  // A node that lost its disk has joined anew at the address of the dead one.
  if (found.size() > 1)
    return fail(ErrorCode::kConflict,
                "{} is the address of {} nodes; say the host id, which `tetractl status` lists",
                name, found.size());
  return found.front();
}

std::optional<HostId> node_to_replace(const MetaState& state, const IsLive& is_live,
                                      const std::function<uint64_t(HostId)>& ticks_away,
                                      uint64_t ticks_max) {
  size_t nodes = 0, down = 0;
  std::optional<HostId> longest;
  for (const auto& [host, node] : state.nodes) {
    if (node.state == NodeState::kLeaving) return std::nullopt;
    if (node.state != NodeState::kNormal) continue;
    ++nodes;
    if (is_live(host)) continue;
    ++down;
    if (ticks_away(host) >= ticks_max && (!longest || ticks_away(host) > ticks_away(*longest)))
      longest = host;
  }
  if (!longest || down * 3 >= nodes) return std::nullopt;
  const std::string& data_center = state.node(*longest)->data_center;
  const auto spare = std::count_if(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
    return entry.first != *longest && entry.second.state == NodeState::kNormal &&
           entry.second.data_center == data_center && is_live(entry.first);
  });
  // Sets that would only shrink are better off with a member that may come back.
  if (spare < partitioner::kReplicasPerDataCenter) return std::nullopt;
  if (!check_leaving(state, *longest, true, is_live)) return std::nullopt;
  return longest;
}

}  // namespace tetrad::replication
