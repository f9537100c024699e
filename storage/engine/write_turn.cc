// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/write_turn.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/engine/guarded_status.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/value_merge.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {
namespace {

constexpr size_t kBatchBytesKept = 1 << 20;  // a larger buffer is given back after its write
// While RocksDB is behind. A batch takes in what comes until it is that large.
constexpr size_t kPacedBatchBytes = 256 << 10;
constexpr int64_t kStoppedLookUs = 2'000, kIdleLookUs = 50'000;
// A store that nothing is written to writes and syncs a record of it so often; it looks more often
// until the first one of its life.
constexpr int64_t kIdleRecordUs = 60'000'000, kFirstRecordUs = 1'000'000;
// After that long the disk hangs.
constexpr int64_t kHungUs = 5'000'000, kHungLookUs = 1'000'000;
constexpr int64_t kDeadlineLookUs = 10'000;

rocksdb::Slice slice_of(BytesView bytes) { return {bytes.data(), bytes.size()}; }

Bytes store_key(std::string_view what, TableIncarnation incarnation) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(what);
  w.u32(incarnation.value);
  return key;
}

/// Copies the records of a batch but for some.
class KeptRecords final : public rocksdb::WriteBatch::Handler {
 public:
  /// Ascending, disjoint [begin, end) of records that are left out.
  using Gaps = std::vector<std::pair<uint32_t, uint32_t>>;
  explicit KeptRecords(const Gaps& gaps) : gaps_(gaps) {}
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    return is_kept() ? kept.Put(key, v) : rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& key) override {
    return is_kept() ? kept.Delete(key) : rocksdb::Status::OK();
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    return is_kept() ? kept.Merge(key, v) : rocksdb::Status::OK();
  }

  rocksdb::WriteBatch kept;

 private:
  bool is_kept() {
    const uint32_t here = next_++;
    while (gap_ < gaps_.size() && gaps_[gap_].second <= here) ++gap_;
    return gap_ == gaps_.size() || here < gaps_[gap_].first;
  }

  const Gaps& gaps_;
  size_t gap_ = 0;
  uint32_t next_ = 0;
};

uint64_t end_of_log(const rocksdb::DB& db) { return db.GetLatestSequenceNumber() + 1; }

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

/// The part of a batch that is one mutation's or one sweep's, in the order of its records; or one
/// who waits for the batch, without records. Records between spans are the store's own.
struct WriteTurn::Span {
  Store::ApplyCallback done;  // null: it was answered
  WriteGuard guard;
  uint32_t begin = 0, end = 0;  // records
  bool is_sweep = false;        // made of what was in the batch before it
  uint32_t registers = kNone;   // place of their key in the batch

  static constexpr uint32_t kNone = ~uint32_t{0};
};

struct WriteTurn::Batch {
  rocksdb::WriteBatch writes;
  std::vector<Span> spans;
  uint64_t last_number = 0;  // of its mutations
  /// No span that is to be answered has an earlier one.
  base::MonotonicUs earliest_deadline_us = WriteGuard::kNever;
  bool waited = false;  // beyond the turn of its mutations
  struct Registers {
    Bytes key;
    bool synced;  // their write has not ended before it is on the disk
  };
  std::vector<Registers> registers;                        // that it writes
  std::shared_ptr<RegistersUnderWay> registers_under_way;  // where there are some

  uint64_t bytes() const { return writes.GetDataSize(); }
  bool empty() const { return writes.Count() == 0 && spans.empty(); }
  void add_span(Store::ApplyCallback done, WriteGuard guard, uint32_t begin, bool is_sweep) {
    TETRAD_ASSERT(begin <= writes.Count());
    TETRAD_ASSERT(spans.empty() || spans.back().end <= begin);  // ascending, disjoint
    earliest_deadline_us = std::min(earliest_deadline_us, guard.deadline_us);
    spans.push_back({std::move(done), std::move(guard), begin, writes.Count(), is_sweep});
  }
  /// Of the last span.
  void add_registers(Bytes key, bool synced, const std::shared_ptr<RegistersUnderWay>& under_way) {
    TETRAD_ASSERT(!spans.empty() && spans.back().registers == Span::kNone);
    under_way->begin(key);
    registers_under_way = under_way;
    spans.back().registers = static_cast<uint32_t>(registers.size());
    registers.push_back({std::move(key), synced});
  }
  void end_registers(Span& span) {
    const uint32_t place = std::exchange(span.registers, Span::kNone);
    if (place != Span::kNone) registers_under_way->end(registers[place].key);
  }
};

