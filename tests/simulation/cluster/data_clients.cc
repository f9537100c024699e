// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster/data_clients.h"

namespace tetrad::simulation {
namespace {

constexpr int kPagesMax = 6;

/// Through any of its shards.
replication::DataPlane& plane_of(SimNode* node, const Operation& operation) {
  return node->data(static_cast<uint32_t>(operation.begun_us % node->shard_count()));
}

/// Notes the coordinator's time when a write ends, also when its node does, if any has been dated
/// anew meanwhile.
class LastDate {
 public:
  LastDate(replication::DataPlane& plane, Operation& operation)
      : plane_(plane), operation_(operation), redated_(redated()) {}
  ~LastDate() {
    if (redated() != redated_) operation_.redated_s = plane_.coordinator().now_us() / 1'000'000;
  }
  LastDate(const LastDate&) = delete;
  LastDate& operator=(const LastDate&) = delete;

 private:
  uint64_t redated() const { return plane_.coordinator_impl().metrics().redated.value(); }

  replication::DataPlane& plane_;
  Operation& operation_;
  const uint64_t redated_;
};

}  // namespace

int64_t now_s(SimNode& node) { return node.data().coordinator().now_us() / 1'000'000; }

Task<void> run_write(SimNode* node, Operation* operation) {
  std::vector<storage::Mutation> mutations;
  mutations.push_back(operation->mutation);
  replication::WriteOptions options;
  options.level = operation->level;
  options.deadline = {node->reactor().now_us() + operation->within_us};
  options.dated_us = operation->dated_s * 1'000'000;
  World* const world = &node->world();
  replication::DataPlane& plane = plane_of(node, *operation);
  const LastDate last_date(plane, *operation);
  auto result = co_await plane.coordinator().write(std::move(mutations), options);
  operation->state = result ? Operation::State::kOk : Operation::State::kFailed;
  operation->ended_us = world->now_us();
}

Task<void> run_read(SimNode* node, Operation* operation, History* history) {
  for (int page = 0; page < kPagesMax; ++page) {
    replication::ReadOptions options;
    options.level = operation->level;
    options.deadline = {node->reactor().now_us() + operation->within_us};
    World* const world = &node->world();
    auto result =
        co_await plane_of(node, *operation).coordinator().read(operation->command, options);
    operation->ended_us = world->now_us();
    operation->state = result ? Operation::State::kOk : Operation::State::kFailed;
    if (!result) co_return;
    take_result(*result, *operation);
    if (result->exhausted || !operation->wrong.empty()) co_return;
    auto next = std::make_unique<Operation>();
    next->level = operation->level;
    next->center = operation->center;
    next->within_us = operation->within_us;
    next->incarnation = operation->incarnation;
    next->key = operation->key;
    next->command = operation->command;
    next->command.resume_after = result->complete_up_to;
    next->begun_us = world->now_us();
    // Rows of the partition the page ends in, for the limit of a partition.
    const auto& before = operation->command.resume_after;
    const auto& place = result->complete_up_to;
    uint32_t rows = before && before->clustering_key && before->partition_key == place.partition_key
                        ? operation->command.partition_rows_done
                        : 0;
    for (const auto& partition : result->partitions)
      if (partition.partition_key == place.partition_key)
        rows += static_cast<uint32_t>(partition.rows.size());
    next->command.partition_rows_done = place.clustering_key ? rows : 0;
    operation = &history->add(std::move(next));
  }
  operation->state = Operation::State::kFailed;  // the last page was not asked for
}

Task<void> change_schema(SimNode* node, replication::SchemaChange change,
                         std::optional<base::MonotonicUs>* done) {
  const base::Deadline deadline{node->reactor().now_us() + 10'000'000};
  World* const world = &node->world();
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  if (result) *done = world->now_us();
}

PartitionOf<int64_t> newest_held(const storage::ReadResult& result) {
  PartitionOf<int64_t> newest{};
  if (result.partitions.empty()) return newest;
  const storage::PartitionData& partition = result.partitions.front();
  const auto raise = [&](int row, int64_t timestamp) {
    for (auto& place : newest[static_cast<size_t>(row)]) place = std::max(place, timestamp);
  };
  const auto take = [&](int row, BytesView record) {
    storage::RowRecordReader reader;
    if (record.empty() || !reader.open(record)) return;
    raise(row, reader.deletion().timestamp_us);
    auto& places = newest[static_cast<size_t>(row)];
    places[0] = std::max(places[0], reader.liveness().timestamp_us);
    storage::Cell cell;
    while (reader.next(cell)) {
      const uint32_t column =
          row == kStatic ? cell.column_id - kStaticColumnId + 1 : cell.column_id;
      if (column < kColumns) places[column] = std::max(places[column], cell.timestamp_us);
    }
  };
  for (const auto& row : partition.rows) take(row.clustering_key[0] - 'a', row.record);
  take(kStatic, partition.header);
  storage::RowRecordReader header;
  if (!partition.header.empty() && header.open(partition.header))
    for (int row = 0; row <= kRows; ++row) raise(row, header.deletion().timestamp_us);
  for (int row = 0; row < kRows; ++row)
    for (const auto& step : partition.range_tombstones)
      if (step.start <= clustering_of(row) && clustering_of(row) < step.end)
        raise(row, step.deletion.timestamp_us);
  return newest;
}

}  // namespace tetrad::simulation
