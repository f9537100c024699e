// SPDX-License-Identifier: Apache-2.0
// Writes to the model store, Paxos registers among them: what comes in one turn of the loop goes
// into the map together at its end.
#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/engine/map_view.h"
#include "storage/engine/memory_store_impl.h"
#include "storage/engine/range_export.h"
#include "storage/engine/table_marks.h"
#include "storage/engine/value_merge.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

void MemoryStore::apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) {
  if (!mutation.registers.empty())
    return done(fail(ErrorCode::kInvalid, "Paxos registers come in streams only"));
  take(mutation, false, std::move(guard), std::move(done));
}

void MemoryStore::apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) {
  take(mutation, true, std::move(guard), std::move(done));
}

void MemoryStore::take(const Mutation& mutation, bool merged, WriteGuard guard,
                       ApplyCallback done) {
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

void MemoryStore::write_registers(const RegistersWrite& write, WriteGuard guard,
                                  base::Callback written, ApplyCallback done) {
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
  // From here to the answer reads of these registers wait, and other writes of them are refused
  // until `written`.
  done = while_under_way(std::move(key), std::move(done));
  queue(std::move(waiting), std::move(guard), std::move(done));
}

void MemoryStore::read_registers(const PartitionName& partition, base::Deadline,
                                 RegistersCallback done) {
  if (is_retired(partition.incarnation)) return done(retired_error(partition.incarnation));
  if (auto checked = check_partition(partition); !checked)
    return done(std::unexpected(std::move(checked.error())));
  Bytes key = registers_key(partition);
  // What is under way may be lost by a power cut: it is made durable before anybody learns of it.
  if (!registers_under_way_.contains(key)) return done(registers_at(key));
  later([this, incarnation = partition.incarnation, key = std::move(key),
         done = std::move(done)]() mutable {
    commit();
    sync_area();
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    done(registers_at(key));
  });
}

void MemoryStore::list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                                 size_t partitions_max,
                                 std::move_only_function<void(Result<RegistersPage>)> done) {
  if (is_retired(incarnation)) return done(retired_error(incarnation));
  later([this, incarnation, range, after = std::move(after), partitions_max,
         done = std::move(done)]() mutable {
    commit();
    MapView view(area_.data);
    done(registers_page(view, incarnation, range, after, partitions_max));
  });
}

bool MemoryStore::may_write(TableIncarnation incarnation, const WriteGuard& guard,
                            ApplyCallback& done) {
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

Store::ApplyCallback MemoryStore::while_under_way(Bytes key, ApplyCallback done) {
  const uint64_t number = ++last_registers_;
  registers_under_way_.insert(key);
  registers_barred_.insert_or_assign(key, number);
  return [this, alive = alive_, number, key = std::move(key),
          done = std::move(done)](Result<void> result) mutable {
    if (*alive) {
      // One of several, perhaps: the container is a multiset.
      registers_under_way_.erase(registers_under_way_.find(key));
      let_pass(key, number);
    }
    done(std::move(result));
  };
}

void MemoryStore::let_pass(const Bytes& key, uint64_t number) {
  const auto barred = registers_barred_.find(key);
  // A later write of the same key bars by its own number.
  if (barred != registers_barred_.end() && barred->second == number)
    registers_barred_.erase(barred);
}

Result<PaxosRegisters> MemoryStore::registers_at(BytesView key) const {
  const auto found = area_.data.find(key);
  if (found == area_.data.end()) return PaxosRegisters();
  return decode_registers(found->second);
}

void MemoryStore::queue(WaitingWrite waiting, WriteGuard guard, ApplyCallback done) {
  if (queued_bytes_ > options_.write_queue_max_bytes)
    return done(fail(ErrorCode::kOverloaded, "{} bytes of writes wait for the disk, at most {}",
                     queued_bytes_, options_.write_queue_max_bytes));
  // A commit that an import brings counts as a write of its own.
  for (const Mutation* m : {&waiting.mutation, waiting.committed ? &*waiting.committed : nullptr}) {
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

void MemoryStore::claim(const Mutation& m, WaitingWrite& waiting) {
  TableIndexes* table = indexes_.find(m.incarnation);
  if (table == nullptr) return;
  for (Bytes& key : forget_unknown_builds(m.incarnation, *table))
    waiting.forgotten.push_back(std::move(key));
  // Only the mutants ask; claims are made of everything that came.
  const bool is_put = std::ranges::all_of(m.rows, [](const auto& row) { return row.complete; });
  if (table->maker == nullptr || (waiting.merged && TETRAD_MUTANT(claims_not_of_merged)) ||
      (!is_put && TETRAD_MUTANT(claims_of_puts_only)) ||
      (waiting.puts_registers && TETRAD_MUTANT(claims_not_of_commits)))
    return;
  add_claims(*table->maker, m, waiting.claims);
}

void MemoryStore::note(const Mutation& m) {
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

void MemoryStore::raise_mark(const Mutation& mutation) {
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

void MemoryStore::commit() {
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
  // Taken out first: a callback may write again, which begins the next turn's list.
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

void MemoryStore::write_claims_late() {
  // The mutant of rule 23: claims come after their rows, in another batch.
  MemoryTurn claims(area_.data);
  for (const WaitingWrite& waiting : waiting_) claims.add_claims(waiting);
  std::vector<MemoryArea::Operation> batch = claims.take_batch();
  if (batch.empty()) return;
  if (options_.sync == CommitLogSync::kGroup) sync_area();
  later([this, batch = std::move(batch)]() mutable { area_.write(std::move(batch)); });
}

void MemoryStore::when_synced(ApplyCallback done) {
  sync_waiting_.push_back(std::move(done));
  if (sync_waiting_.size() > 1) return;
  later([this] {
    sync_area();
    for (ApplyCallback& synced : std::exchange(sync_waiting_, {})) synced({});
  });
}

void MemoryStore::tear() {
  // A batch of its own, so that a power cut may come between the registers and their rows.
  MemoryTurn registers(area_.data);
  for (WaitingWrite& waiting : waiting_) {
    if (!waiting.puts_registers || is_retired(waiting.mutation.incarnation)) continue;
    registers.add_registers(waiting.mutation, true);
  }
  std::vector<MemoryArea::Operation> batch = registers.take_batch();
  if (!batch.empty()) area_.write(std::move(batch));
}

}  // namespace tetrad::storage