/// A batch on its way through the commit thread.
struct WriteTurn::Job {
  std::unique_ptr<Batch> batch;
  bool sync = false;
  bool written = false;  // by the pool's thread; read after jobs are shut out or when it is done
  rocksdb::Status status;
  SyncRecords::Begun begun;
  uint64_t log_end = 0;  // behind it
};

WriteTurn::WriteTurn(std::shared_ptr<RocksDatabase> database, base::Reactor& reactor,
                     base::IoPool& pool, uint32_t lane, const StoreOptions& options,
                     TablesKnown& tables, SyncRecords& records, Logger logger)
    : database_(std::move(database)),
      reactor_(reactor),
      pool_(pool),
      lane_(lane),
      options_(options),
      tables_(tables),
      records_(records),
      logger_(std::move(logger)),
      alive_(std::make_shared<bool>(true)),
      current_(std::make_unique<Batch>()),
      log_end_(end_of_log(database_->db())),
      last_number_(kBucketCount) {}

WriteTurn::~WriteTurn() {
  *alive_ = false;
  if (sync_timer_ != 0) reactor_.cancel(sync_timer_);
  if (pace_timer_ != 0) reactor_.cancel(pace_timer_);
  if (record_timer_ != 0) reactor_.cancel(record_timer_);
  if (hung_timer_ != 0) reactor_.cancel(hung_timer_);
  if (deadline_timer_ != 0) reactor_.cancel(deadline_timer_);
  if (in_flight_ != nullptr) in_flight_->batch->spans.clear();  // passes go back on this thread
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

bool WriteTurn::takes(Store::ApplyCallback& done) {
  if (refusal_) {
    done(std::unexpected(*refusal_));
    return false;
  }
  if (full()) {
    done(fail(ErrorCode::kOverloaded, "{} bytes of writes wait for the disk, at most {}",
              queued_bytes_ + current_->bytes(), options_.write_queue_max_bytes));
    return false;
  }
  if (behind() && pace_.is_overloaded(queued_bytes_ + current_->bytes(), reactor_.now_us())) {
    done(fail(ErrorCode::kOverloaded,
              "flushes and compactions are behind the writes; {} bytes wait already",
              queued_bytes_ + current_->bytes()));
    return false;
  }
  return true;
}

void WriteTurn::add(const Mutation& mutation, bool may_put, WriteGuard guard,
                    Store::ApplyCallback done) {
  if (!takes(done)) return;
  if (mutation.incarnation == kStoreIncarnation ||
      mutation.partition_key.size() > kPartitionKeyBytesMax)
    return done(check_mutation(mutation));
  const auto facts = look_at(mutation);
  if (!facts) return done(std::unexpected(facts.error()));
  if (!mutation.registers.empty()) [[unlikely]] {
    if (may_put) return done(fail(ErrorCode::kInvalid, "Paxos registers come in streams only"));
    return import_registers(mutation, std::move(guard), std::move(done));
  }
  TableKnowledge& table = table_of(mutation);
  const uint32_t begin = current_->writes.Count();
  add_rows(mutation, table, may_put, *facts);
  current_->add_span(std::move(done), std::move(guard), begin, false);
  begin_turn();
}

TableKnowledge& WriteTurn::table_of(const Mutation& mutation) {
  TableKnowledge& table = tables_.at(mutation.incarnation);
  if (mutation.schema_version.value > table.schema_version) {
    table.schema_version = mutation.schema_version.value;
    Bytes version;
    base::ByteWriter(version).u64(table.schema_version);
    current_->writes.Put(schema_version_key(mutation.incarnation), version);
  }
  return table;
}

void WriteTurn::add_rows(const Mutation& mutation, TableKnowledge& table, bool may_put,
                         const RecordFacts& facts) {
  rocksdb::WriteBatch& writes = current_->writes;
  table.dead += facts.dead;
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
    watches_.note(bucket, facts.oldest_us);
  current_->last_number = last_number_[bucket] = next_number_++;
  if (!merged || !TETRAD_MUTANT(ingest_keeps_marks))
    table.marks.raise(bucket, facts.latest_us, tables_.budget());
  if (facts.has_deletion)
    table.marks.see(bucket, TableMarks::Seen::kRowTombstones, tables_.budget());
}

void WriteTurn::add_registers(const RegistersWrite& write, WriteGuard guard,
                              Store::ApplyCallback done) {
  if (!takes(done)) return;
  if (auto checked = check_registers_write(write); !checked) return done(std::move(checked));
  Bytes key = registers_key(write.partition);
  if (writes_registers(key))
    return done(fail(ErrorCode::kOverloaded,
                     "another write of the partition's Paxos registers is under way"));
  Bytes value;
  encode_registers(write.registers, value);
  const bool synced = write.synced && !TETRAD_MUTANT(registers_unsynced);
  if (synced) done = when_synced(std::move(done));
  if (write.rows != nullptr) {
    const auto facts = look_at(*write.rows);
    if (!facts) return done(std::unexpected(facts.error()));
    TableKnowledge& table = table_of(*write.rows);
    if (TETRAD_MUTANT(commit_torn)) {  // the rows in a batch of their own, in a later turn
      reactor_.post([this, alive = alive_, rows = *write.rows] {
        if (*alive) add(rows, true, {}, [](const Result<void>&) {});
      });
    } else {
      const uint32_t begin = current_->writes.Count();
      add_rows(*write.rows, table, true, *facts);
      put_registers({std::move(key), value, synced}, begin, std::move(guard), std::move(done));
      return;
    }
  }
  put_registers({std::move(key), value, synced}, current_->writes.Count(), std::move(guard),
                std::move(done));
}

void WriteTurn::put_registers(RegistersEntry entry, uint32_t begin, WriteGuard guard,
                              Store::ApplyCallback done) {
  if (watches_.any() && !TETRAD_MUTANT(registers_unwatched)) watches_.note_key(entry.key);
  TETRAD_ASSERT(is_registers_key(entry.key));
  current_->writes.Put(slice_of(entry.key), slice_of(entry.value));
  ++figures_.puts;
  // For when_written(); not the bucket's: what has read its rows may keep them.
  current_->last_number = next_number_++;
  current_->add_span(std::move(done), std::move(guard), begin, false);
  current_->add_registers(std::move(entry.key), entry.synced, registers_);
  begin_turn();
}

void WriteTurn::import_registers(const Mutation& mutation, WriteGuard guard,
                                 Store::ApplyCallback done) {
  const auto imported = decode_imported(mutation);
  if (!imported) return done(std::unexpected(imported.error()));
  TableKnowledge& table = table_of(mutation);
  if (imported->committed) table_of(*imported->committed);
  const uint32_t begin = current_->writes.Count();
  for (const Mutation* rows : {&mutation, imported->committed ? &*imported->committed : nullptr}) {
    if (rows == nullptr) continue;
    const auto facts = look_at(*rows);
    TETRAD_ASSERT(facts.has_value());  // both were looked at before
    add_rows(*rows, table, false, *facts);
  }
  Bytes key = registers_key({mutation.incarnation, mutation.position, mutation.partition_key});
  if (watches_.any()) watches_.note_key(key);
  current_->writes.Merge(slice_of(key), slice_of(mutation.registers));
  ++figures_.merges;
  current_->add_span(when_synced(std::move(done)), std::move(guard), begin, false);
  current_->add_registers(std::move(key), true, registers_);
  begin_turn();
}

void WriteTurn::write_back(const std::vector<MergedValue>& values, uint64_t seen) {
  if (refusal_ || behind()) return;
  bool any = false;
  for (const auto& [key, value] : values) {
    const auto place = decode_storage_key(key);
    // Registers have no number by which to tell whether they are the newest.
    if (!place || place->kind == KeyKind::kRegisters) continue;
    // What came since is behind this value in the log or will be: the Put would hide it.
    const bool written_since = last_number_[bucket_of(place->incarnation, place->position)] > seen;
    if (written_since && !TETRAD_MUTANT(writes_back_blindly)) continue;
    current_->writes.Put(slice_of(key), slice_of(value));
    ++figures_.written_back;
    any = true;
  }
  if (any) begin_turn();
}

void WriteTurn::replace(const std::vector<SweptKey>& keys, Store::ApplyCallback done) {
  TETRAD_ASSERT(!refusal_ && parked_.empty() && in_flight_ == nullptr);
  const uint32_t begin = current_->writes.Count();
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
  current_->add_span(std::move(done), {}, begin, true);
  begin_turn();
}

bool WriteTurn::full() const {
  return queued_bytes_ + current_->bytes() > options_.write_queue_max_bytes;
}

void WriteTurn::when_written(base::Callback then) {
  if (written_through_ + 1 == next_number_) return then();
  after_writes(std::move(then));
}

void WriteTurn::when_settled(base::Callback then) {
  if (refusal_ || (parked_.empty() && in_flight_ == nullptr)) return then();
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
  TETRAD_ASSERT(batch.last_number < next_number_);
  // Batches go to RocksDB in the order of their mutations.
  TETRAD_ASSERT(batch.last_number == 0 || batch.last_number > written_through_);
  written_through_ = std::max(written_through_, batch.last_number);
}

void WriteTurn::add_retired(TableIncarnation incarnation) {
  if (refusal_) return;
  current_->writes.Put(retired_key(incarnation), rocksdb::Slice());
  begin_turn();
}

void WriteTurn::after_writes(base::Callback then) {
  if (refusal_) return reactor_.post(std::move(then));
  current_->add_span([then = std::move(then)](const Result<void>&) mutable { then(); }, {},
                     current_->writes.Count(), false);
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
  if (current_->empty()) return;
  if (TETRAD_MUTANT(sync_record_early)) records_.end(records_.begin(log_end_), 0);
  if (records_.is_due() && reactor_.now_us() >= record_not_before_us_) add_record();
  ++figures_.batches;
  if (options_.sync == CommitLogSync::kGroup) return write_group();
  behind() ? write_paced() : write_here();
}

// ---- periodic ----

void WriteTurn::write_here() {
  rocksdb::WriteOptions write;
  write.no_slowdown = true;
  const rocksdb::Status status = database_->db().Write(write, &current_->writes);
  if (status.IsIncomplete()) {  // from now on nobody asks without waiting
    paced_since_us_ = reactor_.now_us();
    return write_paced();
  }
  std::unique_ptr<Batch> written = std::exchange(current_, std::make_unique<Batch>());
  if (!status.ok()) return write_failed(*written, status);
  const uint64_t log_end = end_of_log(database_->db());
  TETRAD_ASSERT(log_end >= log_end_ + written->writes.Count());
  log_end_ = log_end;
  see_written(*written);
  unsynced_ = true;
  arm_sync();
  if (!written->registers.empty()) wait_for_registers(*written);
  const std::shared_ptr<bool> alive = alive_;
  complete(*written, {});
  if (*alive) keep_for_reuse(std::move(written));
}

void WriteTurn::keep_for_reuse(std::unique_ptr<Batch> written) {
  if (!current_->empty() || written->bytes() > kBatchBytesKept) return;
  written->writes.Clear();  // its buffers serve again
  std::swap(current_->writes, written->writes);
  std::swap(current_->spans, written->spans);
}

void WriteTurn::write_paced() {
  if (current_->bytes() >= kPacedBatchBytes) {
    queued_bytes_ += current_->bytes();
    parked_.push_back(std::exchange(current_, std::make_unique<Batch>()));
  }
  if (refusal_ || in_flight_ != nullptr) return;
  const bool waits = !parked_.empty() || !current_->empty();
  if (waits) watch_deadlines();
  if (pace_timer_ != 0) {
    if (!std::exchange(idle_, false) || !waits) return;
    reactor_.cancel(std::exchange(pace_timer_, 0));
  }
  WriteLimit limit;
  uint64_t stopped = 0;
  rocksdb::DB& db = database_->db();
  db.GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &stopped);
  db.GetIntProperty(rocksdb::DB::Properties::kActualDelayedWriteRate, &limit.bytes_per_s);
  limit.stopped = stopped != 0;
  const base::MonotonicUs now_us = reactor_.now_us();
  pace_.look(limit, now_us);
  if (!waits && pace_.is_over()) {
    figures_.paced_us += static_cast<uint64_t>(now_us - *std::exchange(paced_since_us_, {}));
    return;
  }
  idle_ = !waits;
  if (idle_) return look_later(now_us + kIdleLookUs);
  if (limit.stopped) return look_later(now_us + kStoppedLookUs);
  if (!pace_.may_write(now_us)) return look_later(pace_.due_us());
  ++figures_.parked;
  std::unique_ptr<Batch> next;
  if (parked_.empty()) {
    next = std::exchange(current_, std::make_unique<Batch>());
  } else {
    next = std::move(parked_.front());
    parked_.pop_front();
    TETRAD_ASSERT(queued_bytes_ >= next->bytes());
    queued_bytes_ -= next->bytes();
  }
  std::vector<Refused> refused = cut(*next);
  pace_.wrote(next->bytes(), now_us);
  hand_over(std::move(next), false);
  answer(std::move(refused));
}

