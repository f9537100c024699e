// SPDX-License-Identifier: Apache-2.0
#include "cql/prepare/expression_builder.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/constant.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

Assignability weakest(Assignability a, Assignability b) { return std::min(a, b); }

Receiver element_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->element(), nullptr};
}
Receiver key_receiver(const Receiver& of) {
  return {"key(" + of.name + ")", of.type->key(), nullptr};
}
Receiver map_value_receiver(const Receiver& of) {
  return {"value(" + of.name + ")", of.type->value(), nullptr};
}

std::unexpected<Error> cannot_infer(const Raw& raw) {
  return fail(
      ErrorCode::kInvalid,
      "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
      raw.text());
}

bool has_marker(const Raw& raw) {
  return raw.kind == Kind::kMarker || std::ranges::any_of(raw.children, has_marker);
}

}  // namespace

Result<const ColumnSchema*> ExpressionBuilder::column(const ast::Identifier& name) const {
  const ColumnSchema* found = table_.find(name.text);
  if (found == nullptr) {
    return fail(ErrorCode::kInvalid, "Undefined column name {} in table {}",
                ast::quote_identifier(name.text), table_.qualified_name());
  }
  return found;
}

Result<TypePtr> ExpressionBuilder::resolve_type(const ast::CqlType& type) const {
  const auto find_udt = [&](std::string_view keyspace, std::string_view name) -> TypePtr {
    const KeyspaceSchema* in =
        context_.schema->keyspace(keyspace.empty() ? std::string_view(table_.keyspace) : keyspace);
    if (in == nullptr) return nullptr;
    const auto found = in->types.find(std::string(name));
    return found == in->types.end() ? nullptr : found->second;
  };
  auto resolved = parse_type(ast::to_string(type), find_udt);
  if (!resolved && type.kind == ast::CqlType::Kind::kUser) {
    return fail(ErrorCode::kInvalid, "Unknown type {}.{}",
                type.name.keyspace ? type.name.keyspace->text : table_.keyspace,
                type.name.name.text);
  }
  return resolved;
}

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

