// SPDX-License-Identifier: Apache-2.0
// Keyspaces and types: CREATE, ALTER, DROP.
//
// A plan (SchemaPlan) is what a statement proposes to the metadata group: texts of objects that are
// put or removed, tables that get or lose tablets, and the event for clients. Planning has no
// effect. execute() of prepare_schema.cc proposes the plan with the version of the schema that it
// was made from; if another change was first, the statement is planned anew from the new schema.
//
// Checks stand in Cassandra's order. nothing_to_do: IF [NOT] EXISTS, or no difference.
#include <algorithm>
#include <set>

#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_builder.h"
#include "cql/prepare/schema_plan.h"
#include "cql/prepare/table_checks.h"
#include "cql/prepare/table_properties.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"
#include "cql/types/type_size.h"
#include "replication/meta/placed_in.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;
using Target = SchemaChange::Target;

/// Those that NetworkTopologyStrategy may name: of all nodes that have not left the cluster, also
/// of nodes that are down.
std::set<std::string> data_centers_of(const replication::MetaState& meta) {
  std::set<std::string> out;
  for (const auto& [host, node] : meta.nodes) {
    if (node.state != replication::NodeState::kRemoved) out.insert(node.data_center);
  }
  return out;
}

/// Replica sets are managed; another factor is kept and shown, and the client gets one warning.
void warn_about_factor(const std::map<std::string, std::string>& replication,
                       const PlanInput& input) {
  // By data centre; SimpleStrategy's factor names none and is compared with the first.
  std::map<std::string, size_t> nodes;
  for (const auto& [host, node] : input.meta.nodes) {
    if (node.state != replication::NodeState::kRemoved) ++nodes[node.data_center];
  }
  for (const auto& [option, factor] : replication) {
    if (option == "class" || factor == "0") continue;
    const size_t in_data_center = nodes.contains(option) ? nodes[option]
                                  : nodes.empty()        ? 1
                                                         : nodes.begin()->second;
    const size_t kept = std::min<size_t>(4, in_data_center);
    if (factor == std::to_string(kept) || factor == "4") continue;
    input.warnings.push_back(
        fmt::format("Tetrad manages replica sets by itself: every row has up to four replicas, {} "
                    "with the nodes there "
                    "are now; the replication factor {} is kept and shown but changes nothing",
                    kept, factor));
    return;
  }
}

/// Where the keyspace's rows are: in the data centres that NetworkTopologyStrategy names with a
/// factor, else in all of the cluster.
// Of all that `replication` says only the data centres have an effect: replica sets have up to four
// members whatever the factor is.
void place(const std::string& name, const std::map<std::string, std::string>& replication,
           const PlanInput& input, replication::SchemaChange& change) {
  if (input.meta.format < replication::kFormatPlacement) return;
  std::set<std::string> data_centers;
  const auto strategy = replication.find("class");
  if (strategy != replication.end() && strategy->second.ends_with("NetworkTopologyStrategy"))
    for (const auto& [option, factor] : replication)
      if (option != "class" && std::strtoll(factor.c_str(), nullptr, 10) != 0)
        data_centers.insert(option);
  const std::string key = replication::placement_key(name);
  if (!data_centers.empty()) {
    change.objects.emplace_back(key, replication::placement_text(data_centers));
  } else if (input.meta.schema_objects.contains(key)) {
    change.objects.emplace_back(key, std::nullopt);
  }
}

/// How many keyspaces users have made: what the guardrail `keyspaces` limits.
size_t count_keyspaces(const SchemaSnapshot& schema) {
  size_t count = 0;
  for (const auto& [name, keyspace] : schema.keyspaces()) count += is_system(*keyspace) ? 0 : 1;
  return count;
}

