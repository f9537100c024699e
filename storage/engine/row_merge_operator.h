// SPDX-License-Identifier: Apache-2.0
// RocksDB's merge operator of a store: joins values as value_merge.h describes, never fails and
// sees no clock (rule 16).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace rocksdb {
class MergeOperator;
}

namespace tetrad::storage {

/// What the operator has met; written by any thread.
struct MergeReport {
  std::atomic<uint64_t> undecodable_values{0};
};

/// While one lives, the values that full merges join on this thread count for it. RocksDB calls the
/// operator without a word of who reads, so the thread is how they find each other.
class MergeWatch {
 public:
  MergeWatch();
  ~MergeWatch();
  MergeWatch(const MergeWatch&) = delete;
  MergeWatch& operator=(const MergeWatch&) = delete;
  /// The most operands that one merge has met since the last call.
  size_t take_operands() { return std::exchange(operands_, 0); }

 private:
  friend class RowMergeOperator;
  /// Watches of one thread nest; the innermost counts.
  MergeWatch* const outer_;
  size_t operands_ = 0;
};

/// One for each store. `report` counts what it could not decode, on whatever thread it was met.
std::shared_ptr<rocksdb::MergeOperator> make_row_merge_operator(
    std::shared_ptr<MergeReport> report);

}  // namespace tetrad::storage