Result<ExpressionPtr> ExpressionBuilder::selector(const ast::Selector& selector) {
  in_selection_ = true;
  auto built = build_selector(raw_of(selector));
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

Assignability ExpressionBuilder::test(const Raw& raw, const TypePtr& type) {
  switch (raw.kind) {
    case Kind::kLiteral:
      return test_constant(*raw.literal, *type);
    case Kind::kMarker:
      return Assignability::kWeak;
    case Kind::kList: {
      if (type->kind() == TypeKind::kVector) {
        if (raw.children.size() != type->dimension()) return Assignability::kNotAssignable;
      } else if (type->kind() != TypeKind::kList) {
        return Assignability::kNotAssignable;
      }
      auto all = raw.children.empty() ? Assignability::kWeak : Assignability::kExact;
      for (const Raw& child : raw.children) all = weakest(all, test(child, type->element()));
      return all;
    }
    case Kind::kSet: {
      if (raw.children.empty() && type->kind() == TypeKind::kMap) return Assignability::kWeak;
      if (type->kind() != TypeKind::kSet) return Assignability::kNotAssignable;
      auto all = raw.children.empty() ? Assignability::kWeak : Assignability::kExact;
      for (const Raw& child : raw.children) all = weakest(all, test(child, type->element()));
      return all;
    }
    case Kind::kUdt:
    case Kind::kMap: {
      if (type->kind() == TypeKind::kUdt && is_field_udt(raw)) {
        auto all = Assignability::kExact;
        const size_t step = raw.kind == Kind::kMap ? 2 : 1;
        for (size_t i = 0; i < raw.children.size(); i += step) {
          const auto& name =
              step == 2 ? raw.children[i].identifiers[0]->text : raw.identifiers[i]->text;
          const auto index = type->field_index(name);
          if (!index) return Assignability::kNotAssignable;
          all = weakest(all, test(raw.children[i + step - 1], type->components()[*index]));
        }
        return all;
      }
      if (raw.kind == Kind::kUdt || type->kind() != TypeKind::kMap) {
        return Assignability::kNotAssignable;
      }
      auto all = Assignability::kExact;
      for (size_t i = 0; i < raw.children.size(); i += 2) {
        all = weakest(all, weakest(test(raw.children[i], type->key()),
                                   test(raw.children[i + 1], type->value())));
      }
      return all;
    }
    case Kind::kTuple: {
      if (!type->is_tuple_like()) {
        // Parentheses around one expression.
        return raw.children.size() == 1 && in_selection_ ? test(raw.children[0], type)
                                                         : Assignability::kNotAssignable;
      }
      if (raw.children.size() > type->components().size()) return Assignability::kNotAssignable;
      auto all = Assignability::kExact;
      for (size_t i = 0; i < raw.children.size(); ++i) {
        all = weakest(all, test(raw.children[i], type->components()[i]));
      }
      return all;
    }
    case Kind::kNothing:
      return Assignability::kNotAssignable;
    default: {
      const TypePtr known = type_of(raw);
      // A call or operation that only its receiver can settle.
      if (!known) return Assignability::kWeak;
      const Assignability direct = test_assignment(*type, *known);
      // Constants adapt: 1 + 2 may be any number.
      if (direct == Assignability::kNotAssignable &&
          (raw.kind == Kind::kArithmetic || raw.kind == Kind::kNegation)) {
        auto all = Assignability::kWeak;
        for (const Raw& child : raw.children) all = weakest(all, test(child, type));
        return all;
      }
      return direct;
    }
  }
}

TypePtr ExpressionBuilder::type_of(const Raw& raw) {
  if (raw.known_type) return *raw.known_type;
  auto find = [&]() -> TypePtr {
    switch (raw.kind) {
      case Kind::kColumn: {
        const ColumnSchema* found = table_.find(raw.identifiers[0]->text);
        return found == nullptr ? nullptr : found->type;
      }
      case Kind::kLiteral:
        return preferred_type(*raw.literal);
      case Kind::kCountRows:
        return bigint_type();
      case Kind::kFunction: {
        const std::string name = name_of(raw);
        if (is_native_aggregate(name) && raw.children.size() == 1) {
          const TypePtr argument = type_of(raw.children[0]);
          const auto aggregate = argument ? find_aggregate(name, argument) : nullptr;
          return aggregate ? aggregate->return_type : nullptr;
        }
        auto function = resolve(raw, nullptr, {});
        return function ? (*function)->return_type : nullptr;
      }
      case Kind::kCast:
      case Kind::kTypeHint: {
        auto type = resolve_type(*raw.type);
        return type ? *type : nullptr;
      }
      case Kind::kField: {
        const TypePtr source = type_of(raw.children[0]);
        if (!source || source->kind() != TypeKind::kUdt) return nullptr;
        const auto index = source->field_index(raw.identifiers[0]->text);
        return index ? source->components()[*index] : nullptr;
      }
      case Kind::kElement: {
        const TypePtr source = type_of(raw.children[0]);
        if (!source) return nullptr;
        if (source->kind() == TypeKind::kMap) return source->value();
        return source->kind() == TypeKind::kSet ? source->element() : nullptr;
      }
      case Kind::kSlice:
        return type_of(raw.children[0]);
      case Kind::kTimes:
        return raw.times == ast::WriteTimeSelector::Kind::kTtl ? int_type() : bigint_type();
      case Kind::kTuple: {
        if (raw.children.size() == 1 && in_selection_) return type_of(raw.children[0]);
        std::vector<TypePtr> fields;
        for (const Raw& child : raw.children) {
          TypePtr type = type_of(child);
          if (!type) return nullptr;
          fields.push_back(std::move(type));
        }
        return make_tuple(std::move(fields));
      }
      case Kind::kList:
      case Kind::kSet: {
        for (const Raw& child : raw.children) {
          const TypePtr type = type_of(child);
          if (!type) continue;
          return raw.kind == Kind::kList ? make_list(type, false) : make_set(type, false);
        }
        return nullptr;
      }
      case Kind::kArithmetic: {
        const TypePtr left = type_of(raw.children[0]), right = type_of(raw.children[1]);
        if (!left || !right) return nullptr;
        const auto function = find_operator(ast::arithmetic_symbol(raw.op), left, right);
        return function ? function->return_type : nullptr;
      }
      case Kind::kNegation: {
        const TypePtr argument = type_of(raw.children[0]);
        const auto function = argument ? find_negation(argument) : nullptr;
        return function ? function->return_type : nullptr;
      }
      default:
        return nullptr;
    }
  };
  raw.known_type = find();
  return *raw.known_type;
}

Result<void> ExpressionBuilder::check_no_markers(const Raw& raw, std::string_view what,
                                                 const Receiver& receiver) const {
  if (in_selection_) return {};
  for (const Raw& child : raw.children) {
    if (has_marker(child)) {
      return fail(ErrorCode::kInvalid,
                  "Invalid {} literal for {}: bind variables are not supported inside collection "
                  "literals",
                  what, receiver.name);
    }
  }
  return {};
}

Result<ExpressionPtr> ExpressionBuilder::build(const Raw& raw, const Receiver& receiver) {
  switch (raw.kind) {
    case Kind::kLiteral: {
      if (test_constant(*raw.literal, *receiver.type) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Invalid {} constant ({}) for \"{}\" of type {}",
                    kind_name(raw.literal->kind), raw.literal->text, receiver.name,
                    receiver.type->cql_text());
      }
      TETRAD_TRY(OptionalBytes value, parse_constant(*raw.literal, receiver.type));
      return make_constant(receiver.type, std::move(value));
    }
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
      if (in_selection_ && raw.children.size() == 1 && !receiver.type->is_tuple_like()) {
        return build(raw.children[0], receiver);
      }
      return build_tuple(raw, receiver);
    case Kind::kTypeHint: {
      TETRAD_TRY(TypePtr type, resolve_type(*raw.type));
      const Raw& child = raw.children[0];
      if (!in_selection_ && test(child, type) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot cast value {} to type {}", child.text(),
                    type->cql_text());
      }
      if (test(child, type) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", raw.text(),
                    raw.text(), type->cql_text());
      }
      if (test_assignment(*receiver.type, *type) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", raw.text(),
                    receiver.name, receiver.type->cql_text());
      }
      return build(child, {receiver.name, type, receiver.column});
    }
    case Kind::kFunction:
      return build_call(raw, &receiver);
    case Kind::kArithmetic:
      return build_arithmetic(raw, &receiver);
    case Kind::kNegation:
      return build_negation(raw, &receiver);
    default: {
      TETRAD_TRY(ExpressionPtr built, build_selector(raw));
      if (test_assignment(*receiver.type, *built->type()) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", raw.text(),
                    receiver.name, receiver.type->cql_text());
      }
      return built;
    }
  }
}

