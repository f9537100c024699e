// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: which overload a call means. (Operators: arithmetic.cc.)
//
// The rules are those of Cassandra's FunctionResolver: an overload whose argument types are exact
// wins; otherwise exactly one must be possible. Each argument is tested (test(),
// expression_types.cc) as exact, weak (a literal or a marker that fits) or not assignable. The
// receiver's type, where there is one, leaves out overloads whose result could not be assigned.
#include <algorithm>
#include <array>
#include <utility>

#include "cql/functions/function_table.h"
#include "cql/functions/user_function.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/constant.h"
#include "cql/prepare/expression_parts.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

/// CAST(x AS type) among terms: one function for every type that x may have.
std::vector<ScalarFunctionPtr> casts_to(const TypePtr& to) {
  std::vector<ScalarFunctionPtr> casts;
  for (auto kind = TypeKind::kAscii; kind < TypeKind::kList;
       kind = static_cast<TypeKind>(static_cast<int>(kind) + 1)) {
    const TypePtr& from = native_type(kind);
    if (*from == *to) continue;
    if (auto cast = find_cast(from, to)) casts.push_back(std::move(cast));
  }
  return casts;
}

/// Whether a result can be assigned. The types of user-defined functions are written without
/// frozen, what they give is frozen.
bool gives(const ScalarFunction& function, const TypePtr& receiver) {
  const bool is_native = function.keyspace == "system";
  if (is_native && receiver->is_multi_cell() && function.return_type->is_frozen()) return false;
  if (is_native && function.return_type->is_multi_cell() && receiver->is_frozen()) {
    return *receiver == *freeze(function.return_type);
  }
  if (test_assignment(*receiver, *function.return_type) != Assignability::kNotAssignable) {
    return true;
  }
  return !is_native && test_assignment(*freeze(receiver), *freeze(function.return_type)) !=
                           Assignability::kNotAssignable;
}

}  // namespace

std::string ExpressionBuilder::name_of(const Raw& call) const { return call.function->name.text; }

// A user-defined function that was resolved has its keyspace; a native one is named as it was
// called, by its older or its newer name.
std::string ExpressionBuilder::function_full_name(const ast::FunctionName& name) const {
  if (const auto used = full_names_.find(&name); used != full_names_.end()) return used->second;
  return (name.keyspace ? name.keyspace->text : std::string("system")) + "." + name.name.text;
}

// Made for each table: its arguments are the types of the partition key.
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

// Without a keyspace the function is looked for in the table's keyspace, as in Cassandra.
std::vector<ScalarFunctionPtr> ExpressionBuilder::user_candidates(const Raw& call) const {
  const ast::FunctionName& name = *call.function;
  const KeyspaceSchema* keyspace =
      context_.schema->keyspace(name.keyspace ? name.keyspace->text : table_.keyspace);
  std::vector<ScalarFunctionPtr> out;
  if (keyspace == nullptr) return out;
  for (const FunctionPtr& function : keyspace->functions) {
    if (function->name == name.name.text) out.push_back(make_user_function(*function));
  }
  for (const AggregatePtr& aggregate : keyspace->aggregates) {
    if (aggregate->name != name.name.text) continue;
    if (auto made = make_user_aggregate(*aggregate, *keyspace)) out.push_back(std::move(made));
  }
  return out;
}

bool ExpressionBuilder::names_native_aggregate(const Raw& call) const {
  const auto& keyspace = call.function->keyspace;
  return (!keyspace || keyspace->text == "system") && is_native_aggregate(name_of(call));
}

bool ExpressionBuilder::is_known(const Raw& call) const {
  const std::string name = name_of(call);
  const auto& keyspace = call.function->keyspace;
  const bool may_be_native = !keyspace || keyspace->text == "system";
  return (may_be_native && (is_generic_function(name) || is_native_aggregate(name) ||
                            !find_native_functions(name).empty())) ||
         !user_candidates(call).empty();
}

// A function without arguments fits exactly.
Assignability ExpressionBuilder::test_arguments(const Raw& call, const ScalarFunction& function) {
  if (function.argument_types.size() != call.children.size()) return Assignability::kNotAssignable;
  auto all = Assignability::kExact;
  for (size_t i = 0; i < call.children.size(); ++i) {
    all = weakest(all, test(call.children[i], function.argument_types[i]));
  }
  return all;
}

