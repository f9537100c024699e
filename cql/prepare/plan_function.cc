// SPDX-License-Identifier: Apache-2.0
// User-defined functions and aggregates: CREATE and DROP.
// Checks and their texts are Cassandra's, in its order, as tests of drivers compare them. Functions
// have overloads: a function is known by its name and the types of its arguments, without frozen<>.
// The key in the metadata has both, so CREATE OR REPLACE of one overload leaves the others alone.
//
// CREATE FUNCTION: options, arguments' names, types, a compiling body, then an overload that
// exists. A function that is replaced keeps how it takes null and must return a type of compatible
// order, because aggregates and prepared statements go on to use it. CREATE AGGREGATE: types, the
// state function (state, arguments…) -> state, the final function (state) -> result, the initial
// state, then an overload that exists. DROP is refused while an aggregate or a column mask uses the
// function.
#include <algorithm>
#include <set>

#include "cql/functions/user_function.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/column_masks.h"
#include "cql/prepare/expression_builder.h"
#include "cql/prepare/schema_plan.h"
#include "cql/schema/schema_text.h"
#include "cql/types/keyword.h"
#include "cql/types/literal.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;
using Target = SchemaChange::Target;

/// The keyspace of a function; the system's own cannot be changed.
Result<std::string> keyspace_of_function(const ast::FunctionName& name, const PlanInput& input) {
  TETRAD_TRY(std::string keyspace,
             keyspace_of(ast::QualifiedName{name.keyspace, name.name}, input));
  const KeyspaceSchema* found = input.schema.keyspace(keyspace);
  if (found != nullptr && found->is_virtual) {
    return fail(ErrorCode::kInvalid, "System keyspace '{}' is not user-modifiable", keyspace);
  }
  TETRAD_TRY_VOID(input.schema.check_readable(keyspace_key(keyspace)));
  return keyspace;
}

/// frozen<> is not written on the types of functions; what they take is frozen anyway.
Result<void> check_not_frozen(const ast::CqlType& type, std::string_view what) {
  // frozen<tuple<…>> may be written, as in Cassandra: tuples are always frozen.
  if (!type.frozen || type.kind == ast::CqlType::Kind::kTuple) return {};
  const std::string text = ast::to_string(type);
  return fail(ErrorCode::kInvalid, "{} '{}' cannot be frozen; remove frozen<> modifier from '{}'",
              what, text, text);
}

/// In the order of the arguments.
Result<std::vector<TypePtr>> resolve_types(const std::vector<ast::CqlType>& written,
                                           const KeyspaceSchema& keyspace) {
  std::vector<TypePtr> types;
  for (const ast::CqlType& type : written) {
    TETRAD_TRY(TypePtr resolved, resolve_type(type, keyspace));
    types.push_back(std::move(resolved));
  }
  return types;
}

/// "int, list<text>", as errors name an overload.
std::string joined(std::span<const TypePtr> types) {
  std::string out;
  for (const TypePtr& type : types) {
    out += (out.empty() ? "" : ", ") + type->cql_text_without_frozen();
  }
  return out;
}

/// As the protocol names an argument's type: a user type with its keyspace.
std::string event_text(const DataType& type, bool is_inside) {
  std::string text;
  if (type.kind() == TypeKind::kUdt) {
    text = quote_identifier(type.keyspace()) + "." + quote_identifier(type.name());
    return is_inside ? "frozen<" + text + ">" : text;
  }
  if (!type.references_udt()) {
    return is_inside ? type.cql_text() : type.cql_text_without_frozen();
  }
  for (const TypePtr& part : type.components()) {
    text += (text.empty() ? "" : ", ") + event_text(*part, true);
  }
  const char* name = type.kind() == TypeKind::kList    ? "list"
                     : type.kind() == TypeKind::kSet   ? "set"
                     : type.kind() == TypeKind::kMap   ? "map"
                     : type.kind() == TypeKind::kTuple ? "tuple"
                                                       : "vector";
  // A vector is never shown as frozen.
  if (type.kind() == TypeKind::kVector) text += ", " + std::to_string(type.dimension());
  text = fmt::format("{}<{}>", name, text);
  return is_inside && type.kind() != TypeKind::kVector ? "frozen<" + text + ">" : text;
}

}  // namespace

std::string argument_text(const DataType& type) { return event_text(type, false); }

