// SPDX-License-Identifier: Apache-2.0
// From a folder to a store.
//
//   1. After a power cut the log is surveyed: where it ends, and whether the disk lost what it had
//      said was synced (log_chain.h). Such a store is damaged, and says so before step 2.
//   2. RocksDB opens and replays its log into files.
//   3. The store's own keys: retired incarnations, schema versions, sync records.
//   4. Marks and contents of tables, from the properties of all files. A file without them makes
//      everything possible for every table.
//   5. The store's life begins: its number is written and synced before the store is given out.
#include "storage/engine/compaction_log.h"
#include "storage/engine/rocks_store.h"

namespace tetrad::storage {
namespace {

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
    state.indexes.load(key, it->value());
    if (StoreViews::is_own_key(key)) state.own_view_keys.emplace_back(key, it->value());
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
  // Rows may come before the schema is known.
  for (const TableIncarnation incarnation : state.indexes.incarnations())
    state.tables.set_indexes(incarnation, state.indexes.find(incarnation));
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
                    std::shared_ptr<rocksdb::FileSystem> files, LogRecovery recovery,
                    std::shared_ptr<CompactionLog> compactions)
      : options_(options),
        recovery_(recovery),
        compactions_(std::move(compactions)),
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
                  errors = state.background_errors, settings = options_, compactions = compactions_,
                  recovery = recovery_](bool compacts) mutable {
      rocksdb::Options options = store_options(settings, shared, merges, filter);
      options.listeners.push_back(errors->listener());
      if (compactions != nullptr)
        options.listeners.push_back(make_compaction_listener(compactions));
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
  const std::shared_ptr<CompactionLog> compactions_;  // null: not noted
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
                                                       LogRecovery recovery,
                                                       std::shared_ptr<CompactionLog> compactions) {
  return std::make_unique<RocksStoreFactory>(options, std::move(logger), std::move(files), recovery,
                                             std::move(compactions));
}

}  // namespace tetrad::storage