ScalarFunctionPtr ExpressionBuilder::exact_user_function(const Raw& call) {
  for (const ScalarFunctionPtr& function : user_candidates(call)) {
    if (test_arguments(call, *function) == Assignability::kExact) return function;
  }
  return nullptr;
}

/// A prepared statement holds as long as the functions it calls do.
Result<void> ExpressionBuilder::note_use(const Raw& call, const ScalarFunction& function) {
  if (function.keyspace == "system") return {};
  TETRAD_TRY_VOID(check_user_functions(context_.settings.user_functions_enabled));
  // The names of result columns need it later.
  full_names_[call.function] = function.qualified_name();
  const KeyspaceSchema* keyspace = context_.schema->keyspace(function.keyspace);
  if (!function.aggregate) {
    used_functions_.add(keyspace->find_function(function.name, function.argument_types));
    return {};
  }
  const AggregatePtr aggregate = keyspace->find_aggregate(function.name, function.argument_types);
  used_functions_.add(aggregate);
  // An aggregate needs its functions, too: the right to execute each, and a new preparation when
  // one of them changes.
  used_functions_.add(state_function_of(*aggregate, *keyspace));
  if (const FunctionPtr last = final_function_of(*aggregate, *keyspace)) used_functions_.add(last);
  return {};
}

/// What is inside is resolved first.
// Only in select lists, where Cassandra resolves from the inside out.
Result<void> ExpressionBuilder::resolve_inside(const Raw& raw) {
  if (!in_selection_ || raw.is_resolved_inside) return {};
  for (const Raw& child : raw.children) TETRAD_TRY_VOID(resolve_inside(child));
  TETRAD_TRY_VOID(resolve_itself(raw));
  raw.is_resolved_inside = true;
  return {};
}

/// Once what is inside is resolved.
Result<void> ExpressionBuilder::resolve_itself(const Raw& raw) {
  if (raw.kind == Kind::kArithmetic) {
    TETRAD_TRY_VOID(check_operands(raw));
    if (type_of(raw)) return {};
    TETRAD_TRY([[maybe_unused]] const auto refused, build_arithmetic(raw, nullptr));
    return {};
  }
  if (raw.kind == Kind::kNegation && !type_of(raw)) {
    TETRAD_TRY([[maybe_unused]] const auto refused, build_negation(raw, nullptr));
    return {};
  }
  if (raw.kind != Kind::kFunction) return {};
  if (is_native_aggregate(name_of(raw))) {
    return raw.children.size() == 1 ? check_aggregated(raw) : Result<void>();
  }
  if (type_of(raw)) return {};
  TETRAD_TRY([[maybe_unused]] const auto found, resolve(raw, nullptr, {}));
  return {};
}

/// The arguments of a similarity, as far as their types are known.
Result<void> ExpressionBuilder::check_vectors(const Raw& call, const std::vector<TypePtr>& types) {
  const std::string name = name_of(call);
  TypePtr wanted;
  for (size_t i = 0; i < types.size(); ++i) {
    const Raw& child = call.children[i];
    const TypePtr& type = types[i];
    if (!type) continue;
    if (type->kind() != TypeKind::kVector || type->element()->kind() != TypeKind::kFloat) {
      return fail(ErrorCode::kInvalid,
                  "Function system.{} requires a float vector argument, but found argument {} of "
                  "type {}",
                  name, child.text(), type->cql_text());
    }
    if (wanted && wanted->dimension() != type->dimension()) {
      return fail(ErrorCode::kInvalid, "All arguments must have the same vector dimensions");
    }
    wanted = type;
    if (child.kind == Kind::kList && test(child, type) == Assignability::kNotAssignable) {
      return fail(ErrorCode::kInvalid,
                  "Type error: {} cannot be passed as argument {} of function system.{} of type {}",
                  child.text(), i, name, type->cql_text());
    }
  }
  return {};
}

Result<void> ExpressionBuilder::check_argument(const Raw& call, const ScalarFunction& function,
                                               size_t i) {
  TETRAD_TRY(const bool fitting, fits(call.children[i], function.argument_types[i]));
  if (fitting) return {};
  return fail(ErrorCode::kInvalid,
              "Type error: {} cannot be passed as argument {} of function {} of type {}",
              call.children[i].text(), i, function.qualified_name(),
              function.argument_types[i]->cql_text());
}

