// SPDX-License-Identifier: Apache-2.0
// Bytes of messages, entries and state: there and back, and hostile ones.
#include "replication/meta/raft_messages.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {
namespace {

template <class T>
Bytes bytes_of(const T& value) {
  Bytes bytes;
  base::ByteWriter out(bytes);
  encode(value, out);
  return bytes;
}

std::vector<RaftMessage> one_of_each() {
  const RaftConfiguration configuration = members({1, 2, 3}, {7, 9});
  std::vector<RaftMessageBody> bodies = {
      RaftPreVoteRequest{7, 100, 6},
      RaftPreVoteReply{7, true},
      RaftVoteRequest{100, 6, true},
      RaftVoteReply{true},
      RaftAppendRequest{
          99,
          5,
          98,
          {command(5, 100, "one"),
           {6, 101, RaftEntryKind::kNoop, {}},
           {6, 102, RaftEntryKind::kConfiguration, encode_configuration_data(configuration)}}},
      RaftAppendReply{true, 102, 3, 4},
      RaftHeartbeat{98, uint64_t{1} << 63},
      RaftHeartbeatReply{~uint64_t{0}},
      RaftInstallSnapshot{{80, 5, configuration}},
      RaftTimeoutNow{},
      RaftReadRequest{~uint64_t{0}},
      RaftReadReply{5, true, 102},
      RaftFetchRequest{17},
      RaftFetchReply{17, 30, 3, {{3, 18, RaftEntryKind::kCommand, "x"}}}};
  std::vector<RaftMessage> messages;
  for (RaftMessageBody& body : bodies) {
    messages.push_back(
        {uuid_of(200), RaftGroupId{9}, id(1), id(2), kRaftNumberMax, std::move(body)});
  }
  return messages;
}

}  // namespace

TEST_CASE("raft messages, entries and state survive their bytes") {
  const std::vector<RaftMessage> messages = one_of_each();
  REQUIRE(messages.size() == std::variant_size_v<RaftMessageBody>);
  for (const RaftMessage& message : messages) {
    CHECK(decode_raft_message(bytes_of(message)).value() == message);
    CHECK(std::string(name_of(message.body)).size() > 3);
  }
  const RaftEntry entry = command(3, 4, std::string(1000, 'z'));
  CHECK(decode_raft_entry(BytesView(bytes_of(entry))).value() == entry);
  for (const RaftHardState& state :
       {RaftHardState{}, RaftHardState{7, id(3), 5}, RaftHardState{9, std::nullopt, 1}}) {
    CHECK(decode_raft_hard_state(bytes_of(state)).value() == state);
  }
  RaftSnapshotMeta meta{5, 4, members({1, 2, 3}, {4})};
  meta.configuration.outgoing = {id(8)};
  CHECK(decode_raft_snapshot_meta(BytesView(bytes_of(meta))).value() == meta);
}

TEST_CASE("raft bytes cut short or too long are refused") {
  for (const RaftMessage& message : one_of_each()) {
    const Bytes bytes = bytes_of(message);
    for (size_t size = 0; size < bytes.size(); ++size) {
      CHECK_FALSE(decode_raft_message(BytesView(bytes).substr(0, size)));
    }
    CHECK_FALSE(decode_raft_message(bytes + "x"));
  }
  const Bytes state = bytes_of(RaftHardState{7, id(3), 5});
  for (size_t size = 0; size < state.size(); ++size) {
    CHECK_FALSE(decode_raft_hard_state(BytesView(state).substr(0, size)));
  }
}

TEST_CASE("raft bytes with any byte changed are refused or read as something else, safely") {
  base::Random random(3);
  for (const RaftMessage& message : one_of_each()) {
    const Bytes bytes = bytes_of(message);
    for (int i = 0; i < 3000; ++i) {
      Bytes changed = bytes;
      for (uint64_t n = 1 + random.below(3); n > 0; --n) {
        changed[random.below(changed.size())] = static_cast<char>(random.below(256));
      }
      const Result<RaftMessage> decoded = decode_raft_message(changed);
      if (decoded) CHECK(decode_raft_message(bytes_of(*decoded)).value() == *decoded);
    }
  }
}

TEST_CASE("counts that lie allocate nothing") {
  RaftMessage message = one_of_each()[4];
  message.body = RaftAppendRequest{};
  Bytes bytes = bytes_of(message);
  bytes.pop_back();  // the count of no entries
  base::ByteWriter(bytes).varint(60'000);
  CHECK(decode_raft_message(bytes).error().code == ErrorCode::kCorruption);
  Bytes configuration(1, '\1');
  base::ByteWriter(configuration).varint(uint64_t{1} << 60);
  CHECK(decode_configuration_data(configuration).error().code == ErrorCode::kCorruption);
}

TEST_CASE("configurations out of order, doubled or without voters are refused") {
  const auto refused = [](const RaftConfiguration& configuration) {
    return !decode_configuration_data(encode_configuration_data(configuration));
  };
  CHECK_FALSE(refused(members({1, 2}, {3})));
  CHECK(refused(members({2, 1})));
  CHECK(refused(members({1, 1})));
  CHECK(refused(members({1, 2}, {2})));
  CHECK(refused(members({}, {2})));
  RaftConfiguration joint;
  joint.outgoing = {id(1)};
  CHECK(refused(joint));
}

TEST_CASE("terms and indexes that could overflow are refused") {
  for (RaftMessage message : one_of_each()) {
    message.term = kRaftNumberMax + 1;
    CHECK_FALSE(decode_raft_message(bytes_of(message)));
  }
  CHECK_FALSE(decode_raft_entry(BytesView(bytes_of(command(1, kRaftNumberMax + 1)))));
}

TEST_CASE("any message that can be decoded is received without harm") {
  base::Random random(5);
  Bench bench(members({1, 2, 3}));
  const std::vector<RaftMessage> messages = one_of_each();
  for (int i = 0; i < 30'000; ++i) {
    RaftMessage message = messages[random.below(messages.size())];
    message.from = id(static_cast<uint8_t>(2 + random.below(3)));
    message.to = id(1);
    message.term = bench.core(1).term() + random.below(3);
    Bytes bytes = bytes_of(message);
    for (uint64_t n = random.below(4); n > 0; --n) {
      bytes[50 + random.below(bytes.size() - 50)] = static_cast<char>(random.below(16));
    }
    const Result<RaftMessage> decoded = decode_raft_message(bytes);
    if (decoded && decoded->term < 1'000'000) static_cast<void>(bench.give(*decoded));
    if (random.one_in(3)) bench.tick(1);
    bench.lose_all();
    if (random.one_in(500)) bench.start(1);
  }
  CHECK(bench.core(1).commit_index() >= 1);
}

}  // namespace tetrad::replication::test
