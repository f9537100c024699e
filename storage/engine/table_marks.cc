// SPDX-License-Identifier: Apache-2.0
// The marks of a table and their form in table properties.
//
//   marks   := u8 bits (of a bucket's number), newest, seen * 3 (in the order of Seen)
//   newest  := u8 1, varint count, (u16 bucket, zigzag timestamp)*
//            | u8 2, varint count, (u16 bucket, zigzag timestamp)*, zigzag newest of all others,
//              varint * 256 (0: none, else 1 + how much older the group is)
//   seen    := u8 1, varint count, u16 bucket* | u8 2, a bit for each bucket
//   example: 06 01 01 0001 14 01 00 01 00 01 00
//            64 buckets; the newest timestamp of bucket 1 is 10 us; no tombstones of any kind
//
// Form 1 lists buckets, form 2 has all of them; a group is 1/256 of the buckets. A bit for each
// bucket: the lowest bit of a byte is the lowest bucket.
//
// Files of older programs have two properties for all tables together, by 64 K buckets:
//   marks          := u8 1, varint count, (u16 bucket, zigzag timestamp)* | u8 2, i64 * 256
//   row tombstones := seen
#include "storage/engine/table_marks.h"

#include <bit>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kList = 1, kDense = 2;
constexpr size_t kListMax = 512;
constexpr size_t kGroupCount = 256;
constexpr size_t kNewestAlone = 64;  // buckets of a dense form that are listed one by one

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
  facts.may_live = marker.present();
  Cell cell;
  while (reader.next(cell)) {
    facts.latest_us = std::max(facts.latest_us, cell.timestamp_us);
    facts.oldest_us = std::min(facts.oldest_us, cell.timestamp_us);
    if (cell.kind == CellKind::kValue) {
      facts.may_live = true;
      if (cell.ttl_s > 0) ++facts.dead;
    } else {
      ++facts.dead;
    }
  }
  TETRAD_TRY_VOID(reader.status());
  if (marker.present()) facts.floor_us = facts.oldest_us;
  if (facts.has_deletion)
    facts.oldest_us = std::min(facts.oldest_us, reader.deletion().timestamp_us);
  return facts;
}

bool TableMarks::may_put(uint16_t bucket, const RecordFacts& facts) const {
  const bool newer = facts.floor_us > mark(bucket) || TETRAD_MUTANT(put_below_mark);
  const bool clear = !has(bucket, kRowTombstones) || TETRAD_MUTANT(put_over_tombstone);
  return facts.floor_us != kNoTimestamp && !facts.has_deletion && newer && clear;
}

void TableMarks::see(uint16_t bucket, Seen what, MarkBudget& budget) {
  if (has(bucket, what)) return;
  TETRAD_ASSERT(index_of(bucket) < seen_.size());
  grow_to(kBitsMost, budget);  // one partition shall not speak for many
  seen_[index_of(bucket)] |= what;
}

// No record is newer than the end of time, so every row is merged, and every read looks for
// tombstones.
void TableMarks::raise_all_to_the_end() {
  std::ranges::fill(newest_us_, std::numeric_limits<int64_t>::max());
  std::ranges::fill(seen_, kRowTombstones | kRangeTombstones | kStraddlingTombstones);
}

void TableMarks::release(MarkBudget& budget) {
  TETRAD_ASSERT(newest_us_.size() >= size_t{1} << kFirstBits);
  budget.buckets_left += newest_us_.size() - (size_t{1} << kFirstBits);
}

void TableMarks::grow(MarkBudget& budget) {
  grow_to(std::min<uint8_t>(bits_ + kBitsMore, kBitsMost), budget);
  collisions_ = 0;
}

