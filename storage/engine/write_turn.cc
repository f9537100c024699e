// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/write_turn.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/value_merge.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kRetryUs = 2'000;
constexpr size_t kBatchBytesKept = 1 << 20;  // a larger buffer is given back after its write

rocksdb::Slice slice_of(BytesView bytes) { return {bytes.data(), bytes.size()}; }

Bytes store_key(std::string_view what, TableIncarnation incarnation) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(what);
  w.u32(incarnation.value);
  return key;
}

/// No clustering key twice: then a Put and a Merge of one mutation never meet.
bool strictly_ascending(const std::vector<RowChange>& rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i].clustering_key <= rows[i - 1].clustering_key) return false;
  return true;
}

/// Plays a batch over values of some keys, as the merge operator would.
class PendingValues final : public rocksdb::WriteBatch::Handler {
 public:
  explicit PendingValues(ValuesNow& values) : values_(values) {}
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    if (auto* value = known(key)) *value = v.ToString();
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& key) override {
    if (auto* value = known(key)) value->reset();
    return rocksdb::Status::OK();
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    auto* value = known(key);
    if (value == nullptr) return rocksdb::Status::OK();
    const auto place = decode_storage_key({key.data(), key.size()});
    std::vector<BytesView> versions;
    if (*value) versions.push_back(**value);
    versions.emplace_back(v.data(), v.size());
    Bytes joined;
    merge_values(place ? place->kind : KeyKind::kRow, versions, joined);
    *value = std::move(joined);
    return rocksdb::Status::OK();
  }

 private:
  std::optional<Bytes>* known(const rocksdb::Slice& key) {
    const auto found = values_.find(key.ToString());
    return found == values_.end() || !found->second ? nullptr : &*found->second;
  }

  ValuesNow& values_;
};

}  // namespace

Bytes retired_key(TableIncarnation incarnation) { return store_key("retired", incarnation); }
Bytes schema_version_key(TableIncarnation incarnation) { return store_key("schema", incarnation); }

struct WriteTurn::Batch {
  rocksdb::WriteBatch writes;
  std::vector<Store::ApplyCallback> done;
  uint64_t last_number = 0;  // of its mutations

  uint64_t bytes() const { return writes.GetDataSize(); }
  bool empty() const { return writes.Count() == 0 && done.empty(); }
};

/// A batch on its way through the I/O pool.
struct WriteTurn::GroupJob {
  std::unique_ptr<Batch> batch;
  bool written = false;  // by the pool's thread; read after jobs are shut out or when it is done
  rocksdb::Status status;
};

WriteTurn::WriteTurn(std::shared_ptr<RocksDatabase> database, base::Reactor& reactor,
                     base::IoPool& pool, uint32_t lane, const StoreOptions& options,
                     TablesKnown& tables, Logger logger)
    : database_(std::move(database)),
      reactor_(reactor),
      pool_(pool),
      lane_(lane),
      options_(options),
      tables_(tables),
      logger_(std::move(logger)),
      alive_(std::make_shared<bool>(true)),
      current_(std::make_unique<Batch>()),
      last_number_(kBucketCount) {}

WriteTurn::~WriteTurn() {
  *alive_ = false;
  if (sync_timer_ != 0) reactor_.cancel(sync_timer_);
  if (retry_timer_ != 0) reactor_.cancel(retry_timer_);
}

// Every record is decoded once before anything is added, so that a mutation is taken whole or not
// at all. Returns the facts of everything together; facts_ holds those of the rows.
Result<RecordFacts> WriteTurn::look_at(const Mutation& mutation) {
  RecordFacts all;
  const auto join = [&](const RecordFacts& facts) {
    all.latest_us = std::max(all.latest_us, facts.latest_us);
    all.oldest_us = std::min(all.oldest_us, facts.oldest_us);
    all.dead += facts.dead;
  };
  facts_.clear();
  for (const RowChange& row : mutation.rows) {
    TETRAD_TRY(const RecordFacts facts, facts_of(row.record));
    all.has_deletion |= facts.has_deletion;
    join(facts);
    facts_.push_back(facts);
  }
  if (!mutation.header.empty()) {
    TETRAD_TRY(const RecordFacts facts, facts_of(mutation.header));
    join(facts);
  }
  for (const RangeTombstone& tombstone : mutation.range_tombstones) {
    if (!tombstone.deletion.present())
      return fail(ErrorCode::kCorruption, "range tombstone without a timestamp");
    all.latest_us = std::max(all.latest_us, tombstone.deletion.timestamp_us);
    all.oldest_us = std::min(all.oldest_us, tombstone.deletion.timestamp_us);
    ++all.dead;
  }
  return all;
}

