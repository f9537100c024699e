// SPDX-License-Identifier: Apache-2.0
// The coordinator of one shard over the replicas of its cluster.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/request_timer.h"
#include "base/task_group.h"
#include "replication/coordinator/awaited_views.h"
#include "replication/coordinator/conditional_line.h"
#include "replication/coordinator/coordinator.h"
#include "replication/coordinator/read_pace.h"
#include "replication/coordinator/slow_replicas.h"
#include "replication/coordinator/turns.h"
#include "replication/coordinator/write_tally.h"
#include "replication/counters/counter_leader.h"
#include "replication/hints/hint_store.h"
#include "replication/meta/meta_service.h"
#include "replication/paxos/ballot_source.h"
#include "replication/paxos/paxos_service.h"
#include "replication/quorum.h"
#include "replication/repair/purge_horizon.h"
#include "replication/replica/replica_service.h"
#include "replication/rpc/rpc.h"
#include "storage/row/reconcile.h"

namespace tetrad::replication {

struct LoggedStored;

struct DigestReply;
struct ChangePlaces;

/// The pause before what was refused for an old map is sent again: a newer one arrives by a heartbeat
/// or the metadata group, and until then asking is in vain.
inline constexpr int64_t kNewMapUs = 5'000;

/// Limits of a coordinator; the same on all shards of a node.
struct CoordinatorOptions {
  /// How long a read waits for all answers before it asks one more replica, and again one more: of
  /// one partition as long as its like take (read_pace.h), between these two; of a range the latter.
  int64_t speculative_retry_least_us = 2'000, speculative_retry_us = 30'000;
  uint64_t mutation_bytes_max = 16u << 20;
  /// Off: coordinators of one partition duel, as they do when nobody gives turns.
  bool takes_turns = true;
  HorizonSlack horizon;
};

/// Counters and times of one shard's requests, changed by its thread only.
struct CoordinatorMetrics {
  static constexpr size_t kLevels = 11;
  // By consistency level. Conditional statements and SERIAL reads stand under their serial level;
  // a scan is of more than one partition.
  std::array<base::LatencyHistogram, kLevels> write, read, scan;
  std::array<base::Counter, kLevels> unavailable, write_timeouts, read_timeouts, failures;
  base::Counter digest_mismatches, index_mismatches, read_repairs, speculative_retries, restamped,
      redated;
  /// Of conditional statements and SERIAL reads.
  base::LatencyHistogram conditional_wait;
  base::LatencyHistogram view_write;  // of rows of views, for tasks: no client's
  base::Counter conditional_contentions, conditional_retries, conditional_completed,
      conditional_alone, conditional_unknown, conditional_turns;
  base::Counter logged_batches, logged_restored;
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;
};

/// The coordinator over the replicas of the cluster. Owned by its shard, on its thread; calls that
/// are under way when it is destroyed do nothing more. Always: a client hears of success only
/// when W members of each set that counts have acknowledged.
class CoordinatorImpl final : public Coordinator {
 public:
  /// All references outlive it.
  CoordinatorImpl(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
                  ReplicaService& replicas, PaxosService& paxos, TurnKeeper& turns,
                  BallotSource ballots, HintStore& hints, HybridClock& clock,
                  CoordinatorOptions options, Logger logger);
  ~CoordinatorImpl() override;

  Task<Result<void>> write(std::vector<storage::Mutation> mutations, WriteOptions options) override;
  Task<Result<void>> increment(std::vector<CounterIncrement> increments,
                               WriteOptions options) override;
  Task<Result<void>> write_logged(std::vector<storage::Mutation> mutations,
                                  WriteOptions options) override;
  Task<Result<bool>> write_if(ConditionalStatement& statement, ConditionalOptions options) override;
  Task<Result<storage::ReadResult>> read(storage::ReadCommand command,
                                         ReadOptions options) override;
  std::optional<Result<storage::ReadEnd>> read_here(storage::ReadCommand& command,
                                                    const ReadOptions& options,
                                                    storage::RowSink& sink) override;
  Task<Result<std::vector<storage::ReadResult>>> read_many(
      std::vector<storage::ReadCommand> commands, ReadOptions options) override;
  Task<Result<std::optional<NearestNames>>> nearest(storage::ReadCommand command,
                                                    ReadOptions options) override;
  Task<Result<Counted>> count(storage::ReadCommand command, ReadOptions options) override;
  Task<Result<ChangesPage>> changes(ChangesCommand command, ReadOptions options) override;
  int64_t next_timestamp_us() override;
  int64_t now_us() override { return clock_.now_us(reactor_); }
  int64_t clock_skew_us() const override { return clock_.skew_max_us(); }

