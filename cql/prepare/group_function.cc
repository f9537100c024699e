// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: functions in GROUP BY. Rows of one group must lie side by side, so the
// function has to rise with its column.
//
// selector() makes the expression; check_group_function() then looks at the tree once more for
// Cassandra's rules: one clustering column, no aggregates, and each function on the way monotonic
// in the one argument that is not constant. A function that does not rise is refused when the
// statement runs (GroupFunction::refused), since Cassandra finds it then.
#include <algorithm>

#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_parts.h"
#include "cql/types/keyword.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

/// Of what is called by an operator or a cast.
std::string function_name(const Raw& raw, const ScalarFunction& function) {
  switch (raw.kind) {
    case Kind::kArithmetic:
      return std::string(ast::operator_function(raw.op));
    case Kind::kNegation:
      return "_negate";
    case Kind::kCast:
      return "cast_as_" + function.return_type->cql_text();
    default:
      return function.name;
  }
}

/// A tuple is not said to be frozen there.
std::string argument_text(const DataType& type) {
  const std::string text = type.cql_text();
  constexpr std::string_view kFrozen = "frozen<";
  if (type.kind() != TypeKind::kTuple || !text.starts_with(kFrozen)) return text;
  return text.substr(kFrozen.size(), text.size() - kFrozen.size() - 1);
}

}  // namespace

Result<GroupFunction> ExpressionBuilder::group_function(const ast::Selector& selector) {
  TETRAD_TRY(ExpressionPtr value, this->selector(selector));
  in_selection_ = true;
  auto checked = check_group_function(raw_of(selector));
  in_selection_ = false;
  if (checked) checked->value = std::move(value);
  return checked;
}

Result<GroupFunction> ExpressionBuilder::check_group_function(const Raw& raw) {
  if (raw.kind != Kind::kFunction && raw.kind != Kind::kArithmetic && raw.kind != Kind::kNegation &&
      raw.kind != Kind::kCountRows) {
    return fail(ErrorCode::kInvalid,
                "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
                raw.text());
  }
  TETRAD_TRY(const std::optional<std::string> aggregate, called_aggregate(raw));
  if (aggregate) {
    return fail(ErrorCode::kInvalid,
                "Aggregate functions are not supported within the GROUP BY clause, got: {}",
                *aggregate);
  }
  std::vector<const ColumnSchema*> columns;
  for_each_column(raw, [&](const ast::Identifier& name) {
    const ColumnSchema* column = table_.find(name.text);
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  });
  if (columns.empty()) {
    return fail(ErrorCode::kInvalid,
                "GROUP BY functions must have one clustering column name as parameter");
  }
  if (columns.size() > 1) {
    std::string names;
    for (const ColumnSchema* column : columns)
      names += (names.empty() ? "" : ",") + quote_identifier(column->name);
    return fail(ErrorCode::kInvalid,
                "GROUP BY functions accept only one clustering column as parameter, got: {}",
                names);
  }
  GroupFunction out{columns.front(), nullptr};
  if (out.column->kind != ColumnKind::kClustering) {
    return fail(ErrorCode::kInvalid,
                "Group by functions are only supported on clustering columns, got {}",
                out.column->name);
  }
  if (auto rises = check_monotonic(raw); !rises) out.refused = std::move(rises).error();
  return out;
}

Result<std::optional<std::string>> ExpressionBuilder::called_aggregate(const Raw& raw) {
  if (raw.kind == Kind::kCountRows) return "system.count_rows";
  if (raw.kind != Kind::kFunction) return std::nullopt;
  const bool may_be_native = !raw.function->keyspace || raw.function->keyspace->text == "system";
  if (may_be_native && is_native_aggregate(name_of(raw)) && !exact_user_function(raw))
    return "system." + name_of(raw);
  TETRAD_TRY(const ScalarFunctionPtr called, resolve(raw, nullptr, {}));
  if (!called->aggregate) return std::nullopt;
  return called->qualified_name();
}

Result<ScalarFunctionPtr> ExpressionBuilder::called_function(const Raw& raw) {
  switch (raw.kind) {
    case Kind::kFunction:
      return resolve(raw, nullptr, {});
    case Kind::kArithmetic:
      return operator_of(raw, true);
    case Kind::kNegation: {
      const TypePtr type = type_of(unwrapped(raw.children[0]));
      return type ? find_negation(type) : nullptr;
    }
    case Kind::kCast: {
      const TypePtr type = type_of(unwrapped(raw.children[0]));
      TETRAD_TRY(const TypePtr to, resolve_type(*raw.type));
      return type ? find_cast(type, to) : nullptr;
    }
    default:
      return ScalarFunctionPtr();
  }
}

// The same for all rows: no column, no aggregate, and no function that may answer differently
// (now(), uuid()).
Result<bool> ExpressionBuilder::is_constant(const Raw& raw) {
  if (raw.kind == Kind::kColumn || raw.kind == Kind::kTimes) return false;
  TETRAD_TRY(const std::optional<std::string> aggregate, called_aggregate(raw));
  if (aggregate) return false;
  TETRAD_TRY(const ScalarFunctionPtr function, called_function(raw));
  if (function && !function->pure) return false;
  for (const Raw& child : raw.children) {
    TETRAD_TRY(const bool is_same, is_constant(child));
    if (!is_same) return false;
  }
  return true;
}

// Each function on the path from the column to the top must be declared monotonic; two open
// arguments could move against each other.
Result<void> ExpressionBuilder::check_monotonic(const Raw& raw) {
  TETRAD_TRY(const bool is_same, is_constant(raw));
  if (raw.kind == Kind::kColumn || is_same) return {};
  const auto casts_nothing = [&] {
    const TypePtr from = type_of(raw.children[0]), to = type_of(raw);
    return from && to && *from == *to;
  };
  if (raw.kind == Kind::kTypeHint || (raw.kind == Kind::kTuple && raw.children.size() == 1) ||
      (raw.kind == Kind::kCast && casts_nothing()))
    return check_monotonic(raw.children[0]);
  TETRAD_TRY(const std::optional<std::string> aggregate, called_aggregate(raw));
  ScalarFunctionPtr function;
  if (!aggregate) {
    TETRAD_TRY(function, called_function(raw));
  }
  if (!function) {
    return fail(ErrorCode::kInvalid,
                "Only column names and monotonic scalar functions are supported in the GROUP BY "
                "clause.");
  }
  std::string types;
  size_t open = 0;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    TETRAD_TRY(const bool is_fixed, is_constant(raw.children[i]));
    open += is_fixed ? 0 : 1;
    types += fmt::format("{}{}{}", i == 0 ? "" : ", ", argument_text(*function->argument_types[i]),
                         is_fixed ? "(constant)" : "");
  }
  if (!function->monotonic || open != 1) {
    return fail(ErrorCode::kInvalid,
                "Only monotonic functions are supported in the GROUP BY clause. Got: {}.{} : ({}) "
                "-> {} ",
                function->keyspace, quote_identifier(function_name(raw, *function)), types,
                function->return_type->cql_text());
  }
  for (const Raw& child : raw.children) TETRAD_TRY_VOID(check_monotonic(child));
  return {};
}

}  // namespace tetrad::cql
