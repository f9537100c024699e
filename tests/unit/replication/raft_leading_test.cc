// SPDX-License-Identifier: Apache-2.0
// What a Raft leader does: it answers reads, hands over, sends and applies in bounded portions.
#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {

TEST_CASE("a lone leader answers a read at once") {
  Bench bench(members({1}));
  bench.elect(1);
  bench.core(1).read_index(5).value();
  bench.collect(1);
  REQUIRE(bench[1].reads.size() == 1);
  CHECK(bench[1].reads[0].confirmed);
  CHECK(bench[1].reads[0].index == bench.core(1).commit_index());
}

TEST_CASE("a read waits for a majority that answers a later question") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.tick(1, 2);
  const auto earlier = bench.on_wire<RaftHeartbeat>();
  REQUIRE(earlier.size() == 2);
  bench.lose_all();
  bench.core(1).read_index(5).value();
  bench.collect(1);
  CHECK(bench[1].reads.empty());
  CHECK(bench.on_wire<RaftHeartbeat>().size() == 2);
  // Answers to earlier questions prove nothing.
  bench
      .give(bench.message(2, 1, bench.core(1).term(),
                          RaftHeartbeatReply{earlier[0].second.read_round}))
      .value();
  CHECK(bench[1].reads.empty());
  bench.settle();
  REQUIRE(bench[1].reads.size() == 1);
  CHECK(bench[1].reads[0].context == 5);
}

TEST_CASE("a lost question is asked again with the next heartbeat") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.core(1).read_index(5).value();
  bench.collect(1);
  bench.lose_all();
  bench.tick(1, 2);
  bench.settle();
  CHECK(bench[1].reads.size() == 1);
}

TEST_CASE("a leader cut off confirms no read and refuses it when it steps down") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.core(1).read_index(5).value();
  bench.collect(1);
  for (int i = 0; i < 25; ++i) {
    bench.settle({2, 3});
    bench.tick(1);
  }
  REQUIRE(bench[1].reads.size() == 1);
  CHECK_FALSE(bench[1].reads[0].confirmed);
}

TEST_CASE("a new leader answers reads only after its term has a commit") {
  Bench bench(members({1, 2, 3}));
  bench.time_out(1);
  while (bench.core(1).role() != RaftRole::kLeader) {
    REQUIRE(bench.deliver_one([](const RaftMessage&) { return true; }));
  }
  bench.core(1).read_index(5).value();
  bench.collect(1);
  bench.lose_all();
  // A majority says that it leads, but it does not know yet what is committed.
  bench.give(bench.message(2, 1, bench.core(1).term(), RaftHeartbeatReply{1})).value();
  CHECK(bench[1].reads.empty());
  bench.tick(1, 2);
  bench.settle();
  REQUIRE(bench[1].reads.size() == 1);
  CHECK(bench[1].reads[0].index >= 2);
}

TEST_CASE("followers and learners read through the leader") {
  Bench bench(members({1, 2, 3}, {4}));
  CHECK(bench.core(4).read_index(6).error().code == ErrorCode::kNotLeader);
  bench.elect(1);
  for (const uint8_t reader : {2, 4}) {
    bench.core(reader).read_index(7).value();
    bench.collect(reader);
    bench.settle();
    REQUIRE(bench[reader].reads.size() == 1);
    CHECK(bench[reader].reads[0].confirmed);
    CHECK(bench[reader].reads[0].index == bench.core(1).commit_index());
  }
  // Asked of a server that leads no more, a read is refused.
  bench.give(bench.message(2, 3, bench.core(3).term(), RaftReadRequest{8})).value();
  bench.settle();
  REQUIRE(bench[2].reads.size() == 2);
  CHECK_FALSE(bench[2].reads[1].confirmed);
}

TEST_CASE("a read is not stuck when the majority it waits for shrinks") {
  Bench bench(members({1, 2}));
  bench.elect(1);
  bench.core(1).read_index(5).value();
  REQUIRE(bench.change(1, RaftMembershipChange::Kind::kRemove, 2));
  bench.lose_all();
  CHECK(bench[1].reads.size() == 1);
}

