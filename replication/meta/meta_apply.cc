// SPDX-License-Identifier: Apache-2.0
// What metadata commands do. Everything here is deterministic: numbers, tokens and places are
//
// Each command is tested against the state and then applied whole, or refused and changes nothing
// but the list of outcomes. All nodes apply the same commands in the same order and must come to
// the same state, so nothing here reads a clock, a random number or the order of a hash map; what
// has to be random comes in the command.
// chosen from the state and the command alone.
#include <algorithm>
#include <set>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "partitioner/placement.h"
#include "replication/meta/lost_nodes.h"
#include "replication/meta/meta_command.h"
#include "replication/meta/placed_in.h"

namespace tetrad::replication {

namespace {

using partitioner::Tablet;
using partitioner::TabletMap;
using partitioner::TabletStage;

// Outcomes of the last commands by id, so that one that is proposed again is answered instead of
// applied twice. It must hold those of all proposals that may still be repeated.
constexpr size_t kOutcomesKept = 512;

using Set = std::vector<StoreAddress>;

// Of those that may get replicas: neither leaving nor removed.
std::vector<partitioner::RingNode> ring_nodes(const MetaState& state) {
  std::vector<partitioner::RingNode> nodes;
  for (const auto& [host, node] : state.nodes) {
    if (node.state != NodeState::kNormal) continue;
    nodes.push_back({host, node.data_center, node.rack, node.tokens, node.store_count});
  }
  return nodes;
}

Result<void> apply(MetaState& state, const BootstrapCluster& body, MetaIndex index) {
  // The first command of a cluster; a second founder's is refused.
  if (!state.cluster_id.is_nil())
    return fail(ErrorCode::kConflict, "the cluster exists already as {}",
                state.cluster_id.to_string());
  state.cluster_id = body.cluster_id;
  state.cluster_name = body.cluster_name;
  state.secret = body.secret;
  state.schema_version = SchemaVersion{index.value};
  NodeInfo node = body.node;
  node.state = NodeState::kNormal;
  // By a seed in the command: the same tokens on every node.
  node.tokens = partitioner::choose_tokens({}, partitioner::kTokensPerNode, body.token_seed);
  state.nodes[node.host] = std::move(node);
  state.look_at_nodes();
  return {};
}

Result<void> check_data_centers(const MetaState& state, const NodeInfo& added) {
  std::set<std::string_view> known{added.data_center};
  for (const auto& [host, node] : state.nodes)
    if (node.state != NodeState::kRemoved) known.insert(node.data_center);
  if (known.size() <= kDataCentersMax) return {};
  return fail(ErrorCode::kConfig, "a cluster has at most {} data centers; '{}' would be one more",
              kDataCentersMax, added.data_center);
}

Result<void> apply(MetaState& state, const PutNode& body, MetaIndex) {
  NodeInfo node = body.node;
  // A program that cannot read what the others write must not join (cluster_format.h).
  if (node.format < state.format) {
    return fail(ErrorCode::kConfig,
                "the program of host {} is too old for this cluster: it reads format {}, all "
                "nodes write format {}; start a later one",
                node.host.to_string(), node.format, state.format);
  }
  const auto known = state.nodes.find(node.host);
  if (known == state.nodes.end()) {
    TETRAD_TRY_VOID(check_data_centers(state, node));
    std::vector<partitioner::RingNode> others;
    for (const auto& [host, other] : state.nodes)
      // Removed nodes count, too.
      others.push_back({host, other.data_center, other.rack, other.tokens, other.store_count});
    node.tokens = partitioner::choose_tokens(others, partitioner::kTokensPerNode, body.token_seed);
    node.state = NodeState::kNormal;
  } else {
    if (known->second.state == NodeState::kRemoved)
      // A removed host id never returns: its stores may lack what was written since.
      return fail(ErrorCode::kConfig,
                  "host {} was removed from the cluster; wipe its data to join as a new node",
                  node.host.to_string());
    if (known->second.data_center != node.data_center)
      return fail(ErrorCode::kConfig,
                  "datacenter: host {} belongs to '{}' and stays there, not '{}'",
                  node.host.to_string(), known->second.data_center, node.data_center);
    // It comes back after a restart: tokens, state and number of stores stay, the rest is as it
    // says now.
    node.tokens = known->second.tokens;
    node.state = known->second.state;
    node.store_count = known->second.store_count;
  }
  state.nodes[node.host] = std::move(node);
  state.look_at_nodes();
  return {};
}

/// Whether a replica set names the host, also one of a change under way.
bool is_named(const MetaState& state, HostId host) {
  const auto names = [&](const std::vector<StoreAddress>& set) {
    return std::any_of(set.begin(), set.end(), [&](const auto& r) { return r.host == host; });
  };
  for (const auto& [id, table] : state.tables)
    for (const Tablet& tablet : table->tablets.tablets())
      if (names(tablet.replicas) || names(tablet.new_replicas)) return true;
  return false;
}

Result<void> apply(MetaState& state, const SetNodeState& body, MetaIndex) {
  const auto known = state.nodes.find(body.host);
  if (known == state.nodes.end())
    return fail(ErrorCode::kNotFound, "no host {}", body.host.to_string());
  NodeState& now = known->second.state;
  if (now == body.state) return {};
  if (now == NodeState::kRemoved)
    return fail(ErrorCode::kConflict, "host {} was removed", body.host.to_string());
  for (const auto& [host, node] : state.nodes) {
    if (body.state == NodeState::kLeaving && node.state == NodeState::kLeaving)
      return fail(ErrorCode::kConflict, "host {} is leaving; one node leaves at a time",
                  host.to_string());
  }
  // Only when its last replica has moved.
  if (body.state == NodeState::kRemoved && is_named(state, body.host))
    return fail(ErrorCode::kConflict, "host {} still has replicas", body.host.to_string());
  now = body.state;
  state.look_at_nodes();
  return {};
}

/// With the members that are not lost, in the stage in which all of it is read from all of them. What
/// is still being filled counts only where there is nobody else.
Set survivors_of(const Tablet& tablet, const std::set<HostId>& lost) {
  const auto staying = [&](Set set) {
    std::erase_if(set, [&](const StoreAddress& member) { return lost.contains(member.host); });
    return set;
  };
  Set left = staying(tablet.replicas);
  const bool is_filled =
      tablet.stage == TabletStage::kReadNew || tablet.stage == TabletStage::kWriteNew;
  if (!is_filled && !left.empty()) return left;
  for (const StoreAddress& member : staying(tablet.new_replicas))
    if (std::ranges::find(left, member) == left.end()) left.push_back(member);
  return left;
}

/// New members of a tablet that has lost all of its own.
Result<Set> members_anew(const MetaState& state, const TableInfo& table, const Tablet& tablet) {
  const partitioner::Ring ring(nodes_for(placed_in(state, table.keyspace), ring_nodes(state)));
  Tablet none = tablet;
  none.replicas.clear();
  Set chosen = partitioner::desired_replicas(ring, none, partitioner::kReplicasPerDataCenter, {},
                                             state.load);
  if (chosen.empty())
    return fail(ErrorCode::kConflict,
                "keyspace {} would have no node: drop it, or ALTER it to other data centers, first",
                table.keyspace);
  return chosen;
}

Result<void> remove_members(MetaState& state, const TableInfo& before,
                            const std::set<HostId>& lost) {
  auto table = std::make_shared<TableInfo>(before);
  bool is_changed = false;
  for (const Tablet& known : before.tablets.tablets()) {
    const auto is_lost = [&](const StoreAddress& member) { return lost.contains(member.host); };
    if (std::ranges::none_of(known.replicas, is_lost) &&
        std::ranges::none_of(known.new_replicas, is_lost))
      continue;
    Tablet tablet = known;
    tablet.replicas = survivors_of(known, lost);
    if (tablet.replicas.empty()) {
      TETRAD_TRY(tablet.replicas, members_anew(state, before, known));
    }
    tablet.new_replicas = tablet.replicas;
    tablet.stage = TabletStage::kReadNew;
    tablet.epoch = SetEpoch{known.epoch.value + 1};
    TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(tablet)));
    is_changed = true;
  }
  if (is_changed) state.put_table(std::move(table));
  return {};
}

