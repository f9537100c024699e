// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: + - * / % of two operands, and the minus before one.
//
// Each operator is a native function of the types of both operands (function_table.h), so the work
// is to find the types. An operand without a type of its own, a constant, takes the type of the
// receiver or what the other operand asks for. What stays open has Cassandra's texts: ambiguous
// where several functions could be meant, not supported where none is.
#include <utility>

#include "cql/functions/function_table.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/constant.h"
#include "cql/prepare/expression_parts.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

std::unexpected<Error> ambiguous(const Raw& operation) {
  return fail(ErrorCode::kInvalid,
              "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, "
              "example '(int) ?'",
              ast::arithmetic_symbol(operation.op), operation.children[0].text(),
              operation.children[1].text());
}

std::unexpected<Error> unsupported(const Raw& operation) {
  return fail(ErrorCode::kInvalid, "the '{}' operation is not supported between {} and {}",
              ast::arithmetic_symbol(operation.op), operation.children[0].text(),
              operation.children[1].text());
}

/// Whether there is a function whose result the receiver takes; null takes all.
bool suits(const ScalarFunctionPtr& function, const Receiver* receiver) {
  return function &&
         (receiver == nullptr || test_assignment(*receiver->type, *function->return_type) !=
                                     Assignability::kNotAssignable);
}

/// Whether Cassandra finds several functions for an operation that has none here.
// null fits every operator; a timestamp's bytes read as those of bigint and of varint.
bool may_mean_several(const Raw& operation, const TypePtr& left_type, const TypePtr& right_type) {
  const Raw &left = operation.children[0], &right = operation.children[1];
  const auto many = [](const Raw& operand, const TypePtr& type) {
    return type ? type->kind() == TypeKind::kTimestamp : operand.text() == "NULL";
  };
  const auto number = [](const TypePtr& type) { return type && is_number(*type); };
  const auto is_text = [](const TypePtr& type) {
    return type && (type->kind() == TypeKind::kText || type->kind() == TypeKind::kAscii);
  };
  return (ast::arithmetic_symbol(operation.op) == '+' &&
          ((left.text() == "NULL" && is_text(right_type)) ||
           (right.text() == "NULL" && is_text(left_type)))) ||
         (many(left, left_type) && (many(right, right_type) || number(right_type))) ||
         (number(left_type) && many(right, right_type));
}

/// The types that operators have.
std::vector<TypePtr> operand_types() {
  std::vector<TypePtr> types(number_types().begin(), number_types().end());
  for (const TypePtr& other :
       {text_type(), ascii_type(), timestamp_type(), date_type(), duration_type()})
    types.push_back(other);
  return types;
}

bool has_marker(const Raw& operation) {
  return operation.children[0].kind == Kind::kMarker || operation.children[1].kind == Kind::kMarker;
}

}  // namespace

// Whatever the receiver is. Which operator is meant choose_operator() says.
Result<void> ExpressionBuilder::check_operands(const Raw& raw) {
  const Raw &left = raw.children[0], &right = raw.children[1];
  if (!has_marker(raw)) return {};
  const char op = ast::arithmetic_symbol(raw.op);
  const std::vector<TypePtr> types = operand_types();
  for (const TypePtr& l : types) {
    if (test(left, l) == Assignability::kNotAssignable) continue;
    for (const TypePtr& r : types) {
      if (test(right, r) != Assignability::kNotAssignable && find_operator(op, l, r)) return {};
    }
  }
  return unsupported(raw);
}

// By the types of both operands; null where a type is not known or no operator has them.
ScalarFunctionPtr ExpressionBuilder::operator_of(const Raw& raw, bool tries_durations) {
  const TypePtr left = type_of(unwrapped(raw.children[0]));
  TypePtr right = type_of(unwrapped(raw.children[1]));
  const char op = ast::arithmetic_symbol(raw.op);
  if (tries_durations && left && left->kind() == TypeKind::kDate && (op == '+' || op == '-')) {
    // To a date nothing is added but durations: a whole number is tried as one, and refused.
    const Raw& operand = unwrapped(raw.children[1]);
    const bool is_taken =
        operand.kind == Kind::kLiteral && (operand.literal->kind == ast::Literal::Kind::kInteger ||
                                           operand.literal->kind == ast::Literal::Kind::kNull);
    if (is_taken) right = duration_type();
  }
  return left && right ? find_operator(op, left, right) : nullptr;
}

