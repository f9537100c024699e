// SPDX-License-Identifier: Apache-2.0
// A node that ends says so: the others do not wait for its silence.
#include <catch2/catch.hpp>

#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

TEST_CASE("a node that ends is down for the others as soon as it says so, until its next start") {
  SimCluster cluster(3);
  for (int i = 0; i < 3; ++i) cluster.add(1, 1);
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

}  // namespace tetrad::simulation
