// SPDX-License-Identifier: Apache-2.0
// Tables: CREATE, DROP, TRUNCATE.
//
// plan_keyspace.cc says what a plan is. Column ids are given once (next_column_id) and never again
// in a table: cells are stored under them.
#include <algorithm>
#include <set>

#include "cql/prepare/column_masks.h"
#include "cql/prepare/compact_storage.h"
#include "cql/prepare/option_effects.h"
#include "cql/prepare/table_checks.h"
#include "cql/prepare/table_properties.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/schema/schema_text.h"
#include "replication/meta/cluster_format.h"
#include "replication/tablets/split_runner.h"

namespace tetrad::cql {
namespace {

std::string as_written(const ast::QualifiedName& name) {
  return name.keyspace ? name.keyspace->text + "." + name.name.text : name.name.text;
}

using Kind = SchemaChange::Kind;

/// Keys need one order and one value: no counters, no durations, nothing of many cells.
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
              keyspace, type.name(), name);
}

/// The directions of the clustering columns, ascending where nothing is said.
// One flag for each clustering column; true: DESC.
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

/// Gives the columns of PRIMARY KEY their kinds, positions and directions. `descending`: of the
/// clustering columns.
Result<void> place_key(const std::string& table, const std::string& keyspace,
                       const ast::PrimaryKey& key, const std::vector<bool>& descending,
                       std::vector<ColumnSchema>& columns) {
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
    TETRAD_TRY_VOID(check_key_column(keyspace, name.text, *column->type));
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
  return {};
}

/// Static columns need clustering columns beside them, counters no values.
Result<void> check_column_kinds(const std::vector<ColumnSchema>& columns,
                                const ast::PrimaryKey& key) {
  // A table has counters or values, never both: the two are written in different ways.
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
  return {};
}

// In the order of the statement; TableSchema::set_columns sorts them. Masks come later (add_masks),
// which relies on this order.
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
    ColumnSchema column;
    column.name = definition.name.text;
    TETRAD_TRY(column.type, resolve_type(definition.type, keyspace));
    TETRAD_TRY_VOID(check_nesting(*column.type));
    column.kind = definition.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    columns.push_back(std::move(column));
  }
  if (statement.primary_keys.empty()) {
    return fail(ErrorCode::kInvalid,
                "No PRIMARY KEY specifed for table '{}' (exactly one required)",
                as_written(statement.name));
  }
  if (statement.primary_keys.size() > 1) {
    return fail(ErrorCode::kInvalid,
                "Multiple PRIMARY KEY specified for table '{}' (exactly one required)",
                as_written(statement.name));
  }
  const ast::PrimaryKey& key = statement.primary_keys.front();
  TETRAD_TRY(const std::vector<bool> descending,
             clustering_directions(statement.options.clustering_order, key.clustering));
  TETRAD_TRY_VOID(place_key(table, keyspace.name, key, descending, columns));
  TETRAD_TRY_VOID(check_column_kinds(columns, key));
  return columns;
}

/// Needs `columns` as columns_of() made them: the i-th of the statement is the i-th of the list.
Result<void> add_masks(const ast::CreateTable& statement, const std::string& keyspace,
                       std::vector<ColumnSchema>& columns, const PlanInput& input) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto& written = statement.columns[i].mask;
    if (!written) continue;
    TETRAD_TRY(columns[i].mask,
               resolve_mask(*written, columns[i], keyspace, statement.name.name.text, input));
  }
  return {};
}

/// The guardrail on all tables of users, views among them, in all keyspaces.
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

/// How many tablets a new table begins with: as many as the option says, and at least those that
/// its throughput needs. 0: as placement decides.
uint32_t initial_tablets(const TableOptions& options, const replication::Throughput& throughput,
                         const PlanInput& input) {
  return std::max(options.initial_partitions, replication::tablets_wanted(input.meta, throughput));
}

/// The guardrail on tables of time windows whose rows never expire.
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

/// The name becomes a directory in Cassandra, so both have the same limits: letters, digits and
/// underscores, 222 at most.
Result<void> check_new_name(const std::string& keyspace, const std::string& name) {
  if (!is_valid_object_name(name)) {
    return fail(ErrorCode::kConfig,
                "{}.{}: Table name must not be empty or not contain non-alphanumeric-underscore "
                "characters (got \"{}\")",
                keyspace, name, name);
  }
  if (name.size() > 222) {
    return fail(ErrorCode::kConfig, "{}.{}: Table name is too long: {} characters, at most 222",
                keyspace, name, name.size());
  }
  return {};
}

/// The checks that need the columns and the options together.
Result<void> check_new_table(const TableSchema& table, const PlanInput& input) {
  for (const ColumnSchema& column : table.columns()) {
    TETRAD_TRY_VOID(
        check_vectors(input.settings.guardrails, *column.type, column.name, input.warnings));
  }
  TETRAD_TRY_VOID(check_twcs(table.options, input));
  TETRAD_TRY_VOID(check_compressed(table.options, input));
  if (table.is_counter && table.options.default_time_to_live_s != 0) {
    return fail(ErrorCode::kInvalid, "Cannot set default_time_to_live on a table with counters");
  }
  // The format rises when every node runs a program that knows counters.
  if (table.is_counter && input.meta.format < replication::kFormatCounters) {
    return fail(ErrorCode::kInvalid,
                "tables with counters wait until all nodes run a program that knows them");
  }
  return {};
}

}  // namespace

