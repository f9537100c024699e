// SPDX-License-Identifier: Apache-2.0
// The row cache of a store: runs of rows that follow each other in a partition, as they are stored,
// for partitions that are read again and again. Moving RocksDB's iterator costs a fifth of a
// microsecond a row, walking a run next to nothing.
//
// Writes do not invalidate the cache: a run remembers the number of the last mutation it has seen,
// and is valid while its bucket has had none since (WriteTurn numbers them). What compaction drops
// or joins changes no answer. A run is kept of what is read for a second time with no write in
// between, so that neither a scan nor a partition that is being written costs copies. Belongs to
// the store's thread; no lock.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "storage/engine/partition_reader.h"

namespace tetrad::storage {

/// Owned by the store. The runs stay within bytes_max together; the one that was used least lately
/// goes first.
class RowCache {
 public:
  /// For metrics; `bytes` and `runs` are current, the others only rise.
  struct Figures {
    uint64_t bytes = 0, runs = 0, hits = 0, misses = 0;
  };
  /// What a read knows of the writes to its bucket, by the numbers of WriteTurn.
  struct Moment {
    uint64_t newest = 0;  // the bucket's last mutation
    uint64_t seen = 0;    // all up to this one are in RocksDB
  };

  /// 0 bytes: nothing is ever kept.
  explicit RowCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  /// As view.iterate() of bounds that name one partition's rows, with what the cache has of them.
  /// The cache and the view outlive the iterator.
  std::unique_ptr<KeyIterator> iterate(KeyView& view, KeyView::Bounds bounds, Moment moment);
  /// Forgets what begins with these bytes.
  void forget(BytesView prefix);
  const Figures& figures() const { return figures_; }

 private:
  friend class CachedRows;
  /// Where a row stands in Run::bytes.
  struct Row {
    uint32_t at, key_bytes, value_bytes;
  };
  /// All rows with start <= key < end, ascending.
  struct Run {
    Bytes prefix;  // of the partition's keys
    Bytes start, end;
    Bytes bytes;  // each row's key, then its value, in any order
    std::vector<Row> rows;
    uint64_t seen = 0;
    uint64_t charge = 0;      // bytes it takes, as last added up
    uint8_t passed_over = 0;  // reads that found it of no use since the last that did

    BytesView key(size_t i) const { return BytesView(bytes).substr(rows[i].at, rows[i].key_bytes); }
    BytesView value(size_t i) const {
      return BytesView(bytes).substr(rows[i].at + rows[i].key_bytes, rows[i].value_bytes);
    }
    /// The first row that is not before `key`.
    size_t lower_bound(BytesView key) const;
  };
  using Runs = std::list<Run>;  // the last used first

  /// What was seen only once: remembered by hash, with the bucket's newest mutation.
  struct Knock {
    uint64_t hash = 0, newest = 0;
  };
  static constexpr size_t kKnocks = 8192;
  static constexpr size_t kRunBytesMax = 256 << 10;
  static constexpr uint8_t kPassesMax = 3;

  /// Whether the same was read before with no write to its bucket since; remembers it otherwise.
  bool knocked_before(BytesView prefix, uint64_t newest);
  /// `kept`: a new run, or one that adjoins that of its partition.
  void keep(Run kept);
  void join(Run& run, const Run& more);
  void account(Run& run);
  void erase(Runs::iterator run);

  const uint64_t bytes_max_;
  Runs runs_;
  std::unordered_map<BytesView, Runs::iterator> by_prefix_;  // keys are views of Run::prefix
  std::vector<Knock> knocks_;
  bool in_use_ = false;  // by an iterator: a second one at a time goes without the cache
  Figures figures_;
};

}  // namespace tetrad::storage
