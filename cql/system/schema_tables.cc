// SPDX-License-Identifier: Apache-2.0
// The schema as tables: system_schema for drivers, and system_virtual_schema for the keyspaces that
// are listed as computed.
#include <algorithm>

#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/literal.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {
namespace {

using namespace cells;

const char* kind_text(ColumnKind kind) {
  constexpr const char* names[] = {"partition_key", "clustering", "static", "regular"};
  return names[static_cast<int>(kind)];
}

VirtualCell type_list(const std::vector<TypePtr>& types) {
  std::vector<std::string> texts;
  for (const TypePtr& type : types) texts.push_back(type->cql_text());
  return text_list(texts);
}

/// Every keyspace that system_schema, or else system_virtual_schema, lists.
template <class Visit>
void for_each_keyspace(const SchemaSnapshot& schema, bool as_virtual, Visit visit) {
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    if (is_listed_as_virtual(name) == as_virtual) visit(*keyspace);
  }
}

/// The tables that a read by keyspace name and table name may want. Drivers ask for one table after
/// each change of it.
template <class Visit>
void for_each_table(const SchemaSnapshot& schema, bool as_virtual,
                    const storage::ReadCommand& command, Visit visit) {
  storage::ClusteringRange places;
  if (!command.rows.empty())
    places = {command.rows.front(), command.rows.back()};
  else if (!command.clustering_ranges.empty())
    places = {command.clustering_ranges.front().start, command.clustering_ranges.back().end};
  BytesView rest = places.start;
  const auto first = decode_ordered(rest, *text_type(), false);
  const std::string first_name = first && *first ? std::string(**first) : "";
  for_each_keyspace(schema, as_virtual, [&](const KeyspaceSchema& keyspace) {
    if (!command.is_range && command.partition_key != keyspace.name) return;
    for (auto at = keyspace.tables.lower_bound(first_name); at != keyspace.tables.end(); ++at) {
      Bytes place;
      const auto placed = append_ordered(place, *text_type(), BytesView(at->first), false);
      if (placed && place > places.end) break;
      visit(keyspace, *at->second);
    }
  });
}

VirtualRows column_rows(const SchemaSnapshot& schema, bool as_virtual,
                        const storage::ReadCommand& command) {
  VirtualRows rows;
  for_each_table(
      schema, as_virtual, command, [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
        for (const auto& column : table.columns()) {
          const char* order = column.kind != ColumnKind::kClustering ? "none"
                              : column.descending                    ? "desc"
                                                                     : "asc";
          rows.push_back(
              {text(keyspace.name), text(table.name), text(column.name), text(order),
               VirtualCell(Bytes(column.name)), text(kind_text(column.kind)),
               number(column.is_primary_key() ? static_cast<int32_t>(column.position) : -1),
               text(column.type->cql_text())});
        }
      });
  return rows;
}

/// The options that tables and views have alike, in the order of option_cells().
const std::vector<ComputedTables::Column> kOptionColumns = {
    {"additional_write_policy", "text"},
    {"allow_auto_snapshot", "boolean"},
    {"bloom_filter_fp_chance", "double"},
    {"caching", "frozen<map<text, text>>"},
    {"cdc", "boolean"},
    {"comment", "text"},
    {"compaction", "frozen<map<text, text>>"},
    {"compression", "frozen<map<text, text>>"},
    {"crc_check_chance", "double"},
    {"dclocal_read_repair_chance", "double"},
    {"default_time_to_live", "int"},
    {"extensions", "frozen<map<text, blob>>"},
    {"gc_grace_seconds", "int"},
    {"id", "uuid"},
    {"incremental_backups", "boolean"},
    {"max_index_interval", "int"},
    {"memtable", "text"},
    {"memtable_flush_period_in_ms", "int"},
    {"min_index_interval", "int"},
    {"read_repair", "text"},
    {"read_repair_chance", "double"},
    {"speculative_retry", "text"}};

