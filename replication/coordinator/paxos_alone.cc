// SPDX-License-Identifier: Apache-2.0
// A conditional statement or SERIAL read of a partition that has one member, a store of this shard.
// Nobody else votes, so who has the partition's turn decides: registers, rows, the condition, and
// one synced write of the new rows with their commit. The next one has its turn when the write is
// seen, and is answered when what it has seen, its own write included, is on the disk: so one sync
// serves all that were decided during the one before. A promise that another coordinator holds is
// no hindrance: its proposal comes later, or its ballot is lower and is refused. Where nothing is
// written, a SERIAL read or a condition that does not hold, such a proposal may still be on its way,
// and its client may know since long that nobody knows: an empty proposal goes into the registers
// then, so that it is refused. What may be open from a time of more members, or a timestamp that is
// not before now, is left to the rounds of votes.
#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/consistency.h"
#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;
using Alone = PaxosService::Alone;

namespace {

constexpr int64_t kSameMomentUs = 1'000;

/// An answer that may come when nobody waits any more.
template <class T>
struct Answer {
  base::OneShot<Result<T>> shot;
  auto setter(const std::shared_ptr<char>& alive) {
    return [alive = std::weak_ptr<char>(alive), setter = shot.setter()](Result<T> value) {
      if (!alive.expired()) setter.set(std::move(value));
    };
  }
};

/// `proposal` gets the mutation as its value, or stays as it is.
ProposeRequest request_for(const storage::ReadCommand& command, SetEpoch epoch, Proposal proposal,
                           const storage::Mutation* mutation) {
  ProposeRequest request{epoch,
                         command.incarnation,
                         command.schema_version,
                         command.position,
                         command.partition_key,
                         std::move(proposal)};
  if (mutation != nullptr) storage::encode_mutation(*mutation, request.proposal.value);
  return request;
}

/// Somebody may propose yet with the promise that the registers have.
bool is_promise_open(const storage::PaxosRegisters& registers) {
  const auto answers_it = [&](const std::optional<Proposal>& proposal) {
    return proposal && proposal->ballot >= registers.promised;
  };
  return registers.promised.present() && !answers_it(registers.accepted) &&
         !answers_it(registers.committed);
}

}  // namespace

/// Nothing is written, unless a promise has to be closed: what the turn has seen must be on the disk
/// before the answer goes. `empty`: the proposal that changes nothing.
Task<Result<std::optional<CoordinatorImpl::PaxosRun::Step>>> CoordinatorImpl::PaxosRun::end_alone(
    PlanPtr plan, Alone seen, Proposal empty) {
  if (is_promise_open(seen.turn.registers()) && !TETRAD_MUTANT(lwt_alone_promise_open)) {
    const ProposeRequest request = request_for(command, plan->epoch, std::move(empty), nullptr);
    Answer<PaxosVote> closing;
    self.paxos_.close_alone(plan->live.front().store, std::move(seen), request, deadline,
                            closing.setter(self.alive_));
    const Result<PaxosVote> vote = co_await closing.shot;
    if (vote && vote->yes) co_return Step::kDone;
    co_return after_failure_alone(plan, vote);
  }
  Answer<void> syncing;
  if (TETRAD_MUTANT(lwt_seen_unsynced)) co_return Step::kDone;
  seen.turn.when_synced(syncing.setter(self.alive_));
  seen.turn.end();
  place->reset();
  const Result<void> synced = co_await syncing.shot;
  if (synced) co_return Step::kDone;
  co_return after_failure_alone(plan, std::unexpected(synced.error()));
}

Result<std::optional<CoordinatorImpl::PaxosRun::Step>>
CoordinatorImpl::PaxosRun::after_failure_alone(const PlanPtr& plan, const Result<PaxosVote>& no) {
  const StoreAddress& member = plan->live.front();
  Round round(plan, [&](const auto& set) { return plan->deciding(set); });
  no ? round.on_refusal(member, no->last) : round.on_error(member, no.error());
  return after_failure(round);
}

