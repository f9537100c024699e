// SPDX-License-Identifier: Apache-2.0
// Bucket marks and their form in table properties.
//
//   marks          := u8 1, varint count, (u16 bucket, zigzag timestamp)* | u8 2, i64 timestamp *
//   256 row tombstones := u8 1, varint count, u16 bucket*                     | u8 2, 8192 bytes
//   bitmap
#include "storage/engine/bucket_marks.h"

#include <limits>

#include "base/byte_io.h"
#include "base/data_mutants.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kList = 1, kDense = 2;
constexpr size_t kListMax = 512;
constexpr size_t kGroupCount = 256;
constexpr size_t kGroupBuckets = kBucketCount / kGroupCount;
constexpr size_t kBitmapBytes = kBucketCount / 8;

std::unexpected<Error> bad_property() {
  return fail(ErrorCode::kCorruption, "table properties with bad bucket marks");
}

}  // namespace

Result<RecordFacts> facts_of(BytesView record) {
  RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(record));
  const Liveness& marker = reader.liveness();
  RecordFacts facts;
  facts.has_deletion = reader.deletion().present();
  if (facts.has_deletion) ++facts.dead;
  if (marker.ttl_s > 0) ++facts.dead;
  facts.latest_us = std::max(marker.timestamp_us, reader.deletion().timestamp_us);
  if (marker.present()) facts.oldest_us = marker.timestamp_us;
  Cell cell;
  while (reader.next(cell)) {
    facts.latest_us = std::max(facts.latest_us, cell.timestamp_us);
    if (cell.kind != CellKind::kValue || cell.ttl_s > 0) ++facts.dead;
    facts.oldest_us = std::min(facts.oldest_us, cell.timestamp_us);
  }
  TETRAD_TRY_VOID(reader.status());
  if (marker.present()) facts.floor_us = facts.oldest_us;
  if (facts.has_deletion)
    facts.oldest_us = std::min(facts.oldest_us, reader.deletion().timestamp_us);
  return facts;
}

bool BucketMarks::may_put(uint16_t bucket, const RecordFacts& facts) const {
  const bool newer = facts.floor_us > marks_[bucket] || TETRAD_MUTANT(put_below_mark);
  const bool clear = !row_tombstones_[bucket] || TETRAD_MUTANT(put_over_tombstone);
  return facts.floor_us != kNoTimestamp && !facts.has_deletion && newer && clear;
}

void BucketMarks::raise_all_to_the_end() {
  std::fill(marks_.begin(), marks_.end(), std::numeric_limits<int64_t>::max());
  row_tombstones_.set();
}

Bytes BucketMarks::encode_marks() const {
  const size_t used =
      kBucketCount - static_cast<size_t>(std::count(marks_.begin(), marks_.end(), kNoTimestamp));
  Bytes out;
  base::ByteWriter w(out);
  if (used <= kListMax) {
    w.u8(kList);
    w.varint(used);
    for (size_t i = 0; i < kBucketCount; ++i) {
      if (marks_[i] == kNoTimestamp) continue;
      w.u16(static_cast<uint16_t>(i));
      w.zigzag(marks_[i]);
    }
    return out;
  }
  w.u8(kDense);
  for (size_t group = 0; group < kGroupCount; ++group) {
    const auto first = marks_.begin() + static_cast<ptrdiff_t>(group * kGroupBuckets);
    w.i64(*std::max_element(first, first + kGroupBuckets));
  }
  return out;
}

Bytes BucketMarks::encode_row_tombstones() const {
  Bytes out;
  base::ByteWriter w(out);
  if (row_tombstones_.count() <= kListMax) {
    w.u8(kList);
    w.varint(row_tombstones_.count());
    for (size_t i = 0; i < kBucketCount; ++i)
      if (row_tombstones_[i]) w.u16(static_cast<uint16_t>(i));
    return out;
  }
  w.u8(kDense);
  Bytes bitmap(kBitmapBytes, '\0');
  for (size_t i = 0; i < kBucketCount; ++i)
    if (row_tombstones_[i]) bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
  w.raw(bitmap);
  return out;
}

Result<void> BucketMarks::join_marks(BytesView encoded) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t form, r.read_u8());
  if (form == kList) {
    TETRAD_TRY(const uint64_t count, r.read_varint());
    for (uint64_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint16_t bucket, r.read_u16());
      TETRAD_TRY(const int64_t timestamp, r.read_zigzag());
      raise(bucket, timestamp);
    }
  } else if (form == kDense) {
    for (size_t group = 0; group < kGroupCount; ++group) {
      TETRAD_TRY(const int64_t timestamp, r.read_i64());
      for (size_t i = 0; i < kGroupBuckets; ++i)
        raise(static_cast<uint16_t>(group * kGroupBuckets + i), timestamp);
    }
  } else {
    return bad_property();
  }
  if (!r.at_end()) return bad_property();
  return {};
}

Result<void> BucketMarks::join_row_tombstones(BytesView encoded) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t form, r.read_u8());
  if (form == kList) {
    TETRAD_TRY(const uint64_t count, r.read_varint());
    for (uint64_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint16_t bucket, r.read_u16());
      see_row_tombstone(bucket);
    }
  } else if (form == kDense) {
    TETRAD_TRY(const BytesView bitmap, r.read_raw(kBitmapBytes));
    for (size_t i = 0; i < kBucketCount; ++i)
      if (bitmap[i / 8] & (1 << (i % 8))) see_row_tombstone(static_cast<uint16_t>(i));
  } else {
    return bad_property();
  }
  if (!r.at_end()) return bad_property();
  return {};
}

}  // namespace tetrad::storage
