// SPDX-License-Identifier: Apache-2.0
// One conditional statement, or one SERIAL read, as its coordinator drives it through Paxos: a
// round of promises with the rows, what others have left half done, a round of accepts, the commit
// (design, rule 27).
//
// What has been sent to be accepted may be decided at any later time, by whoever finds it, until
// something else is decided with a later ballot. So the run keeps the values it has proposed, looks
// for them in every later round, and tells the client that nothing was applied only when none of
// them can be decided any more.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "replication/coordinator/coordinator_impl.h"
#include "replication/paxos/judgment.h"
#include "replication/paxos/paxos_messages.h"
#include "replication/paxos/sets_tally.h"

namespace tetrad::replication {

struct CoordinatorImpl::PaxosRun {
  // What is asked.
  CoordinatorImpl& self;
  ConditionalStatement* statement;  // null: a read
  storage::ReadCommand command;     // the run sets `now_s`, `horizon_s` and `live_only`
  ConsistencyLevel serial_level, commit_level;
  base::Deadline deadline, contention_deadline;
  std::vector<std::string>* warnings = nullptr;
  TracePtr trace = {};

  // What came of it.
  bool applied = false;
  storage::ReadResult rows = {};          // of a read
  std::vector<AwaitedView> awaited = {};  // of what it has decided last

  Task<Result<void>> run();

  /// Where the messages of one attempt go.
  struct Plan {
    MetaSnapshot state;  // that the plan was made by
    HostId self;
    ConsistencyLevel serial_level = ConsistencyLevel::kSerial;
    SetEpoch epoch;
    int64_t repaired_us = 0;
    WriteSets sets, row_sets;              // that vote; that are read
    std::vector<StoreAddress> live, down;  // of both sets, each once
    size_t voting = 0;                     // the first ones of `live` that have a vote
    std::span<const StoreAddress> voters() const { return std::span(live).first(voting); }
    /// Promises and votes of a set that decide.
    Need deciding(const std::vector<StoreAddress>& set) const {
      return Levels(*state, self).serial(serial_level, set);
    }
    bool gives_rows(const StoreAddress& replica) const;
  };
  using PlanPtr = std::shared_ptr<const Plan>;
  struct Round;
  struct PrepareRound;
  struct CommitRound;
  /// A value that this statement has proposed, and the round that was to accept it: its votes are
  /// counted to the last one.
  struct Proposed {
    storage::Proposal proposal;
    std::shared_ptr<Round> round;  // null: the only member decides
    bool is_gone() const;
  };

  /// How a statement goes on after a part of an attempt.
  enum class Step : uint8_t {
    kDone,   // the statement has ended
    kAgain,  // with a new ballot
    kGoOn,   // in this round
  };

  /// Waits for the place at the head of the line.
  Task<Result<void>> take_place();
  Task<Result<Step>> attempt();
  /// Waits for a turn of the partition, if it is contended. It goes on without one when nobody gives
  /// it in time.
  Task<void> take_turn();
  /// Whether the only vote is that of a store of this shard, and none of the statement's own
  /// proposals is open.
  bool is_alone(const Plan& plan) const;
  /// Reads, decides and writes in one turn of the partition. Unset: votes are needed all the same.
  Task<Result<std::optional<Step>>> attempt_alone(PlanPtr plan);
  Task<Result<std::optional<Step>>> end_alone(PlanPtr plan, PaxosService::Alone seen,
                                              storage::Proposal empty);
  /// `no`: the only member's vote against it, or an error.
  Result<std::optional<Step>> after_failure_alone(const PlanPtr& plan, const Result<PaxosVote>& no);
  /// A ballot of now, above what the registers hold. Unset: a timestamp there is not before now.
  std::optional<storage::Ballot> ballot_alone(const storage::PaxosRegisters& registers,
                                              const PaxosService::Alone& alone);
  /// `with_check`: enough must live.
  Result<PlanPtr> make_plan(bool with_check);
  Result<storage::Ballot> next_ballot();
  Task<std::shared_ptr<PrepareRound>> prepare(PlanPtr plan, storage::Ballot ballot);
  Task<std::shared_ptr<Round>> accept(PlanPtr plan, storage::Proposal proposal);
  /// Ends when the level's number of each set has it, W at least. Errors: kTimedOut, kStaleSchema,
  /// kWriteFailure. `known`: have it already.
  Task<Result<void>> commit(PlanPtr plan, storage::Proposal proposal, ConsistencyLevel level,
                            std::vector<StoreAddress> known);