void WriteTurn::look_later(base::MonotonicUs at_us) {
  pace_timer_ = reactor_.call_at(at_us, [this] {
    pace_timer_ = 0;
    write_paced();
  });
}

void WriteTurn::arm_sync() {
  if (sync_timer_ != 0 || syncing_) return;
  sync_timer_ = reactor_.call_at(reactor_.now_us() + options_.sync_period_us, [this] {
    sync_timer_ = 0;
    start_sync();
  });
}

void WriteTurn::start_sync() {
  TETRAD_ASSERT(!syncing_);
  if (sync_timer_ != 0) reactor_.cancel(std::exchange(sync_timer_, 0));
  syncing_ = true;
  unsynced_ = false;
  ++figures_.syncs;
  sync_since_us_ = reactor_.now_us();
  watch_commit_thread();
  const auto synced =
      std::make_shared<rocksdb::Status>(rocksdb::Status::Aborted("the store is closed"));
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, synced] {
        const RocksDatabase::Visit visit(*database);
        if (visit)
          *synced = guarded_status("syncing the log", [&] { return database->sync_log(); });
      },
      [this, alive = alive_, synced, begun = records_.begin(log_end_),
       waiting = std::exchange(sync_waiting_, {})]() mutable {
        if (*alive) end_sync(begun, *synced, std::move(waiting));
      });
}