Result<void> apply(MetaState& state, const RemoveLostNodes& body, MetaIndex) {
  const std::set<HostId> lost(body.hosts.begin(), body.hosts.end());
  for (const HostId& host : lost) {
    const auto known = state.nodes.find(host);
    if (known == state.nodes.end())
      return fail(ErrorCode::kNotFound, "no host {}", host.to_string());
    if (known->second.state == NodeState::kRemoved)
      return fail(ErrorCode::kConflict, "host {} was removed", host.to_string());
    known->second.state = NodeState::kRemoved;
  }
  if (lost.empty() || ring_nodes(state).empty())
    return fail(ErrorCode::kConflict, "no node would stay");
  TETRAD_TRY_VOID(check_readers(state, body.hosts));
  state.look_at_nodes();
  std::vector<std::shared_ptr<const TableInfo>> tables;
  for (const auto& [id, table] : state.tables) tables.push_back(table);
  for (const auto& table : tables) TETRAD_TRY_VOID(remove_members(state, *table, lost));
  return {};
}

// Numbers only rise and are never given again: a store tells an old table from a new one by them
// (rules 22 and 29).
/// To a table without rows: its change log's is the lower one.
void give_incarnations(MetaState& state, TableInfo& table, bool change_log) {
  table.change_log.reset();
  if (change_log) table.change_log = TableIncarnation{state.next_incarnation++};
  table.incarnation = TableIncarnation{state.next_incarnation++};
  TETRAD_ASSERT(table.incarnation.value < state.next_incarnation);
  TETRAD_ASSERT(!state.by_incarnation.contains(table.incarnation));
}

