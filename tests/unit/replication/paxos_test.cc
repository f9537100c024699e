// SPDX-License-Identifier: Apache-2.0
// The pure parts of Paxos: ballots, what an acceptor says, what a proposer makes of it, tallies of
// two sets, the bytes of messages.
#include <limits>
#include <set>
#include <tuple>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/paxos/acceptor.h"
#include "replication/paxos/ballot_source.h"
#include "replication/paxos/followed_values.h"
#include "replication/paxos/judgment.h"
#include "replication/paxos/paxos_messages.h"
#include "replication/paxos/sets_tally.h"

namespace tetrad::replication {
namespace {

using storage::Ballot;
using storage::PaxosRegisters;
using storage::Proposal;

constexpr PaxosFloor kNoFloor = storage::kNoTimestamp;

HostId host(uint8_t n) {
  HostId out;
  out.value.octets[0] = n;
  return out;
}
StoreAddress member(uint8_t n) { return {host(n), 0}; }
Ballot at(int64_t us) { return {us, host(1), 1, 0}; }
Proposal value_at(int64_t us, int64_t follows = 0) {
  return {at(us), at(us), follows == 0 ? Ballot() : at(follows), "value"};
}
Proposal empty_at(int64_t us, int64_t follows = 0) {
  Proposal out = value_at(us, follows);
  out.value.clear();
  return out;
}
Proposal completed(Proposal proposal, int64_t us) {
  proposal.ballot = at(us);
  return proposal;
}
RegistersOf of(uint8_t n, PaxosRegisters registers) { return {member(n), std::move(registers)}; }
PaxosRegisters with_accepted(Proposal proposal) {
  PaxosRegisters out;
  out.promised = proposal.ballot;
  out.accepted = std::move(proposal);
  return out;
}
PaxosRegisters with_committed(Proposal proposal) {
  PaxosRegisters out;
  out.promised = proposal.ballot;
  out.committed = std::move(proposal);
  return out;
}
std::vector<RegistersOf> answers(PaxosRegisters a, PaxosRegisters b) {
  std::vector<RegistersOf> out;
  out.push_back(of(1, std::move(a)));
  out.push_back(of(2, std::move(b)));
  return out;
}

TEST_CASE("ballots of a shard rise, whatever the clock does") {
  BallotSource source(host(1), 7, 3);
  Ballot last = source.next(100);
  CHECK(last.us == 100);
  CHECK(last.start_number == 7);
  for (const int64_t now_us : {100, 50, 300, 299, 1}) {
    const Ballot next = source.next(now_us);
    CHECK(next.us > last.us);
    CHECK(next.us >= now_us);
    last = next;
  }
}

TEST_CASE("two lives of a node give no ballot twice, though the clock was set back between them") {
  BallotSource first(host(1), 7, 3), second(host(1), 8, 3);
  for (int i = 0; i < 3; ++i) {
    const Ballot before = first.next(100);
    const Ballot after = second.next(100);
    CHECK(before.us == after.us);
    CHECK(before != after);
  }
  const auto before = first.next_above(5'000, 100), after = second.next_above(5'000, 100);
  REQUIRE((before && after));
  CHECK(*before != *after);
}

TEST_CASE("a ballot above a client's timestamp leaves the others where they are") {
  BallotSource source(host(1), 7, 3);
  source.next(100);
  const int64_t far_us = int64_t{1} << 60;
  const auto first = source.next_above(far_us, 200), second = source.next_above(far_us, 200);
  REQUIRE((first && second));
  CHECK(first->us == far_us + 1);
  CHECK(first->is_ahead());
  CHECK(first->made_us() == 200);
  CHECK(second->made_us() == 201);
  CHECK(*first < *second);
  const Ballot next = source.next(100);
  CHECK(next == Ballot{202, host(1), 7, 3});
  CHECK(!next.is_ahead());
  CHECK(next.made_us() == 202);
}

TEST_CASE("a ballot of the clock that is late enough does") {
  BallotSource source(host(1), 7, 3);
  CHECK(source.next_above(100, 200) == Ballot{200, host(1), 7, 3});
  CHECK(source.next_above(100, 102) == Ballot{201, host(1), 7, 3});
  // Of one time those ahead are above the others, so the one after it is ahead, too.
  const auto ahead = source.next_above(500, 300), equal = source.next_above(500, 501);
  REQUIRE((ahead && equal));
  CHECK(equal->us == 501);
  CHECK(*ahead < *equal);
  CHECK(*equal < source.next_above(500, 502));
}

TEST_CASE("no two ballots are equal, however many are ahead of the clock") {
  const int64_t far_us = int64_t{1} << 60;
  std::set<std::tuple<int64_t, HostId, uint64_t, uint32_t>> all;
  const auto take = [&](const std::optional<Ballot>& ballot) {
    REQUIRE(ballot);
    CHECK(all.emplace(ballot->us, ballot->host, ballot->start_number, ballot->shard).second);
  };
  // Lives of two nodes, with a clock that stands still and one that was set back.
  for (const auto& [node, start, shard] : {std::tuple(1, 7, 3), {1, 8, 3}, {1, 8, 4}, {2, 8, 3}}) {
    BallotSource source(host(static_cast<uint8_t>(node)), static_cast<uint64_t>(start),
                        static_cast<uint32_t>(shard));
    for (int i = 0; i < 70'000; ++i) take(source.next_above(far_us, 1000));
    for (int i = 0; i < 1000; ++i) take(source.next(1000));
    for (int i = 0; i < 1000; ++i) take(source.next_above(far_us + i, 1000));
  }
  CHECK(all.size() == 4 * 72'000);
}

TEST_CASE("after the last timestamps there is no ballot") {
  BallotSource source(host(1), 7, 3);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(!source.next_above(kMax, 100));
  CHECK(!source.next_above(kMax - 2, 100));
  CHECK(source.next_above(kMax - 3, 100)->us == kMax - 2);
  CHECK(source.next_above(storage::kNoTimestamp, 200)->us == 200);
}

TEST_CASE("a ballot ahead of the clock is as old as its making") {
  BallotSource source(host(1), 7, 3);
  const auto old = source.next_above(10'000, 100), later = source.next_above(10'000, 200);
  REQUIRE((old && later));
  PaxosRegisters registers;
  CHECK(!promise(registers, *old, 150));
  CHECK(promise(registers, *later, 150));
  const Proposal value{*later, *old, {}, "value"};
  CHECK(!accept(registers, value, 150));
  CHECK(!accept(registers, Proposal{*later, *later, {}, "value"}, 300));
  CHECK(accept(registers, value, 100));
  const std::vector<RegistersOf> told{{{host(1), 0}, registers}};
  CHECK(judge(told, 100).open != nullptr);
  CHECK(judge(told, 150).open == nullptr);
  CHECK(fate_of(*old, told, 150) == Fate::kUnknown);
  CHECK(fate_of(*old, told, 100) == Fate::kOpen);
  // It stays in the way of all that are below it.
  CHECK(!promise(registers, at(5000), 1000));
}

TEST_CASE("a new ballot comes after all that may be decided, below the floor too") {
  CHECK(earlier_in({}).value_us == storage::kNoTimestamp);
  CHECK(earlier_in({}).made_us == storage::kNoTimestamp);
  BallotSource source(host(1), 7, 3);
  const Ballot ahead = source.next_above(10'000, 100).value();
  // Known as committed by nobody here, but for what was accepted after it.
  const Proposal read{source.next_above(20'000, 300).value(), ahead, at(15'000), ""};
  const auto told = answers(with_accepted(read), with_committed({ahead, ahead, {}, "value"}));
  CHECK(earlier_in(told).value_us == 15'000);
  CHECK(earlier_in(told).made_us == 300);
  const auto later = answers(with_accepted(empty_at(50, 40)), with_committed(value_at(60, 30)));
  CHECK(earlier_in(later).value_us == 60);
  CHECK(earlier_in(later).made_us == 60);
}

TEST_CASE("an acceptor promises rising ballots, the same one again, none below the floor") {
  PaxosRegisters registers;
  CHECK(promise(registers, at(5), kNoFloor));
  CHECK(promise(registers, at(5), kNoFloor));
  CHECK(!promise(registers, at(4), kNoFloor));
  CHECK(!promise(registers, at(9), 10));
  CHECK(registers.promised == at(5));
  CHECK(promise(registers, at(10), 10));
}

TEST_CASE("an acceptor accepts at or above its promise, one proposal a ballot") {
  PaxosRegisters registers;
  promise(registers, at(5), kNoFloor);
  CHECK(!accept(registers, value_at(4), kNoFloor));
  CHECK(accept(registers, value_at(5), kNoFloor));
  CHECK(accept(registers, value_at(5), kNoFloor));
  Proposal other = value_at(5);
  other.value = "other";
  CHECK(!accept(registers, other, kNoFloor));
  CHECK(!accept(registers, value_at(7), 8));
  CHECK(accept(registers, empty_at(7), kNoFloor));
  CHECK(registers.promised == at(7));
}

TEST_CASE("a new value never shares its time with a committed one") {
  PaxosRegisters registers = with_committed(value_at(5));
  Proposal rival = value_at(5);
  rival.ballot.host = rival.origin.host = host(9);
  CHECK(!accept(registers, rival, kNoFloor));
  rival.value.clear();
  CHECK(accept(registers, rival, kNoFloor));
}

TEST_CASE("a commit keeps the newest value until it is settled, and its ballot for ever") {
  PaxosRegisters registers = with_accepted(value_at(5));
  CHECK(commit(registers, value_at(5)));
  CHECK(!registers.accepted);
  CHECK(!commit(registers, value_at(3)));
  CHECK(!settle(registers, at(3)));
  CHECK(settle(registers, at(5)));
  CHECK(registers.committed->value.empty());
  CHECK(registers.last() == at(5));
  CHECK(commit(registers, completed(value_at(5), 8)));
  CHECK(registers.settled);
  CHECK(registers.committed->value.empty());
  CHECK(commit(registers, value_at(9)));
  CHECK(!registers.settled);
}

TEST_CASE("a value accepted somewhere and committed nowhere is open") {
  const auto told = answers(with_accepted(value_at(5)), {});
  const Judgment judgment = judge(told, kNoFloor);
  REQUIRE(judgment.open != nullptr);
  CHECK(judgment.open->origin == at(5));
  CHECK(!judgment.follows().present());
}

TEST_CASE("an empty proposal or a commit above an accepted value closes it") {
  CHECK(judge(answers(with_accepted(value_at(5)), with_accepted(empty_at(6))), kNoFloor).open ==
        nullptr);
  CHECK(judge(answers(with_accepted(value_at(5)), with_committed(value_at(6))), kNoFloor).open ==
        nullptr);
  const auto known = answers(with_accepted(completed(value_at(5), 7)), with_committed(value_at(5)));
  const Judgment judgment = judge(known, kNoFloor);
  CHECK(judgment.open == nullptr);
  REQUIRE(judgment.committed != nullptr);
  CHECK(judgment.lacking == std::vector<StoreAddress>{member(1)});
  CHECK(judgment.follows() == at(5));
}

TEST_CASE("a commit shows in what others have accepted after it") {
  // Neither has the commit of 5: one had promised before it, and it never came to the other.
  const auto told = answers({}, with_accepted(empty_at(7, 5)));
  const Judgment judgment = judge(told, kNoFloor);
  CHECK(judgment.open == nullptr);
  CHECK(judgment.committed == nullptr);
  CHECK(judgment.newest == at(5));
  CHECK(judgment.follows() == at(5));
  CHECK(shown_by(told[0].registers, kNoFloor) == Ballot());
  CHECK(shown_by(told[1].registers, kNoFloor) == at(5));
  const auto older = answers(with_committed(value_at(4)), with_accepted(empty_at(7, 5)));
  CHECK(judge(older, kNoFloor).committed->origin == at(4));
  CHECK(judge(older, kNoFloor).newest == at(5));
  CHECK(judge(told, 8).newest == Ballot());
}

TEST_CASE("what is settled at one member is settled") {
  PaxosRegisters settled = with_committed(value_at(5));
  settle(settled, at(5));
  CHECK(judge(answers(settled, with_committed(value_at(5))), kNoFloor).is_settled);
  CHECK(judge(answers(with_committed(value_at(5)), settled), kNoFloor).is_settled);
  const auto newer = answers(settled, with_committed(value_at(6, 5)));
  CHECK(!judge(newer, kNoFloor).is_settled);
  CHECK(judge(newer, kNoFloor).committed->value == "value");
}

TEST_CASE("what is below the floor counts as nothing") {
  const auto told = answers(with_accepted(value_at(5)), with_committed(value_at(4)));
  const Judgment judgment = judge(told, 6);
  CHECK(judgment.open == nullptr);
  CHECK(judgment.committed == nullptr);
  CHECK(fate_of(at(5), told, 6) == Fate::kUnknown);
}

TEST_CASE("the fate of a proposal is told by what was proposed after it") {
  const Ballot own = at(5);
  CHECK(fate_of(own, answers({}, {}), kNoFloor) == Fate::kNotDecided);
  CHECK(fate_of(own, answers(with_accepted(value_at(4)), {}), kNoFloor) == Fate::kNotDecided);
  CHECK(fate_of(own, answers(with_accepted(value_at(5)), {}), kNoFloor) == Fate::kOpen);
  CHECK(fate_of(own, answers(with_accepted(completed(value_at(5), 8)), {}), kNoFloor) ==
        Fate::kOpen);
  CHECK(fate_of(own, answers(with_committed(value_at(5)), {}), kNoFloor) == Fate::kApplied);
  CHECK(fate_of(own, answers(with_committed(value_at(5)), with_accepted(value_at(7, 5))),
                kNoFloor) == Fate::kApplied);
  CHECK(fate_of(own, answers(with_accepted(value_at(5)), with_accepted(value_at(7, 3))),
                kNoFloor) == Fate::kNotDecided);
  CHECK(fate_of(own, answers({}, with_accepted(value_at(7, 5))), kNoFloor) == Fate::kApplied);
  CHECK(fate_of(own, answers({}, with_accepted(empty_at(7, 5))), kNoFloor) == Fate::kApplied);
  CHECK(fate_of(own, answers({}, with_committed(value_at(9, 7))), kNoFloor) == Fate::kUnknown);
  CHECK(fate_of(own, answers(with_committed(value_at(5)), with_committed(value_at(9, 7))),
                kNoFloor) == Fate::kApplied);
}

TEST_CASE("the fate of a proposal is found behind values that some members still know") {
  const Ballot own = at(5);
  const auto of = [&](auto... registers) { return fate_of(own, answers(registers...), kNoFloor); };
  CHECK(of(with_committed(value_at(7, 5)), with_committed(value_at(9, 7))) == Fate::kApplied);
  CHECK(of(with_committed(value_at(7, 3)), with_committed(value_at(9, 7))) == Fate::kNotDecided);
  CHECK(of(with_accepted(value_at(7, 5)), with_accepted(empty_at(9, 7))) == Fate::kApplied);
  CHECK(of(with_committed(value_at(7, 6)), with_committed(value_at(9, 7))) == Fate::kUnknown);
  CHECK(of(with_committed(value_at(6, 5)), with_committed(value_at(9, 7))) == Fate::kUnknown);
  // What claims to follow itself, or a later one, leads nowhere.
  CHECK(of(with_committed(value_at(7, 7)), with_committed(value_at(9, 7))) == Fate::kUnknown);
  CHECK(of(with_committed(value_at(7, 9)), with_committed(value_at(9, 7))) == Fate::kUnknown);
}

TEST_CASE("the fate of a proposal is found in what members remember of later values") {
  FollowedValues values;
  values.note(value_at(3, 2));
  values.note(value_at(7, 5));
  values.note(empty_at(8, 7));
  values.note(value_at(9, 7));
  values.note(completed(value_at(9, 7), 10));  // the same value
  values.note(value_at(12, 9));
  using Ballots = std::vector<Ballot>;
  CHECK(values.before(at(12), at(5)) == Ballots{at(9), at(7), at(5)});
  CHECK(values.before(at(12), at(8)) == Ballots{at(9), at(7)});
  CHECK(values.before(at(12), at(1)) == Ballots{at(9), at(7), at(5)});
  CHECK(values.before(at(8), at(1)).empty());
  CHECK(fate_before(at(5), at(12), values.before(at(12), at(5))) == Fate::kApplied);
  CHECK(fate_before(at(6), at(12), values.before(at(12), at(6))) == Fate::kNotDecided);
  CHECK(fate_before(at(4), at(12), values.before(at(12), at(4))) == Fate::kUnknown);
  CHECK(fate_before(at(5), at(12), Ballots{}) == Fate::kUnknown);
  CHECK(fate_before(at(5), at(12), Ballots{at(12)}) == Fate::kUnknown);

  Ballot gap;
  CHECK(fate_of(at(5), answers({}, with_committed(value_at(12, 9))), kNoFloor, &gap) ==
        Fate::kUnknown);
  CHECK(gap == at(9));
  CHECK(fate_of(at(5), answers({}, {}), 6, &gap) == Fate::kUnknown);
  CHECK(!gap.present());

  for (int64_t us = 100; us < 100 + static_cast<int64_t>(FollowedValues::kKeptMax); ++us)
    values.note(value_at(us, us - 1));
  CHECK(values.before(at(12), at(5)).empty());
  CHECK(values.before(at(300), at(100)).size() == FollowedValues::kStepsMax);
  CHECK(values.before(at(4'195), at(4'190)) ==
        Ballots{at(4'194), at(4'193), at(4'192), at(4'191), at(4'190)});

  const Bytes asked = encode_followed_request(at(12), at(5));
  CHECK(decode_followed_request(asked) == std::pair(at(12), at(5)));
  CHECK(!decode_followed_request(asked + "x"));
  CHECK(!decode_followed_request(BytesView(asked).substr(1)));
  const Ballots three{at(9), at(7), at(5)};
  CHECK(decode_followed_answer(encode_followed_answer(three)) == three);
  CHECK(!decode_followed_answer(encode_followed_answer(Ballots(FollowedValues::kStepsMax + 1))));
}

TEST_CASE("who completes a value changes nothing of it but the ballot it is accepted by") {
  const Proposal open = completed(value_at(5, 3), 7);
  const Proposal again = completion_of(open, at(9));
  CHECK(again == completed(value_at(5, 3), 9));
  // So whoever proposed what it follows still finds that this was decided.
  CHECK(fate_of(at(3), answers({}, with_committed(again)), kNoFloor) == Fate::kApplied);
}

TEST_CASE("each of two sets has a tally of its own") {
  WriteSets sets{{member(1)}, {member(1), member(2), member(3)}};
  const auto quorum = [](const std::vector<StoreAddress>& set) {
    return Need(set.size(), write_quorum(static_cast<int>(set.size())));
  };
  SetsTally tally(sets, quorum);
  tally.on_yes(member(2));
  tally.on_yes(member(3));
  CHECK(tally.verdict() == WriteTally::Verdict::kPending);
  tally.on_yes(member(1));
  CHECK(tally.succeeded());
  SetsTally failing(sets, quorum);
  failing.on_no(member(1));
  CHECK(failing.verdict() == WriteTally::Verdict::kFailed);
}

TEST_CASE("Paxos messages come back as they were, and bad bytes are refused") {
  PrepareRequest prepare;
  prepare.epoch = SetEpoch{9};
  prepare.ballot = at(77);
  prepare.rows = PaxosRows::kDigest;
  prepare.command.partition_key = "key";
  prepare.command.live_only = false;
  const Bytes bytes = encode_prepare(prepare);
  const auto back = decode_prepare(bytes);
  REQUIRE(back);
  CHECK(back->ballot == prepare.ballot);
  CHECK(back->rows == PaxosRows::kDigest);
  CHECK(back->command.partition_key == "key");
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK(!decode_prepare(BytesView(bytes).substr(0, size)));

  PrepareAnswer answer;
  answer.promised = true;
  answer.mark_us = 5;
  answer.registers = with_committed(value_at(5));
  const auto told = decode_prepare_answer(encode_prepare_answer(answer));
  REQUIRE(told);
  CHECK(told->registers == answer.registers);
  CHECK(told->mark_us == 5);
  PrepareAnswer refused;
  refused.last = at(8);
  CHECK(decode_prepare_answer(encode_prepare_answer(refused))->last == at(8));

  const ProposeRequest request{SetEpoch{9}, TableIncarnation{3},      SchemaVersion{4}, {5, 6},
                               "key",       completed(value_at(5), 8)};
  const Bytes proposed = encode_propose(request);
  const auto propose = decode_propose(proposed);
  REQUIRE(propose);
  CHECK(propose->proposal == request.proposal);
  CHECK(propose->position == request.position);
  for (size_t size = 0; size < proposed.size(); ++size)
    CHECK(!decode_propose(BytesView(proposed).substr(0, size)));
  CHECK(!decode_propose(proposed + "x"));

  CHECK(decode_vote(encode_vote({true, {}}))->yes);
  CHECK(decode_vote(encode_vote({false, at(3)}))->last == at(3));
  base::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes noise(random.below(60), '\0');
    for (char& byte : noise) byte = static_cast<char>(random.below(256));
    (void)decode_prepare(noise);
    (void)decode_prepare_answer(noise);
    (void)decode_propose(noise);
    (void)decode_vote(noise);
  }
}

}  // namespace
}  // namespace tetrad::replication
