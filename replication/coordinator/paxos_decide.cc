// SPDX-License-Identifier: Apache-2.0
// A conditional statement decides on the rows that it has found, and proposes what it has decided
// (steps 4 and 5 of paxos_run.cc).
//
//   1. judge() has told what is decided already; each proposal carries what it follows.
//   2. A read, or a condition that does not hold, proposes nothing, which is decided like a value.
//   3. A value must fit, and must be above every timestamp that it could meet (is_above).
//   4. propose() asks all members to accept it. What some of them may have accepted stays in
//      `proposed` until it is known that it is decided or never can be.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;

namespace {

/// Of one statement's values whose fate is not known.
constexpr size_t kOpenBytesMax = 64u << 20;

}  // namespace

Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::decide(
    std::shared_ptr<PrepareRound> round, storage::ReadResult found) {
  const Ballot ballot = round->ballot;
  const Judgment judgment = judge(round->told, round->floor_us);
  // Every proposal, an empty one as well, carries what it follows: who sees it learns that all
  // before is over.
  Proposal proposal{ballot, ballot, judgment.follows(), {}};
  // A SERIAL read: it is decided like a statement that writes nothing, so that nothing older can be
  // decided after it.
  if (statement == nullptr) {
    rows = std::move(found);
    if (TETRAD_MUTANT(lwt_read_not_accepted)) co_return Step::kDone;
    Result<Step> step = co_await propose(round->plan, std::move(proposal));
    co_return step;
  }
  const bool is_one_time = TETRAD_MUTANT(lwt_now_of_ballot);
  const ConditionalMoment moment{ballot.us, is_one_time ? ballot.us : ballot.made_us()};
  Result<std::optional<storage::Mutation>> decided = co_await statement->decide(found, moment);
  if (!decided) co_return std::unexpected(ended(std::move(decided.error())));
  // The condition does not hold. That is decided, too, so that no proposal from before can be
  // decided behind it and make it wrong.
  if (!*decided) {
    if (TETRAD_MUTANT(lwt_failure_not_accepted) && is_certain()) co_return Step::kDone;
    Result<Step> step = co_await propose(round->plan, std::move(proposal));
    co_return step;
  }
  // Before the proposal: what was accepted once must be committed, whatever the disks say.
  if (auto fits = check_limits(**decided); !fits) co_return std::unexpected(ended(fits.error()));
  awaited = self.views_to_await({&**decided, 1});
  storage::encode_mutation(**decided, proposal.value);
  // The table's mark is not below the ballot: rows may be there that would hide what is written.
  if (round->mark_us >= ballot.us && !TETRAD_MUTANT(lwt_ballot_low)) {
    Result<bool> above = co_await is_above(std::move(**decided), ballot, round->mark_us);
    if (!above) co_return std::unexpected(ended(std::move(above.error())));
    if (!*above) co_return Step::kAgain;
  }
  Result<Step> step = co_await propose(round->plan, std::move(proposal));
  co_return step;
}

bool CoordinatorImpl::PaxosRun::is_in_order(const PrepareRound& round) {
  // `made_us` says when a ballot was made, `us` is the timestamp of its cells; they differ only
  // where a client's timestamp had to be passed. What was made further ahead than clocks may be was
  // made by a clock that is off, and is no measure.
  const Earlier earlier = earlier_in(round.told);
  const bool is_later = earlier.made_us < round.ballot.made_us() ||
                        !self.clock_.is_within_bound(earlier.made_us, self.reactor_) ||
                        TETRAD_MUTANT(lwt_now_goes_back);
  const bool is_above = earlier.value_us < round.ballot.us || TETRAD_MUTANT(lwt_values_share_time);
  if (!is_later) make_after(earlier.made_us);
  if (!is_above) stay_above(earlier.value_us);
  at_once = !is_later || !is_above;
  return !at_once;
}

