// SPDX-License-Identifier: Apache-2.0
// Replica sets grow when nodes join, and a new member holds what was written before and meanwhile;
// repair makes members equal, also while a node that is none of them is silent.
#include <algorithm>
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using partitioner::TabletStage;

const replication::TableInfo& the_table(SimCluster& cluster, size_t node) {
  return *cluster[node].state()->tables.begin()->second;
}

bool all_normal_with(SimCluster& cluster, size_t node, size_t members) {
  for (const auto& tablet : the_table(cluster, node).tablets.tablets())
    if (tablet.stage != TabletStage::kNormal || tablet.replicas.size() != members) return false;
  return true;
}

/// Writes to every member of both sets that is up, as a coordinator on node 0 would; true when W of
/// each set took it.
bool write_now(SimCluster& cluster, const std::string& key) {
  const auto& table = the_table(cluster, 0);
  const auto mutation = row_of(table.incarnation, key);
  const auto& tablet = table.tablets.find(mutation.position);
  std::set<StoreAddress> applied;
  for (const StoreAddress& member : replication::all_members(tablet)) {
    for (size_t i = 0; i < cluster.size(); ++i) {
      if (!cluster[i].is_up() || cluster[i].node().self() != member.host) continue;
      // A replica refuses an epoch older than its own.
      const auto state = cluster[i].state();
      const auto* known = state->table(table.incarnation);
      if (known == nullptr || known->tablets.find(mutation.position).epoch > tablet.epoch) continue;
      cluster[i].store(member.store).apply(mutation, [](Result<void>) {});
      applied.insert(member);
    }
  }
  const auto on_quorum = [&](const std::vector<StoreAddress>& set) {
    const auto count = std::count_if(set.begin(), set.end(), [&](const StoreAddress& member) {
      return applied.contains(member);
    });
    return set.empty() || static_cast<size_t>(count) >= replication::write_quorum(set.size());
  };
  return on_quorum(tablet.replicas) && on_quorum(tablet.new_replicas);
}

size_t copies_of(SimCluster& cluster, const std::string& key, size_t node = 0) {
  const auto& table = the_table(cluster, node);
  const auto position = partitioner::position_of(key);
  size_t copies = 0;
  for (const StoreAddress& member : table.tablets.find(position).replicas) {
    for (size_t i = 0; i < cluster.size(); ++i) {
      if (!cluster[i].is_up() || cluster[i].node().self() != member.host) continue;
      storage::ReadCommand command;
      command.incarnation = table.incarnation;
      command.partition_key = key;
      command.position = position;
      bool found = false, done = false;
      cluster[i]
          .store(member.store)
          .read(command, base::kNoDeadline, [&](Result<storage::ReadResult> result) {
            done = true;
            found = result && result->live_row_count == 1;
          });
      cluster.world().run_until([&] { return done; }, 1'000'000);
      copies += found ? 1 : 0;
    }
  }
  return copies;
}

}  // namespace

