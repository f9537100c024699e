// SPDX-License-Identifier: Apache-2.0
// What a schema statement changed, for its answer and the SCHEMA_CHANGE event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tetrad::cql {

/// One change of one object of the schema. A plain value.
/// Drivers refresh what it names in their copy of the schema. In bytes: three or four [string]s,
/// change, target, keyspace and name, and a [string list] of argument types behind the name of a
/// function.
struct SchemaChange {
  /// What happened to the target.
  enum class Kind : uint8_t { kCreated, kUpdated, kDropped };
  /// Views and indexes are reported as tables.
  enum class Target : uint8_t { kKeyspace, kTable, kType, kFunction, kAggregate };

  Kind kind = Kind::kUpdated;
  Target target = Target::kKeyspace;
  std::string keyspace;
  std::string name;                         // "" for a keyspace
  std::vector<std::string> argument_types;  // of functions and aggregates

  friend bool operator==(const SchemaChange&, const SchemaChange&) = default;
};

std::string_view name_of(SchemaChange::Kind kind);      // "CREATED"
std::string_view name_of(SchemaChange::Target target);  // "KEYSPACE"
/// Upper case only. Unset: no such word.
std::optional<SchemaChange::Kind> parse_schema_change_kind(std::string_view name);
std::optional<SchemaChange::Target> parse_schema_change_target(std::string_view name);

}  // namespace tetrad::cql