void retire_change_log(MetaState& state, const TableInfo& table) {
  if (table.change_log) state.retired.push_back(*table.change_log);
}

Result<void> add_table(MetaState& state, const SchemaChange::NewTable& wanted,
                       const partitioner::Ring& ring) {
  if (state.tables.contains(wanted.id))
    return fail(ErrorCode::kConflict, "table id {} exists", wanted.id.to_string());
  partitioner::PlacementOptions options;
  options.tablets = wanted.initial_tablets;
  options.first_tablet_id = state.next_tablet_id;
  // What stores hold already; new tablets go where there are fewest.
  partitioner::StoreLoad load = state.load;
  TETRAD_TRY(std::vector<Tablet> tablets, partitioner::place_table(ring, options, load));
  state.next_tablet_id += tablets.size();
  auto table = std::make_shared<TableInfo>();
  table->id = wanted.id;
  table->keyspace = wanted.keyspace;
  table->name = wanted.name;
  table->max_partition_mb = wanted.max_partition_mb;
  table->throughput = wanted.throughput;
  give_incarnations(state, *table, wanted.change_log);
  table->tablets = TabletMap(std::move(tablets));
  state.put_table(std::move(table));
  return {};
}

/// The same ranges and members under new numbers, so that nothing of the old table matches.
Result<void> truncate_table(MetaState& state, TableId id) {
  const auto found = state.tables.find(id);
  if (found == state.tables.end())
    return fail(ErrorCode::kConflict, "no table {} to truncate", id.to_string());
  auto table = std::make_shared<TableInfo>(*found->second);
  state.retired.push_back(table->incarnation);
  retire_change_log(state, *table);
  give_incarnations(state, *table, table->change_log.has_value());
  // Who still writes under the old number is refused by every store that knows the new one.
  TETRAD_ASSERT(table->incarnation.value > found->second->incarnation.value);
  // The bounces, the horizon and the size mark belonged to rows that are gone. Epochs begin anew,
  // since the incarnation already tells the old writes apart.
  std::vector<Tablet> tablets = table->tablets.tablets();
  for (Tablet& tablet : tablets) {
    tablet.id = TabletId{state.next_tablet_id++};
    tablet.stage = TabletStage::kNormal;
    tablet.new_replicas.clear();
    tablet.epoch = SetEpoch{1};
    tablet.full = tablet.is_merged = false;
    tablet.bounces = 0;
    tablet.repaired_us = 0;
  }
  table->tablets = TabletMap(std::move(tablets));
  state.put_table(std::move(table));
  return {};
}