void WriteTurn::end_sync(const SyncRecords::Begun& begun, const rocksdb::Status& status,
                         std::vector<Store::ApplyCallback> waiting) {
  const std::shared_ptr<bool> alive = alive_;
  syncing_ = false;
  sync_since_us_.reset();
  look_at_commit_thread();
  if (status.ok()) {
    records_.end(begun, begun.number);
  } else {
    unsynced_ = true;  // if it is aborted, until the log is a new one
    if (!status.IsAborted()) trouble_.failed(status, "syncing the log");
  }
  if (*alive && !sync_waiting_.empty()) {
    sync_at_turn_end();
  } else if (*alive && unsynced_ && !status.IsAborted()) {
    arm_sync();
  }
  Result<void> result;
  if (!status.ok()) result = std::unexpected(error_of(status, "syncing the log"));
  for (Store::ApplyCallback& done : waiting) done(result);
}

void WriteTurn::sync(Store::ApplyCallback done) {
  if (refusal_) return done(std::unexpected(*refusal_));
  current_->add_span(when_synced(std::move(done)), {}, current_->writes.Count(), false);
  begin_turn();
}

Store::ApplyCallback WriteTurn::when_synced(Store::ApplyCallback done) {
  return [this, alive = alive_, done = std::move(done)](const Result<void>& written) mutable {
    if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
    // A group's batch is synced when it has been written.
    if (!written || options_.sync == CommitLogSync::kGroup) return done(written);
    if (refusal_) return done(std::unexpected(*refusal_));
    wait_for_sync(std::move(done));
  };
}

