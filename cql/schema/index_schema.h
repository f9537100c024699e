// SPDX-License-Identifier: Apache-2.0
// A secondary index as CQL sees it: what it is on, and by which of Cassandra's three kinds of index
// its statements are judged. All three kinds have one engine (storage/index).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tetrad::cql {

/// Whose rules and texts an index follows: the native legacy index, SASI, or SAI.
/// The names in schema texts are "legacy", "sasi" and "sai" (schema_text.cc).
enum class IndexClass : uint8_t { kLegacy, kSasi, kSai };

/// What of the column's value is indexed. kSimple: the value itself; the others are of collections.
/// Of a map: kKeys, kValues and kEntries index each entry apart, kFull a frozen collection as one
/// value. Schema texts have names for these, too.
enum class IndexTarget : uint8_t { kSimple, kKeys, kValues, kEntries, kFull };

/// Part of its TableSchema, immutable with it.
struct IndexSchema {
  std::string name;  // unique in the keyspace
  IndexClass index_class = IndexClass::kLegacy;
  IndexTarget target = IndexTarget::kSimple;
  // By name: a column with an index can be neither dropped nor renamed (plan_alter_table.cc).
  std::string column;
  /// As system_schema.indexes shows them, `target` and `class_name` among them.
  std::map<std::string, std::string> options;
  /// What claims call it: from 1, never used twice in a table. TRUNCATE keeps it: the claims' keys
  /// begin with the table's incarnation.
  uint16_t id = 0;

  bool operator==(const IndexSchema&) const = default;
};

}  // namespace tetrad::cql
