// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

storage::Mutation row_of(TableIncarnation incarnation, const std::string& key, size_t value_bytes,
                         int64_t timestamp_us = 1) {
  const std::string value(value_bytes, 'x');
  storage::RowRecord record;
  record.liveness.timestamp_us = timestamp_us;
  storage::Cell cell;
  cell.column_id = 1;
  cell.timestamp_us = timestamp_us;
  cell.value = value;
  record.cells.push_back(cell);
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = key;
  mutation.position = partitioner::position_of(key);
  storage::RowChange row;
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return mutation;
}

/// As a client's write, that takes warnings.
struct ClientWrite {
  bool done = false;
  std::string error;  // "" when it succeeded
  std::vector<std::string> warnings;

  static Task<void> run(SimNode* node, storage::Mutation mutation, ClientWrite* write) {
    std::vector<storage::Mutation> mutations;
    mutations.push_back(std::move(mutation));
    replication::WriteOptions options;
    options.deadline = {node->reactor().now_us() + 2'000'000};
    options.warnings = &write->warnings;
    auto written = co_await node->data().coordinator().write(std::move(mutations), options);
    if (!written) write->error = written.error().message;
    write->done = true;
  }
};

ClientWrite write_through(SimCluster& cluster, const storage::Mutation& mutation) {
  ClientWrite write;
  cluster[0].spawn(ClientWrite::run(&cluster[0], mutation, &write));
  REQUIRE(cluster.world().run_until([&] { return write.done; }, 5'000'000));
  return write;
}

/// Of the table ks.t.
bool change_throughput(SimCluster& cluster, replication::Throughput throughput, bool create) {
  replication::SchemaChange change;
  replication::SchemaChange::NewTable table = table_t();
  if (create) {
    table.initial_tablets = replication::tablets_wanted(*cluster[0].state(), throughput);
    table.throughput = throughput;
    change.new_tables.push_back(table);
  } else {
    change.altered_tables.push_back({table.id, table.keyspace, table.name, 0, false, throughput});
  }
  bool done = false;
  cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &done));
  return cluster.world().run_until([&] { return done; }, 10'000'000);
}

Task<void> set_logical_limit(replication::ReplicationNode* node, std::string mb,
                             base::Deadline deadline) {
  replication::MetaCommandBody body(
      replication::SetSetting{replication::kSettingLogicalPartitionMb, std::move(mb)});
  Result<MetaIndex> done = co_await node->meta_group().propose(std::move(body), deadline);
  CHECK(done);
}

}  // namespace

TEST_CASE("a tablet past its limit is split online until all are small") {
  for (const size_t nodes : {1, 4}) {
    SimCluster cluster(nodes, nodes, 2);
    REQUIRE(cluster.form());
    cluster.world().run_for(1'000'000);
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 1, &created));
    REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
    const auto& table = *cluster[0].state()->tables.begin()->second;
    const size_t before = table.tablets.tablets().size();
    CHECK(before == 2);
    size_t applied = 0, wanted = 0;
    for (int i = 0; i < 800; ++i) {
      const auto mutation = row_of(table.incarnation, "key" + std::to_string(i), 10'000);
      const auto& tablet = table.tablets.find(mutation.position);
      for (const StoreAddress& replica : tablet.replicas) {
        for (size_t n = 0; n < nodes; ++n) {
          if (cluster[n].node().self() != replica.host) continue;
          ++wanted;
          cluster[n].store(replica.store).apply(mutation, [&applied](Result<void> result) {
            applied += result ? 1 : 0;
          });
        }
      }
    }
    REQUIRE(cluster.world().run_until([&] { return applied == wanted; }, 10'000'000));
    const auto largest = [&] {
      uint64_t bytes = 0;
      const auto state = cluster[0].state();
      for (const auto& tablet : state->tables.begin()->second->tablets.tablets())
        bytes = std::max(bytes, cluster[0].node().meta().tablet_bytes(tablet.id));
      return bytes;
    };
    cluster.world().run_for(30'000'000);
    const auto after = cluster[0].state()->tables.begin()->second->tablets.tablets();
    CHECK(after.size() >= 8);
    CHECK(after.size() <= 40);
    CHECK(largest() <= 1024 * 1024);
    CHECK(largest() > 0);
    for (const auto& tablet : after) {
      CHECK(tablet.epoch == SetEpoch{1});
      CHECK(tablet.replicas.size() == nodes);
    }
  }
}

