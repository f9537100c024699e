// SPDX-License-Identifier: Apache-2.0
// SET and DELETE of columns, from the tree to operations.
//
// What an assignment means depends on the column's type: c = c + x is an increment, an append to a
// list, or an addition to a set or map; c = c - x a decrement, or the removal of elements or keys.
// Texts and order of the checks are Cassandra's (Operation.java).
#include "cql/prepare/column_operation.h"

#include <utility>

#include "cql/functions/function_table.h"
#include "cql/grammar/ast_print.h"

namespace tetrad::cql {

namespace {

using Operation = ColumnOperation;

/// Makes the operation of one assignment. Lives for one call of operation_of(), and refers to its
/// arguments.
class AssignmentReader {
 public:
  AssignmentReader(const ast::Assignment& source, const ColumnSchema& column,
                   ExpressionBuilder& expressions, bool is_conditional)
      : source_(source),
        column_(column),
        expressions_(expressions),
        is_conditional_(is_conditional) {}

  Result<Operation> read() {
    using Form = ast::Assignment::Kind;
    switch (source_.kind) {
      case Form::kSet:
        return set();
      case Form::kAdd:
      case Form::kSubtract:
        return add_or_subtract(source_.kind == Form::kAdd);
      case Form::kPrepend:
        return prepend();
      case Form::kElement:
        return set_element();
      case Form::kField:
        return set_field();
    }
    return invalid({}, "this");
  }

 private:
  std::string value_text() const { return ast::to_string(source_.value); }
  std::unexpected<Error> invalid(const std::string& text, std::string_view why) const {
    return fail(ErrorCode::kInvalid, "Invalid operation ({}) for {} column {}", text, why,
                column_.name);
  }
  /// `what` and `wanted` are words of Cassandra's text, misspelt as there.
  std::unexpected<Error> refused(std::string_view what, std::string_view wanted) const {
    return fail(ErrorCode::kInvalid, "Value for a map {} has to be a {}, but was: '{}'", what,
                wanted, value_text());
  }
  Receiver whole() const { return Receiver::of(column_); }

  /// c = x. Of a collection of many cells the old elements are deleted, too (kSetWhole).
  Result<Operation> set() {
    const TypePtr& type = column_.type;
    Operation operation;
    operation.column = &column_;
    if (type->is_counter()) {
      if (source_.value.is_null())
        return fail(ErrorCode::kInvalid, "Invalid null value for counter increment/decrement");
      TETRAD_TRY_VOID(expressions_.term(source_.value, whole()));  // its error comes first
      return fail(ErrorCode::kInvalid,
                  "Cannot set the value of counter column {} (counters can only be "
                  "incremented/decremented, not set)",
                  column_.name);
    }
    operation.kind = type->is_multi_cell() ? Operation::Kind::kSetWhole : Operation::Kind::kSet;
    TETRAD_TRY(operation.value, expressions_.term(source_.value, whole()));
    return operation;
  }

  /// c = c + x or c = c - x. Counters first: all other meanings need a collection, or a condition.
  Result<Operation> add_or_subtract(bool is_add) {
    const TypePtr& type = column_.type;
    const std::string& name = column_.name;
    Operation operation;
    operation.column = &column_;
    const std::string text =
        fmt::format("{} = {} {} {}", name, name, is_add ? '+' : '-', value_text());
    if (type->is_counter()) {
      operation.kind = is_add ? Operation::Kind::kIncrement : Operation::Kind::kDecrement;
      TETRAD_TRY(operation.value, expressions_.term(source_.value, whole()));
      return operation;
    }
    if (is_add && type->is_tuple_like()) return invalid(text, "tuple");
    if (!type->is_collection()) {
      // The row is read for the condition anyway, so the sum is decided with it.
      if (is_add && is_conditional_) return add_to_value(text);
      return invalid(text, "non counter");
    }
    if (!type->is_multi_cell()) return invalid(text, "frozen collection");
    return is_add ? add_elements() : remove_elements();
  }

