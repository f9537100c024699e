// SPDX-License-Identifier: Apache-2.0
// Runs of clustering keys with nothing but deleted rows, such as the front of a queue, so that only
// the first read walks them. A read that walked a run reports it; the run is dropped when WriteTurn
// reports a write into it that may be live. Belongs to the store's thread; no lock.
#pragma once

#include <bitset>
#include <deque>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// A read with this time or a later one finds no live row with start <= clustering key < end.
struct DeadRun {
  Bytes start, end;
  int64_t now_s = 0;
};
/// Ascending, disjoint.
using DeadRunList = std::vector<DeadRun>;
/// The run that a key lies in, for a read at `now_s`; null if none.
const DeadRun* dead_run_at(const DeadRunList& runs, BytesView key, int64_t now_s);

/// What a store knows of runs of dead rows. Owned by WriteTurn. A row that may live cuts the run it
/// is written into; beyond kPartitionsMax the partition that was used least lately is forgotten.
class DeadRuns {
 public:
  /// False: nothing is known of the bucket's partitions.
  bool knows(uint16_t bucket) const { return buckets_.test(bucket); }
  /// Null: nothing is known of the partition whose keys begin so.
  const DeadRunList* find(BytesView prefix) const;

  /// From now on writes to the partition are noted. `newest`: the number of its bucket's last one.
  void watch(uint16_t bucket, BytesView prefix, uint64_t newest);
  /// Adds a run found by a read that saw all mutations up to `seen`. Ignored if later mutations are
  /// no longer known.
  void keep(BytesView prefix, DeadRun run, uint64_t seen);
  /// Of mutation `number`: a row that may live.
  void note(BytesView prefix, BytesView clustering_key, uint64_t number);
  size_t size() const { return partitions_.size(); }

 private:
  /// A partition whose writes are noted. `rows` has every row that may live and was
  /// written with a number above rows_after.
  struct Partition {
    Bytes prefix;
    uint16_t bucket = 0;
    DeadRunList runs;
    /// The last rows written, with all after this mutation.
    std::deque<std::pair<uint64_t, Bytes>> rows;
    uint64_t rows_after = 0;
  };
  using Partitions = std::list<Partition>;  // the last used first
  static constexpr size_t kPartitionsMax = 1024, kRunsMax = 8, kRowsMax = 64;
  static constexpr size_t kKeyBytesMax = 1024;  // of a run's bounds

  static void cut(DeadRunList& runs, BytesView key);
  static void join(DeadRunList& runs, DeadRun run);

  Partitions partitions_;
  std::unordered_map<BytesView, Partitions::iterator> by_prefix_;  // keys: views of prefix
  std::bitset<kBucketCount> buckets_;
};

}  // namespace tetrad::storage
