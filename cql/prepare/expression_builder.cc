// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: terms and literals of the tree become expressions for a receiver, whose type
// decides what a literal means. Its other parts: expression_types.cc (types and fits),
// function_resolution.cc (calls and operators), selector_builder.cc (select lists),
// group_function.cc.
//
// A builder belongs to the preparation of one statement. It collects what the statement needs
// beside expressions: slots of columns, markers, aggregates, functions that are called.
//
// Cassandra has two sets of rules: for terms (VALUES, SET, WHERE) and for select lists.
// in_selection_ says which one holds; many texts and some results differ.
#include "cql/prepare/expression_builder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/constant.h"
#include "cql/prepare/expression_parts.h"
#include "cql/protocol/notation.h"
#include "cql/types/composite_type.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

/// Anywhere inside.
bool has_marker(const Raw& raw) {
  return raw.kind == Kind::kMarker || std::ranges::any_of(raw.children, has_marker);
}

/// 'now' is the moment of the statement.
bool is_now(const ast::Literal& literal, const DataType& type) {
  return type.kind() == TypeKind::kTimestamp && literal.kind == ast::Literal::Kind::kString &&
         equal_ignoring_case(literal.text, "now");
}

/// Cassandra makes a collection of constants when it prepares the statement.
// So a null among constants is refused when the statement is prepared, and one beside markers when
// it runs.
Result<void> check_constants(std::span<const ExpressionPtr> items, std::string_view inside) {
  const auto constant = [](const ExpressionPtr& item) { return item->is_constant(); };
  const auto null = [](const ExpressionPtr& item) { return item->is_null_constant(); };
  if (!std::ranges::all_of(items, constant) || std::ranges::none_of(items, null)) return {};
  return fail(ErrorCode::kInvalid, "null is not supported inside {}", inside);
}

}  // namespace

const QuerySettings& ExpressionBuilder::settings() const { return context_.settings; }

Result<const ColumnSchema*> ExpressionBuilder::column(const ast::Identifier& name) const {
  const ColumnSchema* found = table_.find(name.text);
  if (found == nullptr) {
    return fail(ErrorCode::kInvalid, "Undefined column name {} in table {}.{}",
                quote_identifier(name.text), quote_identifier(table_.keyspace),
                quote_identifier(table_.name));
  }
  return found;
}

/// Cassandra reads a name as far as it looks like one, and takes none for bytes.
Result<TypePtr> type_of_class(const ast::CqlType& type) {
  auto found = parse_class_name(ast::full_class_name(type));
  if (!found && is_composite_class(type.class_name)) {
    return fail(ErrorCode::kSyntax, "Error setting type {}: {}", type.class_name,
                found.error().message);
  }
  if (!found || (*found)->kind() != TypeKind::kCustom || is_other_class((*found)->custom_class()))
    return found;
  return fail(ErrorCode::kSyntax, "Error setting type {}: Unable to find abstract-type class '{}'",
              type.class_name, ast::full_class_name(type));
}

// User types without a keyspace are of the table's keyspace.
Result<TypePtr> ExpressionBuilder::resolve_type(const ast::CqlType& type) const {
  if (type.kind == ast::CqlType::Kind::kCustom) return type_of_class(type);
  const auto find_udt = [&](std::string_view keyspace, std::string_view name) -> TypePtr {
    const KeyspaceSchema* in =
        context_.schema->keyspace(keyspace.empty() ? std::string_view(table_.keyspace) : keyspace);
    if (in == nullptr) return nullptr;
    const auto found = in->types.find(std::string(name));
    return found == in->types.end() ? nullptr : found->second;
  };
  auto resolved =
      parse_type(ast::to_string(ast::in_keyspace(type, table_.keyspace, true)), find_udt);
  if (!resolved && type.kind == ast::CqlType::Kind::kUser) {
    return fail(ErrorCode::kInvalid, "Unknown type {}.{}",
                type.name.keyspace ? type.name.keyspace->text : table_.keyspace,
                type.name.name.text);
  }
  return resolved;
}

// Slots are given in the order of first use; RowLayout has the same order.
int32_t ExpressionBuilder::slot_of(const ColumnSchema& column) {
  if (slot_of_column_.empty()) slot_of_column_.assign(table_.columns().size(), -1);
  int32_t& slot = slot_of_column_[static_cast<size_t>(&column - table_.columns().data())];
  if (slot < 0) {
    slot = static_cast<int32_t>(slots_.size());
    slots_.push_back(&column);
  }
  return slot;
}

