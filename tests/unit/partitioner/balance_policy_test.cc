// SPDX-License-Identifier: Apache-2.0
#include "partitioner/balance_policy.h"

#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "partitioner/placement.h"
#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::partitioner {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
const MayGet kAny = [](const StoreAddress&) { return true; };

std::vector<BalanceTablet> placed(const std::vector<RingNode>& nodes, uint32_t count,
                                  const std::function<uint64_t()>& bytes) {
  StoreLoad load;
  PlacementOptions options;
  options.tablets = count;
  std::vector<BalanceTablet> tablets;
  const auto map = place_table(Ring(nodes), options, load);
  REQUIRE(map);
  for (const Tablet& tablet : *map) tablets.push_back({tablet.replicas, bytes(), true});
  return tablets;
}

uint64_t carry_out(std::vector<BalanceTablet>& tablets, const std::vector<BalanceMove>& moves) {
  uint64_t bytes = 0;
  for (const BalanceMove& move : moves) {
    std::vector<StoreAddress>& members = tablets[move.tablet].members;
    const auto member = std::ranges::find(members, move.from);
    REQUIRE(member != members.end());
    *member = move.to;
    CHECK(tablets[move.tablet].bytes == move.bytes);
    bytes += move.bytes;
  }
  return bytes;
}

/// The most that any node is away from the mean, as a part of it.
double farthest(const std::vector<RingNode>& nodes, const std::vector<BalanceTablet>& tablets) {
  std::map<HostId, double> bytes;
  double total = 0;
  for (const BalanceTablet& tablet : tablets) {
    for (const StoreAddress& member : tablet.members) {
      bytes[member.host] += static_cast<double>(tablet.bytes);
      total += static_cast<double>(tablet.bytes);
    }
  }
  const double mean = total / static_cast<double>(nodes.size());
  double most = 0;
  for (const RingNode& node : nodes)
    most = std::max(most, std::abs(bytes[node.host] - mean) / mean);
  return most;
}

void check_sets(const std::vector<BalanceTablet>& tablets) {
  for (const BalanceTablet& tablet : tablets) {
    std::set<HostId> hosts;
    for (const StoreAddress& member : tablet.members) hosts.insert(member.host);
    CHECK(hosts.size() == tablet.members.size());
  }
}

size_t excess_of_all(const std::vector<RingNode>& nodes, const std::vector<BalanceTablet>& all) {
  size_t excess = 0;
  for (const BalanceTablet& tablet : all) excess += rack_excess(nodes, tablet.members, "dc1");
  return excess;
}

}  // namespace

TEST_CASE("a fifth node takes its share, with hardly more bytes than it lacks") {
  auto tablets = placed(ring_nodes(4, 1, 2), 200, [] { return 64 * kMiB; });
  CHECK(plan_balance(ring_nodes(4, 1, 2), tablets, kAny, {}).empty());
  const auto five = ring_nodes(5, 1, 2);
  const uint64_t least = least_balance_bytes(five, tablets, {});
  const auto plan = plan_balance(five, tablets, kAny, {});
  CHECK(plan == plan_balance(five, tablets, kAny, {}));
  const uint64_t moved = carry_out(tablets, plan);
  CHECK(static_cast<double>(moved) <= 1.02 * static_cast<double>(least));
  CHECK(farthest(five, tablets) < 0.06);
  check_sets(tablets);
  for (const BalanceMove& move : plan) CHECK(move.to.host == host_number(5));
  CHECK(plan_balance(five, tablets, kAny, {}).empty());
}

TEST_CASE("few tablets are spread as far as whole ones can be") {
  auto tablets = placed(ring_nodes(4), 4, [] { return uint64_t{0}; });
  const auto five = ring_nodes(5);
  const auto plan = plan_balance(five, tablets, kAny, {});
  CHECK(plan.size() == 3);
  carry_out(tablets, plan);
  CHECK(plan_balance(five, tablets, kAny, {}).empty());
}

