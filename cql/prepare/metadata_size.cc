// SPDX-License-Identifier: Apache-2.0
// Counts what metadata takes without making it. Types are shared, so each is measured once.
#include "cql/prepare/metadata_size.h"

#include <unordered_map>

#include "cql/types/type_size.h"

namespace tetrad::cql {

Result<void> check_metadata_size(std::span<const ColumnSpec> columns) {
  uint64_t bytes = 0;
  std::unordered_map<const DataType*, uint64_t> known;
  for (const ColumnSpec& column : columns) {
    bytes += sizeof(uint16_t) + column.name.size();
    if (column.type == nullptr || column.type->is_native()) continue;
    const auto [entry, is_new] = known.try_emplace(column.type.get());
    if (is_new) entry->second = spelled_bytes(*column.type);
    bytes += entry->second;
  }
  if (bytes <= kMetadataBytesMax) return {};
  return fail(ErrorCode::kInvalid,
              "The names and types of the statement's {} columns or bind markers take more than {} "
              "bytes",
              columns.size(), kMetadataBytesMax);
}

}  // namespace tetrad::cql
