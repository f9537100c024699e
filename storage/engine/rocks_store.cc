// SPDX-License-Identifier: Apache-2.0
// RocksStore: Store over one RocksDB. Writes are in write_turn.cc, the read algorithm in
// partition_reader.cc; here is what holds them together.
//
// A read is tried on the loop with what is in memory. If it needs a file, or looks at too much, it
// is done again by a reader of the I/O pool over a snapshot taken at once. Counting a range goes
// there at once.
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
#include "storage/engine/failure_mark.h"
#include "storage/engine/kept_logs.h"
#include "storage/engine/log_chain.h"
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

namespace tetrad::storage {
namespace {

/// A read that looks at more keys goes to the I/O pool: about a third of a millisecond.
constexpr uint64_t kInlineStepsMax = 2'000;
/// Compactions of all stores: one after another, so that the other threads of maintenance are free.
/// What deletes files of a store has a lane after it.
constexpr uint32_t kCompactionLane = 1;
constexpr int kSweepTries = 3;  // to have in memory what was written since a page was read

std::unexpected<Error> retired_error(TableIncarnation incarnation) {
  return fail(ErrorCode::kStaleSchema, "table incarnation {} is gone", incarnation.value);
}
std::unexpected<Error> closed_error() { return fail(ErrorCode::kCancelled, "the store is closed"); }

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
  std::set<uint32_t> retired;
  SyncRecords records;
  std::optional<std::string> damage;  // of an earlier life
};

/// Partition or range tombstones go. What they hid went in earlier pages, whose writes must be safe
/// from a power cut before: a log that loses its middle would show it again.
bool drops_cover(const Swept& swept) {
  return std::any_of(swept.changes.begin(), swept.changes.end(), [](const SweptKey& change) {
    const auto place = decode_storage_key(change.key);
    return place && (place->kind == KeyKind::kHeader || place->kind == KeyKind::kRangeTombstone);
  });
}

class RocksStore final : public Store {
 public:
  RocksStore(OpenedState state, const StoreOptions& options, SharedResources shared, uint32_t lane,
             base::Reactor& reactor, base::IoPool& pool, Logger logger)
      : options_(options),
        shared_(std::move(shared)),
        state_(std::move(state)),
        reactor_(reactor),
        pool_(pool),
        lane_(lane),
        logger_(std::move(logger)),
        alive_(std::make_shared<bool>(true)),
        turn_(state_.database, reactor, pool, lane, options, state_.tables, state_.records,
              logger_),
        row_cache_(options.row_cache_bytes),
        health_(state_.directory, reactor, pool, health_actions(), logger_),
        scrub_(options.scrub_period_us, 0, reactor, pool, scrub_actions(), logger_) {
    turn_.on_trouble({[this](const rocksdb::Status& status, std::string_view what) {
                        health_.take(status, what);
                      },
                      [this](bool hung) { health_.set_hung(hung); }});
    listen_to(*state_.background_errors);
    if (state_.damage) health_.begin_damaged(*state_.damage);
    scrub_.start();
  }

  ~RocksStore() override {
    *alive_ = false;
    state_.background_errors->deliver_to(nullptr);
    if (state_.database != nullptr) state_.database->shut_out_jobs();
  }