  const CoordinatorMetrics& metrics() const { return metrics_; }
  const CounterMetrics& counter_metrics() const { return counters_.metrics(); }

 private:
  // Requests on their way, each defined in the file that runs it: write_attempt.cc, gathering.h,
  // tablet_round.h, read_repair.cc, paxos_run.h, increment.cc, changes.cc, count.cc.
  struct WriteOperation;
  struct Gathering;
  struct TabletRound;
  struct Repairs;
  struct PartCall;
  struct SoleMutateCall;
  struct PartReadCall;
  struct SoleReadCall;
  struct PaxosRun;

  // What attempts of a write leave for the next one (write_again.h).
  struct Again;
  struct Resending;

  struct IncrementTry;
  /// Of one partition; ends when it is applied, refused by all, or unknown.
  Task<Result<void>> increment_one(CounterIncrement increment, WriteOptions options);
  /// Static tasks get `self`: they live in tasks_, which goes before the coordinator's other
  /// members.
  static Task<void> increment_into(CoordinatorImpl* self, CounterIncrement increment,
                                   WriteOptions options,
                                   std::move_only_function<void(Result<void>)> done);
  /// Who is to lead now. Errors: kUnavailable, kOverloaded, kInvalid.
  Result<IncrementTry> plan_increment(const CounterIncrement& increment,
                                      const WriteOptions& options) const;
  /// A call, or a message; what cannot be read counts as an unknown outcome.
  Task<Result<CounterAnswer>> ask_leader(TracePtr trace, StoreAddress leader,
                                         CounterRequest request, base::Deadline deadline);