Result<ExpressionPtr> ExpressionBuilder::build_literal_list(const Raw& raw,
                                                            const Receiver& receiver) {
  const bool is_vector = receiver.type->kind() == TypeKind::kVector;
  if (!is_vector && receiver.type->kind() != TypeKind::kList) {
    return fail(ErrorCode::kInvalid,
                "Unexpected receiver type '{}'; only list and vector are expected",
                receiver.type->cql_text());
  }
  const std::string_view what = is_vector ? "vector" : "list";
  if (is_vector && raw.children.size() != receiver.type->dimension()) {
    return fail(ErrorCode::kInvalid,
                "Invalid vector literal for {} of type {}; expected {} elements, but given {}",
                receiver.name, receiver.type->cql_text(), receiver.type->dimension(),
                raw.children.size());
  }
  const Receiver element = element_receiver(receiver);
  if (!is_vector) TETRAD_TRY_VOID(check_no_markers(raw, what, receiver));
  for (const Raw& child : raw.children) {
    if (test(child, element.type) == Assignability::kNotAssignable) {
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
    items.push_back(std::move(item));
  }
  return make_collection(receiver.type, std::move(items));
}

Result<ExpressionPtr> ExpressionBuilder::build_set(const Raw& raw, const Receiver& receiver) {
  if (receiver.type->kind() == TypeKind::kMap && raw.children.empty()) {
    return make_map_collection(receiver.type, {});
  }
  if (receiver.type->kind() != TypeKind::kSet) {
    return fail(ErrorCode::kInvalid, "Invalid set literal for {} of type {}", receiver.name,
                receiver.type->cql_text());
  }
  TETRAD_TRY_VOID(check_no_markers(raw, "set", receiver));
  const Receiver element = element_receiver(receiver);
  for (const Raw& child : raw.children) {
    if (test(child, element.type) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid, "Invalid set literal for {}: value {} is not of type {}",
                  receiver.name, child.text(), element.type->cql_text());
    }
  }
  std::vector<ExpressionPtr> items;
  items.reserve(raw.children.size());
  for (const Raw& child : raw.children) {
    TETRAD_TRY(
        ExpressionPtr item,
        build(child, in_selection_ ? Receiver{receiver.name, element.type, nullptr} : element));
    items.push_back(std::move(item));
  }
  return make_collection(receiver.type, std::move(items));
}