Result<void> apply(MetaState& state, const SchemaChange& body, MetaIndex index) {
  // Two statements that were made from the same schema: the second must be made again.
  if (state.schema_version != body.expected)
    return fail(ErrorCode::kConflict, "the schema is at version {}, not {}",
                state.schema_version.value, body.expected.value);
  for (const TableId& id : body.dropped_tables) {
    const auto found = state.tables.find(id);
    if (found == state.tables.end())
      return fail(ErrorCode::kConflict, "no table {} to drop", id.to_string());
    state.retired.push_back(found->second->incarnation);
    retire_change_log(state, *found->second);
    state.erase_table(id);
  }
  for (const TableId& id : body.truncated_tables) TETRAD_TRY_VOID(truncate_table(state, id));
  for (const SchemaChange::AlteredTable& altered : body.altered_tables) {
    const auto found = state.tables.find(altered.id);
    if (found == state.tables.end())
      return fail(ErrorCode::kConflict, "no table {} to alter", altered.id.to_string());
    auto table = std::make_shared<TableInfo>(*found->second);
    table->keyspace = altered.keyspace;
    table->name = altered.name;
    table->max_partition_mb = altered.max_partition_mb;
    table->throughput = altered.throughput;
    // A log that is turned off and on again has another incarnation: its old entries are never
    // read.
    if (!altered.change_log) {
      retire_change_log(state, *table);
      table->change_log.reset();
    } else if (!table->change_log) {
      table->change_log = TableIncarnation{state.next_incarnation++};
    }
    state.put_table(std::move(table));
  }
  if (!body.new_tables.empty()) {
    for (const SchemaChange::NewTable& wanted : body.new_tables) {
      const partitioner::Ring ring(nodes_for(placed_in(state, wanted.keyspace), ring_nodes(state)));
      if (ring.nodes().empty())
        return fail(ErrorCode::kInvalid, "no node is in a data center of keyspace {}",
                    wanted.keyspace);
      TETRAD_TRY_VOID(add_table(state, wanted, ring));
    }
  }
  // Text by name; this room does not read it.
  for (const auto& [name, text] : body.objects) {
    if (text)
      state.schema_objects.put(name, *text);
    else
      state.schema_objects.erase(name);
  }
  state.schema_version = SchemaVersion{index.value};
  return {};
}

Result<std::shared_ptr<TableInfo>> table_to_change(const MetaState& state,
                                                   TableIncarnation incarnation) {
  const auto found = state.by_incarnation.find(incarnation);
  if (found == state.by_incarnation.end())
    return fail(ErrorCode::kNotFound, "no table incarnation {}", incarnation.value);
  return std::make_shared<TableInfo>(*found->second);
}

Result<Tablet> tablet_of(const TableInfo& table, TabletId id) {
  for (const Tablet& tablet : table.tablets.tablets())
    if (tablet.id == id) return tablet;
  return fail(ErrorCode::kNotFound, "no physical partition {}", id.value);
}