VirtualRow option_cells(const TableSchema& table) {
  const TableOptions& o = table.options;
  return {text(o.additional_write_policy),
          kNull,
          real(o.bloom_filter_fp_chance),
          text_map(o.caching),
          o.cdc ? flag(true) : kNull,
          text(o.comment),
          text_map(o.compaction),
          text_map(o.compression),
          real(o.crc_check_chance),
          real(0),
          number(o.default_time_to_live_s),
          text_map(o.extensions),
          number(o.gc_grace_seconds.value_or(864'000)),
          uuid(table.id.value),
          kNull,
          number(o.max_index_interval),
          kNull,
          number(o.memtable_flush_period_in_ms),
          number(o.min_index_interval),
          text(o.read_repair),
          real(0),
          text(o.speculative_retry)};
}

VirtualCell number_or_null(uint32_t value) {
  return value != 0 ? number(static_cast<int32_t>(value)) : kNull;
}

/// Of system_schema.tables.
VirtualRow table_row(const KeyspaceSchema& keyspace, const TableSchema& table) {
  std::vector<std::string> flags;
  const bool compact = table.is_compact_storage;
  if (!compact || table.clustering().size() > 1) flags.push_back("compound");
  if (table.is_counter) flags.push_back("counter");
  if (compact && !table.has_hidden_clustering()) flags.push_back("dense");
  const TableOptions& options = table.options;
  VirtualRow row = {text(keyspace.name),
                    text(table.name),
                    text_set(flags),
                    number_or_null(options.throughput.autoscale_max),
                    number_or_null(options.throughput.provisioned),
                    number_or_null(options.initial_partitions),
                    number_or_null(options.max_partition_mb)};
  std::ranges::move(option_cells(table), std::back_inserter(row));
  return row;
}

/// Of system_schema.views.
VirtualRow view_row(const KeyspaceSchema& keyspace, const TableSchema& view) {
  VirtualRow row = {text(keyspace.name),
                    text(view.name),
                    uuid(view.view->base_id.value),
                    text(view.view->base_table),
                    flag(view.view->include_all_columns),
                    text(view.view->where)};
  std::ranges::move(option_cells(view), std::back_inserter(row));
  return row;
}

/// As system_schema.indexes calls it. KEYS is of tables that Thrift made.
const char* index_kind(const IndexSchema& index) {
  return index.index_class == IndexClass::kLegacy ? "COMPOSITES" : "CUSTOM";
}

/// A row for each masked column: its function, and the constants behind the value.
void add_masks(const KeyspaceSchema& keyspace, const TableSchema& table, VirtualRows& rows) {
  for (const ColumnSchema& column : table.columns()) {
    if (!column.mask) continue;
    const ColumnMask& mask = *column.mask;
    std::vector<Bytes> nulls;
    std::vector<std::string> types, values;
    for (size_t i = 0; i < mask.arguments.size(); ++i) {
      const OptionalBytes& value = mask.arguments[i];
      nulls.push_back(make_boolean(!value));
      types.push_back(mask.argument_types[i]->cql_text());
      values.push_back(value ? to_string(*mask.argument_types[i], *value) : std::string());
    }
    const std::vector<BytesView> views(nulls.begin(), nulls.end());
    rows.push_back({text(keyspace.name), text(table.name), text(column.name), join_list(views),
                    text_list(types), text_list(values), text(mask.keyspace), text(mask.function)});
  }
}

/// Of both tables `columns`.
const std::vector<ComputedTables::Column> kColumnColumns = {{"keyspace_name", "text", "pk"},
                                                            {"table_name", "text", "ck"},
                                                            {"column_name", "text", "ck"},
                                                            {"clustering_order", "text"},
                                                            {"column_name_bytes", "blob"},
                                                            {"kind", "text"},
                                                            {"position", "int"},
                                                            {"type", "text"}};

/// One row a keyspace; the throughput columns are Tetrad's own.
void define_keyspaces(ComputedTables& tables) {
  tables.define(
      "system_schema", "keyspaces",
      {{"keyspace_name", "text", "pk"},
       {kAutoscaleMaxThroughput, "int"},
       {kProvisionedThroughput, "int"},
       {"durable_writes", "boolean"},
       {"replication", "frozen<map<text, text>>"}},
      [](const SchemaSnapshot& schema) {
        VirtualRows rows;
        for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
          rows.push_back({text(keyspace.name), number_or_null(keyspace.throughput.autoscale_max),
                          number_or_null(keyspace.throughput.provisioned),
                          flag(keyspace.durable_writes), text_map(keyspace.replication)});
        });
        return rows;
      });
}