/// Whether a tuple in it has a field that is a column of many cells.
bool ExpressionBuilder::has_cells_in_tuple(const Raw& raw) {
  if (raw.kind != Kind::kTuple && raw.kind != Kind::kList && raw.kind != Kind::kSet) return false;
  return std::ranges::any_of(raw.children, [&](const Raw& child) {
    const bool is_field = raw.kind == Kind::kTuple && child.kind == Kind::kColumn;
    const TypePtr type = is_field ? type_of(child) : nullptr;
    return (type && type->is_multi_cell()) || has_cells_in_tuple(child);
  });
}

Result<void> ExpressionBuilder::check_fields(const Raw& argument, std::string_view function,
                                             const TypePtr& type) {
  if (!has_cells_in_tuple(argument)) return {};
  return fail(ErrorCode::kInvalid,
              "Type error: {} cannot be passed as argument 0 of function system.{} of type {}",
              argument.text(), function, freeze(type)->cql_text());
}

// mask_inner(text, begin, end [, padding]) and mask_outer; the text's type decides the result's.
Result<ScalarFunctionPtr> ExpressionBuilder::resolve_mask(const Raw& call) {
  const std::string name = name_of(call);
  static constexpr std::array<std::string_view, 4> kParameters = {"[text|varchar|ascii]", "int",
                                                                  "int", "text"};
  const size_t count = call.children.size();
  if (count < 3 || count > 4) {
    return fail(ErrorCode::kInvalid,
                "Invalid number of arguments for function system.{}([text|varchar|ascii], int, "
                "int, [text])",
                name);
  }
  bool of_ascii = false;
  for (size_t i = 0; i < count; ++i) {
    const TypePtr type = type_of(call.children[i]);
    if (!type) continue;
    const bool is_ascii = type->kind() == TypeKind::kAscii;
    const bool suits = kParameters[i] == "int" ? type->kind() == TypeKind::kInt
                                               : is_ascii || type->kind() == TypeKind::kText;
    if (!suits) {
      return fail(ErrorCode::kInvalid,
                  "Function system.{} requires an argument of type {}, but found argument {} of "
                  "type {}",
                  name, kParameters[i], call.children[i].text(), type->cql_text());
    }
    if (i == 0) of_ascii = is_ascii;
  }
  const auto functions = find_native_functions(name);
  const auto found = std::ranges::find_if(functions, [&](const ScalarFunctionPtr& function) {
    return function->argument_types.size() == count &&
           (function->argument_types[0]->kind() == TypeKind::kAscii) == of_ascii;
  });
  for (size_t i = 0; i < count; ++i) TETRAD_TRY_VOID(check_argument(call, **found, i));
  return *found;
}

namespace {

/// "f : (int) -> int, ...", for errors about overloads.
std::string signatures_of(const std::vector<ScalarFunctionPtr>& functions) {
  std::string text;
  for (const auto& function : functions) {
    if (!text.empty()) text += ", ";
    text += function->signature();
  }
  return text;
}

/// `function`, whose result is for `receiver` (of no type: for anything). Errors: kInvalid.
Result<ScalarFunctionPtr> check_receiver(ScalarFunctionPtr function, const Receiver& receiver) {
  if (receiver.type && !gives(*function, receiver.type)) {
    return fail(ErrorCode::kInvalid,
                "Type error: cannot assign result of function {} (type {}) to {} (type {})",
                function->qualified_name(), function->return_type->cql_text(), receiver.name,
                receiver.type->cql_text());
  }
  return function;
}

}  // namespace

// Null: the type is not known (a marker, for example). A list literal is a vector of floats where
// vectors are wanted.
Result<std::vector<TypePtr>> ExpressionBuilder::generic_argument_types(const Raw& call,
                                                                       bool wants_vectors) {
  std::vector<TypePtr> types;
  for (const Raw& child : call.children) {
    const bool is_vector = wants_vectors && child.kind == Kind::kList;
    if (is_vector && child.children.empty()) {
      return fail(ErrorCode::kInvalid, "vectors may only have positive dimensions; given 0");
    }
    types.push_back(is_vector
                        ? make_vector(float_type(), static_cast<uint32_t>(child.children.size()))
                        : type_of(child));
  }
  return types;
}