Result<ExpressionPtr> ExpressionBuilder::term(const ast::Term& term, const Receiver& receiver) {
  in_selection_ = false;
  return build(raw_of(term), receiver);
}

// Before anything else of an item: Cassandra reports an unknown column first.
Result<void> ExpressionBuilder::check_columns(const Raw& raw) const {
  if (raw.kind == Kind::kColumn) {
    TETRAD_TRY([[maybe_unused]] const auto* found, column(*raw.identifiers[0]));
  }
  if (raw.kind == Kind::kMap || raw.kind == Kind::kUdt) return {};  // keys may be names of fields
  for (const Raw& child : raw.children) TETRAD_TRY_VOID(check_columns(child));
  return {};
}

Result<ExpressionPtr> ExpressionBuilder::selector(const ast::Selector& selector) {
  failed_late_ = false;
  const Raw raw = raw_of(selector);
  TETRAD_TRY_VOID(check_columns(raw));
  in_selection_ = true;
  auto built = build_selector(raw);
  in_selection_ = false;
  return built;
}

bool ExpressionBuilder::is_field_udt(const Raw& raw) const {
  if (raw.kind == Kind::kUdt) return true;
  if (raw.kind != Kind::kMap) return false;
  for (size_t i = 0; i < raw.children.size(); i += 2) {
    if (raw.children[i].kind != Kind::kColumn) return false;
  }
  return true;
}

Result<void> SelectedKey::check(EvalContext& context) const {
  TETRAD_TRY(const BoundValue value, key->evaluate(context));
  if (value.has_bytes() || (is_slice && value.is_unset())) return {};
  return fail(ErrorCode::kInvalid, "Invalid {} value for {} selection on {}",
              value.is_unset() ? "unset" : "null", is_slice ? "slice" : "element", source);
}

Result<void> ExpressionBuilder::check_no_markers(const Raw& item, std::string_view what,
                                                 const Receiver& receiver) const {
  if (in_selection_ || receiver.type->kind() == TypeKind::kVector || !has_marker(item)) return {};
  return fail(ErrorCode::kInvalid,
              "Invalid {} literal for {}: bind variables are not supported inside collection "
              "literals",
              what, receiver.name);
}

// The central step: one node for one receiver. Literals are parsed here, once for all runs; only
// 'now' and calls stay open.
Result<ExpressionPtr> ExpressionBuilder::build(const Raw& raw, const Receiver& receiver) {
  switch (raw.kind) {
    case Kind::kLiteral:
      return build_constant(raw, receiver);
    case Kind::kMarker:
      markers_.record(*raw.marker, table_, receiver);
      return make_marker(receiver.type, raw.marker->index);
    case Kind::kList:
      return build_literal_list(raw, receiver);
    case Kind::kSet:
      return build_set(raw, receiver);
    case Kind::kMap:
      return receiver.type->kind() == TypeKind::kUdt && is_field_udt(raw)
                 ? build_udt(raw, receiver)
                 : build_map(raw, receiver);
    case Kind::kUdt:
      return build_udt(raw, receiver);
    case Kind::kTuple:
      // Parentheses around one expression.
      if (raw.children.size() == 1 && !receiver.type->is_tuple_like()) {
        return build(raw.children[0], receiver);
      }
      return build_tuple(raw, receiver);
    case Kind::kTypeHint:
      return build_hinted(raw, receiver);
    case Kind::kFunction:
      return build_call(raw, &receiver);
    case Kind::kArithmetic:
      return build_arithmetic(raw, &receiver);
    case Kind::kNegation:
      return build_negation(raw, &receiver);
    default: {
      TETRAD_TRY(ExpressionPtr built, build_selector(raw));
      const bool same = in_selection_ && *freeze(built->type()) == *freeze(receiver.type);
      if (!same &&
          test_assignment(*receiver.type, *built->type()) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", raw.text(),
                    receiver.name, receiver.type->cql_text());
      }
      return built;
    }
  }
}

Result<ExpressionPtr> ExpressionBuilder::build_constant(const Raw& raw, const Receiver& receiver) {
  if (test_constant(*raw.literal, *receiver.type) == Assignability::kNotAssignable) {
    if (raw.literal->kind == ast::Literal::Kind::kNull)  // of a counter; so also in a WHERE
      return fail(ErrorCode::kInvalid, "Invalid null value for counter increment/decrement");
    return fail(ErrorCode::kInvalid, "Invalid {} constant ({}) for \"{}\" of type {}",
                kind_name(raw.literal->kind), raw.literal->text, receiver.name,
                receiver.type->cql_text());
  }
  if (is_now(*raw.literal, *receiver.type)) {
    return make_call(find_native_functions("current_timestamp").front(), {});
  }
  TETRAD_TRY(OptionalBytes value, parse_constant(*raw.literal, receiver.type));
  return make_constant(receiver.type, std::move(value));
}

