// SPDX-License-Identifier: Apache-2.0
// Replicas miss writes and deletions, and no hint tells them. Nobody reads. After a while all
// members hold the same.
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kKeys = 30;

Task<void> write_row(SimNode* node, TableIncarnation incarnation, std::string key,
                     std::optional<std::string> value) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  mutations.push_back(row_change(incarnation, key, stamp_us, value, stamp_us / 1'000'000));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kOne;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  auto written = co_await coordinator.write(std::move(mutations), options);
  (void)written;
}

/// What each member holds of a row, as its own store answers.
std::vector<base::Hash128> digests_of(SimCluster& cluster, const replication::TableInfo& table,
                                      const std::string& key) {
  std::vector<base::Hash128> digests;
  for (const StoreAddress& member : table.tablets.find(partitioner::position_of(key)).replicas) {
    for (size_t n = 0; n < cluster.size(); ++n) {
      if (cluster[n].node().self() != member.host) continue;
      auto command = row_read(table.incarnation, key, 1);
      command.live_only = false;
      cluster[n].store(member.store).read(command, [&](Result<storage::ReadResult> read) {
        if (read) digests.push_back(storage::digest_of(*read));
      });
    }
  }
  return digests;
}

}  // namespace

ScenarioResult run_repair(uint64_t seed) {
  base::Random random(seed * 6007 + 11);
  SimCluster cluster(seed, 3 + seed % 3);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster[i].data_options.hints.bytes_per_replica_max = 0;
    cluster[i].data_options.repair.period_us = 20'000'000;
    cluster[i].data_options.repair.retry_us = 3'000'000;
    cluster[i].data_options.repair.page_bytes = 300;
  }
  ScenarioResult result;
  const auto run = [&]() -> std::string {
    if (!cluster.form(30'000'000)) return "the cluster does not form";
    bool created = false;
    cluster[0].spawn(create_the_table(&cluster[0], &created));
    if (!cluster.world().run_until([&] { return created; }, 10'000'000))
      return "the table is not made";
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    for (int step = 0; step < 150; ++step) {
      if (step % 10 == 3) cluster.isolate(random.below(cluster.size()));
      if (step % 10 == 8) cluster.network().mend_all();
      SimNode* node = ready_node(cluster, random.below(cluster.size()));
      const std::string key = "key" + std::to_string(random.below(kKeys));
      std::optional<std::string> value;
      if (!random.one_in(4)) value = std::to_string(step);
      node->spawn(write_row(node, incarnation, key, std::move(value)));
      cluster.world().run_for(static_cast<int64_t>(random.below(150'000)));
    }
    cluster.network().mend_all();
    cluster.world().run_for(60'000'000);
    const auto state = cluster[0].state();
    const replication::TableInfo& table = *state->table(incarnation);
    const int64_t now_us = cluster[0].reactor().wall_time_us();
    for (const auto& tablet : table.tablets.tablets())
      if (tablet.repaired_us < now_us - 45'000'000)
        return fmt::format("tablet {} was not repaired", tablet.id.value);
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto digests = digests_of(cluster, table, key);
      for (const auto& digest : digests)
        if (!(digest == digests.front())) return key + " differs between members after a repair";
    }
    return "";
  };
  result.wrong = run();
  result.trace = cluster.world().event_count() * 31 + cluster.network().delivered();
  return result;
}

}  // namespace tetrad::simulation