void WriteTurn::add(const Mutation& mutation, bool may_put, Store::ApplyCallback done) {
  if (failure_) return done(std::unexpected(*failure_));
  if (full())
    return done(fail(ErrorCode::kOverloaded, "{} bytes of writes wait for the disk, at most {}",
                     queued_bytes_ + current_->bytes(), options_.write_queue_max_bytes));
  if (mutation.incarnation == kStoreIncarnation ||
      mutation.partition_key.size() > kPartitionKeyBytesMax)
    return done(check_mutation(mutation));
  const auto facts = look_at(mutation);
  if (!facts) return done(std::unexpected(facts.error()));

  rocksdb::WriteBatch& writes = current_->writes;
  TableKnowledge& table = tables_.at(mutation.incarnation);
  if (mutation.schema_version.value > table.schema_version) {
    table.schema_version = mutation.schema_version.value;
    Bytes version;
    base::ByteWriter(version).u64(table.schema_version);
    writes.Put(schema_version_key(mutation.incarnation), version);
  }
  table.dead += facts->dead;
  const uint16_t bucket = bucket_of(mutation.incarnation, mutation.position);
  // A row of an older schema version may lack a column that is stored already.
  const bool merged = !may_put;
  const bool known_version =
      mutation.schema_version.value == table.schema_version || TETRAD_MUTANT(put_other_version);
  may_put =
      (may_put || TETRAD_MUTANT(ingest_put)) && known_version && strictly_ascending(mutation.rows);

  key_.clear();
  append_partition_prefix(key_, mutation.incarnation, mutation.position, mutation.partition_key);
  const size_t prefix_bytes = key_.size();
  const bool watched = watches_.any();
  const auto key_of = [&](KeyKind kind, BytesView clustering_key) {
    key_.resize(prefix_bytes);
    key_.push_back(static_cast<char>(kind));
    key_.append(clustering_key);
    if (watched) [[unlikely]]
      watches_.note_key(key_);
    return slice_of(key_);
  };
  if (!mutation.header.empty()) {
    table.contents.headers = true;
    writes.Merge(key_of(KeyKind::kHeader, {}), mutation.header);
    ++figures_.merges;
  }
  if (!mutation.range_tombstones.empty()) {
    for (const auto& [start, set] : tombstone_values(mutation)) {
      using Seen = TableMarks::Seen;
      const bool straddles = start.starts_with(kStraddlingPlace);
      table.marks.see(bucket, straddles ? Seen::kStraddlingTombstones : Seen::kRangeTombstones,
                      tables_.budget());
      writes.Merge(key_of(KeyKind::kRangeTombstone, start), set);
      ++figures_.merges;
    }
  }
  const bool may_revive = dead_runs_.knows(bucket);
  for (size_t i = 0; i < mutation.rows.size(); ++i) {
    const RowChange& row = mutation.rows[i];
    if (may_revive && facts_[i].may_live) [[unlikely]]
      dead_runs_.note(BytesView(key_).substr(0, prefix_bytes), row.clustering_key, next_number_);
    const rocksdb::Slice key = key_of(KeyKind::kRow, row.clustering_key);
    if (may_put && row.complete && table.marks.may_put(bucket, facts_[i])) {
      writes.Put(key, row.record);
      ++figures_.puts;
    } else {
      writes.Merge(key, row.record);
      ++figures_.merges;
    }
  }
  if (watched) [[unlikely]]
    watches_.note(bucket, facts->oldest_us);
  current_->last_number = last_number_[bucket] = next_number_++;
  if (!merged || !TETRAD_MUTANT(ingest_keeps_marks))
    table.marks.raise(bucket, facts->latest_us, tables_.budget());
  if (facts->has_deletion)
    table.marks.see(bucket, TableMarks::Seen::kRowTombstones, tables_.budget());
  current_->done.push_back(std::move(done));
  begin_turn();
}

void WriteTurn::write_back(const std::vector<MergedValue>& values, uint64_t seen) {
  if (failure_ || behind()) return;
  bool any = false;
  for (const auto& [key, value] : values) {
    const auto place = decode_storage_key(key);
    if (!place) continue;
    // What came since is behind this value in the log or will be: the Put would hide it.
    const bool written_since = last_number_[bucket_of(place->incarnation, place->position)] > seen;
    if (written_since && !TETRAD_MUTANT(writes_back_blindly)) continue;
    current_->writes.Put(slice_of(key), slice_of(value));
    ++figures_.written_back;
    any = true;
  }
  if (any) begin_turn();
}

