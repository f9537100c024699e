// SPDX-License-Identifier: Apache-2.0
// The rounds of messages of a conditional statement: to all live members of both sets, ended when W
// of each have said yes, or cannot any more.
//
// Each round:
//   1. All whom the plan names are asked at once; members that are down count as having answered
//      with an error.
//   2. Each answer goes into the tally of every set in which the member is (rule 9).
//   3. The round ends (`done`) at the first verdict. Answers after that are dropped, but for two
//      things: votes of an accept are counted to the last one, since "nobody has accepted it" makes a
//      no certain, and is worth a short wait; and commits, which leave hints and settle.
//
// Promises and accepts need W of each set at the serial level, whatever the consistency level of
// the commit. A round is shared by its callbacks, so it lives until the last of them has run;
// `alive` keeps them from touching a coordinator that is gone.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;

namespace {

// Settling is housekeeping: after this it is given up.
constexpr int64_t kSettleUs = 1'000'000;
/// How long the last votes are waited for where nothing is won but certainty: before the next
/// ballot, during which others decide, and before the client gets "unknown".
constexpr int64_t kVotesUs = 5'000, kLastVotesUs = 20'000;
constexpr int64_t kVotesLookUs = 1'000;
/// How long members are asked what others have decided meanwhile.
constexpr int64_t kAskUs = 200'000;

bool contains(const std::vector<StoreAddress>& set, const StoreAddress& replica) {
  return std::find(set.begin(), set.end(), replica) != set.end();
}

}  // namespace

bool CoordinatorImpl::PaxosRun::Plan::gives_rows(const StoreAddress& replica) const {
  return contains(row_sets.old_set, replica) || contains(row_sets.new_set, replica);
}

void CoordinatorImpl::PaxosRun::Round::on_error(const StoreAddress& from, const Error& its_error) {
  if (ended) return;
  // What passes by itself makes another attempt worthwhile; anything else is a failure of that
  // member.
  switch (its_error.code) {
    case ErrorCode::kTimedOut:
    case ErrorCode::kUnavailable:
      timed_out = true;
      break;
    case ErrorCode::kStaleEpoch:
      stale_epoch = true;
      break;
    case ErrorCode::kStaleSchema:
      stale_schema = true;
      break;
    case ErrorCode::kBehind:
    case ErrorCode::kReplicaBehind:
    case ErrorCode::kOverloaded:
    case ErrorCode::kClockOff:
      again = true;
      break;
    default:
      error = its_error;
      failed.push_back(from);
  }
  tally.on_no(from);
  look();
}

void CoordinatorImpl::PaxosRun::Round::on_refusal(const StoreAddress& from,
                                                  const Ballot& in_the_way) {
  if (ended) return;
  // The highest ballot in the way, and the latest moment at which one was made: the next attempt
  // must pass both.
  last = std::max(last, in_the_way);
  if (in_the_way.present()) last_made_us = std::max(last_made_us, in_the_way.made_us());
  tally.on_no(from);
  look();
}

void CoordinatorImpl::PaxosRun::Round::on_vote(bool accepted) {
  TETRAD_ASSERT(without_vote != 0);
  // Called once for each member with a vote, whether the round has ended or not.
  --without_vote;
  yes += accepted ? 1 : 0;
  if (yes != 0 || without_vote == 0) voted.setter().set(true);
}

void CoordinatorImpl::PaxosRun::Round::look() {
  if (ended || tally.verdict() == WriteTally::Verdict::kPending) return;
  ended = true;
  done.setter().set(true);
}

void CoordinatorImpl::PaxosRun::PrepareRound::on_answer(const StoreAddress& from,
                                                        PrepareAnswer answer) {
  if (ended) return;
  // The highest floor counts: what one member has purged nobody may decide on.
  floor_us = std::max(floor_us, answer.floor_us);
  if (!answer.promised) return on_refusal(from, answer.last);
  const bool wants_rows = plan->gives_rows(from);
  // The tally and the merge rely on rows of exactly those members that were asked for them.
  if (wants_rows != (answer.rows == PaxosRows::kData))
    return on_error(from, Error(ErrorCode::kCorruption, "a promise without the rows asked for"));
  mark_us = std::max(mark_us, answer.mark_us);
  told.push_back({from, std::move(answer.registers)});
  if (wants_rows) replies.push_back({from, std::move(answer.data)});
  TETRAD_ASSERT(replies.size() <= told.size());
  tally.on_yes(from);
  look();
}