// 1. Guardrails on numbers. 2. Whether the name is free. 3. Options. 4. Columns and masks, then
// what a compact table hides. 5. Column ids. 6. check_new_table(). 7. The table's id, given (WITH
// id) or new. new_tables makes the metadata group give the table its tablets in the same change.
Result<SchemaPlan> plan(const ast::CreateTable& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_ordered_once(statement.options.clustering_order, "table", name));
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
  TETRAD_TRY(const auto properties,
             guarded_properties(
                 with_payload(statement.options.properties, input.throughput_payload), input));
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
  TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, name)));
  if (statement.options.compact_storage) {
    TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.compact_tables, "compact_tables",
                                  "Creation of new COMPACT STORAGE tables"));
  }
  TETRAD_TRY_VOID(check_new_name(keyspace_name, name));
  TableSchema table;
  table.keyspace = keyspace_name;
  table.name = name;
  table.version = SchemaVersion{1};
  table.options = default_table_options();
  std::optional<Uuid> id;
  TETRAD_TRY_VOID(apply_table_properties(properties, table.options, id));
  if (auto warning = no_effect_warning(properties, table.options, default_table_options()))
    input.warnings.push_back(std::move(*warning));
  follow_compaction(properties, table.options);
  TETRAD_TRY(std::vector<ColumnSchema> columns, columns_of(statement, *keyspace));
  TETRAD_TRY_VOID(add_masks(statement, keyspace_name, columns, input));
  if (statement.options.compact_storage) {
    TETRAD_TRY_VOID(make_compact(columns));
    table.is_compact_storage = true;
  }
  for (ColumnSchema& column : columns) {
    if (!column.is_primary_key()) column.id = table.next_column_id++;
  }
  table.set_columns(std::move(columns));
  TETRAD_TRY_VOID(check_new_table(table, input));
  if (id && input.meta.tables.contains(TableId{*id})) {
    return fail(ErrorCode::kInvalid, "A table with the id {} exists already", id->to_string());
  }
  table.id = TableId{
      id ? *id
         : base::make_time_uuid(base::uuid_ticks_of_unix_us(input.now_us) + input.random.below(10),
                                static_cast<uint16_t>(input.random.next()), input.random.next())};
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(table));
  const replication::Throughput throughput = throughput_of(table.options, *keyspace);
  out.change.new_tables.push_back({table.id, keyspace_name, name, table.options.max_partition_mb,
                                   initial_tablets(table.options, throughput, input),
                                   table.options.cdc, throughput});
  out.answer = table_changed(Kind::kCreated, keyspace_name, name);
  return out;
}

// A table that does not read can be dropped, by its key in the metadata.
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
  if (table == nullptr && input.schema.unreadable(table_key(keyspace_name, name)) == nullptr) {
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Table '{}.{}' doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  if (table != nullptr && table->view) {
    return fail(ErrorCode::kInvalid,
                "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW "
                "instead.");
  }
  if (table != nullptr && !table->views.empty()) {
    // The keyspace in the place of the views is Cassandra's.
    return fail(ErrorCode::kInvalid,
                "Cannot drop a table when materialized views still depend on it ({})",
                keyspace_name);
  }
  out.change.objects.emplace_back(table_key(keyspace_name, name), std::nullopt);
  drop_tables(keyspace_name, name, input.meta, out.change);
  out.answer = table_changed(Kind::kDropped, keyspace_name, name);
  return out;
}

// The table's text stays as it is; views are emptied with their base, in one change.
Result<SchemaPlan> plan(const ast::Truncate& statement, const PlanInput& input) {
  TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.drop_truncate_table,
                                "drop_truncate_table_enabled",
                                "DROP and TRUNCATE TABLE functionality"));
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.table, input));
  const std::string& name = statement.table.name.text;
  const KeyspaceSchema* keyspace = input.schema.keyspace(keyspace_name);
  TETRAD_TRY_VOID(input.schema.check_readable(keyspace_key(keyspace_name)));
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "keyspace {} does not exist", keyspace_name);
  TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, name)));
  const TablePtr table = find_table(keyspace, name);
  if (table == nullptr) return fail(ErrorCode::kInvalid, "table {} does not exist", name);
  SchemaPlan out;
  // Nothing was traced yet: its tables are made by the first trace.
  if (table->is_virtual && keyspace_name == kTracesKeyspace) {
    out.nothing_to_do = true;
    return out;
  }
  if (table->is_virtual) return fail(ErrorCode::kInvalid, "Cannot truncate virtual tables");
  if (table->view) {
    return fail(ErrorCode::kInvalid,
                "Cannot TRUNCATE materialized view directly; must truncate base table instead");
  }
  // The table gets a new incarnation: rows of the old one are no more, and late writes to it are
  // refused.
  out.change.truncated_tables.push_back(table->id);
  for (const std::string& view : table->views)
    if (const TablePtr of_view = find_table(keyspace, view); of_view != nullptr)
      out.change.truncated_tables.push_back(of_view->id);
  return out;
}

}  // namespace tetrad::cql