void WriteTurn::wait_for_sync(Store::ApplyCallback done) {
  sync_waiting_.push_back(std::move(done));
  if (sync_waiting_.size() == 1) sync_at_turn_end();
}

void WriteTurn::wait_for_registers(Batch& batch) {
  for (Span& span : batch.spans) {
    if (span.registers == Span::kNone || !batch.registers[span.registers].synced) continue;
    wait_for_sync(
        [under_way = registers_,
         key = std::move(batch.registers[std::exchange(span.registers, Span::kNone)].key)](
            const Result<void>&) { under_way->end(key); });
  }
}

/// All that ask in this turn share one sync.
void WriteTurn::sync_at_turn_end() {
  reactor_.at_turn_end([this, alive = alive_] {
    if (*alive && !syncing_ && !sync_waiting_.empty()) start_sync();
  });
}

// ---- sync records ----

void WriteTurn::begin_records() {
  if (record_timer_ == 0) keep_records();
}

void WriteTurn::add_record() {
  const auto [key, value] = records_.take_due();
  current_->writes.Put(slice_of(key), slice_of(value));
  // In group mode each write is a sync, and could carry one.
  record_not_before_us_ = reactor_.now_us() + options_.sync_period_us;
}

/// Without writes no record would go out: the time since which something may be lost stays close.
void WriteTurn::keep_records() {
  const int64_t every_us = records_.has_written() ? kIdleRecordUs : kFirstRecordUs;
  record_timer_ = reactor_.call_at(reactor_.now_us() + every_us, [this] { keep_records(); });
  const bool all_synced =
      !unsynced_ && !syncing_ && in_flight_ == nullptr && parked_.empty() && current_->empty();
  if (refusal_ || !all_synced) return;
  if (reactor_.now_us() < record_not_before_us_ + kIdleRecordUs && records_.has_written()) return;
  const auto begun = records_.begin(log_end_);
  records_.end(begun, begun.number);
  if (!records_.is_due()) return;
  add_record();
  begin_turn();
}