// Made anew for each attempt from one snapshot. All messages of the attempt carry its epoch; a
// member that has another refuses.
Result<CoordinatorImpl::PaxosRun::PlanPtr> CoordinatorImpl::PaxosRun::make_plan(bool with_check) {
  const MetaSnapshot state = self.meta_.snapshot();
  const TableInfo* const table = state->table(command.incarnation);
  if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
  const partitioner::Tablet& tablet = table->tablets.find(command.position);
  command.horizon_s = purge_horizon_s(tablet, self.options_.horizon);
  auto plan = std::make_shared<Plan>();
  plan->state = state;
  plan->self = self.meta_.self();
  plan->serial_level = serial_level;
  const Levels levels = self.levels(*state);
  plan->epoch = tablet.epoch;
  plan->repaired_us = tablet.repaired_us;
  plan->sets = write_sets(tablet);
  if (TETRAD_MUTANT(lwt_new_set_late) && tablet.stage < partitioner::TabletStage::kReadNew)
    plan->sets.new_set.clear();
  plan->row_sets.old_set = read_set(tablet);
  // While both sets are read, both must give rows; members that are only being filled vote, but
  // their rows are not complete.
  if (reads_both_sets(tablet)) plan->row_sets = {tablet.replicas, tablet.new_replicas};
  if (with_check) {
    for (const auto* set : {&plan->sets.old_set, &plan->sets.new_set}) {
      if (set->empty()) continue;
      TETRAD_TRY_VOID(self.check_enough(*set, serial_level, plan->deciding(*set)));
      // The commit needs the level's number, too: better Unavailable now than a decision that
      // cannot be committed.
      if (statement == nullptr) continue;
      TETRAD_TRY_VOID(self.check_enough(*set, commit_level, levels.writing(commit_level, *set)));
      // A store without a byte left can promise nothing. It says so when it is asked, but then
      // nobody can tell the client any more that nothing was proposed.
      TETRAD_TRY_VOID(self.check_not_full(*set, plan->deciding(*set)));
    }
  }
  if (TETRAD_MUTANT(lwt_one_tally)) {
    for (const StoreAddress& replica : std::exchange(plan->sets.new_set, {}))
      if (!contains(plan->sets.old_set, replica)) plan->sets.old_set.push_back(replica);
  }
  for (const auto* set : {&plan->sets.old_set, &plan->sets.new_set}) {
    for (const StoreAddress& replica : *set) {
      if (contains(plan->live, replica) || contains(plan->down, replica)) continue;
      (self.meta_.is_replica_live(replica) ? plan->live : plan->down).push_back(replica);
    }
  }
  // Others first: their work goes on while the local store does its own.
  std::ranges::stable_partition(plan->live, [this](const StoreAddress& replica) {
    return !self.replicas_.is_local(replica);
  });
  plan->voting = plan->live.size();
  // LOCAL_SERIAL: only members of this data centre vote; the others get the commit.
  if (serial_level == ConsistencyLevel::kLocalSerial && levels.has_several()) {
    const auto far = std::ranges::stable_partition(
        plan->live, [&](const StoreAddress& replica) { return levels.is_near(replica.host); });
    plan->voting = plan->live.size() - far.size();
  }
  TETRAD_ASSERT(plan->voting <= plan->live.size());
  return plan;
}

