// SPDX-License-Identifier: Apache-2.0
// The model store: an ordered map in the place of RocksDB. It keeps the contract of Store with the
// simplest means, so that a difference from RocksStore in a test is a defect of one of the two.
//
// What RocksStore does on another thread happens here in a later event of the loop (later()): other
// events come in between, as they may there. Each change of the map is one batch of MemoryArea,
// which a simulated power cut undoes from its end.
#include "storage/engine/memory_store.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/engine/latest_timestamp.h"
#include "storage/engine/map_view.h"
#include "storage/engine/memory_store_impl.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/range_export.h"
#include "storage/engine/table_marks.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kIdleRecordUs = 60'000'000, kFirstRecordUs = 1'000'000;

Bytes retired_key(TableIncarnation incarnation) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw("retired");
  w.u32(incarnation.value);
  return key;
}

}  // namespace

MemoryStore::MemoryStore(std::shared_ptr<MemoryDisk> disk, MemoryArea& area,
                         const StoreOptions& options, base::Reactor& reactor, base::IoPool& pool)
    : disk_(std::move(disk)),
      area_(area),
      options_(options),
      reactor_(reactor),
      pool_(pool),
      alive_(std::make_shared<bool>(true)),
      view_side_(*this),
      views_(view_side_, alive_) {
  // What an earlier life has left: retired tables, sync records, builds of indexes, tasks of views.
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
  // After loading: the new life's numbers begin behind those of all lives before.
  records_.begin_life(area_.log_end(), area_.hole.value_or(area_.log_end()));
  area_.hole.reset();
  area_.data.insert_or_assign(records_.life_entry().first, records_.life_entry().second);
  views_.begin_life(recovered().life);
}

MemoryStore::~MemoryStore() {
  *alive_ = false;
  if (sync_timer_ != 0) reactor_.cancel(sync_timer_);
  if (record_timer_ != 0) reactor_.cancel(record_timer_);
}

void MemoryStore::latest_timestamp(ReadCommand command, base::Deadline,
                                   std::move_only_function<void(Result<int64_t>)> done) {
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  MapView view(area_.data);
  done(latest_timestamp_of(view, command));
}

void MemoryStore::read(ReadCommand command, base::Deadline, ReadCallback done) {
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  if (command.by_index) return done(read_narrowed(command));
  if (command.nearest) return done(read_nearest(std::move(command)));
  MapView view(area_.data);
  // TableContents{} says that anything may be there: the model never skips a look-up.
  done(read_partitions(view, command, TableContents{}, options_.read_keys_max));
}

std::optional<Result<ReadEnd>> MemoryStore::read_here(const ReadCommand& command, RowSink& sink) {
  if (is_retired(command.incarnation)) return retired_error(command.incarnation);
  if (command.by_index || command.nearest) return std::nullopt;
  MapView view(area_.data);
  return read_partitions_into(view, command, TableContents{}, sink, options_.read_keys_max);
}

uint64_t MemoryStore::approximate_bytes(TableIncarnation incarnation, const RingRange& range) {
  MapView view(area_.data);
  uint64_t bytes = 0;
  if (const auto samples = scan_sizes(view, incarnation, range, 1))
    for (const SizeSample& sample : *samples) bytes += sample.bytes;
  return bytes;
}

void MemoryStore::sample_sizes(
    TableIncarnation incarnation, const RingRange& range, size_t count,
    std::move_only_function<void(Result<std::vector<SizeSample>>)> done) {
  later([this, incarnation, range, count, done = std::move(done)]() mutable {
    MapView view(area_.data);
    done(scan_sizes(view, incarnation, range, count));
  });
}

void MemoryStore::retire(TableIncarnation incarnation) {
  if (is_retired(incarnation) || incarnation == kStoreIncarnation) return;
  commit();
  retired_.insert(incarnation.value);
  std::vector<MemoryArea::Operation> batch;
  batch.emplace_back(retired_key(incarnation), Bytes());
  const KeyRange keys = keys_of_incarnation(incarnation);
  for (auto it = area_.data.lower_bound(keys.start); it != area_.data.end() && it->first < keys.end;
       ++it)
    batch.emplace_back(it->first, std::nullopt);
  // In one batch with the mark: after a crash a table is retired and empty, or neither.
  for (Bytes& key : indexes_.erase(incarnation)) batch.emplace_back(std::move(key), std::nullopt);
  for (Bytes& key : views_.erase(incarnation).erased)
    batch.emplace_back(std::move(key), std::nullopt);
  erase_claims(claims_of_table(incarnation), batch);
  erase_claims(view_tasks_of_table(incarnation), batch);
  area_.write(std::move(batch));
  arm_sync();
}

void MemoryStore::export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                               uint64_t bytes_max, ExportParts parts, ExportCallback done) {
  if (is_retired(incarnation)) return done(retired_error(incarnation));
  later([this, incarnation, range, after = std::move(after), bytes_max, parts,
         done = std::move(done)]() mutable {
    MapView view(area_.data);
    done(export_page(view, incarnation, {area_.schema_version}, range, after, bytes_max, parts));
  });
}