// Each new bucket inherits what the old one knew: that may be too much, never too little.
void TableMarks::grow_to(uint8_t bits, MarkBudget& budget) {
  if (bits <= bits_) return;
  TETRAD_ASSERT(bits <= kBitsMost && newest_us_.size() == size_t{1} << bits_);
  const size_t count = size_t{1} << bits, added = count - newest_us_.size();
  if (added > budget.buckets_left) return;
  budget.buckets_left -= added;
  std::vector<int64_t> newest_us(count, kNoTimestamp);
  std::vector<uint8_t> seen(count);
  for (size_t i = 0; i < count && !TETRAD_MUTANT(marks_not_inherited); ++i) {
    newest_us[i] = newest_us_[i >> (bits - bits_)];
    seen[i] = seen_[i >> (bits - bits_)];
  }
  TETRAD_ASSERT(newest_us.size() == seen.size());
  newest_us_ = std::move(newest_us);
  seen_ = std::move(seen);
  bits_ = bits;
}

// The dense form rounds up: the newest buckets stand alone, so that one client's far-off timestamp
// does not speak for a whole group; of the others each group gets its newest.
void TableMarks::encode(Bytes& out) const {
  base::ByteWriter w(out);
  w.u8(bits_);
  std::vector<uint16_t> used;
  for (size_t i = 0; i < newest_us_.size(); ++i)
    if (newest_us_[i] != kNoTimestamp) used.push_back(static_cast<uint16_t>(i));
  const auto list = [&](size_t count) {
    w.varint(count);
    for (size_t i = 0; i < count; ++i) {
      w.u16(used[i]);
      w.zigzag(newest_us_[used[i]]);
    }
  };
  if (used.size() <= kListMax) {
    w.u8(kList);
    list(used.size());
  } else {
    w.u8(kDense);
    const auto later = [&](uint16_t a, uint16_t b) { return newest_us_[a] > newest_us_[b]; };
    TETRAD_ASSERT(used.size() > kNewestAlone && newest_us_.size() >= kGroupCount);
    std::ranges::nth_element(used, used.begin() + kNewestAlone, later);
    list(kNewestAlone);
    std::vector<int64_t> groups(kGroupCount, kNoTimestamp);
    for (size_t i = kNewestAlone; i < used.size(); ++i) {
      int64_t& group = groups[used[i] / (newest_us_.size() / kGroupCount)];
      group = std::max(group, newest_us_[used[i]]);
    }
    const int64_t newest_us = *std::ranges::max_element(groups);
    w.zigzag(newest_us);
    for (const int64_t of_group : groups)
      w.varint(of_group == kNoTimestamp
                   ? 0
                   : 1 + (static_cast<uint64_t>(newest_us) - static_cast<uint64_t>(of_group)));
  }
  for (const Seen what : {kRowTombstones, kRangeTombstones, kStraddlingTombstones}) {
    const auto count = static_cast<size_t>(
        std::ranges::count_if(seen_, [&](uint8_t seen) { return (seen & what) != 0; }));
    Bytes bitmap;
    w.u8(count <= kListMax ? kList : kDense);
    if (count <= kListMax) w.varint(count);
    if (count > kListMax) bitmap.resize(seen_.size() / 8);
    for (size_t i = 0; i < seen_.size(); ++i) {
      if ((seen_[i] & what) == 0) continue;
      if (count <= kListMax)
        w.u16(static_cast<uint16_t>(i));
      else
        bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
    }
    w.raw(bitmap);
  }
}

void TableMarks::raise_part(uint8_t bits, size_t index, int64_t timestamp_us) {
  const size_t first = (index << (kBitsMost - bits)) >> (kBitsMost - bits_);
  const size_t end = (((index + 1) << (kBitsMost - bits)) - 1) >> (kBitsMost - bits_);
  TETRAD_ASSERT(first <= end && end < newest_us_.size());
  for (size_t i = first; i <= end; ++i) newest_us_[i] = std::max(newest_us_[i], timestamp_us);
}

