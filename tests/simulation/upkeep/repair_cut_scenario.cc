// SPDX-License-Identifier: Apache-2.0
// A repair brings an old deletion to a member that missed it, and the machine of that member loses
// power as soon as the horizon has risen. The others purge the deletion: the row stays deleted
// (rule 18).
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 4;
constexpr const char* kKey = "key";

}  // namespace

ScenarioResult run_repair_and_cut(uint64_t seed) {
  base::Random random(seed * 4157 + 5);
  SimCluster cluster(seed, kNodes);
  for (size_t i = 0; i < kNodes; ++i) {
    purge_often(cluster[i]);
    cluster[i].data_options.hints.bytes_per_replica_max = 0;
    cluster[i].data_options.recent_fetch.write_us = 2'200'000;
    cluster[i].data_options.recent_fetch.longest_us = 2'200'000;
  }
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.world().run_for(5'000'000);
    const size_t without = 1 + random.below(kNodes - 1);
    SimNode& victim = cluster[without];
    int written = 0;
    cluster[0].spawn(write_row(&cluster[0], incarnation,
                               {.key = kKey, .level = ConsistencyLevel::kAll}, &written));
    if (!cluster.world().run_until([&] { return written == 1; }, 3'000'000)) return "a write fails";
    cluster.world().run_for(1'000'000);  // it is on all disks

    cluster.isolate(without);
    cluster[0].spawn(
        write_row(&cluster[0], incarnation, {.key = kKey, .value = std::nullopt}, &written));
    if (!cluster.world().run_until([&] { return written == 2; }, 3'000'000))
      return "a deletion fails while one of four is away";
    const int64_t deleted_us = cluster[0].reactor().wall_time_us();
    cluster.world().run_for(8'000'000);  // nothing is repaired meanwhile
    cluster.network().mend_all();
    const auto repaired = [&] {
      const auto state = cluster[0].state();
      for (const auto& tablet : state->table(incarnation)->tablets.tablets())
        if (tablet.repaired_us < deleted_us + 6'000'000) return false;
      return true;
    };
    if (!cluster.world().run_until(repaired, 30'000'000)) return "nothing is repaired";
    victim.power_cut();
    cluster.world().run_for(static_cast<int64_t>(random.below(2'000'000)));
    victim.start();
    // What it lost is not among what the others were written lately.
    const auto is_back = [&] { return victim.is_ready() && !victim.is_behind(); };
    if (!cluster.world().run_until(is_back, 20'000'000)) return "a node does not come back";
    for (int round = 0; round < 20; ++round) {
      cluster.world().run_for(static_cast<int64_t>(random.below(400'000)));
      SimNode& reader = round % 2 == 0 ? victim : cluster[random.below(kNodes)];
      RowSeen seen;
      reader.spawn(read_row(&reader, incarnation, kKey, ConsistencyLevel::kQuorum, &seen));
      cluster.world().run_until([&] { return seen.answered; }, 3'000'000);
      if (seen.value) return "a deleted row is back";
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