TEST_CASE("new nodes take their share of each table") {
  // A small table of full tablets, and one of many that are empty: with one weight for both the new
  // nodes would take all that is heavy.
  const auto three = ring_nodes(3);
  auto tablets = placed(three, 40, [] { return kMiB * 6 / 10; });
  for (BalanceTablet& empty : placed(three, 64, [] { return uint64_t{0}; })) {
    empty.table = 1;
    tablets.push_back(empty);
  }
  const auto six = ring_nodes(6);
  carry_out(tablets, plan_balance(six, tablets, kAny, {}));
  check_sets(tablets);
  CHECK(plan_balance(six, tablets, kAny, {}).empty());
  CHECK(farthest(six, tablets) < 0.12);
  for (const size_t table : {0, 1}) {
    std::map<HostId, size_t> members;
    size_t all = 0;
    for (const BalanceTablet& tablet : tablets)
      if (tablet.table == table)
        for (const StoreAddress& member : tablet.members) {
          ++members[member.host];
          ++all;
        }
    for (const RingNode& node : six) {
      CHECK(members[node.host] * six.size() >= all * 80 / 100);
      CHECK(members[node.host] * six.size() <= all * 120 / 100);
    }
  }
}

TEST_CASE("what may not move stays, and who may not get gets nothing") {
  auto tablets = placed(ring_nodes(4), 40, [] { return kMiB; });
  const auto five = ring_nodes(5, 1, 2);
  for (size_t i = 0; i < 20; ++i) tablets[i].may_move = false;
  for (const BalanceMove& move : plan_balance(five, tablets, kAny, {})) CHECK(move.tablet >= 20);
  const MayGet second = [](const StoreAddress& store) { return store.store == 1; };
  const auto plan = plan_balance(five, tablets, second, {});
  CHECK_FALSE(plan.empty());
  for (const BalanceMove& move : plan) CHECK(move.to.store == 1);
  const MayGet none = [](const StoreAddress&) { return false; };
  CHECK(plan_balance(five, tablets, none, {}).empty());
  BalanceOptions one;
  one.moves_max = 1;
  CHECK(plan_balance(five, tablets, kAny, one).size() == 1);
}

TEST_CASE("members in excess of a rack's share are counted") {
  const auto nodes = ring_nodes(8, 4);  // node i on rack i % 4
  const auto set = [](std::vector<uint8_t> hosts) {
    std::vector<StoreAddress> members;
    for (const uint8_t host : hosts) members.push_back({host_number(host), 0});
    return members;
  };
  CHECK(rack_excess(nodes, set({1, 2, 3, 4}), "dc1") == 0);
  CHECK(rack_excess(nodes, set({1, 5, 3, 4}), "dc1") == 1);
  CHECK(rack_excess(nodes, set({1, 5, 2, 6}), "dc1") == 2);
  CHECK(rack_excess(nodes, set({1, 5, 2, 6}), "dc2") == 0);
  CHECK(rack_excess(ring_nodes(6, 3), set({1, 4, 2, 3}), "dc1") == 0);
  CHECK(rack_excess(ring_nodes(6, 3), set({1, 4, 2, 5}), "dc1") == 0);
}

TEST_CASE("random joins and leaves converge: the plan after a plan is empty") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    base::Random random(seed);
    const size_t racks = 1 + random.next() % 5;
    size_t count = 4 + random.next() % 4;
    auto tablets = placed(ring_nodes(count, racks, 2), 100 + random.next() % 200,
                          [&] { return (1 + random.next() % 256) * kMiB; });
    for (int step = 0; step < 4; ++step) {
      count += 1 + random.next() % 3;
      const auto nodes = ring_nodes(count, racks, 2);
      const uint64_t least = least_balance_bytes(nodes, tablets, {});
      const size_t excess = excess_of_all(nodes, tablets);
      const double before = farthest(nodes, tablets);
      const auto plan = plan_balance(nodes, tablets, kAny, {});
      const uint64_t moved = carry_out(tablets, plan);
      CHECK(static_cast<double>(moved) <= 1.1 * static_cast<double>(least));
      CHECK(farthest(nodes, tablets) <= before + 1e-9);
      if (racks == 1) CHECK(farthest(nodes, tablets) < 0.15);
      CHECK(excess_of_all(nodes, tablets) <= excess);
      check_sets(tablets);
      CHECK(plan_balance(nodes, tablets, kAny, {}).empty());
      // Sizes that differ a little from those that were planned with turn nothing back.
      for (BalanceTablet& tablet : tablets)
        tablet.bytes += tablet.bytes / 100 * (random.next() % 3);
      for (const BalanceMove& move : plan_balance(nodes, tablets, kAny, {}))
        for (const BalanceMove& old : plan)
          CHECK_FALSE((move.tablet == old.tablet && move.from == old.to && move.to == old.from));
    }
  }
}

}  // namespace tetrad::partitioner
