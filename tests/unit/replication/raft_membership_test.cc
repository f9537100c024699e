// SPDX-License-Identifier: Apache-2.0
// Membership of a Raft group: changes of one server, removal, and taking a group over.
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {
namespace {

using Kind = RaftMembershipChange::Kind;

}  // namespace

TEST_CASE("a configuration changes by one server at a time") {
  const RaftConfiguration start = members({1, 2, 3}, {4});
  const auto code = [&](Kind kind, uint8_t server) {
    return change_membership(start, {kind, id(server)}).error().code;
  };
  CHECK(change_membership(start, {Kind::kAddLearner, id(5)}).value() == members({1, 2, 3}, {4, 5}));
  CHECK(change_membership(start, {Kind::kPromote, id(4)}).value() == members({1, 2, 3, 4}));
  CHECK(change_membership(start, {Kind::kDemote, id(2)}).value() == members({1, 3}, {2, 4}));
  CHECK(change_membership(start, {Kind::kRemove, id(2)}).value() == members({1, 3}, {4}));
  CHECK(change_membership(start, {Kind::kRemove, id(4)}).value() == members({1, 2, 3}));
  CHECK(code(Kind::kAddLearner, 1) == ErrorCode::kAlreadyExists);
  CHECK(code(Kind::kAddLearner, 4) == ErrorCode::kAlreadyExists);
  CHECK(code(Kind::kPromote, 1) == ErrorCode::kAlreadyExists);
  CHECK(code(Kind::kDemote, 4) == ErrorCode::kAlreadyExists);
  CHECK(code(Kind::kPromote, 9) == ErrorCode::kNotFound);
  CHECK(code(Kind::kRemove, 9) == ErrorCode::kNotFound);
  CHECK(change_membership(members({1}, {2}), {Kind::kRemove, id(1)}).error().code ==
        ErrorCode::kInvalid);
  CHECK(change_membership(members({1}, {2}), {Kind::kDemote, id(1)}).error().code ==
        ErrorCode::kInvalid);
}

TEST_CASE("a joint configuration needs a majority of both sets") {
  RaftConfiguration joint = members({1, 2, 3});
  joint.outgoing = {id(3), id(4), id(5)};
  const auto majority = [&](std::initializer_list<uint8_t> yes) {
    return joint.majority([&](RaftServerId server) {
      return std::find(yes.begin(), yes.end(), number_of(server)) != yes.end();
    });
  };
  CHECK_FALSE(majority({1, 2, 3}));
  CHECK_FALSE(majority({3, 4, 5}));
  CHECK(majority({2, 3, 4}));
  CHECK(majority({1, 2, 4, 5}));
  CHECK(joint.majority_value([](RaftServerId server) { return number_of(server); }) == 2);
  CHECK(joint.is_voter(id(5)));
  CHECK(change_membership(joint, {Kind::kAddLearner, id(9)}).error().code == ErrorCode::kInvalid);
}

TEST_CASE("a server joins as a learner, catches up, votes") {
  Bench bench(members({1}));
  bench.elect(1);
  for (int i = 0; i < 20; ++i) bench.propose(1, "a");
  bench.add(2, RaftStored::joining());
  REQUIRE(bench.change(1, Kind::kAddLearner, 2));
  CHECK(bench.core(1).configuration_committed());  // a learner has no say in it
  bench.settle();
  for (int i = 0; i < 4; ++i) {
    bench.tick(1);
    bench.settle();
  }
  CHECK(bench.core(2).configuration() == members({1}, {2}));
  CHECK(bench.core(2).applied_index() == bench.core(1).commit_index());
  bench.tick(2, 100);
  CHECK(bench.core(2).role() == RaftRole::kFollower);  // learners do not campaign
  REQUIRE(bench.change(1, Kind::kPromote, 2));
  CHECK_FALSE(bench.core(1).configuration_committed());
  bench.settle();
  CHECK(bench.core(1).configuration_committed());
  CHECK(bench.core(2).configuration() == members({1, 2}));
}

TEST_CASE("a learner that is behind or silent is not promoted") {
  Bench bench(members({1}), [](RaftOptions& options) { options.promotion_lag_max = 5; });
  bench.elect(1);
  bench.add(2, RaftStored::joining());
  REQUIRE(bench.change(1, Kind::kAddLearner, 2));
  bench.settle();
  bench.tick(1, 2);
  bench.settle();
  for (int i = 0; i < 10; ++i) bench.propose(1, "a");
  bench.lose_all();
  CHECK(bench.change(1, Kind::kPromote, 2).error().code == ErrorCode::kBehind);
  for (int i = 0; i < 6; ++i) {
    bench.tick(1, 2);
    bench.settle();
  }
  bench.tick(1, 30);
  bench.lose_all();
  CHECK(bench.change(1, Kind::kPromote, 2).error().code == ErrorCode::kBehind);
  bench.tick(1, 2);
  bench.settle();
  CHECK(bench.change(1, Kind::kPromote, 2));
}

TEST_CASE("learners count in no majority") {
  Bench bench(members({1, 2, 3}, {4, 5}));
  bench.elect(1);
  const RaftIndex before = bench.core(1).commit_index();
  bench.propose(1, "a");
  bench.settle({2, 3});
  CHECK(bench[4].disk.entries.size() == bench[1].disk.entries.size());
  CHECK(bench.core(1).commit_index() == before);
  bench.tick(1, 2);
  bench.settle({3});
  CHECK(bench.core(1).commit_index() == before + 1);
}

TEST_CASE("changes follow one another, never overlap") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  REQUIRE(bench.change(1, Kind::kAddLearner, 4));
  CHECK(bench.change(1, Kind::kAddLearner, 5).error().code == ErrorCode::kConflict);
  bench.settle();
  CHECK(bench.change(1, Kind::kAddLearner, 5));
}

