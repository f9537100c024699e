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

/// A list in square brackets where the type is no list: told before anything else of the place.
inline Result<void> check_list_place(const RawExpression& raw, const TypePtr& type) {
  using Kind = RawExpression::Kind;
  const bool takes_lists = type->kind() == TypeKind::kList || type->kind() == TypeKind::kVector;
  if (raw.kind == Kind::kList && !takes_lists) {
    return fail(ErrorCode::kInvalid,
                "Unexpected receiver type '{}'; only list and vector are expected",
                type->cql_text());
  }
  if (raw.kind == Kind::kList || (raw.kind == Kind::kSet && type->kind() == TypeKind::kSet)) {
    for (const RawExpression& child : raw.children) {
      TETRAD_TRY_VOID(check_list_place(child, type->element()));
    }
  }
  return {};
}

}  // namespace tetrad::cql
