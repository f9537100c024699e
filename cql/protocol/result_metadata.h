// SPDX-License-Identifier: Apache-2.0
// Columns of a result or of the markers of a statement, and their encodings (native protocol v5,
// section 4.2.5.2). The encoding differs between versions, because older ones lack types.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

struct ColumnSpec {
  std::string keyspace, table, name;
  TypePtr type;
};

/// 16 bytes that change when names, types or their order change; equal on every node.
using MetadataId = std::array<uint8_t, 16>;
inline BytesView view_of(const MetadataId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

/// Whether all columns share keyspace and table, so that these are written once.
bool has_global_table(std::span<const ColumnSpec> columns);
/// Appends [global keyspace and table] and the columns: what follows flags, count and optional
/// fields.
void append_column_specs(Bytes& out, std::span<const ColumnSpec> columns, int version);
MetadataId metadata_id_of(std::span<const ColumnSpec> columns);

/// The columns of a result, encoded once and for all versions. Immutable: shards share it.
class ResultMetadata {
 public:
  ResultMetadata() : ResultMetadata(std::vector<ColumnSpec>()) {}
  explicit ResultMetadata(std::vector<ColumnSpec> columns);

  std::span<const ColumnSpec> columns() const { return columns_; }
  size_t column_count() const { return columns_.size(); }
  bool global_table() const { return global_table_; }
  const MetadataId& id() const { return id_; }
  /// As append_column_specs().
  BytesView encoded(int version) const;

 private:
  std::vector<ColumnSpec> columns_;
  bool global_table_;
  MetadataId id_;
  std::array<Bytes, 3> encoded_;  // of v3, v4, v5; empty where it equals that of the next
};

}  // namespace tetrad::cql
