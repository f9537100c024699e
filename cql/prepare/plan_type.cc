// SPDX-License-Identifier: Apache-2.0
// User types: CREATE, ALTER, DROP; and the types that statements of schema name. plan_keyspace.cc says
// what a plan is.
#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_builder.h"
#include "cql/prepare/schema_plan.h"
#include "cql/prepare/table_checks.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"
#include "cql/types/type_size.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;
using Target = SchemaChange::Target;

/// The guardrail on the fields of a user type.
Result<void> check_fields(const std::string& name, size_t count, const PlanInput& input) {
  return check_threshold(
      input.settings.guardrails.fields_per_udt, count, "fields_per_udt", input.warnings,
      [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "User types cannot have more than {} columns, but {} provided for "
                           "user type {}.",
                           limit, count, name)
                     : fmt::format(
                           "The user type {} has {} columns, this exceeds the warning threshold of "
                           "{}.",
                           name, count, limit);
      });
}

/// Errors: kSyntax, the type names a class that does not exist.
Result<void> check_classes(const ast::CqlType& type) {
  if (type.kind == ast::CqlType::Kind::kCustom) {
    TETRAD_TRY([[maybe_unused]] const TypePtr found, type_of_class(type));
  }
  for (const ast::CqlType& parameter : type.parameters) {
    TETRAD_TRY_VOID(check_classes(parameter));
  }
  return {};
}

/// Errors: kInvalid, a user's type is of another keyspace.
Result<void> check_keyspaces(const ast::CqlType& type, std::string_view keyspace) {
  if (type.kind == ast::CqlType::Kind::kUser && type.name.keyspace &&
      type.name.keyspace->text != keyspace) {
    return fail(ErrorCode::kInvalid,
                "Statement on keyspace {} cannot refer to a user type in keyspace {}; user types "
                "can only be used in the keyspace they are defined in",
                keyspace, type.name.keyspace->text);
  }
  for (const ast::CqlType& parameter : type.parameters) {
    TETRAD_TRY_VOID(check_keyspaces(parameter, keyspace));
  }
  return {};
}

}  // namespace

// First what Cassandra finds while it parses (classes), then what it finds in the schema.
Result<TypePtr> resolve_type(const ast::CqlType& type, const KeyspaceSchema& keyspace) {
  TETRAD_TRY_VOID(check_classes(type));
  TETRAD_TRY_VOID(check_keyspaces(type, keyspace.name));
  const UdtResolver resolve = [&keyspace](std::string_view, std::string_view name) -> TypePtr {
    const auto found = keyspace.types.find(std::string(name));
    return found == keyspace.types.end() ? nullptr : found->second;
  };
  auto out = parse_type(ast::to_string(ast::in_keyspace(type, keyspace.name, true)), resolve);
  if (!out && type.kind == ast::CqlType::Kind::kUser &&
      out.error().message.starts_with("Unknown type")) {
    return fail(ErrorCode::kInvalid, "Unknown type {}.{}", keyspace.name, type.name.name.text);
  }
  if (!out && type.kind != ast::CqlType::Kind::kUser) {  // somewhere inside
    const std::string& message = out.error().message;
    constexpr std::string_view kUnknown = "Unknown type ";
    if (message.starts_with(kUnknown) && message.find('.') == std::string::npos) {
      return fail(ErrorCode::kInvalid, "{}{}.{}", kUnknown, keyspace.name,
                  message.substr(kUnknown.size()));
    }
  }
  // A type whose text reads as another type would become that one with the next snapshot.
  if (out) {  // what is kept is its text
    const auto again = parse_type((*out)->cql_text(), resolve);
    if (!again || **again != **out)
      return fail(ErrorCode::kInvalid, "Type {} has no form that can be kept",
                  ast::to_string(type));
  }
  return out;
}

