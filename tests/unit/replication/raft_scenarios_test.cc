// SPDX-License-Identifier: Apache-2.0
// Elections, log repair, commit, and what may leave before it is on disk.
#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {
namespace {

using Strings = std::vector<std::string>;

bool granted(const Bench& bench) {
  const auto replies = bench.on_wire<RaftVoteReply>();
  REQUIRE(replies.size() == 1);
  return replies.front().second.granted;
}

}  // namespace

TEST_CASE("a lone voter leads after its own vote is on disk") {
  Bench bench(members({1}));
  bench[1].slow_disk = true;
  bench.time_out(1);
  CHECK(bench.core(1).role() == RaftRole::kCandidate);
  bench.finish_writes(1);
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).term() == 2);
  CHECK(bench.core(1).ready_to_lead());
}

TEST_CASE("a majority's votes make a leader, whose no-op everyone applies") {
  for (const auto& founders : {members({1, 2, 3}), members({1, 2, 3, 4, 5}), members({1, 2})}) {
    Bench bench(founders);
    bench.elect(1);
    REQUIRE(bench.core(1).role() == RaftRole::kLeader);
    for (const RaftServerId server : founders.servers()) {
      CHECK(bench.core(number_of(server)).leader() == id(1));
      REQUIRE(bench[number_of(server)].applied.size() == 1);
      CHECK(bench[number_of(server)].applied[0].kind == RaftEntryKind::kNoop);
    }
  }
}

TEST_CASE("without a majority nobody leads and no term is used up") {
  Bench bench(members({1, 2, 3}));
  for (int i = 0; i < 5; ++i) {
    bench.time_out(1);
    bench.settle({2, 3});
  }
  CHECK(bench.core(1).role() == RaftRole::kPreCandidate);
  CHECK(bench.core(1).term() == 1);
}

TEST_CASE("without pre-vote a term is used up by each campaign") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.pre_vote = false; });
  bench.time_out(1);
  CHECK(bench.core(1).role() == RaftRole::kCandidate);
  bench.time_out(1);
  CHECK(bench.core(1).term() == 3);
  bench.settle();
  CHECK(bench.core(1).role() == RaftRole::kLeader);
}

TEST_CASE("refusals by a majority end a campaign") {
  Bench bench(members({1, 2, 3}));
  bench.time_out(1);
  bench.lose_all();
  bench.give(bench.message(2, 1, 1, RaftPreVoteReply{2, false})).value();
  CHECK(bench.core(1).role() == RaftRole::kPreCandidate);
  bench.give(bench.message(3, 1, 1, RaftPreVoteReply{2, false})).value();
  CHECK(bench.core(1).role() == RaftRole::kFollower);
}

TEST_CASE("a vote goes to a log that is as complete, once in a term") {
  // The voter's log ends in entry 3 of term 3.
  struct Case {
    RaftIndex last_index;
    RaftTerm last_term;
    bool granted;
  };
  for (const Case& each :
       {Case{1, 1, false}, Case{3, 2, false}, Case{9, 2, false}, Case{2, 3, false},
        Case{3, 3, true}, Case{4, 3, true}, Case{2, 4, true}}) {
    Bench bench(members({}));
    bench.add(1, stored_with(4, {2, 3}, members({1, 2, 3})));
    bench.give(bench.message(2, 1, 5, RaftVoteRequest{each.last_index, each.last_term, false}))
        .value();
    CHECK(granted(bench) == each.granted);
    bench.lose_all();
    // The other one gets it only if the first did not.
    bench.give(bench.message(3, 1, 5, RaftVoteRequest{9, 4, false})).value();
    CHECK(granted(bench) == !each.granted);
  }
}

TEST_CASE("a vote is repeated to the same candidate, also after a restart") {
  Bench bench(members({}));
  bench.add(1, stored_with(4, {2, 3}, members({1, 2, 3})));
  const RaftMessage ask = bench.message(2, 1, 5, RaftVoteRequest{3, 3, false});
  bench.give(ask).value();
  bench.lose_all();
  bench.start(1);
  CHECK(bench.core(1).vote() == id(2));
  bench.give(ask).value();
  CHECK(granted(bench));
  bench.lose_all();
  bench.give(bench.message(3, 1, 5, RaftVoteRequest{3, 3, false})).value();
  CHECK_FALSE(granted(bench));
}