Task<Result<bool>> CoordinatorImpl::PaxosRun::is_above(storage::Mutation mutation, Ballot ballot,
                                                       int64_t mark_us) {
  at_once = true;
  // Once only: clients whose clocks are a little ahead may raise it all the time.
  if (self.clock_.is_within_bound(mark_us, self.reactor_) && !std::exchange(passed_mark, true)) {
    stay_above(mark_us);
    co_return false;
  }
  // A client's timestamp has raised the mark: does it matter to this mutation? What deletes a range
  // has the time just before the ballot's.
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  WriteOptions options;
  // Read from R members: is anything later at the places that this mutation writes?
  // `kDeletedRowsMax` bounds what a deletion of a range has to look at.
  options.deadline = attempt_deadline();
  Result<std::optional<int64_t>> hiding =
      co_await self.find_hiding(mutations, ballot.us - 1, options, kDeletedRowsMax);
  if (hiding) {
    const bool is_old = *hiding && **hiding < ballot.us && !TETRAD_MUTANT(lwt_old_row_above);
    if (!*hiding || is_old) co_return true;
    stay_above(**hiding);
    co_return false;
  }
  if (hiding.error().code == ErrorCode::kLimit) {
    stay_above(mark_us);  // too many rows to look at each
    co_return false;
  }
  at_once = false;
  if (hiding.error().code == ErrorCode::kReadFailure) co_return std::unexpected(failed());
  co_return false;
}

Result<void> CoordinatorImpl::PaxosRun::check_limits(const storage::Mutation& mutation) const {
  TETRAD_ASSERT(mutation.incarnation == command.incarnation &&
                mutation.partition_key == command.partition_key);
  if (mutation.size_bytes() > self.options_.mutation_bytes_max) {
    return fail(ErrorCode::kInvalid, "Mutation of {} bytes is too large for the maximum size of {}",
                mutation.size_bytes(), self.options_.mutation_bytes_max);
  }
  const MetaSnapshot state = self.meta_.snapshot();
  const TableInfo* const table = state->table(command.incarnation);
  if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
  WriteOptions options;
  options.warnings = warnings;
  TETRAD_TRY_VOID(
      self.check_room(*state, table->tablets.find(command.position), mutation, options));
  return self.check_disks(*state, {&mutation, 1});
}

Task<Result<CoordinatorImpl::PaxosRun::Step>> CoordinatorImpl::PaxosRun::propose(
    PlanPtr plan, Proposal proposal) {
  // The reads and the condition took their time: nobody waits for the answer any more.
  if (self.reactor_.now_us() >= deadline.at_us) co_return std::unexpected(ended(timed_out()));
  const bool is_empty = proposal.value.empty();
  // Each value that may yet be decided is kept. Where large ones are refused again and again it is
  // better not to know than to fill the memory.
  size_t open_bytes = 0;
  for (const Proposed& own : proposed) open_bytes += own.proposal.value.size();
  if (open_bytes > kOpenBytesMax) {
    co_await wait_for_last_votes();
    if (!is_certain()) co_return std::unexpected(unknown());
    proposed.clear();
  }
  const std::shared_ptr<Round> round = co_await accept(plan, proposal);
  if (!round->succeeded()) {
    // A lost answer must not make it forgotten. When all who were asked have said no, nobody can find
    // it any more: it counts as never proposed, and the last of them may say so later.
    const bool may_be_gone = TETRAD_MUTANT(lwt_refused_by_some) && round->yes == 0;
    if (!is_empty && !may_be_gone && !TETRAD_MUTANT(lwt_evaluated_twice))
      proposed.push_back({std::move(proposal), round});
    co_return after_failure(*round);
  }
  proposed.clear();  // what is decided now has a later ballot than they
  if (is_empty) co_return Step::kDone;
  Result<Step> finished = co_await finish_own(std::move(plan), std::move(proposal));
  co_return finished;
}

}  // namespace tetrad::replication
