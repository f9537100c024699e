// SPDX-License-Identifier: Apache-2.0
#include "partitioner/topology.h"
#include "replication/membership/failure_detector.h"
#include "replication/meta/voter_policy.h"
#include "tests/unit/replication/meta_group.h"

namespace tetrad::replication {

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
