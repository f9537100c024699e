// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/table_schema.h"

#include <algorithm>

namespace tetrad::cql {

void TableSchema::set_columns(std::vector<ColumnSchema> columns) {
  std::stable_sort(columns.begin(), columns.end(),
                   [](const ColumnSchema& a, const ColumnSchema& b) {
                     if (a.kind != b.kind) return a.kind < b.kind;
                     return a.is_primary_key() ? a.position < b.position : a.name < b.name;
                   });
  columns_ = std::move(columns);
  partition_key_count_ = clustering_count_ = static_count_ = 0;
  by_name_.clear();
  index_by_id_.clear();
  is_counter = false;
  uint32_t position[4] = {};
  for (size_t i = 0; i < columns_.size(); ++i) {
    ColumnSchema& column = columns_[i];
    column.position = position[static_cast<size_t>(column.kind)]++;
    partition_key_count_ += column.kind == ColumnKind::kPartitionKey;
    clustering_count_ += column.kind == ColumnKind::kClustering;
    static_count_ += column.kind == ColumnKind::kStatic;
    is_counter |= column.type->is_counter();
    by_name_.emplace(column.name, i);
    if (column.id == 0) continue;
    if (index_by_id_.size() <= column.id) index_by_id_.resize(column.id + 1);
    index_by_id_[column.id] = static_cast<uint32_t>(i + 1);
  }
}

const ColumnSchema* TableSchema::find(std::string_view column_name) const {
  const auto found = by_name_.find(std::string(column_name));
  return found == by_name_.end() ? nullptr : &columns_[found->second];
}

const ColumnSchema* TableSchema::find_by_id(uint32_t column_id) const {
  if (column_id >= index_by_id_.size() || index_by_id_[column_id] == 0) return nullptr;
  return &columns_[index_by_id_[column_id] - 1];
}

}  // namespace tetrad::cql