Result<ExpressionPtr> ExpressionBuilder::build_map(const Raw& raw, const Receiver& receiver) {
  if (receiver.type->kind() != TypeKind::kMap) {
    return fail(ErrorCode::kInvalid, "Invalid map literal for {} of type {}", receiver.name,
                receiver.type->cql_text());
  }
  TETRAD_TRY_VOID(check_no_markers(raw, "map", receiver));
  const Receiver key = key_receiver(receiver), value = map_value_receiver(receiver);
  for (size_t i = 0; i < raw.children.size(); i += 2) {
    if (test(raw.children[i], key.type) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid, "Invalid map literal for {}: key {} is not of type {}",
                  receiver.name, raw.children[i].text(), key.type->cql_text());
    }
    if (test(raw.children[i + 1], value.type) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid, "Invalid map literal for {}: value {} is not of type {}",
                  receiver.name, raw.children[i + 1].text(), value.type->cql_text());
    }
  }
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  for (size_t i = 0; i < raw.children.size(); i += 2) {
    TETRAD_TRY(ExpressionPtr k, build(raw.children[i], key));
    TETRAD_TRY(ExpressionPtr v, build(raw.children[i + 1], value));
    entries.emplace_back(std::move(k), std::move(v));
  }
  return make_map_collection(receiver.type, std::move(entries));
}

Result<ExpressionPtr> ExpressionBuilder::build_udt(const Raw& raw, const Receiver& receiver) {
  const TypePtr& type = receiver.type;
  if (type->kind() != TypeKind::kUdt) {
    return fail(ErrorCode::kInvalid, "Invalid user type literal for {} of type {}", receiver.name,
                type->cql_text());
  }
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
    if (test(child, field.type) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid,
                  "Invalid user type literal for {}: field {} is not of type {}", receiver.name,
                  name, field.type->cql_text());
    }
    TETRAD_TRY(fields[*index], build(child, field));
  }
  return make_tuple_value(type, std::move(fields));
}

Result<ExpressionPtr> ExpressionBuilder::build_tuple(const Raw& raw, const Receiver& receiver) {
  const TypePtr& type = receiver.type;
  if (!type->is_tuple_like()) {
    return fail(ErrorCode::kInvalid, "Invalid tuple type literal for {} of type {}", receiver.name,
                type->cql_text());
  }
  if (raw.children.size() > type->components().size()) {
    return fail(ErrorCode::kInvalid,
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                receiver.name, type->cql_text(), type->components().size(), raw.children.size());
  }
  std::vector<ExpressionPtr> fields;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    const TypePtr& component = type->components()[i];
    if (test(raw.children[i], component) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid,
                  "Invalid tuple literal for {}: component {} is not of type {}", receiver.name, i,
                  component->cql_text());
    }
    TETRAD_TRY(ExpressionPtr field,
               build(raw.children[i],
                     {in_selection_ ? receiver.name : fmt::format("{}[{}]", receiver.name, i),
                      component, nullptr}));
    fields.push_back(std::move(field));
  }
  return make_tuple_value(type, std::move(fields));
}

// --- functions and operations ---

std::string ExpressionBuilder::name_of(const Raw& call) const { return call.function->name.text; }

std::string ExpressionBuilder::function_full_name(const ast::FunctionName& name) const {
  std::string text = name.name.text;
  if (text == "tojson") text = "to_json";
  if (text == "fromjson") text = "from_json";
  return (name.keyspace ? name.keyspace->text : std::string("system")) + "." + text;
}

Result<ScalarFunctionPtr> ExpressionBuilder::token_function() const {
  auto function = std::make_shared<ScalarFunction>();
  function->name = "token";
  for (const ColumnSchema& column : table_.partition_key()) {
    function->argument_types.push_back(column.type);
  }
  function->return_type = bigint_type();
  function->body = [](const FunctionEnvironment&,
                      FunctionArguments arguments) -> Result<OptionalBytes> {
    std::vector<BytesView> parts;
    for (const auto& argument : arguments) parts.push_back(*argument);
    TETRAD_TRY(const Bytes key, partitioner::serialize_partition_key(parts));
    return make_bigint(partitioner::token_of(key));
  };
  return function;
}