void WriteTurn::replace(const std::vector<SweptKey>& keys) {
  TETRAD_ASSERT(!failure_ && parked_.empty() && in_flight_ == nullptr);
  for (const SweptKey& swept : keys) {
    const auto place = decode_storage_key(swept.key);
    TETRAD_ASSERT(place.has_value());
    if (swept.value) {
      current_->writes.Put(slice_of(swept.key), slice_of(*swept.value));
    } else {
      current_->writes.Delete(slice_of(swept.key));
    }
    if (watches_.any()) watches_.note_key(swept.key);
    current_->last_number = last_number_[bucket_of(place->incarnation, place->position)] =
        next_number_++;
  }
  if (!keys.empty()) begin_turn();
}

bool WriteTurn::full() const {
  return queued_bytes_ + current_->bytes() > options_.write_queue_max_bytes;
}

void WriteTurn::when_written(base::Callback then) {
  if (written_through_ + 1 == next_number_) return then();
  after_writes(std::move(then));
}

void WriteTurn::when_settled(base::Callback then) {
  if (failure_ || (parked_.empty() && in_flight_ == nullptr)) return then();
  settled_.push_back(std::move(then));
}

void WriteTurn::run_settled() {
  const std::shared_ptr<bool> alive = alive_;
  for (base::Callback& then : std::exchange(settled_, {})) {
    then();
    if (!*alive) return;
  }
}

void WriteTurn::add_pending(ValuesNow& values) const {
  TETRAD_ASSERT(parked_.empty() && in_flight_ == nullptr);
  PendingValues pending(values);
  const rocksdb::Status status = current_->writes.Iterate(&pending);
  TETRAD_ASSERT(status.ok());  // it is our own batch
}

void WriteTurn::see_written(const Batch& batch) {
  written_through_ = std::max(written_through_, batch.last_number);
}

void WriteTurn::add_retired(TableIncarnation incarnation) {
  if (failure_) return;
  current_->writes.Put(retired_key(incarnation), rocksdb::Slice());
  begin_turn();
}

void WriteTurn::after_writes(base::Callback then) {
  if (failure_) return reactor_.post(std::move(then));
  current_->done.push_back([then = std::move(then)](const Result<void>&) mutable { then(); });
  begin_turn();
}

void WriteTurn::begin_turn() {
  if (turn_begun_) return;
  turn_begun_ = true;
  reactor_.at_turn_end([this, alive = alive_] {
    if (*alive) end_turn();
  });
}

void WriteTurn::end_turn() {
  turn_begun_ = false;
  if (failure_) return complete(*std::exchange(current_, std::make_unique<Batch>()), {});
  if (current_->empty()) return;
  ++figures_.batches;
  options_.sync == CommitLogSync::kGroup ? write_group() : write_periodic();
}

// ---- periodic ----

void WriteTurn::write_periodic() {
  parked_.push_back(std::exchange(current_, std::make_unique<Batch>()));
  queued_bytes_ += parked_.back()->bytes();
  if (parked_.size() == 1) {
    write_parked();
  } else {
    ++figures_.parked;
  }
}

void WriteTurn::write_parked() {
  rocksdb::WriteOptions write;
  write.no_slowdown = true;
  while (!parked_.empty() && !failure_) {
    Batch& batch = *parked_.front();
    const rocksdb::Status status = database_->db().Write(write, &batch.writes);
    if (status.IsIncomplete()) {  // RocksDB is behind: flushes and compactions have to catch up
      ++figures_.parked;
      retry_timer_ = reactor_.call_at(reactor_.now_us() + kRetryUs, [this] {
        retry_timer_ = 0;
        write_parked();
      });
      return;
    }
    if (!status.ok()) return take_failure(error_of(status, "writing"));
    queued_bytes_ -= batch.bytes();
    see_written(batch);
    const std::unique_ptr<Batch> written = std::move(parked_.front());
    parked_.pop_front();
    unsynced_ = true;
    arm_sync();
    const std::shared_ptr<bool> alive = alive_;
    if (parked_.empty() && !settled_.empty()) run_settled();
    if (!*alive) return;
    complete(*written, {});
    if (!*alive) return;
    if (parked_.empty() && current_->empty() && written->bytes() <= kBatchBytesKept) {
      written->writes.Clear();  // its buffer serves again
      std::swap(current_->writes, written->writes);
    }
  }
}

