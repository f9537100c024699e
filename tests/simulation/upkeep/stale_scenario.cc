// SPDX-License-Identifier: Apache-2.0
// A row that one member lacks is read, and what mends that member stays on its way for long.
// Meanwhile the row is deleted, all members are repaired, and the row goes with its tombstone. What
// comes to the member then must not bring the row back (rule 18).
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 4;
constexpr const char* kKey = "key";

/// Whether a member holds anything of the row, be it alive or not.
bool is_anywhere(SimCluster& cluster, TableIncarnation incarnation) {
  const auto state = cluster[0].state();
  bool found = false;
  const auto& tablet = state->table(incarnation)->tablets.find(partitioner::position_of(kKey));
  for (const StoreAddress& member : tablet.replicas) {
    for (size_t n = 0; n < cluster.size(); ++n) {
      if (cluster[n].node().self() != member.host) continue;
      auto command = row_read(incarnation, kKey, 1);
      command.live_only = false;
      cluster[n]
          .store(member.store)
          .read(command, base::kNoDeadline, [&](Result<storage::ReadResult> read) {
            found |= !read || !read->partitions.empty();
          });
    }
  }
  return found;
}

}  // namespace

ScenarioResult run_stale(uint64_t seed) {
  base::Random random(seed * 3571 + 3);
  SimCluster cluster(seed, kNodes);
  for (size_t i = 0; i < kNodes; ++i) {
    purge_often(cluster[i]);
    cluster[i].data_options.hints.bytes_per_replica_max = 0;
  }
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.world().run_for(5'000'000 + static_cast<int64_t>(random.below(500'000)));
    SimNetwork& network = cluster.network();
    const size_t lacking = 1 + random.below(kNodes - 1);
    int acknowledged = 0;
    cluster.isolate(lacking);
    cluster[0].spawn(write_row(&cluster[0], incarnation, {.key = kKey}, &acknowledged));
    cluster.world().run_until([&] { return acknowledged == 1; }, 2'000'000);
    network.mend_all();
    if (acknowledged != 1) return "a write fails while one of four is away";

    network.hold(replication::Verb::kMutateMerged, cluster[lacking].endpoint());
    RowSeen seen;
    cluster[0].spawn(read_row(&cluster[0], incarnation, kKey, ConsistencyLevel::kAll, &seen));
    cluster.world().run_for(1'000'000);
    network.hold_no_more();
    if (network.held() == 0) return "nobody mends the member that lacks the row";

    RowWrite deletion{.key = kKey, .level = ConsistencyLevel::kAll};
    deletion.value.reset();
    cluster[0].spawn(write_row(&cluster[0], incarnation, deletion, &acknowledged));
    cluster.world().run_for(1'000'000);
    if (acknowledged != 2) return "the deletion fails";
    if (!cluster.world().run_until([&] { return !is_anywhere(cluster, incarnation); }, 60'000'000))
      return "what was deleted is not purged";

    network.release_held();
    cluster.world().run_for(200'000 + static_cast<int64_t>(random.below(500'000)));
    seen = {};
    cluster[0].spawn(read_row(&cluster[0], incarnation, kKey, ConsistencyLevel::kAll, &seen));
    cluster.world().run_for(3'000'000);
    if (!seen.answered) return "a read fails";
    return seen.value ? "a deleted row is back" : "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