Result<ScalarFunctionPtr> ExpressionBuilder::resolve(const Raw& call, const TypePtr& receiver,
                                                     const std::string& receiver_name) {
  const std::string name = name_of(call);
  const auto unknown = [&]() -> std::unexpected<Error> {
    const std::string shown =
        call.function->keyspace ? call.function->keyspace->text + "." + name : name;
    return in_selection_ ? fail(ErrorCode::kInvalid, "Unknown function '{}'", shown)
                         : fail(ErrorCode::kInvalid, "Unknown function {} called", shown);
  };
  if (call.function->keyspace && call.function->keyspace->text != "system") return unknown();
  const size_t count = call.children.size();

  if (is_generic_function(name)) {
    const auto [least, most] = generic_function_arity(name);
    if (count < least || count > most) {
      return fail(ErrorCode::kInvalid, "Invalid number of arguments for function system.{}", name);
    }
    std::vector<TypePtr> types;
    for (const Raw& child : call.children) types.push_back(type_of(child));
    return make_generic_function(name, types, receiver);
  }

  std::vector<ScalarFunctionPtr> candidates;
  if (name == "token") {
    TETRAD_TRY(ScalarFunctionPtr token, token_function());
    candidates.push_back(std::move(token));
  } else if (name.starts_with("castas")) {
    // CAST(x AS type) among terms.
    const TypePtr to = native_type_named(std::string_view(name).substr(6));
    if (to && count == 1) {
      const TypePtr from = type_of(call.children[0]);
      auto function = from ? find_cast(from, to) : nullptr;
      if (!function) {
        return fail(ErrorCode::kInvalid, "{} cannot be cast to {}", call.children[0].text(),
                    to->cql_text());
      }
      return function;
    }
    return unknown();
  } else {
    const auto found = find_native_functions(name);
    candidates.assign(found.begin(), found.end());
  }
  if (candidates.empty()) return unknown();

  const auto test_arguments = [&](const ScalarFunction& function) {
    if (function.argument_types.size() != count) return Assignability::kNotAssignable;
    auto all = Assignability::kExact;
    for (size_t i = 0; i < count; ++i) {
      all = weakest(all, test(call.children[i], function.argument_types[i]));
    }
    return all;
  };
  const auto fits_receiver = [&](const ScalarFunction& function) {
    return !receiver ||
           test_assignment(*receiver, *function.return_type) != Assignability::kNotAssignable;
  };
  const auto check_receiver = [&](ScalarFunctionPtr function) -> Result<ScalarFunctionPtr> {
    if (!fits_receiver(*function)) {
      return fail(ErrorCode::kInvalid,
                  "Type error: cannot assign result of function {} (type {}) to {} (type {})",
                  function->qualified_name(), function->return_type->cql_text(), receiver_name,
                  receiver->cql_text());
    }
    return function;
  };

  if (candidates.size() == 1) {
    const ScalarFunction& function = *candidates[0];
    if (function.argument_types.size() != count) {
      return fail(ErrorCode::kInvalid,
                  "Invalid number of arguments in call to function {}: {} required but {} provided",
                  function.qualified_name(), function.argument_types.size(), count);
    }
    TETRAD_TRY_VOID(check_receiver(candidates[0]));
    for (size_t i = 0; i < count; ++i) {
      if (test(call.children[i], function.argument_types[i]) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid,
                    "Type error: {} cannot be passed as argument {} of function {} of type {}",
                    call.children[i].text(), i, function.qualified_name(),
                    function.argument_types[i]->cql_text());
      }
    }
    return candidates[0];
  }

  if (receiver) {
    std::vector<ScalarFunctionPtr> fitting;
    std::ranges::copy_if(candidates, std::back_inserter(fitting),
                         [&](const auto& function) { return fits_receiver(*function); });
    if (!fitting.empty()) candidates = std::move(fitting);
  }
  std::vector<ScalarFunctionPtr> matching;
  for (const auto& function : candidates) {
    const Assignability fit = test_arguments(*function);
    if (fit == Assignability::kExact) return check_receiver(function);
    if (fit == Assignability::kWeak) matching.push_back(function);
  }
  const auto list = [](const std::vector<ScalarFunctionPtr>& functions) {
    std::string text;
    for (const auto& function : functions) {
      if (!text.empty()) text += ", ";
      text += function->signature();
    }
    return text;
  };
  if (matching.empty()) {
    return fail(ErrorCode::kInvalid,
                "Invalid call to function {}, none of its type signatures match (known type "
                "signatures: {})",
                name, list(candidates));
  }
  if (matching.size() > 1) {
    return fail(ErrorCode::kInvalid,
                "Ambiguous call to function {} (can be matched by following signatures: {}): use "
                "type casts to disambiguate",
                name, list(matching));
  }
  return check_receiver(matching[0]);
}

