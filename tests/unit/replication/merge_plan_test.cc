// SPDX-License-Identifier: Apache-2.0
#include "replication/tablets/merge_plan.h"

#include <catch2/catch.hpp>

#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::replication {

namespace {

using partitioner::Tablet;
using partitioner::TabletStage;

using partitioner::host_number;
StoreAddress store(uint8_t host, uint32_t number = 0) { return {host_number(host), number}; }

/// A table of three tablets, on nodes 1 to 3.
struct State {
  State() {
    for (uint8_t i = 1; i <= 5; ++i)
      nodes.push_back({host_number(i), "dc1", "rack" + std::to_string(i % 2), {}, 2});
    const RingPosition first{-10, 0}, second{10, 0};
    tablets[0].range = {RingPosition::lowest(), first};
    tablets[1].range = {first, second};
    tablets[2].range = {second, RingPosition::highest()};
    for (size_t i = 0; i < 3; ++i) {
      tablets[i].id = TabletId{7 + i};
      tablets[i].epoch = SetEpoch{3 + i};
      tablets[i].replicas = {store(1), store(2), store(3)};
    }
  }
  void put() {
    auto table = std::make_shared<TableInfo>();
    table->id.value.octets[0] = 1;
    table->incarnation = TableIncarnation{5};
    table->tablets = partitioner::TabletMap(tablets);
    meta.put_table(std::move(table));
  }
  FoundHalves found() {
    put();
    const auto halves = find_halves(meta, {TableIncarnation{5}, TabletId{7}, TabletId{8}});
    REQUIRE(halves);
    return *halves;
  }
  NextMergeStep next(bool left_moves = false) {
    const auto step = next_merge_step(found(), left_moves, nodes);
    REQUIRE(step);
    return *step;
  }
  Error refusal() {
    const auto step = next_merge_step(found(), false, nodes);
    REQUIRE_FALSE(step);
    return step.error();
  }

  MetaState meta;
  std::vector<Tablet> tablets{3};
  std::vector<partitioner::RingNode> nodes;
};

}  // namespace

TEST_CASE("the halves of a merge are neighbours of the table as it is now") {
  State state;
  state.put();
  const auto of = [&](uint32_t incarnation, uint64_t left, uint64_t right) {
    return find_halves(state.meta,
                       {TableIncarnation{incarnation}, TabletId{left}, TabletId{right}});
  };
  const auto found = of(5, 8, 9);
  REQUIRE(found);
  CHECK(found->left->id == TabletId{8});
  CHECK(found->right->id == TabletId{9});
  for (const auto& none : {of(4, 8, 9), of(5, 7, 9), of(5, 9, 8), of(5, 9, 10), of(5, 1, 7)})
    CHECK(none.error().code == ErrorCode::kNotFound);
}

TEST_CASE("members are made equal, then horizons, then the halves are one") {
  State state;
  // In another order they are equal, too.
  state.tablets[1].replicas = {store(3), store(1), store(2)};
  CHECK(state.next().step == MergeStep::kMerge);
  state.tablets[0].repaired_us = 5;
  CHECK(state.next().step == MergeStep::kRepair);
  state.tablets[0].replicas = {store(1, 1), store(4), store(3)};
  NextMergeStep next = state.next(true);
  CHECK(next.step == MergeStep::kExchange);
  CHECK(next.moving->id == TabletId{7});
  // First the store of the same node.
  CHECK(next.members == std::vector<StoreAddress>{store(1), store(4), store(3)});
  state.tablets[0].replicas = next.members;
  next = state.next(true);
  CHECK(next.members == std::vector<StoreAddress>{store(1), store(2), store(3)});
  next = state.next(false);
  CHECK(next.moving->id == TabletId{8});
  CHECK(next.members == std::vector<StoreAddress>{store(3), store(1), store(4)});
}

TEST_CASE("a half that changes its members is waited for, a full one is not merged") {
  State state;
  state.tablets[1].stage = TabletStage::kStream;
  state.tablets[1].new_replicas = {store(1), store(2), store(4)};
  CHECK(state.next().step == MergeStep::kWait);
  state.tablets[1].stage = TabletStage::kNormal;
  state.tablets[1].new_replicas.clear();
  state.tablets[0].full = true;
  CHECK(state.refusal().code == ErrorCode::kConflict);
  state.tablets[0].full = false;
  state.tablets[1].replicas.pop_back();
  CHECK(state.refusal().message ==
        "the replicas of physical partitions 7 and 8 cannot be brought together");
}

TEST_CASE("the command names both halves as they are") {
  State state;
  const MergeTablets command = merge_command(state.found(), 2, 0);
  CHECK(command.incarnation.value == 5);
  CHECK(command.left == TabletId{7});
  CHECK(command.right == TabletId{8});
  CHECK(command.left_epoch == SetEpoch{3});
  CHECK(command.right_epoch == SetEpoch{4});
  CHECK(command.range == RingRange{RingPosition::lowest(), {10, 0}});
  CHECK(command.cut == RingPosition{-10, 0});
  CHECK(command.tablets_min == 2);
  CHECK(command.bounces_most == 0);
}

}  // namespace tetrad::replication
