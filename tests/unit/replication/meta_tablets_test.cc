// SPDX-License-Identifier: Apache-2.0
// What the metadata group makes of tablets: split, merged, and their members changed.
#include "tests/unit/replication/meta_group.h"

namespace tetrad::replication {

TEST_CASE("a split applies to the range it was made for only") {
  Group group;
  group.form(1);
  group.create(1, 1);
  const auto tablet = group.table(1).tablets.tablets()[0];
  const SplitTablet split{group.table(1).incarnation, tablet.id, tablet.range, {5, 5}};
  const auto schema_version = group.state->schema_version;
  REQUIRE(group.apply(split));
  CHECK(group.state->schema_version == schema_version);
  CHECK(group.table(1).tablets.tablets().size() == 2);
  CHECK(group.table(1).tablets.find({5, 6}).id.value == 2);
  CHECK(group.table(1).tablets.find({5, 6}).epoch == tablet.epoch);
  CHECK(group.apply(split).error().code == ErrorCode::kConflict);
  CHECK(group.state->table(group.table(1).incarnation) == &group.table(1));
}

TEST_CASE("a split that is for a number of tablets is refused when there are as many") {
  Group group;
  group.form(1);
  group.create(1, 1);
  const auto split_last = [&](uint32_t tablets_max) {
    const auto& tablet = group.table(1).tablets.tablets().back();
    const RingPosition at{tablet.range.start.token / 2, 0};
    return group.apply(
        SplitTablet{group.table(1).incarnation, tablet.id, tablet.range, at, tablets_max});
  };
  CHECK(split_last(1).error().message == "there are 1 physical partitions already");
  REQUIRE(split_last(2));
  CHECK(split_last(2).error().code == ErrorCode::kConflict);
  CHECK(group.table(1).tablets.tablets().size() == 2);
  REQUIRE(split_last(0));
  REQUIRE(split_last(4));
  CHECK(group.table(1).tablets.tablets().size() == 4);

  MetaCommand command;
  command.body = SplitTablet{group.table(1).incarnation, TabletId{1}, {}, {5, 5}, 100};
  Bytes bytes = encode_meta_command(command, kFormatNewest);
  CHECK(std::get<SplitTablet>(decode_meta_command(bytes)->body).tablets_max == 100);
  bytes.pop_back();
  CHECK(!decode_meta_command(bytes));
  bytes[0] = 2;
  CHECK(std::get<SplitTablet>(decode_meta_command(bytes)->body).tablets_max == 0);
}

TEST_CASE("a merge applies to the halves it was made for, with equal members and horizons") {
  Group group;
  group.form(3);
  group.upgrade();
  group.create(1, 4);
  const auto incarnation = group.table(1).incarnation;
  const auto tablet = [&](size_t index) { return group.table(1).tablets.tablets()[index]; };
  const auto command_of = [&](size_t index) {
    const partitioner::Tablet left = tablet(index), right = tablet(index + 1);
    return MergeTablets{incarnation,   left.id,     right.id,
                        left.epoch,    right.epoch, {left.range.start, right.range.end},
                        left.range.end};
  };
  const auto is_refused = [&](const MergeTablets& command) {
    return group.apply(command).error().code == ErrorCode::kConflict;
  };
  // Placement gives neighbours different stores: they are made equal first.
  CHECK(is_refused(command_of(0)));
  const auto exchange = [&](size_t index, std::vector<StoreAddress> members) {
    using partitioner::TabletStage;
    for (const auto stage : {TabletStage::kWriteBoth, TabletStage::kStream, TabletStage::kReadNew,
                             TabletStage::kWriteNew, TabletStage::kNormal})
      REQUIRE(group.apply(ChangeTabletStage{
          incarnation, tablet(index).id, tablet(index).epoch, stage,
          stage == TabletStage::kWriteBoth ? members : std::vector<StoreAddress>{}, false}));
  };
  std::vector<StoreAddress> reversed = tablet(0).replicas;
  std::ranges::reverse(reversed);
  exchange(1, reversed);
  const uint64_t layout = group.table(1).tablets.layout();

  MergeTablets command = command_of(0);
  command.right_epoch = SetEpoch{command.right_epoch.value + 1};
  CHECK(is_refused(command));
  command = command_of(0);
  command.left_epoch = SetEpoch{command.left_epoch.value + 1};
  CHECK(is_refused(command));
  command = command_of(0);
  command.right = tablet(2).id;
  CHECK(is_refused(command));
  command = command_of(0);
  command.range.end = tablet(2).range.end;
  CHECK(is_refused(command));
  command = command_of(0);
  command.cut.hash -= 1;
  CHECK(is_refused(command));
  command = command_of(0);
  command.tablets_min = 4;
  CHECK(group.apply(command).error().message == "the table keeps 4 physical partitions");
  REQUIRE(group.apply(
      SetTabletRepaired{incarnation, tablet(0).id, tablet(0).epoch, tablet(0).range, 500}));
  CHECK(is_refused(command_of(0)));
  REQUIRE(group.apply(
      SetTabletRepaired{incarnation, tablet(1).id, tablet(1).epoch, tablet(1).range, 500}));

  command = command_of(0);
  command.tablets_min = 3;
  const auto members = tablet(0).replicas;
  REQUIRE(group.apply(command));
  CHECK(group.table(1).tablets.tablets().size() == 3);
  CHECK(tablet(0).id.value == 5);
  CHECK(tablet(0).epoch.value == 7);
  CHECK(tablet(0).replicas == members);
  CHECK(tablet(0).repaired_us == 500);
  CHECK(group.table(1).tablets.layout() == layout + 1);
  CHECK(is_refused(command));
  Bytes bytes;
  encode_meta_state(*group.state, bytes);
  const auto decoded = decode_meta_state(bytes);
  REQUIRE(decoded);
  CHECK((*decoded)->tables.begin()->second->tablets.layout() == layout + 1);

  // Splits that undo it are counted, but not those that throughput asks for.
  const auto split = [&](size_t index, uint32_t tablets_max) {
    const partitioner::Tablet whole = tablet(index);
    REQUIRE(group.apply(SplitTablet{
        incarnation, whole.id, whole.range, {whole.range.start.token / 2 - 5, 0}, tablets_max}));
  };
  split(0, 100);
  CHECK(tablet(0).bounces == 0);
  REQUIRE(group.apply(command_of(0)));
  split(0, 0);
  CHECK(tablet(0).bounces == 1);
  CHECK(tablet(1).bounces == 1);
  REQUIRE(group.apply(command_of(0)));
  CHECK(tablet(0).bounces == 1);
  split(0, 0);
  command = command_of(0);
  command.bounces_most = 0;
  REQUIRE(group.apply(command));
  CHECK(tablet(0).bounces == 0);
}

TEST_CASE("a cluster with a node of an older program merges nothing") {
  Group group;
  group.form(1);
  CHECK(group.apply(MergeTablets{}).error().message ==
        "not all nodes have a program that merges tablets");
  MetaCommand command;
  command.body = MergeTablets{TableIncarnation{1},
                              TabletId{2},
                              TabletId{3},
                              SetEpoch{4},
                              SetEpoch{5},
                              {{-1, 2}, {3, 4}},
                              {1, 9},
                              7,
                              2};
  const Bytes bytes = encode_meta_command(command, kFormatNewest);
  CHECK(decode_meta_command(bytes, kFormatPlacement).error().code == ErrorCode::kConfig);
  const auto decoded = decode_meta_command(bytes);
  REQUIRE(decoded);
  const auto& body = std::get<MergeTablets>(decoded->body);
  CHECK(body.left.value == 2);
  CHECK(body.right.value == 3);
  CHECK(body.left_epoch.value == 4);
  CHECK(body.right_epoch.value == 5);
  CHECK(body.range == RingRange{{-1, 2}, {3, 4}});
  CHECK(body.cut == RingPosition{1, 9});
  CHECK(body.tablets_min == 7);
  CHECK(body.bounces_most == 2);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_meta_command(BytesView(bytes).substr(0, size)));
}

