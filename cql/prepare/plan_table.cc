// SPDX-License-Identifier: Apache-2.0
// Tables: CREATE, ALTER, DROP, TRUNCATE.
#include <algorithm>
#include <set>

#include "cql/prepare/compact_storage.h"
#include "cql/prepare/schema_plan.h"
#include "cql/prepare/table_properties.h"
#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;
using Target = SchemaChange::Target;

SchemaChange table_changed(Kind kind, const std::string& keyspace, const std::string& table) {
  return SchemaChange{kind, Target::kTable, keyspace, table, {}};
}

Result<void> check_key_column(const std::string& keyspace, const std::string& name,
                              const DataType& type) {
  if (type.is_counter()) {
    return fail(ErrorCode::kInvalid, "counter type is not supported for PRIMARY KEY column '{}'",
                name);
  }
  if (type.references_duration()) {
    return fail(ErrorCode::kInvalid, "duration type is not supported for PRIMARY KEY column '{}'",
                name);
  }
  if (!type.is_multi_cell()) return {};
  if (type.is_collection()) {
    return fail(ErrorCode::kInvalid,
                "Invalid non-frozen collection type {} for PRIMARY KEY column '{}'",
                type.cql_text(), name);
  }
  return fail(ErrorCode::kInvalid,
              "Invalid non-frozen user-defined type \"{}.{}\" for PRIMARY KEY column '{}'",
              keyspace, type.cql_text(), name);
}

Result<void> check_duplicates(const std::vector<ast::ClusteringOrder>& orders,
                              const std::string& table) {
  std::set<std::string> seen;
  for (const auto& order : orders) {
    if (seen.insert(order.column.text).second) continue;
    return fail(ErrorCode::kInvalid,
                "Duplicate column '{}' in CLUSTERING ORDER BY clause for table '{}'",
                order.column.text, table);
  }
  return {};
}

/// The directions of the clustering columns, ascending where nothing is said.
Result<std::vector<bool>> clustering_directions(const std::vector<ast::ClusteringOrder>& orders,
                                                const std::vector<ast::Identifier>& clustering) {
  std::vector<bool> descending(clustering.size(), false);
  if (orders.empty()) return descending;
  std::string foreign;
  for (const auto& order : orders) {
    const bool known = std::any_of(clustering.begin(), clustering.end(), [&](const auto& column) {
      return column.text == order.column.text;
    });
    if (!known) foreign += (foreign.empty() ? "" : ", ") + order.column.text;
  }
  if (!foreign.empty()) {
    return fail(ErrorCode::kInvalid,
                "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] "
                "are not clustering columns",
                foreign);
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    // What is written must be a prefix of the clustering columns, in their order.
    if (i < clustering.size() && clustering[i].text == orders[i].column.text) {
      descending[i] = orders[i].descending;
      continue;
    }
    const bool comes_later = std::any_of(
        orders.begin() + static_cast<std::ptrdiff_t>(i), orders.end(), [&](const auto& order) {
          return i < clustering.size() && order.column.text == clustering[i].text;
        });
    if (comes_later) {
      return fail(ErrorCode::kInvalid,
                  "The order of columns in the CLUSTERING ORDER directive must match that of the "
                  "clustering columns ({} "
                  "must appear before {})",
                  clustering[i].text, orders[i].column.text);
    }
    return fail(ErrorCode::kInvalid, "Missing CLUSTERING ORDER for column {}",
                i < clustering.size() ? clustering[i].text : orders[i].column.text);
  }
  return descending;
}

Result<const KeyspaceSchema*> keyspace_for_table(const ast::QualifiedName& name,
                                                 const PlanInput& input,
                                                 std::string& keyspace_name) {
  TETRAD_TRY(keyspace_name, keyspace_of(name, input));
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  return input.schema.keyspace(keyspace_name);
}

/// A user type that is not frozen cannot hold what is not.
Result<void> check_nesting(const DataType& type) {
  if (type.kind() != TypeKind::kUdt || !type.is_multi_cell()) return {};
  for (const TypePtr& field : type.components()) {
    if (field->is_multi_cell()) {
      return fail(ErrorCode::kInvalid,
                  "Non-frozen UDTs with nested non-frozen collections are not supported");
    }
  }
  return {};
}

TablePtr find_table(const KeyspaceSchema* keyspace, const std::string& name) {
  if (keyspace == nullptr) return nullptr;
  const auto found = keyspace->tables.find(name);
  return found == keyspace->tables.end() ? nullptr : found->second;
}

