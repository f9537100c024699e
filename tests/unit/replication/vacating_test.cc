// SPDX-License-Identifier: Apache-2.0
// Which store is vacated for its disk, and where its tablets go.
#include "replication/tablets/vacating.h"

#include <catch2/catch.hpp>

#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {
namespace {

using storage::StoreState;

constexpr int64_t kAfterUs = 1000;

HostId host(uint8_t number) {
  HostId id;
  id.value.octets[15] = number;
  return id;
}

/// `count` nodes of `stores` stores and one tablet on the first stores of the first four.
MetaState cluster_of(uint8_t count, uint32_t stores) {
  MetaState state;
  for (uint8_t i = 1; i <= count; ++i) {
    NodeInfo node;
    node.host = host(i);
    node.data_center = "dc";
    node.store_count = stores;
    node.state = NodeState::kNormal;
    state.nodes[node.host] = node;
  }
  auto table = std::make_shared<TableInfo>();
  partitioner::Tablet tablet;
  tablet.id = TabletId{1};
  tablet.range = {RingPosition::lowest(), RingPosition::highest()};
  tablet.epoch = SetEpoch{1};
  for (uint8_t i = 1; i <= std::min<uint8_t>(count, 4); ++i)
    tablet.replicas.push_back({host(i), 0});
  table->tablets = partitioner::TabletMap({tablet});
  state.tables.put(table->id, table);
  return state;
}

bool all_live(HostId) { return true; }

/// What it says of troubles that were first seen then.
std::optional<StoreAddress> vacated(const MetaState& state, const StoreTroubles& troubles,
                                    int64_t for_us) {
  Vacating vacating(kAfterUs);
  vacating.look(state, troubles, all_live, 5);
  vacating.look(state, troubles, all_live, 5 + for_us);
  return vacating.store();
}

std::optional<std::vector<StoreAddress>> members_of(const MetaState& state,
                                                    const StoreTroubles& troubles) {
  Vacating vacating(kAfterUs);
  vacating.look(state, troubles, all_live, 0);
  vacating.look(state, troubles, all_live, kAfterUs);
  std::vector<partitioner::RingNode> nodes;
  uint8_t number = 0;
  for (const auto& [id, node] : state.nodes) {
    ++number;
    if (!vacating.is_whole_node(node))
      nodes.push_back(
          {id, "dc", "r" + std::to_string(number), {int64_t{number} * 1000}, node.store_count});
  }
  const auto outlook = [&](const StoreAddress& store) {
    const auto found = troubles.find(store);
    const StoreState is = found == troubles.end() ? StoreState::kServing : found->second;
    return StoreOutlook{!is_absent(is), is == StoreState::kServing, is != StoreState::kDamaged,
                        vacating.store() == store};
  };
  const auto& tablet = state.tables.begin()->second->tablets.tablets()[0];
  return wanted_members(partitioner::Ring(nodes), tablet, {}, {}, outlook);
}

}  // namespace

TEST_CASE("a store that hangs is vacated after a while where others can take what it has") {
  const StoreAddress bad{host(1), 0};
  for (const StoreState state : {StoreState::kHung, StoreState::kFailed}) {
    const StoreTroubles troubles = {{bad, state}};
    CHECK(vacated(cluster_of(5, 1), troubles, kAfterUs) == bad);
    CHECK_FALSE(vacated(cluster_of(5, 1), troubles, kAfterUs - 1));
    CHECK_FALSE(vacated(cluster_of(4, 1), troubles, kAfterUs));
    CHECK(vacated(cluster_of(4, 2), troubles, kAfterUs) == bad);
    CHECK_FALSE(
        vacated(cluster_of(4, 2), {{bad, state}, {{host(1), 1}, StoreState::kFull}}, kAfterUs));
  }
  CHECK_FALSE(vacated(cluster_of(5, 2), {{bad, StoreState::kFull}}, kAfterUs));
  CHECK_FALSE(vacated(cluster_of(5, 1), {{{host(5), 0}, StoreState::kHung}}, kAfterUs));  // empty
  // It counts from when it hung last.
  Vacating vacating(kAfterUs);
  vacating.look(cluster_of(5, 1), {{bad, StoreState::kHung}}, all_live, 0);
  vacating.look(cluster_of(5, 1), {}, all_live, 10);
  vacating.look(cluster_of(5, 1), {{bad, StoreState::kHung}}, all_live, 20);
  vacating.look(cluster_of(5, 1), {{bad, StoreState::kHung}}, all_live, kAfterUs + 10);
  CHECK_FALSE(vacating.store());
  vacating.look(cluster_of(5, 1), {{bad, StoreState::kHung}}, all_live, kAfterUs + 20);
  CHECK(vacating.store() == bad);
}

TEST_CASE("one store is vacated at a time, a damaged one at once, none while a node leaves") {
  const StoreAddress first{host(1), 0}, second{host(2), 0};
  const StoreTroubles both = {{first, StoreState::kDamaged}, {second, StoreState::kDamaged}};
  CHECK(vacated(cluster_of(4, 1), both, 0) == first);
  MetaState leaving = cluster_of(4, 1);
  leaving.nodes[host(4)].state = NodeState::kLeaving;
  CHECK_FALSE(vacated(leaving, both, 0));
  // Away: its node is.
  Vacating vacating(kAfterUs);
  vacating.look(
      cluster_of(4, 1), both, [](HostId id) { return id != host(1); }, 0);
  CHECK(vacating.store() == second);
}

TEST_CASE("tablets go to another store of the node, else to another node, else the set shrinks") {
  const StoreAddress bad{host(1), 0};
  const StoreTroubles damaged = {{bad, StoreState::kDamaged}};
  const auto to_store = members_of(cluster_of(4, 2), damaged);
  REQUIRE(to_store);
  CHECK(std::set<StoreAddress>(to_store->begin(), to_store->end()) ==
        std::set<StoreAddress>{{host(1), 1}, {host(2), 0}, {host(3), 0}, {host(4), 0}});
  const auto to_node = members_of(cluster_of(5, 1), {{bad, StoreState::kHung}});
  REQUIRE(to_node);
  CHECK(to_node->size() == 4);
  CHECK(std::ranges::count(*to_node, StoreAddress{host(5), 0}) == 1);
  CHECK(members_of(cluster_of(4, 1), damaged) ==
        std::vector<StoreAddress>{{host(2), 0}, {host(3), 0}, {host(4), 0}});
  CHECK(members_of(cluster_of(2, 1), damaged) == std::vector<StoreAddress>{{host(2), 0}});
  CHECK_FALSE(members_of(cluster_of(1, 1), damaged));
}

TEST_CASE("a damaged member gives nothing: without R others its tablets stay") {
  const auto damaged = [](std::initializer_list<uint8_t> hosts) {
    StoreTroubles troubles;
    for (const uint8_t number : hosts) troubles[{host(number), 0}] = StoreState::kDamaged;
    return troubles;
  };
  CHECK(members_of(cluster_of(4, 1), damaged({1, 2})));
  CHECK_FALSE(members_of(cluster_of(4, 1), damaged({1, 2, 3})));
  CHECK(members_of(cluster_of(3, 1), damaged({1})));
  CHECK_FALSE(members_of(cluster_of(3, 1), damaged({1, 2})));
  CHECK_FALSE(members_of(cluster_of(2, 1), damaged({1, 2})));
}

}  // namespace tetrad::replication