  /// `began_us`: when the coordinator was asked; hints are dated by it.
  Task<Result<void>> write_to_replicas(std::vector<storage::Mutation> mutations,
                                       WriteOptions options, int64_t began_us, Again* again);
  // Its steps; plain functions, since each write takes them.
  /// The tablet of a position whose only member, a store of this node, can be asked without a
  /// tally; null: it is not so.
  const partitioner::Tablet* sole_tablet(const MetaState& state, const TableInfo& table,
                                         RingPosition position, const WriteOptions& options) const;
  /// Ask the sole member: a store of another shard, to which the mutation moves, or one of this
  /// shard, which may answer within the call.
  void cross_to(const StoreAddress& sole, SetEpoch epoch, storage::Mutation& mutation,
                const WriteOptions& options,
                const base::OneShot<std::unique_ptr<SoleMutateCall>>& back);
  void call_own(const StoreAddress& sole, SetEpoch epoch, const storage::Mutation& mutation,
                const TableInfo& table, TabletId tablet, const WriteOptions& options,
                const base::OneShot<Result<void>>& applied);
  /// Each part to each live member; down ones get a hint.
  void send_parts(const std::shared_ptr<WriteOperation>& operation, const WriteOptions& options);
  /// What an attempt has come to; `again` gets what the next one needs. Errors: the client's, or
  /// kStaleEpoch and kClockOff, which write() tries again.
  static Result<void> outcome_of(SoleMutateCall& call, const WriteOptions& options, Again& again);
  Result<void> outcome_of(const WriteOperation& operation, bool succeeded,
                          const WriteOptions& options, Again& again) const;
  /// Two live nodes that are to hold a batch, in the order of their ranks. Errors: kUnavailable.
  Result<std::vector<HostId>> choose_holders(const MetaState& state);
  /// Whether enough replicas are live for each part. Errors: those of a plan.
  Result<void> check_parts(const std::vector<storage::Mutation>& mutations,
                           const WriteOptions& options, const MetaState& state) const;
  /// In place of one that does not answer.
  std::optional<HostId> another_holder(const LoggedRun& run);
  /// Answers go into `stored`, which outlives the call.
  void send_entry(LoggedRun& run, size_t rank, const std::vector<storage::Mutation>& mutations,
                  const WriteOptions& options, base::Deadline deadline,
                  const std::shared_ptr<LoggedStored>& stored);
  /// The entry, as it is about to be sent, on its holders' disks.
  Task<Result<void>> store_logged(LoggedRun& run, const std::vector<storage::Mutation>& mutations,
                                  const WriteOptions& options);
  /// Of a logged batch whose parts may all be written yet.
  Error logged_error(const LoggedRun& run, Error error, const WriteOptions& options) const;
  /// Further ahead of this node's time than what any coordinator gives while its clock is right.
  bool is_far_ahead(int64_t timestamp_us) const;
  /// The timestamp to stamp anew with when a replica's mark is not below the one given.
  std::optional<int64_t> timestamp_above(int64_t mark_us);
  /// Above what hides a write that was acknowledged, as R replicas hold it; unset: nothing does, or
  /// a client's timestamp of the future, of which the client is warned.
  Task<Result<std::optional<int64_t>>> timestamp_above_hiding(
      const std::vector<storage::Mutation>& mutations, int64_t stamp_us, WriteOptions options);
  /// Rows that are looked at where many are deleted.
  static constexpr uint32_t kSurvivorsMax = 16, kDeletedRowsMax = 1000;
  /// The newest timestamp of the rows where something of it is not to be seen, or not deleted: it
  /// need not be there yet. Errors: those of a read; kLimit: it is about more than that.
  Task<Result<std::optional<int64_t>>> find_hiding(const std::vector<storage::Mutation>& mutations,
                                                   int64_t stamp_us, WriteOptions options,
                                                   uint32_t deleted_rows_max = kSurvivorsMax);
  /// Errors: kOverloaded: this node's clock is off, so it coordinates nothing.
  Result<void> check_clock() const;
  /// As check_clock(), once the others have answered a node that has just started or whose clock
  /// has jumped: about a second later at most, and no later than the deadline.
  Task<Result<void>> clock_settled(base::Deadline deadline);
  /// Times that replicas refuse are set anew; false: those that were refused were the newest.
  Result<void> renew_times(std::vector<storage::Mutation>& mutations, WriteOptions& options,
                           const Again& again);
  /// Errors: kInvalid, with the limit.
  Result<void> check_sizes(const std::vector<storage::Mutation>& mutations,
                           const WriteOptions& options) const;
  /// Before the first attempt; stamps and dates are good then. Errors: kInvalid.
  Result<Resending> ready_to_send(std::vector<storage::Mutation>& mutations, WriteOptions& options,
                                  bool in_doubt);
  /// Before each attempt. Errors: kClockOff.
  Result<void> check_stamp(const WriteOptions& options) const;
  // Between two attempts: the mutations come back from `again` or `resending`, with what is newer.
  Result<void> prepare_newer_date(std::vector<storage::Mutation>& mutations, WriteOptions& options,
                                  Again& again, Resending& resending);
  Result<void> prepare_newer_times(std::vector<storage::Mutation>& mutations, WriteOptions& options,
                                   Again& again, Resending& resending);
  Result<bool> prepare_for_truncated(std::vector<storage::Mutation>& mutations,
                                     const WriteOptions& options, Again& again,
                                     Resending& resending);
  /// False: the write is acknowledged as it is. True at most once for each time that the stamp was
  /// given anew; `mutations` are back.
  static bool must_heed_marks(std::vector<storage::Mutation>& mutations,
                              const WriteOptions& options, Again& again, Resending& resending);
  static Result<void> prepare_later_stamp(std::vector<storage::Mutation>& mutations,
                                          WriteOptions& options, int64_t later_us,
                                          Resending& resending);
  /// Gives times anew that were given while this node's clock was in doubt, or before its own time
  /// was set right: nobody may hear that a write with them has succeeded.
  Result<void> renew_doubtful_times(std::vector<storage::Mutation>& mutations,
                                    WriteOptions& options, bool in_doubt);
  /// True: a mark is beyond what clocks may be apart.
  Result<bool> restamp_above_own_marks(std::vector<storage::Mutation>& mutations,
                                       std::optional<int64_t>& server_timestamp_us);
  /// Moves the mutations into the operation, or leaves them and returns why nothing can be sent:
  /// kUnavailable, kInvalid, kOverloaded.
  Result<std::shared_ptr<WriteOperation>> plan_write(std::vector<storage::Mutation>& mutations,
                                                     const WriteOptions& options,
                                                     const MetaState& state);
  /// `encoded`: the message, made by the first call that needs it.
  void send_part(const std::shared_ptr<WriteOperation>& operation, size_t part,
                 const StoreAddress& replica, Bytes& encoded, base::Deadline deadline);
  /// `result` holds the replica's mark if that is not below the server timestamp.
  void on_written(WriteOperation& operation, size_t part, const StoreAddress& replica,
                  const Result<std::optional<int64_t>>& result);
  /// The client's error of an operation that failed.
  Error write_error(const WriteOperation& operation, const WriteOptions& options) const;
  /// A full logical partition takes no inserts; before that clients are warned.
  Result<void> check_room(const MetaState& state, const partitioner::Tablet& tablet,
                          const storage::Mutation& mutation, const WriteOptions& options) const;
  /// Errors: kOverloaded, when a member of a set has no room for what a mutation adds.
  Result<void> check_disks(const MetaState& state,
                           std::span<const storage::Mutation> mutations) const;
  /// `state` outlives what is returned.
  Levels levels(const MetaState& state) const { return Levels(state, meta_.self()); }
  /// Whether enough of the set are live. Errors: kUnavailable, with the group that lacks most.
  Result<void> check_enough(const std::vector<StoreAddress>& set, ConsistencyLevel level,
                            const Need& need) const;
  /// Whether enough of the live ones are not known to be full. Errors: kOverloaded.
  Result<void> check_not_full(const std::vector<StoreAddress>& set, const Need& need) const;

