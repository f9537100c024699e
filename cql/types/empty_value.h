// SPDX-License-Identifier: Apache-2.0
// A value without a byte, apart from null: what it counts as.
#pragma once

#include "cql/types/value.h"

namespace tetrad::cql {

/// Whether there is nothing to compute with: null, or an empty value where the type has no other
/// use for it.
inline bool counts_as_null(const DataType& type, const OptionalView& value) {
  if (!value) return true;
  if (!value->empty() || !type.allows_empty_value()) return false;
  return type.kind() != TypeKind::kText && type.kind() != TypeKind::kAscii &&
         type.kind() != TypeKind::kBlob;
}

}  // namespace tetrad::cql