namespace {

/// The event for clients (native protocol v5, 4.2.6): functions have the types of their arguments.
SchemaChange changed(Kind kind, Target target, const std::string& keyspace, const std::string& name,
                     std::span<const TypePtr> types) {
  SchemaChange out{kind, target, keyspace, name, {}};
  for (const TypePtr& type : types) out.argument_types.push_back(argument_text(*type));
  return out;
}

/// Of the aggregates that are built on a function: "ks.a, ks.b".
std::string aggregates_on(const FunctionSchema& function, const KeyspaceSchema& keyspace) {
  std::string out;
  for (const AggregatePtr& aggregate : keyspace.aggregates) {
    const FunctionPtr state = state_function_of(*aggregate, keyspace);
    const FunctionPtr last = final_function_of(*aggregate, keyspace);
    if ((state && *state == function) || (last && *last == function)) {
      out += (out.empty() ? "" : ", ") + aggregate->qualified_name();
    }
  }
  return out;
}

/// What DROP FUNCTION and DROP AGGREGATE share: which one is meant. Null: none.
template <class Schema, class Statement>
Result<std::shared_ptr<const Schema>> find_dropped(
    const Statement& statement, const std::vector<std::shared_ptr<const Schema>>& all,
    std::span<const TypePtr> types, std::string_view what) {
  const std::string& name = statement.name.name.text;
  std::shared_ptr<const Schema> found;
  for (const auto& one : all) {
    if (one->name != name) continue;
    if (statement.parameters) {
      // With types, exactly that overload; without, only if there is one of the name.
      if (equal_types(one->argument_types, types)) found = one;
    } else if (found) {
      return fail(ErrorCode::kInvalid,
                  "'DROP {0} {1}' matches multiple function definitions; specify the argument "
                  "types by issuing a statement like 'DROP {0} {1} (type, type, ...)'. You can use "
                  "cqlsh 'DESCRIBE {0} {1}' command to find all overloads",
                  what, name);
    } else {
      found = one;
    }
  }
  return found;
}

/// The argument types that DROP names; empty also where it names none.
template <class Statement>
Result<std::vector<TypePtr>> dropped_types(const Statement& statement,
                                           const KeyspaceSchema& keyspace) {
  if (!statement.parameters) return std::vector<TypePtr>();
  for (const ast::CqlType& type : *statement.parameters) {
    TETRAD_TRY_VOID(check_not_frozen(type, "Argument"));
  }
  return resolve_types(*statement.parameters, keyspace);
}

/// A type's text without what does not tell one overload from another.
std::string bare(std::string_view type) {
  constexpr std::string_view kFrozen = "frozen<";
  std::string out;
  while (!type.empty()) {
    if (type.starts_with(kFrozen)) {
      type.remove_prefix(kFrozen.size());
      continue;
    }
    if (type.front() != '>' && type.front() != ' ') out += type.front();
    type.remove_prefix(1);
  }
  return out;
}

/// A plan to drop a function or aggregate that does not read, found by its key in the metadata.
/// Unset: the statement means none such. Errors: kInvalid, it means several.
template <class Schema, class Statement>
Result<std::optional<SchemaPlan>> drop_unreadable(
    const Statement& statement, Target target, const std::string& keyspace,
    const std::vector<std::shared_ptr<const Schema>>& readable, const SchemaSnapshot& schema) {
  const bool is_function = target == Target::kFunction;
  const std::string& name = statement.name.name.text;
  const std::string prefix =
      fmt::format("{}/{}/{}(", is_function ? "function" : "aggregate", keyspace, name);
  std::string written;
  if (statement.parameters) {
    for (const ast::CqlType& type : *statement.parameters)
      written += (written.empty() ? "" : ",") + bare(ast::to_string(type));
    written += ")";
  }
  const std::string* found = nullptr;
  bool is_ambiguous = !statement.parameters && std::ranges::any_of(readable, [&](const auto& one) {
    return one->name == name;
  });
  const auto& objects = schema.unreadable();
  for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix);
       ++at) {
    if (statement.parameters && bare(at->first.substr(prefix.size())) != written) continue;
    is_ambiguous = is_ambiguous || found != nullptr;
    found = &at->first;
  }
  if (found == nullptr) return std::nullopt;
  if (is_ambiguous) {
    return fail(ErrorCode::kInvalid,
                "'DROP {0} {1}' matches several, and not all of them read; specify the argument "
                "types as system_tetrad.unreadable_objects shows them",
                is_function ? "FUNCTION" : "AGGREGATE", name);
  }
  SchemaPlan out;
  out.change.objects.emplace_back(*found, std::nullopt);
  out.answer = SchemaChange{Kind::kDropped, target, keyspace, name, {}};
  return out;
}

