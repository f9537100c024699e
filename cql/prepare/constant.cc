// SPDX-License-Identifier: Apache-2.0
// Literals of the tree to those of types/literal.h, which knows nothing of the grammar. null is
// handled here: it is of every type but counter, and has none of its own.
#include "cql/prepare/constant.h"

#include "cql/types/literal.h"

namespace tetrad::cql {

namespace {

/// Of anything but null.
LiteralKind literal_kind(ast::Literal::Kind kind) {
  switch (kind) {
    case ast::Literal::Kind::kInteger:
      return LiteralKind::kInteger;
    case ast::Literal::Kind::kFloat:
      return LiteralKind::kFloat;
    case ast::Literal::Kind::kBoolean:
      return LiteralKind::kBoolean;
    case ast::Literal::Kind::kUuid:
      return LiteralKind::kUuid;
    case ast::Literal::Kind::kHex:
      return LiteralKind::kHex;
    case ast::Literal::Kind::kDuration:
      return LiteralKind::kDuration;
    default:
      return LiteralKind::kString;
  }
}

}  // namespace

TypePtr preferred_type(const ast::Literal& literal) {
  if (literal.kind == ast::Literal::Kind::kNull) return nullptr;
  return preferred_type(literal_kind(literal.kind), literal.text);
}

Assignability test_constant(const ast::Literal& literal, const DataType& type) {
  if (literal.kind == ast::Literal::Kind::kNull) {
    return type.is_counter() ? Assignability::kNotAssignable : Assignability::kWeak;
  }
  return test_literal(literal_kind(literal.kind), literal.text, type);
}

Result<OptionalBytes> parse_constant(const ast::Literal& literal, const TypePtr& type) {
  if (literal.kind == ast::Literal::Kind::kNull) return std::nullopt;
  TETRAD_TRY(Bytes value, literal_to_bytes(literal_kind(literal.kind), literal.text, *type));
  return value;
}

std::string_view kind_name(ast::Literal::Kind kind) {
  return kind == ast::Literal::Kind::kNull ? "NULL" : literal_kind_name(literal_kind(kind));
}

}  // namespace tetrad::cql
