// SPDX-License-Identifier: Apache-2.0
// Masks as text, and when two are the same.
#include "cql/schema/column_mask.h"

#include <algorithm>

#include "cql/types/keyword.h"
#include "cql/types/literal.h"

namespace tetrad::cql {

std::string ColumnMask::cql_text() const {
  std::string out = quote_identifier(keyspace) + "." + quote_identifier(function) + "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i != 0) out += ", ";
    const OptionalBytes& value = arguments[i];
    out += value ? to_cql_literal(*argument_types[i], BytesView(*value)) : "null";
  }
  return out + ")";
}

// The first of `types` is the column's, which the mask does not keep; frozen or not makes no other
// function.
bool ColumnMask::calls(const TypePtr& type, std::string_view in_keyspace, std::string_view name,
                       const std::vector<TypePtr>& types) const {
  if (keyspace != in_keyspace || function != name || types.size() != argument_types.size() + 1)
    return false;
  const auto same = [](const TypePtr& a, const TypePtr& b) { return *freeze(a) == *freeze(b); };
  return same(types[0], type) &&
         std::equal(argument_types.begin(), argument_types.end(), types.begin() + 1, same);
}

bool equal_masks(const ColumnMaskPtr& a, const ColumnMaskPtr& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->keyspace == b->keyspace && a->function == b->function && a->arguments == b->arguments &&
         std::equal(a->argument_types.begin(), a->argument_types.end(), b->argument_types.begin(),
                    b->argument_types.end(),
                    [](const TypePtr& x, const TypePtr& y) { return *x == *y; });
}

}  // namespace tetrad::cql