/// Tables without views, which have a table of their own, as in Cassandra.
void define_tables(ComputedTables& tables) {
  std::vector<ComputedTables::Column> table_columns = {
      {"keyspace_name", "text", "pk"},   {"table_name", "text", "ck"},
      {"flags", "frozen<set<text>>"},    {kAutoscaleMaxThroughput, "int"},
      {kProvisionedThroughput, "int"},   {"tetrad_initial_partitions", "int"},
      {"tetrad_max_partition_mb", "int"}};
  table_columns.insert(table_columns.end(), kOptionColumns.begin(), kOptionColumns.end());
  tables.define("system_schema", "tables", table_columns,
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  VirtualRows rows;
                  for_each_table(schema, false, command,
                                 [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
                                   if (!table.view) rows.push_back(table_row(keyspace, table));
                                 });
                  return rows;
                });
}

/// The columns of tables and views, and those that were dropped, with the types that they had.
void define_columns(ComputedTables& tables) {
  tables.define("system_schema", "columns", kColumnColumns,
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  return column_rows(schema, false, command);
                });
  tables.define("system_schema", "dropped_columns",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"column_name", "text", "ck"},
                 {"dropped_time", "timestamp"},
                 {"kind", "text"},
                 {"type", "text"}},
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  VirtualRows rows;
                  for_each_table(
                      schema, false, command,
                      [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
                        for (const auto& dropped : table.dropped_columns) {
                          rows.push_back({text(keyspace.name), text(table.name), text(dropped.name),
                                          big(dropped.dropped_time_us / 1000),
                                          text(kind_text(dropped.kind)), text(dropped.type_text)});
                        }
                      });
                  return rows;
                });
}

/// User types of a keyspace; fields in the order of their declaration.
void define_types(ComputedTables& tables) {
  tables.define(
      "system_schema", "types",
      {{"keyspace_name", "text", "pk"},
       {"type_name", "text", "ck"},
       {"field_names", "frozen<list<text>>"},
       {"field_types", "frozen<list<text>>"}},
      [](const SchemaSnapshot& schema) {
        VirtualRows rows;
        for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
          for (const auto& [name, type] : keyspace.types) {
            std::vector<std::string> names(type->field_names().begin(), type->field_names().end()),
                types;
            for (const auto& field : type->components()) types.push_back(field->cql_text());
            rows.push_back({text(keyspace.name), text(name), text_list(names), text_list(types)});
          }
        });
        return rows;
      });
}

/// Masks and indexes of columns.
void define_masks_and_indexes(ComputedTables& tables) {
  tables.define("system_schema", "column_masks",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"column_name", "text", "ck"},
                 {"function_argument_nulls", "frozen<list<boolean>>"},
                 {"function_argument_types", "frozen<list<text>>"},
                 {"function_argument_values", "frozen<list<text>>"},
                 {"function_keyspace", "text"},
                 {"function_name", "text"}},
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  VirtualRows rows;
                  for_each_table(schema, false, command,
                                 [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
                                   add_masks(keyspace, table, rows);
                                 });
                  return rows;
                });
  tables.define("system_schema", "indexes",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"index_name", "text", "ck"},
                 {"kind", "text"},
                 {"options", "frozen<map<text, text>>"}},
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  VirtualRows rows;
                  for_each_table(
                      schema, false, command,
                      [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
                        for (const IndexSchema& index : table.indexes) {
                          rows.push_back({text(keyspace.name), text(table.name), text(index.name),
                                          text(index_kind(index)), text_map(index.options)});
                        }
                      });
                  return rows;
                });
}

