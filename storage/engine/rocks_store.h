// SPDX-License-Identifier: Apache-2.0
// RocksStore: Store over one RocksDB. Here is what its files share; nobody else includes it.
//
//   rocks_store.cc        what it takes and what it is: writes, maintenance, health, closing
//   rocks_store_read.cc   reads, registers, exports, what was written lately
//   rocks_store_sweep.cc  the steps of a sweep
//   rocks_store_index.cc  indexes
//   rocks_store_vectors.cc  searches for near vectors, and graphs of vectors
//   rocks_store_keep.cc   files for snapshots
//   rocks_store_open.cc   from a folder to a store
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <unordered_map>

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/guarded.h"
#include "base/recent_rate.h"
#include "storage/engine/auto_compaction.h"
#include "storage/engine/block_reads.h"
#include "storage/engine/failure_mark.h"
#include "storage/engine/kept_logs.h"
#include "storage/engine/latest_timestamp.h"
#include "storage/engine/log_chain.h"
#include "storage/engine/range_export.h"
#include "storage/engine/recent_keys.h"
#include "storage/engine/rocks_options.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/rocks_view.h"
#include "storage/engine/scrub.h"
#include "storage/engine/size_sampler.h"
#include "storage/engine/store.h"
#include "storage/engine/store_health.h"
#include "storage/engine/sweep.h"
#include "storage/engine/sync_records.h"
#include "storage/engine/table_summary.h"
#include "storage/engine/value_merge.h"
#include "storage/engine/write_turn.h"
#include "storage/index/nearest_reader.h"
#include "storage/index/store_graphs.h"

namespace tetrad::storage {

/// What every call for a dropped or truncated table gets: the coordinator has an old schema.
inline std::unexpected<Error> retired_error(TableIncarnation incarnation) {
  return fail(ErrorCode::kStaleSchema, "table incarnation {} is gone", incarnation.value);
}
inline std::unexpected<Error> closed_error() {
  return fail(ErrorCode::kCancelled, "the store is closed");
}

/// Compactions of all stores: one after another, so that the other threads of maintenance are free.
/// What deletes files of a store has a lane after it.
inline constexpr uint32_t kCompactionLane = 1;

/// A snapshot that a job carries; given back on whatever thread ends it.
class HeldSnapshot {
 public:
  explicit HeldSnapshot(std::shared_ptr<RocksDatabase> database)
      : database_(std::move(database)), snapshot_(database_->take_snapshot()) {}
  ~HeldSnapshot() { database_->give_back(snapshot_); }
  HeldSnapshot(const HeldSnapshot&) = delete;
  HeldSnapshot& operator=(const HeldSnapshot&) = delete;
  const rocksdb::Snapshot* get() const { return snapshot_; }
  RocksDatabase& database() const { return *database_; }

