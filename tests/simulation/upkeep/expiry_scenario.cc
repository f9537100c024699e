// SPDX-License-Identifier: Apache-2.0
// A wall clock steps three hours ahead while RocksDB compacts. Values that are to expire before
// that, by the wall clock alone, keep their bytes (rule 17).
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr const char* kKey = "key";
constexpr int32_t kTtl_s = 1000;
constexpr int64_t kStepUs = int64_t{3 * 3600} * 1'000'000;

storage::Mutation expiring(TableIncarnation incarnation, int64_t stamp_us) {
  storage::Mutation mutation = row_change(incarnation, kKey, stamp_us, "", 0);
  storage::RowRecord record;
  storage::Cell cell;
  cell.column_id = 1;
  cell.timestamp_us = stamp_us;
  cell.ttl_s = kTtl_s;
  cell.expiry_s = stamp_us / 1'000'000 + kTtl_s;
  cell.value = "value";
  record.liveness = {stamp_us, cell.ttl_s, cell.expiry_s};
  record.cells = {cell};
  mutation.rows.front().record.clear();
  storage::encode_row_record(record, mutation.rows.front().record);
  return mutation;
}

Task<void> write_expiring(SimNode* node, TableIncarnation incarnation, bool* done) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kAll;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.server_timestamp_us = options.dated_us = stamp_us;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(expiring(incarnation, stamp_us));
  auto written = co_await coordinator.write(std::move(mutations), options);
  *done = written.has_value();
}

void compact_all(SimCluster& cluster) {
  for (size_t i = 0; i < cluster.size(); ++i) cluster[i].store(0).compact([](Result<void>) {});
  cluster.world().run_for(500'000);
}

}  // namespace

ScenarioResult run_expiry(uint64_t seed) {
  base::Random random(seed * 9341 + 1);
  SimCluster cluster(seed, 3);
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster[i].on_rocks = true;
    cluster[i].clock_skew_max_us = 50'000;
    cluster[i].data_options.purge.look_every_us = 200'000;
  }
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.world().run_for(5'000'000);
    bool written = false;
    cluster[0].spawn(write_expiring(&cluster[0], incarnation, &written));
    if (!cluster.world().run_until([&] { return written; }, 3'000'000)) return "a write fails";
    compact_all(cluster);  // the filter sees what an earlier compaction has merged
    const size_t victim = random.below(cluster.size());
    cluster[victim].clock().step(kStepUs);
    cluster.world().run_for(static_cast<int64_t>(random.below(3'000'000)));
    int others = 0;
    SimNode& via = cluster[(victim + 1) % 3];
    via.spawn(
        write_row(&via, incarnation, {.key = "other", .level = ConsistencyLevel::kAll}, &others));
    cluster.world().run_for(1'000'000);
    if (others != 1) return "a write at ALL fails while the clock of one of three is off";
    compact_all(cluster);
    compact_all(cluster);
    cluster[victim].clock().step(-kStepUs);
    for (size_t i = 0; i < cluster.size(); ++i) {
      auto command = row_read(incarnation, kKey, cluster[i].reactor().wall_time_us() / 1'000'000);
      const auto held = cluster[i].peek(0, command);
      if (!held) return "a store does not answer";
      if (value_of(*held) != "value")
        return fmt::format("node {} has lost a value that has not expired", i + 1);
    }
    return "";
  };
  return {run(), 0};  // the threads of RocksDB no seed rules
}

}  // namespace tetrad::simulation
