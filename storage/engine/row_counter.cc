// SPDX-License-Identifier: Apache-2.0
// Weight and fold of the live rows of a read with count_only.
#include "storage/engine/row_counter.h"

#include "storage/row/row_weight.h"

namespace tetrad::storage {

Result<void> RowCounter::begin() {
  if (command_.fold == nullptr) return {};
  TETRAD_TRY(fold_, command_.fold->go_on(command_.fold_state, command_.now_s));
  return {};
}

void RowCounter::take_row(const CountedPartition& of, BytesView clustering_key,
                          const RowRecord& row) {
  // By what a client would get, so that the price is the same whoever folds.
  weight_ += row_weight(clustering_key.size() + live_bytes(row, command_.now_s));
  if (fold_ == nullptr) return;
  if (!begun_in_fold_) begin_in_fold(of, true);
  if (fold_ != nullptr && !fold_->take_row(clustering_key, row)) fold_.reset();
}

void RowCounter::begin_in_fold(const CountedPartition& of, bool rows_follow) {
  begun_in_fold_ = true;
  if (!fold_->begin_partition(of.position, of.partition_key, of.header, rows_follow)) fold_.reset();
}

RowCount RowCounter::count(uint32_t rows_of_last) const {
  RowCount count;
  count.rows_of_last = rows_of_last;
  count.weight = weight_;
  // A state that is too large to travel is no state: the rows are read.
  if (fold_ != nullptr) {
    if (auto state = fold_->state()) count.folded = std::move(*state);
  }
  return count;
}

}  // namespace tetrad::storage