// ---- by the commit thread ----

void WriteTurn::write_group() {
  if (current_->empty()) return;
  watch_deadlines();
  if (in_flight_ != nullptr) {  // what came meanwhile goes next
    current_->waited = true;
    return;
  }
  std::unique_ptr<Batch> next = std::exchange(current_, std::make_unique<Batch>());
  std::vector<Refused> refused;
  if (next->waited) refused = cut(*next);
  hand_over(std::move(next), true);
  answer(std::move(refused));
}

void WriteTurn::hand_over(std::unique_ptr<Batch> batch, bool sync) {
  TETRAD_ASSERT(in_flight_ == nullptr);  // one at a time, so that the order holds
  in_flight_ = std::make_shared<Job>();
  in_flight_->batch = std::move(batch);
  in_flight_->sync = sync;
  in_flight_->begun = records_.begin(log_end_);
  queued_bytes_ += in_flight_->batch->bytes();
  job_since_us_ = reactor_.now_us();
  watch_commit_thread();
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, job = in_flight_] {
        const RocksDatabase::Visit visit(*database);
        if (!visit || job->written) return;
        rocksdb::WriteOptions write;
        write.sync = job->sync;
        job->status = guarded_status("writing to the store", [&] {
          const rocksdb::Status status = database->db().Write(write, &job->batch->writes);
          job->log_end = end_of_log(database->db());
          return status;
        });
        job->written = true;
      },
      [this, alive = alive_, job = in_flight_] {
        if (*alive) written_elsewhere(job);
      });
}