TEST_CASE("a new leader changes members only after its term has a commit (Ongaro 2015)") {
  Bench bench(members({1, 2, 3, 4}));
  bench.elect(1);
  bench.crash(1);
  bench.elect(2, {4});  // with the vote of 3
  // Elected or not, what counts is the moment of election: take it again with nothing answered.
  Bench fresh(members({1, 2, 3, 4}));
  fresh.time_out(2);
  while (fresh.core(2).role() != RaftRole::kLeader) {
    REQUIRE(fresh.deliver_one([](const RaftMessage&) { return true; }));
  }
  CHECK(fresh.change(2, Kind::kRemove, 1).error().code == ErrorCode::kConflict);
  CHECK_FALSE(fresh.core(2).ready_to_lead());
  fresh.settle();
  CHECK(fresh.core(2).ready_to_lead());
  CHECK(fresh.change(2, Kind::kRemove, 1));
}

TEST_CASE("a configuration whose entry is cut off is in force no more") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  REQUIRE(bench.change(1, Kind::kRemove, 3));
  CHECK(bench.core(1).configuration() == members({1, 2}));
  const RaftTerm term = bench.core(1).term();
  const RaftIndex last = bench.core(1).last_index();
  bench
      .give(bench.message(
          2, 1, term + 1,
          RaftAppendRequest{last - 1, term, last - 1, {command(term + 1, last, "a")}}))
      .value();
  CHECK(bench.core(1).configuration() == members({1, 2, 3}));
  // Nor after a restart.
  bench.start(1);
  CHECK(bench.core(1).configuration() == members({1, 2, 3}));
}

TEST_CASE("a leader that removes itself leads until that is committed, and does not count") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  const RaftIndex before = bench.core(1).commit_index();
  const RaftIndex removal = bench.change(1, Kind::kRemove, 1).value().index;
  bench.settle({3});  // 1 and 2 have it: one of the two that count
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).commit_index() == before);
  bench.tick(1, 2);
  bench.settle();
  CHECK(bench.core(1).role() == RaftRole::kFollower);
  CHECK(bench.core(1).commit_index() >= removal);
  // It had one of the others campaign at once.
  CHECK((bench.core(2).role() == RaftRole::kLeader || bench.core(3).role() == RaftRole::kLeader));
  bench.tick(1, 100);
  CHECK(bench.core(1).role() == RaftRole::kFollower);
  CHECK(bench.wire().empty());
}

TEST_CASE("a server campaigns while its removal is not committed, without its own vote") {
  Bench bench(members({1, 2}));
  bench.elect(1);
  REQUIRE(bench.change(1, Kind::kRemove, 1));
  bench.lose_all();
  bench.crash(1);
  bench.start(1);
  // Only this log is long enough for 2 to accept.
  bench.time_out(2);
  bench.settle();
  CHECK(bench.core(2).role() != RaftRole::kLeader);
  for (int i = 0; i < 5 && bench.core(2).role() != RaftRole::kLeader; ++i) {
    bench.tick(2, 10);
    bench.lose_all();
    bench.time_out(1);
    bench.settle();
  }
  CHECK(bench.core(2).role() == RaftRole::kLeader);
  CHECK(bench.core(2).configuration() == members({2}));
}

TEST_CASE("a removed server disturbs nobody") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  REQUIRE(bench.change(1, Kind::kRemove, 3));
  bench.settle({3});
  const RaftTerm term = bench.core(1).term();
  for (int i = 0; i < 10; ++i) {
    bench.time_out(3);
    bench.settle();
    bench.tick(1);
    bench.settle();
  }
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).term() == term);
}