// Fields are resolved in order, so a field may be of a type that exists, and never of the type
// itself.
Result<SchemaPlan> plan(const ast::CreateType& statement, const PlanInput& input) {
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.name, input));
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
  SchemaPlan out;
  if (keyspace->types.contains(name)) {
    if (!statement.if_not_exists) {
      return fail(ErrorCode::kInvalid, "A user type with name '{}' already exists", name);
    }
    out.nothing_to_do = true;
    return out;
  }
  TETRAD_TRY_VOID(input.schema.check_readable(type_key(keyspace_name, name)));
  std::vector<std::string> field_names;
  std::vector<TypePtr> field_types;
  for (const ast::FieldDefinition& field : statement.fields) {
    if (std::find(field_names.begin(), field_names.end(), field.name.text) != field_names.end()) {
      return fail(ErrorCode::kInvalid, "Duplicate field name '{}' in type '{}'", field.name.text,
                  name);
    }
    if (field.type.kind == ast::CqlType::Kind::kUser && !field.type.frozen) {  // known or not
      return fail(ErrorCode::kInvalid, "A user type cannot contain non-frozen UDTs");
    }
    TETRAD_TRY(TypePtr type, resolve_type(field.type, *keyspace));
    if (type->references_counter())
      return fail(ErrorCode::kInvalid, "A user type cannot contain counters");
    if (type->kind() == TypeKind::kUdt && type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid, "A user type cannot contain non-frozen UDTs");
    }
    field_names.push_back(field.name.text);
    field_types.push_back(std::move(type));
  }
  TETRAD_TRY_VOID(check_fields(name, field_names.size(), input));
  for (size_t i = 0; i < field_names.size(); ++i) {
    TETRAD_TRY_VOID(
        check_vectors(input.settings.guardrails, *field_types[i], field_names[i], input.warnings));
  }
  const TypePtr type =
      make_udt(keyspace_name, name, std::move(field_names), std::move(field_types), false);
  TETRAD_TRY_VOID(check_type_size(*type));
  out.change.objects.emplace_back(type_key(keyspace_name, name), type_text(*type));
  out.answer = SchemaChange{Kind::kCreated, Target::kType, keyspace_name, name, {}};
  return out;
}

namespace {

/// ALTER TYPE ... ADD. False: there is such a field, and IF NOT EXISTS allows it.
Result<bool> add_field(const ast::AddField& add, const DataType& old,
                       const KeyspaceSchema& keyspace, const PlanInput& input,
                       std::vector<std::string>& names, std::vector<TypePtr>& types) {
  const std::string& field = add.field.name.text;
  if (add.field.type.kind == ast::CqlType::Kind::kUser && !add.field.type.frozen) {
    return fail(ErrorCode::kInvalid, "A user type cannot contain non-frozen UDTs");
  }
  const std::string& name = old.name();
  if (old.field_index(field)) {
    if (add.if_not_exists) return false;
    return fail(ErrorCode::kInvalid,
                "Cannot add field {} to type {}: a field with name {} already exists", field,
                shown_name(keyspace.name, name), field);
  }
  TETRAD_TRY(TypePtr type, resolve_type(add.field.type, keyspace));
  if (type->references_counter())
    return fail(ErrorCode::kInvalid, "A user type cannot contain counters");
  if (type->references_udt(keyspace.name, name)) {
    return fail(ErrorCode::kInvalid,
                "Cannot add new field {} of type {} to user type {} as it would create a "
                "circular reference",
                field, shown_type(*type), shown_name(keyspace.name, name));
  }
  // The serialized key would become another, and rows would not be found.
  std::string keyed_by_it;
  for (const bool views : {false, true}) {  // as Cassandra names them
    for (const auto& [table_name, table] : keyspace.tables) {
      const bool is_key = std::ranges::any_of(table->partition_key(), [&](const auto& column) {
        return column.type->references_udt(keyspace.name, name);
      });
      if (is_key && table->view.has_value() == views)
        keyed_by_it += (keyed_by_it.empty() ? "" : ", ") + shown_name(keyspace.name, table_name);
    }
  }
  if (!keyed_by_it.empty()) {
    return fail(ErrorCode::kInvalid,
                "Cannot add new field {} of type {} to user type {} as the type is being used in "
                "partition key by the following tables: {}",
                field, shown_type(*type), shown_name(keyspace.name, name), keyed_by_it);
  }
  TETRAD_TRY_VOID(check_fields(name, names.size() + 1, input));
  TETRAD_TRY_VOID(check_vectors(input.settings.guardrails, *type, field, input.warnings));
  names.push_back(field);
  types.push_back(std::move(type));
  return true;
}

/// ALTER TYPE ... RENAME.
Result<void> rename_fields(const ast::RenameFields& rename, const DataType& old,
                           std::vector<std::string>& names) {
  for (const auto& [from, to] : rename.renames) {
    const auto found = old.field_index(from.text);  // each as the fields were before all
    if (!found) {
      if (rename.if_exists) continue;
      return fail(ErrorCode::kInvalid, "Unkown field {} in user type {}", from.text,
                  shown_name(old.keyspace(), old.name()));
    }
    names[*found] = to.text;
  }
  std::set<std::string> seen;
  for (const std::string& field : names) {
    if (!seen.insert(field).second) {
      return fail(ErrorCode::kInvalid, "Duplicate field name {} in type {}", field, old.keyspace());
    }
  }
  return {};
}

/// A field that takes the name of another: a condition of a view that names it would read as well,
/// and mean another field.
Result<void> check_names_in_views(const ast::RenameFields& rename, const DataType& old,
                                  const KeyspaceSchema& keyspace, const SchemaSnapshot& schema) {
  const bool takes_name = std::ranges::any_of(rename.renames, [&](const auto& names) {
    return names.first.text != names.second.text && old.field_index(names.second.text).has_value();
  });
  if (!takes_name) return {};
  TETRAD_TRY(const std::string view, view_with_condition(schema, keyspace));
  if (view.empty()) return {};
  return fail(ErrorCode::kInvalid,
              "not supported yet: a field that takes the name of another while materialized view "
              "{}.{} has conditions",
              keyspace.name, view);
}

}  // namespace

