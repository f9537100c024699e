// SPDX-License-Identifier: Apache-2.0
// Nodes whose disks are in trouble: what the others make of it.
#include <catch2/catch.hpp>

#include "tests/simulation/support/cql_client.h"

namespace tetrad::simulation {
namespace {

using storage::StoreState;

constexpr int64_t kSecondUs = 1'000'000;

/// Four nodes of two stores with ks.t on three of them.
struct TroubledCluster {
  explicit TroubledCluster(uint64_t seed) : cluster(seed, 4, 2, 2) {
    REQUIRE(cluster.form(30 * kSecondUs));
    CqlClient client(cluster[0]);
    for (const char* text : {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                             "'replication_factor': 3}",
                             "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"})
      REQUIRE(client.run(text).result.has_value());
    cluster.world().run_for(10 * kSecondUs);
  }
  void tell(size_t node, uint32_t store, StoreState state) {
    cluster[node].faults(store).state = state;
    cluster.world().run_for(2 * kSecondUs);
  }

  SimCluster cluster;
};

}  // namespace

TEST_CASE("a leader of the metadata whose log hangs leaves leading to others") {
  for (uint64_t seed = 1; seed <= seed_count(3); ++seed) {
    INFO("seed=" << seed);
    TroubledCluster troubled(seed);
    SimCluster& cluster = troubled.cluster;
    const size_t stuck = *cluster.leader();
    cluster[stuck].log_faults.hangs = true;
    CqlClient client(cluster[(stuck + 1) % cluster.size()]);
    (void)client.run("CREATE TABLE ks.first (k int PRIMARY KEY)");  // something to write
    REQUIRE(cluster.world().run_until(
        [&] {
          const auto now = cluster.leader();
          return now && *now != stuck;
        },
        20 * kSecondUs));
    CHECK(client.run("CREATE TABLE ks.second (k int PRIMARY KEY)").result.has_value());
    cluster[stuck].log_faults.heal();
    cluster.world().run_for(10 * kSecondUs);
    CqlClient there(cluster[stuck]);
    CHECK(there.run("INSERT INTO ks.second (k) VALUES (1)").result.has_value());
  }
}

TEST_CASE("a store that hangs or has failed is absent, the others of its node are not") {
  TroubledCluster troubled(7);
  SimCluster& cluster = troubled.cluster;
  const HostId host = cluster[2].node().self();
  const StoreAddress good{host, 0}, bad{host, 1};
  const auto for_all = [&](auto holds) {
    for (size_t node = 0; node < cluster.size(); ++node)
      for (uint32_t shard = 0; shard < 2; ++shard)
        if (!holds(cluster[node].meta(shard))) return false;
    return true;
  };
  const auto told = [&](StoreState state) {
    return for_all([&](const replication::MetaService& meta) {
      return meta.state_of(bad) == state && meta.state_of(good) == StoreState::kServing;
    });
  };
  const auto lives = [&](const StoreAddress& replica) {
    return for_all([&](const replication::MetaService& meta) {
      return meta.is_live(host) && meta.is_replica_live(replica);
    });
  };
  CHECK(told(StoreState::kServing));
  for (const StoreState here : {StoreState::kFull, StoreState::kDamaged}) {
    cluster[2].faults(1).state = here;
    CHECK(cluster.world().run_until([&] { return told(here); }, 2 * kSecondUs));
    CHECK((lives(good) && lives(bad)));
  }
  // What is damaged is soon given up, erased and begun anew.
  CHECK(cluster.world().run_until([&] { return told(StoreState::kServing); }, 60 * kSecondUs));
  for (const StoreState absent : {StoreState::kHung, StoreState::kFailed}) {
    troubled.tell(2, 1, absent);
    CHECK(told(absent));
    CHECK(lives(good));
    CHECK(for_all([&](const auto& meta) { return !meta.is_replica_live(bad); }));
    CqlClient client(cluster[0]);
    for (int key = 0; key < 10; ++key)
      CHECK(client.run(fmt::format("INSERT INTO ks.t (k, v) VALUES ({}, 1)", key))
                .result.has_value());
  }
  // A new start of the program tells anew; one that is silent keeps what it last told.
  cluster[2].kill();
  cluster.world().run_for(10 * kSecondUs);
  CHECK(cluster[0].meta(1).state_of(bad) == StoreState::kFailed);
  CHECK_FALSE(cluster[0].meta(1).is_replica_live(good));
  cluster[2].faults(1).heal();
  cluster[2].start();
  cluster.world().run_for(10 * kSecondUs);
  CHECK((told(StoreState::kServing) && lives(bad)));
}

TEST_CASE(
    "a read ends when the store beside its coordinator fails at once and no more replicas live") {
  TroubledCluster troubled(3);
  SimCluster& cluster = troubled.cluster;
  CqlClient client(cluster[0]);
  cluster[3].kill();
  cluster.world().run_for(10 * kSecondUs);
  int failed = 0;
  for (int key = 0; key < 20; ++key) {
    INFO("key=" << key);
    for (uint32_t store = 0; store < 2; ++store)
      cluster[0].faults(store).fail_next(StoreCall::kRead, Error(ErrorCode::kIo, "EIO"));
    const auto answer = client.run(fmt::format("SELECT v FROM ks.t WHERE k = {}", key));
    failed += answer.result.has_value() ? 0 : 1;
    for (uint32_t store = 0; store < 2; ++store) cluster[0].faults(store).next_errors.clear();
  }
  CHECK(failed > 0);
}

}  // namespace tetrad::simulation