// Keeps members and epoch, so writes under way go on (rule 12).
Result<void> apply(MetaState& state, const SplitTablet& body, MetaIndex) {
  TETRAD_TRY(const auto table, table_to_change(state, body.incarnation));
  TETRAD_TRY(const Tablet tablet, tablet_of(*table, body.tablet));
  // The cut was chosen for this very range; while members change a tablet is not split.
  if (tablet.range != body.range || tablet.stage != TabletStage::kNormal)
    return fail(ErrorCode::kConflict, "physical partition {} has changed", body.tablet.value);
  if (body.tablets_max != 0 && table->tablets.tablets().size() >= body.tablets_max)
    return fail(ErrorCode::kConflict, "there are {} physical partitions already",
                table->tablets.tablets().size());
  if (table->tablets.tablets().size() >= partitioner::kTabletsPerTableMax)
    return fail(ErrorCode::kLimit, "{} physical partitions in one table are the most",
                partitioner::kTabletsPerTableMax);
  if (tablet.is_merged && body.tablets_max == 0 && !TETRAD_MUTANT(merge_bounces)) {
    Tablet undone = tablet;  // not by the operator's wish for more throughput
    undone.bounces = std::min<uint8_t>(tablet.bounces + 1, partitioner::kBouncesMost);
    TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(undone)));
  }
  TETRAD_TRY(table->tablets,
             table->tablets.with_split(body.tablet, body.at, TabletId{state.next_tablet_id}));
  ++state.next_tablet_id;
  TETRAD_ASSERT(table->tablets.tablets().size() <= partitioner::kTabletsPerTableMax);
  state.put_table(table);
  return {};
}

bool same_members(const Tablet& a, const Tablet& b) {
  return a.replicas.size() == b.replicas.size() &&
         std::ranges::is_permutation(a.replicas, b.replicas);
}

/// What must be true of both halves besides what the map looks at.
Result<void> check_halves(const Tablet& left, const Tablet& right) {
  if (!same_members(left, right) && !TETRAD_MUTANT(merge_unequal_sets))
    return fail(ErrorCode::kConflict, "physical partitions {} and {} have different members",
                left.id.value, right.id.value);
  if (left.repaired_us != right.repaired_us && !TETRAD_MUTANT(merge_lower_horizon) &&
      !TETRAD_MUTANT(merge_higher_horizon))
    return fail(ErrorCode::kConflict, "physical partitions {} and {} were not repaired together",
                left.id.value, right.id.value);
  return {};
}

Result<void> apply(MetaState& state, const MergeTablets& body, MetaIndex) {
  // A member with an older program would not know how to merge.
  if (state.format < kFormatMerges)
    return fail(ErrorCode::kConflict, "not all nodes have a program that merges tablets");
  TETRAD_TRY(const auto table, table_to_change(state, body.incarnation));
  const Tablet left = table->tablets.find(body.cut);
  const Tablet right = table->tablets.find(body.range.end);
  // Everything that the proposer looked at must still be so: ids, epochs and ranges of both halves
  // (rule 12).
  if (left.id != body.left || left.epoch != body.left_epoch ||
      left.range != RingRange{body.range.start, body.cut} || right.id != body.right ||
      right.epoch != body.right_epoch || right.range != RingRange{body.cut, body.range.end})
    return fail(ErrorCode::kConflict, "physical partition {} or {} has changed", body.left.value,
                body.right.value);
  TETRAD_TRY_VOID(check_halves(left, right));
  // A table keeps as many as it began with or as its throughput needs.
  if (table->tablets.tablets().size() <= std::max<size_t>(body.tablets_min, 1))
    return fail(ErrorCode::kConflict, "the table keeps {} physical partitions", body.tablets_min);
  const TabletId id{state.next_tablet_id};
  TETRAD_TRY(table->tablets, table->tablets.with_merge(left.id, right.id, id));
  // with_merge() has given it an epoch above both halves' and equal members; here only the count of
  // bounces is bounded.
  Tablet merged = table->tablets.find(body.cut);
  merged.bounces = std::min(merged.bounces, body.bounces_most);
  if (TETRAD_MUTANT(merge_epoch_of_left)) merged.epoch = left.epoch;
  if (TETRAD_MUTANT(merge_lower_horizon))
    merged.repaired_us = std::min(left.repaired_us, right.repaired_us);
  if (TETRAD_MUTANT(merge_higher_horizon))
    merged.repaired_us = std::max(left.repaired_us, right.repaired_us);
  TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(merged)));
  ++state.next_tablet_id;
  state.put_table(table);
  return {};
}

