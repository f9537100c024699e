// SPDX-License-Identifier: Apache-2.0
// The row record: one row's liveness, row tombstone and cells with their timestamps. One format on
// disk, between nodes, in hints and in repair. Storage knows no CQL types: column ids, paths and
// values are numbers and bytes.
//
//   record     := u8 flags, zigzag base timestamp, [liveness], [deletion], varint cell count, cell*
//   flags      := 0x01 liveness, 0x02 liveness has TTL, 0x04 deletion, 0x80 reserved for a longer header
//   liveness   := zigzag (timestamp - base), [varint ttl s, varint expiry s]
//   deletion   := zigzag (timestamp - base), varint deletion time s
//   cell       := u8 flags, varint (column id - previous column id), [zigzag (timestamp - base)],
//                 [varint ttl s, varint expiry s] | [varint deletion time s], [varint size, path],
//                 [varint size, value] (of kind value only)
//   cell flags := bits 0-1 kind, 0x04 has path, 0x08 has TTL, 0x10 timestamp equals the base
//
// Cells are sorted by (column id, column deletion first, without path first, path). The base is the
// marker's timestamp, else the first cell's that is no column deletion, else any there is: a record
// has one encoding. The numbers are on disk: never renumber.
//
//   example: 01 d00f 00 01 10 03 02 6869   liveness at 1000 us, cell of column 3, "hi", at 1000 us
//   example: 04 c801 63 ac02 01 10 00 01 4b
//            row deletion at 50 us, made at 300 s; cell of column 0, "K", at 100 us
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::storage {

/// Timestamps are microseconds as CQL's USING TIMESTAMP; this one means "absent" (CQL refuses it in
/// statements).
inline constexpr int64_t kNoTimestamp = std::numeric_limits<int64_t>::min();

/// The row marker that INSERT leaves. With a TTL it is live while now_s < expiry_s.
struct Liveness {
  int64_t timestamp_us = kNoTimestamp;
  int32_t ttl_s = 0;
  int64_t expiry_s = 0;

  bool present() const { return timestamp_us != kNoTimestamp; }
  bool live_at(int64_t now_s) const { return present() && (ttl_s == 0 || now_s < expiry_s); }
  friend bool operator==(const Liveness&, const Liveness&) = default;
};

/// A tombstone of a row, a partition or a range: hides everything not newer than its timestamp.
struct Deletion {
  int64_t timestamp_us = kNoTimestamp;
  int64_t deletion_time_s = 0;

  bool present() const { return timestamp_us != kNoTimestamp; }
  bool hides(int64_t other_timestamp_us) const {
    return present() && other_timestamp_us <= timestamp_us;
  }
  friend bool operator==(const Deletion&, const Deletion&) = default;
};

/// What a cell is. The numbers are on disk.
enum class CellKind : uint8_t {
  kValue = 0,
  kTombstone = 1,  // of a simple column, or of one element when it has a path
  kColumnDeletion =
      2,  // of a whole collection or UDT: hides its elements that are not newer; has no path
};

/// Column ids come from the table's schema (never used twice in a table). Column 0 is no column:
/// its cell keeps the original bytes of clustering values whose ordered encoding is lossy, and
/// never makes a row live.
inline constexpr uint32_t kKeyCellColumnId = 0;

/// `path` names an element of a non-frozen collection or UDT; its bytes sort as the elements do.
struct Cell {
  uint32_t column_id = 0;
  CellKind kind = CellKind::kValue;
  bool has_path = false;
  int32_t ttl_s = 0;  // 0: none
  int64_t timestamp_us = kNoTimestamp;
  int64_t expiry_s =
      0;  // of a value with TTL: when it expires; of the two tombstone kinds: the deletion time
  BytesView path, value;

  bool live_at(int64_t now_s) const {
    return kind == CellKind::kValue && (ttl_s == 0 || now_s < expiry_s);
  }
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// Views point into what it was decoded from, or into memory its maker keeps alive.
struct RowRecord {
  Liveness liveness;
  Deletion deletion;  // row tombstone; in a partition header: the partition tombstone
  std::vector<Cell>
      cells;  // sorted, each (column id, path) at most once besides its column deletion

  bool empty() const { return !liveness.present() && !deletion.present() && cells.empty(); }
  friend bool operator==(const RowRecord&, const RowRecord&) = default;
};

inline constexpr uint64_t kRowCellsMax = 1 << 24;

/// Negative, 0 or positive as `a`'s place in a record is before, at or after `b`'s.
int compare_cell_places(const Cell& a, const Cell& b);

/// Appends the record's bytes. The cells must be sorted.
void encode_row_record(const RowRecord& record, Bytes& out);

/// Errors: kCorruption. The result's views point into `encoded`.
Result<RowRecord> decode_row_record(BytesView encoded);
/// As decode_row_record(), into a record that is used again and again.
Result<void> decode_row_record_into(BytesView encoded, RowRecord& record);

/// Whether it decodes, without building anything.
Result<void> check_row_record(BytesView encoded);

/// Walks a record without building a vector: what the read path uses.
///   RowRecordReader r; TETRAD_TRY_VOID(r.open(bytes)); Cell c; while (r.next(c)) …;
///   TETRAD_TRY_VOID(r.status());
class RowRecordReader {
 public:
  Result<void> open(BytesView encoded);
  const Liveness& liveness() const { return liveness_; }
  const Deletion& deletion() const { return deletion_; }
  /// False at the end or on corruption; status() tells which.
  bool next(Cell& cell);
  Result<void> status() const;
  uint64_t cells_left() const { return cells_left_; }

 private:
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  uint64_t cells_left_ = 0;
  int64_t base_timestamp_us_ = 0;
  bool first_ = true;
  bool corrupt_ = false;
  // The place of the cell before, to check the order.
  uint32_t column_id_ = 0;
  bool column_deletion_ = false, has_path_ = false;
  BytesView path_;
  Liveness liveness_;
  Deletion deletion_;
};

}  // namespace tetrad::storage
