// SPDX-License-Identifier: Apache-2.0
// Markers are numbered by the parser in the order of the text, and recorded in the order in which a
// statement is checked; the number says where a specification goes.
#include "cql/prepare/bind_markers.h"

#include "base/assert.h"

namespace tetrad::cql {

void BindMarkers::record(const ast::BindMarker& marker, const TableSchema& table,
                         const Receiver& receiver) {
  record(marker, table.keyspace, table.name, receiver);
}

void BindMarkers::record(const ast::BindMarker& marker, std::string keyspace, std::string table,
                         const Receiver& receiver) {
  const auto index = static_cast<size_t>(marker.index);
  TETRAD_ASSERT(index < specs_.size());
  specs_[index] = {std::move(keyspace), std::move(table), marker.name.value_or(receiver.name),
                   receiver.type};
  columns_[index] = receiver.column;
}

// By the column's address: `table` must be the object that the markers were recorded with.
std::vector<uint16_t> BindMarkers::partition_key_indexes(const TableSchema& table) const {
  std::vector<uint16_t> indexes;
  for (const ColumnSchema& column : table.partition_key()) {
    size_t index = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == &column) index = i;
    }
    if (index == columns_.size()) return {};
    indexes.push_back(static_cast<uint16_t>(index));
  }
  return indexes;
}

}  // namespace tetrad::cql
