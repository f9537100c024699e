// SPDX-License-Identifier: Apache-2.0
// What a conditional statement does, from attempt to attempt:
//
//   1. It waits for the place at the head of its partition's line (conditional_line.h), and for a turn of
//      the partition where other coordinators contend for it (turns.h).
//   2. It makes a ballot and asks all members to promise it; they answer with their registers and rows.
//   3. What it finds half done, its own included, it completes first: a value that may have been decided
//      is proposed again with the new ballot.
//   4. Rows that differ are merged and written back; then the statement decides on them
//      (paxos_decide.cc).
//   5. What it decides, or nothing, is proposed: when W of each set accept it, it is decided.
//   6. The commit brings the rows to the members. The client is answered when the level's number has it.
//
// A refusal, a stale epoch or a late answer leads to a new attempt with a later ballot. What was proposed
// stays in `proposed` until nothing of it can be decided any more: only then the client gets a no.
//
// The ballot's time is the timestamp of what the statement writes (rule 27): it must be above
// everything that it read. `now` of the conditions is when the ballot was made, which differs only
// where a client's timestamp had to be passed.
#include "replication/coordinator/paxos_run.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/coordinator/restamp.h"
#include "storage/engine/tombstone_filter.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;

namespace {

// Bounds of one attempt, of the random pause after a ballot that lost, of the pause for a newer
// map, and of the wait for a turn. All in microseconds of the shard's monotonic clock.
constexpr int64_t kAttemptMinUs = 400'000;
constexpr int64_t kBackoffMinUs = 1'000, kBackoffMaxUs = 100'000;
constexpr int64_t kPauseUs = 5'000;
constexpr int64_t kTurnWaitUs = 250'000;

}  // namespace

bool CoordinatorImpl::PaxosRun::is_own(const Ballot& origin) const {
  return std::ranges::any_of(proposed,
                             [&](const Proposed& own) { return own.proposal.origin == origin; });
}

/// Half of what time is left is for one attempt: one of those who were asked may be gone.
base::Deadline CoordinatorImpl::PaxosRun::attempt_deadline() const {
  const base::MonotonicUs now_us = self.reactor_.now_us();
  const int64_t left_us = deadline.at_us - now_us;
  return {now_us + std::max(left_us / 2, std::min(left_us, kAttemptMinUs))};
}

/// Once something of it may be decided the statement is not given up for others' sake.
bool CoordinatorImpl::PaxosRun::is_out_of_time() const {
  const base::MonotonicUs now_us = self.reactor_.now_us();
  if (now_us >= deadline.at_us) return true;
  return contentions != 0 && is_certain() && now_us >= contention_deadline.at_us;
}

Task<Result<void>> CoordinatorImpl::PaxosRun::run() {
  TETRAD_ASSERT(key.empty());
  // Tombstones are needed to merge the rows. The answer of one partition has no bound of its own
  // here: a condition is tested on all that it reads or not at all.
  command.live_only = false;
  command.bytes_max = storage::ReadCommand::kNoBytesMax;
  // The same partition of a table that was made anew is another line: the incarnation belongs to
  // the key.
  base::ByteWriter(key).u32(command.incarnation.value);
  key += command.partition_key;
  while (true) {
    if (!place->has_value()) {
      Result<void> taken = co_await take_place();
      TETRAD_CO_TRY_VOID(std::move(taken));
    }
    if (is_out_of_time()) {
      Error error = co_await ended_out_of_time();
      co_return std::unexpected(std::move(error));
    }
    // Not while something of it may be decided: after several others nobody could tell any more.
    if (is_certain() && !turn && !goes_without && self.options_.takes_turns &&
        self.turns_.is_contended(key)) {
      co_await take_turn();
      continue;
    }
    Result<Step> step = co_await attempt();
    if (!step) co_return std::unexpected(std::move(step.error()));
    if (*step == Step::kDone) co_return Result<void>();
    self.metrics_.conditional_retries.add();
  }
}

Task<Error> CoordinatorImpl::PaxosRun::ended_out_of_time() {
  co_await wait_for_last_votes();
  co_return ended(timed_out());
}