void WriteTurn::written_elsewhere(const std::shared_ptr<Job>& job) {
  if (job != in_flight_) return;  // finish() was quicker
  in_flight_.reset();
  TETRAD_ASSERT(queued_bytes_ >= job->batch->bytes());
  queued_bytes_ -= job->batch->bytes();
  job_since_us_.reset();
  look_at_commit_thread();
  if (job->sync) ++figures_.syncs;
  if (!job->written)  // the database was closed before
    return complete(*job->batch, fail(ErrorCode::kCancelled, "the store is being opened anew"));
  if (!job->status.ok()) return write_failed(*job->batch, job->status);
  see_written(*job->batch);
  log_end_ = job->log_end;
  if (job->sync) {
    records_.end(job->begun, log_end_);
  } else {
    unsynced_ = true;
    arm_sync();
    if (!job->batch->registers.empty()) wait_for_registers(*job->batch);
  }
  const std::shared_ptr<bool> alive = alive_;
  if (parked_.empty() && !settled_.empty()) run_settled();
  if (!*alive) return;
  complete(*job->batch, {});
  if (!*alive) return;
  job->sync ? write_group() : write_paced();
}

// ---- what had to wait ----

// A sweep's page replaces values that include the earlier writes of its batch: if one of those is
// cut out, so is the page, which is then asked for again.
std::vector<WriteTurn::Refused> WriteTurn::cut(Batch& batch) {
  std::vector<Refused> refused;
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto may_stay = [now_us](const Span& span) { return span.guard.may_write(now_us); };
  if (std::ranges::all_of(batch.spans, may_stay)) return refused;
  KeptRecords::Gaps gaps;
  std::vector<Span> kept;
  uint32_t removed = 0;
  for (Span& span : batch.spans) {
    std::optional<Error> error = refusal_of(span.guard, now_us);
    if (!error && span.is_sweep && removed != 0)
      error.emplace(ErrorCode::kOverloaded, "writes that it has seen were given up");
    if (error) {
      batch.end_registers(span);
      if (span.begin < span.end) gaps.emplace_back(span.begin, span.end);
      TETRAD_ASSERT(span.begin <= span.end);
      removed += span.end - span.begin;
      if (span.done) refused.push_back({std::move(span.done), std::move(*error)});
    } else {
      TETRAD_ASSERT(span.begin >= removed);
      span.begin -= removed;
      span.end -= removed;
      kept.push_back(std::move(span));
    }
  }
  batch.spans = std::move(kept);
  if (gaps.empty()) return refused;
  KeptRecords records(gaps);
  const uint32_t count_before = batch.writes.Count();
  const rocksdb::Status status = batch.writes.Iterate(&records);
  TETRAD_ASSERT(status.ok());  // it is our own batch
  batch.writes = std::move(records.kept);
  TETRAD_ASSERT(batch.writes.Count() + removed == count_before);
  return refused;
}

void WriteTurn::answer(std::vector<Refused> refused) {
  for (Refused& write : refused) write.done(std::unexpected(std::move(write.error)));
}

void WriteTurn::watch_deadlines() {
  if (deadline_timer_ != 0) return;
  deadline_timer_ = reactor_.call_at(reactor_.now_us() + kDeadlineLookUs, [this] {
    deadline_timer_ = 0;
    answer_late();
  });
}

void WriteTurn::answer_late() {
  std::vector<Refused> late;
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto look_at_batch = [&](Batch& batch) {
    if (batch.earliest_deadline_us > now_us) return;
    batch.earliest_deadline_us = WriteGuard::kNever;
    for (Span& span : batch.spans) {
      const base::MonotonicUs deadline_us = span.guard.deadline_us;
      if (!span.done) continue;
      if (deadline_us > now_us) {
        batch.earliest_deadline_us = std::min(batch.earliest_deadline_us, deadline_us);
        continue;
      }
      late.push_back({std::exchange(span.done, nullptr),
                      Error(ErrorCode::kTimedOut, "the store did not take the write in time")});
    }
  };
  for (const auto& batch : parked_) look_at_batch(*batch);
  if (in_flight_ != nullptr) look_at_batch(*in_flight_->batch);
  look_at_batch(*current_);
  if (!parked_.empty() || in_flight_ != nullptr || !current_->empty()) watch_deadlines();
  answer(std::move(late));
}

// ---- the end ----

WriteTurn::Figures WriteTurn::figures() const {
  Figures figures = figures_;
  if (paced_since_us_)
    figures.paced_us += static_cast<uint64_t>(reactor_.now_us() - *paced_since_us_);
  return figures;
}

