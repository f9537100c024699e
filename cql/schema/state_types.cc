// SPDX-License-Identifier: Apache-2.0
// For readers of the metadata that have no snapshot: no result is kept, each question reads texts
// again.
#include "cql/schema/state_types.h"

#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

// Types cannot hold themselves; the bound ends a chain in a damaged state.
constexpr int kTypesDeepMax = 64;

UdtResolver types_within(const replication::MetaState& state, const std::string& keyspace,
                         int deep) {
  return
      [&state, keyspace, deep](std::string_view named, std::string_view name) -> Result<TypePtr> {
        if ((!named.empty() && named != keyspace) || deep == 0) return nullptr;
        const auto text = state.schema_objects.find(type_key(keyspace, name));
        if (text == state.schema_objects.end()) return nullptr;
        const auto type = read_type_text(text->second, types_within(state, keyspace, deep - 1));
        return type;
      };
}

}  // namespace

UdtResolver types_of(const replication::MetaState& state, const std::string& keyspace) {
  return types_within(state, keyspace, kTypesDeepMax);
}

}  // namespace tetrad::cql