TEST_CASE("members change stage by stage, each with a new epoch") {
  using partitioner::TabletStage;
  Group group;
  group.form(2);
  group.create(1, 1);
  const auto incarnation = group.table(1).incarnation;
  const auto tablet = [&]() -> const partitioner::Tablet& {
    return group.table(1).tablets.tablets()[0];
  };
  const auto step = [&](TabletStage next, bool give_up = false) {
    ChangeTabletStage body{incarnation, tablet().id, tablet().epoch, next, {}, give_up};
    if (next == TabletStage::kWriteBoth) {
      body.new_replicas = tablet().replicas;
      body.new_replicas.push_back({host_number(9), 0});
    }
    return group.apply(body);
  };
  CHECK_FALSE(step(TabletStage::kStream));
  CHECK_FALSE(step(TabletStage::kNormal));
  CHECK_FALSE(step(TabletStage::kNormal, true));
  REQUIRE(step(TabletStage::kWriteBoth));
  CHECK(tablet().epoch == SetEpoch{2});
  CHECK_FALSE(step(TabletStage::kReadNew));
  REQUIRE(step(TabletStage::kNormal, true));
  CHECK(tablet().new_replicas.empty());
  CHECK(tablet().replicas.size() == 2);
  for (const TabletStage next : {TabletStage::kWriteBoth, TabletStage::kStream,
                                 TabletStage::kReadNew, TabletStage::kWriteNew})
    REQUIRE(step(next));
  CHECK_FALSE(step(TabletStage::kNormal, true));
  REQUIRE(step(TabletStage::kNormal));
  CHECK(tablet().replicas.size() == 3);
  CHECK(tablet().epoch == SetEpoch{8});
  ChangeTabletStage old{incarnation,       tablet().id, SetEpoch{1}, TabletStage::kWriteBoth,
                        tablet().replicas, false};
  CHECK(group.apply(old).error().code == ErrorCode::kConflict);
}

