// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include <catch2/catch.hpp>

#include "replication/meta/voter_policy.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

TEST_CASE("a node without seeds serves at once") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimCluster cluster(seed, 1);
    cluster[0].options().seeds.clear();
    const auto begin_us = cluster.world().now_us();
    REQUIRE(cluster.form());
    CHECK(cluster.world().now_us() - begin_us < 50'000);
    CHECK(cluster[0].state()->nodes.size() == 1);
    CHECK(cluster[0].state()->secret.size() == 32);
  }
}

TEST_CASE("one to six nodes started at once form one cluster within a second") {
  for (size_t nodes = 1; nodes <= 6; ++nodes) {
    for (uint64_t seed = 1; seed <= seed_count(10); ++seed) {
      INFO("nodes=" << nodes << " seed=" << seed);
      SimCluster cluster(seed, nodes);
      const auto begin_us = cluster.world().now_us();
      REQUIRE(cluster.form());
      CHECK(cluster.world().now_us() - begin_us < 1'000'000);
      const auto& first = *cluster[0].state();
      for (size_t i = 0; i < nodes; ++i) {
        CHECK(cluster[i].state()->cluster_id == first.cluster_id);
        CHECK(cluster[i].state()->nodes.size() == nodes);
      }
      const size_t voters_wanted = replication::voters_wanted(nodes);
      CHECK(cluster.world().run_until(
          [&] {
            const auto leader = cluster.leader();
            return leader && cluster[*leader]
                                     .node()
                                     .meta_group()
                                     .driver()
                                     ->core()
                                     .configuration()
                                     .voters.size() == voters_wanted;
          },
          5'000'000));
      CHECK(cluster.world().run_until(
          [&] {
            for (size_t i = 0; i < nodes; ++i)
              if (cluster[i].node().membership().live_hosts().size() != nodes - 1) return false;
            return true;
          },
          2'000'000));
      // A learner of two has its state from an image, with no entry behind it.
      CHECK(cluster.world().run_until(
          [&] {
            for (size_t i = 0; i < nodes; ++i)
              for (const auto& [host, node] : cluster[i].state()->nodes)
                if (cluster[i].node().membership().applied_of(host) < cluster[i].state()->applied)
                  return false;
            return true;
          },
          3'000'000));
    }
  }
}

TEST_CASE("nodes form a cluster over a network that loses and delays") {
  for (uint64_t seed = 1; seed <= seed_count(10); ++seed) {
    INFO("seed=" << seed);
    SimCluster cluster(seed, 4);
    cluster.network().options.lost_in_million = 50'000;
    cluster.network().options.slow_one_in = 10;
    REQUIRE(cluster.form(30'000'000));
  }
}

TEST_CASE("a wiped seed joins the others again, whichever it is") {
  for (uint64_t seed = 1; seed <= seed_count(6); ++seed) {
    INFO("seed=" << seed);
    SimCluster cluster(seed, 3);
    REQUIRE(cluster.form());
    cluster.world().run_for(5'000'000);
    const size_t wiped = seed % 3;
    const Uuid id = cluster[(wiped + 1) % 3].state()->cluster_id;
    cluster[wiped].wipe();
    cluster.world().run_for(seed % 2 == 0 ? 100'000 : 5'000'000);
    cluster[wiped].start();
    REQUIRE(cluster.world().run_until([&] { return cluster[wiped].is_ready(); }, 10'000'000));
    CHECK(cluster[wiped].state()->cluster_id == id);
    for (size_t i = 0; i < 3; ++i) CHECK_FALSE(cluster[i].fatal());
  }
}

TEST_CASE("a silent seed is waited for, unless the operator's word is that there is no cluster") {
  SimCluster cluster(1, 3);
  cluster[0].start();
  cluster[1].start();
  cluster.world().run_for(60'000'000);
  CHECK_FALSE(cluster[0].is_ready());
  CHECK_FALSE(cluster[1].is_ready());
  cluster[1].kill();
  cluster[1].options().found = true;
  cluster[1].start();
  const auto both = [&] { return cluster[0].is_ready() && cluster[1].is_ready(); };
  REQUIRE(cluster.world().run_until(both, 10'000'000));
  CHECK(cluster[0].state()->cluster_id == cluster[1].state()->cluster_id);
  // The word counts once: where a seed has a cluster it does nothing.
  cluster[2].options().found = true;
  cluster[2].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[2].is_ready(); }, 10'000'000));
  CHECK(cluster[2].state()->cluster_id == cluster[0].state()->cluster_id);
}

