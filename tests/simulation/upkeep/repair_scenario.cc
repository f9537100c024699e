// SPDX-License-Identifier: Apache-2.0
// Replicas miss writes and deletions, and no hint tells them. Nobody reads. After a while all
// members hold the same.
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kKeys = 30;

/// What each member holds of a row, as its own store answers.
std::vector<base::Hash128> digests_of(SimCluster& cluster, const replication::TableInfo& table,
                                      const std::string& key) {
  std::vector<base::Hash128> digests;
  for (const StoreAddress& member : table.tablets.find(partitioner::position_of(key)).replicas) {
    for (size_t n = 0; n < cluster.size(); ++n) {
      if (cluster[n].node().self() != member.host) continue;
      auto command = row_read(table.incarnation, key, 1);
      command.live_only = false;
      cluster[n]
          .store(member.store)
          .read(command, base::kNoDeadline, [&](Result<storage::ReadResult> read) {
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
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    int acknowledged = 0;
    for (int step = 0; step < 150; ++step) {
      if (step % 10 == 3) cluster.isolate(random.below(cluster.size()));
      if (step % 10 == 8) cluster.network().mend_all();
      SimNode* node = ready_node(cluster, random.below(cluster.size()));
      RowWrite write{.key = "key" + std::to_string(random.below(kKeys)),
                     .value = std::to_string(step),
                     .level = ConsistencyLevel::kOne};
      if (random.one_in(4)) write.value.reset();
      node->spawn(write_row(node, incarnation, std::move(write), &acknowledged));
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
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