// 1. By the operands' own types. 2. With the receiver's type for both, for constants. 3. As a
//    moment moved by a duration. A marker has any type: the one operator is meant that takes the
//    other operand and gives what is wanted.
Result<ScalarFunctionPtr> ExpressionBuilder::choose_operator(const Raw& raw,
                                                             const Receiver* receiver) {
  const Raw &left = raw.children[0], &right = raw.children[1];
  const char op = ast::arithmetic_symbol(raw.op);
  if (has_marker(raw)) {
    ScalarFunctionPtr meant;
    const std::vector<TypePtr> types = operand_types();
    for (const TypePtr& l : types) {
      if (test(left, l) == Assignability::kNotAssignable) continue;
      for (const TypePtr& r : types) {
        if (test(right, r) == Assignability::kNotAssignable) continue;
        auto function = find_operator(op, l, r);
        if (!suits(function, receiver)) continue;
        if (meant) return ambiguous(raw);
        meant = std::move(function);
      }
    }
    return meant;
  }
  const TypePtr right_type = type_of(unwrapped(right));
  ScalarFunctionPtr function = operator_of(raw, true);
  if (!suits(function, receiver) && receiver != nullptr) {
    // Constants take the type that is wanted.
    if (test(left, receiver->type) != Assignability::kNotAssignable &&
        test(right, receiver->type) != Assignability::kNotAssignable) {
      function = find_operator(op, receiver->type, receiver->type);
    }
  }
  const bool moves = left.kind == Kind::kLiteral && (op == '+' || op == '-') && right_type &&
                     right_type->kind() == TypeKind::kDuration;
  if (suits(function, receiver) || !moves) return function;
  // A constant is a moment or a day where a duration follows.
  std::vector<ScalarFunctionPtr> found;
  for (const TypePtr& type : {timestamp_type(), date_type()}) {
    if (test(left, type) == Assignability::kNotAssignable) continue;
    if (test(right, duration_type()) == Assignability::kNotAssignable) continue;
    auto moved = find_operator(op, type, duration_type());
    if (suits(moved, receiver)) found.push_back(std::move(moved));
  }
  if (found.size() > 1) return ambiguous(raw);
  if (!found.empty()) function = std::move(found.front());
  return function;
}

Result<ExpressionPtr> ExpressionBuilder::build_arithmetic(const Raw& raw,
                                                          const Receiver* receiver) {
  const Raw &left = raw.children[0], &right = raw.children[1];
  const char op = ast::arithmetic_symbol(raw.op);
  if (in_selection_) {
    for (const Raw& child : raw.children) TETRAD_TRY_VOID(resolve_inside(child));
  }
  TETRAD_TRY_VOID(check_operands(raw));
  const TypePtr left_type = type_of(unwrapped(left)), right_type = type_of(unwrapped(right));
  TETRAD_TRY(ScalarFunctionPtr function, choose_operator(raw, receiver));
  if (!suits(function, receiver)) {
    if (may_mean_several(raw, left_type, right_type)) return ambiguous(raw);
    return unsupported(raw);
  }
  const auto receiver_of = [&](int i) {  // a marker bears this name in the metadata
    return Receiver{in_selection_
                        ? "[selection]"
                        : fmt::format("arg{}(system.{})", i, ast::operator_function(raw.op)),
                    function->argument_types[static_cast<size_t>(i)], nullptr};
  };
  TETRAD_TRY(ExpressionPtr l, build(left, receiver_of(0)));
  auto r = build(right, receiver_of(1));
  if (!r) {
    const bool is_wanted = function->argument_types[1]->kind() == TypeKind::kDuration;
    if (is_wanted && !(right_type && right_type->kind() == TypeKind::kDuration))
      failed_late_ = true;  // a number that is no duration
    return r;
  }
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(l));
  arguments.push_back(*std::move(r));
  std::string label = fmt::format("{} {} {}", function->argument_types[0]->cql_text(), op,
                                  function->argument_types[1]->cql_text());
  return make_call(std::move(function), std::move(arguments), std::move(label));
}

// The operand's type, or the receiver's where the operand is a constant of no type of its own.
Result<ExpressionPtr> ExpressionBuilder::build_negation(const Raw& raw, const Receiver* receiver) {
  const Raw& child = raw.children[0];
  TypePtr type = type_of(unwrapped(child));
  if (receiver != nullptr &&
      (!type || test_assignment(*receiver->type, *type) == Assignability::kNotAssignable)) {
    if (test(child, receiver->type) != Assignability::kNotAssignable) type = receiver->type;
  }
  ScalarFunctionPtr function = type ? find_negation(type) : nullptr;
  if (!function && child.kind == Kind::kMarker) {
    return fail(ErrorCode::kInvalid, "Ambiguous negation: use type casts to disambiguate");
  }
  if (!function) {
    std::string signatures;
    for (const TypePtr& number : number_types()) {
      signatures += fmt::format("{}system.\"_negate\" : ({}) -> {}", signatures.empty() ? "" : ", ",
                                number->cql_text(), number->cql_text());
    }
    return fail(ErrorCode::kInvalid,
                "Invalid call to function system._negate, none of its type signatures match (known "
                "type signatures: {})",
                signatures);
  }
  TETRAD_TRY(ExpressionPtr argument,
             build(child, {in_selection_ ? "[selection]" : "arg0(system._negate)", type, nullptr}));
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(argument));
  return make_call(std::move(function), std::move(arguments), "-" + type->cql_text());
}

}  // namespace tetrad::cql