TEST_CASE("a request of an earlier term is refused with the current one") {
  Bench bench(members({}));
  bench.add(1, stored_with(7, {2, 3}, members({1, 2, 3})));
  bench.give(bench.message(2, 1, 5, RaftVoteRequest{9, 5, false})).value();
  CHECK_FALSE(granted(bench));
  CHECK(bench.wire().front().term == 7);
  bench.lose_all();
  bench.give(bench.message(2, 1, 5, RaftAppendRequest{3, 3, 3, {}})).value();
  const auto replies = bench.on_wire<RaftAppendReply>();
  REQUIRE(replies.size() == 1);
  CHECK_FALSE(replies[0].second.accepted);
  CHECK(replies[0].first.term == 7);
  CHECK(bench.core(1).commit_index() == 1);
}

TEST_CASE("a vote leaves only when it is on disk") {
  Bench bench(members({1, 2, 3}));
  bench[1].slow_disk = true;
  bench.give(bench.message(2, 1, 2, RaftVoteRequest{1, 1, false})).value();
  CHECK(bench.wire().empty());
  bench.finish_writes(1);
  CHECK(granted(bench));
  CHECK(bench[1].disk.hard_state.vote == id(2));
}

TEST_CASE("a server asks for votes only when its own is on disk, and forgets it when it is late") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.pre_vote = false; });
  bench[1].slow_disk = true;
  bench.time_out(1);
  CHECK(bench.wire().empty());
  // Another one won this term meanwhile.
  bench.give(bench.message(2, 1, 2, RaftHeartbeat{1, 0})).value();
  CHECK(bench.core(1).leader() == id(2));
  bench.finish_writes(1);
  CHECK(bench.on_wire<RaftVoteRequest>().empty());
}

TEST_CASE("an acknowledgement leaves only when the entries are on disk") {
  Bench bench(members({1, 2, 3}));
  bench[1].slow_disk = true;
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {command(2, 2)}})).value();
  CHECK(bench.on_wire<RaftAppendReply>().empty());
  // A repetition that adds nothing still waits for the same write.
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {command(2, 2)}})).value();
  CHECK(bench.on_wire<RaftAppendReply>().empty());
  bench.finish_writes(1);
  REQUIRE(bench.on_wire<RaftAppendReply>().size() == 2);
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{true, 2, 0, 0});
}

TEST_CASE("nothing is applied before it is on disk here, committed or not") {
  Bench bench(members({1, 2, 3}));
  bench[1].slow_disk = true;
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 2, {command(2, 2, "a")}})).value();
  CHECK(bench.core(1).commit_index() == 2);
  CHECK(bench[1].applied.empty());
  bench.finish_writes(1);
  CHECK(bench[1].commands() == Strings{"a"});
}

TEST_CASE("a leader does not count its own copy before it is on disk") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench[1].slow_disk = true;
  const RaftIndex before = bench.core(1).commit_index();
  bench.propose(1, "a");
  bench.settle({3});  // 2 has it
  CHECK(bench.core(1).commit_index() == before);
  bench.finish_writes(1);
  CHECK(bench.core(1).commit_index() == before + 1);
}

TEST_CASE("writes are gathered while one is under way") {
  Bench bench(members({1}));
  bench.elect(1);
  bench[1].slow_disk = true;
  for (int i = 0; i < 10; ++i) bench.propose(1, "a");
  CHECK(bench[1].writes.size() == 1);
  CHECK(bench[1].writes[0].entries.size() == 1);
  bench.finish_one_write(1);
  bench.collect(1);
  REQUIRE(bench[1].writes.size() == 1);
  CHECK(bench[1].writes[0].entries.size() == 9);
}