Task<void> CoordinatorImpl::PaxosRun::take_turn() {
  TETRAD_ASSERT(!turn);
  // Asked once for each statement: whether a turn came or not, it is not asked for again.
  goes_without = true;
  const auto planned = make_plan(false);
  if (!planned || is_alone(**planned)) co_return;
  const auto voters = (*planned)->voters();
  const auto is_live = [&](const StoreAddress& member) {
    return std::ranges::find(voters, member) != voters.end();
  };
  // The keeper is the first live member of the old set, so all coordinators with the same view ask
  // the same one. Others may ask another: turns are advisory, safety is in the ballots.
  const auto& members = (*planned)->sets.old_set;
  const auto first = std::ranges::find_if(members, is_live);
  if (first == members.end()) co_return;
  const base::MonotonicUs now_us = self.reactor_.now_us();
  const int64_t left_us = std::min(contention_deadline.at_us, deadline.at_us) - now_us;
  const base::Deadline until{now_us + std::clamp(left_us / 2, int64_t{0}, kTurnWaitUs)};
  std::optional<StoreAddress> keeper = *first;
  if (self.replicas_.is_local(*keeper)) keeper.reset();
  note("Waiting for the turn of the partition");
  self.metrics_.conditional_turns.add();
  Result<Turns::Turn> taken = co_await self.turns_.ask(key, keeper, until);
  if (!taken) co_return;
  turn = std::move(*taken);
  // Its clock may be ahead of ours: the next `now` must not be before that of the statement before.
  make_after(turn.last_made_us());
}

Task<Result<void>> CoordinatorImpl::PaxosRun::take_place() {
  // With something of its own open it waits to the end, for only a later round can tell what became
  // of that.
  const base::MonotonicUs came_us = self.reactor_.now_us();
  const base::MonotonicUs until_us =
      is_certain() ? std::min(contention_deadline.at_us, deadline.at_us) : deadline.at_us;
  Result<ConditionalLine::Place> entered = co_await self.line_.enter(key, base::Deadline{until_us});
  self.metrics_.conditional_wait.record(self.reactor_.now_us() - came_us);
  if (!entered && entered.error().code == ErrorCode::kTimedOut) {
    if (required == 0) required = promises_needed();
    co_return std::unexpected(ended(timed_out()));
  }
  if (!entered) co_return std::unexpected(ended(std::move(entered.error())));
  place->emplace(std::move(*entered));
  co_return Result<void>();
}

// Later than the clock, than what earlier ballots were made at, and than the timestamps that must
// be passed.
Result<Ballot> CoordinatorImpl::PaxosRun::next_ballot() {
  const int64_t now_us = std::max(self.now_us(), made_after_us + 1);
  if (!above_us) return self.ballots_.next(now_us);
  const auto ballot = self.ballots_.next_above(*above_us, now_us);
  if (ballot) return *ballot;
  return fail(ErrorCode::kInvalid,
              "the partition has the timestamp {}, nothing can be written after it", *above_us);
}

void CoordinatorImpl::PaxosRun::stay_above(int64_t timestamp_us) {
  above_us = std::max(above_us.value_or(timestamp_us), timestamp_us);
}

void CoordinatorImpl::PaxosRun::make_after(int64_t made_us) {
  if (TETRAD_MUTANT(lwt_now_goes_back)) return;
  // What is further ahead is of a clock that was off: nobody would follow it.
  if (self.clock_.observe(made_us, self.reactor_)) made_after_us = std::max(made_after_us, made_us);
}

