// SPDX-License-Identifier: Apache-2.0
// Writing: everything applied in one turn of the loop becomes one RocksDB write.
//
// Periodic: the write happens on the loop at the turn's end and never waits (no_slowdown). When
// RocksDB is behind with flushes and compactions, batches wait until it takes them (write_pace.h)
// and are written by the store's commit thread; what would wait for too long is refused. The log is
// synced by the commit thread every sync period while there is something to sync. Group: the commit
// thread writes and syncs; what is applied meanwhile becomes the next batch.
//
// What had to wait is cut out of its batch, before that goes to RocksDB, where its guard does not
// allow it any more (write_guard.h), and is answered at its deadline wherever it is.
//
// What a disk in trouble does to writes is decided in store_health.cc: refused for a while, or for
// good after the first failure of a sync (fsyncgate).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "base/io_pool.h"
#include "base/reactor.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/rocks_view.h"
#include "storage/engine/store.h"
#include "storage/engine/sweep.h"
#include "storage/engine/sync_records.h"
#include "storage/engine/tables_known.h"
#include "storage/engine/write_pace.h"
#include "storage/views/store_views.h"

namespace rocksdb {
class Status;
class WriteBatch;
}  // namespace rocksdb

namespace tetrad::storage {

/// Keys of the store's own.
Bytes retired_key(TableIncarnation incarnation);
Bytes schema_version_key(TableIncarnation incarnation);

/// Keys of registers, and how many of their writes have not ended.
class RegistersUnderWay {
 public:
  bool has(const Bytes& key) const { return counts_.contains(key); }
  /// The next write would come too early.
  bool bars(const Bytes& key) const {
    const auto found = counts_.find(key);
    return found != counts_.end() && found->second.barring != 0;
  }
  void begin(const Bytes& key) { ++counts_[key].barring; }
  /// It is in its place, and bars nobody any more.
  void let_pass(const Bytes& key) {
    Counts& counts = counts_.at(key);
    TETRAD_ASSERT(counts.barring != 0);
    --counts.barring;
    ++counts.passed;
  }
  void end(const Bytes& key, bool passed = false) {
    const auto found = counts_.find(key);
    TETRAD_ASSERT(found != counts_.end());
    uint32_t& count = passed ? found->second.passed : found->second.barring;
    TETRAD_ASSERT(count != 0);
    --count;
    if (found->second.barring == 0 && found->second.passed == 0) counts_.erase(found);
  }

 private:
  /// How many bar a key, and how many have passed it; an entry with neither is erased.
  struct Counts {
    uint32_t barring = 0, passed = 0;
  };
  std::unordered_map<Bytes, Counts> counts_;
};

/// Owned by the store, on its thread; the commit thread sees a Job and no more. Always: mutations
/// are numbered in the order of add() and go to RocksDB in that order; parked_ before current_,
/// with at most one batch in flight before both; queued_bytes_ is the sum of the parked and
/// in-flight ones.
class WriteTurn {
 public:
  /// For metrics; they only rise.
  struct Figures {
    uint64_t batches = 0, puts = 0, merges = 0, claims = 0, parked = 0, syncs = 0, written_back = 0;
    uint64_t paced_us = 0;  // time during which RocksDB was behind
  };

  /// All references outlive this. `lane` of the commit threads is this store's alone.
  WriteTurn(std::shared_ptr<RocksDatabase> database, base::Reactor& reactor, base::IoPool& pool,
            uint32_t lane, const StoreOptions& options, TablesKnown& tables, SyncRecords& records,
            Logger logger);
  ~WriteTurn();
  WriteTurn(const WriteTurn&) = delete;
  WriteTurn& operator=(const WriteTurn&) = delete;