Result<std::vector<ColumnSchema>> columns_of(const ast::CreateTable& statement,
                                             const KeyspaceSchema& keyspace) {
  const std::string& table = statement.name.name.text;
  std::vector<ColumnSchema> columns;
  std::set<std::string> names;
  for (const auto& definition : statement.columns) {
    if (!names.insert(definition.name.text).second) {
      return fail(ErrorCode::kInvalid, "Duplicate column '{}' declaration for table '{}'",
                  definition.name.text, table);
    }
    if (definition.mask)
      return fail(ErrorCode::kInvalid, "not supported yet: dynamic data masking (MASKED WITH)");
    ColumnSchema column;
    column.name = definition.name.text;
    TETRAD_TRY(column.type, resolve_type(definition.type, keyspace));
    TETRAD_TRY_VOID(check_nesting(*column.type));
    column.kind = definition.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    columns.push_back(std::move(column));
  }
  if (statement.primary_keys.empty()) {
    return fail(ErrorCode::kInvalid,
                "No PRIMARY KEY specifed for table '{}' (exactly one required)", table);
  }
  if (statement.primary_keys.size() > 1) {
    return fail(ErrorCode::kInvalid,
                "Multiple PRIMARY KEY specified for table '{}' (exactly one required)", table);
  }
  const ast::PrimaryKey& key = statement.primary_keys.front();
  TETRAD_TRY(const std::vector<bool> descending,
             clustering_directions(statement.options.clustering_order, key.clustering));
  std::set<std::string> key_names;
  const auto place = [&](const ast::Identifier& name, ColumnKind kind, size_t position,
                         bool desc) -> Result<void> {
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const auto& c) { return c.name == name.text; });
    if (column == columns.end()) {
      return fail(ErrorCode::kInvalid,
                  "Unknown column '{}' referenced in PRIMARY KEY for table '{}'", name.text, table);
    }
    if (!key_names.insert(name.text).second) {
      return fail(ErrorCode::kInvalid, "Duplicate column '{}' in PRIMARY KEY clause for table '{}'",
                  name.text, table);
    }
    if (column->kind == ColumnKind::kStatic) {
      return fail(ErrorCode::kInvalid, "Static column '{}' cannot be part of the PRIMARY KEY",
                  name.text);
    }
    TETRAD_TRY_VOID(check_key_column(keyspace.name, name.text, *column->type));
    column->kind = kind;
    column->position = static_cast<uint32_t>(position);
    column->descending = desc;
    return {};
  };
  for (size_t i = 0; i < key.partition.size(); ++i) {
    TETRAD_TRY_VOID(place(key.partition[i], ColumnKind::kPartitionKey, i, false));
  }
  for (size_t i = 0; i < key.clustering.size(); ++i) {
    TETRAD_TRY_VOID(place(key.clustering[i], ColumnKind::kClustering, i, descending[i]));
  }
  size_t counters = 0, values = 0;
  for (const auto& column : columns) {
    if (column.is_primary_key()) continue;
    (column.type->is_counter() ? counters : values)++;
    if (column.kind == ColumnKind::kStatic && key.clustering.empty()) {
      return fail(ErrorCode::kInvalid,
                  "Static columns are only useful (and thus allowed) if the table has at least one "
                  "clustering column");
    }
  }
  if (counters != 0 && values != 0) {
    return fail(ErrorCode::kInvalid,
                "Cannot mix counter and non counter columns in the same table");
  }
  return columns;
}