// One ballot from its promises to its decision. Every way out that is not an error says how to go
// on.
Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::attempt() {
  std::erase_if(proposed, [](const Proposed& own) { return own.is_gone(); });
  open_attempts = proposed.empty() ? 0 : open_attempts + 1;
  auto planned = make_plan(true);
  if (!planned) {
    Error& error = planned.error();
    // Before anything was sent nothing can be decided, so an error is the plain truth.
    if (error.code == ErrorCode::kStaleSchema) {
      co_return std::unexpected(ended(Error(ErrorCode::kStaleSchema, kTableGone)));
    }
    if (!sent || TETRAD_MUTANT(lwt_unavailable_late)) co_return std::unexpected(std::move(error));
    co_await pause();
    co_return Step::kAgain;
  }
  const PlanPtr plan = *planned;
  if (required == 0) required = promises_needed();
  // The fast way of a partition with one member; it makes no votes visible to anybody else.
  if (is_alone(*plan)) {
    Result<std::optional<Step>> step = co_await attempt_alone(plan);
    if (!step) co_return std::unexpected(std::move(step.error()));
    if (*step == Step::kAgain) co_await pause();
    if (*step) co_return **step;
  }
  const auto minted = next_ballot();
  if (!minted) co_return std::unexpected(ended(minted.error()));
  const Ballot ballot = *minted;
  // Who has the turn next must make its ballot later.
  turn.note_ballot(ballot.made_us());
  const int64_t time_us = TETRAD_MUTANT(lwt_now_of_ballot) ? ballot.us : ballot.made_us();
  command.now_s = time_us / 1'000'000;
  note(fmt::format("Asking {} replicas for their promise", plan->live.size()));
  const std::shared_ptr<PrepareRound> round = co_await prepare(plan, ballot);
  if (!round->succeeded()) {
    const auto next = after_failure(*round);
    if (next) co_await pause();
    co_return next;
  }
  // Tested before anything of the round is used: a `now` that goes back, or two values with one
  // timestamp, would be seen by clients.
  if (!is_in_order(*round)) co_return Step::kAgain;
  Result<Step> step = co_await finish_earlier(round);
  if (!step || *step != Step::kGoOn) {
    if (step && *step == Step::kAgain) co_await pause();
    co_return step;
  }
  Result<std::optional<storage::ReadResult>> merged = co_await merge(round);
  if (!merged) co_return std::unexpected(std::move(merged.error()));
  if (!*merged) {
    co_await pause();
    co_return Step::kAgain;
  }
  Result<Step> decided = co_await decide(round, std::move(**merged));
  if (decided && *decided == Step::kAgain) co_await pause();
  co_return decided;
}

Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::finish_earlier(
    std::shared_ptr<PrepareRound> round) {
  const std::span<const RegistersOf> told = round->told;
  // Own proposals first: is one of them decided? If nobody can tell, neither can the client
  // (CAS_WRITE_UNKNOWN).
  for (const Proposed& own : proposed) {
    if (own.is_gone()) continue;
    Ballot gap;
    Fate fate = fate_of(own.proposal.origin, told, round->floor_us, &gap);
    if (fate == Fate::kUnknown && gap.present())
      fate = co_await ask_fate(round->plan, own.proposal.origin, gap);
    if (fate == Fate::kUnknown) {
      co_await wait_for_last_votes();
      if (own.is_gone()) continue;
      co_return std::unexpected(unknown());
    }
    if (fate != Fate::kApplied) continue;
    Result<Step> finished = co_await finish_own(round->plan, own.proposal);
    co_return finished;
  }
  if (TETRAD_MUTANT(lwt_not_decided_final)) {
    std::erase_if(proposed, [&](const Proposed& own) {
      return fate_of(own.proposal.origin, told, round->floor_us) == Fate::kNotDecided;
    });
  }
  // An open proposal may be on a majority that this round saw a part of. It must be finished before
  // this statement reads, or both would be decided on the same rows.
  const Judgment judgment = judge(told, round->floor_us);
  if (judgment.open != nullptr) {
    Result<Step> completed = co_await complete(round->plan, *judgment.open, round->ballot);
    co_return completed;
  }
  if (TETRAD_MUTANT(lwt_commit_below_w)) co_return Step::kGoOn;
  // Committed, but perhaps not on W: the answers name those that have it.
  if (judgment.committed != nullptr && !judgment.is_settled) {
    std::vector<StoreAddress> known;
    SetsTally holders(round->plan->sets,
                      [&](const auto& set) { return round->plan->deciding(set); });
    for (const RegistersOf& answer : told) {
      if (std::ranges::find(judgment.lacking, answer.from) != judgment.lacking.end()) continue;
      known.push_back(answer.from);
      holders.on_yes(answer.from);
    }
    if (!holders.succeeded()) {
      note("Bringing an earlier conditional statement to a quorum");
      Result<void> done = co_await commit(round->plan, *judgment.committed, deciding_commit_level(),
                                          std::move(known));
      if (!done) co_return Step::kAgain;
    }
  }
  // A member whose registers show the newest commit has read its rows after it.
  const bool is_late = std::ranges::all_of(told, [&](const RegistersOf& answer) {
    return !round->plan->gives_rows(answer.from) ||
           shown_by(answer.registers, round->floor_us) == judgment.newest;
  });
  if (is_late || TETRAD_MUTANT(lwt_rows_too_early)) co_return Step::kGoOn;
  Result<Step> read = co_await read_again(std::move(round));
  co_return read;
}