TEST_CASE("a leader that has lost the others, and does not know it yet, takes over, too") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.crash(2);
  bench.crash(3);
  bench.propose(1, "in doubt");
  bench.lose_all();
  REQUIRE(bench.core(1).role() == RaftRole::kLeader);
  REQUIRE(bench.core(1).take_over());
  bench.collect(1);
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).ready_to_lead());
  CHECK(bench.core(1).configuration() == members({1}));
  CHECK(bench[1].commands() == std::vector<std::string>{"in doubt"});
}

TEST_CASE("of three voters two are gone for good: the third takes over with all that it has") {
  Bench bench(members({1, 2, 3}, {4}));
  bench.elect(1);
  bench.propose(1, "committed");
  bench.settle();
  bench.tick(1, 5);
  bench.settle();
  // On one of the servers that stay only, and nobody knows whether it was committed.
  bench.propose(1, "in doubt");
  bench.settle({2, 4});
  bench.crash(1);
  bench.crash(2);
  bench.lose_all();
  bench.time_out(3);
  bench.settle();
  CHECK(bench.core(3).role() != RaftRole::kLeader);
  const RaftTerm before = bench.core(3).term();

  bench[3].slow_disk = true;
  REQUIRE(bench.core(3).take_over());
  bench.collect(3);
  CHECK(bench.core(3).role() == RaftRole::kCandidate);  // until its own vote is on disk
  bench.finish_writes(3);
  bench[3].slow_disk = false;
  REQUIRE(bench.core(3).role() == RaftRole::kLeader);
  CHECK(bench.core(3).term() > before);
  bench.propose(3, "after");
  CHECK(bench.core(3).ready_to_lead());
  CHECK(bench.core(3).configuration() == members({3}));
  CHECK(bench[3].commands() == std::vector<std::string>{"committed", "in doubt", "after"});
  // It is what its disk has.
  bench.crash(3);
  bench.start(3);
  bench.elect(3, {1, 2});
  CHECK(bench.core(3).role() == RaftRole::kLeader);
  // The others are taken in as any server is.
  REQUIRE(bench.change(3, RaftMembershipChange::Kind::kAddLearner, 4));
  for (int i = 0; i < 20; ++i) {
    bench.settle();
    bench.tick(3);
  }
  CHECK(bench[4].commands() == std::vector<std::string>{"committed", "in doubt", "after"});
  REQUIRE(bench.change(3, RaftMembershipChange::Kind::kPromote, 4));
  bench.settle();
  CHECK(bench.core(4).configuration() == members({3, 4}));
}

TEST_CASE("who was not there when a group was taken over mixes nothing of it with what it has") {
  // Servers 1 and 2 have committed what 3 has not; then 3 takes over, and 1 comes back.
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.propose(1, "known to all");
  bench.settle();
  bench.tick(1, 5);
  bench.settle();
  bench.crash(3);
  bench.propose(1, "known to two");
  bench.settle();
  bench.tick(1, 5);
  bench.settle();
  bench.crash(1);
  bench[1].disk.hard_state.commit = bench.core(1).commit_index();  // it notes what it applies
  bench.crash(2);
  bench.lose_all();
  bench.start(3);
  REQUIRE(bench.core(3).take_over());
  bench.collect(3);
  REQUIRE(bench.core(3).role() == RaftRole::kLeader);
  // No election of the others reaches this term: an entry has one content for its index and term.
  CHECK(bench.core(3).term() > 1'000'000);
  bench.propose(3, "after 1");
  bench.propose(3, "after 2");
  bench.start(1);
  const std::vector<std::string> before = {"known to all", "known to two"};
  REQUIRE(bench.change(3, RaftMembershipChange::Kind::kAddLearner, 1));
  for (int i = 0; i < 20; ++i) {
    bench.settle();
    bench.tick(3);
  }
  for (const auto& command : bench[1].commands())
    CHECK(std::ranges::find(before, command) != before.end());
  CHECK(bench[3].commands() == std::vector<std::string>{"known to all", "after 1", "after 2"});
  // Nor by hearing of what the other has applied, either way.
  bench.lose_all();
  bench.core(1).learn_committed(bench.core(3).commit_index(), bench.core(3).term(), id(3));
  for (int i = 0; i < 20; ++i) {
    bench.collect(1);
    bench.settle();
    bench.tick(1);
    bench.core(1).learn_committed(bench.core(3).commit_index(), bench.core(3).term(), id(3));
  }
  for (const auto& command : bench[1].commands())
    CHECK(std::ranges::find(before, command) != before.end());
}

}  // namespace tetrad::replication::test
