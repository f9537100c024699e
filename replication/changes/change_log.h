// SPDX-License-Identifier: Apache-2.0
// The change logs of a shard's stores. A table with a change log has one in every store: under an
// incarnation of its own, one entry for each row that the store was given, in the order of arrival.
// Entries are rows like others, written in the same turn of the loop, and so in the same write, as
// the rows they name. Whoever applies data (ReplicaService, TabletStream) notes it here first.
//
//   entry  position {sequence >> 30, 0}, partition key "": of about 18 minutes each, so that what
//          is old is swept where nothing is written; clustering key: see change_messages.h
//   marker position {2^63 - 1, 0}: cell 1 is the u64 sequence from which on the log is complete
//
// A sequence is the time of arrival in microseconds, or one more than the one before: it rises
// strictly, also over restarts, when the clock is set back, and after a power cut that took entries
// which readers had got already.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/changes/change_messages.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/replica/behind.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// How long entries stay, and how they are swept.
struct ChangeLogOptions {
  /// How long entries stay. They are erased in parts of about 18 minutes.
  int64_t retention_us = int64_t{24} * 3600 * 1'000'000;
  /// So old an entry is delivered: then most other members have the row too, and it is delivered
  /// once.
  int64_t settle_us = 100'000;
  /// Longer than any write may go on (HorizonSlack).
  int64_t longest_deadline_us = 60'000'000;
  int64_t sweep_every_us = 30'000'000;
  int64_t sweep_pause_us = 10'000;  // between two pages
};

/// Rises with every change of members, every split and every merge: TabletMap::layout().
uint64_t layout_of(const TableInfo& table);

/// When the sequences of this life were given, on the monotonic clock: in steps, as far back as
/// somebody asks.
class SequenceTrail {
 public:
  SequenceTrail(int64_t step_us, int64_t reach_us) : step_us_(step_us), reach_us_(reach_us) {}
  /// Given in an earlier life.
  void begin(ChangeSequence last) { base_ = last; }
  /// All up to `last` have been given by now.
  void give(base::MonotonicUs now_us, ChangeSequence last);
  /// The last one that is known to have been given by then, no longer ago than the reach.
  ChangeSequence given_by(base::MonotonicUs at_us) const;

 private:
  /// Entries up to `last` were made before a moment: what was written until then has been
  /// acknowledged, or never will be.
  struct Step {
    base::MonotonicUs begun_us, newest_us;
    ChangeSequence last;
  };
  const int64_t step_us_, reach_us_;
  ChangeSequence base_ = 0;  // before all steps
  std::deque<Step> steps_;
};

/// The change logs of one shard's stores. Belongs to the shard and its thread. A mutation of a
/// table with a log is applied only after note() has entered it, so the log has whatever the store
/// has.
class ChangeLogs {
 public:
  /// Counters of one shard, changed by its thread only.
  struct Metrics {
    base::Counter entries, erased;
  };
  using AnswerCallback = std::move_only_function<void(Result<ChangesAnswer>)>;

  /// `stores` by number; null: another shard's. Answers Verb::kChanges. Everything outlives it.
  ChangeLogs(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
             std::vector<storage::Store*> stores, const BehindStores& behind,
             ChangeLogOptions options, Logger logger);
  ~ChangeLogs();
  ChangeLogs(const ChangeLogs&) = delete;
  ChangeLogs& operator=(const ChangeLogs&) = delete;

  void start();

  /// Whether rows of the table, which has a change log, may be taken by the store. False: the log
  /// is being opened, ask again.
  bool may_take(const TableInfo& table, uint32_t store);
  /// Enters the rows of a mutation that is about to be applied, in this turn and with this guard;
  /// may_take() has said so. Errors: the store's; then the mutation must not be applied.
  Result<void> note(const TableInfo& table, uint32_t store, const storage::Mutation& mutation,
                    storage::WriteGuard guard = {});
  /// A page of a store's log. Errors: kBehind (ask again), kReplicaBehind, kStaleEpoch,
  /// kStaleSchema, kNotFound, and the store's.
  void answer(uint32_t store, ChangesRequest request, AnswerCallback done);

  /// Runs when a log has been opened.
  void on_opened(std::function<void()> listener) { opened_ = std::move(listener); }
  /// Erases what is older than the retention at once.
  void sweep_now(std::function<void()> done);
  const Metrics& metrics() const { return metrics_; }

 private:
  struct Log;
  using LogPtr = std::shared_ptr<Log>;

  void on_state(const MetaSnapshot& before, const MetaSnapshot& now);
  LogPtr find_or_open(const TableInfo& table, uint32_t store);
  Task<void> open(LogPtr log);
  Task<Result<void>> look_for_end(LogPtr log);
  Task<Result<void>> look_for_marker(LogPtr log);
  Task<Result<storage::ReadResult>> read(LogPtr log, storage::ReadCommand command);
  void write_marker(Log& log, ChangeSequence reach, storage::Store::ApplyCallback done);
  ChangeSequence next_sequence(Log& log, size_t count);
  static Result<ChangesAnswer> page_of(const storage::ReadResult& found,
                                       const ChangesRequest& request, ChangeSequence from,
                                       ChangeSequence settled);
  Task<void> sweep_all(std::function<void()> done);
  Task<Result<void>> sweep(LogPtr log);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  HybridClock& clock_;
  const std::vector<storage::Store*> stores_;
  const BehindStores& behind_;
  const ChangeLogOptions options_;
  const Logger logger_;
  Metrics metrics_;
  std::unordered_map<uint64_t, LogPtr> logs_;  // by incarnation of the log and store
  std::function<void()> opened_;
  bool sweeping_ = false;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