  void apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    add(mutation, true, std::move(guard), std::move(done));
  }
  void apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) override {
    add(mutation, false, std::move(guard), std::move(done));
  }

  void write_registers(const RegistersWrite& write, WriteGuard guard, ApplyCallback done) override {
    if (!may_write(write.partition.incarnation, guard, done)) return;
    turn_.add_registers(write, std::move(guard), std::move(done));
  }

  void read_registers(const PartitionName& partition, base::Deadline deadline,
                      RegistersCallback done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    if (is_retired(partition.incarnation)) return done(retired_error(partition.incarnation));
    if (auto checked = check_partition(partition); !checked)
      return done(std::unexpected(std::move(checked.error())));
    Bytes key = registers_key(partition);
    if (!turn_.writes_registers(key))
      return find_registers(std::move(key), deadline, std::move(done));
    turn_.sync([this, alive = alive_, incarnation = partition.incarnation, key = std::move(key),
                deadline, done = std::move(done)](Result<void> synced) mutable {
      if (!synced) return done(std::unexpected(std::move(synced.error())));
      if (!*alive || unusable()) return done(closed_error());
      if (is_retired(incarnation)) return done(retired_error(incarnation));
      find_registers(std::move(key), deadline, std::move(done));
    });
  }

  void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                      size_t partitions_max,
                      std::move_only_function<void(Result<RegistersPage>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    turn_.after_writes([this, alive = alive_, incarnation, range, after = std::move(after),
                        partitions_max, done = std::move(done)]() mutable {
      if (!*alive || unusable()) return done(closed_error());
      if (is_retired(incarnation)) return done(retired_error(incarnation));
      in_maintenance<RegistersPage>(
          0,
          [snapshot = std::make_shared<HeldSnapshot>(state_.database), incarnation, range,
           after = std::move(after), partitions_max] {
            RocksView view(snapshot->database().db(),
                           {.snapshot = snapshot->get(), .fill_cache = false});
            return registers_page(view, incarnation, range, after, partitions_max);
          },
          std::move(done));
    });
  }

  void latest_timestamp(ReadCommand command, base::Deadline deadline,
                        std::move_only_function<void(Result<int64_t>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    RocksView view(db(), {.memory_only = true, .steps_max = kInlineStepsMax});
    auto latest = latest_timestamp_of(view, command);
    if (!view.gave_up()) {
      if (!latest) heed(latest.error());
      return done(std::move(latest));
    }
    in_readers<int64_t>(
        deadline,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), command = std::move(command)] {
          RocksView files(snapshot->database().db(), {.snapshot = snapshot->get()});
          return latest_timestamp_of(files, command);
        },
        [this, alive = alive_, done = std::move(done)](Result<int64_t> from_files) mutable {
          if (*alive && !from_files) heed(from_files.error());
          done(std::move(from_files));
        });
  }

  void read(ReadCommand command, base::Deadline deadline, ReadCallback done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    const TableContents contents = contents_of(command);
    const bool fixed = needs_snapshot(command, contents);
    const bool scans = command.is_range && command.count_only;
    std::shared_ptr<HeldSnapshot> snapshot;
    if (fixed) snapshot = std::make_shared<HeldSnapshot>(state_.database);
    const uint64_t seen = turn_.written_through();
    DeadRunList dead;
    if (!scans) {
      const DeadRunList* known = dead_runs_of(command);
      RocksView view(db(), view_here(command, fixed ? snapshot->get() : nullptr, known));
      auto result = read_partitions(view, command, contents, options_.read_keys_max);
      if (!view.gave_up()) {
        if (!result) heed(result.error());
        write_back(view.take_merged(), seen);
        keep_dead(command, view.take_dead(), seen);
        return done(std::move(result));
      }
      if (view.is_long()) watch_dead(command);
      if (known != nullptr) dead = *known;
    }
    if (snapshot == nullptr) snapshot = std::make_shared<HeldSnapshot>(state_.database);
    struct Found {
      ReadCommand command;
      std::vector<MergedValue> merged;
      DeadRunList dead;
    };
    const auto found = std::make_shared<Found>(Found{std::move(command), {}, std::move(dead)});
    in_readers<ReadResult>(
        deadline,
        [snapshot = std::move(snapshot), contents, found, walks = walks_rows(found->command),
         operands_max = options_.read_operands_max, keys_max = options_.read_keys_max] {
          const RocksViewOptions view{.snapshot = snapshot->get(),
                                      .operands_max = operands_max,
                                      .dead = walks ? &found->dead : nullptr};
          RocksView files(snapshot->database().db(), view);
          auto from_files = read_partitions(files, found->command, contents, keys_max);
          if (!from_files && from_files.error().code == ErrorCode::kIo) {  // a disk may recover
            RocksView again(snapshot->database().db(), view);
            from_files = read_partitions(again, found->command, contents, keys_max);
            found->dead = {};
          } else {
            found->merged = files.take_merged();
            found->dead = files.take_dead();
          }
          return from_files;
        },
        [this, alive = alive_, found, seen,
         done = std::move(done)](Result<ReadResult> from_files) mutable {
          if (*alive) {
            write_back(std::move(found->merged), seen);
            if (from_files)
              keep_dead(found->command, std::move(found->dead), seen);
            else
              heed(from_files.error());
          }
          done(std::move(from_files));
        });
  }

  std::optional<Result<ReadEnd>> read_here(const ReadCommand& command, RowSink& sink) override {
    if (const auto why = unusable()) return std::unexpected(*why);
    if (is_retired(command.incarnation)) return retired_error(command.incarnation);
    const TableContents contents = contents_of(command);
    if (needs_snapshot(command, contents)) return std::nullopt;
    RocksView view(db(), view_here(command, nullptr, dead_runs_of(command)));
    auto end = read_partitions_into(view, command, contents, sink, options_.read_keys_max);
    if (view.gave_up()) return std::nullopt;
    if (!end) heed(end.error());
    const uint64_t seen = turn_.written_through();
    write_back(view.take_merged(), seen);
    keep_dead(command, view.take_dead(), seen);
    return end;
  }

  uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) override {
    if (unusable() || is_retired(incarnation)) return 0;
    return approximate_bytes_of(db(), incarnation, range);
  }

  void sample_sizes(TableIncarnation incarnation, const RingRange& range, size_t count,
                    std::move_only_function<void(Result<std::vector<SizeSample>>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    in_maintenance<std::vector<SizeSample>>(
        0,
        [database = state_.database, incarnation, range, count] {
          return sample_sizes_of(database->db(), incarnation, range, count);
        },
        std::move(done));
  }

  void retire(TableIncarnation incarnation) override {
    if (closed_ || incarnation == kStoreIncarnation || is_retired(incarnation)) return;
    state_.retired.insert(incarnation.value);
    state_.filter->retire(incarnation);
    state_.tables.erase(incarnation);
    row_cache_.forget(keys_of_incarnation(incarnation).start);
    if (health_.status().takes_writes()) {
      turn_.add_retired(incarnation);
    } else {
      retired_unsaved_.push_back(incarnation);  // its files make room
    }
    // Whole files go at once; what lies between keys of other tables goes when it is compacted.
    turn_.after_writes([this, alive = alive_, incarnation] {
      if (*alive) delete_files_of(incarnation);
    });
  }

  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, ExportParts parts, ExportCallback done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    const SchemaVersion version{state_.tables.at(incarnation).schema_version};
    in_maintenance<ExportPage>(
        0,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), incarnation, version, range,
         after = std::move(after), bytes_max, parts] {
          RocksView view(snapshot->database().db(),
                         {.snapshot = snapshot->get(), .fill_cache = false});
          return export_page(view, incarnation, version, range, after, bytes_max, parts);
        },
        std::move(done));
  }

  const Recovered& recovered() const override { return state_.records.recovered(); }
  SyncNumbers sync_numbers() const override {
    return {recovered().life, turn_.log_end(), state_.records.durable()};
  }
  void sync(std::move_only_function<void(Result<void>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    turn_.sync(std::move(done));
  }
  void set_sync_clock(std::function<std::optional<int64_t>()> now_us) override {
    state_.records.set_clock(std::move(now_us));
    if (!closed_) turn_.begin_records();
  }

  void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
              std::move_only_function<void(Result<RecentPage>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    turn_.when_written([this, alive = alive_, command = std::move(command),
                        after = std::move(after), bytes_max, done = std::move(done)]() mutable {
      if (!*alive || unusable()) return done(closed_error());
      auto place = recent_place(command, after);
      if (!place) return done(std::unexpected(place.error()));
      read_recent(std::move(command), std::move(*place), bytes_max, std::move(done));
    });
  }

  void sweep(SweepCommand command, SweepPlace from,
             std::move_only_function<void(Result<SweepPage>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
    SweepWatches& watches = turn_.watches();
    const bool is_watched = from.inside && watches.begin_page(from.watch);
    if (!is_watched) {
      from.watch = watches.open(watched_below_us(command.bound));
      from.undisturbed = false;  // of a partition that it is inside of
    }
    const auto job = std::make_shared<SweepJob>(
        SweepJob{std::move(command), from.watch, is_watched, {}, 0, std::move(done)});
    // What the page does not see is written after this: the watch sees it.
    turn_.when_written([this, alive = alive_, job, from = std::move(from)]() mutable {
      if (!*alive || unusable()) return job->done(closed_error());
      read_page(job, std::move(from));
    });
  }

  uint64_t dead_seen(TableIncarnation incarnation) override {
    const TableKnowledge* table = state_.tables.find(incarnation);
    return (table == nullptr ? 0 : table->dead) + (state_.tables.unknown() ? 1 : 0);
  }

  void note_time(int64_t now_s) override { state_.filter->set_now_s(now_s); }

  void flush(std::move_only_function<void(Result<void>)> done) override {
    maintain(
        0,
        [](rocksdb::DB& db) -> Result<void> {
          const rocksdb::Status status = db.Flush(rocksdb::FlushOptions());
          if (!status.ok()) return std::unexpected(error_of(status, "flushing"));
          return {};
        },
        std::move(done));
  }

  void compact(std::move_only_function<void(Result<void>)> done) override {
    maintain(
        kCompactionLane,
        [](rocksdb::DB& db) -> Result<void> {
          rocksdb::CompactRangeOptions everything;
          everything.bottommost_level_compaction =
              rocksdb::BottommostLevelCompaction::kForceOptimized;
          const rocksdb::Status status = db.CompactRange(everything, nullptr, nullptr);
          if (!status.ok()) return std::unexpected(error_of(status, "compacting"));
          return {};
        },
        std::move(done));
  }

  void verify(std::move_only_function<void(Result<ScrubSummary>)> done) override {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    scrub_.run_now(std::move(done));
  }

  StoreStatistics statistics() override {
    StoreStatistics statistics;
    statistics.scrubbed_files = scrub_.figures().files;
    statistics.scrubbed_bytes = scrub_.figures().bytes;
    statistics.damaged_files = scrub_.figures().damaged_files;
    if (unusable()) return statistics;
    const auto figure = [&](const std::string& property) {
      uint64_t value = 0;
      db().GetIntProperty(property, &value);
      return value;
    };
    statistics.disk_bytes = figure(rocksdb::DB::Properties::kTotalSstFilesSize);
    statistics.memtable_bytes = figure(rocksdb::DB::Properties::kCurSizeAllMemTables);
    statistics.cache_bytes = figure(rocksdb::DB::Properties::kBlockCacheUsage);
    statistics.estimated_keys = figure(rocksdb::DB::Properties::kEstimateNumKeys);
    statistics.pending_compaction_bytes =
        figure(rocksdb::DB::Properties::kEstimatePendingCompactionBytes);
    statistics.writes_stopped =
        turn_.behind() || figure(rocksdb::DB::Properties::kIsWriteStopped) != 0;
    statistics.delayed_write_bytes_per_s = figure(rocksdb::DB::Properties::kActualDelayedWriteRate);
    statistics.level0_files = figure(rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0");
    statistics.background_errors = figure(rocksdb::DB::Properties::kBackgroundErrors);
    statistics.writes_paced_us = turn_.figures().paced_us;
    statistics.corruptions = corruptions_ + state_.merges->undecodable_values.load();
    statistics.row_cache_bytes = row_cache_.figures().bytes;
    statistics.row_cache_hits = row_cache_.figures().hits;
    statistics.row_cache_misses = row_cache_.figures().misses;
    statistics.values_written_back = turn_.figures().written_back;
    return statistics;
  }

  const StoreStatus& status() const override { return health_.status(); }
  void on_status(StatusListener changed) override { status_changed_ = std::move(changed); }

  int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) override {
    const TableKnowledge* table = state_.tables.find(incarnation);
    return table == nullptr ? kNoTimestamp : table->marks.mark(bucket_of(incarnation, position));
  }

  Result<void> close() override {
    if (closed_) return {};
    closed_ = true;
    health_.stop();
    scrub_.stop();
    state_.background_errors->deliver_to(nullptr);
    if (state_.database == nullptr)  // whoever opens it anew closes it
      return fail(ErrorCode::kIo, "{}", health_.status().reason);
    state_.database->shut_out_jobs();
    const Result<void> written = turn_.finish();
    if (health_.status().state == StoreState::kFailed)  // not even that
      return fail(ErrorCode::kIo, "{}", health_.status().reason);
    const Result<void> closed = state_.database->close();
    return written ? closed : written;
  }

 private:
  rocksdb::DB& db() { return state_.database->db(); }
  bool is_retired(TableIncarnation incarnation) const {
    return !state_.retired.empty() && state_.retired.contains(incarnation.value) &&
           !TETRAD_MUTANT(retired_readable);
  }

  /// Set: nothing can be done at the moment, or any more.
  std::optional<Error> unusable() const {
    if (closed_) return Error(ErrorCode::kCancelled, "the store is closed");
    if (state_.database == nullptr)
      return Error(ErrorCode::kIo, state_.directory + " is being opened anew");
    return std::nullopt;
  }

  /// A read has failed. Its caller asks other replicas.
  void heed(const Error& error) {
    if (error.code != ErrorCode::kCorruption && error.code != ErrorCode::kIo) return;
    ++corruptions_;
    health_.take_damage(error.message);
  }

  StoreHealth::Actions health_actions() {
    StoreHealth::Actions actions;
    actions.refuse = [this](std::optional<Error> why) {
      const bool again = !why;
      turn_.refuse(std::move(why));
      if (!again || state_.database == nullptr) return;
      for (const TableIncarnation incarnation : std::exchange(retired_unsaved_, {}))
        turn_.add_retired(incarnation);
    };
    actions.changed = [this] {
      reactor_.post([this, alive = alive_] {
        if (*alive && status_changed_) status_changed_(status());
      });
    };
    actions.database = [this] { return state_.database; };
    actions.let_go = [this] { state_.database = nullptr; };
    actions.use = [this](std::shared_ptr<RocksDatabase> database) {
      state_.database = std::move(database);
      turn_.use(state_.database);
      row_cache_.forget({});  // a write whose outcome was unknown may be in the log
    };
    actions.open = state_.open;
    return actions;
  }

  Scrub::Actions scrub_actions() {
    Scrub::Actions actions;
    actions.database = [this] {
      const bool may = !closed_ && health_.status().takes_writes();
      return may ? state_.database : nullptr;
    };
    actions.damaged = [this](const std::string& what) {
      ++corruptions_;
      health_.take_damage(what);
    };
    return actions;
  }

  void listen_to(BackgroundErrors& errors) {
    errors.deliver_to([this, alive = std::weak_ptr<bool>(alive_),
                       reactor = &reactor_](const rocksdb::Status& error) {
      reactor->post_from_any_thread([this, alive, error] {
        const auto still = alive.lock();
        if (still && *still && !closed_) health_.take(error, "flushing or compacting");
      });
    });
  }

  /// Rule 19. `seen`: the mutations that the read saw, as WriteTurn numbers them.
  void write_back(std::vector<MergedValue> values, uint64_t seen) {
    if (values.empty() || unusable()) return;
    std::erase_if(values, [this](const MergedValue& value) {
      const auto place = decode_storage_key(value.key);
      return !place || is_retired(place->incarnation);
    });
    turn_.write_back(values, seen);
  }

  Result<RecentPlace> recent_place(const RecentCommand& command, BytesView after) const {
    const uint64_t life = recovered().life;
    if (!after.empty()) return RecentPlace::decode(after, life);
    const auto window = state_.records.window(command.since_us, command.until_us);
    if (!window)
      return fail(ErrorCode::kNotFound, "no sync record is older than {} us", command.since_us);
    return RecentPlace{life, window->from, 0, std::min(window->until, turn_.log_end()), {}};
  }

  void read_recent(RecentCommand command, RecentPlace place, uint64_t bytes_max,
                   std::move_only_function<void(Result<RecentPage>)> done) {
    std::unordered_map<uint32_t, SchemaVersion> versions;
    std::erase_if(command.ranges, [&](const auto& table) {
      const TableKnowledge* known = state_.tables.find(table.first);
      versions[table.first.value] = {known == nullptr ? 0 : known->schema_version};
      return is_retired(table.first);
    });
    in_maintenance<RecentPage>(
        0,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), command = std::move(command),
         versions = std::move(versions), place = std::move(place),
         bytes_max]() -> Result<RecentPage> {
          rocksdb::DB& db = snapshot->database().db();
          RecentKeys keys(command);
          TETRAD_TRY(const uint64_t end, read_log(db, place.from, place.stop(), keys));
          RocksView view(db, {.snapshot = snapshot->get(), .fill_cache = false});
          const auto version_of = [&](TableIncarnation table) { return versions.at(table.value); };
          return recent_page(view, place, keys, end, bytes_max, version_of);
        },
        [this, alive = alive_, done = std::move(done)](Result<RecentPage> page) mutable {
          if (*alive && !page) heed(page.error());
          done(std::move(page));
        });
  }

  struct SweepJob {
    SweepCommand command;
    SweepWatches::Id watch;
    bool goes_on;  // in a partition that was begun before
    Swept swept;
    int tries;
    std::move_only_function<void(Result<SweepPage>)> done;
  };
  using SweepJobPtr = std::shared_ptr<SweepJob>;

  void read_page(const SweepJobPtr& job, SweepPlace from) {
    in_maintenance<Swept>(
        0,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), job, from = std::move(from)] {
          RocksView view(snapshot->database().db(),
                         {.snapshot = snapshot->get(), .fill_cache = false});
          auto swept = sweep_page(view, job->command, from);
          if (swept && drops_cover(*swept)) {
            const rocksdb::Status synced = snapshot->database().sync_log();
            if (!synced.ok()) return Result<Swept>(std::unexpected(error_of(synced, "syncing")));
          }
          return swept;
        },
        [this, alive = alive_, job](Result<Swept> swept) {
          if (!*alive || unusable()) return job->done(closed_error());
          if (!swept) {
            if (state_.database->watch().failed_sync())
              health_.take(rocksdb::Status::IOError("a sync failed"), "sweeping");
            return end_sweep(job, swept.error());
          }
          job->swept = std::move(*swept);
          write_swept(job);
        });
  }

  void end_sweep(const SweepJobPtr& job, Error error) {
    turn_.watches().close(job->watch);
    job->done(std::unexpected(std::move(error)));
  }

  void write_swept(const SweepJobPtr& job) {
    turn_.when_settled([this, alive = alive_, job] {
      if (!*alive || unusable()) return job->done(closed_error());
      if (is_retired(job->command.incarnation))
        return end_sweep(job, retired_error(job->command.incarnation).error());
      if (turn_.failure() != nullptr) return end_sweep(job, *turn_.failure());
      if (turn_.full())
        return put_off(job, Error(ErrorCode::kOverloaded, "too many writes wait for the disk"));
      settle_swept(job);
    });
  }

  /// The same page again: its partition's watch goes on.
  void put_off(const SweepJobPtr& job, Error overloaded) {
    if (!job->goes_on) return end_sweep(job, std::move(overloaded));
    job->done(std::unexpected(std::move(overloaded)));
  }

  /// Nothing is on its way to RocksDB.
  void settle_swept(const SweepJobPtr& job) {
    SweepWatches& watches = turn_.watches();
    const bool last_try = ++job->tries == kSweepTries;
    const auto read_now = [this](ValuesNow& values) { return read_values_now(values); };
    const auto cold =
        settle_page(job->swept, job->command, watches, job->watch, read_now, last_try);
    if (!cold) return end_sweep(job, cold.error());
    if (!cold->empty()) return warm_up(job, *cold);
    const bool uncovers = std::ranges::any_of(job->swept.changes, [](const SweptKey& change) {
      return change.uncovers_us != kNoTimestamp;
    });
    if (uncovers) watches.note_covers_gone(job->watch);
    SweepPage& page = job->swept.page;
    const bool goes_on = page.next.inside && !page.exhausted;
    if (!goes_on) watches.close(job->watch);
    page.next.watch = goes_on ? job->watch : 0;
    if (job->swept.changes.empty()) return job->done(std::move(page));
    const auto done = [this, alive = alive_, job](Result<void> written) {
      if (!*alive || unusable()) return job->done(closed_error());
      if (written) return job->done(std::move(job->swept.page));
      if (written.error().code == ErrorCode::kOverloaded) return put_off(job, written.error());
      end_sweep(job, written.error());
    };
    turn_.replace(job->swept.changes, done);
  }

  Result<void> read_values_now(ValuesNow& values) {
    RocksView view(db(), {.memory_only = true});
    for (auto& [key, value] : values) {
      const auto stored = view.get(key);
      if (view.take_gave_up()) continue;
      if (!stored) return std::unexpected(stored.error());
      value.emplace();
      if (*stored) value->emplace(**stored);
    }
    turn_.add_pending(values);
    return {};
  }

  /// Reads keys so that they are in memory.
  void warm_up(const SweepJobPtr& job, std::vector<Bytes> keys) {
    in_maintenance<void>(
        0,
        [database = state_.database, keys = std::move(keys)]() -> Result<void> {
          RocksView view(database->db(), {});
          for (const Bytes& key : keys) TETRAD_TRY_VOID(view.get(key));
          return {};
        },
        [this, alive = alive_, job](const Result<void>& read) {
          if (!*alive || unusable()) return job->done(closed_error());
          if (!read) return end_sweep(job, read.error());
          write_swept(job);
        });
  }

  static Result<PaxosRegisters> registers_at(RocksView& view, BytesView key) {
    TETRAD_TRY(const auto value, view.get(key));
    if (!value) return PaxosRegisters();
    return decode_registers(*value);
  }

  void find_registers(Bytes key, base::Deadline deadline, RegistersCallback done) {
    RocksView view(db(), {.memory_only = true});
    auto registers = registers_at(view, key);
    if (!view.gave_up()) {
      if (!registers) heed(registers.error());
      return done(std::move(registers));
    }
    in_readers<PaxosRegisters>(
        deadline,
        [database = state_.database, key = std::move(key)] {
          RocksView files(database->db(), {});
          return registers_at(files, key);
        },
        [this, alive = alive_, done = std::move(done)](Result<PaxosRegisters> from_files) mutable {
          if (*alive && !from_files) heed(from_files.error());
          done(std::move(from_files));
        });
  }

  static bool walks_rows(const ReadCommand& command) {
    return !command.is_range && command.rows.empty() && command.live_only;
  }
  static Bytes prefix_of(const ReadCommand& command) {
    Bytes prefix;
    append_partition_prefix(prefix, command.incarnation, command.position, command.partition_key);
    return prefix;
  }
  const DeadRunList* dead_runs_of(const ReadCommand& command) {
    const DeadRuns& runs = turn_.dead_runs();
    if (!walks_rows(command)) return nullptr;
    const uint16_t bucket = bucket_of(command.incarnation, command.position);
    return runs.knows(bucket) ? runs.find(prefix_of(command)) : nullptr;
  }
  void watch_dead(const ReadCommand& command) {
    if (!walks_rows(command)) return;
    const uint16_t bucket = bucket_of(command.incarnation, command.position);
    turn_.dead_runs().watch(bucket, prefix_of(command), turn_.last_number(bucket));
  }
  /// `seen`: the mutations that the read saw.
  void keep_dead(const ReadCommand& command, DeadRunList found, uint64_t seen) {
    if (found.empty() || closed_) return;
    watch_dead(command);
    const Bytes prefix = prefix_of(command);
    for (DeadRun& run : found) turn_.dead_runs().keep(prefix, std::move(run), seen);
  }

  /// A view for a read on the loop.
  RocksViewOptions view_here(const ReadCommand& command, const rocksdb::Snapshot* snapshot,
                             const DeadRunList* dead) {
    RocksViewOptions options{.snapshot = snapshot,
                             .memory_only = true,
                             .steps_max = kInlineStepsMax,
                             .operands_max = options_.read_operands_max,
                             .dead = dead};
    if (!command.is_range && command.rows.empty()) {
      options.row_cache = &row_cache_;
      options.moment = {turn_.last_number(bucket_of(command.incarnation, command.position)),
                        turn_.written_through()};
    }
    return options;
  }

  /// Another thread writes while this one reads: always in group mode, otherwise while RocksDB is
  /// behind.
  bool needs_snapshot(const ReadCommand& command, const TableContents& contents) const {
    const bool one_get = !command.is_range && command.rows.size() == 1 && !contents.headers &&
                         !contents.any_range_tombstones();
    return (options_.sync == CommitLogSync::kGroup || turn_.writes_elsewhere()) && !one_get;
  }

  /// What there may be of the partition that is read.
  TableContents contents_of(const ReadCommand& command) const {
    const TableKnowledge* table = state_.tables.find(command.incarnation);
    if (table == nullptr) {
      TableContents all;
      all.scattered_tombstones = true;
      return state_.tables.unknown() ? all : TableContents::nothing();
    }
    TableContents contents = table->contents;
    contents.dead_rows = table->dead != 0 || state_.tables.unknown();
    if (command.is_range) return contents;
    const uint16_t bucket = bucket_of(command.incarnation, command.position);
    const auto has = [&](TableMarks::Seen what) { return table->marks.has(bucket, what); };
    contents.range_tombstones |= has(TableMarks::kRangeTombstones);
    contents.straddling_tombstones |= has(TableMarks::kStraddlingTombstones);
    return contents;
  }

  /// False: `done` was told why not.
  bool may_write(TableIncarnation incarnation, const WriteGuard& guard, ApplyCallback& done) {
    std::optional<Error> error = unusable();
    if (!error && is_retired(incarnation)) error = retired_error(incarnation).error();
    if (!error && !guard.may_write(reactor_.now_us())) [[unlikely]]
      error = refusal_of(guard, reactor_.now_us());
    if (!error) return true;
    done(std::unexpected(std::move(*error)));
    return false;
  }

  void add(const Mutation& mutation, bool may_put, WriteGuard guard, ApplyCallback done) {
    if (!may_write(mutation.incarnation, guard, done)) return;
    if (TETRAD_MUTANT(filter_raw_wall))
      state_.filter->set_now_s(reactor_.wall_time_us() / 1'000'000);
    turn_.add(mutation, may_put, std::move(guard), std::move(done));
  }

  /// Runs `work` on a maintenance thread unless the store is closed before, then `done` on the
  /// loop.
  template <class T>
  void in_maintenance(uint32_t lane, std::move_only_function<Result<T>()> work,
                      std::move_only_function<void(Result<T>)> done) {
    auto result = std::make_shared<Result<T>>(closed_error());
    pool_.run(reactor_, base::IoDuty::kMaintenance, lane, visiting(result, std::move(work)),
              [result, done = std::move(done)]() mutable { done(std::move(*result)); });
  }

  /// As in_maintenance(), on a reader.
  template <class T>
  void in_readers(base::Deadline deadline, std::move_only_function<Result<T>()> work,
                  std::move_only_function<void(Result<T>)> done) {
    auto result = std::make_shared<Result<T>>(closed_error());
    pool_.read(reactor_, deadline, visiting(result, std::move(work)),
               [result, done = std::move(done)](Result<void> began) mutable {
                 if (!began) return done(std::unexpected(std::move(began.error())));
                 done(std::move(*result));
               });
  }

  template <class T>
  base::Callback visiting(std::shared_ptr<Result<T>> result,
                          std::move_only_function<Result<T>()> work) {
    return
        [database = state_.database, result = std::move(result), work = std::move(work)]() mutable {
          if (const RocksDatabase::Visit visit(*database); visit) *result = work();
          work = {};  // what it holds goes with this thread, inside the visit's time or after it
        };
  }

  void maintain(uint32_t lane, Result<void> (*work)(rocksdb::DB&),
                std::move_only_function<void(Result<void>)> done) {
    if (const auto why = unusable()) return done(std::unexpected(*why));
    turn_.after_writes([this, alive = alive_, lane, work, done = std::move(done)]() mutable {
      if (!*alive) return done(closed_error());
      if (const auto why = unusable()) return done(std::unexpected(*why));
      in_maintenance<void>(
          lane, [database = state_.database, work] { return work(database->db()); },
          std::move(done));
    });
  }

  void delete_files_of(TableIncarnation incarnation) {
    if (unusable()) return;
    in_maintenance<void>(
        kCompactionLane + lane_,
        [database = state_.database, incarnation]() -> Result<void> {
          const KeyRange keys = keys_of_incarnation(incarnation);
          const rocksdb::Slice start(keys.start), end(keys.end);
          const rocksdb::Status status = rocksdb::DeleteFilesInRange(
              &database->db(), database->db().DefaultColumnFamily(), &start, &end, false);
          if (!status.ok()) return std::unexpected(error_of(status, "deleting files"));
          return {};
        },
        [logger = logger_, incarnation](const Result<void>& deleted) {
          if (!deleted && deleted.error().code != ErrorCode::kCancelled)
            logger.warn("retire_failed incarnation={} error=\"{}\"", incarnation.value,
                        deleted.error().message);
        });
  }

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
  RowCache row_cache_;
  uint64_t corruptions_ = 0;
  StatusListener status_changed_;
  StoreHealth health_;
  Scrub scrub_;
};