  /// Asks the members what was decided after the own proposal, for others have been decided since.
  Task<Fate> ask_fate(PlanPtr plan, storage::Ballot origin, storage::Ballot gap);
  /// What the promises tell of earlier proposals, its own among them.
  Task<Result<Step>> finish_earlier(std::shared_ptr<PrepareRound> round);
  Task<Result<Step>> read_again(std::shared_ptr<PrepareRound> round);
  Task<Result<Step>> complete(PlanPtr plan, storage::Proposal proposal, storage::Ballot ballot);
  Task<Result<Step>> finish_own(PlanPtr plan, storage::Proposal proposal);
  /// The merge of the rows, when W of the sets that are read hold it. Unset: again.
  Task<Result<std::optional<storage::ReadResult>>> merge(std::shared_ptr<PrepareRound> round);
  Task<bool> write_back(PlanPtr plan, std::shared_ptr<storage::MergedRead> merged,
                        std::vector<StoreAddress> from);
  Task<Result<Step>> decide(std::shared_ptr<PrepareRound> round, storage::ReadResult found);
  /// The next ballot has a later time.
  void stay_above(int64_t timestamp_us);
  /// The next ballot is made later: no `now` of a condition is before that of an earlier one.
  void make_after(int64_t made_us);
  /// Whether no earlier statement can have been decided at a later time than the ballot's, nor a
  /// value with its timestamp. If not, the next ballot is better.
  bool is_in_order(const PrepareRound& round);
  /// Whether the mutation, stamped with the ballot, is above all that it overwrites. If not, the
  /// next ballot will be.
  Task<Result<bool>> is_above(storage::Mutation mutation, storage::Ballot ballot, int64_t mark_us);
  Result<void> check_limits(const storage::Mutation& mutation) const;
  Task<Result<Step>> propose(PlanPtr plan, storage::Proposal proposal);

  Result<Step> after_failure(const Round& round);
  Task<void> pause();
  base::Deadline attempt_deadline() const;
  bool is_out_of_time() const;
  /// Of a commit that somebody else began.
  ConsistencyLevel deciding_commit_level() const {
    return serial_level == ConsistencyLevel::kLocalSerial ? ConsistencyLevel::kLocalQuorum
                                                          : ConsistencyLevel::kQuorum;
  }
  /// Nothing it has proposed can be applied any more.
  bool is_certain() const { return std::ranges::all_of(proposed, &Proposed::is_gone); }
  /// Waits a little, where a vote that is still out may show that all have refused a proposal.
  Task<void> wait_for_last_votes();
  bool is_own(const storage::Ballot& origin) const;
  /// Now that the table is gone, or the statement cannot go on.
  Error ended(Error error) const { return is_certain() ? std::move(error) : unknown(); }
  /// The same, when the last votes have been waited for.
  Task<Error> ended_out_of_time();
  Error timed_out() const;
  /// Promises that an attempt needs by the map of now: of who has not been asked yet.
  int promises_needed() const;
  Error failed() const;
  Error commit_error() const;
  Error unknown() const;
  void note(std::string text) const {
    if (trace != nullptr) trace->add(std::move(text));
  }

  Bytes key = {};  // of the partition: its incarnation and partition key
  Turns::Turn turn = {};
  bool goes_without = false;  // no turn was to be had in time
  /// In the line of the partition; none when the next one may go on.
  std::shared_ptr<std::optional<ConditionalLine::Place>> place =
      std::make_shared<std::optional<ConditionalLine::Place>>();
  std::vector<Proposed> proposed = {};   // values that may yet be decided
  int64_t made_after_us = 0;             // the next ballot is made later
  std::optional<int64_t> above_us = {};  // its time is later; this need not be a time
  bool passed_mark = false;
  uint16_t contentions = 0;
  uint32_t backoffs = 0;
  uint32_t open_attempts = 0;  // begun since something of its own is open
  bool sent = false;
  bool at_once = false;            // nothing is in the way of the next ballot
  bool is_decided = false;         // only the commit is left
  int received = 0, required = 0;  // of the last round that failed; 0: there was none
  std::vector<StoreAddress> failed_replicas = {};  // of that round: who answered with an error
};

/// Answers of one message to all, counted. Shared by the callbacks of the replicas.
struct CoordinatorImpl::PaxosRun::Round {
  template <class Required>
  Round(PlanPtr its_plan, Required required)
      : plan(std::move(its_plan)), tally(plan->sets, required) {}

  void on_error(const StoreAddress& from, const Error& error);
  /// Another ballot is in the way.
  void on_refusal(const StoreAddress& from, const storage::Ballot& in_the_way);
  void look();
  bool succeeded() const { return tally.succeeded(); }

  /// Of accepts: a member has answered.
  void on_vote(bool yes);

  const PlanPtr plan;
  SetsTally tally;
  storage::Ballot last;  // of refusals
  /// Of accepts: who were asked and have not answered, or not with a vote; who said yes.
  size_t without_vote = 0, yes = 0;
  base::OneShot<bool> voted;  // all have answered, or one has said yes
  /// Nobody has accepted it, nor will.
  bool is_refused_by_all() const { return without_vote == 0 && yes == 0; }
  int64_t last_made_us = storage::kNoTimestamp;
  bool timed_out = false, stale_epoch = false, stale_schema = false, again = false;
  std::optional<Error> error;  // of the last of `failed`
  std::vector<StoreAddress> failed;
  bool ended = false;
  base::OneShot<bool> done;
};

inline bool CoordinatorImpl::PaxosRun::Proposed::is_gone() const {
  return round != nullptr && round->is_refused_by_all();
}

struct CoordinatorImpl::PaxosRun::PrepareRound : Round {
  using Round::Round;
  void on_answer(const StoreAddress& from, PrepareAnswer answer);

  storage::Ballot ballot;
  storage::ReadCommand command;
  Bytes encoded, encoded_without_rows;
  std::vector<RegistersOf> told;
  std::vector<storage::ReplicaReply> replies;
  PaxosFloor floor_us = storage::kNoTimestamp;
  int64_t mark_us = storage::kNoTimestamp;
};

}  // namespace tetrad::replication