TableOptions default_options() {
  TableOptions options;
  options.caching = {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
  options.compaction = {
      {"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
      {"max_threshold", "32"},
      {"min_threshold", "4"}};
  options.compression = {{"chunk_length_in_kb", "16"},
                         {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
  return options;
}

/// User types as tuples: a dropped column must stay readable when its type is gone.
std::string expanded_text(const DataType& type) {
  if (!type.references_udt()) return type.cql_text();
  if (type.kind() == TypeKind::kUdt || type.kind() == TypeKind::kTuple) {
    std::string inside;
    for (const auto& field : type.components())
      inside += (inside.empty() ? "" : ", ") + expanded_text(*field);
    return "frozen<tuple<" + inside + ">>";
  }
  std::string inside;
  for (const auto& part : type.components())
    inside += (inside.empty() ? "" : ", ") + expanded_text(*part);
  const char* name = type.kind() == TypeKind::kList  ? "list"
                     : type.kind() == TypeKind::kSet ? "set"
                     : type.kind() == TypeKind::kMap ? "map"
                                                     : "vector";
  if (type.kind() == TypeKind::kVector) inside += ", " + std::to_string(type.dimension());
  const std::string text = fmt::format("{}<{}>", name, inside);
  return type.is_collection() && !type.is_multi_cell() ? "frozen<" + text + ">" : text;
}

Result<void> add_columns(const ast::AddColumns& action, const KeyspaceSchema& keyspace,
                         TableSchema& table, std::vector<ColumnSchema>& columns, bool& changed) {
  if (table.is_compact_storage) {
    return fail(ErrorCode::kInvalid, "Cannot add new column to a COMPACT STORAGE table");
  }
  for (const auto& definition : action.columns) {
    const std::string& name = definition.name.text;
    if (std::any_of(columns.begin(), columns.end(),
                    [&](const auto& c) { return c.name == name; })) {
      if (action.if_not_exists) continue;
      return fail(ErrorCode::kInvalid, "Column with name '{}' already exists", name);
    }
    if (definition.mask)
      return fail(ErrorCode::kInvalid, "not supported yet: dynamic data masking (MASKED WITH)");
    ColumnSchema column;
    column.name = name;
    TETRAD_TRY(column.type, resolve_type(definition.type, keyspace));
    TETRAD_TRY_VOID(check_nesting(*column.type));
    column.kind = definition.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    if (definition.is_static && table.clustering().empty()) {
      return fail(ErrorCode::kInvalid,
                  "Static columns are only useful (and thus allowed) if the table has at least one "
                  "clustering column");
    }
    if (column.type->is_counter() && !table.is_counter) {
      return fail(ErrorCode::kConfig,
                  "{}: Cannot have a counter column (\"{}\") in a non counter table",
                  table.qualified_name(), name);
    }
    if (!column.type->is_counter() && table.is_counter) {
      return fail(ErrorCode::kConfig,
                  "{}: Cannot have a non counter column (\"{}\") in a counter table",
                  table.qualified_name(), name);
    }
    for (const DroppedColumn& dropped : table.dropped_columns) {
      if (dropped.name != name) continue;
      TETRAD_TRY(const TypePtr old_type, parse_type(dropped.type_text));
      if (!is_value_compatible(*column.type, *old_type) ||
          column.type->is_multi_cell() != old_type->is_multi_cell()) {
        return fail(ErrorCode::kInvalid,
                    "Cannot add a column '{}' of type {}, incompatible with previously dropped "
                    "column '{}' of type {}",
                    name, column.type->cql_text(), name, dropped.type_text);
      }
      if (dropped.kind != column.kind) {
        const auto word = [](ColumnKind kind) {
          return kind == ColumnKind::kStatic ? "STATIC" : "REGULAR";
        };
        return fail(ErrorCode::kInvalid,
                    "Cannot re-add previously dropped column '{}' of kind {}, incompatible with "
                    "previous kind {}",
                    name, word(column.kind), word(dropped.kind));
      }
      if (column.type->is_counter()) {
        return fail(ErrorCode::kInvalid, "Cannot re-add previously dropped counter column {}",
                    name);
      }
    }
    // A column that comes back as it was shows the cells that are newer than the drop; where the
    // type is another the bytes of many cells could not be read.
    const auto before = std::ranges::find(table.dropped_columns, name, &DroppedColumn::name);
    const bool as_before =
        before != table.dropped_columns.end() &&
        (!column.type->is_multi_cell() || before->type_text == expanded_text(*column.type));
    column.id = as_before ? before->id : table.next_column_id++;
    columns.push_back(std::move(column));
    changed = true;
  }
  return {};
}

Result<void> drop_columns(const ast::DropColumns& action, const PlanInput& input,
                          TableSchema& table, std::vector<ColumnSchema>& columns, bool& changed) {
  int64_t dropped_at_us = input.now_us;
  if (action.timestamp) {
    const auto* literal = action.timestamp->get_if<ast::Literal>();
    if (literal == nullptr || literal->kind != ast::Literal::Kind::kInteger ||
        literal->text.size() > 19) {
      return fail(ErrorCode::kInvalid,
                  "Invalid timestamp in ALTER TABLE DROP: it must be an integer");
    }
    dropped_at_us = std::strtoll(literal->text.c_str(), nullptr, 10);
  }
  std::set<std::string> named;
  for (const auto& name : action.columns) {
    if (!named.insert(name.text).second) continue;  // named twice, dropped once
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) {
      return c.name == name.text && !c.hidden;
    });
    if (column == columns.end()) {
      if (action.if_exists) continue;
      return fail(ErrorCode::kInvalid, "Column {} was not found in table '{}'", name.text,
                  table.qualified_name());
    }
    if (column->is_primary_key())
      return fail(ErrorCode::kInvalid, "Cannot drop PRIMARY KEY column {}", name.text);
    if (table.is_compact_storage && column->kind == ColumnKind::kRegular) {
      return fail(ErrorCode::kInvalid, "Cannot drop the value {} of a COMPACT STORAGE table",
                  name.text);
    }
    if (column->type->kind() == TypeKind::kUdt && column->type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid, "Cannot drop non-frozen column {} of user type {}",
                  name.text, column->type->cql_text());
    }
    std::erase_if(table.dropped_columns, [&](const auto& d) { return d.name == name.text; });
    table.dropped_columns.push_back(
        {column->name, expanded_text(*column->type), column->kind, dropped_at_us, column->id});
    columns.erase(column);
    changed = true;
  }
  return {};
}

Result<void> rename_columns(const ast::RenameColumns& action, TableSchema& table,
                            std::vector<ColumnSchema>& columns, bool& changed) {
  for (const auto& [from, to] : action.renames) {
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) {
      return c.name == from.text && !c.hidden;
    });
    if (column == columns.end()) {  // with IF EXISTS too, as Cassandra does
      return fail(ErrorCode::kInvalid, "Undefined column name {} in table {}", from.text,
                  table.qualified_name());
    }
    if (!column->is_primary_key()) {
      return fail(ErrorCode::kInvalid, "Cannot rename non PRIMARY KEY column {}", from.text);
    }
    if (std::any_of(columns.begin(), columns.end(),
                    [&](const auto& c) { return c.name == to.text; })) {
      return fail(ErrorCode::kInvalid,
                  "Cannot rename column {} to {} in table '{}'; another column with that name "
                  "already exists",
                  from.text, to.text, table.qualified_name());
    }
    column->name = to.text;
    changed = true;
  }
  return {};
}