Task<std::shared_ptr<CoordinatorImpl::PaxosRun::PrepareRound>> CoordinatorImpl::PaxosRun::prepare(
    PlanPtr plan, Ballot ballot) {
  const auto promises = [&](const std::vector<StoreAddress>& set) {
    return plan->deciding(set).with_fewer(TETRAD_MUTANT(lwt_promises_few) ? 1 : 0);
  };
  const auto round = std::make_shared<PrepareRound>(plan, promises);
  round->ballot = ballot;
  round->command = command;
  const base::Deadline until = attempt_deadline();
  const std::weak_ptr<char> alive = self.alive_;
  // From here on a promise may be out, and nothing may be answered as "not sent".
  sent = true;
  for (const StoreAddress& replica : plan->down)
    round->on_error(replica, Error(ErrorCode::kUnavailable, "down"));
  for (const StoreAddress& replica : plan->voters()) {
    // Encoded at most twice: with the rows asked for and without.
    const bool has_rows = plan->gives_rows(replica);
    PrepareRequest request{plan->epoch, ballot, has_rows ? PaxosRows::kData : PaxosRows::kNone,
                           command};
    const auto take = [alive, round, replica](Result<PrepareAnswer> answer) {
      if (alive.expired()) return;
      if (!answer) return round->on_error(replica, answer.error());
      round->on_answer(replica, std::move(*answer));
    };
    if (self.replicas_.is_local(replica)) {
      self.paxos_.prepare(replica.store, std::move(request), until, take);
      continue;
    }
    Bytes& encoded = has_rows ? round->encoded : round->encoded_without_rows;
    if (encoded.empty()) encoded = encode_prepare(request);  // once for all others
    self.call_replica(trace, replica, Verb::kPaxosPrepare, encoded, until,
                      [take](Result<Bytes> answer) {
                        if (!answer) return take(std::unexpected(std::move(answer.error())));
                        take(decode_prepare_answer(std::move(*answer)));
                      });
  }
  const bool ended = co_await round->done;
  (void)ended;
  co_return round;
}

Task<std::shared_ptr<CoordinatorImpl::PaxosRun::Round>> CoordinatorImpl::PaxosRun::accept(
    PlanPtr plan, Proposal proposal) {
  const auto accepts = [&](const std::vector<StoreAddress>& set) {
    return plan->deciding(set).with_fewer(TETRAD_MUTANT(lwt_accepts_few) ? 1 : 0);
  };
  const auto round = std::make_shared<Round>(plan, accepts);
  round->without_vote = plan->voting;
  // No rows are written by an accept: the value lies in the registers until it is committed.
  const ProposeRequest request{plan->epoch,      command.incarnation,   command.schema_version,
                               command.position, command.partition_key, std::move(proposal)};
  const Bytes encoded = encode_propose(request);
  const base::Deadline until = attempt_deadline();
  const std::weak_ptr<char> alive = self.alive_;
  for (const StoreAddress& replica : plan->down)
    round->on_error(replica, Error(ErrorCode::kUnavailable, "down"));
  for (const StoreAddress& replica : plan->voters()) {
    const auto take = [alive, round, replica](Result<PaxosVote> vote) {
      if (alive.expired()) return;
      if (vote) round->on_vote(vote->yes);
      if (round->ended) return;
      if (!vote) return round->on_error(replica, vote.error());
      if (!vote->yes) return round->on_refusal(replica, vote->last);
      round->tally.on_yes(replica);
      round->look();
    };
    if (self.replicas_.is_local(replica)) {
      self.paxos_.accept(replica.store, request, until, take);
      continue;
    }
    self.call_replica(trace, replica, Verb::kPaxosAccept, encoded, until,
                      [take](Result<Bytes> answer) {
                        if (!answer) return take(std::unexpected(std::move(answer.error())));
                        take(decode_vote(*answer));
                      });
  }
  const bool ended = co_await round->done;
  (void)ended;
  // Refused, and nobody has accepted it so far: the votes that are still out decide whether "not
  // applied" is certain. Whoever knows that asks for a turn, instead of looking for its proposal
  // with a ballot that is in everybody's way.
  if (!round->succeeded() && round->last.present() && round->yes == 0 && round->without_vote != 0) {
    const auto voted = round->voted.setter();
    const auto timer = self.reactor_.call_at(
        std::min(until.at_us, self.reactor_.now_us() + kVotesUs), [voted] { voted.set(false); });
    const bool all = co_await round->voted;
    if (all) self.reactor_.cancel(timer);
  }
  if (TETRAD_MUTANT(lwt_accept_other_epoch) && !round->succeeded() && round->stale_epoch &&
      !is_out_of_time()) {
    co_await base::sleep_for(self.reactor_, kNewMapUs);
    auto newer = make_plan(false);
    if (newer) {
      auto again = co_await accept(*newer, request.proposal);
      co_return again;
    }
  }
  co_return round;
}

