// SPDX-License-Identifier: Apache-2.0
// Clients that write the same rows one after another, each write through another coordinator whose
// clock is seconds ahead or behind, with the coordinators' own timestamps. A quorum read then sees
// the last acknowledged write, or one whose outcome its client does not know.
#include "tests/simulation/upkeep/sequence_clients.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kClients = 4;

void fault(SimCluster& cluster, base::Random& random) {
  const size_t victim = random.below(cluster.size());
  switch (random.below(30)) {
    case 0:
      for (size_t i = 0; i < cluster.size(); ++i)
        if (!cluster[i].is_up()) return;
      cluster[victim].kill();
      break;
    case 1:
    case 2:
      for (size_t i = 0; i < cluster.size(); ++i)
        if (!cluster[i].is_up()) cluster[i].start();
      break;
    case 3:
      cluster.network().options.slow_one_in = static_cast<uint32_t>(2 + random.below(20));
      break;
    case 4:
      cluster.network().options.slow_one_in = 0;
      break;
    case 5:
      cluster.isolate(victim);
      break;
    case 6:
    case 7:
      cluster.network().mend_all();
      break;
    default:
      break;
  }
}

}  // namespace

ScenarioResult run_sequence(uint64_t seed) {
  base::Random random(seed * 104729 + 3);
  SimCluster cluster(seed, 2 + seed % 4);
  for (size_t i = 0; i < cluster.size(); ++i) cluster[i].clock_skew_max_us = 2'000'000;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    SequenceClients clients(cluster, incarnation, kClients);
    for (int step = 0; step < 400; ++step) {
      fault(cluster, random);
      if (const auto wrong = clients.step(random); !wrong.empty()) return wrong;
      cluster.world().run_for(static_cast<int64_t>(random.below(20'000)));
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
