// SPDX-License-Identifier: Apache-2.0
// Small parts that the files of ExpressionBuilder share: expression_builder.cc (terms),
// selector_builder.cc (select lists), expression_types.cc (types), function_resolution.cc and
// arithmetic.cc (calls), group_function.cc.
#pragma once

#include <algorithm>

#include "cql/prepare/expression_builder.h"

namespace tetrad::cql {

/// How well a whole fits of which two parts fit so well.
inline Assignability weakest(Assignability a, Assignability b) { return std::min(a, b); }

// Assignability is ordered from kNotAssignable up, so the weakest is the least.
// Receivers of the parts of a collection. Their names, "value(c)" and "key(c)", are seen by
// clients: in errors, and as names of bind markers in the metadata of PREPARED.
inline Receiver element_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->element(), nullptr};
}
inline Receiver key_receiver(const Receiver& of) {
  return {"key(" + of.name + ")", of.type->key(), nullptr};
}
inline Receiver map_value_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->value(), nullptr};
}

/// Calls `visit` with the name of every column that the selector names.
template <class Visit>
void for_each_column(const RawExpression& raw, Visit&& visit) {
  if (raw.kind == RawExpression::Kind::kColumn) visit(*raw.identifiers[0]);
  for (const RawExpression& child : raw.children) for_each_column(child, visit);
}

/// What stands in parentheses, as far as they are around one expression.
inline const RawExpression& unwrapped(const RawExpression& raw) {
  const RawExpression* inner = &raw;
  while (inner->kind == RawExpression::Kind::kTuple && inner->children.size() == 1) {
    inner = &inner->children[0];
  }
  return *inner;
}

/// Of the native aggregates: those whose only parameter is called any in errors, and whose result
/// has the type of the argument.
inline bool takes_anything(std::string_view aggregate) {
  return aggregate == "min" || aggregate == "max";
}
/// The part of its argument whose type says which of them is meant.
inline const RawExpression& told_by(std::string_view aggregate, const RawExpression& argument) {
  return takes_anything(aggregate) ? argument : unwrapped(argument);
}

/// Whether [a, b] can be a value of the type: to Cassandra's grammar vectors are written as lists.
inline bool takes_lists(const DataType& type) {
  return type.kind() == TypeKind::kList || type.kind() == TypeKind::kVector;
}

/// Cassandra's error of [a, b] where no list or vector is wanted.
inline std::unexpected<Error> misplaced_list(const DataType& type) {
  return fail(ErrorCode::kInvalid,
              "Unexpected receiver type '{}'; only list and vector are expected", type.cql_text());
}

/// Of an item of a select list, which has no receiver: neither it nor what it is an argument of
/// says its type.
inline std::unexpected<Error> cannot_infer(const RawExpression& raw) {
  return fail(
      ErrorCode::kInvalid,
      "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
      raw.text());
}

}  // namespace tetrad::cql