// One step forward at a time, or back to the start from a stage in which the new set was never read
// (rule 9).
Result<void> enter_stage(Tablet& tablet, const ChangeTabletStage& body) {
  const auto from = static_cast<int>(tablet.stage);
  const auto to = static_cast<int>(body.next);
  // From kReadNew on the new set is read: there is no way back.
  if (body.give_up) {
    if (body.next != TabletStage::kNormal ||
        (tablet.stage != TabletStage::kWriteBoth && tablet.stage != TabletStage::kStream))
      return fail(ErrorCode::kInvalid, "a change of members in stage {} cannot be given up", from);
    tablet.new_replicas.clear();
  } else if (body.next == TabletStage::kWriteBoth) {
    if (tablet.stage != TabletStage::kNormal || body.new_replicas.empty())
      return fail(ErrorCode::kInvalid, "no change of members can begin in stage {}", from);
    tablet.new_replicas = body.new_replicas;
  } else if (body.next == TabletStage::kNormal) {
    if (tablet.stage != TabletStage::kWriteNew)
      return fail(ErrorCode::kInvalid, "a change of members cannot end in stage {}", from);
    tablet.replicas = std::move(tablet.new_replicas);
    tablet.new_replicas.clear();
  } else if ((to != from + 1 || tablet.stage == TabletStage::kNormal) &&
             !TETRAD_MUTANT(stage_skipped)) {
    return fail(ErrorCode::kInvalid, "stage {} does not follow stage {}", to, from);
  }
  TETRAD_ASSERT((body.next == TabletStage::kNormal) == tablet.new_replicas.empty());
  tablet.stage = body.next;
  // Whatever changes, the epoch rises (rule 8).
  tablet.epoch = SetEpoch{tablet.epoch.value + 1};
  return {};
}

Result<void> apply(MetaState& state, const ChangeTabletStage& body, MetaIndex) {
  TETRAD_TRY(const auto table, table_to_change(state, body.incarnation));
  TETRAD_TRY(Tablet tablet, tablet_of(*table, body.tablet));
  // Made for another stage or other members: refused, the leader looks again.
  if (tablet.epoch != body.expected)
    return fail(ErrorCode::kConflict, "physical partition {} is at epoch {}, not {}",
                body.tablet.value, tablet.epoch.value, body.expected.value);
  for (const StoreAddress& member : body.new_replicas) {
    // A host that was removed meanwhile has no stores any more.
    const NodeInfo* node = state.node(member.host);
    if (node != nullptr && node->state == NodeState::kRemoved)
      return fail(ErrorCode::kConflict, "host {} was removed", member.host.to_string());
  }
  TETRAD_TRY_VOID(enter_stage(tablet, body));
  const uint64_t layout_before = table->tablets.layout();
  TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(tablet)));
  // Change feeds see that the layout has moved.
  TETRAD_ASSERT(table->tablets.layout() == layout_before + 1);
  state.put_table(table);
  return {};
}

Result<void> apply(MetaState& state, const SetTabletFull& body, MetaIndex) {
  TETRAD_TRY(const auto table, table_to_change(state, body.incarnation));
  TETRAD_TRY(Tablet tablet, tablet_of(*table, body.tablet));
  tablet.full = body.full;
  TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(tablet)));
  state.put_table(table);
  return {};
}