/// "ks.name", with the argument types when they were written.
template <class Statement>
std::string dropped_name(const Statement& statement, const std::string& keyspace,
                         std::span<const TypePtr> types) {
  const std::string name = keyspace + "." + statement.name.name.text;
  return statement.parameters ? fmt::format("{}({})", name, joined(types)) : name;
}

/// INITCOND: a constant of the state's type. Evaluated once, and kept as bytes.
Result<std::optional<Bytes>> initial_condition(const std::optional<ast::Term>& term,
                                               const TypePtr& state_type, const PlanInput& input) {
  if (!term) return std::nullopt;
  const std::vector<std::optional<std::string>> no_markers;
  // The pointer owns nothing: the plan's schema outlives this call.
  const PrepareContext context{SchemaPtr(SchemaPtr(), &input.schema), input.keyspace,
                               input.settings, no_markers};
  const TableSchema no_table;
  BindMarkers markers(0);
  ExpressionBuilder builder(context, no_table, markers);
  TETRAD_TRY(const ExpressionPtr value, builder.term(*term, {"(dummy)", state_type, nullptr}));
  base::Arena arena;
  const FunctionEnvironment environment{&input.random, input.now_us / 1000, {}, nullptr};
  EvalContext evaluation{{}, arena, environment, 0, nullptr, {}};
  TETRAD_TRY(const BoundValue bound, value->evaluate(evaluation));
  if (!bound.has_bytes()) return std::nullopt;
  return Bytes(bound.bytes);
}

/// Whether anything in it is no constant: a marker, or a call.
bool has_marker(const RawExpression& raw) {
  return raw.kind == RawExpression::Kind::kMarker || raw.kind == RawExpression::Kind::kFunction ||
         std::ranges::any_of(raw.children, has_marker);
}

/// Errors: kInvalid, a name occurs twice; the text has all of them.
Result<std::vector<std::string>> argument_names_of(const ast::CreateFunction& statement) {
  std::vector<std::string> argument_names;
  std::set<std::string> names;
  bool repeats = false;
  std::string listed;
  for (const ast::FunctionParameter& parameter : statement.parameters) {
    repeats = !names.insert(parameter.name.text).second || repeats;
    listed += (listed.empty() ? "" : ", ") + parameter.name.text;
    argument_names.push_back(parameter.name.text);
  }
  if (repeats) {
    return fail(ErrorCode::kInvalid,
                "Duplicate argument names for given function {} with argument names [{}]",
                statement.name.name.text, listed);
  }
  return argument_names;
}

/// What OR REPLACE may not change: whether the function is called with null, and its return type.
Result<void> check_replacement(const FunctionSchema& before, const FunctionSchema& function) {
  if (before.called_on_null_input != function.called_on_null_input) {
    return fail(
        ErrorCode::kInvalid, "Function '{}' must have {} directive", function.name,
        function.called_on_null_input ? "CALLED ON NULL INPUT" : "RETURNS NULL ON NULL INPUT");
  }
  if (!is_order_compatible(*function.return_type, *before.return_type)) {
    return fail(ErrorCode::kInvalid,
                "Cannot replace function '{}', the new return type {} is not compatible with the "
                "return type {} of existing function",
                function.name, function.return_type->cql_text_without_frozen(),
                before.return_type->cql_text_without_frozen());
  }
  return {};
}

/// SFUNC: takes the state and the arguments, gives the state.
Result<FunctionPtr> checked_state_function(const AggregateSchema& aggregate,
                                           const KeyspaceSchema& keyspace) {
  FunctionPtr state = state_function_of(aggregate, keyspace);
  if (!state) {
    std::vector<TypePtr> types = {aggregate.state_type};
    types.insert(types.end(), aggregate.argument_types.begin(), aggregate.argument_types.end());
    return fail(ErrorCode::kInvalid, "State function {}.{}({}) doesn't exist", aggregate.keyspace,
                aggregate.state_function, joined(types));
  }
  // The result of one call is the state of the next.
  if (*state->return_type != *aggregate.state_type) {
    return fail(ErrorCode::kInvalid,
                "State function {}.{}({}) return type must be the same as the first argument type "
                "- check STYPE, argument and return types",
                aggregate.keyspace, aggregate.state_function, joined(state->argument_types));
  }
  return state;
}

/// FINALFUNC: what it makes of the last state is the aggregate's type.
Result<TypePtr> final_type(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace) {
  const FunctionPtr last = final_function_of(aggregate, keyspace);
  if (!last) {
    return fail(ErrorCode::kInvalid, "Final function {}.{}({}) doesn't exist", aggregate.keyspace,
                aggregate.final_function, joined(std::array{aggregate.state_type}));
  }
  return last->return_type;
}

}  // namespace