/// Members answer at different moments. One that had promised before the newest commit was decided
/// may have read before that one, and those before it, came to it; and another, that knows it, need
/// not have those before it. What was decided below the ballot is on W by now, and nothing more
/// will be.
Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::read_again(
    std::shared_ptr<PrepareRound> round) {
  note("Reading the rows again after an earlier conditional statement");
  const std::shared_ptr<PrepareRound> later = co_await prepare(round->plan, round->ballot);
  if (!later->succeeded()) co_return after_failure(*later);
  round->replies = std::move(later->replies);
  round->mark_us = std::max(round->mark_us, later->mark_us);
  co_return Step::kGoOn;
}

Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::complete(PlanPtr plan,
                                                                                  Proposal open,
                                                                                  Ballot ballot) {
  const bool own = is_own(open.origin);
  note("Completing an earlier conditional statement");
  if (TETRAD_MUTANT(lwt_completion_restamped) && !own) {
    auto mutation = storage::decode_mutation(open.value);
    if (mutation && restamp(*mutation, open.origin.us, ballot.us)) {
      open.value.clear();
      storage::encode_mutation(*mutation, open.value);
      open.origin = ballot;
    }
  }
  // The same value under the new ballot, with its origin and what it follows unchanged (rule 27).
  open = completion_of(open, ballot);
  if (!TETRAD_MUTANT(lwt_open_committed)) {
    const std::shared_ptr<Round> round = co_await accept(plan, open);
    if (!round->succeeded()) co_return after_failure(*round);
  }
  // Somebody else's round may have completed this statement's own value: then it has been applied,
  // and is not evaluated again.
  if (own) {
    Result<Step> finished = co_await finish_own(std::move(plan), std::move(open));
    co_return finished;
  }
  self.metrics_.conditional_completed.add();
  proposed.clear();  // what is decided now has a later ballot than they
  Result<void> done =
      co_await commit(std::move(plan), std::move(open), deciding_commit_level(), {});
  at_once = done.has_value();
  co_return Step::kAgain;
}

Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::finish_own(
    PlanPtr plan, Proposal proposal) {
  // From here on the statement is decided; an error can only say that the commit is not on the
  // level's number yet.
  is_decided = true;
  Result<void> done = co_await commit(std::move(plan), std::move(proposal), commit_level, {});
  // A TRUNCATE is answered when W refuse the incarnation that it ends. W have accepted this in it, so
  // the statement came before.
  const bool is_gone = !done && done.error().code == ErrorCode::kStaleSchema;
  if (!done && !is_gone) co_return std::unexpected(commit_error());
  applied = true;
  note("Applied");
  co_return Step::kDone;
}

Task<Result<std::optional<storage::ReadResult>>> CoordinatorImpl::PaxosRun::merge(
    std::shared_ptr<PrepareRound> round) {
  auto merged = std::make_shared<storage::MergedRead>();
  TETRAD_CO_TRY(*merged, storage::merge_replies(round->command, round->replies));
  TETRAD_ASSERT(merged->repairs.size() == round->replies.size());
  std::vector<StoreAddress> from;
  bool differ = false;
  // All repliers are tested, so that the merge is known to be on W, or is brought there.
  for (size_t i = 0; i < round->replies.size(); ++i) {
    from.push_back(round->replies[i].from);
    differ |= !merged->repairs[i].empty();
  }
  if (differ && !TETRAD_MUTANT(lwt_merge_not_written)) {
    const bool written = co_await write_back(round->plan, merged, std::move(from));
    if (!written) co_return std::optional<storage::ReadResult>();
  }
  co_return std::optional<storage::ReadResult>(std::move(merged->result));
}

