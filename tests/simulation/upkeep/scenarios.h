// SPDX-License-Identifier: Apache-2.0
// Scenarios of a simulated cluster's upkeep, and what they share. Each runs one seed and says what
// went wrong, or nothing.
#pragma once

#include <string>

#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

struct ScenarioResult {
  std::string wrong;   // "" when nothing is
  uint64_t trace = 0;  // equal for equal steps
};

/// Clocks seconds apart, writes one after another through any coordinator: the last one wins (rule
/// 28).
ScenarioResult run_sequence(uint64_t seed);

/// A node dies for good or is told to leave: its replicas are rebuilt on others.
ScenarioResult run_leaving(uint64_t seed);
/// One is told to leave while another one is dead for good (rule 30).
ScenarioResult run_leaving_beside_dead(uint64_t seed);

/// Nodes join and take their share; a dead one's replicas come back in their rack.
ScenarioResult run_balance(uint64_t seed);
ScenarioResult run_racks(uint64_t seed);

/// Data centres are cut off from each other, and join, under writes and reads of all levels (rule 1).
ScenarioResult run_centers(uint64_t seed);

/// Tablets get hot, and are split by it.
ScenarioResult run_heat(uint64_t seed);

/// Tablets are merged, by themselves and by order (rule 12).
ScenarioResult run_merge(uint64_t seed);

/// What is let in of a table's throughput, over splits, merges and deaths (rule 31).
ScenarioResult run_throughput(uint64_t seed);

/// The metadata group's leader changes while a dead node is taken out: no request fails of it.
ScenarioResult run_election(uint64_t seed);

/// What replicas missed comes to them by repair alone.
ScenarioResult run_repair(uint64_t seed);

/// And its machine loses power when the horizon has risen.
ScenarioResult run_repair_and_cut(uint64_t seed);

/// What mends a member comes after the row was deleted and purged (rule 18).
ScenarioResult run_stale(uint64_t seed);

/// TRUNCATE while the metadata leader is cut off: what is written after its answer lasts (rule 29).
ScenarioResult run_truncate(uint64_t seed);
/// And when all machines lose power after the answer.
ScenarioResult run_truncate_and_cut(uint64_t seed);

/// The members of a full tablet get what they missed (rule 13).
ScenarioResult run_limit(uint64_t seed);

/// Members that hold different rows, read with limits (rule 5).
ScenarioResult run_divergence(uint64_t seed);

/// Members are compared while they are written to.
ScenarioResult run_compared(uint64_t seed);

/// A tablet grows while failed writes come late to its first member (rules 3 and 9).
ScenarioResult run_late(uint64_t seed);

/// Members are asked for what they hold in the name of stages they may not have heard of (rule 10).
ScenarioResult run_source(uint64_t seed);

/// A node returns to tablets after a change of members that was given up (rule 11).
ScenarioResult run_return(uint64_t seed);

/// Nodes of two programs side by side, and the last step to the new one.
ScenarioResult run_formats(uint64_t seed);

/// Nodes killed while they form a cluster, wiped seeds, two clusters that meet, the address of
/// another.
ScenarioResult run_formation(uint64_t seed);

/// Hints over a slow log, refused ones, and such as come too late.
ScenarioResult run_hints(uint64_t seed);

/// The disk of the metadata leader's log hangs.
ScenarioResult run_hung(uint64_t seed);

/// The disk under one store of a node hangs, or rots.
ScenarioResult run_hung_store(uint64_t seed);
ScenarioResult run_rotten_store(uint64_t seed);

/// A store is stuck: every write ends at its deadline.
ScenarioResult run_stall(uint64_t seed);

/// A tablet grows while its first member is stuck or slow (rules 8 and 10).
ScenarioResult run_fence(uint64_t seed);

/// A range over both halves of a split tablet, one of which has moved (rule 8).
ScenarioResult run_cut(uint64_t seed);

/// Pages of few keys over members that have purged different rows (rule 5).
ScenarioResult run_ends(uint64_t seed);

/// Writes at ALL while members change.
ScenarioResult run_all_levels(uint64_t seed);

/// TRUNCATE by a node that does not know who the members are (rule 29).
ScenarioResult run_old_map(uint64_t seed);

/// The first member of a growing tablet does not hear of its stages (rule 8).
ScenarioResult run_deaf(uint64_t seed);

/// Wall clocks step, machines stand still: nothing is lost, undone or read backwards (rule 28).
ScenarioResult run_clocks(uint64_t seed);
/// A node that is off coordinates nothing; a life goes on where the last one was.
ScenarioResult run_clock_off(uint64_t seed);
/// Clients' timestamps of the future hide nothing in silence (rule 28).
ScenarioResult run_future(uint64_t seed);
/// A deletion dated an hour ago (rule 18).
ScenarioResult run_redate(uint64_t seed);
/// RocksDB compacts while a wall clock is hours ahead (rule 17).
ScenarioResult run_expiry(uint64_t seed);

/// Machines lose power: one, two of four, all (rule 20).
ScenarioResult run_power(uint64_t seed);
/// One loses power at the worst moments.
ScenarioResult run_power_stages(uint64_t seed);
/// Several lose power, or one that has just been filled.
ScenarioResult run_power_sets(uint64_t seed);
/// All nodes of a data centre lose power that has too few to ask each other.
ScenarioResult run_power_centers(uint64_t seed);
/// A disk loses what it had taken, and only what the node told others says so.
ScenarioResult run_power_words(uint64_t seed);

/// Forms the cluster and makes the one table of a scenario; says what went wrong, or nothing.
std::string form_with_table(SimCluster& cluster);
/// Equal for equal steps.
uint64_t trace_of(SimCluster& cluster);
/// A mutation of one row with one cell; a deletion without a value.
storage::Mutation row_change(TableIncarnation incarnation, const std::string& key,
                             int64_t timestamp_us, const std::optional<std::string>& value,
                             int64_t deletion_time_s);
storage::ReadCommand row_read(TableIncarnation incarnation, const std::string& key, int64_t now_s);

/// A row written, or deleted where it has no value, with the coordinator's next timestamp.
struct RowWrite {
  std::string key;
  std::optional<std::string> value = "value";
  ConsistencyLevel level = ConsistencyLevel::kQuorum;
  int64_t within_us = 2'000'000;
  bool is_restamped = false;  // where it would be hidden; else the timestamp is as a client's own
};
Task<Result<void>> try_write(SimNode* node, TableIncarnation incarnation, RowWrite write);
/// Adds one to `acknowledged` if the write succeeds.
Task<void> write_row(SimNode* node, TableIncarnation incarnation, RowWrite write,
                     int* acknowledged);
struct RowSeen {
  bool answered = false;
  std::optional<std::string> value;
};
/// Within two seconds, at the time of the node's clock.
Task<void> read_row(SimNode* node, TableIncarnation incarnation, std::string key,
                    ConsistencyLevel level, RowSeen* seen);

/// Marks a node as leaving, which begins its removal.
Task<void> order_leaving(SimNode* node, HostId host, bool* ordered);
/// Repairs and sweeps every second, so that what was deleted goes. Operations take up to two
/// seconds; clocks differ by less than half of one.
void purge_often(SimNode& node);

/// The value of the only live row of an answer; unset: none.
std::optional<std::string> value_of(const storage::ReadResult& result);
/// The first node at or after `from` that is ready; null: none.
SimNode* ready_node(SimCluster& cluster, size_t from);

}  // namespace tetrad::simulation
