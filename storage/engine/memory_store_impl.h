// SPDX-License-Identifier: Apache-2.0
// The model store: the contract of Store over an ordered map, by the plainest means. Reads go
// through the same partition reader as RocksStore's, values are joined by the same merge. Reads and
// syncs are in memory_store.cc, writes in memory_store_write.cc, indexes and views in
// memory_store_index.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "storage/engine/memory_disk.h"
#include "storage/engine/memory_store.h"
#include "storage/engine/memory_turn.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/recent_keys.h"
#include "storage/engine/sweep.h"
#include "storage/engine/sync_records.h"
#include "storage/index/index_reader.h"
#include "storage/index/table_indexes.h"

namespace tetrad::storage {

/// One store of a MemoryDisk, whose area it has to itself. Belongs to the thread of its reactor,
/// which outlives it, as does the pool.
class MemoryStore final : public Store {
 public:
  MemoryStore(std::shared_ptr<MemoryDisk> disk, MemoryArea& area, const StoreOptions& options,
              base::Reactor& reactor, base::IoPool& pool);
  ~MemoryStore() override;

  void apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override;
  void apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override;
  /// apply() and apply_merged(): `merged` only matters to mutants, since the model joins all
  /// values.
  void take(const Mutation& mutation, bool merged, WriteGuard guard, ApplyCallback done);

  using Store::write_registers;
  void write_registers(const RegistersWrite& write, WriteGuard guard, base::Callback written,
                       ApplyCallback done) override;

  void read_registers(const PartitionName& partition, base::Deadline,
                      RegistersCallback done) override;
  void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                      size_t partitions_max,
                      std::move_only_function<void(Result<RegistersPage>)> done) override;

  void latest_timestamp(ReadCommand command, base::Deadline,
                        std::move_only_function<void(Result<int64_t>)> done) override;

  /// Answered inside the call: there is no file to wait for, and no deadline is missed.
  void read(ReadCommand command, base::Deadline, ReadCallback done) override;

  std::optional<Result<ReadEnd>> read_here(const ReadCommand& command, RowSink& sink) override;

  uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) override;

  void sample_sizes(TableIncarnation incarnation, const RingRange& range, size_t count,
                    std::move_only_function<void(Result<std::vector<SizeSample>>)> done) override;

  void retire(TableIncarnation incarnation) override;

  void set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) override;
  StoreViews& views() override { return views_; }
  void set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) override;
  bool is_built(TableIncarnation incarnation, uint16_t index_id) override;

  void build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                   std::move_only_function<void(Result<IndexBuildPage>)> done) override;

  void sweep_claims(ClaimSweepCommand command, Bytes after,
                    std::move_only_function<void(Result<ClaimSweepPage>)> done) override;

  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, ExportParts parts, ExportCallback done) override;

  void sweep(SweepCommand command, SweepPlace from,
             std::move_only_function<void(Result<SweepPage>)> done) override;

  const Recovered& recovered() const override { return records_.recovered(); }
  SyncNumbers sync_numbers() const override;
  void sync(std::move_only_function<void(Result<void>)> done) override;
  void set_sync_clock(std::function<std::optional<int64_t>()> now_us) override;

  void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
              std::move_only_function<void(Result<RecentPage>)> done) override;

  uint64_t dead_seen(TableIncarnation) override { return dead_seen_; }
  void note_time(int64_t) override {}  // it compacts nothing

  void flush(std::move_only_function<void(Result<void>)> done) override;
  using Store::compact;
  void compact(std::vector<TableIncarnation>,
               std::move_only_function<void(Result<void>)> done) override;

  void keep_files(KeepCommand, std::move_only_function<void(Result<KeptFiles>)> done) override;

  /// Nothing to read: what is in the map is whole.
  void verify(std::move_only_function<void(Result<ScrubSummary>)> done) override;
  StoreStatistics statistics() override;

  const StoreStatus& status() const override { return status_; }
  void on_status(StatusListener) override {}  // it serves to its end

  int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) override;

  Result<void> close() override;

 private:
  static std::unexpected<Error> retired_error(TableIncarnation incarnation) {
    return fail(ErrorCode::kStaleSchema, "table incarnation {} is gone", incarnation.value);
  }

  /// What StoreViews needs of it. Reads are done in a later event, as RocksStore's may be.
  class ViewSide final : public ViewBackend {
   public:
    explicit ViewSide(MemoryStore& store) : store_(store) {}
    TableContents contents_of(const ReadCommand&) const override { return {}; }
    void read(base::Deadline, std::function<Result<void>(KeyView&)> work,
              std::move_only_function<void(Result<void>)> done) override;
    void write(const ViewRecords& puts, const std::vector<Bytes>& erased,
               std::move_only_function<void(Result<void>)> done) override;
    void sync(std::move_only_function<void(Result<void>)> done) override;
    void when_written(base::Callback then) override;
    uint64_t seen_number() const override { return store_.committed_number_; }
    uint64_t last_number(uint16_t bucket) const override;
    int64_t wall_time_us() const override { return store_.reactor_.wall_time_us(); }

   private:
    MemoryStore& store_;
  };

  /// Adds to `batch` that the claims go whose keys begin so.
  void erase_claims(BytesView prefix, std::vector<MemoryArea::Operation>& batch);
  /// Errors: kIndexNotBuilt, as RocksStore's.
  Result<ReadResult> read_narrowed(const ReadCommand& command);
  Result<ReadResult> read_nearest(ReadCommand command);
  /// The second half of build_index(). Errors: kConflict when the build went on from elsewhere.
  Result<IndexBuildPage> write_built(TableIncarnation incarnation, uint16_t index_id,
                                     const Bytes& after, BuiltClaims& built);
  Result<ClaimSweepPage> drop_disproved(const ClaimSweepCommand& command, CheckedClaims checked,
                                        uint64_t seen);

  /// False: `done` has the reason. It is written in this turn: no need to ask the guard again.
  bool may_write(TableIncarnation incarnation, const WriteGuard& guard, ApplyCallback& done);
  /// Until `done` runs a write of these registers has not ended.
  ApplyCallback while_under_way(Bytes key, ApplyCallback done);
  /// As far as this write is concerned the next one of the registers may come.
  void let_pass(const Bytes& key, uint64_t number);
  /// Empty registers where there are none.
  Result<PaxosRegisters> registers_at(BytesView key) const;

  Result<SweepPage> write_swept(Result<Swept>& swept, const SweepCommand& command,
                                SweepWatches::Id watch);
  Result<RecentPage> read_recent(RecentCommand command, BytesView after, uint64_t bytes_max) const;
  /// All that was written so far survives a power cut; parts of the log that no sync record needs
  /// go.
  void sync_area();
  /// As RocksStore's.
  void keep_records();
  void add_record(std::vector<MemoryArea::Operation>& batch);

  bool is_retired(TableIncarnation incarnation) const;
  /// Into this turn's batch, or kOverloaded. Marks, watches and claims see it at once.
  void queue(WaitingWrite waiting, WriteGuard guard, ApplyCallback done);
  /// By the indexes that are known when it is applied.
  void claim(const Mutation& m, WaitingWrite& waiting);
  /// For sweeps under way: which keys are written, and the oldest timestamp.
  void note(const Mutation& m);

  /// What the store's I/O pool would do: a later event.
  void later(base::Callback work);
  /// The marks answer high_water_timestamp(); nothing is Put by them here.
  void raise_mark(const Mutation& mutation);
  /// Writes what waits as one batch and answers it. Also at the beginning of whatever must see it.
  void commit();
  /// A known mistake: claims in a batch of their own.
  void write_claims_late();
  /// All that ask in one turn share a sync.
  void when_synced(ApplyCallback done);
  /// A known mistake: the registers of commits go in a batch of their own, before their rows.
  void tear();
  void arm_sync();

  const std::shared_ptr<MemoryDisk> disk_;
  MemoryArea& area_;
  const StoreOptions options_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const std::shared_ptr<bool> alive_;
  std::set<uint32_t> retired_;
  IndexesKnown indexes_;
  ViewSide view_side_;
  StoreViews views_;
  /// Numbers of mutations, as WriteTurn's: reads see all up to committed_number_.
  uint64_t write_number_ = 0, committed_number_ = 0;
  std::unordered_map<uint16_t, uint64_t> last_number_;  // by bucket: of its newest write
  std::vector<WaitingWrite> waiting_;
  std::vector<ApplyCallback> sync_waiting_;
  /// Keys of registers whose writes have not ended. Of several, only the last bars the next one.
  std::multiset<Bytes> registers_under_way_;
  std::map<Bytes, uint64_t> registers_barred_;  // the write that bars the next
  uint64_t last_registers_ = 0;
  uint64_t queued_bytes_ = 0;
  uint64_t dead_seen_ = 1;  // who knows what was written before
  SweepWatches watches_;
  SyncRecords records_;
  base::Reactor::TimerId sync_timer_ = 0, record_timer_ = 0;
  bool closed_ = false;
  const StoreStatus status_;
};

}  // namespace tetrad::storage
