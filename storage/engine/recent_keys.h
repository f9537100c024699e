// SPDX-License-Identifier: Apache-2.0
// Pages of what was written lately (Store::recent): which keys the log has, and the records that
// are at those keys now.
//
//   place := u64 life, u64 from, u64 end, u64 until, after (to the end)
//   example: 0000000000000002 0000000000000064 00000000000000c8 000000000000012c 6b
//            life 2, from 100 to before 200, none from 300 on; after the key "k"
//
// The page's keys are those of the log from `from` on, beyond `after`; none come from `until` on.
// Pages of the same piece of the log have the same `end`, whatever ranges are still asked for; 0:
// it is not known yet. Numbers are of one life: a power cut gives some of them to other writes.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/engine/store.h"
#include "storage/row/storage_key.h"

namespace rocksdb {
class DB;
}

namespace tetrad::storage {

/// Bounds of a page: bytes of log that are read, bytes of keys that are kept.
inline constexpr uint64_t kRecentLogBytes = 32 << 20, kRecentKeyBytes = 4 << 20;

/// Where a page of Store::recent() goes on: what its `next` and `after` hold.
struct RecentPlace {
  uint64_t life = 0, from = 0, end = 0, until = 0;
  Bytes after;

  /// How far the piece of the log may go.
  uint64_t stop() const { return end == 0 ? until : std::min(end, until); }
  Bytes encode() const;
  /// Errors: kCorruption; kCancelled: a place of another life than `life`.
  static Result<RecentPlace> decode(BytesView encoded, uint64_t life);
};

/// The keys that a piece of the log writes, of the ranges that are asked for.
class RecentKeys {
 public:
  explicit RecentKeys(const Store::RecentCommand& command);
  /// A key that was written: kept if it is of the ranges.
  void see(BytesView key);
  /// No more of the log should be read for this page.
  bool is_full() const { return bytes_ >= kRecentKeyBytes; }
  const std::set<Bytes, std::less<>>& keys() const { return keys_; }

 private:
  std::unordered_map<uint32_t, std::vector<RingRange>> ranges_;  // apart, by start
  std::set<Bytes, std::less<>> keys_;
  uint64_t bytes_ = 0;
};

/// Reads the log from `from` on, to `until` or until it has been enough for a page, and returns
/// where it stopped. Errors: kNotFound: the log has not all of it. Blocks.
Result<uint64_t> read_log(rocksdb::DB& db, uint64_t from, uint64_t until, RecentKeys& keys);

/// The page at `place` of `keys`, which the log has up to `end`. With the rows of a partition comes
/// what may hide them, however old: who gets them may have dropped it. Errors: kNotFound: that is
/// too much for a page.
Result<Store::RecentPage> recent_page(
    KeyView& view, const RecentPlace& place, const RecentKeys& keys, uint64_t end,
    uint64_t bytes_max, const std::function<SchemaVersion(TableIncarnation)>& version_of);

}  // namespace tetrad::storage
