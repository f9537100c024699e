// SPDX-License-Identifier: Apache-2.0
// The columns of a result, encoded once for each protocol version and shared by all answers of a
// prepared statement. The id (v5) is a hash of the columns: it changes exactly when they do, so
// clients notice that their copy is old.
#include "cql/protocol/result_metadata.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/hash.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql {

// The usual case of a SELECT; then the names are sent once.
bool has_global_table(std::span<const WireColumn> columns) {
  return !columns.empty() && std::all_of(columns.begin(), columns.end(), [&](const auto& column) {
    return column.keyspace == columns[0].keyspace && column.table == columns[0].table;
  });
}

// [keyspace, table of all], then for each column [keyspace, table,] name, type.
void append_column_specs(Bytes& out, std::span<const WireColumn> columns, int version) {
  const bool global = has_global_table(columns);
  if (global) {
    append_string(out, columns[0].keyspace);
    append_string(out, columns[0].table);
  }
  base::ByteWriter writer(out);
  for (const WireColumn& column : columns) {
    if (!global) {
      append_string(out, column.keyspace);
      append_string(out, column.table);
    }
    append_string(out, column.name);
    write_type_option(writer, *column.type, version);
  }
}

// Over the newest version's encoding, whatever the client speaks: one id for all.
MetadataId metadata_id_of(std::span<const WireColumn> columns) {
  Bytes encoded;
  append_column_specs(encoded, columns, kProtocolVersionMax);
  const auto hash = base::sha256(encoded);
  MetadataId id;
  std::copy_n(hash.begin(), id.size(), id.begin());
  return id;
}

EncodedMetadata::EncodedMetadata(std::span<const WireColumn> columns, BytesView id,
                                 int only_version)
    : column_count_(columns.size()),
      global_table_(has_global_table(columns)),
      only_version_(only_version) {
  TETRAD_ASSERT(id.empty() || id.size() == id_.size());
  if (!id.empty()) {
    std::copy(id.begin(), id.end(), id_.begin());
  } else if (only_version == 0) {
    id_ = metadata_id_of(columns);
  }
  for (int version = kProtocolVersionMax; version >= kProtocolVersionMin; --version) {
    if (only_version != 0 && version != only_version) continue;
    Bytes& encoded = encoded_[static_cast<size_t>(version - kProtocolVersionMin)];
    append_column_specs(encoded, columns, version);
    // Versions differ in few types: one that encodes as the next higher one shares its bytes (empty
    // stands for that).
    if (only_version == 0 && version < kProtocolVersionMax &&
        encoded == this->encoded(version + 1)) {
      encoded = Bytes();
    }
  }
}

BytesView EncodedMetadata::encoded(int version) const {
  TETRAD_ASSERT(version >= kProtocolVersionMin && version <= kProtocolVersionMax);
  TETRAD_ASSERT(only_version_ == 0 || version == only_version_);
  auto i = static_cast<size_t>(version - kProtocolVersionMin);
  // The next newer version that differs.
  if (only_version_ == 0)
    while (encoded_[i].empty() && i + 1 < encoded_.size()) ++i;
  return encoded_[i];
}

}  // namespace tetrad::cql
