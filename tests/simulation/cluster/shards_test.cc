// SPDX-License-Identifier: Apache-2.0
// Nodes of two shards: what one shard is told, the others know when it is said to be done.
#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

Task<void> change_schema(replication::MetaService* meta, base::Reactor* reactor,
                         replication::SchemaChange change, bool* done) {
  change.expected = meta->snapshot()->schema_version;
  const base::Deadline deadline{reactor->now_us() + 5'000'000};
  Result<void> result = co_await meta->change_schema(std::move(change), deadline, nullptr);
  *done = result.has_value();
}

/// Through one shard of one node; stops at the event that ends it.
void change(SimCluster& cluster, size_t via, uint32_t shard, replication::SchemaChange change) {
  bool done = false;
  SimNode& node = cluster[via];
  node.spawn(change_schema(&node.meta(shard), &node.reactor(shard), std::move(change), &done));
  REQUIRE(cluster.world().run_until([&] { return done; }, 10'000'000));
}

replication::SchemaChange new_table() {
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  return change;
}

Task<void> write(SimNode* node, uint32_t shard, storage::Mutation mutation, int* acknowledged) {
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor(shard).now_us() + 2'000'000};
  Result<void> result =
      co_await node->data(shard).coordinator().write(std::move(mutations), options);
  *acknowledged += result ? 1 : 0;
}

}  // namespace

TEST_CASE("a schema change is done when every shard of every live node has it") {
  for (uint64_t seed = 1; seed <= seed_count(10); ++seed) {
    INFO("seed=" << seed);
    SimCluster cluster(seed, 3, 2, 2);
    REQUIRE(cluster.form());
    cluster.world().run_for(1'000'000);  // all hear of each other
    const auto via = static_cast<uint32_t>(seed % 2);
    change(cluster, seed % 3, via, new_table());
    TableIncarnation first;
    for (size_t i = 0; i < 3; ++i) {
      for (uint32_t shard = 0; shard < 2; ++shard) {
        const auto state = cluster[i].meta(shard).snapshot();
        REQUIRE(state->tables.size() == 1);
        first = state->tables.begin()->second->incarnation;
      }
    }
    replication::SchemaChange truncate;
    truncate.truncated_tables.push_back(cluster[0].state()->tables.begin()->first);
    change(cluster, (seed + 1) % 3, 1 - via, truncate);
    for (size_t i = 0; i < 3; ++i) {
      for (uint32_t shard = 0; shard < 2; ++shard)
        CHECK(cluster[i].meta(shard).snapshot()->table(first) == nullptr);
    }
  }
}

TEST_CASE("a table lies on every store, and any shard reaches all of them") {
  SimCluster cluster(1, 1, 2, 2);
  REQUIRE(cluster.form());
  change(cluster, 0, 1, new_table());
  const auto& table = *cluster[0].state()->tables.begin()->second;
  REQUIRE(table.tablets.tablets().size() == 2);
  CHECK(table.tablets.tablets()[0].replicas != table.tablets.tablets()[1].replicas);
  int acknowledged = 0;
  for (int i = 0; i < 100; ++i)
    cluster[0].spawn(write(&cluster[0], static_cast<uint32_t>(i % 2),
                           row_of(table.incarnation, "key" + std::to_string(i)), &acknowledged));
  CHECK(cluster.world().run_until([&] { return acknowledged == 100; }, 1'000'000));
  for (uint32_t store = 0; store < 2; ++store)
    CHECK(cluster[0].store(store).approximate_bytes(
              table.incarnation, {RingPosition::lowest(), RingPosition::highest()}) > 0);
}

TEST_CASE("the hints of every shard outlive a restart and are replayed") {
  SimCluster cluster(3, 4, 2, 2);
  REQUIRE(cluster.form());
  cluster.world().run_for(1'000'000);  // all hear of each other
  change(cluster, 0, 0, new_table());
  const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
  const HostId away = cluster[3].node().self();
  cluster[3].kill();
  REQUIRE(cluster.world().run_until([&] { return !cluster[0].meta(1).is_live(away); }, 20'000'000));
  int acknowledged = 0;
  for (int i = 0; i < 60; ++i)
    cluster[0].spawn(write(&cluster[0], static_cast<uint32_t>(i % 2),
                           row_of(incarnation, "key" + std::to_string(i)), &acknowledged));
  REQUIRE(cluster.world().run_until([&] { return acknowledged == 60; }, 5'000'000));
  const auto pending = [&](uint32_t shard) {
    return cluster[0].data(shard).hints().pending_count();
  };
  CHECK(pending(0) == 30);
  CHECK(pending(1) == 30);
  cluster.world().run_for(1'000'000);
  cluster[0].kill();
  cluster[0].start();
  CHECK(pending(0) == 30);
  CHECK(pending(1) == 30);
  cluster[3].start();
  CHECK(cluster.world().run_until([&] { return pending(0) + pending(1) == 0; }, 30'000'000));
  size_t rows = 0;
  for (uint32_t store = 0; store < 2; ++store) {
    bool done = false;
    cluster[3].store(store).export_range(incarnation,
                                         {RingPosition::lowest(), RingPosition::highest()}, "",
                                         1 << 20, [&](Result<storage::Store::ExportPage> page) {
                                           REQUIRE(page);
                                           rows += page->mutations.size();
                                           done = true;
                                         });
    REQUIRE(cluster.world().run_until([&] { return done; }, 1'000'000));
  }
  CHECK(rows == 60);
}

}  // namespace tetrad::simulation
