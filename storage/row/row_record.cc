// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of row records. The format is described in row_record.h.
#include "storage/row/row_record.h"

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kHasLiveness = 0x01;
constexpr uint8_t kLivenessHasTtl = 0x02;
constexpr uint8_t kHasDeletion = 0x04;
constexpr uint8_t kKnownFlags = 0x07;

constexpr uint8_t kCellKindMask = 0x03;
constexpr uint8_t kCellHasPath = 0x04;
constexpr uint8_t kCellHasTtl = 0x08;
constexpr uint8_t kCellAtBase = 0x10;
constexpr uint8_t kKnownCellFlags = 0x1f;
// flags, column id, size of a value (a tombstone has its deletion time there)
constexpr size_t kCellBytesMin = 3;

// Differences wrap around: any two timestamps have one.
int64_t difference(int64_t timestamp_us, int64_t base_us) {
  return static_cast<int64_t>(static_cast<uint64_t>(timestamp_us) - static_cast<uint64_t>(base_us));
}
int64_t sum(int64_t base_us, int64_t difference_us) {
  return static_cast<int64_t>(static_cast<uint64_t>(base_us) +
                              static_cast<uint64_t>(difference_us));
}

/// The low seven bits of eight bytes, pushed together.
uint64_t joined_groups(uint64_t word) {
  word &= 0x7f7f7f7f7f7f7f7f;
  word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
  word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
  return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
}

bool read_long_varint(const char*& next, const char* end, uint64_t& value) {
  if constexpr (std::endian::native == std::endian::little) {
    // A timestamp has eight bytes: all of them at once.
    if (end - next >= 8) {
      uint64_t word;
      std::memcpy(&word, next, sizeof(word));
      const uint64_t ends = ~word & 0x8080808080808080;
      if (ends != 0) [[likely]] {
        const int last = std::countr_zero(ends);  // the end's highest bit
        value = joined_groups(word & (~uint64_t{0} >> (63 - last)));
        next += (last + 1) / 8;
        return true;
      }
    }
  }
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (next == end) return false;
    const auto b = static_cast<uint8_t>(*next++);
    if (shift == 63 && b > 1) return false;
    value |= static_cast<uint64_t>(b & 0x7f) << shift;
    if (b < 0x80) return true;
  }
  return false;
}

inline bool read_varint(const char*& next, const char* end, uint64_t& value) {
  if (next != end && static_cast<uint8_t>(*next) < 0x80) [[likely]] {
    value = static_cast<uint8_t>(*next++);
    return true;
  }
  return read_long_varint(next, end, value);
}

bool read_zigzag(const char*& next, const char* end, int64_t& value) {
  uint64_t v;
  if (!read_varint(next, end, v)) return false;
  value = static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  return true;
}

bool read_timestamp(const char*& next, const char* end, int64_t base_us, int64_t& timestamp_us) {
  int64_t d;
  if (!read_zigzag(next, end, d)) return false;
  timestamp_us = sum(base_us, d);
  return timestamp_us != kNoTimestamp;
}

bool read_ttl(const char*& next, const char* end, int32_t& ttl_s, int64_t& expiry_s) {
  uint64_t ttl, expiry;
  if (!read_varint(next, end, ttl) || !read_varint(next, end, expiry)) return false;
  if (ttl == 0 || ttl > std::numeric_limits<int32_t>::max()) return false;
  ttl_s = static_cast<int32_t>(ttl);
  expiry_s = static_cast<int64_t>(expiry);
  return true;
}

bool read_bytes(const char*& next, const char* end, BytesView& bytes) {
  uint64_t size;
  if (!read_varint(next, end, size)) return false;
  if (size > static_cast<uint64_t>(end - next)) return false;
  bytes = {next, static_cast<size_t>(size)};
  next += size;
  return true;
}

// The most common timestamp of a row is that of its marker, or of its first cell.
int64_t base_timestamp(const RowRecord& record) {
  if (record.liveness.present()) return record.liveness.timestamp_us;
  for (const Cell& cell : record.cells)
    if (cell.kind != CellKind::kColumnDeletion) return cell.timestamp_us;
  if (!record.cells.empty()) return record.cells.front().timestamp_us;
  if (record.deletion.present()) return record.deletion.timestamp_us;
  return 0;
}

}  // namespace