TEST_CASE("a node that was taken out while it was away hears it, and joins as a new one") {
  SimCluster cluster(1, 4);
  bool removed = false;
  cluster[3].options().removed = [&] { removed = true; };
  REQUIRE(cluster.form());
  cluster.world().run_for(3'000'000);
  const HostId host = cluster[3].node().self();
  cluster[3].kill();
  bool done = false;
  const auto take_out = [](SimNode* node, HostId who, bool* ended) -> Task<void> {
    replication::MetaCommandBody body(
        replication::SetNodeState{who, replication::NodeState::kRemoved});
    const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
    auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
    *ended = proposed.has_value();
  };
  cluster[0].spawn(take_out(&cluster[0], host, &done));
  REQUIRE(cluster.world().run_until([&] { return done; }, 10'000'000));
  cluster[3].start();
  REQUIRE(cluster.world().run_until([&] { return removed; }, 20'000'000));
  CHECK_FALSE(cluster[3].is_ready());
  CHECK_FALSE(cluster[3].fatal());
  cluster[3].wipe();  // what the server does by setting the data aside
  cluster[3].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[3].is_ready(); }, 10'000'000));
  CHECK(cluster[3].node().self() != host);
  CHECK(cluster[3].state()->cluster_id == cluster[0].state()->cluster_id);
}

TEST_CASE("a restarted node keeps its host id and may come back elsewhere") {
  for (uint64_t seed = 1; seed <= seed_count(10); ++seed) {
    INFO("seed=" << seed);
    SimCluster cluster(seed, 3);
    REQUIRE(cluster.form());
    const HostId host = cluster[1].node().self();
    cluster[1].kill();
    cluster.world().run_for(3'000'000);
    cluster[1].options().address = "127.0.0.77";
    cluster[1].start();
    CHECK(cluster[1].node().self() == host);
    CHECK(cluster.world().run_until(
        [&] {
          for (size_t i = 0; i < 3; ++i) {
            const auto* node = cluster[i].state()->node(host);
            if (node == nullptr || node->address != "127.0.0.77") return false;
          }
          return true;
        },
        10'000'000));
    CHECK(cluster[0].state()->nodes.size() == 3);
  }
}

TEST_CASE("a node that was away serves when it knows what the members know") {
  for (const bool hears_a_leader : {true, false}) {
    SimCluster cluster(5, 3);
    World& world = cluster.world();
    REQUIRE(cluster.form(30'000'000));
    world.run_for(5'000'000);
    cluster[2].kill();
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 0, &created));
    REQUIRE(world.run_until([&] { return created; }, 10'000'000));
    if (!hears_a_leader) cluster.network().hold(replication::Verb::kRaft, cluster[2].endpoint());
    cluster[2].start();
    const int64_t began_us = world.now_us();
    REQUIRE(world.run_until([&] { return cluster[2].is_ready(); }, 10'000'000));
    const int64_t took_us = world.now_us() - began_us;
    CHECK((took_us < 1'000'000) == hears_a_leader);
    CHECK(cluster[2].state()->tables.size() == (hears_a_leader ? 1 : 0));
  }
}

TEST_CASE("a seed replays exactly") {
  const auto run = [](uint64_t seed) {
    SimCluster cluster(seed, 4);
    cluster.network().options.lost_in_million = 20'000;
    cluster.network().options.slow_one_in = 20;
    REQUIRE(cluster.form(30'000'000));
    cluster[2].power_cut();
    cluster.world().run_for(5'000'000);
    cluster[2].start();
    cluster.world().run_for(5'000'000);
    Bytes state;
    replication::encode_meta_state(*cluster[2].state(), state);
    return std::tuple(cluster.world().event_count(), cluster.network().delivered(), state);
  };
  CHECK((run(1) == run(1)));
  CHECK((run(2) == run(2)));
  CHECK((run(1) != run(2)));
}