// (type) x. The hint must fit what it stands before, and what the expression is for.
Result<ExpressionPtr> ExpressionBuilder::build_hinted(const Raw& raw, const Receiver& receiver) {
  TETRAD_TRY(TypePtr type, hinted_type(raw));
  const Raw& child = raw.children[0];
  if (!in_selection_ && test(child, type) == Assignability::kNotAssignable) {
    return fail(ErrorCode::kInvalid, "Cannot cast value {} to type {}", child.text(),
                type->cql_text());
  }
  if (test(child, type) == Assignability::kNotAssignable) {
    const std::string text = raw.text(table_.keyspace);
    return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", text, text,
                type->cql_text());
  }
  // A frozen value cannot be assigned to a multi-cell column.
  const bool is_thawed = !in_selection_ && receiver.type->is_multi_cell() && type->is_frozen();
  if (is_thawed || test_assignment(*receiver.type, *type) == Assignability::kNotAssignable) {
    return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}",
                raw.text(table_.keyspace), receiver.name, receiver.type->cql_text());
  }
  // As Cassandra: the hint is checked, and the value read as what it is for.
  if (raw.selector == nullptr) return build(child, receiver);
  return build(child, {receiver.name, type, receiver.column});
}

// [a, b] for a list or a vector. Vectors have a fixed number of elements, so that is checked first.
Result<ExpressionPtr> ExpressionBuilder::build_literal_list(const Raw& raw,
                                                            const Receiver& receiver) {
  const bool is_vector = receiver.type->kind() == TypeKind::kVector;
  if (!takes_lists(*receiver.type)) return misplaced_list(*receiver.type);
  const std::string_view what = is_vector ? "vector" : "list";
  if (is_vector && raw.children.size() != receiver.type->dimension()) {
    return fail(ErrorCode::kInvalid,
                "Invalid vector literal for {} of type {}; expected {} elements, but given {}",
                receiver.name, receiver.type->cql_text(), receiver.type->dimension(),
                raw.children.size());
  }
  return build_items(raw, what, receiver);
}

// {} has the shape of a set, and is also the empty map.
Result<ExpressionPtr> ExpressionBuilder::build_set(const Raw& raw, const Receiver& receiver) {
  if (receiver.type->kind() == TypeKind::kMap && raw.children.empty()) {
    return make_map_collection(receiver.type, {});
  }
  if (receiver.type->kind() != TypeKind::kSet) {
    return fail(ErrorCode::kInvalid, "Invalid set literal for {} of type {}", receiver.name,
                receiver.type->cql_text());
  }
  return build_items(raw, "set", receiver);
}

Result<ExpressionPtr> ExpressionBuilder::build_items(const Raw& raw, std::string_view what,
                                                     const Receiver& receiver) {
  const Receiver element = element_receiver(receiver);
  for (const Raw& child : raw.children) {
    // All items are tested before any is made: Cassandra's error about a type names the literal,
    // and comes before errors inside other items.
    TETRAD_TRY(const bool fitting, fits_selected(child, element.type));
    if (!fitting) {
      return fail(ErrorCode::kInvalid, "Invalid {} literal for {}: value {} is not of type {}",
                  what, receiver.name, child.text(), element.type->cql_text());
    }
  }
  std::vector<ExpressionPtr> items;
  items.reserve(raw.children.size());
  for (const Raw& child : raw.children) {
    TETRAD_TRY(
        ExpressionPtr item,
        build(child, in_selection_ ? Receiver{receiver.name, element.type, nullptr} : element));
    TETRAD_TRY_VOID(check_no_markers(child, what, receiver));
    items.push_back(std::move(item));
  }
  if (!in_selection_) {
    const bool is_vector = receiver.type->kind() == TypeKind::kVector;
    TETRAD_TRY_VOID(check_constants(items, is_vector ? "vectors" : "collections"));
  }
  const bool takes_null = in_selection_ && receiver.type->kind() == TypeKind::kList;
  return make_collection(receiver.type, std::move(items), takes_null);
}

