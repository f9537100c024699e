// SPDX-License-Identifier: Apache-2.0
// Writing: everything applied in one turn of the loop becomes one RocksDB write.
//
// Periodic: the write happens on the loop at the turn's end and never waits (no_slowdown). When
// RocksDB is behind, batches are parked in order and tried again; the log is synced by its
// commit thread every sync period while there is something to sync. Group: the write is synced by
// the commit thread; what is applied meanwhile becomes the next batch. The first failure of a write
// or a sync is the last word (fsyncgate): nothing is taken any more.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/io_pool.h"
#include "base/reactor.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/rocks_view.h"
#include "storage/engine/store.h"
#include "storage/engine/sweep.h"
#include "storage/engine/tables_known.h"

namespace rocksdb {
class WriteBatch;
}

namespace tetrad::storage {

/// Keys of the store's own.
Bytes retired_key(TableIncarnation incarnation);
Bytes schema_version_key(TableIncarnation incarnation);

class WriteTurn {
 public:
  struct Figures {
    uint64_t batches = 0, puts = 0, merges = 0, parked = 0, syncs = 0, written_back = 0;
  };

  /// All references outlive this. `lane` of the commit threads is this store's alone.
  WriteTurn(std::shared_ptr<RocksDatabase> database, base::Reactor& reactor, base::IoPool& pool,
            uint32_t lane, const StoreOptions& options, TablesKnown& tables, Logger logger);
  ~WriteTurn();
  WriteTurn(const WriteTurn&) = delete;
  WriteTurn& operator=(const WriteTurn&) = delete;

  /// `may_put`: rule 14 may be used.
  void add(const Mutation& mutation, bool may_put, Store::ApplyCallback done);
  /// Everything written so far has a lower number.
  uint64_t written_through() const { return written_through_; }
  /// Puts values that a read has joined, of what was written up to `seen`; not where a write came
  /// since (rule 19).
  void write_back(const std::vector<MergedValue>& values, uint64_t seen);
  /// The newest mutation of a bucket, as written_through() numbers them.
  uint64_t last_number(uint16_t bucket) const { return last_number_[bucket]; }
  /// Puts and erases what a sweep has found and settle_page() has left, inside when_settled(). A
  /// write itself: what was read before it is not put back.
  void replace(const std::vector<SweptKey>& keys);
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
  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  bool full() const;
  void add_retired(TableIncarnation incarnation);
  /// Runs `then` when everything added so far has been written (or has failed).
  void after_writes(base::Callback then);
  /// Writes everything that waits, on this thread, however long it takes. Jobs must be shut out.
  Result<void> finish();

  bool behind() const { return !parked_.empty(); }
  /// Runs once, inside the call that found the disk failed.
  void on_failure(std::function<void(const Error&)> failed) { failed_ = std::move(failed); }
  const Figures& figures() const { return figures_; }

 private:
  struct Batch;
  struct GroupJob;
  void begin_turn();
  void end_turn();
  void write_periodic();
  void write_parked();
  void write_group();
  void group_written(const std::shared_ptr<GroupJob>& job);
  void arm_sync();
  void start_sync();
  void complete(Batch& batch, const Result<void>& result);
  void take_failure(Error error);
  void run_settled();
  /// The batch is in RocksDB: reads see it.
  void see_written(const Batch& batch);
  Result<RecordFacts> look_at(const Mutation& mutation);

  const std::shared_ptr<RocksDatabase> database_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const uint32_t lane_;
  const StoreOptions options_;
  TablesKnown& tables_;
  const Logger logger_;
  const std::shared_ptr<bool> alive_;

  std::unique_ptr<Batch> current_;
  std::deque<std::unique_ptr<Batch>> parked_;
  std::shared_ptr<GroupJob> in_flight_;
  std::vector<base::Callback> settled_;  // of when_settled(), that wait
  SweepWatches watches_;
  DeadRuns dead_runs_;
  uint64_t next_number_ = 1;           // of a mutation, in the order of add()
  uint64_t written_through_ = 0;       // reads see all mutations up to this one
  std::vector<uint64_t> last_number_;  // by bucket: of its newest mutation
  uint64_t queued_bytes_ = 0;          // of parked and in-flight batches
  bool turn_begun_ = false;
  bool unsynced_ = false, syncing_ = false;
  base::Reactor::TimerId sync_timer_ = 0, retry_timer_ = 0;
  std::optional<Error> failure_;
  std::function<void(const Error&)> failed_;
  Figures figures_;

  Bytes key_;                       // scratch
  std::vector<RecordFacts> facts_;  // scratch: of the mutation's rows
};

}  // namespace tetrad::storage