Result<void> check_column_count(const std::string& table, size_t columns, const PlanInput& input) {
  return check_threshold(
      input.settings.guardrails.columns_per_table, columns, "columns_per_table", input.warnings,
      [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Tables cannot have more than {} columns, but {} provided for table {}",
                           limit, columns, table)
                     : fmt::format(
                           "The table {} has {} columns, this exceeds the warning threshold of {}.",
                           table, columns, limit);
      });
}

Result<void> check_table_count(const std::string& name, const PlanInput& input) {
  size_t tables = 1;
  for (const auto& [keyspace_name, keyspace] : input.schema.keyspaces()) {
    if (!is_system(*keyspace)) tables += keyspace->tables.size();
  }
  return check_threshold(
      input.settings.guardrails.tables, tables, "tables", input.warnings,
      [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Cannot have more than {} tables, aborting the creation of table "
                           "{}",
                           limit, name)
                     : fmt::format(
                           "Creating table {}, current number of tables {} exceeds warning "
                           "threshold of {}.",
                           name, tables, limit);
      });
}

/// The properties without those that have no effect here.
Result<ast::Properties> guarded_properties(const ast::Properties& properties,
                                           const PlanInput& input) {
  std::vector<std::string> names;
  for (const auto& property : properties) names.push_back(property.name.text);
  std::ranges::sort(names);
  TETRAD_TRY(const auto ignored,
             check_names(input.settings.guardrails.table_properties, names, "table_properties",
                         "Table Properties", input.warnings));
  ast::Properties out;
  for (const auto& property : properties) {
    if (std::ranges::find(ignored, property.name.text) == ignored.end()) out.push_back(property);
  }
  return out;
}

Result<void> check_compressed(const TableOptions& options, const PlanInput& input) {
  const auto found = options.compression.find("enabled");
  return check_enabled(input.settings.guardrails.uncompressed_tables ||
                           found == options.compression.end() || found->second != "false",
                       "uncompressed_tables_enabled", "Uncompressed table");
}

