// SPDX-License-Identifier: Apache-2.0
// The leader of the metadata group truncates a table and is cut off before the others know that
// the change is committed. If the client has been told that the table is empty, then a write that
// comes after lasts.
#include "replication/meta/raft_driver.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

Task<void> truncate_table(SimNode* node, bool* answered) {
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  change.truncated_tables.push_back(node->state()->tables.begin()->first);
  const base::Deadline deadline{node->reactor().now_us() + 10'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *answered = result.has_value();
}

/// A write that is given up after a second.
RowWrite short_write(std::string key) { return {.key = std::move(key), .within_us = 1'000'000}; }

replication::RaftIndex last_index(SimNode& node) {
  return node.node().meta_group().driver()->core().last_index();
}

}  // namespace

ScenarioResult run_truncate_and_cut(uint64_t seed) {
  base::Random random(seed * 15485863 + 5);
  SimCluster cluster(seed, 1 + seed % 4);
  for (size_t i = 0; i < cluster.size(); ++i) cluster[i].sync = storage::CommitLogSync::kGroup;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    cluster.world().run_for(5'000'000);
    bool answered = false;
    cluster[0].spawn(truncate_table(&cluster[0], &answered));
    if (!cluster.world().run_until([&] { return answered; }, 15'000'000))
      return "TRUNCATE gets no answer";
    for (size_t i = 0; i < cluster.size(); ++i) cluster[i].power_cut();
    cluster.start_all();
    int written = 0;
    for (int attempt = 0; attempt < 2'000 && written == 0; ++attempt) {
      SimNode* via = ready_node(cluster, random.below(cluster.size()));
      if (via != nullptr && !via->state()->tables.empty()) {
        const TableIncarnation there = via->state()->tables.begin()->second->incarnation;
        via->spawn(write_row(via, there, short_write("after"), &written));
      }
      cluster.world().run_for(10'000);
    }
    if (written == 0) return "no write succeeds after the power cut";
    cluster.world().run_for(15'000'000);
    RowSeen seen;
    const TableIncarnation now = cluster[0].state()->tables.begin()->second->incarnation;
    cluster[0].spawn(read_row(&cluster[0], now, "after", ConsistencyLevel::kQuorum, &seen));
    if (!cluster.world().run_until([&] { return seen.answered; }, 5'000'000))
      return "a read fails at the end";
    if (!seen.value) return "a write after TRUNCATE and a power cut is gone";
    return "";
  };
  return {run(), trace_of(cluster)};
}

ScenarioResult run_truncate(uint64_t seed) {
  base::Random random(seed * 31337 + 5);
  SimCluster cluster(seed, 4);
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    cluster.world().run_for(5'000'000);  // the tablet has its four members
    const auto leader = cluster.leader();
    if (!leader) return "";
    const TableIncarnation old = cluster[0].state()->tables.begin()->second->incarnation;
    int before = 0;
    cluster[0].spawn(write_row(&cluster[0], old, short_write("before"), &before));
    if (!cluster.world().run_until([&] { return before > 0; }, 2'000'000)) return "a write fails";

    // The others store the change; the leader hears of it, and nobody hears of the leader.
    const auto stored = [&] {
      size_t count = 0;
      for (size_t i = 0; i < cluster.size(); ++i)
        count += i != *leader && last_index(cluster[i]) == last_index(cluster[*leader]) ? 1 : 0;
      return count;
    };
    const auto begun = last_index(cluster[*leader]);
    bool answered = false;
    cluster[*leader].spawn(truncate_table(&cluster[*leader], &answered));
    const size_t wanted = 1 + random.below(2);
    if (!cluster.world().run_until(
            [&] { return last_index(cluster[*leader]) > begun && stored() >= wanted; }, 1'000'000))
      return "";
    for (size_t i = 0; i < cluster.size(); ++i)
      if (i != *leader) cluster.network().cut(cluster[*leader].endpoint(), cluster[i].endpoint());
    cluster.world().run_for(static_cast<int64_t>(random.below(20'000)));
    const bool told = answered;
    const size_t other = (*leader + 1) % cluster.size();
    const TableIncarnation seen_there = cluster[other].state()->tables.begin()->second->incarnation;
    int after = 0;
    cluster[other].spawn(write_row(&cluster[other], seen_there, short_write("after"), &after));
    cluster.world().run_for(1'000'000);
    const bool acknowledged = after > 0;
    cluster.network().mend_all();
    if (!cluster.world().run_until([&] { return answered; }, 15'000'000) && told)
      return "the answer is taken back";
    cluster.world().run_for(5'000'000);

    const TableIncarnation now = cluster[0].state()->tables.begin()->second->incarnation;
    RowSeen old_row, new_row;
    cluster[0].spawn(read_row(&cluster[0], now, "before", ConsistencyLevel::kQuorum, &old_row));
    cluster[other].spawn(
        read_row(&cluster[other], now, "after", ConsistencyLevel::kQuorum, &new_row));
    if (!cluster.world().run_until([&] { return old_row.answered && new_row.answered; }, 5'000'000))
      return "a read fails at the end";
    if (told && acknowledged && !new_row.value)
      return "a write that was acknowledged after TRUNCATE had answered is gone";
    if (answered && old_row.value) return "a row from before TRUNCATE is back";
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
