// SPDX-License-Identifier: Apache-2.0
// A conditional statement or SERIAL read of a partition that has one member, a store of this shard.
// Nobody else votes, so who has the partition's turn decides: registers, rows, the condition, and
// one synced write of the new rows with their commit. A promise that another coordinator holds is
// no hindrance: its proposal comes later, or its ballot is lower and is refused. What may be open
// from a time of more members, or a timestamp that is not before now, is left to the rounds of
// votes.
#include "replication/consistency.h"
#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;
using Alone = PaxosService::Alone;

namespace {

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

}  // namespace

bool CoordinatorImpl::PaxosRun::is_alone(const Plan& plan) const {
  return plan.sets.new_set.empty() && plan.sets.old_set.size() == 1 && plan.live.size() == 1 &&
         self.replicas_.is_local(plan.live.front()) && is_certain() && !above_us;
}

Task<Result<std::optional<CoordinatorImpl::PaxosRun::Step>>>
CoordinatorImpl::PaxosRun::attempt_alone(PlanPtr plan) {
  const StoreAddress member = plan->live.front();
  const auto failed_with = [&](const Error& error) -> Result<std::optional<Step>> {
    Round round(plan, write_quorum);
    round.on_error(member, error);
    return after_failure(round);
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
  const int64_t passed_us = std::max(alone->mark_us, last_of(told.registers, alone->floor_us).us);
  const int64_t now_us = std::max(self.now_us(), made_after_us + 1);
  if (passed_us >= now_us) co_return std::nullopt;
  const Ballot ballot = self.ballots_.next(now_us);
  command.now_s = ballot.us / 1'000'000;

  Answer<storage::ReadResult> reading;
  self.replicas_.read(member.store, plan->epoch, command, until, reading.setter(self.alive_));
  Result<storage::ReadResult> read = co_await reading.shot;
  if (!read) co_return failed_with(read.error());
  std::vector<storage::ReplicaReply> replies;
  replies.push_back({member, std::move(*read)});
  TETRAD_CO_TRY(storage::MergedRead merged, storage::merge_replies(command, replies));
  self.metrics_.conditional_alone.add();
  if (statement == nullptr) {
    rows = std::move(merged.result);
    co_return Step::kDone;
  }
  const ConditionalMoment moment{ballot.us, ballot.made_us()};
  auto decided = co_await statement->decide(merged.result, moment);
  if (!decided) co_return std::unexpected(std::move(decided.error()));
  if (!*decided) co_return Step::kDone;
  if (auto fits = check_limits(**decided); !fits) co_return std::unexpected(fits.error());
  if (self.reactor_.now_us() >= deadline.at_us) co_return std::unexpected(timed_out());

  ProposeRequest request{plan->epoch,      command.incarnation,   command.schema_version,
                         command.position, command.partition_key, {}};
  request.proposal = {ballot, ballot, judgment.follows(), {}};
  storage::encode_mutation(**decided, request.proposal.value);
  proposed.push_back(request.proposal);
  Answer<PaxosVote> deciding;
  self.paxos_.decide_alone(member.store, std::move(*alone), request, deadline,
                           deciding.setter(self.alive_));
  const Result<PaxosVote> vote = co_await deciding.shot;
  if (!vote) co_return failed_with(vote.error());
  proposed.clear();
  if (!vote->yes) {
    Round round(plan, write_quorum);
    round.on_refusal(member, vote->last);
    co_return after_failure(round);
  }
  applied = true;
  note("Applied by the only replica");
  co_return Step::kDone;
}

}  // namespace tetrad::replication