Result<std::vector<ExpressionPtr>> ExpressionBuilder::build_arguments(
    const Raw& raw, const ScalarFunction& function) {
  std::vector<ExpressionPtr> arguments;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    TETRAD_TRY(ExpressionPtr argument,
               build(raw.children[i],
                     {in_selection_ ? std::string("[selection]")
                                    : fmt::format("arg{}({})", i, function.qualified_name()),
                      function.argument_types[i], nullptr}));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Result<ExpressionPtr> ExpressionBuilder::build_call(const Raw& raw, const Receiver* receiver) {
  const std::string name = name_of(raw);
  if (is_native_aggregate(name)) {
    if (!in_selection_) {
      return fail(ErrorCode::kInvalid,
                  "Aggregation function are not supported in the where clause");
    }
    return build_aggregate(raw);
  }
  if (in_selection_ && (name == "fromjson" || name == "from_json")) {
    return fail(ErrorCode::kInvalid,
                "{}() cannot be used in the selection clause of a SELECT statement", name);
  }
  TETRAD_TRY(ScalarFunctionPtr function,
             resolve(raw, receiver == nullptr ? nullptr : receiver->type,
                     receiver == nullptr ? std::string() : receiver->name));
  if (receiver != nullptr &&
      test_assignment(*receiver->type, *function->return_type) == Assignability::kNotAssignable) {
    return fail(ErrorCode::kInvalid,
                "Type error: cannot assign result of function {} (type {}) to {} (type {})",
                function->qualified_name(), function->return_type->cql_text(), receiver->name,
                receiver->type->cql_text());
  }
  TETRAD_TRY(auto arguments, build_arguments(raw, *function));
  return make_call(std::move(function), std::move(arguments));
}

Result<ExpressionPtr> ExpressionBuilder::build_arithmetic(const Raw& raw,
                                                          const Receiver* receiver) {
  const Raw &left = raw.children[0], &right = raw.children[1];
  const char op = ast::arithmetic_symbol(raw.op);
  TypePtr left_type = type_of(left), right_type = type_of(right);
  if (left.kind == Kind::kMarker || right.kind == Kind::kMarker) {
    return fail(ErrorCode::kInvalid,
                "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, "
                "example '(int) ?'",
                op, left.text(), right.text());
  }
  ScalarFunctionPtr function =
      left_type && right_type ? find_operator(op, left_type, right_type) : nullptr;
  const auto fits = [&](const ScalarFunctionPtr& f) {
    return f && (receiver == nullptr || test_assignment(*receiver->type, *f->return_type) !=
                                            Assignability::kNotAssignable);
  };
  if (!fits(function) && receiver != nullptr) {
    // Constants take the type that is wanted.
    if (test(left, receiver->type) != Assignability::kNotAssignable &&
        test(right, receiver->type) != Assignability::kNotAssignable) {
      function = find_operator(op, receiver->type, receiver->type);
    }
  }
  if (!fits(function)) {
    return fail(ErrorCode::kInvalid, "the '{}' operation is not supported between {} and {}", op,
                left.text(), right.text());
  }
  TETRAD_TRY(ExpressionPtr l, build(left, {"[selection]", function->argument_types[0], nullptr}));
  TETRAD_TRY(ExpressionPtr r, build(right, {"[selection]", function->argument_types[1], nullptr}));
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(l));
  arguments.push_back(std::move(r));
  std::string label = fmt::format("{} {} {}", function->argument_types[0]->cql_text(), op,
                                  function->argument_types[1]->cql_text());
  return make_call(std::move(function), std::move(arguments), std::move(label));
}

Result<ExpressionPtr> ExpressionBuilder::build_negation(const Raw& raw, const Receiver* receiver) {
  const Raw& child = raw.children[0];
  TypePtr type = type_of(child);
  if (receiver != nullptr &&
      (!type || test_assignment(*receiver->type, *type) == Assignability::kNotAssignable)) {
    if (test(child, receiver->type) != Assignability::kNotAssignable) type = receiver->type;
  }
  ScalarFunctionPtr function = type ? find_negation(type) : nullptr;
  if (!function) {
    return fail(ErrorCode::kInvalid, "the '-' operation is not supported on {}", child.text());
  }
  TETRAD_TRY(ExpressionPtr argument, build(child, {"[selection]", type, nullptr}));
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(argument));
  return make_call(std::move(function), std::move(arguments), "-" + type->cql_text());
}

// --- selectors ---