/// The guardrails on the strategy and on each data centre's factor. What may be written at all has
/// been checked before (read_keyspace_properties).
Result<void> check_replication(const std::string& keyspace,
                               const std::map<std::string, std::string>& replication,
                               const PlanInput& input) {
  const Guardrails& guardrails = input.settings.guardrails;
  const auto found = replication.find("class");
  TETRAD_TRY_VOID(check_enabled(guardrails.simplestrategy || found == replication.end() ||
                                    !found->second.ends_with("SimpleStrategy"),
                                "simplestrategy", "SimpleStrategy"));
  for (const auto& [name, value] : replication) {
    if (name == "class") continue;
    const auto factor = static_cast<uint64_t>(std::strtoll(value.c_str(), nullptr, 10));
    const auto text = [&](const char* side) {
      return [&, side](uint64_t limit, bool fails) {
        return fmt::format(
            "The keyspace {} has a replication factor of {}, {} the {} threshold of {}.", keyspace,
            factor, side, fails ? "failure" : "warning", limit);
      };
    };
    TETRAD_TRY_VOID(check_minimum(guardrails.minimum_replication_factor, factor,
                                  "minimum_replication_factor", input.warnings, text("below")));
    TETRAD_TRY_VOID(check_threshold(guardrails.maximum_replication_factor, factor,
                                    "maximum_replication_factor", input.warnings, text("above")));
  }
  return {};
}

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

}  // namespace

// Statements of schema and TRUNCATE; the others have find_table() of prepare_statement.cc.
Result<std::string> keyspace_of(const ast::QualifiedName& name, const PlanInput& input) {
  if (name.keyspace) return name.keyspace->text;
  if (input.keyspace.empty()) {
    return fail(
        ErrorCode::kInvalid,
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
  }
  return input.keyspace;
}

Result<void> check_modifiable(const SchemaSnapshot& schema, const std::string& keyspace) {
  const KeyspaceSchema* found = schema.keyspace(keyspace);
  if (found != nullptr && is_system(*found)) {
    return fail(ErrorCode::kUnauthorized, "{} keyspace is not user-modifiable.", keyspace);
  }
  return schema.check_readable(keyspace_key(keyspace));
}

// From the metadata and not from the schema: a table whose text does not read has tablets, too, and
// they must go with it.
void drop_tables(std::string_view keyspace, std::optional<std::string_view> table,
                 const replication::MetaState& meta, replication::SchemaChange& change) {
  for (const auto& [id, info] : meta.tables) {
    if (info->keyspace == keyspace && (!table || info->name == *table))
      change.dropped_tables.push_back(id);
  }
}

namespace {

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

// In the C locale std::isalnum takes ASCII only, as Cassandra does.
bool is_valid_object_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Without replication every data centre gets 4, and with a throughput alone SimpleStrategy: what
// DESCRIBE shows, since placement does not follow factors (warn_about_factor).
Result<SchemaPlan> plan(const ast::CreateKeyspace& statement, const PlanInput& input) {
  const std::string& name = statement.name.text;
  if (!is_valid_object_name(name)) {
    return fail(ErrorCode::kInvalid,
                "Keyspace name must not be empty and must contain alphanumeric or underscore "
                "characters only (got \"{}\")",
                name);
  }
  if (name.size() > 48) {
    return fail(
        ErrorCode::kInvalid,
        "Keyspace name must not be more than 48 characters long (got {} characters for \"{}\")",
        name.size(), name);
  }
  const size_t keyspaces = count_keyspaces(input.schema) + 1;
  TETRAD_TRY_VOID(check_threshold(
      input.settings.guardrails.keyspaces, keyspaces, "keyspaces", input.warnings,
      [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Cannot have more than {} keyspaces, aborting the creation of "
                           "keyspace {}",
                           limit, name)
                     : fmt::format(
                           "Creating keyspace {}, current number of keyspaces {} exceeds "
                           "warning threshold of {}.",
                           name, keyspaces, limit);
      }));
  SchemaPlan out;
  if (const KeyspaceSchema* found = input.schema.keyspace(name); found != nullptr) {
    if (is_system(*found)) {
      return fail(ErrorCode::kInvalid, "System keyspace '{}' is not user-modifiable", name);
    }
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    return std::unexpected(Error(ErrorCode::kAlreadyExists,
                                 fmt::format("Cannot add existing keyspace \"{}\"", name),
                                 base::AlreadyExistsDetail{name, ""}));
  }
  // The name is taken where the object does not read: creating it anew would overwrite it.
  TETRAD_TRY_VOID(input.schema.check_readable(keyspace_key(name)));
  const std::set<std::string> data_centers = data_centers_of(input.meta);
  TETRAD_TRY(
      const KeyspaceProperties given,
      read_keyspace_properties(name, with_payload(statement.properties, input.throughput_payload),
                               data_centers, nullptr));
  KeyspaceSchema keyspace;
  keyspace.name = name;
  keyspace.durable_writes = given.durable_writes.value_or(true);
  keyspace.throughput = given.throughput.value_or(ThroughputSetting());
  if (given.replication) {
    TETRAD_TRY_VOID(check_replication(name, *given.replication, input));
    keyspace.replication = *given.replication;
    warn_about_factor(keyspace.replication, input);
  } else if (given.throughput) {
    keyspace.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                            {"replication_factor", "4"}};
  } else {
    keyspace.replication["class"] = "org.apache.cassandra.locator.NetworkTopologyStrategy";
    for (const auto& data_center : data_centers) keyspace.replication[data_center] = "4";
  }
  out.change.objects.emplace_back(keyspace_key(name), keyspace_text(keyspace));
  place(name, keyspace.replication, input, out.change);
  out.answer = SchemaChange{Kind::kCreated, Target::kKeyspace, name, "", {}};
  return out;
}