Result<SchemaPlan> plan(const ast::CreateFunction& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY(const std::string keyspace_name, keyspace_of_function(statement.name, input));
  if (statement.if_not_exists && statement.or_replace) {
    return fail(ErrorCode::kInvalid, "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives");
  }
  // Before the option, which does not help such a function.
  if (statement.language != "lua") {
    return fail(ErrorCode::kInvalid,
                "Functions in language {} are not supported: this server has no virtual machine "
                "that runs it. Write the body in Lua: LANGUAGE lua AS 'return ...'{}",
                statement.language,
                input.settings.user_functions_enabled
                    ? ""
                    : ", and set the option user_defined_functions_enabled, which is off");
  }
  TETRAD_TRY_VOID(check_user_functions(input.settings.user_functions_enabled));
  FunctionSchema function;
  function.keyspace = keyspace_name;
  function.name = name;
  function.called_on_null_input = statement.called_on_null_input;
  function.language = statement.language;
  function.body = statement.body;
  TETRAD_TRY(function.argument_names, argument_names_of(statement));
  std::vector<ast::CqlType> written;
  for (const ast::FunctionParameter& parameter : statement.parameters) {
    TETRAD_TRY_VOID(check_not_frozen(parameter.type, "Argument"));
    written.push_back(parameter.type);
  }
  TETRAD_TRY_VOID(check_not_frozen(statement.returns, "Return type"));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  if (keyspace == nullptr) {
    return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
  }
  TETRAD_TRY(function.argument_types, resolve_types(written, *keyspace));
  TETRAD_TRY(function.return_type, resolve_type(statement.returns, *keyspace));
  // Compiled, not run: an error of syntax shows here, one of the run with the first call.
  TETRAD_TRY_VOID(ScriptEngine::check(Script{function.name, function.argument_names, function.body,
                                             function.argument_types, function.return_type}));
  // A call could not tell them apart.
  if (keyspace->find_aggregate(name, function.argument_types)) {
    return fail(ErrorCode::kInvalid, "Function '{}' cannot replace an aggregate", name);
  }
  SchemaPlan out;
  TETRAD_TRY_VOID(
      input.schema.check_readable(function_key(keyspace_name, name, function.argument_types)));
  const FunctionPtr before = keyspace->find_function(name, function.argument_types);
  if (before) {
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    if (!statement.or_replace) {
      return fail(ErrorCode::kInvalid, "Function '{}' already exists", name);
    }
    TETRAD_TRY_VOID(check_replacement(*before, function));
  }
  out.change.objects.emplace_back(function_key(keyspace_name, name, function.argument_types),
                                  function_text(function));
  out.answer = changed(before ? Kind::kUpdated : Kind::kCreated, Target::kFunction, keyspace_name,
                       name, function.argument_types);
  return out;
}

// An unreadable function is looked for first, since none of the later checks can see it.
Result<SchemaPlan> plan(const ast::DropFunction& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY(const std::string keyspace_name, keyspace_of_function(statement.name, input));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  std::vector<TypePtr> types;
  FunctionPtr found;
  if (keyspace != nullptr) {
    TETRAD_TRY(auto unreadable, drop_unreadable(statement, Target::kFunction, keyspace_name,
                                                keyspace->functions, input.schema));
    if (unreadable) return std::move(*unreadable);
    TETRAD_TRY(types, dropped_types(statement, *keyspace));
    TETRAD_TRY(found, find_dropped(statement, keyspace->functions, types, "FUNCTION"));
  }
  SchemaPlan out;
  const std::string shown = dropped_name(statement, keyspace_name, types);
  if (!found) {
    if (!statement.if_exists) {
      return fail(ErrorCode::kInvalid, "Function '{}' doesn't exist", shown);
    }
    out.nothing_to_do = true;
    return out;
  }
  const std::string users = aggregates_on(*found, *keyspace);
  if (!users.empty()) {
    return fail(ErrorCode::kInvalid, "Function '{}' is still referenced by aggregates {}", shown,
                users);
  }
  const std::string masked = tables_masked_by(*found, *keyspace);
  if (!masked.empty()) {
    return fail(ErrorCode::kInvalid,
                "Function '{}' is still referenced by column masks in tables {}", shown, masked);
  }
  out.change.objects.emplace_back(function_key(keyspace_name, name, found->argument_types),
                                  std::nullopt);
  out.answer =
      changed(Kind::kDropped, Target::kFunction, keyspace_name, name, found->argument_types);
  return out;
}