/// User-defined functions and aggregates; an overload is a row of its own.
void define_functions(ComputedTables& tables) {
  tables.define("system_schema", "functions",
                {{"keyspace_name", "text", "pk"},
                 {"function_name", "text", "ck"},
                 {"argument_types", "frozen<list<text>>", "ck"},
                 {"argument_names", "frozen<list<text>>"},
                 {"body", "text"},
                 {"called_on_null_input", "boolean"},
                 {"language", "text"},
                 {"return_type", "text"}},
                [](const SchemaSnapshot& schema) {
                  VirtualRows rows;
                  for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
                    for (const FunctionPtr& function : keyspace.functions) {
                      rows.push_back(
                          {text(keyspace.name), text(function->name),
                           type_list(function->argument_types), text_list(function->argument_names),
                           text(function->body), flag(function->called_on_null_input),
                           text(function->language), text(function->return_type->cql_text())});
                    }
                  });
                  return rows;
                });
  tables.define(
      "system_schema", "aggregates",
      {{"keyspace_name", "text", "pk"},
       {"aggregate_name", "text", "ck"},
       {"argument_types", "frozen<list<text>>", "ck"},
       {"final_func", "text"},
       {"initcond", "text"},
       {"return_type", "text"},
       {"state_func", "text"},
       {"state_type", "text"}},
      [](const SchemaSnapshot& schema) {
        VirtualRows rows;
        for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
          for (const AggregatePtr& aggregate : keyspace.aggregates) {
            const auto& initial = aggregate->initial_condition;
            rows.push_back(
                {text(keyspace.name), text(aggregate->name), type_list(aggregate->argument_types),
                 aggregate->final_function.empty() ? kNull : text(aggregate->final_function),
                 initial ? text(to_cql_literal(*aggregate->state_type, *initial)) : kNull,
                 text(aggregate->return_type->cql_text()), text(aggregate->state_function),
                 text(aggregate->state_type->cql_text())});
          }
        });
        return rows;
      });
}

/// There are no triggers in Tetrad, but drivers read the table with the others.
void define_triggers(ComputedTables& tables) {
  tables.define("system_schema", "triggers",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"trigger_name", "text", "ck"},
                 {"options", "frozen<map<text, text>>"}},
                no_rows);
}

/// Materialized views: what they are made from, then the options of a table.
void define_views(ComputedTables& tables) {
  std::vector<ComputedTables::Column> view_columns = {
      {"keyspace_name", "text", "pk"},    {"view_name", "text", "ck"},
      {"base_table_id", "uuid"},          {"base_table_name", "text"},
      {"include_all_columns", "boolean"}, {"where_clause", "text"}};
  view_columns.insert(view_columns.end(), kOptionColumns.begin(), kOptionColumns.end());
  tables.define("system_schema", "views", view_columns,
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  VirtualRows rows;
                  for_each_table(schema, false, command,
                                 [&](const KeyspaceSchema& keyspace, const TableSchema& table) {
                                   if (table.view) rows.push_back(view_row(keyspace, table));
                                 });
                  return rows;
                });
}

/// Keyspaces whose tables are computed (is_listed_as_virtual), with their tables and columns.
void define_virtual_schema(ComputedTables& tables) {
  tables.define("system_virtual_schema", "keyspaces", {{"keyspace_name", "text", "pk"}},
                [](const SchemaSnapshot& schema) {
                  VirtualRows rows;
                  for_each_keyspace(schema, true, [&](const KeyspaceSchema& keyspace) {
                    rows.push_back({text(keyspace.name)});
                  });
                  return rows;
                });
  tables.define(
      "system_virtual_schema", "tables",
      {{"keyspace_name", "text", "pk"}, {"table_name", "text", "ck"}, {"comment", "text"}},
      [](const SchemaSnapshot& schema) {
        VirtualRows rows;
        for_each_keyspace(schema, true, [&](const KeyspaceSchema& keyspace) {
          for (const auto& [name, table] : keyspace.tables) {
            rows.push_back({text(keyspace.name), text(name), text(table->options.comment)});
          }
        });
        return rows;
      });
  tables.define("system_virtual_schema", "columns", kColumnColumns,
                [](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  return column_rows(schema, true, command);
                });
}

}  // namespace

// In this order the tables get their incarnations (ComputedTables::define).
void define_schema_tables(ComputedTables& tables) {
  define_keyspaces(tables);
  define_tables(tables);
  define_columns(tables);
  define_types(tables);
  define_masks_and_indexes(tables);
  define_functions(tables);
  define_triggers(tables);
  define_views(tables);
  define_virtual_schema(tables);
}

}  // namespace tetrad::cql