void MemoryStore::sweep(SweepCommand command, SweepPlace from,
                        std::move_only_function<void(Result<SweepPage>)> done) {
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  // A watch opened anew has missed writes: then the partition counts as disturbed.
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

SyncNumbers MemoryStore::sync_numbers() const {
  return {recovered().life, area_.log_end(), records_.durable()};
}

void MemoryStore::sync(std::move_only_function<void(Result<void>)> done) {
  later([this, done = std::move(done)]() mutable {
    commit();
    sync_area();
    done({});
  });
}

void MemoryStore::set_sync_clock(std::function<std::optional<int64_t>()> now_us) {
  records_.set_clock(std::move(now_us));
  if (!closed_ && record_timer_ == 0) keep_records();
}

void MemoryStore::recent(RecentCommand command, Bytes after, uint64_t bytes_max,
                         std::move_only_function<void(Result<RecentPage>)> done) {
  later([this, command = std::move(command), after = std::move(after), bytes_max,
         done = std::move(done)]() mutable {
    commit();
    done(read_recent(std::move(command), after, bytes_max));
  });
}

void MemoryStore::flush(std::move_only_function<void(Result<void>)> done) {
  later([this, done = std::move(done)]() mutable {
    commit();
    sync_area();
    done({});
  });
}

void MemoryStore::compact(std::vector<TableIncarnation>,
                          std::move_only_function<void(Result<void>)> done) {
  later([done = std::move(done)]() mutable { done({}); });
}

void MemoryStore::keep_files(KeepCommand, std::move_only_function<void(Result<KeptFiles>)> done) {
  later([done = std::move(done)]() mutable { done(KeptFiles()); });  // it has none
}

void MemoryStore::verify(std::move_only_function<void(Result<ScrubSummary>)> done) {
  done(ScrubSummary());  // it has no files
}

StoreStatistics MemoryStore::statistics() {
  StoreStatistics statistics;
  // All of it is "memtable", as nothing is flushed.
  statistics.estimated_keys = area_.data.size();
  for (const auto& [key, value] : area_.data)
    statistics.memtable_bytes += key.size() + value.size();
  return statistics;
}

int64_t MemoryStore::high_water_timestamp(TableIncarnation incarnation, RingPosition position) {
  const auto mark = area_.marks.find(bucket_of(incarnation, position));
  return mark == area_.marks.end() ? kNoTimestamp : mark->second;
}

Result<void> MemoryStore::close() {
  commit();
  sync_area();
  closed_ = true;
  return {};
}

Result<SweepPage> MemoryStore::write_swept(Result<Swept>& swept, const SweepCommand& command,
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
  // Every value is at hand, so no key is cold and one try is enough.
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

Result<Store::RecentPage> MemoryStore::read_recent(RecentCommand command, BytesView after,
                                                   uint64_t bytes_max) const {
  RecentPlace place;
  if (!after.empty()) {
    TETRAD_TRY(place, RecentPlace::decode(after, recovered().life));
  } else if (const auto window = records_.window(command.since_us, command.until_us)) {
    place = {recovered().life, window->from, 0, std::min(window->until, area_.log_end()), {}};
  }
  // Older parts of the log are given up with the sync records (sync_area()).
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

void MemoryStore::sync_area() {
  const auto begun = records_.begin(area_.log_end());
  area_.sync();
  records_.end(begun, begun.number);
  for (; area_.log_start < records_.oldest_number() && !area_.log.empty(); ++area_.log_start)
    area_.log.pop_front();
}

void MemoryStore::keep_records() {
  const int64_t every_us = records_.has_written() ? kIdleRecordUs : kFirstRecordUs;
  record_timer_ = reactor_.call_at(reactor_.now_us() + every_us, [this] { keep_records(); });
  // Writes of this turn take the record with them.
  if (closed_ || !waiting_.empty()) return;
  sync_area();
  std::vector<MemoryArea::Operation> batch;
  add_record(batch);
  if (batch.empty()) return;
  area_.write(std::move(batch));
  arm_sync();
}

void MemoryStore::add_record(std::vector<MemoryArea::Operation>& batch) {
  if (TETRAD_MUTANT(sync_record_early)) records_.end(records_.begin(area_.log_end()), 0);
  if (!records_.is_due()) return;
  auto [key, value] = records_.take_due();
  batch.emplace_back(std::move(key), std::move(value));
}

bool MemoryStore::is_retired(TableIncarnation incarnation) const {
  return retired_.contains(incarnation.value);
}

void MemoryStore::later(base::Callback work) {
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, 0, [] {},
      // The empty work takes the pool's time; what is to be done runs on the loop when it ends.
      [alive = alive_, work = std::move(work)]() mutable {
        if (*alive) work();
      });
}

void MemoryStore::arm_sync() {
  if (sync_timer_ != 0) return;
  sync_timer_ = reactor_.call_at(reactor_.now_us() + options_.sync_period_us, [this] {
    sync_timer_ = 0;
    sync_area();
  });
}

namespace {

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
