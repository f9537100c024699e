// SPDX-License-Identifier: Apache-2.0
// What the leader begins of a plan: sets that change count as they will be, limits, unknown sizes.
#include "replication/tablets/balance_plan.h"

#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::replication {
namespace {

using partitioner::Tablet;
using partitioner::TabletStage;

HostId host(uint8_t number) {
  HostId id;
  id.value.octets[15] = number;
  return id;
}

/// Five nodes, of which the first four hold all tablets of a table; each tablet weighs the same.
struct Grown {
  explicit Grown(uint64_t tablets) {
    for (uint8_t i = 1; i <= 5; ++i) {
      nodes.push_back({host(i), "dc", "rack" + std::to_string(i), {}, 1});
      NodeInfo node;
      node.host = host(i);
      node.state = NodeState::kNormal;
      state.nodes[node.host] = node;
    }
    std::vector<Tablet> all;
    for (uint64_t i = 0; i < tablets; ++i) {
      Tablet tablet;
      tablet.id = TabletId{i + 1};
      tablet.range = {i == 0 ? RingPosition::lowest() : all.back().range.end,
                      i + 1 == tablets ? RingPosition::highest()
                                       : RingPosition{static_cast<int64_t>(i) + 1, 0}};
      tablet.epoch = SetEpoch{7};
      for (uint8_t member = 1; member <= 4; ++member) tablet.replicas.push_back({host(member), 0});
      all.push_back(tablet);
    }
    put(std::move(all));
  }
  void put(std::vector<Tablet> tablets) {
    auto table = std::make_shared<TableInfo>();
    table->tablets = partitioner::TabletMap(std::move(tablets));
    state.tables.put(table->id, table);
  }
  std::vector<Tablet> tablets() const { return state.tables.begin()->second->tablets.tablets(); }
  std::vector<BalanceChange> plan() const {
    const BalanceView view{state,
                           nodes,
                           [this](TabletId id) -> std::optional<uint64_t> {
                             if (unknown.contains(id)) return std::nullopt;
                             const auto known = bytes.find(id);
                             return known == bytes.end() ? 10 << 20 : known->second;
                           },
                           [this](const StoreAddress& store) {
                             StoreOutlook seen;
                             seen.is_live = !down.contains(store.host);
                             return seen;
                           },
                           proposed,
                           held};
    return balance_changes(view, {}, limits);
  }

  std::set<TabletId> held;
  MetaState state;
  std::vector<partitioner::RingNode> nodes;
  std::set<TabletId> unknown;
  std::map<TabletId, uint64_t> bytes;  // of the others 10 MiB
  std::set<HostId> down;
  std::map<TabletId, std::vector<StoreAddress>> proposed;
  BalanceLimits limits;
};

}  // namespace

TEST_CASE("an empty node gets tablets, two for a store at once, members in their places") {
  Grown grown(40);
  const auto changes = grown.plan();
  REQUIRE(changes.size() == 2);
  for (const BalanceChange& change : changes) {
    CHECK(change.to == StoreAddress{host(5), 0});
    CHECK(change.epoch == SetEpoch{7});
    CHECK(change.bytes == 10 << 20);
    REQUIRE(change.members.size() == 4);
    for (uint8_t i = 0; i < 4; ++i) {
      const StoreAddress was{host(static_cast<uint8_t>(i + 1)), 0};
      CHECK(change.members[i] == (was == change.from ? change.to : was));
    }
  }
  grown.limits.per_store = 100;
  CHECK(grown.plan().size() == 8);
  grown.limits.per_node = 100;
  CHECK(grown.plan().size() == 10);  // twice as many as nodes
  grown.limits.per_node_of_cluster = 100;
  CHECK(grown.plan().size() == 31);  // of 32 that it lacks: within 5 %
}

TEST_CASE("no set comes to name a node twice, whatever there is room for") {
  base::Random random(7);
  size_t changes = 0;
  for (int round = 0; round < 2'000; ++round) {
    Grown grown(4 + random.below(30));
    grown.limits = {1 + random.below(3), 1 + random.below(8), 1 + random.below(3)};
    auto tablets = grown.tablets();
    for (Tablet& tablet : tablets) {
      const auto left_out = static_cast<size_t>(random.below(5));
      tablet.replicas.clear();
      for (uint8_t member = 1; member <= 5; ++member)
        if (member != left_out + 1) tablet.replicas.push_back({host(member), 0});
      grown.bytes[tablet.id] = random.below(100) << 20;
    }
    grown.put(std::move(tablets));
    for (const BalanceChange& change : grown.plan()) {
      std::set<HostId> hosts;
      for (const StoreAddress& member : change.members) hosts.insert(member.host);
      REQUIRE(hosts.size() == 4);
      ++changes;
    }
  }
  CHECK(changes > 1'000);
}

TEST_CASE("what is coming to a store counts as there, proposed or begun") {
  Grown grown(40);
  grown.limits = {100, 100, 100};
  auto tablets = grown.tablets();
  for (size_t i = 0; i < 20; ++i) {
    tablets[i].stage = TabletStage::kStream;
    tablets[i].new_replicas = tablets[i].replicas;
    tablets[i].new_replicas[i % 4] = {host(5), 0};
  }
  for (size_t i = 20; i < 30; ++i) {
    auto members = tablets[i].replicas;
    members[i % 4] = {host(5), 0};
    grown.proposed[tablets[i].id] = members;
  }
  grown.put(std::move(tablets));
  const auto left = grown.plan();
  CHECK(left.size() <= 2);
  for (const BalanceChange& change : left) CHECK(change.tablet.value > 30);
  grown.limits = {};
  CHECK(grown.plan().empty());  // more than two are on their way
}

TEST_CASE("sets with a member that is down stay; nothing goes to a node that is down") {
  Grown grown(40);
  grown.down = {host(2)};
  CHECK(grown.plan().empty());
  grown.down = {host(5)};
  CHECK(grown.plan().empty());
}

TEST_CASE("tablets of unknown size stay, and all do while too many are unknown") {
  Grown grown(40);
  grown.limits = {100, 100, 100};
  grown.unknown = {TabletId{1}, TabletId{2}};
  const auto changes = grown.plan();
  CHECK_FALSE(changes.empty());
  for (const BalanceChange& change : changes) CHECK(change.tablet.value > 2);
  grown.unknown.insert(TabletId{3});
  CHECK(grown.plan().empty());
}

}  // namespace tetrad::replication
