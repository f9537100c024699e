// SPDX-License-Identifier: Apache-2.0
// Indexes on columns whose values have no zero byte, for tests below cql.
#pragma once

#include <map>
#include <vector>

#include "storage/index/claim.h"

namespace tetrad::tests {

/// The value component of a value: none is the beginning of another.
inline Bytes component_of(BytesView value) { return Bytes(value) + '\0'; }

/// Of simple columns, regular and static ones alike: where a record has the column it is claimed.
class ColumnClaims final : public storage::ClaimMaker {
 public:
  /// Column by index id. `next_id`: 0: one more than the highest.
  explicit ColumnClaims(std::map<uint16_t, uint32_t> columns, uint16_t next_id = 0)
      : columns_(std::move(columns)), next_id_(next_id) {
    for (const auto& [id, column] : columns_) ids_.push_back(id);
    if (next_id_ == 0) next_id_ = ids_.empty() ? 1 : static_cast<uint16_t>(ids_.back() + 1);
  }
  const std::vector<uint16_t>& index_ids() const override { return ids_; }
  uint16_t next_index_id() const override { return next_id_; }
  void of_partition(BytesView, BytesView header, bool, int64_t now_s,
                    storage::ClaimSink& sink) const override {
    if (!header.empty()) claim(header, now_s, sink);
  }
  void of_row(BytesView, BytesView record, int64_t now_s, storage::ClaimSink& sink) const override {
    claim(record, now_s, sink);
  }

 private:
  void claim(BytesView record, int64_t now_s, storage::ClaimSink& sink) const {
    storage::RowRecordReader reader;
    if (!reader.open(record)) return;
    storage::Cell cell;
    while (reader.next(cell)) {
      if (!cell.live_at(now_s)) continue;
      for (const auto& [id, column] : columns_)
        if (cell.column_id == column) sink.take(id, component_of(cell.value));
    }
  }

  std::map<uint16_t, uint32_t> columns_;
  std::vector<uint16_t> ids_;
  uint16_t next_id_;
};

}  // namespace tetrad::tests
