// SPDX-License-Identifier: Apache-2.0
// Membership, snapshots, reads, handing over.
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {
namespace {

using Kind = RaftMembershipChange::Kind;
using Strings = std::vector<std::string>;

/// An image of what a server has applied, taken and told to its core.
RaftIndex snapshot_of(Bench& bench, uint8_t number) {
  RaftCore& core = bench.core(number);
  const RaftSnapshotMeta meta = core.snapshot_meta(core.applied_index()).value();
  bench[number].disk.snapshot = meta;
  core.snapshot_taken(meta).value();
  bench.collect(number);
  return meta.index;
}

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

TEST_CASE("a follower that lags behind the log gets a snapshot") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.trailing_entries = 2; });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) {
    bench.propose(1, "a");
    bench.settle({3});
  }
  const RaftIndex at = snapshot_of(bench, 1);
  CHECK(bench.core(1).log().base_index() == at - 2);
  CHECK(bench[1].disk.entries.size() == 2);
  bench.propose(1, "b");
  for (int i = 0; i < 4; ++i) {
    bench.tick(1, 2);
    bench.settle();
  }
  CHECK(bench[3].disk.snapshot.index == at);
  CHECK(bench[3].commands() == Strings{"b"});
  CHECK(bench.core(3).applied_index() == bench.core(1).commit_index());
  CHECK(bench.core(1).peers().at(1).state == RaftProgress::State::kReplicate);
  // Restarted it continues from there.
  bench.start(3);
  CHECK(bench.core(3).commit_index() >= at);
  CHECK(bench.core(3).configuration() == members({1, 2, 3}));
}

TEST_CASE("an image under way stops appends, a failed one is sent again") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) {
    options.trailing_entries = 0;
    options.snapshot_timeout_ticks = 15;
  });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) {
    bench.propose(1, "a");
    bench.settle({3});
  }
  snapshot_of(bench, 1);
  const auto wait_for_image = [&] {
    for (int i = 0; i < 60; ++i) {
      bench.tick(1);
      bool sent = false;
      while (!bench.wire().empty()) {
        RaftMessage message = std::move(bench.wire().front());
        bench.wire().pop_front();
        if (std::holds_alternative<RaftInstallSnapshot>(message.body)) {
          sent = true;  // and lost
        } else {
          static_cast<void>(bench.give(std::move(message)));
        }
      }
      if (sent) return i;
    }
    return -1;
  };
  REQUIRE(wait_for_image() >= 0);
  CHECK(bench.core(1).peers().at(1).state == RaftProgress::State::kSnapshot);
  CHECK(wait_for_image() >= 10);  // not before its time is up
  bench.core(1).snapshot_sent(id(3), false);
  const int again = wait_for_image();
  CHECK(again >= 0);
  CHECK(again < 5);
}

TEST_CASE("a snapshot that is old, or whose end is in the log, is not installed") {
  Bench bench(members({1, 2, 3}));
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 2, {command(2, 2), command(2, 3)}}))
      .value();
  bench.lose_all();
  bench.give(bench.message(2, 1, 2, RaftInstallSnapshot{{2, 2, members({1, 2, 3})}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{true, 2, 0, 0});
  CHECK(bench.core(1).last_index() == 3);
  bench.lose_all();
  bench.give(bench.message(2, 1, 2, RaftInstallSnapshot{{3, 2, members({1, 2, 3})}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{true, 3, 0, 0});
  CHECK(bench.core(1).commit_index() == 3);
  CHECK(bench[1].disk.snapshot.index == 1);
}

TEST_CASE("an installed snapshot replaces a log that contradicts it, and its members") {
  Bench bench(members({1, 2, 3}));
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {command(2, 2), command(2, 3)}}))
      .value();
  bench.lose_all();
  bench[1].slow_disk = true;
  bench.give(bench.message(3, 1, 5, RaftInstallSnapshot{{2, 4, members({1, 3, 4})}})).value();
  CHECK(bench.core(1).configuration() == members({1, 3, 4}));
  CHECK(bench.core(1).last_index() == 2);
  CHECK(bench.wire().empty());  // not on disk yet
  REQUIRE(bench[1].writes.size() == 1);
  CHECK(bench[1].writes[0].snapshot.value().index == 2);
  // Entries that follow wait for the image; a new term meanwhile does no harm.
  bench.give(bench.message(3, 1, 5, RaftAppendRequest{2, 4, 3, {command(5, 3, "a")}})).value();
  bench.give(bench.message(4, 1, 6, RaftHeartbeat{3, 0})).value();
  CHECK(bench[1].applied.empty());
  bench.finish_writes(1);
  CHECK(bench[1].commands() == Strings{"a"});
  CHECK(bench[1].disk.snapshot.index == 2);
  CHECK(bench[1].disk.hard_state.term == 6);
  CHECK(bench[1].disk.entries.size() == 1);
}

TEST_CASE("snapshots are of what was applied, and never go back") {
  Bench bench(members({1}));
  bench.elect(1);
  for (int i = 0; i < 5; ++i) bench.propose(1, "a");
  const RaftIndex applied = bench.core(1).applied_index();
  CHECK_FALSE(bench.core(1).snapshot_meta(applied + 1));
  const RaftSnapshotMeta early = bench.core(1).snapshot_meta(applied - 2).value();
  snapshot_of(bench, 1);
  CHECK(bench.core(1).snapshot_taken(early).error().code == ErrorCode::kConflict);
  CHECK_FALSE(bench.core(1).snapshot_meta(applied - 2));
}

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
  REQUIRE(bench.change(1, Kind::kRemove, 2));
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
  CHECK(bench[3].commands() == Strings{"a"});
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