Result<ExpressionPtr> ExpressionBuilder::build_selector(const Raw& raw) {
  switch (raw.kind) {
    case Kind::kColumn: {
      TETRAD_TRY(const ColumnSchema* found, column(*raw.identifiers[0]));
      return make_column(found->type, slot_of(*found));
    }
    case Kind::kCountRows:
      aggregates_.push_back({count_rows_aggregate(), nullptr});
      return make_aggregate_reference(bigint_type(), aggregates_.size() - 1);
    case Kind::kTimes:
      return build_times(raw);
    case Kind::kFunction:
      return build_call(raw, nullptr);
    case Kind::kCast:
      return build_cast(raw);
    case Kind::kField:
      return build_field(raw);
    case Kind::kElement:
    case Kind::kSlice:
      return build_element(raw);
    case Kind::kArithmetic:
      return build_arithmetic(raw, nullptr);
    case Kind::kNegation:
      return build_negation(raw, nullptr);
    case Kind::kTypeHint: {
      TETRAD_TRY(TypePtr type, resolve_type(*raw.type));
      if (test(raw.children[0], type) == Assignability::kNotAssignable) {
        return fail(ErrorCode::kInvalid, "Cannot assign value {} to {} of type {}", raw.text(),
                    raw.text(), type->cql_text());
      }
      TETRAD_TRY(ExpressionPtr inner, build(raw.children[0], {"[selection]", type, nullptr}));
      return make_retyped(std::move(type), std::move(inner));
    }
    case Kind::kTuple:
      if (raw.children.size() == 1) return build_selector(raw.children[0]);
      [[fallthrough]];
    case Kind::kList:
    case Kind::kSet: {
      const TypePtr type = type_of(raw);
      if (!type) return cannot_infer(raw);
      return build(raw, {"[selection]", type, nullptr});
    }
    default:
      return cannot_infer(raw);
  }
}

Result<ExpressionPtr> ExpressionBuilder::build_cast(const Raw& raw) {
  TETRAD_TRY(TypePtr to, resolve_type(*raw.type));
  TETRAD_TRY(ExpressionPtr argument, build_selector(raw.children[0]));
  if (*argument->type() == *to) return argument;
  ScalarFunctionPtr function = find_cast(argument->type(), to);
  if (!function) {
    const std::string signatures = cast_signatures(to);
    if (signatures.empty()) {
      return fail(ErrorCode::kInvalid, "{} cannot be cast to {}", raw.children[0].text(),
                  to->cql_text());
    }
    return fail(ErrorCode::kInvalid,
                "Invalid call to function system.cast_as_{}, none of its type signatures match "
                "(known type signatures: {})",
                to->cql_text(), signatures);
  }
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(argument));
  return make_call(std::move(function), std::move(arguments));
}

Result<ExpressionPtr> ExpressionBuilder::build_aggregate(const Raw& raw) {
  const std::string name = name_of(raw);
  if (raw.children.size() != 1) {
    return fail(ErrorCode::kInvalid, "Invalid number of arguments for function system.{}({})", name,
                name == "sum" || name == "avg" ? "numeric" : "any");
  }
  if (inside_aggregate_) {
    return fail(ErrorCode::kInvalid,
                "aggregate functions cannot be used as arguments of aggregate functions");
  }
  inside_aggregate_ = true;
  const size_t before = aggregates_.size();
  auto argument = [&]() -> Result<ExpressionPtr> {
    const Raw& child = raw.children[0];
    if (child.kind == Kind::kLiteral || child.kind == Kind::kMarker) {
      const TypePtr type = type_of(child);
      if (!type) return cannot_infer(child);
      return build(child, {"[selection]", type, nullptr});
    }
    return build_selector(child);
  }();
  inside_aggregate_ = false;
  if (!argument) return std::unexpected(std::move(argument).error());
  if (aggregates_.size() != before) {
    return fail(ErrorCode::kInvalid,
                "aggregate functions cannot be used as arguments of aggregate functions");
  }
  AggregateFunctionPtr function = find_aggregate(name, (*argument)->type());
  if (!function) {
    return fail(ErrorCode::kInvalid,
                "Invalid call to function {}, none of its type signatures match (known type "
                "signatures: {})",
                name, aggregate_signatures(name));
  }
  TypePtr type = function->return_type;
  aggregates_.push_back({std::move(function), std::move(*argument)});
  return make_aggregate_reference(std::move(type), aggregates_.size() - 1);
}

