// SPDX-License-Identifier: Apache-2.0
// What is counted and folded on the replicas is right where they differ, and they do not differ
// afterwards.
#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/row/row_weight.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/sum_plan.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

constexpr int kPartitions = 60, kRows = 40;

storage::Mutation row_of(TableIncarnation incarnation, int partition, int row, bool is_delete,
                         uint64_t value) {
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
  Bytes number;
  base::ByteWriter(number).u64(value);
  if (!is_delete) {
    storage::Cell cell;
    cell.column_id = 1;
    cell.timestamp_us = 1;
    cell.value = number;
    record.cells.push_back(cell);
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
  /// With odd seeds a node has two stores, of a shard each.
  explicit Cluster(uint64_t seed)
      : cluster_(seed, 4, 1 + static_cast<uint32_t>(seed % 2),
                 1 + static_cast<uint32_t>(seed % 2)) {
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
  void put(int partition, int row, uint64_t members, bool is_delete = false, uint64_t value = 0) {
    const auto mutation = row_of(table().incarnation, partition, row, is_delete, value);
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
    return counted(via, level, partition, nullptr).rows;
  }
  uint64_t fold(size_t via, ConsistencyLevel level, int partition, bool in_order) {
    const auto answer = counted(via, level, partition, std::make_shared<SumPlan>(in_order));
    REQUIRE(answer.folded.has_value());
    return SumPlan::number(*answer.folded);
  }
  replication::Counted counted(size_t via, ConsistencyLevel level, int partition,
                               storage::FoldPlanPtr fold) {
    storage::ReadCommand command;
    command.incarnation = table().incarnation;
    command.is_range = partition < 0;
    if (partition >= 0) {
      command.partition_key = "partition" + std::to_string(partition);
      command.position = partitioner::position_of(command.partition_key);
    }
    command.now_s = 1'700'000'000;
    command.fold = std::move(fold);
    Count count;
    cluster_[via].spawn(run_count(&cluster_[via], std::move(command), level, &count));
    REQUIRE(cluster_.world().run_until([&] { return count.done; }, 10'000'000));
    INFO((count.found ? "" : count.found.error().message));
    REQUIRE(count.found.has_value());
    weight_ = count.found->weight;
    return *count.found;
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
        weight += is_gone ? 0 : storage::row_weight(std::to_string(r).size() + sizeof(uint64_t));
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

TEST_CASE("rows are folded where they are, and rightly where replicas differ") {
  for (uint64_t seed = 1; seed <= seed_count(4); ++seed) {
    INFO("seed=" << seed);
    Cluster cluster(seed);
    std::map<std::pair<RingPosition, std::string>, uint64_t> rows;
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) {
        const uint64_t value = cluster.random().next();
        cluster.put(p, r, 1 + cluster.random().below(15), false, value);
        const bool is_gone = cluster.random().one_in(4);
        if (is_gone) cluster.put(p, r, 1 + cluster.random().below(15), true);
        const auto position = partitioner::position_of("partition" + std::to_string(p));
        if (!is_gone) rows[{position, std::to_string(r)}] = value;
      }
    }
    const auto expected = [&](int partition, bool in_order) {
      const auto position = partitioner::position_of("partition" + std::to_string(partition));
      uint64_t sum = 0;
      for (const auto& [place, value] : rows) {
        if (partition < 0 || place.first == position) sum = SumPlan::next(sum, value, in_order);
      }
      return sum;
    };
    for (const bool in_order : {seed % 2 == 0, seed % 2 != 0}) {
      CHECK(cluster.fold(seed % 4, ConsistencyLevel::kAll, 0, in_order) == expected(0, in_order));
      CHECK(cluster.fold(seed % 4, ConsistencyLevel::kAll, -1, in_order) == expected(-1, in_order));
    }
    for (size_t via = 0; via < 4; ++via) {
      CHECK(cluster.fold(via, ConsistencyLevel::kOne, -1, true) == expected(-1, true));
      CHECK(cluster.fold(via, ConsistencyLevel::kQuorum, 0, false) == expected(0, false));
    }
  }
}

TEST_CASE("a fold at QUORUM is that of what a quorum holds") {
  for (uint64_t seed = 1; seed <= seed_count(4); ++seed) {
    INFO("seed=" << seed);
    Cluster cluster(seed);
    uint64_t sum = 0;
    // Each row on some three of four members: every quorum has it, hardly two members are equal.
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) {
        const uint64_t value = cluster.random().next();
        cluster.put(p, r, 15u & ~(1u << cluster.random().below(4)), false, value);
        sum += value;
      }
    }
    CHECK(cluster.fold(seed % 4, ConsistencyLevel::kQuorum, -1, false) == sum);
    CHECK(cluster.fold((seed + 1) % 4, ConsistencyLevel::kQuorum, -1, false) == sum);
    CHECK(cluster.count((seed + 2) % 4, ConsistencyLevel::kQuorum) == kPartitions * kRows);
  }
}

}  // namespace tetrad::simulation