  /// To a set, a map, or the end of a list. Where the value does not fit a map, the error says so
  /// and not why.
  Result<Operation> add_elements() {
    Operation operation;
    operation.column = &column_;
    operation.kind = Operation::Kind::kAdd;
    auto value = expressions_.term(source_.value, whole());
    if (!value && column_.type->kind() == TypeKind::kMap) return refused("addition", "map");
    TETRAD_TRY(operation.value, std::move(value));
    return operation;
  }

  /// From a list every element that equals one of the values, which must be read first; from a set
  /// or map by key.
  Result<Operation> remove_elements() {
    const TypePtr& type = column_.type;
    Operation operation;
    operation.column = &column_;
    operation.kind =
        type->kind() == TypeKind::kList ? Operation::Kind::kDiscard : Operation::Kind::kRemoveKeys;
    Receiver taken = whole();
    // What is taken out need not be a value of the column: of a map it is a set of keys.
    taken.column = nullptr;
    if (type->kind() == TypeKind::kMap) taken.type = make_set(type->key(), false);
    auto value = expressions_.term(source_.value, taken);
    if (!value && type->kind() == TypeKind::kMap) return refused("substraction", "set");
    TETRAD_TRY(operation.value, std::move(value));
    return operation;
  }

  /// A number is added to a number, a text put behind a text. As Cassandra, only conditional
  /// statements can do it: they read the row anyway.
  Result<Operation> add_to_value(const std::string& text) {
    const TypeKind kind = column_.type->kind();
    if (!is_number(*column_.type) && kind != TypeKind::kText && kind != TypeKind::kAscii) {
      return fail(ErrorCode::kInvalid,
                  "Invalid operation ({}) for non-numeric and non-text type {}", text,
                  column_.name);
    }
    Operation operation;
    operation.kind = Operation::Kind::kAddToValue;
    operation.column = &column_;
    TETRAD_TRY(operation.value, expressions_.term(source_.value, whole()));
    return operation;
  }

  /// c = [x] + c.
  Result<Operation> prepend() {
    const TypePtr& type = column_.type;
    const std::string& name = column_.name;
    Operation operation;
    operation.column = &column_;
    const std::string text = fmt::format("{} = {} - {}", name, value_text(), name);
    TETRAD_TRY(operation.value, expressions_.term(source_.value, whole()));
    if (type->kind() != TypeKind::kList) return invalid(text, "non list");
    if (!type->is_multi_cell()) return invalid(text, "frozen list");
    operation.kind = Operation::Kind::kPrepend;
    return operation;
  }

  /// c[k] = x: an index of a list, which must be read first, or a key of a map.
  Result<Operation> set_element() {
    const TypePtr& type = column_.type;
    const std::string& name = column_.name;
    Operation operation;
    operation.column = &column_;
    const std::string text =
        fmt::format("{}[{}] = {}", name, ast::to_string(*source_.key), value_text());
    if (!type->is_collection()) return invalid(text, "non collection");
    if (!type->is_multi_cell()) return invalid(text, "frozen collection");
    if (type->kind() == TypeKind::kSet) return invalid(text, "set");
    const bool is_list = type->kind() == TypeKind::kList;
    operation.kind = is_list ? Operation::Kind::kSetIndex : Operation::Kind::kSetElement;
    const Receiver key = is_list ? Receiver{"idx(" + column_.name + ")", int_type(), nullptr}
                                 : Receiver{"key(" + column_.name + ")", type->key(), nullptr};
    TETRAD_TRY(operation.key, expressions_.term(*source_.key, key));
    TETRAD_TRY(
        operation.value,
        expressions_.term(source_.value, {"value(" + column_.name + ")",
                                          is_list ? type->element() : type->value(), nullptr}));
    return operation;
  }