TEST_CASE("a write of entries that were cut off meanwhile does not count for their successors") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.persists_in_flight_max = 5; });
  bench[1].slow_disk = true;
  bench
      .give(bench.message(2, 1, 2,
                          RaftAppendRequest{1, 1, 1, {command(2, 2, "a"), command(2, 3, "b")}}))
      .value();
  bench
      .give(bench.message(3, 1, 3,
                          RaftAppendRequest{1, 1, 3, {command(3, 2, "c"), command(3, 3, "d")}}))
      .value();
  REQUIRE(bench[1].writes.size() == 2);
  CHECK(bench[1].writes[1].truncate_from == 2);
  bench.finish_one_write(1);
  bench.collect(1);
  CHECK(bench[1].applied.empty());  // entries 2 and 3 are on disk, but not these
  for (const auto& [message, reply] : bench.on_wire<RaftAppendReply>()) {
    CHECK_FALSE(reply.accepted);
  }
  bench.finish_writes(1);
  CHECK(bench[1].commands() == Strings{"c", "d"});
  // The same with the first log coming back a third time.
  bench.give(bench.message(2, 1, 4, RaftAppendRequest{3, 3, 3, {command(4, 4, "e")}})).value();
  bench.give(bench.message(3, 1, 5, RaftAppendRequest{3, 3, 3, {command(5, 4, "f")}})).value();
  bench.give(bench.message(2, 1, 6, RaftAppendRequest{3, 3, 4, {command(6, 4, "g")}})).value();
  REQUIRE(bench[1].writes.size() == 3);
  for (int i = 0; i < 2; ++i) {
    bench.finish_one_write(1);
    bench.collect(1);
    CHECK(bench[1].commands().size() == 2);
  }
  bench.finish_writes(1);
  CHECK(bench[1].commands() == Strings{"c", "d", "g"});
}

TEST_CASE("a follower's log is repaired to be the leader's") {
  // The leader of term 8 has terms 1 4 4 5 5 6 6 6 after the founding; the paper's figure 7 around
  // it: shorter, longer, and other logs.
  const std::vector<RaftTerm> leads = {1, 4, 4, 5, 5, 6, 6, 6};
  const std::vector<std::vector<RaftTerm>> others = {{1, 4, 4, 5, 5, 6, 6},
                                                     {1},
                                                     {1, 4, 4, 5, 5, 6, 6, 6, 6},
                                                     {1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
                                                     {1, 4, 4, 4, 4},
                                                     {2, 2, 2, 3, 3, 3, 3, 3}};
  for (const auto& other : others) {
    const RaftConfiguration three = members({1, 2, 3});
    Bench bench(members({}));
    bench.add(1, stored_with(7, leads, three));
    bench.add(2, stored_with(7, other, three));
    bench.add(3, stored_with(7, {}, three));
    bench.elect(1);
    REQUIRE(bench.core(1).role() == RaftRole::kLeader);
    bench.propose(1, "last");
    bench.settle();
    for (const uint8_t follower : {2, 3}) {
      CHECK(bench[follower].disk.entries == bench[1].disk.entries);
      CHECK(bench[follower].applied == bench[1].applied);
    }
  }
}

TEST_CASE("an old append that arrives late cuts nothing off") {
  Bench bench(members({1, 2, 3}));
  const RaftMessage first =
      bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {command(2, 2, "a")}});
  bench.give(first).value();
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{2, 2, 1, {command(2, 3, "b")}})).value();
  bench.give(first).value();
  CHECK(bench.core(1).last_index() == 3);
}

TEST_CASE("an append after an entry that is missing, or of another term, is refused with a hint") {
  Bench bench(members({}));
  bench.add(1, stored_with(5, {2, 2, 4}, members({1, 2, 3})));
  bench.give(bench.message(2, 1, 6, RaftAppendRequest{9, 5, 1, {}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{false, 9, 4, 4});
  bench.lose_all();
  bench.give(bench.message(2, 1, 6, RaftAppendRequest{4, 3, 1, {}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{false, 4, 3, 2});
  CHECK(bench.core(1).last_index() == 4);
}

TEST_CASE("a follower commits no further than it has compared") {
  Bench bench(members({}));
  bench.add(1, stored_with(2, {2, 2}, members({1, 2, 3})));  // 2 and 3 may be wrong
  bench.give(bench.message(2, 1, 3, RaftAppendRequest{1, 1, 9, {}})).value();
  CHECK(bench.core(1).commit_index() == 1);
  bench.give(bench.message(2, 1, 3, RaftAppendRequest{1, 1, 9, {command(2, 2)}})).value();
  CHECK(bench.core(1).commit_index() == 2);
}

TEST_CASE("a leader that contradicts what is committed is refused") {
  Bench bench(members({1, 2, 3}));
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 3, {command(2, 2), command(2, 3)}}))
      .value();
  REQUIRE(bench.core(1).commit_index() == 3);
  const Result<void> second =
      bench.give(bench.message(3, 1, 2, RaftAppendRequest{3, 2, 3, {command(2, 4)}}));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kCorruption);
}