TEST_CASE("leadership is handed to a voter that has caught up") {
  Bench bench(members({1, 2, 3}, {4}));
  bench.elect(1);
  const RaftTerm term = bench.core(1).term();
  CHECK(bench.core(1).transfer_leadership(id(1)).error().code == ErrorCode::kInvalid);
  CHECK(bench.core(1).transfer_leadership(id(4)).error().code == ErrorCode::kInvalid);
  CHECK(bench.core(2).transfer_leadership(id(3)).error().code == ErrorCode::kNotLeader);
  bench.core(1).transfer_leadership(id(2)).value();
  bench.collect(1);
  CHECK(bench.core(1).propose("a").error().code == ErrorCode::kOverloaded);
  bench.settle();
  CHECK(bench.core(2).role() == RaftRole::kLeader);
  CHECK(bench.core(2).term() == term + 1);
  CHECK(bench.core(1).leader() == id(2));
}

TEST_CASE("a voter that lags gets the log first, then the lead") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.propose(1, "a");
  bench.settle({3});
  bench.core(1).transfer_leadership(id(3)).value();
  bench.collect(1);
  CHECK(bench.on_wire<RaftTimeoutNow>().empty());
  bench.tick(1, 2);
  bench.settle();
  CHECK(bench.core(3).role() == RaftRole::kLeader);
  CHECK(bench[3].commands() == std::vector<std::string>{"a"});
}

TEST_CASE("a hand-over that does not happen ends after an election timeout") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.core(1).transfer_leadership(id(3)).value();
  bench.collect(1);
  for (int i = 0; i < 12; ++i) {
    bench.settle({3});
    bench.tick(1);
  }
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).propose("a"));
}

TEST_CASE("only the leader's own call makes a follower campaign at once") {
  Bench bench(members({1, 2, 3}, {4}));
  bench.elect(1);
  const RaftTerm term = bench.core(1).term();
  bench.give(bench.message(3, 2, term, RaftTimeoutNow{})).value();
  CHECK(bench.core(2).role() == RaftRole::kFollower);
  bench.give(bench.message(1, 2, term - 1, RaftTimeoutNow{})).value();
  CHECK(bench.core(2).role() == RaftRole::kFollower);
  bench.give(bench.message(1, 4, term, RaftTimeoutNow{})).value();
  CHECK(bench.core(4).role() == RaftRole::kFollower);
}

TEST_CASE("a follower's window bounds what is sent unanswered, then moves") {
  Bench bench(members({1, 2}), [](RaftOptions& options) {
    options.in_flight_max = 3;
    options.message_bytes_max = 1;  // one entry in a message
  });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) bench.propose(1, "a");
  CHECK(bench.on_wire<RaftAppendRequest>().size() == 3);
  bench.deliver_one([](const RaftMessage& message) { return message.to == id(2); });
  bench.deliver_one([](const RaftMessage& message) { return message.to == id(1); });
  CHECK(bench.on_wire<RaftAppendRequest>().size() >= 3);
  bench.settle();
  CHECK(bench.core(2).applied_index() == bench.core(1).last_index());
}

TEST_CASE("appends that were lost are noticed by a heartbeat") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  for (int i = 0; i < 5; ++i) bench.propose(1, "a");
  bench.lose_all();
  for (int i = 0; i < 3; ++i) {
    bench.tick(1, 2);
    bench.settle();
  }
  CHECK(bench.core(1).commit_index() == bench.core(1).last_index());
  CHECK(bench[3].commands().size() == 5);
  // Sooner where the driver says that the connection broke.
  bench.propose(1, "b");
  bench.lose_all();
  bench.core(1).peer_unreachable(id(2));
  bench.propose(1, "c");
  bench.settle();
  CHECK(bench.core(1).commit_index() == bench.core(1).last_index());
}

TEST_CASE("committed entries are handed out in bounded portions, each once") {
  Bench bench(members({1}), [](RaftOptions& options) { options.apply_bytes_max = 100; });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) bench.core(1).propose(std::string(50, 'a')).value();
  RaftActions actions = bench.core(1).take_actions();
  REQUIRE(actions.persist);
  bench.core(1).persisted(actions.persist->sequence);
  size_t portions = 0, entries = 0;
  while (bench.core(1).has_actions()) {
    actions = bench.core(1).take_actions();
    CHECK(actions.committed.size() <= 2);
    entries += actions.committed.size();
    ++portions;
  }
  CHECK(entries == 10);
  CHECK(portions >= 5);
}

}  // namespace tetrad::replication::test
