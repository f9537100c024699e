// SPDX-License-Identifier: Apache-2.0
// The words of SCHEMA_CHANGE (native protocol v5, 4.2.5.5 and 4.2.6).
#include "cql/protocol/schema_change.h"

namespace tetrad::cql {
namespace {

// By Kind and by Target.
constexpr std::string_view kKinds[] = {"CREATED", "UPDATED", "DROPPED"};
constexpr std::string_view kTargets[] = {"KEYSPACE", "TABLE", "TYPE", "FUNCTION", "AGGREGATE"};

template <class Enum, size_t N>
std::optional<Enum> find(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(SchemaChange::Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view name_of(SchemaChange::Target target) {
  return kTargets[static_cast<size_t>(target)];
}
std::optional<SchemaChange::Kind> parse_schema_change_kind(std::string_view name) {
  return find<SchemaChange::Kind>(kKinds, name);
}
std::optional<SchemaChange::Target> parse_schema_change_target(std::string_view name) {
  return find<SchemaChange::Target>(kTargets, name);
}

}  // namespace tetrad::cql