Task<void> CoordinatorImpl::PaxosRun::wait_for_last_votes() {
  const base::MonotonicUs until_us = self.reactor_.now_us() + kLastVotesUs;
  const auto may_go = [](const Proposed& own) {
    return own.round != nullptr && own.round->yes == 0 && own.round->without_vote != 0;
  };
  while (std::ranges::any_of(proposed, may_go) && self.reactor_.now_us() < until_us)
    co_await base::sleep_for(self.reactor_, kVotesLookUs);
}

Task<Fate> CoordinatorImpl::PaxosRun::ask_fate(PlanPtr plan, Ballot origin, Ballot gap) {
  struct Asking {
    size_t left;
    base::OneShot<Fate> found;
    void on_fate(Fate fate) {
      --left;
      if (fate != Fate::kUnknown || left == 0) found.setter().set(fate);
    }
  };
  note("Asking what was decided since an earlier ballot");
  const auto asking = std::make_shared<Asking>(plan->voting);
  if (asking->left == 0) co_return Fate::kUnknown;
  const Bytes encoded = encode_followed_request(gap, origin);
  const base::Deadline until{std::min(attempt_deadline().at_us, self.reactor_.now_us() + kAskUs)};
  for (const StoreAddress& replica : plan->voters()) {
    if (self.replicas_.is_local(replica)) {
      asking->on_fate(fate_before(origin, gap, self.paxos_.followed().before(gap, origin)));
      continue;
    }
    self.call_replica(
        trace, replica, Verb::kPaxosFollowed, encoded, until,
        [asking, origin, gap](Result<Bytes> answer) {
          const auto before =
              answer ? decode_followed_answer(*answer) : std::unexpected(answer.error());
          // A node of an earlier version does not know the question.
          asking->on_fate(before ? fate_before(origin, gap, *before) : Fate::kUnknown);
        });
  }
  const Fate fate = co_await asking->found;
  co_return fate;
}

/// A commit on its way. It goes on when the statement has been answered: so it knows nothing of it.
struct CoordinatorImpl::PaxosRun::CommitRound : Round {
  template <class Required>
  CommitRound(CoordinatorImpl& its_self, PlanPtr its_plan, Required level_required)
      : Round(std::move(its_plan), level_required),
        self(its_self),
        quorum(plan->sets, [this](const auto& set) { return plan->deciding(set); }) {}

  void on_committed(const StoreAddress& from) {
    // When W have the commit they get a settle message, and drop the value from their registers.
    holders.push_back(from);
    const bool was_settled = quorum.succeeded();
    quorum.on_yes(from);
    if (was_settled) {
      settle(from);
    } else if (quorum.succeeded()) {
      for (const StoreAddress& holder : holders) settle(holder);
      for (const StoreAddress& replica : std::exchange(elsewhere, {})) hint(replica);
    }
    if (!ended) tally.on_yes(from);
    look();
  }
  void on_missed(const StoreAddress& from, const Error& why) {
    // An error of this node's own store that is no timeout leaves no hint.
    quorum.on_no(from);
    const ErrorCode code = why.code;
    const bool is_own = from.host == self.rpc_.self() && code != ErrorCode::kTimedOut;
    if (code == ErrorCode::kStaleEpoch) {
      // The hint would go to the members of an epoch that is over.
      // Without W it is sent anew to the members of the new epoch.
      quorum.succeeded() ? hint(from) : elsewhere.push_back(from);
    } else if (code != ErrorCode::kStaleSchema && !is_own) {
      hint(from);
    }
    on_error(from, why);
  }
  // The rows alone: a hint cannot carry registers, and once W have the commit it needs none.
  void hint(const StoreAddress& replica) const {
    if (const auto mutation = storage::decode_mutation(request.proposal.value))
      self.hints_.add(replica, *mutation, began_us);
  }
  void settle(const StoreAddress& holder) {
    // Without the value: the origin is enough to know it by.
    ProposeRequest settled = request;
    settled.proposal.value.clear();
    if (self.replicas_.is_local(holder)) {
      const base::Deadline until{self.reactor_.now_us() + kSettleUs};
      return self.paxos_.settle(holder.store, std::move(settled), until);
    }
    self.rpc_.one_way(holder.host, holder.store, Verb::kPaxosSettled, encode_propose(settled));
  }

