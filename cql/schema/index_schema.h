// SPDX-License-Identifier: Apache-2.0
// A secondary index as CQL sees it: what it is on, and by which of Cassandra's three kinds of index
// its statements are judged. All three kinds have one engine (storage/index).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tetrad::cql {

/// Whose rules and texts an index follows: the native legacy index, SASI, or SAI.
enum class IndexClass : uint8_t { kLegacy, kSasi, kSai };

/// What of the column's value is indexed. kSimple: the value itself; the others are of collections.
enum class IndexTarget : uint8_t { kSimple, kKeys, kValues, kEntries, kFull };

/// Part of its TableSchema, immutable with it.
struct IndexSchema {
  std::string name;  // unique in the keyspace
  IndexClass index_class = IndexClass::kLegacy;
  IndexTarget target = IndexTarget::kSimple;
  std::string column;
  /// As system_schema.indexes shows them, `target` and `class_name` among them.
  std::map<std::string, std::string> options;
  /// What claims call it: from 1, never used twice in a table. TRUNCATE keeps it: the claims' keys
  /// begin with the table's incarnation.
  uint16_t id = 0;

  bool operator==(const IndexSchema&) const = default;
};

}  // namespace tetrad::cql