// Only the text of the type changes. Values keep their bytes: a stored value has as many fields as
// the type had when it was written, and the further ones read as null (split_tuple).
Result<SchemaPlan> plan(const ast::AlterType& statement, const PlanInput& input) {
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.name, input));
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  SchemaPlan out;
  if (keyspace == nullptr || !keyspace->types.contains(name)) {
    TETRAD_TRY_VOID(input.schema.check_readable(type_key(keyspace_name, name)));
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Type {}.{} doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  const TypePtr& old = keyspace->types.at(name);
  std::vector<std::string> names(old->field_names().begin(), old->field_names().end());
  std::vector<TypePtr> types(old->components().begin(), old->components().end());
  if (const auto* add = std::get_if<ast::AddField>(&statement.action)) {
    TETRAD_TRY(const bool added, add_field(*add, *old, *keyspace, input, names, types));
    if (!added) {
      out.nothing_to_do = true;
      return out;
    }
  } else if (const auto* rename = std::get_if<ast::RenameFields>(&statement.action)) {
    TETRAD_TRY_VOID(rename_fields(*rename, *old, names));
    TETRAD_TRY_VOID(check_names_in_views(*rename, *old, *keyspace, input.schema));
  } else {
    return fail(ErrorCode::kInvalid, "Altering field types is no longer supported");
  }
  const TypePtr type = make_udt(keyspace_name, name, std::move(names), std::move(types), false);
  TETRAD_TRY_VOID(check_type_size(*type));
  // A field that is renamed to itself, or a rename of fields that are not there, is no change.
  if (type_text(*type) == type_text(*keyspace->types.at(name))) {
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(type_key(keyspace_name, name), type_text(*type));
  out.answer = SchemaChange{Kind::kUpdated, Target::kType, keyspace_name, name, {}};
  return out;
}

// Refused while anything uses the type, in Cassandra's order: functions, user types, tables.
Result<SchemaPlan> plan(const ast::DropType& statement, const PlanInput& input) {
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.name, input));
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  SchemaPlan out;
  if (input.schema.unreadable(type_key(keyspace_name, name)) != nullptr) {
    out.change.objects.emplace_back(type_key(keyspace_name, name), std::nullopt);
    out.answer = SchemaChange{Kind::kDropped, Target::kType, keyspace_name, name, {}};
    return out;
  }
  if (keyspace == nullptr || !keyspace->types.contains(name)) {
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Type '{}.{}' doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  std::string users;
  const auto uses_type = [&](const TypePtr& type) {
    return type->references_udt(keyspace_name, name);
  };
  for (const FunctionPtr& function : keyspace->functions) {
    if (uses_type(function->return_type) ||
        std::ranges::any_of(function->argument_types, uses_type)) {
      users += (users.empty() ? "" : ", ") + function->qualified_name();
    }
  }
  if (!users.empty()) {
    return fail(ErrorCode::kInvalid,
                "Cannot drop user type '{}.{}' as it is still used by functions {}", keyspace_name,
                name, users);
  }
  for (const auto& [other_name, other] : keyspace->types) {
    if (other_name == name) continue;
    const bool uses =
        std::any_of(other->components().begin(), other->components().end(),
                    [&](const TypePtr& type) { return type->references_udt(keyspace_name, name); });
    if (uses) users += (users.empty() ? "" : ", ") + other_name;
  }
  if (!users.empty()) {
    return fail(ErrorCode::kInvalid,
                "Cannot drop user type '{}.{}' as it is still used by user types {}", keyspace_name,
                name, users);
  }
  for (const auto& [table_name, table] : keyspace->tables) {
    if (table->view) continue;  // its base has its columns, and is named
    const bool uses = std::any_of(table->columns().begin(), table->columns().end(),
                                  [&](const ColumnSchema& column) {
                                    return column.type->references_udt(keyspace_name, name);
                                  });
    if (uses) users += (users.empty() ? "" : ", ") + table_name;
  }
  if (!users.empty()) {
    return fail(ErrorCode::kInvalid,
                "Cannot drop user type '{}.{}' as it is still used by tables {}", keyspace_name,
                name, users);
  }
  out.change.objects.emplace_back(type_key(keyspace_name, name), std::nullopt);
  out.answer = SchemaChange{Kind::kDropped, Target::kType, keyspace_name, name, {}};
  return out;
}

}  // namespace tetrad::cql
