// SPDX-License-Identifier: Apache-2.0
// count(*) is counted on the replicas; where they differ it is right all the same, and they do not
// differ afterwards.
#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/row/row_weight.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

constexpr int kPartitions = 60, kRows = 40;

storage::Mutation row_of(TableIncarnation incarnation, int partition, int row, bool is_delete) {
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = "partition" + std::to_string(partition);
  mutation.position = partitioner::position_of(mutation.partition_key);
  storage::RowRecord record;
  if (is_delete) {
    record.deletion = {2, 1};
  } else {
    record.liveness.timestamp_us = 1;
  }
  storage::RowChange change;
  change.clustering_key = std::to_string(row);
  storage::encode_row_record(record, change.record);
  mutation.rows.push_back(std::move(change));
  return mutation;
}

struct Count {
  bool done = false;
  Result<replication::Counted> found = replication::Counted();
};

Task<void> run_count(SimNode* node, storage::ReadCommand command, ConsistencyLevel level,
                     Count* count) {
  replication::ReadOptions options;
  options.level = level;
  options.deadline = {node->reactor().now_us() + 5'000'000};
  count->found = co_await node->data().coordinator().count(std::move(command), options);
  count->done = true;
}

class Cluster {
 public:
  explicit Cluster(uint64_t seed) : cluster_(seed, 4) {
    REQUIRE(cluster_.form(30'000'000));
    bool created = false;
    cluster_[0].spawn(create_table(&cluster_[0], 0, &created));
    REQUIRE(cluster_.world().run_until([&] { return created; }, 10'000'000));
    REQUIRE(cluster_.world().run_until(
        [&] {
          for (const auto& tablet : table().tablets.tablets()) {
            if (tablet.stage != partitioner::TabletStage::kNormal || tablet.replicas.size() != 4)
              return false;
          }
          return true;
        },
        60'000'000));
    cluster_.world().run_for(2'000'000);  // all have heard of each other
  }

  const replication::TableInfo& table() { return *cluster_[0].state()->tables.begin()->second; }
  base::Random& random() { return cluster_.world().random(); }

  /// Puts a row on the members whose bit is set.
  void put(int partition, int row, uint64_t members, bool is_delete = false) {
    const auto mutation = row_of(table().incarnation, partition, row, is_delete);
    const auto& tablet = table().tablets.find(mutation.position);
    for (size_t m = 0; m < tablet.replicas.size(); ++m) {
      if ((members >> m & 1) == 0) continue;
      for (size_t i = 0; i < cluster_.size(); ++i) {
        if (cluster_[i].node().self() == tablet.replicas[m].host)
          cluster_[i].store(tablet.replicas[m].store).apply(mutation, [](Result<void>) {});
      }
    }
    cluster_.world().run_for(1);
  }

  uint64_t count(size_t via, ConsistencyLevel level, int partition = -1) {
    storage::ReadCommand command;
    command.incarnation = table().incarnation;
    command.is_range = partition < 0;
    if (partition >= 0) {
      command.partition_key = "partition" + std::to_string(partition);
      command.position = partitioner::position_of(command.partition_key);
    }
    command.now_s = 1'700'000'000;
    Count count;
    cluster_[via].spawn(run_count(&cluster_[via], std::move(command), level, &count));
    REQUIRE(cluster_.world().run_until([&] { return count.done; }, 10'000'000));
    INFO((count.found ? "" : count.found.error().message));
    REQUIRE(count.found.has_value());
    weight_ = count.found->weight;
    return count.found->rows;
  }
  /// Of what was counted last.
  uint64_t weight() const { return weight_; }

 private:
  SimCluster cluster_;
  uint64_t weight_ = 0;
};

}  // namespace

TEST_CASE("rows are counted where they are, and rightly where replicas differ") {
  for (uint64_t seed = 1; seed <= seed_count(4); ++seed) {
    INFO("seed=" << seed);
    Cluster cluster(seed);
    uint64_t rows = 0, first = 0, weight = 0;
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) {
        const uint64_t members = 1 + cluster.random().below(15);
        cluster.put(p, r, members);
        const bool is_gone = cluster.random().one_in(4);
        if (is_gone) cluster.put(p, r, 1 + cluster.random().below(15), true);
        rows += is_gone ? 0 : 1;
        weight += is_gone ? 0 : storage::row_weight(std::to_string(r).size());
        if (p == 0) first = rows;
      }
    }
    CHECK(cluster.count(seed % 4, ConsistencyLevel::kAll, 0) == first);
    CHECK(cluster.count(seed % 4, ConsistencyLevel::kAll) == rows);
    CHECK(cluster.weight() == weight);
    for (size_t via = 0; via < 4; ++via) {
      CHECK(cluster.count(via, ConsistencyLevel::kOne) == rows);
      CHECK(cluster.weight() == weight);
      CHECK(cluster.count(via, ConsistencyLevel::kQuorum, 0) == first);
    }
  }
}

}  // namespace tetrad::simulation