TEST_CASE("lost nodes are removed with what they alone had") {
  Group group;
  group.form(6);
  // Whoever stays must know the command; what the lost ones read does not count.
  const std::vector<HostId> lost = {host_number(1), host_number(2), host_number(3), host_number(4)};
  CHECK(group.apply(RemoveLostNodes{lost}).error().message.find("does not know of lost nodes") !=
        std::string::npos);
  for (const uint8_t number : {5, 6}) {
    NodeInfo node = *group.state->node(host_number(number));
    node.format = kFormatNewest;
    REQUIRE(group.apply(PutNode{node, 1}));
  }
  group.create(1, 12);
  const auto before = group.table(1).tablets.tablets();
  CHECK(group.apply(RemoveLostNodes{}).error().message == "no node would stay");
  CHECK(group.apply(RemoveLostNodes{{host_number(9)}}).error().code == ErrorCode::kNotFound);
  CHECK(group
            .apply(RemoveLostNodes{{host_number(1), host_number(2), host_number(3), host_number(4),
                                    host_number(5), host_number(6)}})
            .error()
            .message == "no node would stay");
  CHECK(group.state->node(host_number(1))->state == NodeState::kNormal);

  REQUIRE(group.apply(RemoveLostNodes{lost}));
  const auto is_lost = [&](const StoreAddress& member) {
    return std::ranges::find(lost, member.host) != lost.end();
  };
  const auto after = group.table(1).tablets.tablets();
  REQUIRE(after.size() == before.size());
  size_t anew = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    auto left = before[i].replicas;
    std::erase_if(left, is_lost);
    CHECK(after[i].stage == partitioner::TabletStage::kReadNew);
    CHECK(after[i].epoch == SetEpoch{before[i].epoch.value + 1});
    CHECK(after[i].replicas == after[i].new_replicas);
    CHECK(std::ranges::none_of(after[i].replicas, is_lost));
    if (left.empty()) {
      ++anew;
      CHECK(after[i].replicas.size() == 2);
    } else {
      CHECK(after[i].replicas == left);
    }
  }
  CHECK(anew != 0);
  for (const HostId& host : lost) CHECK(group.state->node(host)->state == NodeState::kRemoved);
  CHECK(group.state->format == kFormatNewest);
  CHECK(group.apply(RemoveLostNodes{lost}).error().code == ErrorCode::kConflict);
}

TEST_CASE("a change of members that loses nodes goes on with all that were filled") {
  Group group;
  group.form(5);
  group.upgrade();
  group.create(1, 1);
  const auto incarnation = group.table(1).incarnation;
  const auto tablet = [&] { return group.table(1).tablets.tablets()[0]; };
  const auto store_of = [](uint8_t number) { return StoreAddress{host_number(number), 0}; };
  const auto enter = [&](partitioner::TabletStage next, std::vector<StoreAddress> members = {}) {
    REQUIRE(group.apply(
        ChangeTabletStage{incarnation, tablet().id, tablet().epoch, next, std::move(members)}));
  };
  const auto was = tablet().replicas;
  uint8_t other = 0;  // the node that is no member
  for (uint8_t i = 1; i <= 5; ++i)
    if (std::ranges::find(was, host_number(i), &StoreAddress::host) == was.end()) other = i;
  REQUIRE(other != 0);
  const std::vector<StoreAddress> wanted = {was[0], was[1], store_of(other)};
  enter(partitioner::TabletStage::kWriteBoth, wanted);
  Group filling = group;
  REQUIRE(filling.apply(RemoveLostNodes{{was[2].host, was[3].host}}));
  // What is being filled does not have all: not before it has been read.
  CHECK(filling.table(1).tablets.tablets()[0].replicas == std::vector{was[0], was[1]});
  enter(partitioner::TabletStage::kStream);
  enter(partitioner::TabletStage::kReadNew);
  REQUIRE(group.apply(RemoveLostNodes{{was[1].host, was[3].host}}));
  CHECK(tablet().replicas == std::vector{was[0], was[2], store_of(other)});
  CHECK(tablet().stage == partitioner::TabletStage::kReadNew);
}

TEST_CASE("the command that removes lost nodes is read back, and not by older programs") {
  MetaCommand command;
  command.body = RemoveLostNodes{{host_number(1), host_number(2)}};
  const Bytes bytes = encode_meta_command(command, kFormatNewest);
  CHECK(decode_meta_command(bytes, kFormatThroughput).error().code == ErrorCode::kConfig);
  const auto decoded = decode_meta_command(bytes);
  REQUIRE(decoded);
  CHECK(std::get<RemoveLostNodes>(decoded->body).hosts ==
        std::vector{host_number(1), host_number(2)});
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_meta_command(BytesView(bytes).substr(0, size)));
}

}  // namespace tetrad::replication