Result<ExpressionPtr> ExpressionBuilder::build_times(const Raw& raw) {
  const Raw& target = raw.children[0];
  const Raw* source = &target;
  if (target.kind == Kind::kElement || target.kind == Kind::kSlice || target.kind == Kind::kField) {
    source = &target.children[0];
  }
  const bool is_ttl = raw.times == ast::WriteTimeSelector::Kind::kTtl;
  const bool is_max = raw.times == ast::WriteTimeSelector::Kind::kMaxWriteTime;
  const std::string_view name = is_ttl ? "ttl" : is_max ? "maxwritetime" : "writetime";
  if (source->kind != Kind::kColumn) {
    return fail(ErrorCode::kInvalid, "Cannot use selection function {} on {}", name,
                source->text());
  }
  TETRAD_TRY(const ColumnSchema* found, column(*source->identifiers[0]));
  if (found->is_primary_key()) {
    return fail(ErrorCode::kInvalid, "Cannot use selection function {} on PRIMARY KEY part {}",
                name, ast::quote_identifier(found->name));
  }
  TimesTarget times;
  times.slot = slot_of(*found);
  times.column = found->type;
  if (target.kind == Kind::kField) {
    TETRAD_TRY(ExpressionPtr checked, build_field(target));
    times.field = found->type->field_index(target.identifiers[0]->text);
  } else if (target.kind != Kind::kColumn) {
    const TypeKind kind = found->type->kind();
    if (kind != TypeKind::kMap && kind != TypeKind::kSet) {
      TETRAD_TRY(ExpressionPtr refused, build_element(target));
      return fail(ErrorCode::kInvalid, "Cannot use selection function {} on {}", name,
                  target.text());
    }
    const Receiver whole{found->name, found->type, nullptr};
    const Receiver key = kind == TypeKind::kMap ? key_receiver(whole) : element_receiver(whole);
    if (target.kind == Kind::kElement) {
      TETRAD_TRY(times.element, build(target.children[1], key));
    } else {
      times.is_slice = true;
      if (target.children[1].kind != Kind::kNothing) {
        TETRAD_TRY(times.lower, build(target.children[1], key));
      }
      if (target.children[2].kind != Kind::kNothing) {
        TETRAD_TRY(times.upper, build(target.children[2], key));
      }
    }
  }
  return make_times(
      is_ttl ? TimesKind::kTtl : (is_max ? TimesKind::kMaxWriteTime : TimesKind::kWriteTime),
      std::move(times));
}

Result<ExpressionPtr> ExpressionBuilder::build_element(const Raw& raw) {
  const Raw& source_raw = raw.children[0];
  TETRAD_TRY(ExpressionPtr source, build_selector(source_raw));
  const TypePtr& type = source->type();
  const std::string name = source_raw.text();
  if (type->kind() == TypeKind::kList || type->kind() == TypeKind::kVector) {
    return fail(ErrorCode::kInvalid,
                "Element selection is only allowed on sets and maps, but {} is a {}", name,
                type->kind() == TypeKind::kList ? "list" : "vector");
  }
  if (type->kind() != TypeKind::kMap && type->kind() != TypeKind::kSet) {
    return fail(ErrorCode::kInvalid,
                "Invalid element selection: {} is of type {} is not a collection", name,
                type->cql_text());
  }
  const Receiver whole{name, type, nullptr};
  const Receiver key =
      type->kind() == TypeKind::kMap ? key_receiver(whole) : element_receiver(whole);
  if (raw.kind == Kind::kElement) {
    TETRAD_TRY(ExpressionPtr k, build(raw.children[1], key));
    return make_element(std::move(source), std::move(k));
  }
  ExpressionPtr lower, upper;
  if (raw.children[1].kind != Kind::kNothing) {
    TETRAD_TRY(lower, build(raw.children[1], key));
  }
  if (raw.children[2].kind != Kind::kNothing) {
    TETRAD_TRY(upper, build(raw.children[2], key));
  }
  return make_slice(std::move(source), std::move(lower), std::move(upper));
}

Result<ExpressionPtr> ExpressionBuilder::build_field(const Raw& raw) {
  TETRAD_TRY(ExpressionPtr source, build_selector(raw.children[0]));
  const TypePtr& type = source->type();
  const std::string& field = raw.identifiers[0]->text;
  if (type->kind() != TypeKind::kUdt) {
    return fail(ErrorCode::kInvalid, "Invalid field selection: {} of type {} is not a user type",
                raw.children[0].text(), type->cql_text());
  }
  const auto index = type->field_index(field);
  if (!index) {
    return fail(ErrorCode::kInvalid, "{} of type {} has no field {}", raw.children[0].text(),
                type->name(), field);
  }
  return make_field(std::move(source), *index);
}

}  // namespace tetrad::cql