TEST_CASE("copies of an earlier term's entry do not commit it (figure 8)") {
  Bench bench(members({1, 2, 3, 4, 5}));
  bench.elect(1);
  const RaftIndex old_entry = bench.propose(1, "old").index;
  bench.settle({2, 3, 4, 5});
  const RaftTerm old_term = bench.core(1).term();
  // 5 leads a later term, with an entry that nobody else has.
  bench.crash(1);
  bench.elect(5);
  REQUIRE(bench.core(5).role() == RaftRole::kLeader);
  const RaftIndex other_entry = bench.propose(5, "other").index;
  bench.lose_all();
  bench.crash(5);
  // 1 is back and can copy only the old entry to 2: a majority with 1 and 3, but not of its term.
  RaftStored with_old = bench[1].disk;
  CHECK(with_old.entries.back().index == old_entry);
  CHECK(other_entry >= old_entry);
  bench.start(1);
  bench.lose_all();
  RaftCore& leader = bench.core(1);
  leader.receive(bench.message(2, 1, old_term + 1, RaftVoteReply{false})).value();
  for (int i = 0; i < 200 && leader.role() != RaftRole::kCandidate; ++i) {
    bench.tick(1);
    bench.deliver_one([](const RaftMessage&) { return false; });
    for (const uint8_t voter : {2, 3}) {
      if (leader.role() == RaftRole::kPreCandidate) {
        bench
            .give(bench.message(voter, 1, leader.term(), RaftPreVoteReply{leader.term() + 1, true}))
            .value();
      }
    }
  }
  const RaftTerm term = leader.term();
  for (const uint8_t voter : {2, 3}) {
    bench.give(bench.message(voter, 1, term, RaftVoteReply{true})).value();
  }
  REQUIRE(leader.role() == RaftRole::kLeader);
  const RaftIndex before = leader.commit_index();
  bench.lose_all();
  for (const uint8_t follower : {2, 3}) {
    bench.give(bench.message(follower, 1, term, RaftAppendReply{true, old_entry, 0, 0})).value();
  }
  CHECK(leader.commit_index() == before);
  bench.give(bench.message(2, 1, term, RaftAppendReply{true, leader.last_index(), 0, 0})).value();
  bench.give(bench.message(3, 1, term, RaftAppendReply{true, leader.last_index(), 0, 0})).value();
  CHECK(leader.commit_index() == leader.last_index());
}

TEST_CASE("replies of earlier terms count for nothing") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  bench.propose(1, "a");
  bench.lose_all();
  const RaftIndex before = bench.core(1).commit_index();
  bench
      .give(bench.message(2, 1, bench.core(1).term() - 1,
                          RaftAppendReply{true, bench.core(1).last_index(), 0, 0}))
      .value();
  CHECK(bench.core(1).commit_index() == before);
  // Nor does an acknowledgement of what the leader does not have.
  bench.give(bench.message(2, 1, bench.core(1).term(), RaftAppendReply{true, 99, 0, 0})).value();
  CHECK(bench.core(1).commit_index() == before);
}

TEST_CASE("a leader that does not hear a majority steps down") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  for (int i = 0; i < 25 && bench.core(1).role() == RaftRole::kLeader; ++i) {
    bench.tick(1);
    bench.settle({2, 3});
  }
  CHECK(bench.core(1).role() == RaftRole::kFollower);
  CHECK_FALSE(bench.core(1).leader());
}

TEST_CASE("a leader that hears a majority stays") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  for (int i = 0; i < 100; ++i) {
    bench.tick(1);
    bench.settle({3});
  }
  CHECK(bench.core(1).role() == RaftRole::kLeader);
}

TEST_CASE("being asked for votes is not being heard") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  for (int i = 0; i < 25; ++i) {
    bench.tick(1);
    bench.lose_all();
    const RaftTerm term = bench.core(1).term();
    bench.give(bench.message(2, 1, term, RaftPreVoteRequest{term + 1, 2, term})).value();
  }
  CHECK(bench.core(1).role() != RaftRole::kLeader);
}