  /// c.f = x.
  Result<Operation> set_field() {
    const TypePtr& type = column_.type;
    const std::string& name = column_.name;
    Operation operation;
    operation.column = &column_;
    const std::string text = fmt::format("{}.{} = {}", name, source_.field->text, value_text());
    if (type->kind() != TypeKind::kUdt) return invalid(text, "non-UDT");
    if (!type->is_multi_cell()) return invalid(text, "frozen UDT");
    const auto index = type->field_index(source_.field->text);
    if (!index) {
      return fail(ErrorCode::kInvalid, "UDT column {} does not have a field named {}", name,
                  source_.field->text);
    }
    operation.kind = Operation::Kind::kSetField;
    operation.field = *index;
    TETRAD_TRY(operation.value,
               expressions_.term(source_.value, {column_.name + "." + source_.field->text,
                                                 type->components()[*index], nullptr}));
    return operation;
  }

  const ast::Assignment& source_;
  const ColumnSchema& column_;
  ExpressionBuilder& expressions_;
  const bool is_conditional_;
};

}  // namespace

Result<void> check_assignments(const std::vector<ast::Assignment>& assignments) {
  using Form = ast::Assignment::Kind;
  for (size_t i = 0; i < assignments.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto &a = assignments[j], &b = assignments[i];
      if (a.column.text != b.column.text) continue;
      // Parts of a column go together, a whole value with nothing, a field not with itself.
      const bool whole = a.kind == Form::kSet || b.kind == Form::kSet;
      const bool same_field =
          a.kind == Form::kField && b.kind == Form::kField && a.field->text == b.field->text;
      if (whole || same_field) {
        return fail(ErrorCode::kSyntax, "Multiple incompatible setting of column {}",
                    b.column.text);
      }
    }
  }
  return {};
}

Result<ColumnOperation> operation_of(const ast::Assignment& source, const ColumnSchema& column,
                                     ExpressionBuilder& expressions, bool is_conditional) {
  return AssignmentReader(source, column, expressions, is_conditional).read();
}

Result<ColumnOperation> operation_of(const ast::Deletion& source, const ColumnSchema& column,
                                     ExpressionBuilder& expressions) {
  const TypePtr& type = column.type;
  const std::string& name = column.name;
  ColumnOperation operation;
  operation.column = &column;
  if (source.field) {
    if (type->kind() != TypeKind::kUdt) {
      return fail(ErrorCode::kInvalid, "Invalid field deletion operation for non-UDT column {}",
                  name);
    }
    if (!type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid, "Frozen UDT column {} does not support field deletions",
                  name);
    }
    const auto index = type->field_index(source.field->text);
    if (!index) {
      return fail(ErrorCode::kInvalid, "UDT column {} does not have a field named {}", name,
                  source.field->text);
    }
    operation.kind = ColumnOperation::Kind::kRemoveField;
    operation.field = *index;
    return operation;
  }
  if (!source.element) {
    operation.kind = ColumnOperation::Kind::kRemove;
    return operation;
  }
  if (!type->is_collection()) {
    return fail(ErrorCode::kInvalid, "Invalid deletion operation for non collection column {}",
                name);
  }
  if (!type->is_multi_cell()) {
    return fail(ErrorCode::kInvalid, "Invalid deletion operation for frozen collection column {}",
                name);
  }
  Receiver key{"idx(" + column.name + ")", int_type(), nullptr};
  operation.kind = ColumnOperation::Kind::kRemoveIndex;
  if (type->kind() != TypeKind::kList) {
    operation.kind = ColumnOperation::Kind::kRemoveElement;
    key = type->kind() == TypeKind::kMap
              ? Receiver{"key(" + column.name + ")", type->key(), nullptr}
              : Receiver{"value(" + column.name + ")", type->element(), nullptr};
  }
  TETRAD_TRY(operation.key, expressions.term(*source.element, key));
  return operation;
}

}  // namespace tetrad::cql