Result<void> TableMarks::join(BytesView encoded, MarkBudget& budget) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t bits, r.read_u8());
  if (bits < kFirstBits || bits > kBitsMost) return bad_property();
  grow_to(bits, budget);
  const size_t bucket_count = size_t{1} << bits;
  TETRAD_TRY(const uint8_t form, r.read_u8());
  if (form != kList && form != kDense) return bad_property();
  TETRAD_TRY(const uint64_t count, r.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint16_t bucket, r.read_u16());
    TETRAD_TRY(const int64_t timestamp_us, r.read_zigzag());
    if (bucket >= bucket_count) return bad_property();
    raise_part(bits, bucket, timestamp_us);
  }
  if (form == kDense) {
    constexpr auto kGroupBits = static_cast<uint8_t>(std::bit_width(kGroupCount) - 1);
    TETRAD_TRY(const int64_t newest_us, r.read_zigzag());
    for (size_t group = 0; group < kGroupCount; ++group) {
      TETRAD_TRY(const uint64_t older, r.read_varint());
      if (older != 0)
        raise_part(kGroupBits, group,
                   static_cast<int64_t>(static_cast<uint64_t>(newest_us) - (older - 1)));
    }
  }
  for (const Seen what : {kRowTombstones, kRangeTombstones, kStraddlingTombstones})
    TETRAD_TRY_VOID(join_seen(r, bits, what));
  if (!r.at_end()) return bad_property();
  return {};
}

Result<void> TableMarks::join_seen(base::ByteReader& r, uint8_t bits, Seen what) {
  const size_t bucket_count = size_t{1} << bits;
  const auto see_part = [&](size_t index) {
    const size_t first = (index << (kBitsMost - bits)) >> (kBitsMost - bits_);
    const size_t end = (((index + 1) << (kBitsMost - bits)) - 1) >> (kBitsMost - bits_);
    TETRAD_ASSERT(first <= end && end < seen_.size());
    for (size_t i = first; i <= end; ++i) seen_[i] |= what;
  };
  TETRAD_TRY(const uint8_t form, r.read_u8());
  if (form == kList) {
    TETRAD_TRY(const uint64_t count, r.read_varint());
    for (uint64_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint16_t bucket, r.read_u16());
      if (bucket >= bucket_count) return bad_property();
      see_part(bucket);
    }
    return {};
  }
  if (form != kDense) return bad_property();
  TETRAD_TRY(const BytesView bitmap, r.read_raw(bucket_count / 8));
  for (size_t i = 0; i < bucket_count; ++i)
    if (bitmap[i / 8] & (1 << (i % 8))) see_part(i);
  return {};
}

Result<void> TableMarks::join_marks_of_all(BytesView encoded, MarkBudget& budget) {
  constexpr size_t kGroupBuckets = kBucketCount / kGroupCount;
  grow_to(kBitsMost, budget);
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t form, r.read_u8());
  if (form == kList) {
    TETRAD_TRY(const uint64_t count, r.read_varint());
    for (uint64_t i = 0; i < count; ++i) {
      TETRAD_TRY(const uint16_t bucket, r.read_u16());
      TETRAD_TRY(const int64_t timestamp_us, r.read_zigzag());
      raise_part(kBitsMost, bucket, timestamp_us);
    }
  } else if (form == kDense) {
    for (size_t group = 0; group < kGroupCount; ++group) {
      TETRAD_TRY(const int64_t timestamp_us, r.read_i64());
      for (size_t i = 0; i < kGroupBuckets; ++i)
        raise_part(kBitsMost, group * kGroupBuckets + i, timestamp_us);
    }
  } else {
    return bad_property();
  }
  if (!r.at_end()) return bad_property();
  return {};
}

Result<void> TableMarks::join_row_tombstones_of_all(BytesView encoded, MarkBudget& budget) {
  grow_to(kBitsMost, budget);
  base::ByteReader r(encoded);
  TETRAD_TRY_VOID(join_seen(r, kBitsMost, kRowTombstones));
  if (!r.at_end()) return bad_property();
  return {};
}

}  // namespace tetrad::storage
