// SPDX-License-Identifier: Apache-2.0
// Nodes whose disks fill up: what coordinators make of it.
#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "tests/simulation/support/cql_client.h"

namespace tetrad::simulation {

namespace {

using replication::DiskUsage;

constexpr int64_t kSecondUs = 1'000'000;
const std::string kStuffed =
    "Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold";
const std::string kFull =
    "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds "
    "failure "
    "threshold";

/// Four nodes with ks.t on three of them; disks are measured each half second.
struct GuardedCluster {
  SimCluster cluster;

  explicit GuardedCluster(uint64_t seed, bool all_measure = true) : cluster(seed, 4, 2, 2) {
    for (size_t i = 0; i < cluster.size(); ++i) {
      if (all_measure || i == 3) cluster[i].options().disk_usage.limits = {70, 90, 0};
      cluster[i].options().disk_usage.period_us = kSecondUs / 2;
    }
    REQUIRE(cluster.form(30 * kSecondUs));
    CqlClient client(cluster[0]);
    for (const char* text : {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                             "'replication_factor': 3}",
                             "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"})
      REQUIRE(client.run(text).result.has_value());
    cluster.world().run_for(30 * kSecondUs);  // tablets find their places
  }
  /// Whether a node is a replica of the partition.
  bool holds(size_t node, int key) {
    const auto state = cluster[0].state();
    const auto& table = *state->tables.begin()->second;
    Bytes bytes(4, '\0');
    bytes[3] = static_cast<char>(key);
    for (const StoreAddress& replica : table.tablets.find(partitioner::position_of(bytes)).replicas)
      if (replica.host == cluster[node].node().self()) return true;
    return false;
  }
  void use(size_t node, uint64_t bytes) {
    cluster[node].disk_gauge.used_bytes = bytes;
    cluster.world().run_for(2 * kSecondUs);
  }
  /// The error's text, else the warnings.
  std::string insert(CqlClient& client, int key) {
    const auto answer =
        client.run(fmt::format("INSERT INTO ks.t (k, v) VALUES ({}, 1) USING TIMEOUT 5s", key));
    if (!answer.result) {
      CHECK((answer.result.error().code == ErrorCode::kInvalid ||
             answer.result.error().code == ErrorCode::kOverloaded));
      return answer.result.error().message;
    }
    std::string out;
    for (const std::string& warning : answer.warnings) out += warning;
    return out;
  }
};

}  // namespace

TEST_CASE("every coordinator refuses writes to a replica that is full, until it is not") {
  for (uint64_t seed = 1; seed <= seed_count(2); ++seed) {
    INFO("seed=" << seed);
    GuardedCluster guarded(seed);
    SimCluster& cluster = guarded.cluster;
    const auto everywhere = [&](auto expected) {
      for (size_t node = 0; node < cluster.size(); ++node) {
        CqlClient client(cluster[node]);
        for (int key = 0; key < 12; ++key) {
          INFO("node=" << node << " key=" << key);
          CHECK(guarded.insert(client, key) == expected(key));
        }
        for (uint32_t shard = 0; shard < 2; ++shard)
          CHECK(cluster[node].meta(shard).filling_disks() == cluster[node].meta(0).filling_disks());
      }
    };
    const auto nothing = [](int) { return std::string(); };
    size_t victim = 3;
    while (!guarded.holds(victim, 0)) --victim;
    everywhere(nothing);
    CHECK(cluster[0].meta(1).filling_disks().empty());
    CHECK(cluster[victim].disk_gauge.measured > 10);

    guarded.use(victim, 950);
    CHECK(cluster[0].meta(1).filling_disks().at(cluster[victim].node().self()) == DiskUsage::kFull);
    everywhere([&](int key) { return guarded.holds(victim, key) ? kFull : std::string(); });
    CqlClient client(cluster[1]);
    for (int key = 0; key < 12; ++key) {
      if (!guarded.holds(victim, key)) continue;
      const auto removed = client.run(fmt::format("DELETE FROM ks.t WHERE k = {}", key));
      REQUIRE_FALSE(removed.result.has_value());
      CHECK(removed.result.error().message == kFull);
      CHECK(client.run(fmt::format("SELECT v FROM ks.t WHERE k = {}", key)).result.has_value());
    }

    guarded.use(victim, 800);
    for (int key = 0; key < 12; ++key) {
      CqlClient fresh(cluster[2]);
      CHECK(guarded.insert(fresh, key) == (guarded.holds(victim, key) ? kStuffed : std::string()));
    }
    guarded.use(victim, 700);
    everywhere(nothing);
    CHECK(cluster[0].meta(1).filling_disks().empty());
  }
}

TEST_CASE("a full node is known by those that start later, and where nobody else measures") {
  GuardedCluster guarded(5, false);
  SimCluster& cluster = guarded.cluster;
  guarded.use(3, 990);
  const HostId full = cluster[3].node().self();
  CHECK(cluster[0].disk_gauge.measured == 2);  // once by each shard, for the room of hints
  CHECK(cluster[0].meta(0).filling_disks().at(full) == DiskUsage::kFull);
  cluster[1].kill();
  cluster[1].start();
  cluster.world().run_for(5 * kSecondUs);
  CHECK(cluster[1].meta(1).filling_disks().at(full) == DiskUsage::kFull);
  // Away: what it last told holds. Back with room: its first heartbeats tell.
  cluster[3].kill();
  cluster.world().run_for(10 * kSecondUs);
  CHECK(cluster[0].meta(1).filling_disks().at(full) == DiskUsage::kFull);
  cluster[3].disk_gauge.used_bytes = 100;
  cluster[3].start();
  cluster.world().run_for(5 * kSecondUs);
  CHECK(cluster[0].meta(1).filling_disks().empty());
  // A gauge that fails changes nothing.
  guarded.use(3, 950);
  guarded.use(3, 5000);
  CHECK(cluster[0].meta(1).filling_disks().at(full) == DiskUsage::kFull);
}

TEST_CASE("a disk without room takes deletions, DROP and TRUNCATE, and no inserts") {
  GuardedCluster guarded(11, false);
  SimCluster& cluster = guarded.cluster;
  cluster[3].options().disk_usage.limits = {};
  cluster[3].options().disk_usage.room_bytes = 60;
  cluster[3].kill();
  cluster[3].start();
  cluster.world().run_for(10 * kSecondUs);
  std::vector<int> held;
  for (int key = 0; key < 12; ++key)
    if (guarded.holds(3, key)) held.push_back(key);
  REQUIRE_FALSE(held.empty());
  CqlClient client(cluster[1]);
  const auto run = [&](const std::string& text) { return client.run(text).result; };
  for (const int key : held) CHECK(guarded.insert(client, key) == "");

  guarded.use(3, 950);
  CHECK(cluster[0].meta(1).filling_disks().at(cluster[3].node().self()) == DiskUsage::kNoRoom);
  for (size_t node = 0; node < cluster.size(); ++node) {
    CqlClient there(cluster[node]);
    for (int key = 0; key < 12; ++key) {
      INFO("node=" << node << " key=" << key);
      const auto answer = there.run(fmt::format("UPDATE ks.t SET v = 2 WHERE k = {}", key)).result;
      CHECK(answer.has_value() == !guarded.holds(3, key));
      if (answer) continue;
      CHECK(answer.error().code == ErrorCode::kOverloaded);
      CHECK(answer.error().message.starts_with("the disk of 127.0.0.4 is full"));
    }
  }
  for (const int key : held) {
    CHECK(run(fmt::format("SELECT v FROM ks.t WHERE k = {}", key)).has_value());
    CHECK(run(fmt::format("DELETE FROM ks.t WHERE k = {}", key)).has_value());
  }
  CHECK(run("TRUNCATE ks.t").has_value());
  CHECK(run("CREATE TABLE ks.u (k int PRIMARY KEY)").has_value());
  CHECK(run("DROP TABLE ks.u").has_value());

  // Who is away cannot be what inserts wait for.
  cluster[3].kill();
  cluster.world().run_for(10 * kSecondUs);
  for (const int key : held) CHECK(guarded.insert(client, key) == "");
  cluster[3].start();
  cluster.world().run_for(10 * kSecondUs);
  guarded.use(3, 950);
  CHECK(guarded.insert(client, held.front()).starts_with("the disk of 127.0.0.4 is full"));
  guarded.use(3, 940);
  for (const int key : held) CHECK(guarded.insert(client, key) == "");
}

TEST_CASE(
    "thresholds of partitions have tablets swept that have changed, though nothing is deleted") {
  for (const bool measures : {false, true}) {
    INFO("measures=" << measures);
    SimCluster cluster(3, 1);
    replication::PurgeOptions& purge = cluster[0].data_options.purge;
    purge.look_every_us = kSecondUs / 10;
    purge.period_us = kSecondUs;
    if (measures) purge.partitions.bytes_warn = 1000;
    REQUIRE(cluster.form());
    CqlClient client(cluster[0]);
    for (const char* text :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
          "'replication_factor': 1}",
          "CREATE TABLE ks.t (k int PRIMARY KEY, v int)", "INSERT INTO ks.t (k, v) VALUES (1, 1)"})
      REQUIRE(client.run(text).result.has_value());
    const auto swept = [&] { return cluster[0].data().purges().metrics().tablets.value(); };
    cluster.world().run_for(70 * kSecondUs);
    const uint64_t first = swept();
    CHECK((first != 0) == measures);
    cluster.world().run_for(200 * kSecondUs);
    CHECK(swept() == first);
    REQUIRE(client.run("INSERT INTO ks.t (k, v) VALUES (2, 1)").result.has_value());
    cluster.world().run_for(70 * kSecondUs);
    CHECK(swept() == first + (measures ? 1 : 0));
  }
}

}  // namespace tetrad::simulation
