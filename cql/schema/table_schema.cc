// SPDX-License-Identifier: Apache-2.0
// Columns in Cassandra's order, and the tables that find them by name and by id.
#include "cql/schema/table_schema.h"

#include <algorithm>
#include <tuple>

namespace tetrad::cql {

namespace {

// Java's bytes have a sign, and Cassandra compares names with it: letters outside ASCII come first.
bool signed_less(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, [](char x, char y) {
    return static_cast<signed char>(x) < static_cast<signed char>(y);
  });
}

/// Plain columns, then those of many cells; in each a name that begins with a letter outside ASCII
/// comes first.
std::tuple<ColumnKind, int, int> rank(const ColumnSchema& column) {
  if (column.is_primary_key()) return {column.kind, 0, static_cast<int>(column.position)};
  const bool other =
      !column.name.empty() && (static_cast<unsigned char>(column.name.front()) & 0x80) != 0;
  return {column.kind, column.type->is_multi_cell() ? (other ? 1 : 2) : 0, other ? 0 : 1};
}

}  // namespace

bool described_before(const ColumnSchema& a, const ColumnSchema& b) {
  const auto of_a = rank(a), of_b = rank(b);
  if (of_a != of_b) return of_a < of_b;
  return !a.is_primary_key() && a.name < b.name;
}

bool TableSchema::is_as(const TableSchema& other) const {
  if (this == &other) return true;
  return id == other.id && version == other.version && incarnation == other.incarnation &&
         std::ranges::equal(columns_, other.columns_,
                            [](const ColumnSchema& own, const ColumnSchema& others) {
                              return own.type == others.type || *own.type == *others.type;
                            });
}

void TableSchema::set_columns(std::vector<ColumnSchema> columns) {
  // As Cassandra: columns of many cells with a name outside ASCII it counts to the plain ones, and
  // then it merges the two lists by signed bytes.
  std::stable_sort(columns.begin(), columns.end(), described_before);
  for (const ColumnKind kind : {ColumnKind::kStatic, ColumnKind::kRegular}) {
    const auto [begin, end] = std::ranges::equal_range(columns, kind, {}, &ColumnSchema::kind);
    const auto middle = std::find_if(
        begin, end, [](const ColumnSchema& column) { return std::get<1>(rank(column)) == 2; });
    std::vector<ColumnSchema> merged;
    auto left = begin, right = middle;
    while (left != middle || right != end) {
      const bool take_left =
          right == end || (left != middle && signed_less(left->name, right->name));
      merged.push_back(std::move(take_left ? *left++ : *right++));
    }
    std::ranges::move(merged, begin);
  }
  columns_ = std::move(columns);
  partition_key_count_ = clustering_count_ = static_count_ = 0;
  by_name_.clear();
  index_by_id_.clear();
  // A counter table stays one when its counters were dropped: no other column may be added to it.
  is_counter = std::ranges::any_of(
      dropped_columns, [](const DroppedColumn& dropped) { return dropped.type_text == "counter"; });
  // By ColumnKind. Key columns come in the order of their positions, so counting gives them the
  // same ones again.
  uint32_t position[4] = {};
  for (size_t i = 0; i < columns_.size(); ++i) {
    ColumnSchema& column = columns_[i];
    column.position = position[static_cast<size_t>(column.kind)]++;
    partition_key_count_ += column.kind == ColumnKind::kPartitionKey;
    clustering_count_ += column.kind == ColumnKind::kClustering;
    static_count_ += column.kind == ColumnKind::kStatic;
    is_counter |= column.type->is_counter();
    if (!column.hidden) by_name_.emplace(column.name, i);
    if (column.id == 0) continue;
    // Ids are dense but for dropped ones, so a plain array does; 0 in it means that no column has
    // the id.
    if (index_by_id_.size() <= column.id) index_by_id_.resize(column.id + 1);
    index_by_id_[column.id] = static_cast<uint32_t>(i + 1);
  }
}

// Names are compared as they are: case was settled by the parser.
const ColumnSchema* TableSchema::find(std::string_view column_name) const {
  const auto found = by_name_.find(std::string(column_name));
  return found == by_name_.end() ? nullptr : &columns_[found->second];
}

const ColumnSchema* TableSchema::find_by_id(uint32_t column_id) const {
  if (column_id >= index_by_id_.size() || index_by_id_[column_id] == 0) return nullptr;
  return &columns_[index_by_id_[column_id] - 1];
}

}  // namespace tetrad::cql