/// Reads the store's own keys.
Result<void> load_own_keys(OpenedState& state) {
  Bytes start;
  base::ByteWriter(start).u32(kStoreIncarnation.value);
  const Bytes end(kKeyPrefixBytes, '\xFF');
  RocksView view(state.database->db(), {});
  const auto it = view.iterate({start, end, false, false});
  const size_t tail = sizeof(uint32_t);
  for (it->seek(start); it->valid(); it->next()) {
    const BytesView key = it->key();
    TETRAD_TRY_VOID(state.records.load(key, it->value()));
    if (key.size() < start.size() + tail) continue;
    const auto incarnation = base::load_big_endian<uint32_t>(key.data() + key.size() - tail);
    if (key == retired_key({incarnation})) {
      state.retired.insert(incarnation);
      state.filter->retire({incarnation});
    } else if (key == schema_version_key({incarnation}) && it->value().size() == 8) {
      state.tables.at({incarnation}).schema_version =
          base::load_big_endian<uint64_t>(it->value().data());
    }
  }
  return it->status();
}

/// Marks and contents from the properties of all files. The log has been replayed into files
/// before (rule 15).
Result<void> load_summaries(OpenedState& state, const Logger& logger) {
  rocksdb::TablePropertiesCollection files;
  const rocksdb::Status status = state.database->db().GetPropertiesOfAllTables(&files);
  if (!status.ok()) return std::unexpected(error_of(status, "reading table properties"));
  for (const auto& [file, properties] : files) {
    const auto joined = join_summary(properties->user_collected_properties, state.tables);
    if (!joined) {
      logger.warn("table_without_summary file={} error=\"{}\"", file, joined.error().message);
      state.tables.set_unknown();
    }
  }
  for (const uint32_t incarnation : state.retired) state.tables.erase({incarnation});
  return {};
}

