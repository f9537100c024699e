// SPDX-License-Identifier: Apache-2.0
// The hidden columns of compact tables. Clients do not see them in SELECT * or DESCRIBE until DROP
// COMPACT STORAGE shows them. Their names give way to declared ones.
//
//   CREATE TABLE t (k int PRIMARY KEY, v int) WITH COMPACT STORAGE
//     is k, column1 text (hidden, clustering), v static, value blob (hidden)
//   CREATE TABLE t (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
//     is k, c, value empty (hidden)
#include "cql/prepare/compact_storage.h"

#include <algorithm>

namespace tetrad::cql {

namespace {

bool has_name(const std::vector<ColumnSchema>& columns, const std::string& name) {
  return std::ranges::find(columns, name, &ColumnSchema::name) != columns.end();
}

/// A column that nobody declared. Its name is the stem, with a number where that is taken or where
/// numbers begin at 1: column1, value, value1.
ColumnSchema hidden_column(const std::vector<ColumnSchema>& columns, const std::string& stem,
                           int number, TypePtr type, ColumnKind kind) {
  ColumnSchema column;
  do {
    column.name = number == 0 ? stem : stem + std::to_string(number);
    ++number;
  } while (has_name(columns, column.name));
  column.type = std::move(type);
  column.kind = kind;
  column.hidden = true;
  return column;
}

}  // namespace

Result<void> make_compact(std::vector<ColumnSchema>& columns) {
  std::vector<std::string> values;
  bool has_clustering = false;
  for (const ColumnSchema& column : columns) {
    has_clustering = has_clustering || column.kind == ColumnKind::kClustering;
    if (column.type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid,
                  "Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
    }
    if (column.kind == ColumnKind::kStatic) {
      return fail(ErrorCode::kInvalid,
                  "Static columns are not supported in COMPACT STORAGE tables");
    }
    if (column.kind == ColumnKind::kRegular) values.push_back(column.name);
  }
  if (!has_clustering) {
    if (values.empty()) {
      return fail(ErrorCode::kInvalid, "No definition found that is not part of the PRIMARY KEY");
    }
    for (ColumnSchema& column : columns) {
      if (column.kind == ColumnKind::kRegular) column.kind = ColumnKind::kStatic;
    }
    columns.push_back(hidden_column(columns, "column", 1, text_type(), ColumnKind::kClustering));
    columns.push_back(hidden_column(columns, "value", 0, blob_type(), ColumnKind::kRegular));
    return {};
  }
  if (values.size() > 1) {
    std::ranges::sort(values);
    std::string names;
    for (const std::string& name : values) names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorCode::kInvalid,
                "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not "
                "part of the PRIMARY KEY (got: {})",
                names);
  }
  if (values.empty()) {
    columns.push_back(
        hidden_column(columns, "value", 0, native_type(TypeKind::kEmpty), ColumnKind::kRegular));
  }
  return {};
}

void drop_compact(TableSchema& table, std::vector<ColumnSchema>& columns) {
  table.is_compact_storage = false;
  for (ColumnSchema& column : columns) column.hidden = false;
}

}  // namespace tetrad::cql
