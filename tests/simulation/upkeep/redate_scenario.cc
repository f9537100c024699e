// SPDX-License-Identifier: Apache-2.0
// A deletion that its coordinator dates an hour ago, as one whose clock is behind would, misses one
// member. It is not long dead at once: nothing purges it before that member has it (rule 18).
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 4;
constexpr const char* kKey = "key";
constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;

/// With a client's timestamp. Without a value it deletes; that is dated so long ago.
Task<void> write_dated(SimNode* node, TableIncarnation incarnation, int64_t timestamp_us,
                       std::optional<std::string> value, int64_t ago_us, bool* done) {
  auto& coordinator = node->data().coordinator();
  replication::WriteOptions options;
  options.level = value ? ConsistencyLevel::kAll : ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.dated_us = coordinator.now_us() - ago_us;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(
      row_change(incarnation, kKey, timestamp_us, value, *options.dated_us / 1'000'000));
  auto written = co_await coordinator.write(std::move(mutations), options);
  *done = written.has_value();
}

}  // namespace

ScenarioResult run_redate(uint64_t seed) {
  base::Random random(seed * 5273 + 9);
  SimCluster cluster(seed, kNodes);
  for (size_t i = 0; i < kNodes; ++i) {
    purge_often(cluster[i]);
    cluster[i].options().clock_skew_max_us = 400'000;
    cluster[i].clock_skew_max_us = 0;
    cluster[i].clock().set_offset_us(static_cast<int64_t>(random.below(80'000)) - 40'000);
    cluster[i].data_options.hints.bytes_per_replica_max = 0;
  }
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.world().run_for(5'000'000);
    bool written = false;
    cluster[0].spawn(write_dated(&cluster[0], incarnation, 1, "value", 0, &written));
    if (!cluster.world().run_until([&] { return written; }, 3'000'000)) return "a write fails";
    cluster.world().run_for(2'000'000 + static_cast<int64_t>(random.below(2'000'000)));

    const size_t without = random.below(kNodes);
    SimNode& via = cluster[(without + 1) % kNodes];
    cluster.isolate(without);
    bool deleted = false;
    via.spawn(write_dated(&via, incarnation, 2, std::nullopt, kHourUs, &deleted));
    if (!cluster.world().run_until([&] { return deleted; }, 3'000'000))
      return "a deletion fails while one of four is away";
    cluster.world().run_for(static_cast<int64_t>(random.below(1'000'000)));
    cluster.network().mend_all();
    for (int round = 0; round < 20; ++round) {
      cluster.world().run_for(static_cast<int64_t>(random.below(300'000)));
      SimNode& reader = cluster[round % 2 == 0 ? without : random.below(kNodes)];
      RowSeen seen;
      reader.spawn(read_row(&reader, incarnation, kKey, ConsistencyLevel::kQuorum, &seen));
      cluster.world().run_until([&] { return seen.answered; }, 3'000'000);
      if (seen.value) return "an acknowledged deletion is undone";
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