 private:
  const std::shared_ptr<RocksDatabase> database_;
  const rocksdb::Snapshot* const snapshot_;
};

/// What a store knows when it has been opened.
struct OpenedState {
  std::string directory;
  std::function<Result<std::shared_ptr<RocksDatabase>>(bool compacts)> open;
  std::shared_ptr<BackgroundErrors> background_errors;
  std::shared_ptr<RocksDatabase> database;
  std::shared_ptr<MergeReport> merges;
  std::shared_ptr<FilterState> filter;
  TablesKnown tables;
  IndexesKnown indexes;
  ViewRecords own_view_keys;  // for StoreViews::load()
  std::set<uint32_t> retired;
  SyncRecords records;
  std::optional<std::string> damage;  // of an earlier life
};

/// On the store's thread but for the work it hands to the I/O pool. That holds the database and a
/// snapshot, never the store: when it ends, `alive_` tells whether there still is one.
class RocksStore final : public Store, public AutoCompaction {
 public:
  RocksStore(OpenedState state, const StoreOptions& options, SharedResources shared, uint32_t lane,
             base::Reactor& reactor, base::IoPool& pool, Logger logger);
  ~RocksStore() override;
  /// Client writes: may be Put (rule 14).
  void apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    add(mutation, true, std::move(guard), std::move(done));
  }
  /// Streams, repairs, hints: always merged (rule 15).
  void apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    add(mutation, false, std::move(guard), std::move(done));
  }
  using Store::write_registers;
  void write_registers(const RegistersWrite& write, WriteGuard guard, base::Callback written,
                       ApplyCallback done) override;
  void read_registers(const PartitionName& partition, base::Deadline deadline,
                      RegistersCallback done) override;
  void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                      size_t partitions_max,
                      std::move_only_function<void(Result<RegistersPage>)> done) override;
  void latest_timestamp(ReadCommand command, base::Deadline deadline,
                        std::move_only_function<void(Result<int64_t>)> done) override;
  void read(ReadCommand command, base::Deadline deadline, ReadCallback done) override;
  std::optional<Result<ReadEnd>> read_here(const ReadCommand& command, RowSink& sink) override;
  uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) override;
  void sample_sizes(TableIncarnation incarnation, const RingRange& range, size_t count,
                    std::move_only_function<void(Result<std::vector<SizeSample>>)> done) override;
  void retire(TableIncarnation incarnation) override;
  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, ExportParts parts, ExportCallback done) override;
  const Recovered& recovered() const override { return state_.records.recovered(); }
  SyncNumbers sync_numbers() const override {
    return {recovered().life, turn_.log_end(), state_.records.durable()};
  }
  void sync(std::move_only_function<void(Result<void>)> done) override;
  void set_sync_clock(std::function<std::optional<int64_t>()> now_us) override;
  void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
              std::move_only_function<void(Result<RecentPage>)> done) override;
  void sweep(SweepCommand command, SweepPlace from,
             std::move_only_function<void(Result<SweepPage>)> done) override;
  void set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) override;
  bool is_built(TableIncarnation incarnation, uint16_t index_id) override;
  void build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                   std::move_only_function<void(Result<IndexBuildPage>)> done) override;
  void sweep_claims(ClaimSweepCommand command, Bytes after,
                    std::move_only_function<void(Result<ClaimSweepPage>)> done) override;
  StoreViews& views() override { return views_; }
  void set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) override;
  uint64_t dead_seen(TableIncarnation incarnation) override;
  void note_time(int64_t now_s) override;
  void flush(std::move_only_function<void(Result<void>)> done) override;
  void compact(std::vector<TableIncarnation> tables,
               std::move_only_function<void(Result<void>)> done) override;
  void set_auto_compaction(bool runs, std::move_only_function<void(Result<void>)> done) override;
  bool auto_compaction_runs() const override { return auto_compacts_ && !is_damaged(); }
  void keep_files(KeepCommand command,
                  std::move_only_function<void(Result<KeptFiles>)> done) override;
  void verify(std::move_only_function<void(Result<ScrubSummary>)> done) override;
  StoreStatistics statistics() override;
  const StoreStatus& status() const override { return health_.status(); }
  void on_status(StatusListener changed) override { status_changed_ = std::move(changed); }
  int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) override;
  Result<void> close() override;

 private:
  /// Asked for each time and never kept: health may open another database (reopening).
  rocksdb::DB& db() { return state_.database->db(); }
  bool is_retired(TableIncarnation incarnation) const;

  /// Set: nothing can be done at the moment, or any more.
  std::optional<Error> unusable() const;

  /// A read has failed. Its caller asks other replicas.
  void heed(const Error& error);
  /// What health and scrub may do to the store, as callbacks, so that they do not know it.
  StoreHealth::Actions health_actions();
  Scrub::Actions scrub_actions();
  /// RocksDB reports errors of its background threads there; they are heard on the loop.
  void listen_to(BackgroundErrors& errors);

  /// What a read that has needed a file hands to the reader that does it again.
  struct SecondAttempt {
    std::shared_ptr<HeldSnapshot> snapshot;
    uint64_t seen;     // the mutations in the snapshot, as WriteTurn numbers them
    DeadRunList dead;  // runs that are known of the partition
  };
  /// A read from its beginning, on a thread that may wait for the disk.
  void read_from_files(ReadCommand command, const TableContents& contents, SecondAttempt attempt,
                       base::Deadline deadline, ReadCallback done);

  /// Set: a read by this index must not be answered.
  std::optional<Error> lacks_index(const ReadCommand& command);
  /// By an index: claims are read first, then the rows that they name.
  void read_narrowed(ReadCommand command, base::Deadline deadline, ReadCallback done);
  /// By a graph where there is one, else by looking at all rows.
  void read_nearest(ReadCommand command, base::Deadline deadline, ReadCallback done);
  /// A page after another, each a job of its own.
  void scan_for_nearest(std::shared_ptr<NearestScan> scan, std::shared_ptr<HeldSnapshot> snapshot,
                        base::Deadline deadline, ReadCallback done);
  /// Null: there is none to make, `refused` says why if that is news.
  void begin_graph(const ReadCommand& command, std::shared_ptr<GraphInMaking> graph,
                   const std::optional<Error>& refused);
  /// From time to time, while there are graphs.
  void look_for_idle_graphs();
  /// Destroys it off the loop, if nobody else holds it.
  void let_go(std::shared_ptr<GraphInMaking> graph);
  /// Page by page; each page is a job on a maintenance thread.
  void add_rows_to_graph(GraphName name, std::shared_ptr<GraphInMaking> graph);
  /// Makes room for more vectors off the loop, then goes on with `then`.
  void grow_graph(std::shared_ptr<GraphInMaking> graph,
                  std::move_only_function<void(std::shared_ptr<GraphInMaking>)> then);
  /// It failed or has no room; searches read all rows again.
  void give_up_graph(std::shared_ptr<GraphInMaking> graph, const Error& error);
  /// Of a table with graphs, as WriteTurn takes it.
  void note_vectors(const Mutation& mutation);
  void add_noted_vectors();
  /// A page of an index build: read on a maintenance thread, its claims written in a turn, its
  /// place noted. Each step looks whether the store is still open.
  void read_build_page(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                       std::move_only_function<void(Result<IndexBuildPage>)> done);
  void write_build_page(TableIncarnation incarnation, uint16_t index_id, Bytes after,
                        BuiltClaims built,
                        std::move_only_function<void(Result<IndexBuildPage>)> done);
  void note_built(TableIncarnation incarnation, uint16_t index_id, IndexBuildPage page,
                  std::move_only_function<void(Result<IndexBuildPage>)> done);
  /// Deletes claims whose rows have other values, unless their bucket was written since `seen`.
  void drop_disproved(const ClaimSweepCommand& command, CheckedClaims checked, uint64_t seen,
                      std::move_only_function<void(Result<ClaimSweepPage>)> done);
  /// Whole files now, on a maintenance thread; the filter takes the rest.
  void delete_claims_of(const Bytes& key_of_index);
  void delete_claims(KeyRange keys);

  /// Rule 19. `seen`: the mutations that the read saw, as WriteTurn numbers them.
  void write_back(std::vector<MergedValue> values, uint64_t seen);
  /// Where a reading of what was written lately begins, or goes on behind `after`.
  Result<RecentPlace> recent_place(const RecentCommand& command, BytesView after) const;
  void read_recent(RecentCommand command, RecentPlace place, uint64_t bytes_max,
                   std::move_only_function<void(Result<RecentPage>)> done);

  /// One page of a sweep on its way. Shared by the steps' callbacks.
  struct SweepJob {
    SweepCommand command;
    SweepWatches::Id watch;
    bool goes_on;  // in a partition that was begun before
    Swept swept;
    int tries;
    std::move_only_function<void(Result<SweepPage>)> done;
  };
  using SweepJobPtr = std::shared_ptr<SweepJob>;
  /// The steps of a sweep's page (rocks_store_sweep.cc), in this order; each ends the job or goes
  /// on to the next.
  void read_page(const SweepJobPtr& job, SweepPlace from);
  /// Closes the watch and answers with the error.
  void end_sweep(const SweepJobPtr& job, Error error);
  void write_swept(const SweepJobPtr& job);

  /// The same page again: its partition's watch goes on.
  void put_off(const SweepJobPtr& job, Error overloaded);

  /// Nothing is on its way to RocksDB.
  void settle_swept(const SweepJobPtr& job);
  /// From memory only: what would need a file stays unset, and is warmed up first.
  Result<void> read_values_now(ValuesNow& values);

  /// Reads keys so that they are in memory.
  void warm_up(const SweepJobPtr& job, std::vector<Bytes> keys);
  /// Unset registers are empty ones.
  static Result<PaxosRegisters> registers_at(RocksView& view, BytesView key);
  void find_registers(Bytes key, base::Deadline deadline, RegistersCallback done);
  /// Reads that walk over the rows of one partition: only for them runs of dead rows count.
  static bool walks_rows(const ReadCommand& command) {
    return !command.is_range && command.rows.empty() && command.live_only;
  }
  static Bytes prefix_of(const ReadCommand& command);
  /// Runs that are known of the partition; null: none. Good until the next write.
  const DeadRunList* dead_runs_of(const ReadCommand& command);
  /// From now on writes of live rows to the partition are noted.
  void watch_dead(const ReadCommand& command);
  /// `seen`: the mutations that the read saw.
  void keep_dead(const ReadCommand& command, DeadRunList found, uint64_t seen);

  /// A view for a read on the loop.
  RocksViewOptions view_here(const ReadCommand& command, const rocksdb::Snapshot* snapshot,
                             const DeadRunList* dead);

  /// Another thread writes while this one reads: always in group mode, otherwise while RocksDB is
  /// behind.
  bool needs_snapshot(const ReadCommand& command, const TableContents& contents) const;

  /// What there may be of the partition that is read.
  TableContents contents_of(const ReadCommand& command) const;

  /// False: `done` has the reason.
  bool may_write(TableIncarnation incarnation, const WriteGuard& guard, ApplyCallback& done);
  void add(const Mutation& mutation, bool may_put, WriteGuard guard, ApplyCallback done);

  /// Runs `work` on a maintenance thread unless the store is closed before, then `done` on the
  /// loop.
  template <class T>
  void in_maintenance(uint32_t lane, std::move_only_function<Result<T>()> work,
                      std::move_only_function<void(Result<T>)> done) {
    const auto outcome = std::make_shared<Outcome<T>>();
    pool_.run(reactor_, base::IoDuty::kMaintenance, lane, visiting(outcome, std::move(work)),
              [outcome, done = std::move(done)]() mutable { done(std::move(outcome->result)); });
  }

  /// As in_maintenance(), on a reader; for reads that somebody waits for, which are what the figures
  /// of the block cache are of.
  template <class T>
  void in_readers(base::Deadline deadline, std::move_only_function<Result<T>()> work,
                  std::move_only_function<void(Result<T>)> done) {
    const auto outcome = std::make_shared<Outcome<T>>();
    pool_.read(reactor_, deadline, visiting(outcome, std::move(work)),
               [this, alive = alive_, outcome, done = std::move(done)](Result<void> began) mutable {
                 if (*alive) block_reads_ += outcome->blocks;
                 if (!began) return done(std::unexpected(std::move(began.error())));
                 done(std::move(outcome->result));
               });
  }

  /// Of work on another thread.
  template <class T>
  struct Outcome {
    Result<T> result = closed_error();
    BlockReads blocks;  // that it read
  };

  /// The work inside of a visit: closing the database waits for it, and afterwards it does not
  /// begin. What it throws becomes an error.
  template <class T>
  base::Callback visiting(std::shared_ptr<Outcome<T>> outcome,
                          std::move_only_function<Result<T>()> work) {
    return [database = state_.database, outcome = std::move(outcome),
            work = std::move(work)]() mutable {
      if (const RocksDatabase::Visit visit(*database); visit) {
        const BlockReads before = block_reads_here();
        outcome->result = base::guarded("work on the store's disk", work);
        outcome->blocks = block_reads_here() - before;
      }
      work = {};  // what it holds goes with this thread, inside the visit's time or after it
    };
  }
  /// Work on the database behind all that has been written so far, on a maintenance thread.
  void maintain(uint32_t lane, std::move_only_function<Result<void>(rocksdb::DB&)> work,
                std::move_only_function<void(Result<void>)> done);
  bool is_damaged() const { return health_.status().state == StoreState::kDamaged; }
  /// While compactions are off: whether it is time to begin them again.
  void watch_level0();
  /// Drops whole files of a retired table, in the store's lane after that of compactions.
  void delete_files_of(TableIncarnation incarnation);

  const StoreOptions options_;
  const SharedResources shared_;
  OpenedState state_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const uint32_t lane_;
  const Logger logger_;
  const std::shared_ptr<bool> alive_;
  bool closed_ = false;
  std::vector<TableIncarnation> retired_unsaved_;
  WriteTurn turn_;
  class ViewSide;
  const std::unique_ptr<ViewSide> view_side_;
  StoreViews views_;
  StoreGraphs graphs_;
  bool adds_noted_ = false;  // a job adds noted vectors
  uint64_t graph_searches_ = 0, vector_scans_ = 0;
  base::Reactor::TimerId graph_timer_ = 0;
  bool auto_compacts_ = true;  // as the operator has it
  base::Reactor::TimerId level0_timer_ = 0;
  RowCache row_cache_;
  BlockReads block_reads_;  // of clients' reads
  /// Over the last quarter of an hour.
  struct CacheRates {
    base::RecentRate hits, requests;
    void look(uint64_t hits_now, uint64_t misses_now, int64_t now_us);
  };
  CacheRates block_rates_, row_rates_;
  uint64_t corruptions_ = 0;
  StatusListener status_changed_;
  StoreHealth health_;
  Scrub scrub_;
};

}  // namespace tetrad::storage