void WriteTurn::complete(Batch& batch, const Result<void>& result) {
  std::vector<Span> spans = std::exchange(batch.spans, {});
  if (!batch.registers.empty()) [[unlikely]] {
    for (Span& span : spans) batch.end_registers(span);
    batch.registers.clear();
  }
  for (Span& span : spans) {
    span.guard.pass.give_back();
    if (span.done) span.done(result);  // else it was answered at its deadline
  }
  spans.clear();
  batch.spans = std::move(spans);  // for keep_for_reuse()
}

void WriteTurn::write_failed(Batch& batch, const rocksdb::Status& status) {
  const std::shared_ptr<bool> alive = alive_;
  trouble_.failed(status, "writing");
  complete(batch, std::unexpected(error_of(status, "writing")));
  if (*alive && !refusal_ && !current_->empty()) begin_turn();
}

void WriteTurn::use(std::shared_ptr<RocksDatabase> database) {
  database_ = std::move(database);
  log_end_ = end_of_log(database_->db());
}

void WriteTurn::refuse(std::optional<Error> why) {
  refusal_ = std::move(why);
  if (!refusal_) {
    if (unsynced_) arm_sync();
    return;
  }
  auto waiting = std::exchange(parked_, {});
  waiting.push_back(std::exchange(current_, std::make_unique<Batch>()));
  queued_bytes_ = in_flight_ == nullptr ? 0 : in_flight_->batch->bytes();
  const Result<void> refused = std::unexpected(*refusal_);
  const std::shared_ptr<bool> alive = alive_;
  for (Store::ApplyCallback& done : std::exchange(sync_waiting_, {})) done(refused);
  for (const auto& batch : waiting) complete(*batch, refused);
  if (*alive) run_settled();
}

void WriteTurn::watch_commit_thread() {
  if (hung_timer_ != 0) return;
  hung_timer_ = reactor_.call_at(reactor_.now_us() + kHungLookUs, [this] {
    hung_timer_ = 0;
    look_at_commit_thread();
    if (job_since_us_ || sync_since_us_) watch_commit_thread();
  });
}

void WriteTurn::look_at_commit_thread() {
  base::MonotonicUs since_us = reactor_.now_us();
  for (const auto& began : {job_since_us_, sync_since_us_})
    if (began) since_us = std::min(since_us, *began);
  const bool hung = reactor_.now_us() - since_us >= kHungUs;
  if (hung != std::exchange(hung_, hung)) trouble_.hung(hung);
}

Result<void> WriteTurn::finish() {
  for (base::Reactor::TimerId* timer :
       {&sync_timer_, &pace_timer_, &hung_timer_, &deadline_timer_, &record_timer_})
    if (*timer != 0) reactor_.cancel(std::exchange(*timer, 0));
  std::deque<std::unique_ptr<Batch>> waiting = std::exchange(parked_, {});
  Result<void> outcome;
  if (refusal_) outcome = std::unexpected(*refusal_);
  if (in_flight_ != nullptr) {
    const std::shared_ptr<Job> job = std::exchange(in_flight_, nullptr);
    if (job->written) {
      if (!job->status.ok()) outcome = std::unexpected(error_of(job->status, "writing"));
      complete(*job->batch, outcome);
    } else {
      job->written = true;  // the pool's thread leaves it alone
      waiting.push_front(std::move(job->batch));
    }
  }
  waiting.push_back(std::exchange(current_, std::make_unique<Batch>()));
  for (const auto& batch : waiting) {
    if (batch->empty()) continue;
    answer(cut(*batch));
    if (outcome) {
      rocksdb::WriteOptions write;
      write.sync = options_.sync == CommitLogSync::kGroup;
      const rocksdb::Status status = database_->db().Write(write, &batch->writes);
      if (!status.ok()) outcome = std::unexpected(error_of(status, "writing"));
    }
    complete(*batch, outcome);
  }
  queued_bytes_ = 0;
  if (!refusal_) refusal_ = Error(ErrorCode::kCancelled, "the store is closed");
  for (Store::ApplyCallback& done : std::exchange(sync_waiting_, {}))
    done(std::unexpected(*refusal_));
  run_settled();
  return outcome;
}

}  // namespace tetrad::storage