void WriteTurn::arm_sync() {
  if (sync_timer_ != 0 || syncing_) return;
  sync_timer_ = reactor_.call_at(reactor_.now_us() + options_.sync_period_us, [this] {
    sync_timer_ = 0;
    start_sync();
  });
}

void WriteTurn::start_sync() {
  syncing_ = true;
  unsynced_ = false;
  ++figures_.syncs;
  const auto synced = std::make_shared<Result<void>>();
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, synced] {
        if (const RocksDatabase::Visit visit(*database); visit) *synced = database->sync_log();
      },
      [this, alive = alive_, synced] {
        if (!*alive) return;
        syncing_ = false;
        if (!*synced) return take_failure(synced->error());
        if (unsynced_) arm_sync();
      });
}

// ---- group ----

void WriteTurn::write_group() {
  if (in_flight_ != nullptr || current_->empty()) return;  // what came meanwhile goes next
  in_flight_ = std::make_shared<GroupJob>();
  in_flight_->batch = std::exchange(current_, std::make_unique<Batch>());
  queued_bytes_ += in_flight_->batch->bytes();
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, job = in_flight_] {
        const RocksDatabase::Visit visit(*database);
        if (!visit || job->written) return;
        rocksdb::WriteOptions write;
        write.sync = true;
        job->status = database->db().Write(write, &job->batch->writes);
        job->written = true;
      },
      [this, alive = alive_, job = in_flight_] {
        if (*alive) group_written(job);
      });
}

void WriteTurn::group_written(const std::shared_ptr<GroupJob>& job) {
  if (job != in_flight_) return;  // finish() was quicker
  in_flight_.reset();
  queued_bytes_ -= job->batch->bytes();
  ++figures_.syncs;
  if (!job->status.ok()) {
    take_failure(error_of(job->status, "writing"));
    return complete(*job->batch, {});
  }
  see_written(*job->batch);
  const std::shared_ptr<bool> alive = alive_;
  if (!settled_.empty()) run_settled();
  if (!*alive) return;
  complete(*job->batch, {});
  if (*alive) write_group();
}

// ---- the end ----

void WriteTurn::complete(Batch& batch, const Result<void>& result) {
  std::vector<Store::ApplyCallback> done = std::move(batch.done);
  batch.done.clear();
  for (Store::ApplyCallback& callback : done) {
    if (failure_) {
      callback(std::unexpected(*failure_));
    } else {
      callback(result);
    }
  }
}

void WriteTurn::take_failure(Error error) {
  if (failure_) return;
  error.message += "; the store takes no more writes";
  if (error.code != ErrorCode::kCorruption) error.code = ErrorCode::kIo;
  logger_.error("store_failed error=\"{}\"", error.message);
  failure_ = std::move(error);
  if (failed_) failed_(*failure_);
  queued_bytes_ = 0;
  auto parked = std::exchange(parked_, {});
  parked.push_back(std::exchange(current_, std::make_unique<Batch>()));
  for (const auto& batch : parked) complete(*batch, {});
  run_settled();
}

Result<void> WriteTurn::finish() {
  if (sync_timer_ != 0) reactor_.cancel(std::exchange(sync_timer_, 0));
  if (retry_timer_ != 0) reactor_.cancel(std::exchange(retry_timer_, 0));
  std::deque<std::unique_ptr<Batch>> waiting = std::exchange(parked_, {});
  if (in_flight_ != nullptr) {
    const std::shared_ptr<GroupJob> job = std::exchange(in_flight_, nullptr);
    if (job->written && !job->status.ok()) take_failure(error_of(job->status, "writing"));
    if (job->written) {
      complete(*job->batch, {});
    } else {
      job->written = true;  // the pool's thread leaves it alone
      waiting.push_back(std::move(job->batch));
    }
  }
  waiting.push_back(std::exchange(current_, std::make_unique<Batch>()));
  for (const auto& batch : waiting) {
    if (batch->empty()) continue;
    if (!failure_) {
      rocksdb::WriteOptions write;
      write.sync = options_.sync == CommitLogSync::kGroup;
      const rocksdb::Status status = database_->db().Write(write, &batch->writes);
      if (!status.ok()) take_failure(error_of(status, "writing"));
    }
    complete(*batch, {});
  }
  queued_bytes_ = 0;
  run_settled();
  if (failure_) return std::unexpected(*failure_);
  failure_ = Error(ErrorCode::kCancelled, "the store is closed");
  return {};
}

}  // namespace tetrad::storage