  CoordinatorImpl& self;
  const int64_t began_us = self.now_us();  // what hints are dated by
  SetsTally quorum;                        // that decides, whatever the level
  ProposeRequest request;
  std::vector<StoreAddress> holders;
  std::vector<StoreAddress> elsewhere;  // they know a later epoch
};

Task<Result<void>> CoordinatorImpl::PaxosRun::commit(PlanPtr plan, Proposal proposal,
                                                     ConsistencyLevel level,
                                                     std::vector<StoreAddress> known) {
  if (TETRAD_MUTANT(lwt_applied_at_decision)) level = ConsistencyLevel::kAny;
  while (true) {
    // writing() gives W at least. A level of more members than there are (THREE of two) comes down
    // to what decides: it is decided, and must be committed.
    const auto enough = [&](const std::vector<StoreAddress>& set) {
      Need needed = Levels(*plan->state, plan->self).writing(level, set);
      return needed.is_met_by(all_of(set)) ? needed : plan->deciding(set);
    };
    const auto round = std::make_shared<CommitRound>(self, plan, enough);
    round->request = {plan->epoch,      command.incarnation,   command.schema_version,
                      command.position, command.partition_key, proposal};
    const Bytes encoded = encode_propose(round->request);
    const std::weak_ptr<char> alive = self.alive_;
    // Members that are down get a hint now.
    for (const StoreAddress& replica : plan->down)
      round->on_missed(replica, Error(ErrorCode::kUnavailable, "down"));
    // Counted first: perhaps enough have it already.
    for (const StoreAddress& replica : plan->live)
      if (contains(known, replica)) round->on_committed(replica);
    for (const StoreAddress& replica : plan->live) {
      if (contains(known, replica)) continue;
      const auto take = [alive, round, replica](Result<PaxosVote> vote) {
        if (alive.expired()) return;
        if (!vote) return round->on_missed(replica, vote.error());
        round->on_committed(replica);
      };
      if (self.replicas_.is_local(replica)) {
        // With the statement's whole deadline, not an attempt's: there is nothing else left to try.
        self.paxos_.commit(replica.store, round->request, deadline, take);
        continue;
      }
      self.call_replica(trace, replica, Verb::kPaxosCommit, encoded, deadline,
                        [take](Result<Bytes> answer) {
                          if (!answer) return take(std::unexpected(std::move(answer.error())));
                          take(decode_vote(*answer));
                        });
    }
    if (TETRAD_MUTANT(lwt_applied_at_decision)) co_return Result<void>();
    // The commits are ahead of what the next one in the line sends; where they are not, it brings
    // what is decided to W itself.
    if (is_decided) place->reset();
    const bool ended = co_await round->done;
    (void)ended;
    if (round->succeeded()) co_return Result<void>();
    received = round->tally.short_of().acks();
    required = round->tally.short_of().required();
    if (round->stale_schema) co_return fail(ErrorCode::kStaleSchema, "the table is gone");
    if ((round->stale_epoch || round->again) && self.reactor_.now_us() < deadline.at_us) {
      // What is decided stays so, whoever the members are now.
      co_await base::sleep_for(self.reactor_, kNewMapUs);
      auto newer = make_plan(false);
      if (!newer) co_return std::unexpected(std::move(newer.error()));
      plan = std::move(*newer);
      // What the members of the old epoch have says nothing about those of the new one.
      known.clear();
      continue;
    }
    if (round->error) co_return fail(ErrorCode::kWriteFailure, "{}", round->error->message);
    co_return fail(ErrorCode::kTimedOut, "not enough replicas have the commit");
  }
}

}  // namespace tetrad::replication