// 1. How many arguments. 2. Their types, as far as they tell. 3. The function for these types. 4.
// The further arguments against it. from_json takes a text and has the receiver's type, so its
// argument need not tell.
Result<ScalarFunctionPtr> ExpressionBuilder::resolve_generic(const Raw& call,
                                                             const std::string& name,
                                                             const TypePtr& receiver) {
  const size_t count = call.children.size();
  const auto [least, most] = generic_function_arity(name);
  if (count < least || count > most) {
    return fail(ErrorCode::kInvalid, "Invalid number of arguments for function system.{}({})", name,
                generic_function_parameters(name));
  }
  const bool takes_text = name == "fromjson" || name == "from_json";
  if (in_selection_ && takes_text) {
    return fail(ErrorCode::kInvalid,
                "{}() cannot be used in the selection clause of a SELECT statement", name);
  }
  const bool wants_vectors = name.starts_with("similarity_");
  TETRAD_TRY(std::vector<TypePtr> types, generic_argument_types(call, wants_vectors));
  if (wants_vectors) TETRAD_TRY_VOID(check_vectors(call, types));
  // The result has the first argument's type, so the receiver's type is it.
  if (!types[0] && name == "mask_replace") types[0] = receiver;
  const bool is_open =
      wants_vectors ? std::ranges::count(types, nullptr) == std::ssize(types) : !types[0];
  if (is_open && !takes_text) {
    return fail(ErrorCode::kInvalid,
                "Cannot infer type of argument {} in call to function system.{}({}): use type "
                "casts to disambiguate",
                call.children[0].text(), name, generic_function_parameters(name));
  }
  auto made = make_generic_function(name, types, receiver);
  if (!made) {  // the argument's text is known here only
    constexpr std::string_view kFound = "but found argument ";
    std::string& message = made.error().message;
    const size_t at = message.find(kFound);
    if (at != message.npos) message.insert(at + kFound.size(), call.children[0].text() + " ");
  }
  if (made) TETRAD_TRY_VOID(check_fields(call.children[0], name, (*made)->argument_types[0]));
  for (size_t i = 1; made && !wants_vectors && i < count; ++i) {
    TETRAD_TRY_VOID(check_argument(call, **made, i));
  }
  return made;
}

// The only function of its name: the errors are about it, not about a choice.
Result<ScalarFunctionPtr> ExpressionBuilder::check_only_candidate(
    const Raw& call, const ScalarFunctionPtr& candidate, const Receiver& receiver) {
  const ScalarFunction& function = *candidate;
  const size_t count = call.children.size();
  if (function.argument_types.size() != count) {
    return fail(ErrorCode::kInvalid,
                "Invalid number of arguments in call to function {}: {} required but {} provided",
                function.qualified_name(), function.argument_types.size(), count);
  }
  TETRAD_TRY_VOID(check_receiver(candidate, receiver));
  for (size_t i = 0; i < count; ++i) TETRAD_TRY_VOID(check_argument(call, function, i));
  return candidate;
}

// Of several functions of one name: one that takes exactly these arguments, or the only one that
// could take them.
Result<ScalarFunctionPtr> ExpressionBuilder::choose_candidate(
    const Raw& call, std::vector<ScalarFunctionPtr> candidates, const Receiver& receiver,
    const std::string& shown) {
  const std::vector<ScalarFunctionPtr> all_candidates = candidates;
  if (receiver.type) {
    std::vector<ScalarFunctionPtr> fitting;
    std::ranges::copy_if(candidates, std::back_inserter(fitting),
                         [&](const auto& function) { return gives(*function, receiver.type); });
    candidates = std::move(fitting);
  }
  std::vector<ScalarFunctionPtr> matching;
  for (const auto& function : candidates) {
    const Assignability fit = test_arguments(call, *function);
    // User-defined ones stand first in the list, so they win over native ones with the same types.
    if (fit == Assignability::kExact) return check_receiver(function, receiver);
    if (fit == Assignability::kWeak) matching.push_back(function);
  }
  if (matching.empty()) {
    return fail(ErrorCode::kInvalid,
                "Invalid call to function {}, none of its type signatures match (known type "
                "signatures: {})",
                shown, signatures_of(all_candidates));
  }
  if (matching.size() > 1) {
    return fail(ErrorCode::kInvalid,
                "Ambiguous call to function {} (can be matched by following signatures: {}): use "
                "type casts to disambiguate",
                shown, signatures_of(matching));
  }
  return check_receiver(matching[0], receiver);
}