  /// `command` names one partition.
  Task<Result<storage::ReadResult>> read_partition(storage::ReadCommand command,
                                                   ReadOptions options);
  /// At a serial level.
  Task<Result<storage::ReadResult>> read_serial(storage::ReadCommand command, ReadOptions options);
  /// Tablet after tablet, up to the page's limits.
  Task<Result<storage::ReadResult>> read_range(storage::ReadCommand command, ReadOptions options);
  /// Over tablets side by side, more of them at once as long as little is found.
  Task<Result<storage::ReadResult>> read_range_by_index(storage::ReadCommand command,
                                                        ReadOptions options);
  static Task<void> read_part_into(CoordinatorImpl* self, storage::ReadCommand command,
                                   ReadOptions options,
                                   std::move_only_function<void(Result<storage::ReadResult>)> done);
  /// Members differ in what a part of an index names: what any of them names is read by its key at
  /// the level.
  Task<Result<storage::ReadResult>> read_named(storage::ReadCommand command, SetEpoch epoch,
                                               std::vector<StoreAddress> replicas,
                                               ReadOptions options);
  /// `command` lies inside one tablet; errors as read_tablet()'s.
  Task<Result<NearestNames>> nearest_of_tablet(storage::ReadCommand command, ReadOptions options);
  static Task<void> nearest_into(CoordinatorImpl* self, storage::ReadCommand command,
                                 ReadOptions options,
                                 std::move_only_function<void(Result<NearestNames>)> done);
  /// `command` lies inside one tablet. kStaleEpoch: it does no more, a range was split.
  Task<Result<storage::ReadResult>> read_tablet(storage::ReadCommand command, RingPosition inside,
                                                ReadOptions options);
  /// Of a part of the ring that lies in one tablet.
  Task<Result<Counted>> count_part(storage::ReadCommand command, ReadOptions options);
  struct Counting;
  /// What was known of a tablet before its replicas were read.
  struct TabletSeen {
    SetEpoch epoch;
    int64_t repaired_us = 0;
    /// What is written back must be on disk before it counts (rule 20).
    bool is_relied_on = false;
  };
  /// The members' counts differ: their rows are read, merged, written back where they lack, and
  /// counted.
  Task<Result<storage::ReadResult>> count_and_repair(storage::ReadCommand command, TabletSeen seen,
                                                     std::vector<StoreAddress> replicas,
                                                     ReadOptions options);
  struct Logs;
  /// A page of the change feed: asks all live logs, takes from them by sequence; errors are the
  /// client's.
  Result<std::shared_ptr<Logs>> ask_logs(const TableInfo& table, const ChangesCommand& command,
                                         const ChangePlaces& from, const ReadOptions& options);
  static ChangesPage merge_logs(Logs& logs, uint32_t changes_max);
  static Result<ChangePlaces> places_of(const ChangesCommand& command, const TableInfo& table);
  Error changes_error(const Logs& logs, ConsistencyLevel level) const;
  /// One of several that take parts from `counting` until none is left.
  static Task<void> count_parts(CoordinatorImpl* self, std::shared_ptr<Counting> counting);
  /// The merge of all `replicas`, when each of them has what it lacked (rule 3).
  Task<Result<storage::ReadResult>> read_and_repair(storage::ReadCommand command, TabletSeen seen,
                                                    std::vector<StoreAddress> replicas,
                                                    ReadOptions options);
  // The steps of read_tablet(), which owns the round and the command. They are plain functions,
  // since each read takes them; reconcile() is a task of its own, since only answers that differ
  // come to it.
  /// Errors: kInvalid, the table was dropped; kStaleEpoch, a range lies in more than one tablet.
  Result<void> begin_round(TabletRound& round, storage::ReadCommand& command, RingPosition inside,
                           const ReadOptions& options);
  /// The first members of a round have been asked. Errors: kUnavailable.
  Result<std::shared_ptr<Gathering>> ask_members(TabletRound& round, storage::ReadCommand& command,
                                                 const ReadOptions& options);
  /// Ask the sole member, a store of this shard or of another one; the command moves there.
  void call_own(const StoreAddress& sole, SetEpoch epoch, storage::ReadCommand& command,
                const ReadOptions& options,
                const base::OneShot<Result<storage::ReadResult>>& answer);
  void cross_to(const StoreAddress& sole, SetEpoch epoch, storage::ReadCommand& command,
                const ReadOptions& options,
                const base::OneShot<std::unique_ptr<SoleReadCall>>& back);
  /// Whether all say the same, also of where they end; one of them is data at least.
  static bool answers_agree(const Gathering& gathering);
  /// Makes those that `answered` equal, and answers. Unset: the next round may, with `command` as
  /// it is now. What is pointed to outlives the task.
  Task<std::optional<Result<storage::ReadResult>>> reconcile(TabletRound* round,
                                                             storage::ReadCommand* command,
                                                             std::vector<StoreAddress> answered,
                                                             const ReadOptions* options);
  /// Sends a member what it lacks of a merge; `repairs` hears of its answer.
  void send_repair(const StoreAddress& replica, const storage::Mutation& mutation,
                   const TabletSeen& seen, ClusterFormat format, const ReadOptions& options,
                   const std::shared_ptr<Repairs>& repairs);
  /// What must answer a read of one tablet besides a number of replicas: what these sets
  /// need.
  struct ReadQuorum {
    std::vector<StoreAddress> set;
    Need need;
    bool is_met_by(std::span<const StoreAddress> answered) const;
    /// Whom an answer may come from that counts.
    bool counts(const StoreAddress& replica) const;
  };
  /// Asks the first `need` of the candidates, then others in place of those that fail or are slow.
  /// Without `quorums` any `need` answers will do.
  std::shared_ptr<Gathering> gather(const storage::ReadCommand& command, SetEpoch epoch,
                                    std::vector<StoreAddress> candidates, size_t need, bool digests,
                                    const ReadOptions& options, std::vector<ReadQuorum> quorums);
  /// Where the data centres matter: candidates near this node come first, those that cannot count
  /// are left out. How many of them meet the quorums.
  static size_t arrange_for(const std::vector<ReadQuorum>& quorums, const Levels& levels,
                            std::vector<StoreAddress>& candidates);
  /// Asks one more candidate each time that answers are waited for too long.
  void speculate_later(const std::shared_ptr<Gathering>& gathering);
  int64_t patience_us(const storage::ReadCommand& command) const {
    return command.is_range ? options_.speculative_retry_us : pace_.patience_us();
  }
  /// Asks the next candidate.
  void ask(const std::shared_ptr<Gathering>& gathering, bool as_digest);
  /// What callbacks of replicas do with an answer; the gathering may be over already.
  void on_reply(Gathering& gathering);
  void on_digest(Gathering& gathering, const StoreAddress& replica, const DigestReply& reply);
  void on_data(Gathering& gathering, const StoreAddress& replica, storage::ReadResult result);
  void on_failed(const std::shared_ptr<Gathering>& gathering, const StoreAddress& replica,
                 bool digest, const Error& error);
  /// The client's error for a failed read of the only replica.
  Error own_read_error(const Error& error, ConsistencyLevel level) const;
  /// Measures a finished request and counts its error.
  /// `timed_us`: how long it took by the clock of the moment, where it was timed.
  void record_read(bool is_range, ConsistencyLevel level, base::MonotonicUs started_us,
                   std::optional<int64_t> timed_us, const Error* error);
  /// What is to be waited for behind these (awaited_views.h); nothing where others have copies.
  std::vector<AwaitedView> views_to_await(std::span<const storage::Mutation> mutations) const;
  Task<void> await_views(std::vector<AwaitedView> awaited, base::Deadline deadline, TracePtr trace);
  void record_write(ConsistencyLevel level, base::MonotonicUs started_us,
                    std::optional<int64_t> timed_us, const Error* error);
  Error read_error(const Gathering& gathering, ConsistencyLevel level) const;
  /// How traces name a replica, and say that it is asked.
  std::string place_text(const StoreAddress& replica) const;
  std::string asking_text(std::string_view message, const StoreAddress& replica) const;
  /// RpcNode::call(). A trace, if there is one, gets what the other node has to say.
  void call_replica(const TracePtr& trace, const StoreAddress& replica, Verb verb, BytesView body,
                    base::Deadline deadline, RpcNode::ReplyCallback done);
  /// How traces say what an answer holds; one that was only counted has no partitions.
  static std::string rows_text(const storage::ReadResult& result);
  /// Nothing without a trace.
  static void note_own_read(const TracePtr& trace, const storage::ReadResult& result,
                            uint32_t store);
  /// A replica that is behind is asked last for a while.
  void note_behind(const StoreAddress& replica);
  void ask_last_who_is_behind(std::vector<StoreAddress>& candidates);
  /// For a read: those that let reads wait come last, and behind them those that are behind.
  void ask_good_ones_first(std::vector<StoreAddress>& candidates);
  /// When a read is complete: who let it wait, or has answered in time.
  void note_pace(const Gathering& gathering);
  /// Live members, that of this shard first, then that of this node; the others in the tablet's
  /// order.
  std::vector<StoreAddress> live_members(const std::vector<StoreAddress>& set) const;
  /// A read whose result goes to `done`, exceptions included.
  static Task<void> read_into(CoordinatorImpl* self, storage::ReadCommand command,
                              ReadOptions options,
                              std::move_only_function<void(Result<storage::ReadResult>)> done);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  ReplicaService& replicas_;
  PaxosService& paxos_;
  BallotSource ballots_;
  HintStore& hints_;
  HybridClock& clock_;
  /// A store of this node that another shard has.
  bool is_other_shards(const StoreAddress& replica) const {
    return replica.host == rpc_.self() && !replicas_.is_local(replica);
  }

  const CoordinatorOptions options_;
  Logger logger_;
  CoordinatorMetrics metrics_;
  base::RequestLatencies read_latencies_, scan_latencies_, write_latencies_;
  int64_t last_timestamp_us_ = 0;
  std::map<StoreAddress, base::MonotonicUs> behind_until_us_;
  SlowReplicas slow_replicas_;
  ReadPace pace_;
  ConditionalLine line_;
  Turns turns_;
  CounterLeader counters_;
  std::shared_ptr<char> alive_ =
      std::make_shared<char>();  // callbacks that outlive this object do nothing
  base::TaskGroup tasks_;        // last: goes first
};

}  // namespace tetrad::replication