Result<void> check_twcs(const TableOptions& options, const PlanInput& input) {
  const Guardrails& guardrails = input.settings.guardrails;
  const auto found = options.compaction.find("class");
  if (options.default_time_to_live_s != 0 || found == options.compaction.end() ||
      !found->second.ends_with("TimeWindowCompactionStrategy"))
    return {};
  constexpr const char* kName = "zero_ttl_on_twcs";
  constexpr const char* kWhat =
      "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy";
  constexpr const char* kReason =
      "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please "
      "keep in mind that data will not start to automatically expire after they are older than a "
      "respective compaction window unit of a certain size. Please set TTL for your INSERT or "
      "UPDATE statements if you expect data to be expired as table settings will not do it. ";
  TETRAD_TRY_VOID(check_enabled(guardrails.zero_ttl_on_twcs, kName, kWhat, kReason));
  if (guardrails.zero_ttl_on_twcs_warned) {
    input.warnings.push_back(
        guardrail_text(kName, fmt::format("{} is not recommended. {}", kWhat, kReason)));
  }
  return {};
}

}  // namespace

Result<SchemaPlan> plan(const ast::CreateTable& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_duplicates(statement.options.clustering_order, name));
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
  TETRAD_TRY(const auto properties, guarded_properties(statement.options.properties, input));
  TETRAD_TRY_VOID(check_column_count(name, statement.columns.size(), input));
  TETRAD_TRY_VOID(check_table_count(name, input));
  SchemaPlan out;
  if (find_table(keyspace, name) != nullptr) {
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    return std::unexpected(
        Error(ErrorCode::kAlreadyExists,
              fmt::format("Cannot add already existing table \"{}\" to keyspace \"{}\"", name,
                          keyspace_name),
              base::AlreadyExistsDetail{keyspace_name, name}));
  }
  if (statement.options.compact_storage) {
    TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.compact_tables, "compact_tables",
                                  "Creation of new COMPACT STORAGE tables"));
  }
  if (!is_valid_object_name(name)) {
    return fail(ErrorCode::kConfig,
                "{}.{}: Table name must not be empty or not contain non-alphanumeric-underscore "
                "characters (got \"{}\")",
                keyspace_name, name, name);
  }
  if (name.size() > 222) {
    return fail(ErrorCode::kConfig, "{}.{}: Table name is too long: {} characters, at most 222",
                keyspace_name, name, name.size());
  }
  TableSchema table;
  table.keyspace = keyspace_name;
  table.name = name;
  table.version = SchemaVersion{1};
  table.options = default_options();
  std::optional<Uuid> id;
  TETRAD_TRY_VOID(apply_table_properties(properties, table.options, id));
  TETRAD_TRY(std::vector<ColumnSchema> columns, columns_of(statement, *keyspace));
  if (statement.options.compact_storage) {
    TETRAD_TRY_VOID(make_compact(columns));
    table.is_compact_storage = true;
  }
  for (ColumnSchema& column : columns) {
    if (!column.is_primary_key()) column.id = table.next_column_id++;
  }
  table.set_columns(std::move(columns));
  for (const ColumnSchema& column : table.columns()) {
    TETRAD_TRY_VOID(
        check_vectors(input.settings.guardrails, *column.type, column.name, input.warnings));
  }
  TETRAD_TRY_VOID(check_twcs(table.options, input));
  TETRAD_TRY_VOID(check_compressed(table.options, input));
  if (table.is_counter && table.options.default_time_to_live_s != 0) {
    return fail(ErrorCode::kInvalid, "Cannot set default_time_to_live on a table with counters");
  }
  if (table.is_counter) return fail(ErrorCode::kInvalid, "not supported yet: counters");
  if (id && input.meta.tables.contains(TableId{*id})) {
    return fail(ErrorCode::kInvalid, "A table with the id {} exists already", id->to_string());
  }
  table.id = TableId{
      id ? *id
         : base::make_time_uuid(base::uuid_ticks_of_unix_us(input.now_us) + input.random.below(10),
                                static_cast<uint16_t>(input.random.next()), input.random.next())};
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(table));
  out.change.new_tables.push_back(
      {table.id, keyspace_name, name, table.options.max_partition_mb, 0});
  out.answer = table_changed(Kind::kCreated, keyspace_name, name);
  return out;
}

