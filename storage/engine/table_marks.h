// SPDX-License-Identifier: Apache-2.0
// What a store knows of a table by hash bucket of its partitions (rule 14): the newest timestamp
// ever applied, never lowered, and which kinds of tombstones were. What may be Put, instead of
// merged, is decided here, and where a read need not look for range tombstones. What one table is
// sent says nothing of another.
//
// A table begins with few buckets. It gets more when they prove too few, from a budget of the
// store's: each of the new ones knows what the old one knew.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/byte_io.h"
#include "storage/row/row_record.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// What one row record says to the marks.
struct RecordFacts {
  int64_t latest_us = kNoTimestamp;  // of everything in it
  /// The oldest of everything in it: a complete record overwrites all that is older. kNoTimestamp
  /// if it has no row marker.
  int64_t floor_us = kNoTimestamp;
  int64_t oldest_us = std::numeric_limits<int64_t>::max();  // of everything in it
  bool has_deletion = false;  // a row tombstone; in a header the partition's
  bool may_live = false;      // there is something in it that is no tombstone
  uint32_t dead = 0;          // tombstones of all kinds, and what has a TTL
};
/// Errors: kCorruption.
Result<RecordFacts> facts_of(BytesView record);

/// How many more buckets the tables of a store may have beyond the first ones.
struct MarkBudget {
  size_t buckets_left = 8 * kBucketCount;  // 4.5 MB
};

/// The marks of one table in one store. Marks only rise and seen bits are only added, whatever is
/// deleted or purged: they say what may be there, never what is. Always 2^bits_ buckets of both.
class TableMarks {
 public:
  /// Kinds of tombstones that a bucket has got; the encoding has them in this order.
  enum Seen : uint8_t {
    kRowTombstones = 1,
    kRangeTombstones = 2,       // of the keys with one prefix
    kStraddlingTombstones = 4,  // other ranges
  };

  /// `bucket`: see bucket_of().
  int64_t mark(uint16_t bucket) const { return newest_us_[index_of(bucket)]; }
  bool has(uint16_t bucket, Seen what) const { return (seen_[index_of(bucket)] & what) != 0; }
  /// May a complete record replace what is stored of its row?
  bool may_put(uint16_t bucket, const RecordFacts& facts) const;

  void raise(uint16_t bucket, int64_t timestamp_us, MarkBudget& budget) {
    int64_t& newest_us = newest_us_[index_of(bucket)];
    if (timestamp_us > newest_us) [[likely]] {
      newest_us = timestamp_us;
    } else {
      ++collisions_;
      if (collisions_ * 16 > newest_us_.size()) [[unlikely]]
        grow(budget);
    }
  }
  void see(uint16_t bucket, Seen what, MarkBudget& budget);
  /// Nothing is known about a part of the data: nothing may be Put any more.
  void raise_all_to_the_end();
  size_t bucket_count() const { return newest_us_.size(); }
  /// Gives back what was taken from the budget.
  void release(MarkBudget& budget);

  /// For table properties: exact while few buckets are used, else by groups of 256 buckets, but for
  /// the newest of all.
  void encode(Bytes& out) const;
  /// Raises by what encode() wrote. Errors: kCorruption.
  Result<void> join(BytesView encoded, MarkBudget& budget);
  /// By the properties of files that were made when all tables had their marks in common.
  Result<void> join_marks_of_all(BytesView encoded, MarkBudget& budget);
  Result<void> join_row_tombstones_of_all(BytesView encoded, MarkBudget& budget);

 private:
  static constexpr uint8_t kFirstBits = 6, kBitsMore = 5, kBitsMost = 16;

  size_t index_of(uint16_t bucket) const { return bucket >> (kBitsMost - bits_); }
  /// Raises the marks of all buckets whose number begins with the `bits` bits of `index`.
  void raise_part(uint8_t bits, size_t index, int64_t timestamp_us);
  Result<void> join_seen(base::ByteReader& r, uint8_t bits, Seen what);
  /// Once more as fine, or as fine as may be.
  void grow(MarkBudget& budget);
  void grow_to(uint8_t bits, MarkBudget& budget);

  uint8_t bits_ = kFirstBits;
  std::vector<int64_t> newest_us_ = std::vector<int64_t>(size_t{1} << kFirstBits, kNoTimestamp);
  std::vector<uint8_t> seen_ = std::vector<uint8_t>(size_t{1} << kFirstBits);
  size_t collisions_ = 0;  // timestamps that were not newer than the mark, since it grew
};

}  // namespace tetrad::storage