TEST_CASE("a table whose throughput is raised is split until its tablets are enough, no further") {
  for (const size_t nodes : {1, 4, 5}) {
    for (const uint32_t shards : {1, 2}) {
      INFO(nodes << " nodes, shards: " << shards);
      SimCluster cluster(nodes * 10 + shards, nodes, 2, shards);
      REQUIRE(cluster.form());
      cluster.world().run_for(1'000'000);
      REQUIRE(change_throughput(cluster, {45'000, false}, true));
      const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
      const auto tablets = [&] {
        return cluster[0].state()->tables.begin()->second->tablets.tablets();
      };
      const size_t before = tablets().size();
      CHECK(before >= 5);
      // One of the tablets gets a single logical partition, and one gets none.
      const auto first = tablets();
      size_t rows = 0, alone = 0;
      for (int i = 0; rows < 300; ++i) {
        const std::string key = "key" + std::to_string(i);
        const RingPosition position = partitioner::position_of(key);
        if (first[1].range.contains(position)) continue;
        if (first[2].range.contains(position) && ++alone > 1) continue;
        CHECK(write_through(cluster, row_of(incarnation, key, 100)).error.empty());
        ++rows;
      }
      cluster.world().run_for(3'000'000);
      CHECK(tablets().size() == before);  // nothing was missing

      size_t most = 0;
      const auto watched = cluster[0].node().meta().subscribe(
          [&](const replication::MetaSnapshot&, const replication::MetaSnapshot& now) {
            most = std::max(most, now->tables.begin()->second->tablets.tablets().size());
          });
      const size_t wanted = before + 4;
      REQUIRE(change_throughput(cluster, {static_cast<uint32_t>(wanted) * 10'000, false}, false));
      const auto enough = [&] { return tablets().size() >= wanted; };
      const int64_t begun_us = cluster.world().now_us();
      CHECK(cluster.world().run_until(enough, 10'000'000));
      const int64_t took_us = cluster.world().now_us() - begun_us;
      CHECK(took_us < 4'000'000);
      const auto after = tablets();
      const auto is_one = [&](const partitioner::Tablet& tablet) {
        return tablet.range == first[2].range;
      };
      CHECK(std::ranges::count_if(after, is_one) == 1);  // it cannot be cut
      for (const auto& tablet : after) {
        CHECK(tablet.epoch == SetEpoch{1});
        CHECK(tablet.replicas.size() == std::min<size_t>(nodes, 4));
      }

      // The keyspace's throughput splits nothing, less throughput joins nothing.
      REQUIRE(change_throughput(cluster, {1'000'000, true}, false));
      REQUIRE(change_throughput(cluster, {400, false}, false));
      cluster.world().run_for(5'000'000);
      CHECK(tablets().size() == wanted);
      CHECK(most == wanted);
      most = 0;
      REQUIRE(change_throughput(cluster, {1'000'000, false}, false));
      CHECK(cluster.world().run_until([&] { return tablets().size() >= 90; }, 20'000'000));
      cluster.world().run_for(5'000'000);
      CHECK(most <= 100);
    }
  }
}

TEST_CASE("sizes of physical partitions that are gone are forgotten") {
  SimCluster cluster(1, 1);
  REQUIRE(cluster.form());
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 1, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  auto& meta = cluster[0].node().meta_group();
  const TabletId there = cluster[0].state()->tables.begin()->second->tablets.tablets()[0].id;
  meta.set_tablet_bytes(there, 77);
  for (uint64_t i = 0; i < 10'000; ++i) meta.set_tablet_bytes(TabletId{1'000'000 + i}, i);
  CHECK(meta.all_tablet_bytes().size() <= 1024);
  CHECK(meta.tablet_bytes(there) == 77);
}

TEST_CASE("a single logical partition is not split but set apart, and full past its own limit") {
  SimCluster cluster(2, 1);
  REQUIRE(cluster.form());
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 1, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  cluster[0].spawn(set_logical_limit(&cluster[0].node(), "2",
                                     base::Deadline{cluster.world().now_us() + 1'000'000}));
  const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
  for (int i = 0; i < 40; ++i) {
    auto mutation = row_of(incarnation, "one", 100'000);
    mutation.rows[0].clustering_key = "\x02" + std::to_string(i) + std::string("\0\1", 2);
    cluster[0].store(0).apply(mutation, [](Result<void>) {});
  }
  const auto full = [&] {
    const auto state = cluster[0].state();
    const auto& tablets = state->tables.begin()->second->tablets.tablets();
    return std::any_of(tablets.begin(), tablets.end(),
                       [](const auto& tablet) { return tablet.full; });
  };
  CHECK(cluster.world().run_until(full, 20'000'000));
  cluster.world().run_for(20'000'000);
  const RingPosition at = partitioner::position_of("one");
  for (const auto& tablet : cluster[0].state()->tables.begin()->second->tablets.tablets()) {
    CHECK(tablet.full == tablet.range.contains(at));
    if (!tablet.full) continue;
    RingPosition next = tablet.range.start;
    if (++next.hash == 0) ++next.token;
    CHECK(next == at);  // nothing else fits between its ends
    CHECK(tablet.range.end == at);
  }
  CHECK(cluster[0].state()->tables.begin()->second->tablets.tablets().size() == 3);
}

TEST_CASE("a logical partition warns, is full, and takes inserts again when enough was deleted") {
  for (const size_t nodes : {1, 4}) {
    SimCluster cluster(nodes, nodes);
    REQUIRE(cluster.form());
    cluster.world().run_for(1'000'000);
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 1, &created));
    REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
    cluster[0].spawn(set_logical_limit(&cluster[0].node(), "2",
                                       base::Deadline{cluster.world().now_us() + 1'000'000}));
    cluster.world().run_for(1'000'000);
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    const auto row = [&](int number) {
      auto mutation = row_of(incarnation, "one", 100'000);
      mutation.rows[0].clustering_key = "\x02" + std::to_string(number) + std::string("\0\1", 2);
      return mutation;
    };
    int number = 0;
    // A row in three seconds: what is measured keeps up.
    std::string refused;
    int first_warned = 0;
    for (; refused.empty() && number < 60; ++number) {
      const ClientWrite write = write_through(cluster, row(number));
      refused = write.error;
      if (first_warned == 0 && !write.warnings.empty()) {
        first_warned = number;
        CHECK(write.warnings ==
              std::vector<std::string>{"Partition key reached 80% of its maximum size of 2 MB"});
      }
      cluster.world().run_for(3'000'000);
    }
    CHECK(refused == "Partition key reached maximum size of 2 MB");
    CHECK(first_warned >= 16);
    CHECK(first_warned <= 20);
    CHECK(number >= 21);
    CHECK(number <= 30);

    // All of it in one deletion, which is taken.
    storage::Mutation deletion = row(0);
    deletion.rows.clear();
    storage::RowRecord header;
    header.deletion = {10, cluster.world().now_us() / 1'000'000};
    storage::encode_row_record(header, deletion.header);
    CHECK(write_through(cluster, deletion).error.empty());
    auto rewritten = row_of(incarnation, "one", 100, 20);
    rewritten.rows[0].clustering_key = row(0).rows[0].clustering_key;
    const auto taken = [&] { return write_through(cluster, rewritten).error.empty(); };
    int64_t seconds = 0;
    for (; seconds < 60 && !taken(); ++seconds) cluster.world().run_for(1'000'000);
    CHECK(seconds <= 15);
    // And it stays so, although the rows are still there.
    cluster.world().run_for(60'000'000);
    CHECK(taken());
  }
}

}  // namespace tetrad::simulation
