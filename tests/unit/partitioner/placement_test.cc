// SPDX-License-Identifier: Apache-2.0
#include "partitioner/placement.h"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::partitioner {

namespace {
std::set<HostId> hosts_of(const std::vector<StoreAddress>& replicas) {
  std::set<HostId> hosts;
  for (const StoreAddress& replica : replicas) hosts.insert(replica.host);
  return hosts;
}
}  // namespace

TEST_CASE("tokens of joining nodes spread evenly, are distinct and repeatable") {
  const auto nodes = ring_nodes(6);
  std::set<int64_t> tokens;
  for (const RingNode& node : nodes) {
    CHECK(node.tokens.size() == kTokensPerNode);
    tokens.insert(node.tokens.begin(), node.tokens.end());
  }
  CHECK(tokens.size() == 6 * kTokensPerNode);
  CHECK(choose_tokens(nodes, 16, 42) == choose_tokens(nodes, 16, 42));
  CHECK(choose_tokens(nodes, 16, 42) != choose_tokens(nodes, 16, 43));
  const Ring ring(nodes);
  std::vector<double> owned(nodes.size());
  for (size_t i = 0; i < ring.tokens().size(); ++i) {
    const auto [token, node] = ring.tokens()[i];
    const int64_t before =
        ring.tokens()[(i + ring.tokens().size() - 1) % ring.tokens().size()].first;
    owned[node] +=
        static_cast<double>(static_cast<uint64_t>(token) - static_cast<uint64_t>(before)) / 0x1p64;
  }
  for (const double share : owned) {
    CHECK(share > 0.5 / 6);
    CHECK(share < 2.0 / 6);
  }
}

TEST_CASE("up to four nodes every tablet is on all of them, in even parts") {
  for (size_t count = 1; count <= 4; ++count) {
    const Ring ring(ring_nodes(count, 2, 3));
    StoreLoad load;
    const auto tablets = place_table(ring, {.first_tablet_id = 10}, load);
    REQUIRE(tablets);
    REQUIRE(tablets->size() == 3);
    const TabletMap map(*tablets);
    for (size_t i = 0; i < tablets->size(); ++i) {
      const Tablet& tablet = (*tablets)[i];
      CHECK(tablet.id == TabletId{10 + i});
      CHECK(tablet.replicas.size() == count);
      CHECK(hosts_of(tablet.replicas).size() == count);
      const auto owners = ring.replicas_of(tablet.range.end.token, 4);
      CHECK(tablet.replicas.front().host == ring.nodes()[owners.front()].host);
    }
    for (const auto& [store, tablets_there] : load) CHECK(tablets_there == 1);
    CHECK(load.size() == count * 3);
  }
}

TEST_CASE("with more nodes any token's ring owner is a member of its tablet") {
  base::Random random(1);
  for (const size_t racks : {1, 2, 3, 7}) {
    const Ring ring(ring_nodes(7, racks, 2));
    StoreLoad load;
    const auto tablets = place_table(ring, {}, load);
    REQUIRE(tablets);
    const TabletMap map(*tablets);
    CHECK(tablets->size() > 8);
    for (int i = 0; i < 1000; ++i) {
      const auto token = static_cast<int64_t>(random.next());
      const Tablet& tablet = map.find({token, random.next()});
      std::set<HostId> wanted;
      for (const size_t node : ring.replicas_of(token, 4)) wanted.insert(ring.nodes()[node].host);
      CHECK(hosts_of(tablet.replicas) == wanted);
      // SimpleStrategy's first and NetworkTopologyStrategy's three are among them.
      for (const size_t node : ring.replicas_of(token, 3))
        CHECK(wanted.count(ring.nodes()[node].host) == 1);
    }
  }
}

TEST_CASE("a table lies on every store of a node, whatever other tables do") {
  const Ring ring(ring_nodes(3, 3, 4));
  StoreLoad load;
  for (const auto& node : ring.nodes()) load[{node.host, 2}] = 100;
  const auto tablets = place_table(ring, {}, load);
  REQUIRE(tablets);
  CHECK(tablets->size() == 4);
  std::set<StoreAddress> used;
  for (const Tablet& tablet : *tablets) used.insert(tablet.replicas.begin(), tablet.replicas.end());
  CHECK(used.size() == 12);
}

TEST_CASE("members lie on distinct racks while there are any") {
  const Ring ring(ring_nodes(8, 4));
  for (const auto& [token, node] : ring.tokens()) {
    std::set<std::string> racks;
    for (const size_t member : ring.replicas_of(token, 4)) racks.insert(ring.nodes()[member].rack);
    CHECK(racks.size() == 4);
  }
}

TEST_CASE("each data centre has members of its own") {
  auto nodes = ring_nodes(5);
  for (size_t i = 0; i < 2; ++i) nodes[i].data_center = "dc2";
  const Ring ring(nodes);
  CHECK(ring.everyone_everywhere(4));
  CHECK(ring.replicas_of(0, 4).size() == 5);
  CHECK(ring.replicas_of(0, 1).size() == 2);
}

TEST_CASE("a named number of tablets is honoured") {
  StoreLoad load;
  const auto four = place_table(Ring(ring_nodes(3)), {.tablets = 5}, load);
  REQUIRE(four);
  CHECK(four->size() == 5);
  const auto many = place_table(Ring(ring_nodes(6)), {.tablets = 500}, load);
  REQUIRE(many);
  CHECK(many->size() == 500);
  CHECK_FALSE(place_table(Ring(ring_nodes(1)), {.tablets = 5000}, load));
  CHECK_FALSE(place_table(Ring({}), {}, load));
}

TEST_CASE("a tablet that grows keeps its members and stores") {
  const auto nodes = ring_nodes(4, 4, 2);
  StoreLoad load;
  const auto tablets = place_table(Ring({nodes[0], nodes[1]}), {}, load);
  REQUIRE(tablets);
  for (const Tablet& tablet : *tablets) {
    const auto wanted = desired_replicas(Ring(nodes), tablet, 4, load, load);
    REQUIRE(wanted.size() == 4);
    for (const StoreAddress& member : tablet.replicas)
      CHECK(std::count(wanted.begin(), wanted.begin() + 2, member) == 1);
    CHECK(hosts_of(wanted).size() == 4);
  }
}

}  // namespace tetrad::partitioner
