// SPDX-License-Identifier: Apache-2.0
// Bucket marks (rule 14): per hash bucket of partitions the newest timestamp ever applied, and
// whether a row tombstone was. Never lowered. What may be Put, instead of merged, is decided here.
#pragma once

#include <algorithm>
#include <bitset>
#include <limits>
#include <memory>
#include <vector>

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
  uint32_t dead = 0;          // tombstones of all kinds, and what has a TTL
};
/// Errors: kCorruption.
Result<RecordFacts> facts_of(BytesView record);

class BucketMarks {
 public:
  BucketMarks() : marks_(kBucketCount, kNoTimestamp) {}

  int64_t mark(uint16_t bucket) const { return marks_[bucket]; }
  bool has_row_tombstone(uint16_t bucket) const { return row_tombstones_[bucket]; }
  void raise(uint16_t bucket, int64_t timestamp_us) {
    marks_[bucket] = std::max(marks_[bucket], timestamp_us);
  }
  void see_row_tombstone(uint16_t bucket) { row_tombstones_.set(bucket); }
  /// Nothing is known about a part of the data: nothing may be Put any more.
  void raise_all_to_the_end();

  /// May a complete record replace what is stored of its row?
  bool may_put(uint16_t bucket, const RecordFacts& facts) const;

  /// For table properties: exact while few buckets are used, else by groups of 256 buckets.
  Bytes encode_marks() const;
  Bytes encode_row_tombstones() const;
  /// Raises by what encode_…() wrote. Errors: kCorruption.
  Result<void> join_marks(BytesView encoded);
  Result<void> join_row_tombstones(BytesView encoded);

 private:
  std::vector<int64_t> marks_;
  std::bitset<kBucketCount> row_tombstones_;
};

}  // namespace tetrad::storage