  /// `may_put`: rule 14 may be used. The guard allows it now.
  void add(const Mutation& mutation, bool may_put, WriteGuard guard, Store::ApplyCallback done);
  /// The guard allows it now.
  void add_registers(const RegistersWrite& write, WriteGuard guard, base::Callback written,
                     Store::ApplyCallback done);
  /// A write of the registers at this key, or an import, has not ended yet, synced if it is to be.
  bool writes_registers(const Bytes& key) const { return registers_->has(key); }
  /// Everything written so far has a lower number.
  uint64_t written_through() const { return written_through_; }
  /// Puts values that a read has joined, of what was written up to `seen`; not where a write came
  /// since (rule 19).
  void write_back(const std::vector<MergedValue>& values, uint64_t seen);
  /// The newest mutation of a bucket, as written_through() numbers them.
  uint64_t last_number(uint16_t bucket) const { return last_number_[bucket]; }
  /// Puts and erases what a sweep has found and settle_page() has left, inside when_settled(). A
  /// write itself: what was read before it is not put back. `done` as of a mutation; kOverloaded:
  /// what it has seen was given up, so it was, too.
  void replace(const std::vector<SweptKey>& keys, Store::ApplyCallback done);
  SweepWatches& watches() { return watches_; }
  DeadRuns& dead_runs() { return dead_runs_; }
  /// Runs `then`, perhaps at once, when everything added so far is in RocksDB.
  void when_written(base::Callback then);
  /// Runs `then`, perhaps at once, when nothing is on its way to RocksDB: what is not there is in
  /// the batch of this turn.
  void when_settled(base::Callback then);
  /// `values` are as they are in RocksDB: adds what this turn's batch does to those that are known.
  /// Inside when_settled().
  void add_pending(ValuesNow& values) const;
  /// Why nothing is taken any more; null: it is.
  const Error* failure() const { return refusal_ ? &*refusal_ : nullptr; }
  bool full() const;
  void add_retired(TableIncarnation incarnation);
  /// Claims of a build, and a key and value of the store's own that go with them.
  void add_built(const Claims& claims, const std::optional<std::pair<Bytes, Bytes>>& own,
                 Store::ApplyCallback done);
  void drop_claims(const std::vector<Bytes>& keys, Store::ApplyCallback done);
  /// Who makes the tasks of tables with views; outlives this.
  void set_views(StoreViews& views) { views_ = &views; }
  /// Gets each mutation of a table with graphs of vectors, as it is taken.
  void on_vectors(std::function<void(const Mutation&)> note) { note_vectors_ = std::move(note); }
  /// Tasks and notes of views, in one batch.
  void change_view_records(const ViewRecords& puts, const std::vector<Bytes>& erased,
                           Store::ApplyCallback done);
  /// Keys of the store's own.
  void put_own(const ViewRecords& entries);
  /// Keys of the store's own that are not needed any more.
  void erase_own(const std::vector<Bytes>& keys);
  /// Runs `then` when everything added so far has been written (or has failed).
  void after_writes(base::Callback then);
  /// Runs `done` when everything added so far is on the disk.
  void sync(Store::ApplyCallback done);
  /// From now on sync records are written: `records` has got its clock.
  void begin_records();
  /// The end of what has been written: all of it has a lower number in RocksDB.
  uint64_t log_end() const { return log_end_; }
  /// Writes everything that waits, on this thread, however long it takes. Jobs must be shut out.
  Result<void> finish();

  /// RocksDB does not take what comes at once.
  bool behind() const { return paced_since_us_.has_value(); }
  /// A batch is being written on another thread.
  bool writes_elsewhere() const { return in_flight_ != nullptr; }
  /// Whom to tell of a disk in trouble; it may call refuse() from inside.
  struct Trouble {
    /// A write or a sync has failed. The listener calls refuse() if nothing is to be taken.
    std::function<void(const rocksdb::Status&, std::string_view what)> failed;
    /// The commit thread has been at one piece of work for long; or has done it.
    std::function<void(bool hung)> hung;
  };
  void on_trouble(Trouble trouble) { trouble_ = std::move(trouble); }
  /// What waits, and what comes, is refused with `why`; unset: taken again.
  void refuse(std::optional<Error> why);
  /// Goes on with another database; nothing is under way.
  void use(std::shared_ptr<RocksDatabase> database);
  Figures figures() const;