Result<void> apply(MetaState& state, const SetTabletRepaired& body, MetaIndex) {
  TETRAD_TRY(const auto table, table_to_change(state, body.incarnation));
  TETRAD_TRY(Tablet tablet, tablet_of(*table, body.tablet));
  // A repair of another range or other members says nothing about this one (rules 12 and 18).
  if (tablet.epoch != body.epoch || tablet.range != body.range ||
      tablet.stage != TabletStage::kNormal)
    return fail(ErrorCode::kConflict, "physical partition {} has changed", body.tablet.value);
  // The horizon never falls.
  tablet.repaired_us = std::max(tablet.repaired_us, body.repaired_us);
  TETRAD_TRY(table->tablets, table->tablets.with_tablet(std::move(tablet)));
  state.put_table(table);
  return {};
}

Result<void> apply(MetaState& state, const SetSetting& body, MetaIndex) {
  if (body.value)
    state.settings[body.name] = *body.value;
  else
    state.settings.erase(body.name);
  return {};
}

// By now every node has erased them, so nobody has to know that they are gone.
Result<void> apply(MetaState& state, const ForgetRetired& body, MetaIndex) {
  std::erase_if(state.retired, [&](TableIncarnation incarnation) {
    return std::find(body.incarnations.begin(), body.incarnations.end(), incarnation) !=
           body.incarnations.end();
  });
  return {};
}

// An outcome is kept as text: it is the proposer's answer when the first one was lost.
void remember(MetaState& state, const Uuid& command_id, MetaIndex index,
              const Result<void>& outcome) {
  MetaState::Outcome entry;
  entry.command_id = command_id;
  entry.index = index;
  if (!outcome) {
    entry.failed = true;
    entry.code = outcome.error().code;
    entry.message = outcome.error().message;
  }
  if (state.recent_outcomes.size() >= kOutcomesKept)
    state.recent_outcomes.erase(state.recent_outcomes.begin());
  TETRAD_ASSERT(state.recent_outcomes.size() < kOutcomesKept);
  state.recent_outcomes.push_back(std::move(entry));
}

Result<void> outcome_of(const MetaState::Outcome& entry) {
  if (!entry.failed) return {};
  return fail_text(entry.code, entry.message);
}

}  // namespace

Result<void> check_readers(const MetaState& state, const std::vector<HostId>& lost) {
  for (const auto& [host, node] : state.nodes) {
    if (node.state == NodeState::kRemoved || node.format >= kFormatLostNodes) continue;
    if (std::ranges::find(lost, host) == lost.end())
      return fail(ErrorCode::kConflict,
                  "node {} has a program that does not know of lost nodes: start the newest one on "
                  "all nodes that stay",
                  node.address);
  }
  return {};
}

MetaApplied apply_meta_command(const MetaSnapshot& before, MetaIndex index,
                               const MetaCommand& command) {
  TETRAD_ASSERT(before && before->applied < index);
  // The same id again: nothing is applied, the outcome is the one of then.
  for (const MetaState::Outcome& entry : before->recent_outcomes)
    if (entry.command_id == command.id) return {before, outcome_of(entry)};
  const bool is_bootstrap = std::holds_alternative<BootstrapCluster>(command.body);
  auto changed = std::make_shared<MetaState>(*before);
  Result<void> outcome;
  if (before->cluster_id.is_nil() && !is_bootstrap) {
    outcome = fail(ErrorCode::kBootstrapping, "the cluster has not been formed");
  } else {
    outcome =
        std::visit([&](const auto& body) { return apply(*changed, body, index); }, command.body);
  }
  // A refused command may have changed the copy half-way.
  if (!outcome) changed = std::make_shared<MetaState>(*before);
  // Numbers are given once and formats never fall, or what was written could be taken for another.
  TETRAD_ASSERT(changed->next_incarnation >= before->next_incarnation);
  TETRAD_ASSERT(changed->next_tablet_id >= before->next_tablet_id);
  TETRAD_ASSERT(changed->schema_version.value >= before->schema_version.value);
  TETRAD_ASSERT(changed->format >= before->format);
  TETRAD_ASSERT(changed->limited_tables <= changed->tables.size());
  changed->applied = index;
  remember(*changed, command.id, index, outcome);
  return {std::move(changed), std::move(outcome)};
}

}  // namespace tetrad::replication