int compare_cell_places(const Cell& a, const Cell& b) {
  if (a.column_id != b.column_id) return a.column_id < b.column_id ? -1 : 1;
  const bool a_first = a.kind == CellKind::kColumnDeletion;
  const bool b_first = b.kind == CellKind::kColumnDeletion;
  if (a_first != b_first) return a_first ? -1 : 1;
  if (a.has_path != b.has_path) return a.has_path ? 1 : -1;
  return a.path.compare(b.path);
}

void encode_row_record(const RowRecord& record, Bytes& out) {
  base::ByteWriter w(out);
  const bool liveness_ttl = record.liveness.present() && record.liveness.ttl_s > 0;
  w.u8(static_cast<uint8_t>((record.liveness.present() ? kHasLiveness : 0) |
                            (liveness_ttl ? kLivenessHasTtl : 0) |
                            (record.deletion.present() ? kHasDeletion : 0)));
  const int64_t base_us = base_timestamp(record);
  w.zigzag(base_us);
  if (record.liveness.present()) {
    w.zigzag(difference(record.liveness.timestamp_us, base_us));
    if (liveness_ttl) {
      w.varint(static_cast<uint64_t>(record.liveness.ttl_s));
      w.varint(static_cast<uint64_t>(record.liveness.expiry_s));
    }
  }
  if (record.deletion.present()) {
    w.zigzag(difference(record.deletion.timestamp_us, base_us));
    w.varint(static_cast<uint64_t>(record.deletion.deletion_time_s));
  }
  w.varint(record.cells.size());
  uint32_t previous_id = 0;
  for (const Cell& cell : record.cells) {
    TETRAD_ASSERT(cell.column_id >= previous_id);
    TETRAD_ASSERT(cell.timestamp_us != kNoTimestamp);
    const bool has_ttl = cell.kind == CellKind::kValue && cell.ttl_s > 0;
    const bool at_base = cell.timestamp_us == base_us;
    w.u8(static_cast<uint8_t>(static_cast<uint8_t>(cell.kind) | (cell.has_path ? kCellHasPath : 0) |
                              (has_ttl ? kCellHasTtl : 0) | (at_base ? kCellAtBase : 0)));
    w.varint(cell.column_id - previous_id);
    previous_id = cell.column_id;
    if (!at_base) w.zigzag(difference(cell.timestamp_us, base_us));
    if (has_ttl) {
      w.varint(static_cast<uint64_t>(cell.ttl_s));
      w.varint(static_cast<uint64_t>(cell.expiry_s));
    } else if (cell.kind != CellKind::kValue) {
      w.varint(static_cast<uint64_t>(cell.expiry_s));
    }
    if (cell.has_path) w.bytes(cell.path);
    if (cell.kind == CellKind::kValue) w.bytes(cell.value);
  }
}

Result<void> RowRecordReader::open(BytesView encoded) {
  next_ = encoded.data();
  end_ = next_ + encoded.size();
  cells_left_ = 0;
  column_id_ = 0;
  first_ = true;
  corrupt_ = true;  // until the head has been read
  liveness_ = {};
  deletion_ = {};
  if (encoded.empty()) return fail(ErrorCode::kCorruption, "row record of 0 bytes");
  const auto flags = static_cast<uint8_t>(*next_++);
  if ((flags & ~kKnownFlags) != 0)
    return fail(ErrorCode::kCorruption, "row record with unknown flags 0x{:02x}", flags);
  if ((flags & kLivenessHasTtl) && !(flags & kHasLiveness))
    return fail(ErrorCode::kCorruption, "row record with the TTL of no row marker");
  const auto bad_head = [] { return fail(ErrorCode::kCorruption, "row record with a bad head"); };
  if (!read_zigzag(next_, end_, base_timestamp_us_)) return bad_head();
  if (flags & kHasLiveness) {
    if (!read_timestamp(next_, end_, base_timestamp_us_, liveness_.timestamp_us)) return bad_head();
    if ((flags & kLivenessHasTtl) && !read_ttl(next_, end_, liveness_.ttl_s, liveness_.expiry_s))
      return bad_head();
  }
  if (flags & kHasDeletion) {
    uint64_t deletion_time_s;
    if (!read_timestamp(next_, end_, base_timestamp_us_, deletion_.timestamp_us) ||
        !read_varint(next_, end_, deletion_time_s))
      return bad_head();
    deletion_.deletion_time_s = static_cast<int64_t>(deletion_time_s);
  }
  uint64_t count;
  if (!read_varint(next_, end_, count)) return bad_head();
  if (count > kRowCellsMax)
    return fail(ErrorCode::kCorruption, "row of {} cells, at most {}", count, kRowCellsMax);
  if (count > static_cast<uint64_t>(end_ - next_) / kCellBytesMin)
    return fail(ErrorCode::kCorruption, "row record says {} cells and has {} bytes for them", count,
                end_ - next_);
  cells_left_ = count;
  corrupt_ = false;
  return {};
}