// What is not named stays. place() writes in the same change which data centres hold the tables.
Result<SchemaPlan> plan(const ast::AlterKeyspace& statement, const PlanInput& input) {
  const std::string& name = statement.name.text;
  TETRAD_TRY_VOID(check_modifiable(input.schema, name));
  const KeyspaceSchema* found = input.schema.keyspace(name);
  SchemaPlan out;
  if (found == nullptr) {
    if (!statement.if_exists) return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", name);
    out.nothing_to_do = true;
    return out;
  }
  TETRAD_TRY(
      const KeyspaceProperties given,
      read_keyspace_properties(name, with_payload(statement.properties, input.throughput_payload),
                               data_centers_of(input.meta), &found->replication));
  if (given.replication) TETRAD_TRY_VOID(check_replication(name, *given.replication, input));
  KeyspaceSchema keyspace;
  keyspace.name = name;
  keyspace.replication = given.replication.value_or(found->replication);
  keyspace.durable_writes = given.durable_writes.value_or(found->durable_writes);
  keyspace.throughput = given.throughput.value_or(found->throughput);
  if (given.replication) warn_about_factor(keyspace.replication, input);
  if (keyspace_text(keyspace) == keyspace_text(*found)) {
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(keyspace_key(name), keyspace_text(keyspace));
  place(name, keyspace.replication, input, out.change);
  // Tables without a throughput of their own share the keyspace's.
  if (keyspace.throughput.ru_per_s() != found->throughput.ru_per_s()) {
    for (const auto& [table_name, table] : found->tables)
      if (table->options.throughput.ru_per_s() == 0)
        out.change.altered_tables.push_back(altered_table(*table, keyspace));
  }
  out.answer = SchemaChange{Kind::kUpdated, Target::kKeyspace, name, "", {}};
  return out;
}

Result<SchemaPlan> plan(const ast::DropKeyspace& statement, const PlanInput& input) {
  TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.drop_keyspace, "drop_keyspace_enabled",
                                "DROP KEYSPACE functionality"));
  const std::string& name = statement.name.text;
  // A keyspace that does not read can be dropped, too; what it is cannot be checked.
  if (input.schema.unreadable(keyspace_key(name)) == nullptr) {
    TETRAD_TRY_VOID(check_modifiable(input.schema, name));
    if (input.schema.keyspace(name) == nullptr) {
      if (!statement.if_exists)
        return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", name);
      SchemaPlan nothing;
      nothing.nothing_to_do = true;
      return nothing;
    }
  }
  SchemaPlan out;
  // All objects of the keyspace, readable or not: keys are kind/keyspace/name.
  const std::string inside = "/" + name + "/";
  for (const auto& [key, text] : input.meta.schema_objects) {
    const size_t slash = key.find('/');
    if (key == keyspace_key(name) || (is_of_keyspace(key) && slash != std::string::npos &&
                                      key.compare(slash, inside.size(), inside) == 0)) {
      out.change.objects.emplace_back(key, std::nullopt);
    }
  }
  drop_tables(name, std::nullopt, input.meta, out.change);
  out.answer = SchemaChange{Kind::kDropped, Target::kKeyspace, name, "", {}};
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