TEST_CASE("a node of another cluster stays what it is, whatever its seeds say") {
  SimCluster cluster(1, 3);
  cluster[2].options().seeds.clear();
  for (size_t i = 0; i < 2; ++i)
    cluster[i].options().seeds = {cluster[0].endpoint(), cluster[1].endpoint()};
  REQUIRE(cluster.world().run_until(
      [&, started = false]() mutable {
        if (!started) cluster.start_all();
        started = true;
        return cluster[0].is_ready() && cluster[1].is_ready() && cluster[2].is_ready();
      },
      10'000'000));
  cluster[2].kill();
  cluster[2].options().seeds = cluster[1].options().seeds;
  const Uuid id = cluster[0].state()->cluster_id;
  cluster[2].start();
  cluster.world().run_for(30'000'000);
  CHECK_FALSE(cluster[2].fatal());
  CHECK(cluster[2].is_ready());
  CHECK(cluster[2].state()->cluster_id != id);
  CHECK(cluster[2].state()->nodes.size() == 1);
  CHECK(cluster[0].state()->nodes.size() == 2);
}

TEST_CASE("a node with another cluster name is refused with a reason") {
  SimCluster cluster(1, 2);
  for (size_t i = 0; i < 2; ++i) cluster[i].options().seeds = {cluster[0].endpoint()};
  cluster[1].options().cluster_name = "Other";
  cluster.start_all();
  REQUIRE(cluster.world().run_until([&] { return cluster[1].fatal().has_value(); }, 10'000'000));
  CHECK(cluster[1].fatal()->message.find("cluster_name is 'Other'") != std::string::npos);
}

TEST_CASE("a node that was given another cluster name since it got its data is refused") {
  for (const size_t nodes : {size_t{1}, size_t{3}}) {
    INFO("nodes=" << nodes);
    SimCluster cluster(nodes, nodes);
    REQUIRE(cluster.form());
    const std::string name = cluster[0].options().cluster_name;
    for (size_t i = 0; i < nodes; ++i) cluster[i].kill();
    cluster.world().run_for(1'000'000);
    cluster[0].options().cluster_name = "Other";
    cluster[0].start();
    REQUIRE(cluster.world().run_until([&] { return cluster[0].fatal().has_value(); }, 10'000'000));
    CHECK(cluster[0].fatal()->code == ErrorCode::kConfig);
    CHECK(cluster[0].fatal()->message.find(
              "saved name '" + name + "' != the configured name 'Other'") != std::string::npos);
    CHECK_FALSE(cluster[0].is_ready());
    cluster[0].kill();
    cluster[0].options().cluster_name = name;
    for (size_t i = 0; i < nodes; ++i) cluster[i].start();
    CHECK(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 10'000'000));
  }
}

TEST_CASE("a node that was given another data center since it joined is refused") {
  for (const size_t nodes : {size_t{1}, size_t{3}}) {
    INFO("nodes=" << nodes);
    SimCluster cluster(nodes, nodes);
    REQUIRE(cluster.form());
    const std::string center = cluster[0].options().data_center;
    for (size_t i = 0; i < nodes; ++i) cluster[i].kill();
    cluster.world().run_for(1'000'000);
    cluster[0].options().data_center = "elsewhere";
    cluster[0].start();
    for (size_t i = 1; i < nodes; ++i) cluster[i].start();
    REQUIRE(cluster.world().run_until([&] { return cluster[0].fatal().has_value(); }, 10'000'000));
    CHECK(cluster[0].fatal()->code == ErrorCode::kConfig);
    CHECK(cluster[0].fatal()->message.starts_with("datacenter: "));
    CHECK(cluster[0].fatal()->message.find("'" + center + "'") != std::string::npos);
    cluster[0].kill();
    cluster[0].options().data_center = center;
    cluster[0].options().rack = "another";  // which may change
    cluster[0].start();
    CHECK(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 10'000'000));
    CHECK(cluster.world().run_until(
        [&] { return cluster[0].state()->node(cluster[0].node().self())->rack == "another"; },
        10'000'000));
  }
}

}  // namespace tetrad::simulation
