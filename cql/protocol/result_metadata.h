// SPDX-License-Identifier: Apache-2.0
// Columns of a result or of the markers of a statement, and their encodings (native protocol v5,
// section 4.2.5.2). The encoding differs between versions, because older ones lack types.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

/// A column as this room sees it: views into whatever describes it above.
/// The type must outlive the view, as the names must.
struct WireColumn {
  std::string_view keyspace, table, name;
  const DataType* type = nullptr;
};

/// Views of columns that have the members keyspace, table, name and type (a TypePtr).
template <class Columns>
std::vector<WireColumn> wire_columns(const Columns& columns) {
  std::vector<WireColumn> views;
  views.reserve(columns.size());
  for (const auto& column : columns)
    views.push_back({column.keyspace, column.table, column.name, &*column.type});
  return views;
}

/// 16 bytes that change when names, types or their order change; equal on every node.
using MetadataId = std::array<uint8_t, 16>;
inline BytesView view_of(const MetadataId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

/// Whether all columns share keyspace and table, so that these are written once.
bool has_global_table(std::span<const WireColumn> columns);
/// Appends [global keyspace and table] and the columns: what follows flags, count and optional
/// fields.
void append_column_specs(Bytes& out, std::span<const WireColumn> columns, int version);
/// First 16 bytes of SHA-256 over the columns as v5 writes them.
MetadataId metadata_id_of(std::span<const WireColumn> columns);

/// The columns of a result, encoded once. Keeps nothing of the columns. Immutable: shards share it.
/// Every page of a SELECT begins with these bytes, so they are made when the statement is prepared.
class EncodedMetadata {
 public:
  /// No columns: the metadata of what gives no rows.
  EncodedMetadata() : EncodedMetadata(std::span<const WireColumn>()) {}
  /// For all versions, or for `only_version` if that is not 0 (a statement that runs once).
  /// `id`: 16 bytes, or empty for metadata_id_of() (for one version only: no id).
  explicit EncodedMetadata(std::span<const WireColumn> columns, BytesView id = {},
                           int only_version = 0);

  size_t column_count() const { return column_count_; }
  bool global_table() const { return global_table_; }
  const MetadataId& id() const { return id_; }
  /// As append_column_specs(). `version` is one that it was made for.
  BytesView encoded(int version) const;

 private:
  size_t column_count_ = 0;
  bool global_table_ = false;
  int only_version_ = 0;
  MetadataId id_{};
  // Of v3, v4 and v5; an older one is empty where it equals the next newer.
  std::array<Bytes, 3> encoded_;
};

}  // namespace tetrad::cql
