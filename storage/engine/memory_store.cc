// SPDX-License-Identifier: Apache-2.0
// The model store: the contract of Store over an ordered map, by the plainest means. Reads go
// through the same partition reader as RocksStore's, values are joined by the same merge.
#include "storage/engine/memory_store.h"

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/hash.h"
#include "storage/engine/latest_timestamp.h"
#include "storage/engine/map_view.h"
#include "storage/engine/memory_disk.h"
#include "storage/engine/memory_turn.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/range_export.h"
#include "storage/engine/recent_keys.h"
#include "storage/engine/sweep.h"
#include "storage/engine/sync_records.h"
#include "storage/engine/table_marks.h"
#include "storage/engine/value_merge.h"
#include "storage/index/index_reader.h"
#include "storage/index/nearest_reader.h"
#include "storage/index/table_indexes.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kIdleRecordUs = 60'000'000, kFirstRecordUs = 1'000'000;

std::unexpected<Error> retired_error(TableIncarnation incarnation) {
  return fail(ErrorCode::kStaleSchema, "table incarnation {} is gone", incarnation.value);
}

Bytes retired_key(TableIncarnation incarnation) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw("retired");
  w.u32(incarnation.value);
  return key;
}

class MemoryStore final : public Store {
 public:
  MemoryStore(std::shared_ptr<MemoryDisk> disk, MemoryArea& area, const StoreOptions& options,
              base::Reactor& reactor, base::IoPool& pool)
      : disk_(std::move(disk)),
        area_(area),
        options_(options),
        reactor_(reactor),
        pool_(pool),
        alive_(std::make_shared<bool>(true)),
        view_side_(*this),
        views_(view_side_, alive_) {
    const Bytes first = retired_key({0});
    const BytesView prefix = BytesView(first).substr(0, first.size() - 4);
    for (auto it = area_.data.lower_bound(prefix);
         it != area_.data.end() && it->first.starts_with(prefix); ++it)
      retired_.insert(base::load_big_endian<uint32_t>(it->first.data() + prefix.size()));
    area_.keeps_log = true;
    Bytes own;
    base::ByteWriter(own).u32(kStoreIncarnation.value);
    for (auto it = area_.data.lower_bound(own); it != area_.data.end(); ++it) {
      const Result<void> loaded = records_.load(it->first, it->second);
      TETRAD_ASSERT(loaded.has_value());
      indexes_.load(it->first, it->second);
      if (StoreViews::is_own_key(it->first)) views_.load(it->first, it->second);
    }
    records_.begin_life(area_.log_end(), area_.hole.value_or(area_.log_end()));
    area_.hole.reset();
    area_.data.insert_or_assign(records_.life_entry().first, records_.life_entry().second);
    views_.begin_life(recovered().life);
  }

  ~MemoryStore() override {
    *alive_ = false;
    if (sync_timer_ != 0) reactor_.cancel(sync_timer_);
    if (record_timer_ != 0) reactor_.cancel(record_timer_);
  }

