// SPDX-License-Identifier: Apache-2.0
// What a RocksStore takes and what it is. Writes are in write_turn.cc, the read algorithm is in
// partition_reader.cc; here is what holds them together.
#include "storage/engine/rocks_store.h"

#include <charconv>

#include "storage/engine/rocks_store_views.h"

namespace tetrad::storage {

RocksStore::RocksStore(OpenedState state, const StoreOptions& options, SharedResources shared,
                       uint32_t lane, base::Reactor& reactor, base::IoPool& pool, Logger logger)
    : options_(options),
      shared_(std::move(shared)),
      state_(std::move(state)),
      reactor_(reactor),
      pool_(pool),
      lane_(lane),
      logger_(std::move(logger)),
      alive_(std::make_shared<bool>(true)),
      turn_(state_.database, reactor, pool, lane, options, state_.tables, state_.records, logger_),
      view_side_(std::make_unique<ViewSide>(*this)),
      views_(*view_side_, alive_),
      graphs_({.bytes_max = options.vector_graph_bytes, .vectors_min = options.vector_graph_min},
              [this](std::shared_ptr<GraphInMaking> graph) { let_go(std::move(graph)); }),
      row_cache_(options.row_cache_bytes),
      block_rates_{base::RecentRate(reactor.now_us()), base::RecentRate(reactor.now_us())},
      row_rates_(block_rates_),
      health_(state_.directory, reactor, pool, health_actions(), logger_),
      scrub_(options.scrub_period_us, 0, reactor, pool, scrub_actions(), logger_) {
  // A turn's trouble becomes the store's state.
  turn_.on_trouble(
      {[this](const rocksdb::Status& status, std::string_view what) { health_.take(status, what); },
       [this](bool hung) { health_.set_hung(hung); }});
  turn_.set_views(views_);
  for (const auto& [key, value] : state_.own_view_keys) views_.load(key, value);
  views_.begin_life(recovered().life);
  for (const TableIncarnation base : views_.bases()) state_.tables.set_views(base, true);
  turn_.on_vectors([this](const Mutation& mutation) { note_vectors(mutation); });
  listen_to(*state_.background_errors);
  if (state_.damage) health_.begin_damaged(*state_.damage);
  scrub_.start();
}

// Jobs that run see `alive_`, or a database that lets nobody in.
RocksStore::~RocksStore() {
  *alive_ = false;
  if (graph_timer_ != 0) reactor_.cancel(graph_timer_);
  if (level0_timer_ != 0) reactor_.cancel(level0_timer_);
  state_.background_errors->deliver_to(nullptr);
  if (state_.database != nullptr) state_.database->shut_out_jobs();
}

void RocksStore::write_registers(const RegistersWrite& write, WriteGuard guard,
                                 base::Callback written, ApplyCallback done) {
  if (!may_write(write.partition.incarnation, guard, done)) return;
  turn_.add_registers(write, std::move(guard), std::move(written), std::move(done));
}

// From here on nothing reads the incarnation, whatever of it is still in files: its keys go with
// compactions, or with whole files at once.
void RocksStore::retire(TableIncarnation incarnation) {
  if (closed_ || incarnation == kStoreIncarnation || is_retired(incarnation)) return;
  // From this line on no read, write or compaction takes it for a table. The rest is room.
  state_.retired.insert(incarnation.value);
  state_.filter->retire(incarnation);
  state_.tables.erase(incarnation);
  turn_.erase_own(state_.indexes.erase(incarnation));
  turn_.erase_own(views_.erase(incarnation).erased);
  graphs_.forget(incarnation);
  row_cache_.forget(keys_of_incarnation(incarnation).start);
  if (health_.status().takes_writes()) {
    // Written with the turn, so a restart knows it as gone (rule 22).
    turn_.add_retired(incarnation);
  } else {
    retired_unsaved_.push_back(incarnation);  // its files make room
  }
  // Whole files go at once; what lies between keys of other tables goes when it is compacted.
  turn_.after_writes([this, alive = alive_, incarnation] {
    if (!*alive) return;
    delete_files_of(incarnation);
    const Bytes claims = claims_of_table(incarnation);
    delete_claims({claims, past_prefix(claims)});
    const Bytes of_views = view_tasks_of_table(incarnation);
    delete_claims({of_views, past_prefix(of_views)});
  });
}

void RocksStore::sync(std::move_only_function<void(Result<void>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  turn_.sync(std::move(done));
}

void RocksStore::set_sync_clock(std::function<std::optional<int64_t>()> now_us) {
  state_.records.set_clock(std::move(now_us));
  if (!closed_) turn_.begin_records();
}

// 1 for "unknown": then every table must be looked at.
uint64_t RocksStore::dead_seen(TableIncarnation incarnation) {
  const TableKnowledge* table = state_.tables.find(incarnation);
  return (table == nullptr ? 0 : table->dead) + (state_.tables.unknown() ? 1 : 0);
}

void RocksStore::CacheRates::look(uint64_t hits_now, uint64_t misses_now, int64_t now_us) {
  hits.look(hits_now, now_us);
  requests.look(hits_now + misses_now, now_us);
}

void RocksStore::note_time(int64_t now_s) {
  state_.filter->set_now_s(now_s);
  const RowCache::Figures& rows = row_cache_.figures();
  block_rates_.look(block_reads_.hits, block_reads_.misses, reactor_.now_us());
  row_rates_.look(rows.hits, rows.misses, reactor_.now_us());
}

void RocksStore::flush(std::move_only_function<void(Result<void>)> done) {
  maintain(
      0,
      [](rocksdb::DB& db) -> Result<void> {
        const rocksdb::Status status = db.Flush(rocksdb::FlushOptions());
        if (!status.ok()) return std::unexpected(error_of(status, "flushing"));
        return {};
      },
      std::move(done));
}

void RocksStore::compact(std::vector<TableIncarnation> tables,
                         std::move_only_function<void(Result<void>)> done) {
  maintain(
      kCompactionLane,
      [tables = std::move(tables)](rocksdb::DB& db) -> Result<void> {
        rocksdb::CompactRangeOptions everything;
        // Also the last level, where most dead keys lie.
        everything.bottommost_level_compaction =
            rocksdb::BottommostLevelCompaction::kForceOptimized;
        rocksdb::Status status;
        if (tables.empty()) status = db.CompactRange(everything, nullptr, nullptr);
        for (const TableIncarnation table : tables) {
          const KeyRange keys = keys_of_incarnation(table);
          const rocksdb::Slice start(keys.start), end(keys.end);
          if (status.ok()) status = db.CompactRange(everything, &start, &end);
        }
        if (!status.ok()) return std::unexpected(error_of(status, "compacting"));
        return {};
      },
      std::move(done));
}

void RocksStore::set_auto_compaction(bool runs, std::move_only_function<void(Result<void>)> done) {
  if (is_damaged())
    return done(fail(ErrorCode::kConflict, "a damaged store keeps its files as they are"));
  maintain(
      0,
      [runs](rocksdb::DB& db) -> Result<void> {
        const rocksdb::Status status =
            db.SetOptions({{"disable_auto_compactions", runs ? "false" : "true"}});
        if (!status.ok()) return std::unexpected(error_of(status, "switching compactions"));
        return {};
      },
      [this, alive = alive_, runs, done = std::move(done)](Result<void> set) mutable {
        if (set && *alive) {
          auto_compacts_ = runs;
          if (!runs && level0_timer_ == 0) watch_level0();
        }
        done(std::move(set));
      });
}

void RocksStore::watch_level0() {
  constexpr int64_t kLookEveryUs = 1'000'000;
  level0_timer_ = reactor_.call_at(reactor_.now_us() + kLookEveryUs, [this] {
    level0_timer_ = 0;
    // A damaged one keeps its files as they are.
    if (closed_ || auto_compacts_ || is_damaged()) return;
    const uint64_t files = statistics().level0_files;
    if (files >= kLevel0FilesMax) {
      logger_.warn("compactions were off and begin again store={} files_to_sort={}",
                   state_.directory, files);
      set_auto_compaction(true, [](Result<void>) {});  // refused: the next look tries again
    }
    watch_level0();
  });
}

void RocksStore::verify(std::move_only_function<void(Result<ScrubSummary>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  scrub_.run_now(std::move(done));
}

StoreStatistics RocksStore::statistics() {
  StoreStatistics statistics;
  statistics.scrubbed_files = scrub_.figures().files;
  statistics.scrubbed_bytes = scrub_.figures().bytes;
  statistics.damaged_files = scrub_.figures().damaged_files;
  statistics.block_cache_hits = block_reads_.hits;
  statistics.block_cache_misses = block_reads_.misses;
  statistics.block_cache_hits_per_s = block_rates_.hits.per_second();
  statistics.block_cache_requests_per_s = block_rates_.requests.per_second();
  // The rest would need the database.
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
  // To others both mean the same: it does not keep up.
  statistics.writes_stopped =
      turn_.behind() || figure(rocksdb::DB::Properties::kIsWriteStopped) != 0;
  statistics.delayed_write_bytes_per_s = figure(rocksdb::DB::Properties::kActualDelayedWriteRate);
  // RocksDB has this one as a text only.
  std::string files;
  if (db().GetProperty(rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0", &files))
    std::from_chars(files.data(), files.data() + files.size(), statistics.level0_files);
  statistics.compactions_running = figure(rocksdb::DB::Properties::kNumRunningCompactions);
  statistics.flushes_running = figure(rocksdb::DB::Properties::kNumRunningFlushes);
  statistics.background_errors = figure(rocksdb::DB::Properties::kBackgroundErrors);
  statistics.writes_paced_us = turn_.figures().paced_us;
  statistics.corruptions = corruptions_ + state_.merges->undecodable_values.load();
  statistics.row_cache_bytes = row_cache_.figures().bytes;
  statistics.row_cache_hits = row_cache_.figures().hits;
  statistics.row_cache_misses = row_cache_.figures().misses;
  statistics.row_cache_hits_per_s = row_rates_.hits.per_second();
  statistics.row_cache_requests_per_s = row_rates_.requests.per_second();
  statistics.vector_graphs = graphs_.count();
  statistics.vector_graph_bytes = graphs_.bytes();
  statistics.vector_graph_searches = graph_searches_;
  statistics.vector_scans = vector_scans_;
  statistics.values_written_back = turn_.figures().written_back;
  return statistics;
}

int64_t RocksStore::high_water_timestamp(TableIncarnation incarnation, RingPosition position) {
  const TableKnowledge* table = state_.tables.find(incarnation);
  return table == nullptr ? kNoTimestamp : table->marks.mark(bucket_of(incarnation, position));
}

// What is queued is written, unless the disk has failed: then nothing more must be synced or
// closed.
Result<void> RocksStore::close() {
  if (closed_) return {};
  // First, so that nothing begins any more while what is left is written.
  closed_ = true;
  health_.stop();
  scrub_.stop();
  state_.background_errors->deliver_to(nullptr);
  if (state_.database == nullptr)  // whoever opens it anew closes it
    return fail(ErrorCode::kIo, "{}", health_.status().reason);
  // Waits for jobs that are inside; later ones do not begin.
  state_.database->shut_out_jobs();
  const Result<void> written = turn_.finish();
  if (health_.status().state == StoreState::kFailed)  // not even that
    return fail(ErrorCode::kIo, "{}", health_.status().reason);
  const Result<void> closed = state_.database->close();
  return written ? closed : written;
}

bool RocksStore::is_retired(TableIncarnation incarnation) const {
  return !state_.retired.empty() && state_.retired.contains(incarnation.value) &&
         !TETRAD_MUTANT(retired_readable);
}

std::optional<Error> RocksStore::unusable() const {
  if (closed_) return Error(ErrorCode::kCancelled, "the store is closed");
  if (state_.database == nullptr)
    return Error(ErrorCode::kIo, state_.directory + " is being opened anew");
  return std::nullopt;
}

StoreHealth::Actions RocksStore::health_actions() {
  StoreHealth::Actions actions;
  actions.refuse = [this](std::optional<Error> why) {
    const bool again = !why;
    // Taken again: what could not be written is.
    turn_.refuse(std::move(why));
    if (!again || state_.database == nullptr) return;
    for (const TableIncarnation incarnation : std::exchange(retired_unsaved_, {}))
      turn_.add_retired(incarnation);
  };
  // Posted: a listener may do anything, and this may be called inside of a write's callback.
  actions.changed = [this] {
    reactor_.post([this, alive = alive_] {
      if (*alive && status_changed_) status_changed_(status());
    });
  };
  actions.database = [this] { return state_.database; };
  actions.let_go = [this] { state_.database = nullptr; };
  actions.use = [this](std::shared_ptr<RocksDatabase> database) {
    state_.database = std::move(database);
    auto_compacts_ = true;  // it was opened with them
    turn_.use(state_.database);
    row_cache_.forget({});  // a write whose outcome was unknown may be in the log
    // Jobs that ended meanwhile have left their graphs half filled; the next search makes new ones.
    graphs_.forget_all();
    adds_noted_ = false;
  };
  actions.open = state_.open;
  return actions;
}

Scrub::Actions RocksStore::scrub_actions() {
  Scrub::Actions actions;
  // A store in trouble has better uses for its disk.
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

// Errors come on RocksDB's threads: they are taken up on the loop.
void RocksStore::listen_to(BackgroundErrors& errors) {
  errors.deliver_to([this, alive = std::weak_ptr<bool>(alive_), reactor = &reactor_](
                        const rocksdb::Status& error, BackgroundWork work) {
    reactor->post_from_any_thread([this, alive, error, work] {
      const auto still = alive.lock();
      if (still && *still && !closed_) health_.take(error, "flushing or compacting", work);
    });
  });
}

bool RocksStore::may_write(TableIncarnation incarnation, const WriteGuard& guard,
                           ApplyCallback& done) {
  // Cheapest first; the guard's deadline needs the clock.
  std::optional<Error> error = unusable();
  if (!error && is_retired(incarnation)) error = retired_error(incarnation).error();
  if (!error && !guard.may_write(reactor_.now_us())) [[unlikely]]
    error = refusal_of(guard, reactor_.now_us());
  if (!error) return true;
  done(std::unexpected(std::move(*error)));
  return false;
}

void RocksStore::add(const Mutation& mutation, bool may_put, WriteGuard guard, ApplyCallback done) {
  if (!may_write(mutation.incarnation, guard, done)) return;
  if (TETRAD_MUTANT(filter_raw_wall)) state_.filter->set_now_s(reactor_.wall_time_us() / 1'000'000);
  turn_.add(mutation, may_put, std::move(guard), std::move(done));
}

// Behind all earlier writes, so that a flush has what the caller has written.
void RocksStore::maintain(uint32_t lane, std::move_only_function<Result<void>(rocksdb::DB&)> work,
                          std::move_only_function<void(Result<void>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  turn_.after_writes(
      [this, alive = alive_, lane, work = std::move(work), done = std::move(done)]() mutable {
        if (!*alive) return done(closed_error());
        if (const auto why = unusable()) return done(std::unexpected(*why));
        in_maintenance<void>(
            lane,
            [database = state_.database, work = std::move(work)]() mutable {
              return work(database->db());
            },
            std::move(done));
      });
}

void RocksStore::delete_files_of(TableIncarnation incarnation) {
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

}  // namespace tetrad::storage
