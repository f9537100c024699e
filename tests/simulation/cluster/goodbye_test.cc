// SPDX-License-Identifier: Apache-2.0
// When a node counts as down: it has said that it ends, or nobody listens where it was. Others do not
// wait for as long as its silence alone would take.
#include <catch2/catch.hpp>

#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

TEST_CASE("a node that ends is down for the others as soon as it says so, until its next start") {
  SimCluster cluster(3, 3);
  REQUIRE(cluster.form(30'000'000));
  World& world = cluster.world();
  const HostId ending = cluster[2].node().self();
  const auto sees = [&](bool is_live) {
    return cluster[0].node().meta().is_live(ending) == is_live &&
           cluster[1].node().meta().is_live(ending) == is_live;
  };
  REQUIRE(world.run_until([&] { return sees(true); }, 5'000'000));

  cluster[2].node().membership().say_goodbye();
  // A heartbeat interval is 200 ms, and a silence of one makes nobody suspicious.
  CHECK(world.run_until([&] { return sees(false); }, 150'000));
  // It still answers what it has begun, and its further heartbeats do not bring it back.
  bool stays_down = true;
  world.run_until([&] { return !(stays_down = stays_down && sees(false)); }, 2'000'000);
  CHECK(stays_down);
  CHECK(cluster[2].node().meta().is_live(cluster[0].node().self()));

  cluster[2].kill();
  cluster[2].start();
  CHECK(world.run_until([&] { return sees(true); }, 5'000'000));
}

TEST_CASE("a node that is not heard counts as down soon where nobody listens at its address") {
  SimCluster cluster(3, 3);
  REQUIRE(cluster.form(30'000'000));
  World& world = cluster.world();
  const HostId other = cluster[2].node().self();
  const auto is_live = [&] { return cluster[0].node().meta().is_live(other); };
  REQUIRE(world.run_until(is_live, 5'000'000));
  world.run_for(2'000'000);

  // Heard, and not reached from here: what the others say of it stays true.
  for (int i = 0; i < 20; ++i) {
    cluster.network().refuse(cluster[0].endpoint(), cluster[2].endpoint());
    world.run_for(50'000);
    CHECK(is_live());
  }
  cluster[2].kill();
  const base::MonotonicUs killed_us = world.now_us();
  // As a transport that tries again at each heartbeat.
  while (is_live() && world.now_us() < killed_us + 3'000'000) {
    cluster.network().refuse(cluster[0].endpoint(), cluster[2].endpoint());
    world.run_for(200'000);
  }
  CHECK(world.now_us() <= killed_us + 800'000);
  // The third has not tried: silence alone takes some 18 heartbeats.
  CHECK(cluster[1].node().meta().is_live(other));
  CHECK(world.run_until([&] { return !cluster[1].node().meta().is_live(other); }, 5'000'000));

  cluster[2].start();
  CHECK(world.run_until(is_live, 5'000'000));
}

}  // namespace tetrad::simulation