TEST_CASE("who hears a leader refuses campaigns and keeps its term") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  const RaftTerm term = bench.core(2).term();
  bench.lose_all();
  bench.give(bench.message(3, 2, term, RaftPreVoteRequest{term + 1, 99, term})).value();
  CHECK(bench.on_wire<RaftPreVoteReply>()[0].second == RaftPreVoteReply{term + 1, false});
  bench.lose_all();
  bench.give(bench.message(3, 2, term + 5, RaftVoteRequest{99, term, false})).value();
  bench.give(bench.message(3, 1, term + 5, RaftVoteRequest{99, term, false})).value();
  CHECK(bench.wire().empty());
  CHECK(bench.core(2).term() == term);
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  // Silence of one election timeout ends the loyalty.
  bench.tick(2, static_cast<int>(bench.core(2).options().election_ticks));
  bench.lose_all();
  bench.give(bench.message(3, 2, term + 5, RaftVoteRequest{99, term, false})).value();
  CHECK(granted(bench));
}

TEST_CASE("a pre-vote needs a complete log and changes nothing") {
  Bench bench(members({}));
  bench.add(1, stored_with(4, {2, 3}, members({1, 2, 3})));
  const auto answer = [&](RaftTerm term, RaftPreVoteRequest request) {
    bench.lose_all();
    bench.give(bench.message(2, 1, term, request)).value();
    return bench.on_wire<RaftPreVoteReply>().at(0).second.granted;
  };
  CHECK_FALSE(answer(4, {5, 2, 2}));
  CHECK_FALSE(answer(9, {10, 9, 2}));
  CHECK(answer(9, {10, 3, 3}));
  CHECK(answer(4, {5, 3, 3}));
  CHECK_FALSE(answer(3, {4, 3, 3}));  // a campaign in a term that is used up
  CHECK(bench.core(1).term() == 4);
  CHECK_FALSE(bench.core(1).vote());
  CHECK(bench[1].writes.empty());
}

TEST_CASE("a server that was away does not depose a leader") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  const RaftTerm term = bench.core(1).term();
  for (int i = 0; i < 10; ++i) {
    bench.time_out(3);
    bench.settle({3});
    bench.tick(1);
    bench.settle({3});
  }
  CHECK(bench.core(3).term() == term);
  bench.time_out(3);
  bench.settle();
  for (int i = 0; i < 5; ++i) {
    bench.tick(1);
    bench.settle();
  }
  CHECK(bench.core(1).role() == RaftRole::kLeader);
  CHECK(bench.core(1).term() == term);
  CHECK(bench.core(3).leader() == id(1));
}

TEST_CASE("a follower that got ahead by a failed campaign brings the leader to its term") {
  Bench bench(members({1, 2, 3}));
  bench.elect(1);
  const RaftTerm term = bench.core(1).term();
  // As after a hand-over that went wrong.
  bench.give(bench.message(1, 3, term, RaftTimeoutNow{})).value();
  bench.lose_all();
  REQUIRE(bench.core(3).term() == term + 1);
  bench.tick(1, 5);
  bench.settle();
  CHECK(bench.core(1).term() >= term + 1);
  CHECK(bench.core(1).role() != RaftRole::kLeader);
}

TEST_CASE("servers behind and ahead in terms find a leader") {
  const RaftConfiguration two = members({1, 2});
  Bench bench(members({}));
  bench.add(1, stored_with(9, {2}, two));     // later term, shorter log
  bench.add(2, stored_with(3, {2, 2}, two));  // earlier term, longer log
  for (int i = 0; i < 20; ++i) {
    bench.time_out(1);
    bench.settle();
    bench.time_out(2);
    bench.settle();
    if (bench.core(2).role() == RaftRole::kLeader) break;
  }
  CHECK(bench.core(2).role() == RaftRole::kLeader);
  CHECK(bench.core(2).term() > 9);
}

TEST_CASE("a candidate follows whoever won its term") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.pre_vote = false; });
  bench.time_out(1);
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {}})).value();
  CHECK(bench.core(1).role() == RaftRole::kFollower);
  CHECK(bench.core(1).leader() == id(2));
  CHECK(bench.core(1).vote() == id(1));
}