/// What was in the log is in files by now: the disk has all of it. `log_end`: a power cut has cut
/// it there; 0: it has not, or not that anybody can tell.
Result<void> begin_life(OpenedState& state, uint64_t log_end) {
  rocksdb::DB& db = state.database->db();
  const uint64_t number = db.GetLatestSequenceNumber() + 1;
  state.records.begin_life(number, log_end == 0 ? number : log_end);
  const auto [key, value] = state.records.life_entry();
  rocksdb::WriteOptions write;
  write.sync = true;
  const rocksdb::Status status = db.Put(write, key, value);
  if (!status.ok()) return std::unexpected(error_of(status, "beginning a life of the store"));
  return {};
}

class RocksStoreFactory final : public StoreFactory {
 public:
  RocksStoreFactory(const StoreOptions& options, Logger logger,
                    std::shared_ptr<rocksdb::FileSystem> files, LogRecovery recovery)
      : options_(options),
        recovery_(recovery),
        logger_(std::move(logger)),
        shared_(make_shared_resources(options, std::move(files))) {}

  Result<std::unique_ptr<Store>> open(const std::string& directory, base::Reactor& reactor,
                                      base::IoPool& pool) override {
    OpenedState state;
    state.directory = directory;
    state.merges = std::make_shared<MergeReport>();
    state.filter = std::make_shared<FilterState>();
    state.background_errors = std::make_shared<BackgroundErrors>();
    state.open = [directory, shared = shared_, merges = state.merges, filter = state.filter,
                  errors = state.background_errors, settings = options_,
                  recovery = recovery_](bool compacts) mutable {
      rocksdb::Options options = store_options(settings, shared, merges, filter);
      options.listeners.push_back(errors->listener());
      options.disable_auto_compactions = !compacts;
      set_recovery(options, recovery);
      auto opened = RocksDatabase::open(std::move(options), directory, "store",
                                        {shared.memory, shared.files});
      if (opened) recovery = LogRecovery::kStrict;
      return opened;
    };
    if (!options_.in_memory_files)
      TETRAD_TRY_VOID(check_failures(directory, reactor.wall_time_us(), logger_));
    if (!options_.in_memory_files) state.damage = noted_damage(directory);
    uint64_t log_end = 0;
    if (recovery_ == LogRecovery::kAfterPowerCut) {
      TETRAD_TRY(log_end, end_after_cut(state));
    }
    TETRAD_TRY(state.database, state.open(!state.damage));
    TETRAD_TRY_VOID(load_own_keys(state));
    TETRAD_TRY_VOID(load_summaries(state, logger_));
    TETRAD_TRY_VOID(begin_life(state, log_end));
    const uint32_t lane = kFirstLane + (*shared_.stores)++;
    return std::make_unique<RocksStore>(std::move(state), options_, shared_, lane, reactor, pool,
                                        logger_);
  }

