// SPDX-License-Identifier: Apache-2.0
// A member misses writes while it is away; then the tablet is marked as full, for good. What was
// acknowledged before comes to every member all the same (rule 13).
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kRowsMissed = 10;

Task<void> mark_full(SimNode* node, TableIncarnation incarnation) {
  const auto state = node->state();
  for (const auto& tablet : state->table(incarnation)->tablets.tablets()) {
    if (tablet.full) continue;
    const base::Deadline deadline{node->reactor().now_us() + 1'000'000};
    replication::MetaCommandBody body = replication::SetTabletFull{incarnation, tablet.id, true};
    auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
    (void)proposed;
  }
}

}  // namespace

ScenarioResult run_limit(uint64_t seed) {
  base::Random random(seed * 2903 + 17);
  SimCluster cluster(seed, 4);
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    cluster.world().run_for(5'000'000);
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;

    const size_t away = 1 + random.below(3);
    cluster.isolate(away);
    int acknowledged = 0;
    for (int i = 0; i < kRowsMissed; ++i)
      cluster[0].spawn(write_row(&cluster[0], incarnation,
                                 {.key = "missed" + std::to_string(i), .within_us = 3'000'000},
                                 &acknowledged));
    cluster.world().run_for(4'000'000);
    if (acknowledged != kRowsMissed) return "a write fails while one of four is away";

    // The size says otherwise, so the cluster would take the mark back.
    const auto keep_full = [&](int64_t for_us) {
      for (int64_t passed_us = 0; passed_us < for_us; passed_us += 100'000) {
        SimNode* node = ready_node(cluster, 0);
        if (node != nullptr) node->spawn(mark_full(node, incarnation));
        cluster.world().run_for(100'000);
      }
    };
    keep_full(3'000'000);
    cluster.network().mend_all();
    keep_full(20'000'000);

    const auto state = cluster[0].state();
    for (int i = 0; i < kRowsMissed; ++i) {
      const std::string key = "missed" + std::to_string(i);
      const auto& tablet = state->table(incarnation)->tablets.find(partitioner::position_of(key));
      for (const StoreAddress& member : tablet.replicas) {
        if (member.host != cluster[away].node().self()) continue;
        const auto held = cluster[away].peek(member.store, row_read(incarnation, key, 1));
        if (!held || !value_of(*held))
          return key + " has not come to the member that was away while the tablet is full";
      }
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