TEST_CASE("messages of another cluster, group or addressee have no effect") {
  Bench bench(members({1, 2, 3}));
  RaftMessage message = bench.message(2, 1, 9, RaftHeartbeat{1, 0});
  message.cluster_id = uuid_of(201);
  CHECK(bench.give(message).error().code == ErrorCode::kInvalid);
  message = bench.message(2, 1, 9, RaftHeartbeat{1, 0});
  message.group_id = RaftGroupId{10};
  CHECK(bench.give(message).error().code == ErrorCode::kInvalid);
  message = bench.message(2, 1, 9, RaftHeartbeat{1, 0});
  message.to = id(3);
  CHECK(bench.core(1).receive(message).error().code == ErrorCode::kInvalid);
  CHECK(bench.core(1).receive(bench.message(1, 1, 9, RaftHeartbeat{1, 0})).error().code ==
        ErrorCode::kInvalid);
  CHECK(bench.core(1).term() == 1);
}

TEST_CASE("appends that contradict themselves have no effect") {
  Bench bench(members({1, 2, 3}));
  const std::vector<std::vector<RaftEntry>> wrong = {
      {command(2, 3)},                                       // a gap
      {command(2, 2), command(1, 3)},                        // a falling term
      {command(3, 2)},                                       // later than its leader
      {{2, 2, RaftEntryKind::kConfiguration, "nonsense"}}};  // no configuration
  for (const auto& entries : wrong) {
    const Result<void> received =
        bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, entries}));
    REQUIRE_FALSE(received);
    CHECK(received.error().code == ErrorCode::kCorruption);
  }
  CHECK(bench.core(1).term() == 1);
  CHECK(bench.core(1).last_index() == 1);
}

TEST_CASE("proposals are bounded and go to a leader only") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) {
    options.entry_bytes_max = 100;
    options.uncommitted_bytes_max = 250;
  });
  CHECK(bench.core(1).propose("a").error().code == ErrorCode::kNotLeader);
  bench.elect(1);
  CHECK(bench.core(2).propose("a").error().code == ErrorCode::kNotLeader);
  CHECK(bench.core(2).leader() == id(1));
  CHECK(bench.core(1).propose(std::string(101, 'a')).error().code == ErrorCode::kLimit);
  bench.propose(1, std::string(100, 'a'));
  bench.propose(1, std::string(100, 'a'));
  CHECK(bench.core(1).propose(std::string(100, 'a')).error().code == ErrorCode::kOverloaded);
  bench.settle();
  CHECK(bench.core(1).propose(std::string(100, 'a')));
}

TEST_CASE("stored state that contradicts itself is refused") {
  RaftOptions options;
  options.self = id(1);
  const auto refused = [&](RaftStored stored) {
    const Result<RaftCore> core = RaftCore::make(options, std::move(stored));
    return !core && core.error().code == ErrorCode::kCorruption;
  };
  CHECK_FALSE(refused(stored_with(4, {2, 3}, members({1}))));
  CHECK(refused(stored_with(2, {2, 3}, members({1}))));  // a log ahead of its term
  CHECK(refused(stored_with(4, {3, 2}, members({1}))));
  RaftStored gap = stored_with(4, {2, 3}, members({1}));
  gap.entries[1].index = 9;
  CHECK(refused(gap));
  RaftStored short_log = stored_with(4, {2, 3}, members({1}));
  short_log.hard_state.commit = 4;
  CHECK(refused(short_log));
  RaftStored late = stored_with(4, {2, 3}, members({1}));
  late.entries.erase(late.entries.begin());
  CHECK(refused(late));
}

TEST_CASE("a leader whose entry has an earlier term than what is committed before it is refused") {
  Bench bench(members({}));
  RaftStored stored = stored_with(3, {2, 3}, members({1, 2, 3}));  // entries 2 and 3
  stored.hard_state.commit = 3;
  bench.add(1, stored);
  const auto append = [&](std::vector<RaftEntry> entries) {
    return bench.give(bench.message(2, 1, 4, RaftAppendRequest{1, 1, 3, std::move(entries)}));
  };
  CHECK_FALSE(append({command(2, 2), command(2, 3), command(2, 4)}));
  CHECK(bench.core(1).last_index() == 3);
  CHECK(append({command(2, 2), command(3, 3), command(4, 4)}));
  CHECK(bench.core(1).last_index() == 4);
}

}  // namespace tetrad::replication::test
