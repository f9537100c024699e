// SPDX-License-Identifier: Apache-2.0
// What is written in a turn, and in which form. One mutation:
//
//   1. Is there room for it in the queue, and does RocksDB keep up? Else kOverloaded, at once.
//   2. Every record is decoded once, before anything is added: the mutation is taken whole or not
//      at all, and nothing that does not decode gets to the disk.
//   3. Header and range tombstones are merged. A row is Put where that leaves the same as a merge
//      would (rule 14): it is complete, of the newest schema version, newer than its bucket's mark,
//      and the bucket never saw a row tombstone. Everything else is merged.
//   4. It gets its number, the bucket's mark rises, and watchers (sweeps, runs of dead rows) note
//      its keys, so that what they have read before is not taken for the newest.
//   5. Its span joins the batch of this turn, which leaves at the turn's end (write_commit.cc).
#include "storage/engine/write_turn.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/engine/value_merge.h"
#include "storage/engine/write_batch.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {
namespace {

// Keys of the store's own lie under an incarnation that no table has: `what` sorts them by kind.
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

// `log_end_` starts at what the database has, so sync records never claim more than was written.
// `last_number_` has one entry for each bucket of marks.
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

// Overload is answered here, before anything is encoded: a write that is refused costs next to
// nothing, and what waits stays within bounds of bytes and of time.
bool WriteTurn::takes(Store::ApplyCallback& done) {
  // The order: a refusal says most, a full queue is the cheaper test, and the pace needs the clock.
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
  // Here only what would put keys where no row belongs; look_at() decodes the rest.
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

// The schema version is written in the same batch, before the rows: after a restart Put must not
// take rows of an older version for complete.
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

// The order of the steps is the order of the records in the batch, and the marks come last.
void WriteTurn::add_rows(const Mutation& mutation, TableKnowledge& table, bool may_put,
                         const RecordFacts& facts) {
  table.dead += facts.dead;
  const uint16_t bucket = bucket_of(mutation.incarnation, mutation.position);
  // A row of an older schema version may lack a column that is stored already.
  const bool merged = !may_put;
  const bool known_version =
      mutation.schema_version.value == table.schema_version || TETRAD_MUTANT(put_other_version);
  may_put =
      (may_put || TETRAD_MUTANT(ingest_put)) && known_version && strictly_ascending(mutation.rows);

  // One buffer for all keys of the mutation: they differ behind the partition's prefix only.
  key_.clear();
  append_partition_prefix(key_, mutation.incarnation, mutation.position, mutation.partition_key);
  const Target target{table, key_.size(), bucket, watches_.any()};
  add_covers(mutation, target);
  add_row_records(mutation, target, may_put);
  // In the same batch as the rows (rule 23): a row without its claim would never be found, a claim
  // without its row is only swept.
  if (table.indexes != nullptr) [[unlikely]]
    put_claims(mutation, *table.indexes, merged);
  if (table.has_views) [[unlikely]]
    put_view_tasks(mutation, merged);
  if (table.has_graphs) [[unlikely]]
    note_vectors_(mutation);
  if (target.is_watched) [[unlikely]]
    watches_.note(bucket, facts.oldest_us);
  // The number is how a read tells whether its bucket saw a write since (rule 19). It is given
  // after the records are in the batch and before the batch is written, so a read that has missed
  // the mutation always sees a higher number.
  current_->last_number = last_number_[bucket] = next_number_++;
  // After the rows: a row of this mutation is compared with what was there before it.
  if (!merged || !TETRAD_MUTANT(ingest_keeps_marks))
    table.marks.raise(bucket, facts.latest_us, tables_.budget());
  if (facts.has_deletion)
    table.marks.see(bucket, TableMarks::Seen::kRowTombstones, tables_.budget());
}

// Builds a key in key_, behind the partition's prefix. Good until the next call.
const Bytes& WriteTurn::key_at(const Target& target, KeyKind kind, BytesView clustering_key) {
  key_.resize(target.prefix_bytes);
  key_.push_back(static_cast<char>(kind));
  key_.append(clustering_key);
  if (target.is_watched) [[unlikely]]
    watches_.note_key(key_);
  return key_;
}

void WriteTurn::add_covers(const Mutation& mutation, const Target& target) {
  rocksdb::WriteBatch& writes = current_->writes;
  if (!mutation.header.empty()) {
    target.table.contents.headers = true;
    writes.Merge(slice_of(key_at(target, KeyKind::kHeader, {})), mutation.header);
    ++figures_.merges;
  }
  if (mutation.range_tombstones.empty()) return;
  // Tombstones of ranges are always merged: those of one start are a set (rule 17), and a Put would
  // take the others away.
  for (const auto& [start, set] : tombstone_values(mutation)) {
    using Seen = TableMarks::Seen;
    const bool straddles = start.starts_with(kStraddlingPlace);
    target.table.marks.see(target.bucket,
                           straddles ? Seen::kStraddlingTombstones : Seen::kRangeTombstones,
                           tables_.budget());
    writes.Merge(slice_of(key_at(target, KeyKind::kRangeTombstone, start)), set);
    ++figures_.merges;
  }
}

void WriteTurn::add_row_records(const Mutation& mutation, const Target& target, bool may_put) {
  rocksdb::WriteBatch& writes = current_->writes;
  // Asked by bucket first: most partitions have no dead runs, and this is done for each mutation.
  const bool may_revive = dead_runs_.knows(target.bucket);
  for (size_t i = 0; i < mutation.rows.size(); ++i) {
    const RowChange& row = mutation.rows[i];
    // A live row inside a run that is known to be dead cuts the run (rule 19).
    if (may_revive && facts_[i].may_live) [[unlikely]]
      dead_runs_.note(BytesView(key_).substr(0, target.prefix_bytes), row.clustering_key,
                      next_number_);
    const rocksdb::Slice key = slice_of(key_at(target, KeyKind::kRow, row.clustering_key));
    // Row by row: one mutation may have rows that can be Put beside others that cannot. Both leave
    // the same record, so nobody can tell afterwards.
    if (may_put && row.complete && target.table.marks.may_put(target.bucket, facts_[i])) {
      writes.Put(key, row.record);
      ++figures_.puts;
    } else {
      writes.Merge(key, row.record);
      ++figures_.merges;
    }
  }
}

// In the span of the rows: what is cut out of the batch goes with them.
void WriteTurn::put_claims(const Mutation& mutation, TableIndexes& table, bool merged) {
  for (const Bytes& key : forget_unknown_builds(mutation.incarnation, table))
    current_->writes.Delete(key);
  if (table.maker == nullptr || (merged && TETRAD_MUTANT(claims_not_of_merged))) return;
  claims_.clear();
  // Claims are made of what came, not of the row as it will be: nothing is read on the way of a
  // write.
  add_claims(*table.maker, mutation, claims_);
  for (const auto& [key, value] : claims_) current_->writes.Put(key, value);
  figures_.claims += claims_.size();
}

// As claims. A change that came from another replica may be one that its executors have missed.
void WriteTurn::put_view_tasks(const Mutation& mutation, bool merged) {
  if (merged && TETRAD_MUTANT(view_tasks_not_of_merged)) return;
  ViewRecords puts;
  views_->make_tasks(mutation, puts);
  for (const auto& [key, value] : puts) current_->writes.Put(key, value);
}

void WriteTurn::change_view_records(const ViewRecords& puts, const std::vector<Bytes>& erased,
                                    Store::ApplyCallback done) {
  // No guard: these are the store's own records, which no epoch makes void.
  if (!takes(done)) return;
  const uint32_t begin = current_->writes.Count();
  for (const auto& [key, value] : puts) current_->writes.Put(key, value);
  for (const Bytes& key : erased) current_->writes.Delete(key);
  current_->add_span(std::move(done), {}, begin, false);
  begin_turn();
}

void WriteTurn::add_built(const Claims& claims, const std::optional<std::pair<Bytes, Bytes>>& own,
                          Store::ApplyCallback done) {
  if (!takes(done)) return;
  const uint32_t begin = current_->writes.Count();
  for (const auto& [key, value] : claims) current_->writes.Put(key, value);
  if (own) current_->writes.Put(own->first, own->second);
  current_->add_span(std::move(done), {}, begin, false);
  begin_turn();
}

// Deleted, never deleted singly: claims are put again and again.
void WriteTurn::drop_claims(const std::vector<Bytes>& keys, Store::ApplyCallback done) {
  if (!takes(done)) return;
  const uint32_t begin = current_->writes.Count();
  for (const Bytes& key : keys) current_->writes.Delete(key);
  current_->add_span(std::move(done), {}, begin, false);
  begin_turn();
}

// No span: nobody waits, the keys only have to come before what is written after them.
void WriteTurn::put_own(const ViewRecords& entries) {
  if (refusal_ || entries.empty()) return;
  for (const auto& [key, value] : entries) current_->writes.Put(key, value);
  begin_turn();
}

void WriteTurn::erase_own(const std::vector<Bytes>& keys) {
  if (refusal_ || keys.empty()) return;
  for (const Bytes& key : keys) current_->writes.Delete(key);
  begin_turn();
}

void WriteTurn::add_registers(const RegistersWrite& write, WriteGuard guard, base::Callback written,
                              Store::ApplyCallback done) {
  if (!takes(done)) return;
  if (auto checked = check_registers_write(write); !checked) return done(std::move(checked));
  Bytes key = registers_key(write.partition);
  // One write of a partition's registers at a time: the next must be made from what this one leaves
  // (rule 27).
  if (registers_->bars(key))
    return done(fail(ErrorCode::kOverloaded,
                     "another write of the partition's Paxos registers is under way"));
  Bytes value;
  encode_registers(write.registers, value);
  // What a proposer is promised must survive a power cut (rule 21): `done` waits for a sync, while
  // `written` lets the next message of the partition read the registers earlier.
  const bool synced = write.synced && !TETRAD_MUTANT(registers_unsynced);
  const bool lets_pass = synced && written != nullptr;
  if (synced) done = when_synced(std::move(done), std::move(written));
  if (write.rows != nullptr) {
    const auto facts = look_at(*write.rows);
    if (!facts) return done(std::unexpected(facts.error()));
    TableKnowledge& table = table_of(*write.rows);
    if (TETRAD_MUTANT(commit_torn)) {  // the rows in a batch of their own, in a later turn
      reactor_.post([this, alive = alive_, rows = *write.rows] {
        if (*alive) add(rows, true, {}, [](const Result<void>&) {});
      });
    } else {
      // Rows and registers in one span: a cut takes both or neither.
      const uint32_t begin = current_->writes.Count();
      add_rows(*write.rows, table, true, *facts);
      put_registers({std::move(key), value, synced, lets_pass}, begin, std::move(guard),
                    std::move(done));
      return;
    }
  }
  put_registers({std::move(key), value, synced, lets_pass}, current_->writes.Count(),
                std::move(guard), std::move(done));
}

// Registers are put: their one writer has read them before (rule 21), so there is nothing to join.
void WriteTurn::put_registers(RegistersEntry entry, uint32_t begin, WriteGuard guard,
                              Store::ApplyCallback done) {
  if (watches_.any() && !TETRAD_MUTANT(registers_unwatched)) watches_.note_key(entry.key);
  TETRAD_ASSERT(is_registers_key(entry.key));
  current_->writes.Put(slice_of(entry.key), slice_of(entry.value));
  ++figures_.puts;
  // For when_written(); not the bucket's: what has read its rows may keep them.
  current_->last_number = next_number_++;
  current_->add_span(std::move(done), std::move(guard), begin, false);
  current_->add_registers({std::move(entry.key), entry.synced, entry.lets_pass}, registers_);
  begin_turn();
}

// A stream may bring registers to a store that has newer ones: they are merged. The rows of the
// committed value go along, since fewer than W members may have them.
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
  current_->add_registers({std::move(key), true, false}, registers_);
  begin_turn();
}

// No span: nobody waits for it, and a write-back that is lost is done again by a later read. While
// RocksDB is behind there are better uses of its time.
void WriteTurn::write_back(const std::vector<MergedValue>& values, uint64_t seen) {
  if (refusal_ || behind()) return;
  bool any = false;
  for (const auto& [key, value] : values) {
    const auto place = decode_storage_key(key);
    // Registers have no number by which to tell whether they are the newest.
    // Else the next commit would be made of registers that this Put has set back.
    if (!place || place->kind == KeyKind::kRegisters) continue;
    // A later write is behind this value in the log or will be: the Put would hide it.
    const bool written_since = last_number_[bucket_of(place->incarnation, place->position)] > seen;
    if (written_since && !TETRAD_MUTANT(writes_back_blindly)) continue;
    current_->writes.Put(slice_of(key), slice_of(value));
    ++figures_.written_back;
    any = true;
  }
  if (any) begin_turn();
}

void WriteTurn::replace(const std::vector<SweptKey>& keys, Store::ApplyCallback done) {
  // The sweep has compared its page with the values in RocksDB and in current_; nothing may be in
  // between.
  // Else a write could be ahead of the page in the queue which the page has not seen.
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
    // Another sweep's page over the same keys has to see that they have changed.
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

// Numbers follow the order of add(), and batches are written in that order: when the last is
// through, all are.
void WriteTurn::when_written(base::Callback then) {
  if (written_through_ + 1 == next_number_) return then();
  after_writes(std::move(then));
}

void WriteTurn::when_settled(base::Callback then) {
  if (refusal_ || (parked_.empty() && in_flight_ == nullptr)) return then();
  settled_.push_back(std::move(then));
}

// A callback may end the store, and with it this object.
void WriteTurn::run_settled() {
  const std::shared_ptr<bool> alive = alive_;
  for (base::Callback& then : std::exchange(settled_, {})) {
    then();
    if (!*alive) return;
  }
}

// By playing the records of the batch in their order, as RocksDB will.
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

// Behind all that is in current_ now: a span without records is answered with its batch.
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
  // What was begun in the turn may have been given to a batch before, or refused.
  // A record of what is synced goes with a batch that leaves anyway; it never makes one of its own
  // here.
  if (current_->empty()) return;
  if (TETRAD_MUTANT(sync_record_early)) records_.end(records_.begin(log_end_), 0);
  if (records_.is_due() && reactor_.now_us() >= record_not_before_us_) add_record();
  ++figures_.batches;
  if (options_.sync == CommitLogSync::kGroup) return write_group();
  behind() ? write_paced() : write_here();
}

}  // namespace tetrad::storage