Result<SchemaPlan> plan(const ast::CreateAggregate& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY(const std::string keyspace_name, keyspace_of_function(statement.name, input));
  if (statement.if_not_exists && statement.or_replace) {
    return fail(ErrorCode::kInvalid, "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives");
  }
  for (const ast::CqlType& type : statement.parameters) {
    TETRAD_TRY_VOID(check_not_frozen(type, "Argument"));
  }
  TETRAD_TRY_VOID(check_not_frozen(statement.state_type, "State type"));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  if (keyspace == nullptr) {
    return fail(ErrorCode::kConfig, "Keyspace {} doesn't exist", keyspace_name);
  }
  AggregateSchema aggregate;
  aggregate.keyspace = keyspace_name;
  aggregate.name = name;
  aggregate.state_function = statement.state_function.text;
  if (statement.final_function) aggregate.final_function = statement.final_function->text;
  TETRAD_TRY(aggregate.argument_types, resolve_types(statement.parameters, *keyspace));
  TETRAD_TRY(aggregate.state_type, resolve_type(statement.state_type, *keyspace));
  TETRAD_TRY(const FunctionPtr state, checked_state_function(aggregate, *keyspace));
  aggregate.return_type = aggregate.state_type;
  if (statement.final_function) {
    TETRAD_TRY(aggregate.return_type, final_type(aggregate, *keyspace));
  }
  // Kept in the schema as a value: nothing can be bound to it later.
  if (statement.initial_condition && has_marker(raw_of(*statement.initial_condition))) {
    return fail(ErrorCode::kInvalid, "INITCOND must be a constant");
  }
  TETRAD_TRY(aggregate.initial_condition,
             initial_condition(statement.initial_condition, aggregate.state_type, input));
  // The first call would get null, the function would not run, and the state would stay null for
  // ever.
  if (!aggregate.initial_condition && !state->called_on_null_input) {
    return fail(ErrorCode::kInvalid,
                "Cannot create aggregate '{}' without INITCOND because state function {} does not "
                "accept 'null' arguments",
                name, state->qualified_name());
  }
  if (keyspace->find_function(name, aggregate.argument_types)) {
    return fail(ErrorCode::kInvalid, "Aggregate '{}' cannot replace a function", name);
  }
  SchemaPlan out;
  TETRAD_TRY_VOID(
      input.schema.check_readable(aggregate_key(keyspace_name, name, aggregate.argument_types)));
  const AggregatePtr before = keyspace->find_aggregate(name, aggregate.argument_types);
  if (before) {
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    if (!statement.or_replace) {
      return fail(ErrorCode::kInvalid, "Aggregate '{}' already exists", name);
    }
    if (!is_order_compatible(*aggregate.return_type, *before->return_type)) {
      return fail(ErrorCode::kInvalid,
                  "Cannot replace aggregate '{}', the new return type {} isn't compatible with the "
                  "return type {} of existing function",
                  name, aggregate.return_type->cql_text_without_frozen(),
                  before->return_type->cql_text_without_frozen());
    }
  }
  out.change.objects.emplace_back(aggregate_key(keyspace_name, name, aggregate.argument_types),
                                  aggregate_text(aggregate));
  out.answer = changed(before ? Kind::kUpdated : Kind::kCreated, Target::kAggregate, keyspace_name,
                       name, aggregate.argument_types);
  return out;
}

// Nothing refers to an aggregate, so it can always be dropped.
Result<SchemaPlan> plan(const ast::DropAggregate& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY(const std::string keyspace_name, keyspace_of_function(statement.name, input));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  std::vector<TypePtr> types;
  AggregatePtr found;
  if (keyspace != nullptr) {
    TETRAD_TRY(auto unreadable, drop_unreadable(statement, Target::kAggregate, keyspace_name,
                                                keyspace->aggregates, input.schema));
    if (unreadable) return std::move(*unreadable);
    TETRAD_TRY(types, dropped_types(statement, *keyspace));
    TETRAD_TRY(found, find_dropped(statement, keyspace->aggregates, types, "AGGREGATE"));
  }
  SchemaPlan out;
  if (!found) {
    if (!statement.if_exists) {
      return fail(ErrorCode::kInvalid, "Aggregate '{}' doesn't exist",
                  dropped_name(statement, keyspace_name, types));
    }
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(aggregate_key(keyspace_name, name, found->argument_types),
                                  std::nullopt);
  out.answer =
      changed(Kind::kDropped, Target::kAggregate, keyspace_name, name, found->argument_types);
  return out;
}

}  // namespace tetrad::cql
