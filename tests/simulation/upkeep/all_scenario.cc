// SPDX-License-Identifier: Apache-2.0
// A tablet gets a member whose disk takes no writes. What is acknowledged at ALL meanwhile is on
// all members of both sets.
#include <algorithm>

#include "partitioner/token.h"
#include "replication/tablets/tablet_move.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {

ScenarioResult run_all_levels(uint64_t seed) {
  base::Random random(seed * 6133 + 5);
  SimCluster cluster(seed, 1 + seed % 3);
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.world().run_for(3'000'000);
    while (cluster.size() < 4) cluster.add();
    SimNode& comer = cluster[cluster.size() - 1];
    comer.faults(0).refusal = Error(ErrorCode::kIo, "the disk is full");
    for (size_t i = 0; i < cluster.size(); ++i)
      if (!cluster[i].is_up()) cluster[i].start();
    const auto tablet_at = [&](SimNode& node) -> const partitioner::Tablet* {
      const auto* table = node.is_ready() ? node.state()->table(incarnation) : nullptr;
      return table == nullptr ? nullptr : &table->tablets.tablets().front();
    };
    const auto begun = [&] {
      const auto* tablet = tablet_at(cluster[0]);
      return tablet != nullptr && tablet->stage != partitioner::TabletStage::kNormal;
    };
    if (!cluster.world().run_until(begun, 30'000'000)) return "no change of members begins";
    int failed = 0;
    for (int n = 0; n < 60; ++n) {
      SimNode* via = ready_node(cluster, random.below(cluster.size()));
      const auto* tablet = tablet_at(*via);
      if (tablet == nullptr || tablet->stage == partitioner::TabletStage::kNormal) {
        cluster.world().run_for(10'000);
        continue;
      }
      // Whatever map it is sent by, it is not older than this one.
      const std::vector<StoreAddress> members = replication::all_members(*tablet);
      RowWrite write{.key = "key" + std::to_string(n), .level = ConsistencyLevel::kAll};
      const std::string key = write.key;
      write.within_us = 300'000;
      int acknowledged = 0;
      via->spawn(write_row(via, incarnation, std::move(write), &acknowledged));
      cluster.world().run_until([&] { return acknowledged > 0; }, 400'000);
      failed += acknowledged == 0 ? 1 : 0;
      if (acknowledged == 0) continue;
      for (const StoreAddress& member : members) {
        for (size_t i = 0; i < cluster.size(); ++i) {
          if (!cluster[i].is_up() || cluster[i].node().self() != member.host) continue;
          auto held = cluster[i].peek(member.store, row_read(incarnation, key, 1));
          if (!held || !value_of(*held))
            return fmt::format("{} was acknowledged at ALL and is not on node {}", key, i + 1);
        }
      }
    }
    return failed == 0 ? "no write met the full disk" : "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