TEST_CASE("replica sets grow from one to four members while writes go on, and lose none") {
  for (uint64_t seed = 1; seed <= seed_count(8); ++seed) {
    INFO("seed=" << seed);
    const uint32_t shards = 1 + seed / 4 % 2;
    SimCluster cluster(seed, 4, 2, shards);
    base::Random& random = cluster.world().random();
    cluster[0].options().found = true;
    cluster[0].start();
    REQUIRE(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 1'000'000));
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 0, &created));
    REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
    std::vector<std::string> acknowledged;
    int number = 0;
    const auto write_some = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const std::string key = "key" + std::to_string(number++);
        if (write_now(cluster, key)) acknowledged.push_back(key);
      }
    };
    write_some(200);
    CHECK(all_normal_with(cluster, 0, 1));
    // One after another in odd seeds, all at once in even ones.
    for (size_t i = 1; i < 4; ++i) {
      cluster[i].start();
      if (seed % 2 == 0) continue;
      for (int step = 0; step < 200 && !(cluster[0].state()->nodes.size() == i + 1 &&
                                         all_normal_with(cluster, 0, i + 1));
           ++step) {
        write_some(2);
        cluster.world().run_for(static_cast<int64_t>(random.below(100'000)));
      }
      CHECK(all_normal_with(cluster, 0, i + 1));
    }
    for (int step = 0; step < 600 && !all_normal_with(cluster, 0, 4); ++step) {
      write_some(2);
      if (seed % 4 == 3 && step == 40) cluster[3].power_cut();
      if (seed % 4 == 3 && step == 60) cluster[3].start();
      cluster.world().run_for(static_cast<int64_t>(random.below(100'000)));
    }
    REQUIRE(all_normal_with(cluster, 0, 4));
    cluster.world().run_for(1'000'000);
    CHECK(acknowledged.size() > 200);
    for (const std::string& key : acknowledged) CHECK(copies_of(cluster, key) >= 3);
    std::set<StoreAddress> used;  // every store of every node
    for (const auto& tablet : the_table(cluster, 0).tablets.tablets())
      used.insert(tablet.replicas.begin(), tablet.replicas.end());
    CHECK(used.size() == 8);
  }
}

TEST_CASE("a new member tells what has filled it: from whom, how much, since when") {
  SimCluster cluster(3, 2);
  cluster[0].options().found = true;
  cluster[0].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 1'000'000));
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  for (int i = 0; i < 100; ++i) REQUIRE(write_now(cluster, "key" + std::to_string(i)));
  cluster[1].start();
  REQUIRE(cluster.world().run_until([&] { return all_normal_with(cluster, 0, 2); }, 20'000'000));
  const std::vector<replication::FillFacts> fills = cluster[1].node().stream().fills(1'000);
  CHECK(fills.size() == the_table(cluster, 0).tablets.tablets().size());
  uint64_t bytes = 0;
  for (const replication::FillFacts& fill : fills) {
    CHECK(fill.is_filled);
    CHECK(fill.sources == std::vector<HostId>{cluster[0].node().self()});
    CHECK(fill.began_us > 0);
    CHECK(fill.began_us <= fill.changed_us);
    bytes += fill.bytes;
  }
  CHECK(bytes > 100 * 3);  // the keys at least
  CHECK(cluster[0].node().stream().fills(1'000).empty());
  CHECK(cluster[1].node().stream().fills(0).empty());
}

TEST_CASE("a growth whose new member stays away is given up") {
  SimCluster cluster(7, 2);
  for (size_t i = 0; i < 2; ++i) cluster[i].options().moves.stalled_us = 5'000'000;
  cluster[0].options().found = true;
  cluster[0].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 1'000'000));
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  cluster[1].start();
  REQUIRE(cluster.world().run_until(
      [&] { return the_table(cluster, 0).tablets.tablets()[0].stage == TabletStage::kWriteBoth; },
      10'000'000));
  cluster[1].kill();
  REQUIRE(cluster.world().run_until([&] { return all_normal_with(cluster, 0, 1); }, 20'000'000));
  cluster[1].start();
  CHECK(cluster.world().run_until([&] { return all_normal_with(cluster, 0, 2); }, 20'000'000));
}

TEST_CASE("while a node is silent repair goes on, and what may be purged stays") {
  SimCluster cluster(11, 5);
  for (size_t i = 0; i < cluster.size(); ++i) {
    replication::RepairOptions& repair = cluster[i].data_options.repair;
    repair.look_every_us = 200'000;
    repair.period_us = 1'000'000;
    repair.retry_us = 500'000;
  }
  REQUIRE(cluster.form(30'000'000));
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  const std::string key = "key";
  const auto tablet = [&](size_t node) -> const partitioner::Tablet& {
    return the_table(cluster, node).tablets.find(partitioner::position_of(key));
  };
  REQUIRE(cluster.world().run_until([&] { return tablet(0).repaired_us != 0; }, 20'000'000));
  REQUIRE(tablet(0).replicas.size() == 4);
  std::optional<size_t> outside;
  for (size_t i = 0; i < cluster.size(); ++i)
    if (std::ranges::none_of(tablet(0).replicas, [&](const StoreAddress& member) {
          return member.host == cluster[i].node().self();
        }))
      outside = i;
  REQUIRE(outside.has_value());
  const size_t other = *outside == 0 ? 1 : 0;
  cluster[*outside].kill();
  const int64_t killed_us = cluster[other].data().coordinator().now_us();
  cluster.world().run_for(5'000'000);
  const auto mutation = row_of(the_table(cluster, other).incarnation, key);
  cluster[other].store(tablet(other).replicas[0].store).apply(mutation, [](Result<void>) {});
  cluster.world().run_for(100'000);
  REQUIRE(copies_of(cluster, key, other) == 1);
  for (int step = 0; step < 40 && copies_of(cluster, key, other) < 4; ++step)
    cluster.world().run_for(500'000);
  CHECK(copies_of(cluster, key, other) == 4);
  CHECK(tablet(other).repaired_us <= killed_us);
  cluster[*outside].start();
  CHECK(
      cluster.world().run_until([&] { return tablet(other).repaired_us > killed_us; }, 20'000'000));
}

}  // namespace tetrad::simulation