/// What a condition is tested on must not vanish again: not in a power cut either, after which
/// nobody takes it for what has come lately (rule 20).
Task<bool> CoordinatorImpl::PaxosRun::write_back(PlanPtr plan,
                                                 std::shared_ptr<storage::MergedRead> merged,
                                                 std::vector<StoreAddress> from) {
  struct Repairs {
    explicit Repairs(const Plan& plan)
        : sets(plan.row_sets), tally(sets, [&](const auto& set) { return plan.deciding(set); }) {}
    const WriteSets sets;
    // Counts for a member only when all of its mutations are written.
    SetsTally tally;
    std::vector<size_t> left;
    bool ended = false;
    base::OneShot<bool> done;
    void on_one(size_t index, const StoreAddress& replica, bool ok) {
      if (left[index] == 0) return;
      if (ok && --left[index] != 0) return;
      left[index] = 0;
      if (ended) return;
      ok ? tally.on_yes(replica) : tally.on_no(replica);
      look();
    }
    void look() {
      if (ended || tally.verdict() == WriteTally::Verdict::kPending) return;
      ended = true;
      done.setter().set(tally.succeeded());
    }
  };
  TETRAD_ASSERT(merged->repairs.size() == from.size());
  const auto repairs = std::make_shared<Repairs>(*plan);
  const int64_t now_s = self.now_us() / 1'000'000;
  for (size_t i = 0; i < from.size(); ++i) {
    std::vector<storage::Mutation>& lacking = merged->repairs[i];
    // As in read.cc: what a time ahead of the clock made expired is not written.
    if (command.now_s > now_s) {
      for (storage::Mutation& mutation : lacking)
        if (!leave_out_stripped(mutation, now_s - storage::kExpiredValueMargin_s)) co_return false;
    }
    repairs->left.push_back(lacking.size());
    // It had all of the merge.
    if (lacking.empty()) repairs->tally.on_yes(from[i]);
  }
  // A member that did not reply cannot be said to hold the merge.
  for (const auto* set : {&plan->row_sets.old_set, &plan->row_sets.new_set})
    for (const StoreAddress& replica : *set)
      if (std::ranges::find(from, replica) == from.end() &&
          (set == &plan->row_sets.old_set ||
           std::ranges::find(plan->row_sets.old_set, replica) == plan->row_sets.old_set.end()))
        repairs->tally.on_no(replica);
  repairs->look();
  const ClusterFormat format = self.meta_.snapshot()->format;
  const base::Deadline until = attempt_deadline();
  for (size_t i = 0; i < from.size(); ++i) {
    // Synced (`true`): a condition that was tested on it must find it after a power cut as well.
    const StoreAddress replica = from[i];
    for (const storage::Mutation& mutation : merged->repairs[i]) {
      self.metrics_.read_repairs.add();
      const auto finished = [repairs, i, replica](bool ok) { repairs->on_one(i, replica, ok); };
      if (self.replicas_.is_local(replica)) {
        self.replicas_.apply(replica.store, plan->epoch, mutation,
                             ReplicaService::Merged{plan->repaired_us, true}, until,
                             [finished](Result<void> result) { finished(result.has_value()); });
      } else {
        self.rpc_.call(replica.host, replica.store, Verb::kMutateMerged,
                       encode_mutate(format, plan->epoch, mutation, {}, plan->repaired_us, true),
                       until, [finished](Result<Bytes> answer) { finished(answer.has_value()); });
      }
    }
  }
  const bool written = co_await repairs->done;
  co_return written;
}

// What a round that failed means for the statement: a later ballot in the way is contention, errors
// that pass are tried again, the rest ends it.
Result<CoordinatorImpl::PaxosRun::Step> CoordinatorImpl::PaxosRun::after_failure(
    const Round& round) {
  received = round.tally.short_of().acks();
  required = round.tally.short_of().required();
  if (round.stale_schema) {
    return std::unexpected(ended(Error(ErrorCode::kStaleSchema, kTableGone)));
  }
  if (round.last.present()) {
    make_after(round.last_made_us);
    // Its timestamp is passed instead of waited for: it may be far above the clock.
    if (round.last.is_ahead() || !self.clock_.is_within_bound(round.last.us, self.reactor_)) {
      // The first one is of the past for all that is known: nobody is in the way.
      at_once = !above_us;
      stay_above(round.last.us);
      if (at_once) return Step::kAgain;
    }
    if (contentions != std::numeric_limits<uint16_t>::max()) ++contentions;
    self.metrics_.conditional_contentions.add();
    // For a while the statements of this shard ask for turns of the partition.
    self.turns_.note_contention(key);
    ++backoffs;
    return Step::kAgain;
  }
  failed_replicas = round.failed;
  if (round.error && !round.timed_out && !round.stale_epoch && !round.again) {
    self.logger_.warn("a conditional statement failed at a replica error={}", round.error->message);
    return std::unexpected(ended(failed()));
  }
  return Step::kAgain;
}

/// Longer and at random after each ballot that lost.
Task<void> CoordinatorImpl::PaxosRun::pause() {
  if (std::exchange(at_once, false)) co_return;
  int64_t pause_us = kPauseUs;
  if (!is_certain()) {
    // Each value that others decide makes it less likely that somebody can tell what became of this
    // one. So at once first, and soon after that.
    if (open_attempts == 0) co_return;
    const int64_t most_us = kBackoffMinUs << std::min(open_attempts, 6u);
    pause_us = 1 + static_cast<int64_t>(self.random_.below(static_cast<uint64_t>(most_us)));
  } else if (backoffs != 0) {
    // Whose turn it is meets only those who do not know yet that they have to wait for theirs.
    // At most kBackoffMaxUs, at random, so that two coordinators do not collide in step.
    const unsigned doublings = turn ? 0 : std::min(backoffs, 7u);
    const int64_t most_us = std::min(kBackoffMaxUs, kBackoffMinUs << doublings);
    pause_us = 1 + static_cast<int64_t>(self.random_.below(static_cast<uint64_t>(most_us)));
  }
  co_await base::sleep_for(self.reactor_, pause_us);
}

}  // namespace tetrad::replication
