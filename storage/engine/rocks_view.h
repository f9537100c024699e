// SPDX-License-Identifier: Apache-2.0
// KeyView over RocksDB.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/engine/row_cache.h"
#include "storage/engine/row_merge_operator.h"

namespace rocksdb {
class DB;
class Snapshot;
}  // namespace rocksdb

namespace tetrad::storage {

/// RocksViewOptions::bytes_per_step of reads that look into values, as for the words of an index.
inline constexpr uint32_t kBytesPerLookedStep = 64;

/// What a view may touch and where it looks first. The snapshot, the cache and the runs outlive it.
struct RocksViewOptions {
  const rocksdb::Snapshot* snapshot = nullptr;
  /// On the loop: give up instead of reading a file, or after this many steps.
  bool memory_only = false;
  uint64_t steps_max = UINT64_MAX;
  /// Bytes of a value that take as long as one step: to copy them, or see kBytesPerLookedStep.
  uint32_t bytes_per_step = 4096;
  /// Values of more merge operands are remembered.
  size_t operands_max = SIZE_MAX;
  /// False for bulk reads, which would push everything else out of the cache.
  bool fill_cache = true;
  /// Rows of one partition are looked for here first. Null: they are not.
  RowCache* row_cache = nullptr;
  RowCache::Moment moment = {};
  /// What is known of the partition's dead rows; null: nothing.
  const DeadRunList* dead = nullptr;
  /// Of a view of memory only: where its hits in the block cache are added, unless it gives up and
  /// the same is read again. Null: nowhere.
  uint64_t* block_hits = nullptr;
};

/// A key that is worth being written as one value again, with that value.
struct MergedValue {
  Bytes key, value;
};

/// One read's view, on one thread. What it gave out is good until its next call.
class RocksView final : public KeyView {
 public:
  RocksView(rocksdb::DB& db, const RocksViewOptions& options);
  ~RocksView() override;
  Result<std::optional<BytesView>> get(BytesView key) override;
  std::unique_ptr<KeyIterator> iterate(Bounds bounds) override;
  const DeadRunList* dead_runs() const override { return options_.dead; }
  void found_dead(DeadRun run) override { dead_found_.push_back(std::move(run)); }
  uint64_t passed_over() const override;
  /// The view gave up: read again with memory_only off, on the I/O pool.
  bool gave_up() const { return gave_up_; }
  /// It was given up for its length, or for what it would have had to pass over.
  bool is_long() const { return is_long_; }
  DeadRunList take_dead() { return std::move(dead_found_); }
  /// As gave_up(), which it makes false: the next key is another matter.
  bool take_gave_up() { return std::exchange(gave_up_, false); }
  /// Values that were joined from too many operands, to be written back (rule 19); bounded, since
  /// the turn writes them besides its own work.
  std::vector<MergedValue> take_merged() { return std::move(merged_); }

 private:
  friend class RocksIterator;
  struct State;  // rocksdb's read options and pinned value
  /// On threads of the I/O pool only.
  bool counts_passed_over() const { return !options_.memory_only && options_.dead != nullptr; }
  bool take_step() { return ++steps_ <= options_.steps_max; }
  /// A value has been read.
  void see(BytesView key, BytesView value);

  rocksdb::DB& db_;
  const RocksViewOptions options_;
  uint64_t steps_ = 0;
  bool gave_up_ = false, is_long_ = false;
  DeadRunList dead_found_;
  uint64_t passed_before_ = 0, block_hits_before_ = 0;
  MergeWatch watch_;
  std::vector<MergedValue> merged_;
  size_t merged_bytes_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace tetrad::storage