Result<SchemaPlan> plan(const ast::AlterTable& statement, const PlanInput& input) {
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  const std::string& name = statement.name.name.text;
  const TablePtr old = find_table(keyspace, name);
  SchemaPlan out;
  if (old == nullptr) {
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Table '{}.{}' doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  TableSchema table = *old;
  std::vector<ColumnSchema> columns = old->columns();
  bool changed = false;
  TETRAD_TRY_VOID(
      check_enabled(input.settings.guardrails.alter_table ||
                        std::holds_alternative<ast::TableOptions>(statement.action) ||
                        std::holds_alternative<ast::DropCompactStorage>(statement.action),
                    "alter_table", "ALTER TABLE changing columns"));
  if (const auto* add = std::get_if<ast::AddColumns>(&statement.action)) {
    TETRAD_TRY_VOID(add_columns(*add, *keyspace, table, columns, changed));
  } else if (const auto* drop = std::get_if<ast::DropColumns>(&statement.action)) {
    TETRAD_TRY_VOID(drop_columns(*drop, input, table, columns, changed));
  } else if (const auto* rename = std::get_if<ast::RenameColumns>(&statement.action)) {
    TETRAD_TRY_VOID(rename_columns(*rename, table, columns, changed));
  } else if (const auto* options = std::get_if<ast::TableOptions>(&statement.action)) {
    std::optional<Uuid> id;
    TETRAD_TRY(const auto properties, guarded_properties(options->properties, input));
    TETRAD_TRY_VOID(apply_table_properties(properties, table.options, id));
    TETRAD_TRY_VOID(check_compressed(table.options, input));
    if (id) return fail(ErrorCode::kConfig, "Cannot alter table id.");
    if (!options->clustering_order.empty()) {
      return fail(ErrorCode::kInvalid, "Cannot alter the clustering order of table {}.{}",
                  keyspace_name, name);
    }
    if (table.is_counter && table.options.default_time_to_live_s != 0) {
      return fail(ErrorCode::kInvalid, "Cannot set default_time_to_live on a table with counters");
    }
    changed = table_text(table) != table_text(*old);
  } else if (std::holds_alternative<ast::AlterColumnType>(statement.action)) {
    return fail(ErrorCode::kInvalid, "Altering column types is no longer supported");
  } else if (std::holds_alternative<ast::MaskColumn>(statement.action)) {
    return fail(ErrorCode::kInvalid, "not supported yet: dynamic data masking (MASKED WITH)");
  } else {
    if (!input.settings.guardrails.drop_compact_storage) {
      return fail(ErrorCode::kInvalid,
                  "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.");
    }
    if (!table.is_compact_storage) {
      return fail(ErrorCode::kInvalid,
                  "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
    }
    drop_compact(table, columns);
    changed = true;
  }
  if (!changed) {
    out.nothing_to_do = true;
    return out;
  }
  out.answer = table_changed(Kind::kUpdated, keyspace_name, name);
  table.version.value += 1;
  table.set_columns(std::move(columns));
  if (table.columns().size() > old->columns().size()) {
    TETRAD_TRY_VOID(check_column_count(name, table.columns().size(), input));
  }
  for (const ColumnSchema& column : table.columns()) {
    if (old->find(column.name) != nullptr) continue;
    TETRAD_TRY_VOID(
        check_vectors(input.settings.guardrails, *column.type, column.name, input.warnings));
  }
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(table));
  if (table.options.max_partition_mb != old->options.max_partition_mb) {
    out.change.altered_tables.push_back(
        {table.id, keyspace_name, name, table.options.max_partition_mb});
  }
  return out;
}

Result<SchemaPlan> plan(const ast::DropTable& statement, const PlanInput& input) {
  TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.drop_truncate_table,
                                "drop_truncate_table_enabled",
                                "DROP and TRUNCATE TABLE functionality"));
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  const std::string& name = statement.name.name.text;
  const TablePtr table = find_table(keyspace, name);
  SchemaPlan out;
  if (table == nullptr) {
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Table '{}.{}' doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(table_key(keyspace_name, name), std::nullopt);
  out.change.dropped_tables.push_back(table->id);
  out.answer = table_changed(Kind::kDropped, keyspace_name, name);
  return out;
}

Result<SchemaPlan> plan(const ast::Truncate& statement, const PlanInput& input) {
  TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.drop_truncate_table,
                                "drop_truncate_table_enabled",
                                "DROP and TRUNCATE TABLE functionality"));
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.table, input));
  const std::string& name = statement.table.name.text;
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "keyspace {} does not exist", keyspace_name);
  const TablePtr table = find_table(keyspace, name);
  if (table == nullptr) return fail(ErrorCode::kInvalid, "table {} does not exist", name);
  if (table->is_virtual) return fail(ErrorCode::kInvalid, "Cannot truncate virtual tables");
  SchemaPlan out;
  out.change.truncated_tables.push_back(table->id);
  return out;
}

}  // namespace tetrad::cql