// Keys and values are children in turn. As for lists, all are tested before any is made.
Result<ExpressionPtr> ExpressionBuilder::build_map(const Raw& raw, const Receiver& receiver) {
  if (receiver.type->kind() != TypeKind::kMap) {
    return fail(ErrorCode::kInvalid, "Invalid map literal for {} of type {}", receiver.name,
                receiver.type->cql_text());
  }
  const Receiver key = key_receiver(receiver), value = map_value_receiver(receiver);
  for (size_t i = 0; i < raw.children.size(); i += 2) {
    TETRAD_TRY(const bool key_fits, fits(raw.children[i], key.type));
    if (!key_fits) {
      return fail(ErrorCode::kInvalid, "Invalid map literal for {}: key {} is not of type {}",
                  receiver.name, raw.children[i].text(), key.type->cql_text());
    }
    TETRAD_TRY(const bool value_fits, fits(raw.children[i + 1], value.type));
    if (!value_fits) {
      return fail(ErrorCode::kInvalid, "Invalid map literal for {}: value {} is not of type {}",
                  receiver.name, raw.children[i + 1].text(), value.type->cql_text());
    }
  }
  std::vector<ExpressionPtr> parts;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    TETRAD_TRY(ExpressionPtr part, build(raw.children[i], i % 2 == 0 ? key : value));
    TETRAD_TRY_VOID(check_no_markers(raw.children[i], "map", receiver));
    parts.push_back(std::move(part));
  }
  if (!in_selection_) TETRAD_TRY_VOID(check_constants(parts, "collections"));
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  for (size_t i = 0; i < parts.size(); i += 2) {
    entries.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
  }
  return make_map_collection(receiver.type, std::move(entries));
}

// Fields may be left out, and come in any order; those that are not named are null.
Result<ExpressionPtr> ExpressionBuilder::build_udt(const Raw& raw, const Receiver& receiver) {
  const TypePtr& type = receiver.type;
  if (type->kind() != TypeKind::kUdt) {
    return fail(ErrorCode::kInvalid, "Invalid user type literal for {} of type {}", receiver.name,
                type->cql_text());
  }
  // {a: 1} is parsed as a map whose keys are names of columns; a UDT literal may be either form.
  const size_t step = raw.kind == Kind::kMap ? 2 : 1;
  std::vector<ExpressionPtr> fields(type->components().size());
  for (size_t i = 0; i < raw.children.size(); i += step) {
    const std::string& name =
        step == 2 ? raw.children[i].identifiers[0]->text : raw.identifiers[i]->text;
    const auto index = type->field_index(name);
    if (!index) {
      return fail(ErrorCode::kInvalid, "Unknown field '{}' in value of user defined type {}", name,
                  type->name());
    }
    const Raw& child = raw.children[i + step - 1];
    const Receiver field{receiver.name + "." + name, type->components()[*index], nullptr};
    TETRAD_TRY(const bool fitting, fits(child, field.type));
    if (!fitting) {
      return fail(ErrorCode::kInvalid,
                  "Invalid user type literal for {}: field {} is not of type {}", receiver.name,
                  name, field.type->cql_text());
    }
    TETRAD_TRY(fields[*index], build(child, field));
  }
  return make_tuple_value(type, std::move(fields));
}

// A tuple may have fewer items than its type has components, and not more.
Result<ExpressionPtr> ExpressionBuilder::build_tuple(const Raw& raw, const Receiver& receiver) {
  const TypePtr& type = receiver.type;
  if (!type->is_tuple_like()) {
    return fail(ErrorCode::kInvalid, "Invalid tuple type literal for {} of type {}", receiver.name,
                type->cql_text());
  }
  for (size_t i = 0; i < raw.children.size(); ++i) {
    if (i == type->components().size()) {
      return fail(ErrorCode::kInvalid,
                  "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                  receiver.name, type->cql_text(), type->components().size(), raw.children.size());
    }
    const TypePtr& component = type->components()[i];
    TETRAD_TRY(const bool fitting, fits_selected(raw.children[i], component));
    if (!fitting) {
      return fail(ErrorCode::kInvalid,
                  "Invalid tuple literal for {}: component {} is not of type {}", receiver.name, i,
                  component->cql_text());
    }
  }
  std::vector<ExpressionPtr> fields;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    const TypePtr& component = type->components()[i];
    TETRAD_TRY(ExpressionPtr field,
               build(raw.children[i],
                     {in_selection_ ? receiver.name : fmt::format("{}[{}]", receiver.name, i),
                      component, nullptr}));
    fields.push_back(std::move(field));
  }
  return make_tuple_value(type, std::move(fields));
}

}  // namespace tetrad::cql