 private:
  /// Where a power cut has cut the log. If that is before what was synced, the disk has lost what
  /// it said it had, promises among it: the store is damaged, and says so before its log is
  /// replayed and gone.
  Result<uint64_t> end_after_cut(OpenedState& state) {
    const std::shared_ptr<rocksdb::Env> files =
        shared_.memory != nullptr ? shared_.memory
                                  : make_watched_env(shared_.files, std::make_shared<DiskWatch>());
    rocksdb::Options options = store_options(options_, shared_, state.merges, state.filter);
    TETRAD_TRY(const LogSurvey survey, survey_log(std::move(options), state.directory, *files));
    if (survey.had_been_synced && !state.damage) {
      state.damage = survey.gap->text() + ", which had been synced";
      if (shared_.memory == nullptr) note_damage(state.directory, *state.damage);
    } else if (survey.gap) {
      logger_.warn("a power cut took what was not synced: {} store={}", survey.gap->text(),
                   state.directory);
    }
    return survey.end;
  }

  // Lanes of the I/O pool: the local log has its own (rocks_local_log.cc).
  static constexpr uint32_t kFirstLane = 1;

  const StoreOptions options_;
  const LogRecovery recovery_;
  const Logger logger_;
  const SharedResources shared_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_rocks_store_factory(const StoreOptions& options, Logger logger,
                                                       std::shared_ptr<rocksdb::FileSystem> files) {
  return make_rocks_store_factory(options, std::move(logger), std::move(files),
                                  LogRecovery::kStrict);
}

std::unique_ptr<StoreFactory> make_rocks_store_factory(const StoreOptions& options, Logger logger,
                                                       std::shared_ptr<rocksdb::FileSystem> files,
                                                       LogRecovery recovery) {
  return std::make_unique<RocksStoreFactory>(options, std::move(logger), std::move(files),
                                             recovery);
}

}  // namespace tetrad::storage
