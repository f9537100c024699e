// SPDX-License-Identifier: Apache-2.0
// From what storage gives (encoded keys and row records) to the values of a row.
#pragma once

#include "base/bytes.h"
#include "cql/prepare/prepared_select.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

/// Used for one page; the rows' values live in the arena, in what was read, or until the next row
/// is read.
class RowMaterializer {
 public:
  RowMaterializer(const RowLayout& layout, base::Arena& arena, int64_t now_s);

  /// Sets the partition key and the static columns. Errors: kCorruption.
  Result<void> start_partition(const storage::PartitionData& partition);
  Result<void> start_partition(BytesView partition_key, const storage::RowRecord* header);
  /// Whether the partition has a live static cell.
  bool has_live_static() const { return has_live_static_; }
  /// Sets clustering and regular columns. Returns whether the row is live.
  Result<bool> read_row(const storage::RowData& row);
  Result<bool> read_row(BytesView clustering_key, const storage::RowRecord& record);
  /// The row of a partition that has static columns only.
  void clear_row();

  const RowView& row() const { return row_; }
  /// Of the row that was read last: its clustering key and live cells, whether they are wanted or
  /// not. 0 after clear_row().
  uint64_t row_bytes() const { return row_bytes_; }
  /// Of the partition's live static cells.
  uint64_t static_bytes() const { return static_bytes_; }

 private:
  Result<bool> read_cells(const storage::RowRecord& record, const std::vector<int32_t>& slots,
                          bool is_static);
  Result<void> finish_collection(int32_t slot);
  /// The sum of the shards' totals, at the time of the latest.
  Result<void> finish_counter(size_t at);
  /// Nothing of the row before is left in these.
  void clear(const std::vector<int32_t>& slots);

  /// One element of a collection or user type, before the value is put together; views into the
  /// row.
  struct Part {
    BytesView path, value;
    CellTimes times;
  };
  const RowLayout& layout_;
  base::Arena& arena_;
  const int64_t now_s_;
  RowView row_;
  bool has_live_static_ = false;
  uint64_t row_bytes_ = 0, static_bytes_ = 0;
  std::vector<std::vector<Part>> parts_;  // by slot, of columns of many cells
  storage::RowRecord record_;             // scratch
  Bytes scratch_;
  Bytes key_values_;  // of the row's clustering columns
};

}  // namespace tetrad::cql
