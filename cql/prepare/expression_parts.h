// SPDX-License-Identifier: Apache-2.0
// Small parts that the files of ExpressionBuilder share.
#pragma once

#include <algorithm>

#include "cql/prepare/expression_builder.h"

namespace tetrad::cql {

inline Assignability weakest(Assignability a, Assignability b) { return std::min(a, b); }

// What the parts of a collection are for.
inline Receiver element_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->element(), nullptr};
}
inline Receiver key_receiver(const Receiver& of) {
  return {"key(" + of.name + ")", of.type->key(), nullptr};
}
inline Receiver map_value_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->value(), nullptr};
}

inline std::unexpected<Error> cannot_infer(const RawExpression& raw) {
  return fail(
      ErrorCode::kInvalid,
      "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
      raw.text());
}

}  // namespace tetrad::cql
