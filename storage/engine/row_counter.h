// SPDX-License-Identifier: Apache-2.0
// What a read with count_only keeps of its live rows, in place of the rows: their weight and, where
// the command has one, a fold. The number of the rows is counted by the read itself.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "storage/row/read_command.h"
#include "storage/row/row_fold.h"

namespace tetrad::storage {

/// The partition that a counted row is in; good during the call.
struct CountedPartition {
  RingPosition position;
  BytesView partition_key;
  const RowRecord& header;  // cells of it may be dead: a fold looks at the read's time itself
};

/// Owned by one read. A fold that fails is given up: the answer is then without `folded`, nothing
/// else of it changes, and who asked for the fold reads the rows.
class RowCounter {
 public:
  /// The command outlives this object.
  explicit RowCounter(const ReadCommand& command) : command_(command) {}

  /// Before the first row. Errors: kCorruption, of the fold's state that came with the command.
  Result<void> begin();
  /// Of the rows that follow, until the next call.
  void begin_partition() { begun_in_fold_ = false; }
  /// A live row. In the order of the read.
  void take_row(const CountedPartition& of, BytesView clustering_key, const RowRecord& row);
  /// A partition with a live static row and no other one. It has no weight.
  void take_static_row(const CountedPartition& of) {
    if (fold_ != nullptr) begin_in_fold(of, false);
  }
  /// What the answer has besides the number of rows and their digest.
  RowCount count(uint32_t rows_of_last) const;

 private:
  /// Once in a partition that has rows or a static row alone; a fold never hears of others.
  void begin_in_fold(const CountedPartition& of, bool rows_follow);

  const ReadCommand& command_;
  std::unique_ptr<RowFold> fold_;  // null: none is wanted, or it has failed
  bool begun_in_fold_ = false;
  uint64_t weight_ = 0;
};

}  // namespace tetrad::storage
