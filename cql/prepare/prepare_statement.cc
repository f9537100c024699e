// SPDX-License-Identifier: Apache-2.0
// Which preparer a statement goes to, and what all prepared statements have in common: a bound on
// the metadata of their markers, their size, and their name in the audit log.
#include "cql/prepare/metadata_size.h"
#include "cql/prepare/prepare_modify.h"
#include "cql/prepare/prepare_roles.h"
#include "cql/prepare/prepare_schema.h"
#include "cql/prepare/prepare_select.h"
#include "cql/prepare/prepared_explain.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/prepare/schema_plan.h"
#include "cql/schema/schema_text.h"

namespace tetrad::cql {

namespace {

Result<StatementPtr> prepare_by_kind(const ast::Statement& statement,
                                     const PrepareContext& context) {
  if (const auto* select = std::get_if<ast::Select>(&statement)) {
    return prepare_select(*select, context);
  }
  if (const auto* explain = std::get_if<ast::Explain>(&statement)) {
    TETRAD_TRY(StatementPtr select, prepare_select(explain->select, context));
    return make_explain(std::static_pointer_cast<const SelectStatement>(std::move(select)));
  }
  if (const auto* insert = std::get_if<ast::Insert>(&statement)) {
    return prepare_insert(*insert, context);
  }
  if (const auto* insert = std::get_if<ast::InsertJson>(&statement)) {
    return prepare_insert_json(*insert, context);
  }
  if (const auto* update = std::get_if<ast::Update>(&statement)) {
    return prepare_update(*update, context);
  }
  if (const auto* remove = std::get_if<ast::Delete>(&statement)) {
    return prepare_delete(*remove, context);
  }
  if (const auto* batch = std::get_if<ast::Batch>(&statement)) {
    return prepare_batch(*batch, context);
  }
  if (is_role_statement(statement)) return prepare_role_statement(statement, context);
  return prepare_schema_statement(statement, context);
}

}  // namespace

Result<StatementPtr> prepare_statement(const ast::Statement& statement,
                                       const PrepareContext& context) {
  TETRAD_TRY(StatementPtr prepared, prepare_by_kind(statement, context));
  TETRAD_TRY_VOID(check_metadata_size(prepared->bind_variables()));
  Statement& made = const_cast<Statement&>(*prepared);  // nobody else has it yet
  made.set_token_count(context.token_count);
  made.set_subject(subject_of(statement, context.keyspace));
  return prepared;
}

// EXECUTE on each overload: resources of functions have the types of their arguments.
void UsedFunctions::add_required(RequiredAccess& out) const {
  const auto add = [&out](const auto& function) {
    std::vector<std::string> types;
    for (const TypePtr& type : function->argument_types) types.push_back(argument_text(*type));
    out.add(Permission::kExecute, function_resource(function->keyspace, function->name, types));
  };
  for (const AggregatePtr& aggregate : aggregates_) add(aggregate);
  for (const FunctionPtr& function : functions_) add(function);
}

// Compared by value: a function that was replaced by an equal one is the same.
bool UsedFunctions::are_current(const SchemaSnapshot& schema) const {
  for (const FunctionPtr& function : functions_) {
    const KeyspaceSchema* keyspace = schema.keyspace(function->keyspace);
    const FunctionPtr now = keyspace == nullptr
                                ? nullptr
                                : keyspace->find_function(function->name, function->argument_types);
    if (!now || *now != *function) return false;
  }
  for (const AggregatePtr& aggregate : aggregates_) {
    const KeyspaceSchema* keyspace = schema.keyspace(aggregate->keyspace);
    const AggregatePtr now =
        keyspace == nullptr ? nullptr
                            : keyspace->find_aggregate(aggregate->name, aggregate->argument_types);
    if (!now || *now != *aggregate) return false;
  }
  return true;
}

// The short name of system_tetrad, unless a keyspace of users has it.
std::string keyspace_named(const SchemaSnapshot& schema, const std::string& name) {
  return name == "tetrad" && schema.keyspace(name) == nullptr ? "system_tetrad" : name;
}

// Errors: kInvalid, Cassandra's texts. What is there but does not read gets its own error: a client
// must not take it for dropped.
Result<TablePtr> find_table(const ast::QualifiedName& name, const PrepareContext& context) {
  const std::string keyspace =
      keyspace_named(*context.schema, name.keyspace ? name.keyspace->text : context.keyspace);
  if (keyspace.empty()) {
    return fail(ErrorCode::kInvalid,
                "No keyspace has been specified. USE a keyspace, or explicitly specify "
                "keyspace.tablename");
  }
  if (context.schema->keyspace(keyspace) == nullptr) {
    TETRAD_TRY_VOID(context.schema->check_readable(keyspace_key(keyspace)));
    return fail(ErrorCode::kInvalid, "keyspace {} does not exist", keyspace);
  }
  TablePtr table = context.schema->table(keyspace, name.name.text);
  if (!table) {
    TETRAD_TRY_VOID(context.schema->check_readable(table_key(keyspace, name.name.text)));
    return fail(ErrorCode::kInvalid, "table {} does not exist", name.name.text);
  }
  return table;
}

}  // namespace tetrad::cql