  void apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    if (!mutation.registers.empty())
      return done(fail(ErrorCode::kInvalid, "Paxos registers come in streams only"));
    take(mutation, false, std::move(guard), std::move(done));
  }
  void apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    take(mutation, true, std::move(guard), std::move(done));
  }
  void take(const Mutation& mutation, bool merged, WriteGuard guard, ApplyCallback done) {
    if (!may_write(mutation.incarnation, guard, done)) return;
    if (auto checked = check_mutation(mutation); !checked) return done(std::move(checked));
    WaitingWrite waiting;
    waiting.mutation = mutation;
    waiting.merged = merged;
    if (!mutation.registers.empty()) {
      auto imported = decode_imported(mutation);
      if (!imported) return done(std::unexpected(std::move(imported.error())));
      waiting.committed = std::move(imported->committed);
      waiting.synced = true;
      done = while_under_way(
          registers_key({mutation.incarnation, mutation.position, mutation.partition_key}),
          std::move(done));
    }
    queue(std::move(waiting), std::move(guard), std::move(done));
  }

  using Store::write_registers;
  void write_registers(const RegistersWrite& write, WriteGuard guard, base::Callback written,
                       ApplyCallback done) override {
    const PartitionName& partition = write.partition;
    if (!may_write(partition.incarnation, guard, done)) return;
    if (auto checked = check_registers_write(write); !checked) return done(std::move(checked));
    Bytes key = registers_key(partition);
    if (registers_barred_.contains(key))
      return done(fail(ErrorCode::kOverloaded,
                       "another write of the partition's Paxos registers is under way"));
    WaitingWrite waiting;
    if (write.rows != nullptr) {
      if (auto checked = check_mutation(*write.rows); !checked) return done(std::move(checked));
      waiting.mutation = *write.rows;
    } else {
      waiting.mutation.incarnation = partition.incarnation;
      waiting.mutation.position = partition.position;
      waiting.mutation.partition_key = Bytes(partition.partition_key);
    }
    encode_registers(write.registers, waiting.mutation.registers);
    waiting.puts_registers = true;
    waiting.synced = write.synced && !TETRAD_MUTANT(registers_unsynced);
    if (waiting.synced && written != nullptr) {
      waiting.written = [this, key, number = last_registers_ + 1,
                         written = std::move(written)]() mutable {
        let_pass(key, number);
        written();
      };
    }
    done = while_under_way(std::move(key), std::move(done));
    queue(std::move(waiting), std::move(guard), std::move(done));
  }

  void read_registers(const PartitionName& partition, base::Deadline,
                      RegistersCallback done) override {
    if (is_retired(partition.incarnation)) return done(retired_error(partition.incarnation));
    if (auto checked = check_partition(partition); !checked)
      return done(std::unexpected(std::move(checked.error())));
    Bytes key = registers_key(partition);
    if (!registers_under_way_.contains(key)) return done(registers_at(key));
    later([this, incarnation = partition.incarnation, key = std::move(key),
           done = std::move(done)]() mutable {
      commit();
      sync_area();
      if (is_retired(incarnation)) return done(retired_error(incarnation));
      done(registers_at(key));
    });
  }

  void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                      size_t partitions_max,
                      std::move_only_function<void(Result<RegistersPage>)> done) override {
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    later([this, incarnation, range, after = std::move(after), partitions_max,
           done = std::move(done)]() mutable {
      commit();
      MapView view(area_.data);
      done(registers_page(view, incarnation, range, after, partitions_max));
    });
  }

  void latest_timestamp(ReadCommand command, base::Deadline,
                        std::move_only_function<void(Result<int64_t>)> done) override {
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    MapView view(area_.data);
    done(latest_timestamp_of(view, command));
  }

  void read(ReadCommand command, base::Deadline, ReadCallback done) override {
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    if (command.by_index) return done(read_narrowed(command));
    if (command.nearest) return done(read_nearest(std::move(command)));
    MapView view(area_.data);
    done(read_partitions(view, command, TableContents{}, options_.read_keys_max));
  }

  std::optional<Result<ReadEnd>> read_here(const ReadCommand& command, RowSink& sink) override {
    if (is_retired(command.incarnation)) return retired_error(command.incarnation);
    if (command.by_index || command.nearest) return std::nullopt;
    MapView view(area_.data);
    return read_partitions_into(view, command, TableContents{}, sink, options_.read_keys_max);
  }

  uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) override {
    MapView view(area_.data);
    uint64_t bytes = 0;
    if (const auto samples = scan_sizes(view, incarnation, range, 1))
      for (const SizeSample& sample : *samples) bytes += sample.bytes;
    return bytes;
  }

  void sample_sizes(TableIncarnation incarnation, const RingRange& range, size_t count,
                    std::move_only_function<void(Result<std::vector<SizeSample>>)> done) override {
    later([this, incarnation, range, count, done = std::move(done)]() mutable {
      MapView view(area_.data);
      done(scan_sizes(view, incarnation, range, count));
    });
  }

  void retire(TableIncarnation incarnation) override {
    if (is_retired(incarnation) || incarnation == kStoreIncarnation) return;
    commit();
    retired_.insert(incarnation.value);
    std::vector<MemoryArea::Operation> batch;
    batch.emplace_back(retired_key(incarnation), Bytes());
    const KeyRange keys = keys_of_incarnation(incarnation);
    for (auto it = area_.data.lower_bound(keys.start);
         it != area_.data.end() && it->first < keys.end; ++it)
      batch.emplace_back(it->first, std::nullopt);
    for (Bytes& key : indexes_.erase(incarnation)) batch.emplace_back(std::move(key), std::nullopt);
    for (Bytes& key : views_.erase(incarnation).erased)
      batch.emplace_back(std::move(key), std::nullopt);
    erase_claims(claims_of_table(incarnation), batch);
    erase_claims(view_tasks_of_table(incarnation), batch);
    area_.write(std::move(batch));
    arm_sync();
  }

  void set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) override {
    if (closed_ || is_retired(incarnation)) return;
    commit();
    std::vector<MemoryArea::Operation> batch;
    for (Bytes& key : indexes_.set(incarnation, std::move(maker))) {
      erase_claims(claims_of_index_key(key), batch);
      batch.emplace_back(std::move(key), std::nullopt);
    }
    if (!batch.empty()) area_.write(std::move(batch));
    arm_sync();
  }
  StoreViews& views() override { return views_; }
  void set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) override {
    if (closed_ || is_retired(base)) return;
    commit();
    std::vector<MemoryArea::Operation> batch;
    StoreViews::Changed changed = views_.set(base, std::move(makers), next);
    if (changed.none_left) erase_claims(view_tasks_of_table(base), batch);
    for (auto& [key, value] : changed.puts) batch.emplace_back(std::move(key), std::move(value));
    for (Bytes& key : changed.erased) batch.emplace_back(std::move(key), std::nullopt);
    if (!batch.empty()) area_.write(std::move(batch));
    arm_sync();
  }
  bool is_built(TableIncarnation incarnation, uint16_t index_id) override {
    const TableIndexes* table = indexes_.find(incarnation);
    return table != nullptr && table->knows(index_id) && table->is_built(index_id);
  }

  void build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                   std::move_only_function<void(Result<IndexBuildPage>)> done) override {
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    // Read in one event, written in a later one, as RocksStore's.
    later([this, incarnation, index_id, bytes_max, done = std::move(done)]() mutable {
      if (!TETRAD_MUTANT(build_without_barrier)) commit();
      const TableIndexes* table = indexes_.find(incarnation);
      if (table == nullptr || !table->knows(index_id))
        return done(fail(ErrorCode::kNotFound, "no index {} is known", index_id));
      const auto build = table->builds.find(index_id);
      const Bytes after = build == table->builds.end() ? Bytes() : build->second.after;
      if (build != table->builds.end() && build->second.built) {
        IndexBuildPage page;
        page.built = true;
        return done(page);
      }
      MapView rows(area_.data);
      auto built = std::make_shared<Result<BuiltClaims>>(
          claims_of_rows(rows, incarnation, *table->maker, index_id, after, bytes_max));
      later([this, incarnation, index_id, after, built, done = std::move(done)]() mutable {
        if (!*built) return done(std::unexpected((*built).error()));
        done(write_built(incarnation, index_id, after, **built));
      });
    });
  }

  void sweep_claims(ClaimSweepCommand command, Bytes after,
                    std::move_only_function<void(Result<ClaimSweepPage>)> done) override {
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    later([this, command = std::move(command), after = std::move(after),
           done = std::move(done)]() mutable {
      commit();
      const TableIndexes* table = indexes_.find(command.incarnation);
      if (table == nullptr || !table->knows(command.index_id))
        return done(fail(ErrorCode::kNotFound, "the index is gone"));
      const uint64_t seen = write_number_;
      const int64_t now_s = TETRAD_MUTANT(claim_expires_by_clock)
                                ? reactor_.wall_time_us() / 1'000'000
                                : kBeforeAllTime_s;
      MapView rows(area_.data);
      auto checked = std::make_shared<Result<CheckedClaims>>(
          check_claims(rows, rows, *table->maker, command, after, now_s));
      later([this, checked, seen, command = std::move(command), done = std::move(done)]() mutable {
        if (!*checked) return done(std::unexpected((*checked).error()));
        done(drop_disproved(command, std::move(**checked), seen));
      });
    });
  }

  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, ExportParts parts, ExportCallback done) override {
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    later([this, incarnation, range, after = std::move(after), bytes_max, parts,
           done = std::move(done)]() mutable {
      MapView view(area_.data);
      done(export_page(view, incarnation, {area_.schema_version}, range, after, bytes_max, parts));
    });
  }

  void sweep(SweepCommand command, SweepPlace from,
             std::move_only_function<void(Result<SweepPage>)> done) override {
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    const bool is_watched = from.inside && watches_.begin_page(from.watch);
    if (!is_watched) {
      from.watch = watches_.open(watched_below_us(command.bound));
      from.undisturbed = false;
    }
    // Read in one event, written in a later one, as RocksStore's.
    later([this, command = std::move(command), from = std::move(from),
           done = std::move(done)]() mutable {
      commit();
      MapView view(area_.data);
      auto swept = std::make_shared<Result<Swept>>(sweep_page(view, command, from));
      later([this, swept, command = std::move(command), watch = from.watch,
             done = std::move(done)]() mutable {
        Result<SweepPage> page = write_swept(*swept, command, watch);
        if (!page || page->next.watch == 0) watches_.close(watch);
        done(std::move(page));
      });
    });
  }

  const Recovered& recovered() const override { return records_.recovered(); }
  SyncNumbers sync_numbers() const override {
    return {recovered().life, area_.log_end(), records_.durable()};
  }
  void sync(std::move_only_function<void(Result<void>)> done) override {
    later([this, done = std::move(done)]() mutable {
      commit();
      sync_area();
      done({});
    });
  }
  void set_sync_clock(std::function<std::optional<int64_t>()> now_us) override {
    records_.set_clock(std::move(now_us));
    if (!closed_ && record_timer_ == 0) keep_records();
  }

  void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
              std::move_only_function<void(Result<RecentPage>)> done) override {
    later([this, command = std::move(command), after = std::move(after), bytes_max,
           done = std::move(done)]() mutable {
      commit();
      done(read_recent(std::move(command), after, bytes_max));
    });
  }

  uint64_t dead_seen(TableIncarnation) override { return dead_seen_; }

  void note_time(int64_t) override {}  // it compacts nothing

  void flush(std::move_only_function<void(Result<void>)> done) override {
    later([this, done = std::move(done)]() mutable {
      commit();
      sync_area();
      done({});
    });
  }
  using Store::compact;
  void compact(std::vector<TableIncarnation>,
               std::move_only_function<void(Result<void>)> done) override {
    later([done = std::move(done)]() mutable { done({}); });
  }

  void keep_files(KeepCommand, std::move_only_function<void(Result<KeptFiles>)> done) override {
    later([done = std::move(done)]() mutable { done(KeptFiles()); });  // it has none
  }

  void verify(std::move_only_function<void(Result<ScrubSummary>)> done) override {
    done(ScrubSummary());  // it has no files
  }
  StoreStatistics statistics() override {
    StoreStatistics statistics;
    statistics.estimated_keys = area_.data.size();
    for (const auto& [key, value] : area_.data)
      statistics.memtable_bytes += key.size() + value.size();
    return statistics;
  }

  const StoreStatus& status() const override { return status_; }
  void on_status(StatusListener) override {}  // it serves to its end

  int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) override {
    const auto mark = area_.marks.find(bucket_of(incarnation, position));
    return mark == area_.marks.end() ? kNoTimestamp : mark->second;
  }

  Result<void> close() override {
    commit();
    sync_area();
    closed_ = true;
    return {};
  }

 private:
  /// What StoreViews needs of it. Reads are done in a later event, as RocksStore's may be.
  class ViewSide final : public ViewBackend {
   public:
    explicit ViewSide(MemoryStore& store) : store_(store) {}
    void read(base::Deadline, std::function<Result<void>(KeyView&)> work,
              std::move_only_function<void(Result<void>)> done) override {
      if (store_.closed_) return done(fail(ErrorCode::kCancelled, "the store is closed"));
      MapView view(store_.area_.data);
      const auto read = std::make_shared<Result<void>>(work(view));
      store_.later([read, done = std::move(done)]() mutable { done(std::move(*read)); });
    }
    void write(const ViewRecords& puts, const std::vector<Bytes>& erased,
               std::move_only_function<void(Result<void>)> done) override {
      if (store_.closed_) return done(fail(ErrorCode::kCancelled, "the store is closed"));
      store_.commit();
      std::vector<MemoryArea::Operation> batch;
      for (const auto& [key, value] : puts) batch.emplace_back(key, value);
      for (const Bytes& key : erased) batch.emplace_back(key, std::nullopt);
      if (!batch.empty()) store_.area_.write(std::move(batch));
      store_.arm_sync();
      done({});
    }
    void sync(std::move_only_function<void(Result<void>)> done) override {
      store_.sync(std::move(done));
    }
    void when_written(base::Callback then) override {
      store_.commit();
      then();
    }
    uint64_t seen_number() const override { return store_.committed_number_; }
    uint64_t last_number(uint16_t bucket) const override {
      const auto last = store_.last_number_.find(bucket);
      return last == store_.last_number_.end() ? 0 : last->second;
    }
    int64_t wall_time_us() const override { return store_.reactor_.wall_time_us(); }

   private:
    MemoryStore& store_;
  };

  /// Adds to `batch` that the claims go whose keys begin so.
  void erase_claims(BytesView prefix, std::vector<MemoryArea::Operation>& batch) {
    for (auto it = area_.data.lower_bound(prefix);
         it != area_.data.end() && it->first.starts_with(prefix); ++it)
      batch.emplace_back(it->first, std::nullopt);
  }

  Result<ReadResult> read_narrowed(const ReadCommand& command) {
    const uint16_t index_id = command.by_index->index_id;
    const TableIndexes* table = indexes_.find(command.incarnation);
    if (table == nullptr || !table->knows(index_id) ||
        (!table->is_built(index_id) && !TETRAD_MUTANT(unbuilt_answers)))
      return fail(ErrorCode::kIndexNotBuilt, "the index is not built here yet");
    MapView rows(area_.data);
    IndexReadLimits limits;
    limits.places_max = std::min(limits.places_max, options_.read_keys_max);
    limits.keys_max = options_.read_keys_max;
    const auto contents_of = [](const ReadCommand&) { return TableContents{}; };
    return read_by_index({rows, *table->maker, contents_of}, command, limits);
  }

  Result<ReadResult> read_nearest(ReadCommand command) {
    MapView rows(area_.data);
    NearestScan scan(std::move(command));
    while (!scan.is_done)
      TETRAD_TRY_VOID(scan_nearest(rows, TableContents{}, options_.read_keys_max, scan));
    return scan.places.take(true);
  }

  Result<IndexBuildPage> write_built(TableIncarnation incarnation, uint16_t index_id,
                                     const Bytes& after, BuiltClaims& built) {
    if (closed_) return fail(ErrorCode::kCancelled, "the store is closed");
    commit();
    TableIndexes* table = indexes_.find(incarnation);
    if (is_retired(incarnation) || table == nullptr || !table->knows(index_id))
      return fail(ErrorCode::kNotFound, "the index is gone");
    IndexBuild& build = table->builds[index_id];
    if (build.after != after) return fail(ErrorCode::kConflict, "the build has begun anew");
    build = {built.exhausted, built.next};
    IndexBuildPage page;
    page.built = built.exhausted;
    page.claims = built.claims.size();
    page.position = built.position;
    std::vector<MemoryArea::Operation> batch;
    for (auto& [key, value] : built.claims) batch.emplace_back(std::move(key), std::move(value));
    batch.emplace_back(index_key(incarnation, index_id), index_value(build));
    area_.write(std::move(batch));
    arm_sync();
    return page;
  }

  Result<ClaimSweepPage> drop_disproved(const ClaimSweepCommand& command, CheckedClaims checked,
                                        uint64_t seen) {
    if (closed_) return fail(ErrorCode::kCancelled, "the store is closed");
    commit();
    std::vector<MemoryArea::Operation> batch;
    for (DisprovedClaim& claim : checked.disproved) {
      const uint64_t number = last_number_[bucket_of(command.incarnation, claim.position)];
      if (number > seen && !TETRAD_MUTANT(claim_gone_unwatched)) continue;
      if (command.may_drop && !command.may_drop(claim.position, base::xxh3_64(claim.key), number))
        continue;
      batch.emplace_back(std::move(claim.key), std::nullopt);
    }
    checked.page.dropped = batch.size();
    if (!batch.empty()) {
      area_.write(std::move(batch));
      arm_sync();
    }
    return std::move(checked.page);
  }

  /// False: `done` was told why not. It is written in this turn: no need to ask the guard again.
  bool may_write(TableIncarnation incarnation, const WriteGuard& guard, ApplyCallback& done) {
    std::optional<Error> error;
    if (closed_) {
      error.emplace(ErrorCode::kCancelled, "the store is closed");
    } else if (is_retired(incarnation)) {
      error = retired_error(incarnation).error();
    } else {
      error = refusal_of(guard, reactor_.now_us());
    }
    if (!error) return true;
    done(std::unexpected(std::move(*error)));
    return false;
  }

  /// Until `done` runs a write of these registers has not ended.
  ApplyCallback while_under_way(Bytes key, ApplyCallback done) {
    const uint64_t number = ++last_registers_;
    registers_under_way_.insert(key);
    registers_barred_.insert_or_assign(key, number);
    return [this, alive = alive_, number, key = std::move(key),
            done = std::move(done)](Result<void> result) mutable {
      if (*alive) {
        registers_under_way_.erase(registers_under_way_.find(key));
        let_pass(key, number);
      }
      done(std::move(result));
    };
  }
  /// As far as this write is concerned the next one of the registers may come.
  void let_pass(const Bytes& key, uint64_t number) {
    const auto barred = registers_barred_.find(key);
    if (barred != registers_barred_.end() && barred->second == number)
      registers_barred_.erase(barred);
  }

  Result<PaxosRegisters> registers_at(BytesView key) const {
    const auto found = area_.data.find(key);
    if (found == area_.data.end()) return PaxosRegisters();
    return decode_registers(found->second);
  }

  Result<SweepPage> write_swept(Result<Swept>& swept, const SweepCommand& command,
                                SweepWatches::Id watch) {
    if (!swept) return std::unexpected(swept.error());
    if (is_retired(command.incarnation)) return retired_error(command.incarnation);
    if (closed_) return fail(ErrorCode::kCancelled, "the store is closed");
    commit();
    const auto read_now = [this](ValuesNow& values) -> Result<void> {
      for (auto& [key, value] : values) {
        value.emplace();
        if (const auto found = area_.data.find(key); found != area_.data.end())
          value->emplace(found->second);
      }
      return {};
    };
    TETRAD_TRY(const auto cold, settle_page(*swept, command, watches_, watch, read_now, true));
    TETRAD_ASSERT(cold.empty());
    bool uncovers = false;
    std::vector<MemoryArea::Operation> batch;
    for (SweptKey& change : swept->changes) {
      uncovers |= change.uncovers_us != kNoTimestamp;
      watches_.note_key(change.key);
      if (const auto place = decode_storage_key(change.key))
        last_number_[bucket_of(place->incarnation, place->position)] = ++write_number_;
      batch.emplace_back(std::move(change.key), std::move(change.value));
    }
    if (uncovers) watches_.note_covers_gone(watch);
    SweepPage page = std::move(swept->page);
    page.next.watch = page.next.inside && !page.exhausted ? watch : 0;
    if (!batch.empty()) {
      area_.write(std::move(batch));
      arm_sync();
    }
    return page;
  }

  Result<RecentPage> read_recent(RecentCommand command, BytesView after, uint64_t bytes_max) const {
    RecentPlace place;
    if (!after.empty()) {
      TETRAD_TRY(place, RecentPlace::decode(after, recovered().life));
    } else if (const auto window = records_.window(command.since_us, command.until_us)) {
      place = {recovered().life, window->from, 0, std::min(window->until, area_.log_end()), {}};
    }
    if (place.from < area_.log_start)
      return fail(ErrorCode::kNotFound, "the log begins after {} us", command.since_us);
    std::erase_if(command.ranges, [&](const auto& table) { return is_retired(table.first); });
    RecentKeys keys(command);
    uint64_t end = place.from;
    for (; end < place.stop() && !keys.is_full(); ++end) keys.see(area_.log[end - area_.log_start]);
    MapView view(area_.data);
    return recent_page(view, place, keys, end, bytes_max,
                       [&](TableIncarnation) { return SchemaVersion{area_.schema_version}; });
  }

  void sync_area() {
    const auto begun = records_.begin(area_.log_end());
    area_.sync();
    records_.end(begun, begun.number);
    for (; area_.log_start < records_.oldest_number() && !area_.log.empty(); ++area_.log_start)
      area_.log.pop_front();
  }

  /// As RocksStore's.
  void keep_records() {
    const int64_t every_us = records_.has_written() ? kIdleRecordUs : kFirstRecordUs;
    record_timer_ = reactor_.call_at(reactor_.now_us() + every_us, [this] { keep_records(); });
    if (closed_ || !waiting_.empty()) return;
    sync_area();
    std::vector<MemoryArea::Operation> batch;
    add_record(batch);
    if (batch.empty()) return;
    area_.write(std::move(batch));
    arm_sync();
  }

  void add_record(std::vector<MemoryArea::Operation>& batch) {
    if (TETRAD_MUTANT(sync_record_early)) records_.end(records_.begin(area_.log_end()), 0);
    if (!records_.is_due()) return;
    auto [key, value] = records_.take_due();
    batch.emplace_back(std::move(key), std::move(value));
  }

  bool is_retired(TableIncarnation incarnation) const {
    return retired_.contains(incarnation.value);
  }

  void queue(WaitingWrite waiting, WriteGuard guard, ApplyCallback done) {
    if (queued_bytes_ > options_.write_queue_max_bytes)
      return done(fail(ErrorCode::kOverloaded, "{} bytes of writes wait for the disk, at most {}",
                       queued_bytes_, options_.write_queue_max_bytes));
    for (const Mutation* m :
         {&waiting.mutation, waiting.committed ? &*waiting.committed : nullptr}) {
      if (m == nullptr) continue;
      raise_mark(*m);
      if (watches_.any()) note(*m);
      last_number_[bucket_of(m->incarnation, m->position)] = ++write_number_;
      claim(*m, waiting);
      if (!waiting.merged || !TETRAD_MUTANT(view_tasks_not_of_merged))
        views_.make_tasks(*m, waiting.view_tasks);
      queued_bytes_ += m->size_bytes();
    }
    waiting.pass = std::move(guard.pass);
    waiting.done = std::move(done);
    waiting_.push_back(std::move(waiting));
    if (waiting_.size() > 1) return;
    reactor_.at_turn_end([this, alive = alive_] {
      if (*alive) commit();
    });
  }

  /// By the indexes that are known when it is applied.
  void claim(const Mutation& m, WaitingWrite& waiting) {
    TableIndexes* table = indexes_.find(m.incarnation);
    if (table == nullptr) return;
    for (Bytes& key : forget_unknown_builds(m.incarnation, *table))
      waiting.forgotten.push_back(std::move(key));
    const bool is_put = std::ranges::all_of(m.rows, [](const auto& row) { return row.complete; });
    if (table->maker == nullptr || (waiting.merged && TETRAD_MUTANT(claims_not_of_merged)) ||
        (!is_put && TETRAD_MUTANT(claims_of_puts_only)) ||
        (waiting.puts_registers && TETRAD_MUTANT(claims_not_of_commits)))
      return;
    add_claims(*table->maker, m, waiting.claims);
  }

  void note(const Mutation& m) {
    int64_t oldest_us = std::numeric_limits<int64_t>::max();
    const auto see = [&](KeyKind kind, BytesView clustering_key, int64_t of_us) {
      oldest_us = std::min(oldest_us, of_us);
      Bytes key;
      append_storage_key(key, m.incarnation, m.position, m.partition_key, kind, clustering_key);
      watches_.note_key(key);
    };
    if (!m.header.empty()) see(KeyKind::kHeader, {}, facts_of(m.header)->oldest_us);
    for (const auto& [start, set] : tombstone_values(m))
      see(KeyKind::kRangeTombstone, start, oldest_us);
    for (const RangeTombstone& t : m.range_tombstones)
      oldest_us = std::min(oldest_us, t.deletion.timestamp_us);
    for (const RowChange& row : m.rows)
      see(KeyKind::kRow, row.clustering_key, facts_of(row.record)->oldest_us);
    if (!m.registers.empty() && !TETRAD_MUTANT(registers_unwatched))
      see(KeyKind::kRegisters, {}, oldest_us);
    watches_.note(bucket_of(m.incarnation, m.position), oldest_us);
  }

  /// What the store's I/O pool would do: a later event.
  void later(base::Callback work) {
    pool_.run(
        reactor_, base::IoDuty::kMaintenance, 0, [] {},
        [alive = alive_, work = std::move(work)]() mutable {
          if (*alive) work();
        });
  }

  void raise_mark(const Mutation& mutation) {
    int64_t latest = kNoTimestamp;
    const auto see = [&](BytesView encoded) {
      RowRecordReader reader;
      if (!reader.open(encoded)) return;
      latest = std::max({latest, reader.liveness().timestamp_us, reader.deletion().timestamp_us});
      Cell cell;
      if (reader.deletion().present() || reader.liveness().ttl_s > 0) ++dead_seen_;
      while (reader.next(cell)) {
        latest = std::max(latest, cell.timestamp_us);
        if (cell.kind != CellKind::kValue || cell.ttl_s > 0) ++dead_seen_;
      }
    };
    if (!mutation.header.empty()) see(mutation.header);
    dead_seen_ += mutation.range_tombstones.size();
    for (const RangeTombstone& t : mutation.range_tombstones)
      latest = std::max(latest, t.deletion.timestamp_us);
    for (const RowChange& row : mutation.rows) see(row.record);
    area_.raise_mark(bucket_of(mutation.incarnation, mutation.position), latest);
    area_.schema_version = std::max(area_.schema_version, mutation.schema_version.value);
  }

  void commit() {
    committed_number_ = write_number_;
    if (waiting_.empty()) return;
    if (TETRAD_MUTANT(commit_torn)) tear();
    MemoryTurn turn(area_.data);
    for (const WaitingWrite& waiting : waiting_)
      if (!is_retired(waiting.mutation.incarnation)) turn.add(waiting);
    std::vector<MemoryArea::Operation> batch = turn.take_batch();
    add_record(batch);
    area_.write(std::move(batch));
    if (TETRAD_MUTANT(claims_not_kept)) write_claims_late();
    if (options_.sync == CommitLogSync::kGroup) {
      sync_area();
    } else {
      arm_sync();
    }
    queued_bytes_ = 0;
    for (WaitingWrite& waiting : std::exchange(waiting_, {})) {
      waiting.pass.give_back();
      if (waiting.synced && options_.sync != CommitLogSync::kGroup) {
        when_synced(std::move(waiting.done));
        if (waiting.written != nullptr) waiting.written();
      } else {
        waiting.done({});
      }
    }
  }

  /// A known mistake: claims in a batch of their own.
  void write_claims_late() {
    MemoryTurn claims(area_.data);
    for (const WaitingWrite& waiting : waiting_) claims.add_claims(waiting);
    std::vector<MemoryArea::Operation> batch = claims.take_batch();
    if (batch.empty()) return;
    if (options_.sync == CommitLogSync::kGroup) sync_area();
    later([this, batch = std::move(batch)]() mutable { area_.write(std::move(batch)); });
  }

  /// All that ask in one turn share a sync.
  void when_synced(ApplyCallback done) {
    sync_waiting_.push_back(std::move(done));
    if (sync_waiting_.size() > 1) return;
    later([this] {
      sync_area();
      for (ApplyCallback& synced : std::exchange(sync_waiting_, {})) synced({});
    });
  }

  /// A known mistake: the registers of commits go in a batch of their own, before their rows.
  void tear() {
    MemoryTurn registers(area_.data);
    for (WaitingWrite& waiting : waiting_) {
      if (!waiting.puts_registers || is_retired(waiting.mutation.incarnation)) continue;
      registers.add_registers(waiting.mutation, true);
    }
    std::vector<MemoryArea::Operation> batch = registers.take_batch();
    if (!batch.empty()) area_.write(std::move(batch));
  }

  void arm_sync() {
    if (sync_timer_ != 0) return;
    sync_timer_ = reactor_.call_at(reactor_.now_us() + options_.sync_period_us, [this] {
      sync_timer_ = 0;
      sync_area();
    });
  }

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
  uint64_t write_number_ = 0, committed_number_ = 0;
  std::unordered_map<uint16_t, uint64_t> last_number_;  // by bucket: of its newest write
  std::vector<WaitingWrite> waiting_;
  std::vector<ApplyCallback> sync_waiting_;
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

class MemoryStoreFactory final : public StoreFactory {
 public:
  MemoryStoreFactory(std::shared_ptr<MemoryDisk> disk, const StoreOptions& options)
      : disk_(std::move(disk)), options_(options) {}
  Result<std::unique_ptr<Store>> open(const std::string& directory, base::Reactor& reactor,
                                      base::IoPool& pool) override {
    MemoryArea& area = disk_->impl().areas["store " + directory];
    return std::make_unique<MemoryStore>(disk_, area, options_, reactor, pool);
  }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const StoreOptions options_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_memory_store_factory(std::shared_ptr<MemoryDisk> disk,
                                                        const StoreOptions& options) {
  return std::make_unique<MemoryStoreFactory>(std::move(disk), options);
}

}  // namespace tetrad::storage