bool RowRecordReader::next(Cell& cell) {
  if (cells_left_ == 0) {
    if (next_ != end_) corrupt_ = true;  // bytes after the last cell
    return false;
  }
  const auto corrupt = [this] {
    corrupt_ = true;
    cells_left_ = 0;
    next_ = end_;
    return false;
  };
  if (next_ == end_) return corrupt();
  const auto flags = static_cast<uint8_t>(*next_++);
  if ((flags & ~kKnownCellFlags) != 0 || (flags & kCellKindMask) == kCellKindMask) return corrupt();
  cell.kind = static_cast<CellKind>(flags & kCellKindMask);
  cell.has_path = (flags & kCellHasPath) != 0;
  const bool has_ttl = (flags & kCellHasTtl) != 0;
  if (has_ttl && cell.kind != CellKind::kValue) return corrupt();
  if (cell.has_path && cell.kind == CellKind::kColumnDeletion) return corrupt();

  uint64_t id_step;
  if (!read_varint(next_, end_, id_step)) return corrupt();
  if (id_step > std::numeric_limits<uint32_t>::max() - column_id_) return corrupt();
  cell.column_id = column_id_ + static_cast<uint32_t>(id_step);

  cell.timestamp_us = base_timestamp_us_;
  if (!(flags & kCellAtBase) && !read_timestamp(next_, end_, base_timestamp_us_, cell.timestamp_us))
    return corrupt();
  if (cell.timestamp_us == kNoTimestamp) return corrupt();
  cell.ttl_s = 0;
  cell.expiry_s = 0;
  if (has_ttl) {
    if (!read_ttl(next_, end_, cell.ttl_s, cell.expiry_s)) return corrupt();
  } else if (cell.kind != CellKind::kValue) {
    uint64_t deletion_time_s;
    if (!read_varint(next_, end_, deletion_time_s)) return corrupt();
    cell.expiry_s = static_cast<int64_t>(deletion_time_s);
  }
  cell.path = {};
  if (cell.has_path && !read_bytes(next_, end_, cell.path)) return corrupt();
  cell.value = {};
  if (cell.kind == CellKind::kValue && !read_bytes(next_, end_, cell.value)) return corrupt();

  const bool column_deletion = cell.kind == CellKind::kColumnDeletion;
  if (id_step == 0 && !first_) {  // the same column: the rest of the place must rise
    if (column_deletion) return corrupt();
    const bool rises =
        column_deletion_ || (has_path_ != cell.has_path ? cell.has_path : path_ < cell.path);
    if (!rises) return corrupt();
  }
  first_ = false;
  column_id_ = cell.column_id;
  column_deletion_ = column_deletion;
  has_path_ = cell.has_path;
  path_ = cell.path;
  --cells_left_;
  return true;
}

Result<void> RowRecordReader::status() const {
  if (corrupt_) return fail(ErrorCode::kCorruption, "row record with a bad cell");
  return {};
}

Result<void> check_row_record(BytesView encoded) {
  RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(encoded));
  Cell cell;
  while (reader.next(cell)) {
  }
  return reader.status();
}

Result<void> decode_row_record_into(BytesView encoded, RowRecord& record) {
  record.cells.clear();
  RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(encoded));
  record.liveness = reader.liveness();
  record.deletion = reader.deletion();
  record.cells.reserve(reader.cells_left());
  Cell cell;
  while (reader.next(cell)) record.cells.push_back(cell);
  return reader.status();
}

Result<RowRecord> decode_row_record(BytesView encoded) {
  RowRecord record;
  TETRAD_TRY_VOID(decode_row_record_into(encoded, record));
  return record;
}

}  // namespace tetrad::storage