// Which function a call means, in this order:
//
//   1. The calls inside, so that the innermost unknown function is the one named.
//   2. A native function that is made for its arguments' types (generic), unless a user-defined one
//      takes exactly these arguments.
//   3. mask_inner and mask_outer, which take a varying number of arguments.
//   4. All others of the name: the only one, or the one of several that fits.
Result<ScalarFunctionPtr> ExpressionBuilder::resolve(const Raw& call, const TypePtr& receiver,
                                                     const std::string& receiver_name) {
  const std::string name = name_of(call);
  const std::string shown =
      call.function->keyspace ? call.function->keyspace->text + "." + name : name;
  const auto unknown = [&]() -> std::unexpected<Error> {
    return in_selection_ ? fail(ErrorCode::kInvalid, "Unknown function '{}'", shown)
                         : fail(ErrorCode::kInvalid, "Unknown function {} called", shown);
  };
  const bool may_be_native = !call.function->keyspace || call.function->keyspace->text == "system";
  for (const Raw& child : call.children) TETRAD_TRY_VOID(resolve_inside(child));
  std::vector<ScalarFunctionPtr> candidates = user_candidates(call);

  if (may_be_native && is_generic_function(name)) {
    if (auto function = exact_user_function(call)) return function;
    return resolve_generic(call, name, receiver);
  }
  if (may_be_native && (name == "mask_inner" || name == "mask_outer") &&
      !exact_user_function(call)) {
    return resolve_mask(call);
  }
  if (!may_be_native) {
    // None but those.
  } else if (name == "token") {
    TETRAD_TRY(ScalarFunctionPtr token, token_function());
    candidates.push_back(std::move(token));
  } else if (const TypePtr to = name.starts_with("cast_as_")
                                    ? native_type_named(std::string_view(name).substr(8))
                                    : nullptr) {
    candidates = casts_to(to);
  } else {
    const auto found = find_native_functions(name);
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  if (candidates.empty()) return unknown();

  const Receiver for_it{receiver_name, receiver, nullptr};
  if (candidates.size() == 1) return check_only_candidate(call, candidates[0], for_it);
  return choose_candidate(call, std::move(candidates), for_it, shown);
}

// Receivers are named as markers inside calls are: arg0(ks.f).
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

// Native aggregates first: they are no scalar functions and have rules of their own. `receiver`
// null: the result may have any type.
Result<ExpressionPtr> ExpressionBuilder::build_call(const Raw& raw, const Receiver* receiver) {
  const std::string name = name_of(raw);
  const bool may_be_native = !raw.function->keyspace || raw.function->keyspace->text == "system";
  if (may_be_native && is_native_aggregate(name) && !exact_user_function(raw)) {
    if (!in_selection_) {
      return fail(ErrorCode::kInvalid,
                  "Aggregation function are not supported in the where clause");
    }
    return build_aggregate(raw);
  }
  TETRAD_TRY(ScalarFunctionPtr function,
             resolve(raw, receiver == nullptr ? nullptr : receiver->type,
                     receiver == nullptr ? std::string() : receiver->name));
  if (receiver != nullptr && !gives(*function, receiver->type)) {
    return fail(ErrorCode::kInvalid,
                "Type error: cannot assign result of function {} (type {}) to {} (type {})",
                function->qualified_name(), function->return_type->cql_text(), receiver->name,
                receiver->type->cql_text());
  }
  TETRAD_TRY_VOID(note_use(raw, *function));
  if (function->aggregate) {
    if (!in_selection_) {
      return fail(ErrorCode::kInvalid,
                  "Aggregation function are not supported in the where clause");
    }
    return build_user_aggregate(raw, function);
  }
  TETRAD_TRY(auto arguments, build_arguments(raw, *function));
  return make_call(std::move(function), std::move(arguments));
}

}  // namespace tetrad::cql