 private:
  struct Span;
  struct Batch;
  struct Job;
  void begin_turn();
  void end_turn();
  void write_here();
  void keep_for_reuse(std::unique_ptr<Batch> written);
  /// Hands over what waits, now or when RocksDB takes it.
  void write_paced();
  void look_later(base::MonotonicUs at_us);
  void write_group();
  void hand_over(std::unique_ptr<Batch> batch, bool sync);
  void written_elsewhere(const std::shared_ptr<Job>& job);
  /// A write cut out of its batch; answered afterwards, since its callback may write again.
  struct Refused {
    Store::ApplyCallback done;
    Error error;
  };
  /// Takes out of a batch what may not be written any more.
  std::vector<Refused> cut(Batch& batch);
  static void answer(std::vector<Refused> refused);
  /// While writes wait: those past their deadline are answered, whatever comes of them.
  void watch_deadlines();
  void answer_late();
  void arm_sync();
  void start_sync();
  void end_sync(const SyncRecords::Begun& begun, const rocksdb::Status& status,
                std::vector<Store::ApplyCallback> waiting);
  void sync_at_turn_end();
  /// Adds the record that is due, if any, to this turn's batch.
  void add_record();
  void keep_records();
  static void complete(Batch& batch, const Result<void>& result);
  /// The outcome is unknown.
  void write_failed(Batch& batch, const rocksdb::Status& status);
  void watch_commit_thread();
  void look_at_commit_thread();
  void run_settled();
  /// The batch is in RocksDB: reads see it.
  void see_written(const Batch& batch);
  Result<RecordFacts> look_at(const Mutation& mutation);
  /// False: `done` has the reason.
  bool takes(Store::ApplyCallback& done);
  /// That of the mutation, whose schema version it has or a later one.
  TableKnowledge& table_of(const Mutation& mutation);
  /// Where a mutation's records go. The first `prefix_bytes` of key_ are the partition's prefix.
  struct Target {
    TableKnowledge& table;
    size_t prefix_bytes;
    uint16_t bucket;  // of the partition
    bool is_watched;  // a sweep is under way and notes each key that is written
  };
  /// The records of the mutation that was looked at last.
  void add_rows(const Mutation& mutation, TableKnowledge& table, bool may_put,
                const RecordFacts& facts);
  const Bytes& key_at(const Target& target, KeyKind kind, BytesView clustering_key);
  /// The header and the range tombstones: what hides rows.
  void add_covers(const Mutation& mutation, const Target& target);
  /// facts_ has those of each row. `may_put`: rule 14 may be used for the mutation as a whole.
  void add_row_records(const Mutation& mutation, const Target& target, bool may_put);
  /// Of a table that has, or had, indexes.
  void put_claims(const Mutation& mutation, TableIndexes& table, bool merged);
  void put_view_tasks(const Mutation& mutation, bool merged);
  /// A key and value of registers on their way into the batch.
  struct RegistersEntry {
    Bytes key;
    BytesView value;
    bool synced;
    bool lets_pass;  // the next one when it has been written
  };
  /// Ends a span that began with the record `begin`.
  void put_registers(RegistersEntry entry, uint32_t begin, WriteGuard guard,
                     Store::ApplyCallback done);
  /// As add(), of a mutation with registers.
  void import_registers(const Mutation& mutation, WriteGuard guard, Store::ApplyCallback done);
  /// Runs when what it is the callback of is on the disk; `written`, unless it is null, when that
  /// is seen by reads, if this is earlier.
  Store::ApplyCallback when_synced(Store::ApplyCallback done, base::Callback written = nullptr);
  /// What is written is on the disk with the next sync.
  void wait_for_sync(Store::ApplyCallback done);
  /// The batch has been written: its synced registers are under way until they are on the disk.
  void wait_for_registers(Batch& batch);

  std::shared_ptr<RocksDatabase> database_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const uint32_t lane_;
  const StoreOptions options_;
  TablesKnown& tables_;
  SyncRecords& records_;
  const Logger logger_;
  const std::shared_ptr<bool> alive_;

  StoreViews* views_ = nullptr;
  std::function<void(const Mutation&)> note_vectors_;
  const std::shared_ptr<RegistersUnderWay> registers_ = std::make_shared<RegistersUnderWay>();

  std::unique_ptr<Batch> current_;
  std::deque<std::unique_ptr<Batch>> parked_;  // before current_; only while RocksDB is behind
  std::shared_ptr<Job> in_flight_;
  std::vector<base::Callback> settled_;  // of when_settled(), that wait
  uint64_t log_end_;
  SweepWatches watches_;
  DeadRuns dead_runs_;
  uint64_t next_number_ = 1;           // of a mutation, in the order of add()
  uint64_t written_through_ = 0;       // reads see all mutations up to this one
  std::vector<uint64_t> last_number_;  // by bucket: of its newest mutation
  uint64_t queued_bytes_ = 0;          // of parked and in-flight batches
  bool turn_begun_ = false;
  bool unsynced_ = false, syncing_ = false;
  std::vector<Store::ApplyCallback> sync_waiting_;  // of sync(): for one that begins from now on
  base::MonotonicUs record_not_before_us_ = 0;
  base::Reactor::TimerId sync_timer_ = 0, pace_timer_ = 0, record_timer_ = 0;
  WritePace pace_;
  bool idle_ = false;  // pace_timer_ looks whether RocksDB has caught up
  std::optional<base::MonotonicUs> paced_since_us_;
  std::optional<Error> refusal_;
  Trouble trouble_;
  bool hung_ = false;
  base::Reactor::TimerId hung_timer_ = 0, deadline_timer_ = 0;
  std::optional<base::MonotonicUs> job_since_us_, sync_since_us_;  // with the commit thread
  Figures figures_;

  Bytes key_;                       // scratch
  std::vector<RecordFacts> facts_;  // scratch: of the mutation's rows
  Claims claims_;                   // scratch: of the mutation
};

}  // namespace tetrad::storage
