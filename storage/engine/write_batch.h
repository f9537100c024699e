// SPDX-License-Identifier: Apache-2.0
// The batches of a store's writes, between who fills them (write_turn.cc) and who brings them to
// RocksDB (write_commit.cc). For these two files only.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "storage/engine/write_turn.h"

namespace tetrad::storage {

/// A view, good as long as the bytes.
inline rocksdb::Slice slice_of(BytesView bytes) { return {bytes.data(), bytes.size()}; }

/// The number that the next record of the database will get.
inline uint64_t end_of_log(const rocksdb::DB& db) { return db.GetLatestSequenceNumber() + 1; }

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

/// Of what is written at once, in order: records, and who waits for which of them.
struct WriteTurn::Batch {
  rocksdb::WriteBatch writes;
  std::vector<Span> spans;
  uint64_t last_number = 0;  // of its mutations
  /// No span that is to be answered has an earlier one.
  base::MonotonicUs earliest_deadline_us = WriteGuard::kNever;
  bool waited = false;  // beyond the turn of its mutations
  /// Registers that it writes.
  struct Registers {
    Bytes key;
    bool synced;     // their write has not ended before it is on the disk
    bool lets_pass;  // the next one when it has been written
  };
  std::vector<Registers> registers;
  std::shared_ptr<RegistersUnderWay> registers_under_way;  // where there are some

  /// As RocksDB counts them, with its record headers.
  uint64_t bytes() const { return writes.GetDataSize(); }
  /// A batch with spans alone still has somebody to answer.
  bool empty() const { return writes.Count() == 0 && spans.empty(); }
  /// Ends at the batch's present end: its records are those since `begin`.
  void add_span(Store::ApplyCallback done, WriteGuard guard, uint32_t begin, bool is_sweep) {
    TETRAD_ASSERT(begin <= writes.Count());
    TETRAD_ASSERT(spans.empty() || spans.back().end <= begin);  // ascending, disjoint
    earliest_deadline_us = std::min(earliest_deadline_us, guard.deadline_us);
    spans.push_back({std::move(done), std::move(guard), begin, writes.Count(), is_sweep});
  }
  /// Of the last span.
  void add_registers(Registers added, const std::shared_ptr<RegistersUnderWay>& under_way) {
    TETRAD_ASSERT(!spans.empty() && spans.back().registers == Span::kNone);
    under_way->begin(added.key);
    registers_under_way = under_way;
    spans.back().registers = static_cast<uint32_t>(registers.size());
    registers.push_back(std::move(added));
  }
  /// The write of the span's registers has ended, or will not be done.
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

}  // namespace tetrad::storage
