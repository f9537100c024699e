// SPDX-License-Identifier: Apache-2.0
// A range of many tablets that are all on another node, nearly all of them empty.
#include <catch2/catch.hpp>

#include "replication/meta/placed_in.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

Task<void> write(SimNode* node, storage::Mutation mutation, bool* done) {
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kOne;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  auto written = co_await node->data().coordinator().write(std::move(mutations), options);
  REQUIRE(written);
  *done = true;
}

Task<void> read(SimNode* node, storage::ReadCommand command,
                std::optional<storage::ReadResult>* answer) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kOne;
  options.deadline = {node->reactor().now_us() + 9'000'000};
  auto rows = co_await node->data().coordinator().read(std::move(command), options);
  REQUIRE(rows);
  answer->emplace(std::move(*rows));
}

}  // namespace

TEST_CASE("answers without rows take no room from the row behind them") {
  SimCluster cluster(11);
  for (int i = 1; i <= 2; ++i) cluster.add(1, 1).options().data_center = "dc" + std::to_string(i);
  REQUIRE(cluster.form(30'000'000));
  World& world = cluster.world();
  SimNode& node = cluster[0];
  replication::SchemaChange change;
  change.objects.push_back(
      {replication::placement_key("ks"), replication::placement_text({"dc2"})});
  bool done = false;
  node.spawn(change_schema_now(&node, std::move(change), &done));
  REQUIRE(world.run_until([&] { return done; }, 10'000'000));
  change = {};
  change.new_tables.push_back(table_t());
  change.new_tables.back().initial_tablets = 300;
  done = false;
  node.spawn(change_schema_now(&node, std::move(change), &done));
  REQUIRE(world.run_until([&] { return done; }, 10'000'000));
  world.run_for(2'000'000);

  // The key comes late in the ring, behind most of the tablets.
  const auto state = node.state();
  const replication::TableInfo& table = *state->tables.begin()->second;
  std::string key;
  for (int i = 0; key.empty(); ++i) {
    const std::string some = "key" + std::to_string(i);
    if (partitioner::position_of(some).token > INT64_MAX / 2) key = some;
  }
  storage::Mutation mutation = row_of(table.incarnation, key);
  storage::RowRecord record;
  record.liveness.timestamp_us = 1;
  const std::string value(4000, 'x');
  storage::Cell cell;
  cell.column_id = 1;
  cell.timestamp_us = 1;
  cell.value = value;
  record.cells.push_back(cell);
  mutation.rows.front().record.clear();
  storage::encode_row_record(record, mutation.rows.front().record);
  done = false;
  node.spawn(write(&node, std::move(mutation), &done));
  REQUIRE(world.run_until([&] { return done; }, 5'000'000));

  storage::ReadCommand command;
  command.incarnation = table.incarnation;
  command.is_range = true;
  command.range = {RingPosition::lowest(), RingPosition::highest()};
  command.bytes_limit = 512;
  command.bytes_max = 1024;
  std::optional<storage::ReadResult> answer;
  node.spawn(read(&node, command, &answer));
  REQUIRE(world.run_until([&] { return answer.has_value(); }, 10'000'000));
  REQUIRE(answer->withheld_bytes > 4000);
  // As a SELECT asks again: with room for the row and a little.
  command.bytes_max = answer->withheld_bytes + answer->withheld_bytes / 8 + 512;
  answer.reset();
  node.spawn(read(&node, command, &answer));
  REQUIRE(world.run_until([&] { return answer.has_value(); }, 10'000'000));
  CHECK(answer->withheld_bytes == 0);
  CHECK(answer->live_row_count == 1);
}

}  // namespace tetrad::simulation