bool CoordinatorImpl::PaxosRun::is_alone(const Plan& plan) const {
  return plan.sets.new_set.empty() && plan.sets.old_set.size() == 1 && plan.live.size() == 1 &&
         self.replicas_.is_local(plan.live.front()) && is_certain() && !above_us;
}

std::optional<Ballot> CoordinatorImpl::PaxosRun::ballot_alone(
    const storage::PaxosRegisters& registers, const Alone& alone) {
  const Ballot last = last_of(registers, alone.floor_us);
  int64_t now_us = std::max(self.now_us(), made_after_us + 1);
  // Statements of a line may be decided within one microsecond.
  if (last.us >= now_us && !last.is_ahead() && last.us - now_us < kSameMomentUs)
    now_us = last.us + 1;
  if (std::max(alone.mark_us, last.us) >= now_us) return std::nullopt;
  return self.ballots_.next(now_us);
}

Task<Result<std::optional<CoordinatorImpl::PaxosRun::Step>>>
CoordinatorImpl::PaxosRun::attempt_alone(PlanPtr plan) {
  TETRAD_ASSERT(plan->live.size() == 1);
  TETRAD_ASSERT(is_certain());
  const StoreAddress member = plan->live.front();
  const auto failed_with = [&](const Error& error) {
    return after_failure_alone(plan, std::unexpected(error));
  };
  sent = true;
  const base::Deadline until = attempt_deadline();
  Answer<Alone> entering;
  self.paxos_.enter_alone(member.store, command, plan->epoch, until, entering.setter(self.alive_));
  Result<Alone> alone = co_await entering.shot;
  if (!alone) co_return failed_with(alone.error());

  const RegistersOf told{member, alone->turn.registers()};
  const Judgment judgment = judge({&told, 1}, alone->floor_us);
  if (judgment.open != nullptr) co_return std::nullopt;
  const std::optional<Ballot> above = ballot_alone(told.registers, *alone);
  if (!above) co_return std::nullopt;
  const Ballot ballot = *above;
  command.now_s = ballot.us / 1'000'000;

  Answer<storage::ReadResult> reading;
  self.replicas_.read(member.store, plan->epoch, command, until, reading.setter(self.alive_));
  Result<storage::ReadResult> read = co_await reading.shot;
  if (!read) co_return failed_with(read.error());
  std::vector<storage::ReplicaReply> replies;
  replies.push_back({member, std::move(*read)});
  TETRAD_CO_TRY(storage::MergedRead merged, storage::merge_replies(command, replies));
  self.metrics_.conditional_alone.add();
  Proposal proposal{ballot, ballot, judgment.follows(), {}};
  if (statement == nullptr) {
    rows = std::move(merged.result);
    Result<std::optional<Step>> seen =
        co_await end_alone(plan, std::move(*alone), std::move(proposal));
    co_return seen;
  }
  const ConditionalMoment moment{ballot.us, ballot.made_us()};
  auto decided = co_await statement->decide(merged.result, moment);
  if (!decided) co_return std::unexpected(std::move(decided.error()));
  if (!*decided) {
    Result<std::optional<Step>> seen =
        co_await end_alone(plan, std::move(*alone), std::move(proposal));
    co_return seen;
  }
  if (auto fits = check_limits(**decided); !fits) co_return std::unexpected(fits.error());
  if (self.reactor_.now_us() >= deadline.at_us) co_return std::unexpected(timed_out());

  awaited = self.views_to_await({&**decided, 1});
  const ProposeRequest request = request_for(command, plan->epoch, std::move(proposal), &**decided);
  proposed.push_back({request.proposal, nullptr});
  Answer<PaxosVote> deciding;
  const auto passed_on = [its_place = std::weak_ptr<std::optional<ConditionalLine::Place>>(place)] {
    if (const auto held = its_place.lock()) held->reset();
  };
  self.paxos_.decide_alone(member.store, std::move(*alone), request, deadline, passed_on,
                           deciding.setter(self.alive_));
  const Result<PaxosVote> vote = co_await deciding.shot;
  if (vote) proposed.clear();
  if (!vote || !vote->yes) co_return after_failure_alone(plan, vote);
  applied = true;
  note("Applied by the only replica");
  co_return Step::kDone;
}

}  // namespace tetrad::replication
