// SPDX-License-Identifier: Apache-2.0
#include "replication/meta/meta_state.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "partitioner/topology.h"
#include "replication/membership/failure_detector.h"
#include "replication/meta/meta_command.h"
#include "replication/meta/voter_policy.h"

namespace tetrad::replication {

namespace {

HostId host_number(uint8_t number) {
  HostId host;
  host.value.octets[15] = number;
  return host;
}

TableId table_number(uint8_t number) {
  TableId id;
  id.value.octets[0] = number;
  return id;
}

NodeInfo node_number(uint8_t number) {
  NodeInfo node;
  node.host = host_number(number);
  node.address = "127.0.0." + std::to_string(number);
  node.data_center = "dc1";
  node.rack = "r" + std::to_string(number);
  node.store_count = 2;
  node.version = "0.1";
  return node;
}

/// Applies commands one after another, each through its bytes.
struct Group {
  MetaSnapshot state = std::make_shared<MetaState>();
  uint64_t index = 0;
  base::Random random{1};

  Result<void> apply(MetaCommandBody body) {
    MetaCommand command;
    command.id = base::make_random_uuid(random);
    command.origin = host_number(1);
    command.body = std::move(body);
    return apply_bytes(encode_meta_command(command, kFormatNewest));
  }
  Result<void> apply_bytes(const Bytes& bytes) {
    const auto decoded = decode_meta_command(bytes);
    REQUIRE(decoded);
    MetaApplied applied = apply_meta_command(state, MetaIndex{++index}, *decoded);
    state = applied.state;
    check_load();
    return applied.outcome;
  }
  void check_load() const {
    partitioner::StoreLoad counted;
    for (const auto& [id, table] : state->tables) {
      CHECK(state->table(table->incarnation) == table.get());
      for (const auto& tablet : table->tablets.tablets())
        for (const StoreAddress& member : tablet.replicas) ++counted[member];
    }
    CHECK(state->by_incarnation.size() == state->tables.size());
    CHECK(state->load == counted);
  }
  void form(uint8_t nodes) {
    BootstrapCluster bootstrap;
    bootstrap.cluster_id.octets[3] = 9;
    bootstrap.cluster_name = "test";
    bootstrap.secret = Bytes(32, 's');
    bootstrap.node = node_number(1);
    bootstrap.token_seed = 5;
    REQUIRE(apply(bootstrap));
    for (uint8_t i = 2; i <= nodes; ++i) REQUIRE(apply(PutNode{node_number(i), i}));
  }
  /// All nodes have been given the newest program.
  void upgrade() {
    for (const auto& [host, known] : MetaState(*state).nodes) {
      NodeInfo node = known;
      node.format = kFormatNewest;
      REQUIRE(apply(PutNode{node, 1}));
    }
  }
  SchemaChange change() const {
    SchemaChange schema;
    schema.expected = state->schema_version;
    return schema;
  }
  void create(uint8_t number, uint32_t tablets = 0) {
    SchemaChange schema = change();
    schema.objects.emplace_back("table/ks/t" + std::to_string(number), "text");
    schema.new_tables.push_back(
        {table_number(number), "ks", "t" + std::to_string(number), 7, tablets});
    REQUIRE(apply(schema));
  }
  const TableInfo& table(uint8_t number) const { return *state->table(table_number(number)); }
};

}  // namespace

TEST_CASE("nothing but founding is applied before there is a cluster, and it once only") {
  Group group;
  CHECK(group.apply(PutNode{node_number(2), 1}).error().code == ErrorCode::kBootstrapping);
  group.form(1);
  BootstrapCluster again;
  again.node = node_number(2);
  CHECK(group.apply(again).error().code == ErrorCode::kConflict);
  CHECK(group.state->nodes.size() == 1);
}

TEST_CASE("nodes keep their tokens for ever") {
  Group group;
  group.form(3);
  const auto tokens = group.state->node(host_number(2))->tokens;
  CHECK(tokens.size() == partitioner::kTokensPerNode);
  NodeInfo moved = node_number(2);
  moved.address = "127.0.0.99";
  moved.tokens = {1, 2, 3};
  REQUIRE(group.apply(PutNode{moved, 77}));
  CHECK(group.state->node(host_number(2))->tokens == tokens);
  CHECK(group.state->node(host_number(2))->address == "127.0.0.99");
  REQUIRE(group.apply(SetNodeState{host_number(2), NodeState::kRemoved}));
  CHECK(group.apply(PutNode{moved, 1}).error().code == ErrorCode::kConfig);
}

TEST_CASE("a replica is named by the address of its node, and by its id where none is known") {
  Group group;
  group.form(2);
  const HostId stranger = host_number(9);
  CHECK(group.state->address_of(host_number(2)) == node_number(2).address);
  CHECK(group.state->addresses_of(
            std::vector<StoreAddress>{{host_number(2), 0}, {stranger, 1}, {host_number(1), 3}}) ==
        std::vector<std::string>{node_number(2).address, stranger.to_string(),
                                 node_number(1).address});
}

TEST_CASE("a node goes in order: one at a time, and not while it has replicas") {
  Group group;
  group.form(3);
  group.create(1);
  CHECK(group.apply(SetNodeState{host_number(1), NodeState::kRemoved}).error().code ==
        ErrorCode::kConflict);
  REQUIRE(group.apply(SetNodeState{host_number(1), NodeState::kLeaving}));
  CHECK(group.apply(SetNodeState{host_number(2), NodeState::kLeaving}).error().code ==
        ErrorCode::kConflict);
  REQUIRE(group.apply(SetNodeState{host_number(1), NodeState::kLeaving}));
}

TEST_CASE("a repair counts for the members and the range it was of, and never goes back") {
  Group group;
  group.form(3);
  group.create(1);
  const auto table = group.state->tables.begin()->second;
  const partitioner::Tablet tablet = table->tablets.tablets().front();
  SetTabletRepaired repaired{table->incarnation, tablet.id, tablet.epoch, tablet.range, 500};
  REQUIRE(group.apply(repaired));
  const auto repaired_us = [&] {
    return group.state->tables.begin()->second->tablets.tablets().front().repaired_us;
  };
  CHECK(repaired_us() == 500);
  repaired.repaired_us = 400;
  REQUIRE(group.apply(repaired));
  CHECK(repaired_us() == 500);
  SetTabletRepaired other = repaired;
  other.epoch = SetEpoch{tablet.epoch.value + 1};
  CHECK(group.apply(other).error().code == ErrorCode::kConflict);
  other = repaired;
  other.range.end = RingPosition{7, 7};
  CHECK(group.apply(other).error().code == ErrorCode::kConflict);
  Bytes bytes;
  encode_meta_state(*group.state, bytes);
  const auto decoded = decode_meta_state(bytes);
  REQUIRE(decoded);
  CHECK((*decoded)->tables.begin()->second->tablets.tablets().front().repaired_us == 500);
}

TEST_CASE("a schema change at another version is refused and changes nothing") {
  Group group;
  group.form(2);
  SchemaChange first = group.change(), second = group.change();
  first.objects.emplace_back("keyspace/a", "1");
  second.objects.emplace_back("keyspace/b", "2");
  const auto uuid = group.state->schema_version_uuid();
  REQUIRE(group.apply(first));
  CHECK(group.state->schema_version.value == group.index);
  CHECK(group.state->schema_version_uuid() != uuid);
  CHECK(group.apply(second).error().code == ErrorCode::kConflict);
  CHECK_FALSE(group.state->schema_objects.contains("keyspace/b"));
  // Half-way failures too.
  SchemaChange third = group.change();
  third.objects.emplace_back("keyspace/a", std::nullopt);
  third.new_tables.push_back({table_number(1), "a", "t", 0, 0});
  third.dropped_tables.push_back(table_number(42));
  CHECK_FALSE(group.apply(third));
  CHECK(group.state->tables.empty());
  CHECK(group.state->next_incarnation == 1);
  CHECK(group.state->schema_objects.contains("keyspace/a"));
}

TEST_CASE("incarnations and tablet ids are never given twice") {
  Group group;
  group.form(4);
  group.create(1);
  group.create(2, 5);
  const TableIncarnation first = group.table(1).incarnation;
  CHECK(first.value == 1);
  CHECK(group.table(2).incarnation.value == 2);
  CHECK(group.table(1).tablets.tablets().size() == 2);
  CHECK(group.table(2).tablets.tablets().size() == 5);
  CHECK(group.table(1).tablets.tablets()[0].replicas.size() == 4);
  CHECK(group.table(1).max_partition_mb == 7);
  SchemaChange truncate = group.change();
  truncate.truncated_tables.push_back(table_number(1));
  REQUIRE(group.apply(truncate));
  CHECK(group.table(1).incarnation.value == 3);
  CHECK(group.state->retired == std::vector<TableIncarnation>{first});
  CHECK(group.state->table(first) == nullptr);
  CHECK(group.table(1).tablets.tablets()[0].id.value == 8);
  SchemaChange drop = group.change();
  drop.dropped_tables.push_back(table_number(2));
  REQUIRE(group.apply(drop));
  CHECK(group.state->tables.size() == 1);
  CHECK(group.state->retired.size() == 2);
  group.create(3);
  CHECK(group.table(3).incarnation.value == 4);
  REQUIRE(group.apply(ForgetRetired{{first}}));
  CHECK(group.state->retired == std::vector<TableIncarnation>{TableIncarnation{2}});
}

TEST_CASE(
    "a change log has an incarnation of its own that says whether it is as old as the table") {
  Group group;
  group.form(1);
  const auto create = [&](uint8_t number, bool change_log) {
    SchemaChange schema = group.change();
    schema.new_tables.push_back({table_number(number), "ks", "t", 0, 1, change_log});
    return group.apply(schema);
  };
  const auto alter = [&](uint8_t number, bool change_log) {
    SchemaChange schema = group.change();
    schema.altered_tables.push_back({table_number(number), "ks", "t", 0, change_log});
    return group.apply(schema);
  };
  const auto incarnations = [](std::initializer_list<uint32_t> numbers) {
    std::vector<TableIncarnation> out;
    for (const uint32_t number : numbers) out.push_back({number});
    return out;
  };
  REQUIRE(create(1, true));
  REQUIRE(create(2, false));
  CHECK(group.table(1).change_log == TableIncarnation{1});
  CHECK(group.table(1).incarnation == TableIncarnation{2});
  CHECK(group.state->table(TableIncarnation{1}) == nullptr);
  CHECK(!group.table(2).change_log);
  REQUIRE(alter(2, true));
  CHECK(group.table(2).change_log == TableIncarnation{4});
  CHECK(group.table(2).incarnation == TableIncarnation{3});
  REQUIRE(alter(2, true));
  CHECK(group.table(2).change_log == TableIncarnation{4});
  CHECK(group.state->retired.empty());

  Bytes bytes;
  encode_meta_state(*group.state, bytes);
  const auto decoded = decode_meta_state(bytes);
  REQUIRE(decoded);
  CHECK((*decoded)->table(table_number(2))->change_log == TableIncarnation{4});

  REQUIRE(alter(2, false));
  CHECK(!group.table(2).change_log);
  CHECK(group.table(2).incarnation == TableIncarnation{3});
  CHECK(group.state->retired == incarnations({4}));
  SchemaChange truncate = group.change();
  truncate.truncated_tables = {table_number(1), table_number(2)};
  REQUIRE(group.apply(truncate));
  CHECK(group.table(1).change_log == TableIncarnation{5});
  CHECK(group.table(1).incarnation == TableIncarnation{6});
  CHECK(!group.table(2).change_log);
  CHECK(group.state->retired == incarnations({4, 2, 1, 3}));
  SchemaChange drop = group.change();
  drop.dropped_tables = {table_number(1)};
  REQUIRE(group.apply(drop));
  CHECK(group.state->retired == incarnations({4, 2, 1, 3, 6, 5}));
}

TEST_CASE("a throughput is kept with its table, and tables with one are counted") {
  Group group;
  group.form(1);
  const auto create = [&](uint8_t number, Throughput throughput) {
    SchemaChange schema = group.change();
    schema.new_tables.push_back({table_number(number), "ks", "t", 0, 1, false, throughput});
    return group.apply(schema);
  };
  const auto alter = [&](uint8_t number, Throughput throughput) {
    SchemaChange schema = group.change();
    schema.altered_tables.push_back({table_number(number), "ks", "t", 0, false, throughput});
    return group.apply(schema);
  };
  REQUIRE(create(1, {400, false}));
  REQUIRE(create(2, {}));
  REQUIRE(create(3, {1000, true}));
  CHECK(group.table(1).throughput == Throughput{400, false});
  CHECK(group.state->limited_tables == 2);
  REQUIRE(alter(2, {4'000'000'000, false}));
  REQUIRE(alter(3, {}));
  CHECK(!group.table(3).throughput.is_limited());
  CHECK(group.state->limited_tables == 2);

  Bytes bytes;
  encode_meta_state(*group.state, bytes);
  const auto decoded = decode_meta_state(bytes);
  REQUIRE(decoded);
  CHECK((*decoded)->limited_tables == 2);
  CHECK((*decoded)->table(table_number(2))->throughput == Throughput{4'000'000'000, false});

  SchemaChange change = group.change();
  change.truncated_tables = {table_number(1)};
  change.dropped_tables = {table_number(2)};
  REQUIRE(group.apply(change));
  CHECK(group.table(1).throughput == Throughput{400, false});
  CHECK(group.state->limited_tables == 1);
}

TEST_CASE("the cluster's format is the lowest of its nodes', and rises with the last of them") {
  Group group;
  group.form(2);
  CHECK(group.state->format == kFormatFirst);
  NodeInfo node = node_number(3);
  node.format = kFormatNumbered;
  REQUIRE(group.apply(PutNode{node, 3}));
  node = node_number(1);
  node.format = kFormatNumbered;
  REQUIRE(group.apply(PutNode{node, 1}));
  CHECK(group.state->format == kFormatFirst);
  // What older programs write and hand on keeps it, and the version is the program's again.
  Bytes image;
  encode_meta_state(*group.state, image);
  auto decoded = decode_meta_state(image, kFormatFirst);
  REQUIRE(decoded);
  CHECK((*decoded)->node(host_number(1))->format == kFormatNumbered);
  CHECK((*decoded)->node(host_number(1))->version == "0.1");
  CHECK((*decoded)->node(host_number(2))->format == kFormatFirst);
  // The last old one is taken out.
  REQUIRE(group.apply(SetNodeState{host_number(2), NodeState::kRemoved}));
  CHECK(group.state->format == kFormatNumbered);
  image.clear();
  encode_meta_state(*group.state, image);
  CHECK(decode_meta_state(image, kFormatFirst).error().code == ErrorCode::kConfig);
  decoded = decode_meta_state(image);
  REQUIRE(decoded);
  CHECK((*decoded)->format == kFormatNumbered);
  CHECK((*decoded)->nodes == group.state->nodes);
  // From now on the old program is refused, new or known.
  CHECK(group.apply(PutNode{node_number(1), 1}).error().code == ErrorCode::kConfig);
  CHECK(group.apply(PutNode{node_number(4), 1}).error().code == ErrorCode::kConfig);
  CHECK(group.state->format == kFormatNumbered);
}

TEST_CASE("where drivers reach a node is kept once all nodes read that") {
  NodeInfo node = node_number(1);
  node.format = kFormatClientAddress;
  node.client_address = "192.0.2.7";
  MetaCommand command;
  command.body = PutNode{node, 1};
  const auto back = [&](ClusterFormat format) {
    const auto decoded = decode_meta_command(encode_meta_command(command, format));
    REQUIRE(decoded);
    return std::get<PutNode>(decoded->body).node;
  };
  CHECK(back(kFormatClientAddress) == node);
  CHECK(back(kFormatClientAddress).address_of_clients() == "192.0.2.7");
  CHECK(back(kFormatIndexes).address_of_clients() == node.address);
  const Bytes later = encode_meta_command(command, kFormatClientAddress);
  CHECK(decode_meta_command(later, kFormatIndexes).error().code == ErrorCode::kConfig);

  Group group;
  group.form(1);
  REQUIRE(group.apply(PutNode{node, 1}));
  CHECK(group.state->format == kFormatClientAddress);
  Bytes image;
  encode_meta_state(*group.state, image);
  const auto decoded = decode_meta_state(image);
  REQUIRE(decoded);
  CHECK((*decoded)->nodes == group.state->nodes);
  CHECK(decode_meta_state(image, kFormatIndexes).error().code == ErrorCode::kConfig);
}

TEST_CASE("a command of a later format than is known is refused as such") {
  MetaCommand command;
  command.body = PutNode{node_number(1), 1};
  CHECK(decode_meta_command(encode_meta_command(command, kFormatFirst), kFormatFirst));
  const Bytes later = encode_meta_command(command, kFormatNumbered);
  CHECK(decode_meta_command(later, kFormatFirst).error().code == ErrorCode::kConfig);
  Bytes unknown = later;
  unknown[0] = 99;
  CHECK(decode_meta_command(unknown).error().code == ErrorCode::kConfig);
}

TEST_CASE("commands and states of earlier formats are read as they were meant") {
  Group group;
  group.form(1);
  MetaCommand command;
  command.id = base::make_random_uuid(group.random);
  SchemaChange schema = group.change();
  schema.new_tables.push_back({table_number(1), "ks", "t1", 7, 1});
  command.body = schema;
  Bytes bytes = encode_meta_command(command, kFormatNewest);
  constexpr size_t kThroughputFromEnd = 5;  // two bytes, before three empty lists
  constexpr size_t kChangeLogFromEnd = 4;   // without it
  Bytes of_what = bytes;
  of_what[of_what.size() - kThroughputFromEnd + 1] = 2;
  CHECK(!decode_meta_command(of_what));
  bytes.erase(bytes.size() - kThroughputFromEnd, 2);
  CHECK(!decode_meta_command(bytes));
  bytes[0] = 2;
  Bytes wrong = bytes;
  wrong[wrong.size() - kChangeLogFromEnd] = 2;
  CHECK(!decode_meta_command(wrong));
  CHECK(decode_meta_command(bytes));
  bytes.erase(bytes.size() - kChangeLogFromEnd, 1);
  CHECK(!decode_meta_command(bytes));
  bytes[0] = 1;
  REQUIRE(group.apply_bytes(bytes));
  CHECK(!group.table(1).change_log);
  CHECK(group.table(1).max_partition_mb == 7);

  Bytes state;
  encode_meta_state(*group.state, state);
  const size_t name = state.rfind("\x02t1");
  REQUIRE(name != Bytes::npos);
  state.erase(name + 6, 2);  // behind the incarnation, the limit and the change log
  state[0] = 2;
  CHECK(decode_meta_state(state));
  state.erase(name + 5, 1);
  state[0] = 1;
  const auto decoded = decode_meta_state(state);
  REQUIRE(decoded);
  CHECK(!(*decoded)->table(table_number(1))->change_log);
  CHECK((*decoded)->table(table_number(1))->tablets.tablets().size() == 1);
  for (const char format : {0, 4}) {
    state[0] = format;
    CHECK(!decode_meta_state(state));
  }
}

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

TEST_CASE("a command that comes twice is applied once and answered alike") {
  Group group;
  group.form(1);
  MetaCommand command;
  command.id = base::make_random_uuid(group.random);
  command.origin = host_number(1);
  SchemaChange change = group.change();
  change.objects.emplace_back("keyspace/a", "1");
  command.body = change;
  const Bytes bytes = encode_meta_command(command, kFormatNewest);
  REQUIRE(group.apply_bytes(bytes));
  const MetaSnapshot once = group.state;
  REQUIRE(group.apply_bytes(bytes));
  CHECK(group.state == once);
}

TEST_CASE("the state comes back from its bytes, and broken bytes are refused") {
  Group group;
  group.form(4);
  group.create(1, 3);
  group.create(2);
  REQUIRE(group.apply(SetSetting{"replication.mode", "keyspace"}));
  REQUIRE(group.apply(SetSetting{"gone", "x"}));
  REQUIRE(group.apply(SetSetting{"gone", std::nullopt}));
  REQUIRE(group.apply(SetTabletFull{group.table(1).incarnation, TabletId{2}, true}));
  SchemaChange drop = group.change();
  drop.dropped_tables.push_back(table_number(2));
  REQUIRE(group.apply(drop));
  (void)group.apply(PutNode{NodeInfo(node_number(1)), 0});
  Bytes bytes;
  encode_meta_state(*group.state, bytes);
  const auto decoded = decode_meta_state(bytes);
  REQUIRE(decoded);
  Bytes again;
  encode_meta_state(**decoded, again);
  CHECK(again == bytes);
  CHECK((*decoded)->table(group.table(1).incarnation)->tablets.tablets()[1].full);
  // The same commands on the copy give the same bytes.
  Group other;
  other.state = *decoded;
  other.index = group.index;
  other.random = group.random;
  group.create(3);
  other.create(3);
  Bytes left, right;
  encode_meta_state(*group.state, left);
  encode_meta_state(*other.state, right);
  CHECK(left == right);

  base::Random random(3);
  for (size_t size = 0; size < bytes.size(); size += 7)
    CHECK_FALSE(decode_meta_state(BytesView(bytes).substr(0, size)));
  for (int i = 0; i < 3000; ++i) {
    Bytes broken = bytes;
    broken[random.below(broken.size())] = static_cast<char>(random.next());
    (void)decode_meta_state(broken);
  }
  MetaCommand command;
  command.body = group.change();
  const Bytes encoded = encode_meta_command(command, kFormatNewest);
  for (size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(decode_meta_command(BytesView(encoded).substr(0, size)));
  for (int i = 0; i < 3000; ++i) {
    Bytes broken = encoded;
    broken[random.below(broken.size())] = static_cast<char>(random.next());
    (void)decode_meta_command(broken);
  }
}

TEST_CASE("voters are 1, 3 or 5, over racks, and lost ones are replaced") {
  for (uint8_t nodes = 1; nodes <= 7; ++nodes) {
    RaftConfiguration configuration;
    configuration.voters.push_back(host_number(1));
    std::vector<VoterCandidate> candidates;
    for (uint8_t i = 1; i <= nodes; ++i)
      candidates.push_back({host_number(i), "r" + std::to_string(i % 3), false});
    const auto settle = [&] {
      for (int i = 0; i < 50; ++i) {
        const auto change = next_membership_change(configuration, candidates, host_number(1));
        if (!change) return i;
        const auto next = change_membership(configuration, *change);
        REQUIRE(next);
        configuration = *next;
      }
      return -1;
    };
    CHECK(settle() >= 0);
    CHECK(configuration.voters.size() == voters_wanted(nodes));
    CHECK(configuration.servers().size() == nodes);
    if (nodes >= 4 && nodes != 5) {
      const HostId lost = configuration.voters.back();
      for (VoterCandidate& candidate : candidates) candidate.away = candidate.host == lost;
      CHECK(settle() > 0);
      CHECK(configuration.voters.size() == voters_wanted(nodes));
      CHECK_FALSE(configuration.is_voter(lost));
      std::erase_if(candidates, [&](const VoterCandidate& c) { return c.host == lost; });
      CHECK(settle() > 0);
      CHECK_FALSE(configuration.contains(lost));
    }
  }
}

TEST_CASE("suspicion rises with silence, in the rhythm of the heartbeats") {
  FailureDetector detector(200'000);
  CHECK(detector.phi(5'000'000) == 0);
  base::MonotonicUs now_us = 1'000'000;
  for (int i = 0; i < 100; ++i) {
    detector.heard(now_us);
    now_us += 200'000;
  }
  now_us -= 200'000;
  CHECK(detector.phi(now_us + 200'000) < 1);
  CHECK(detector.phi(now_us + 2'000'000) > 4);
  CHECK(detector.phi(now_us + 2'000'000) < 5);
  CHECK(detector.phi(now_us + 4'000'000) > 8);
  // Heartbeats that come in bursts do not make it nervous.
  for (int i = 0; i < 1000; ++i) detector.heard(now_us + i);
  CHECK(detector.phi(now_us + 1'000'000) < 8);
}

TEST_CASE("an image in which a number was given twice is refused") {
  Group group;
  group.form(2);
  group.create(1);
  const auto error_of_image = [](const MetaState& state) {
    Bytes bytes;
    encode_meta_state(state, bytes);
    const auto decoded = decode_meta_state(bytes);
    return decoded ? std::optional<ErrorCode>() : decoded.error().code;
  };
  MetaState twice = *group.state;
  auto other = std::make_shared<TableInfo>(group.table(1));
  other->id = table_number(2);
  twice.tables.put(other->id, other);
  CHECK(error_of_image(twice) == ErrorCode::kCorruption);
  MetaState again = *group.state;
  again.next_incarnation = group.table(1).incarnation.value;  // the next table would get it too
  CHECK(error_of_image(again) == ErrorCode::kCorruption);
  CHECK_FALSE(error_of_image(*group.state).has_value());
}

}  // namespace tetrad::replication
