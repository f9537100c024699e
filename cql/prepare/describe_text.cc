// SPDX-License-Identifier: Apache-2.0
// The texts of DESCRIBE: each schema object as the statement that makes it, byte for byte as
// Cassandra 5.0 prints it. White space counts, too: tools compare the texts, and a schema can be
// restored from them.
//
//   CREATE TABLE ks.t (
//       k int,
//       c int,
//       v text,
//       PRIMARY KEY (k, c)
//   ) WITH CLUSTERING ORDER BY (c ASC)
//       AND additional_write_policy = '99p'
//       AND ...
#include <algorithm>

#include "cql/grammar/ast_print.h"
#include "cql/prepare/describe.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/keyword.h"
#include "cql/types/literal.h"

namespace tetrad::cql {
namespace {

std::string quoted(std::string_view text) { return ast::quote_string(text); }

std::string map_text(const std::map<std::string, std::string>& map) {
  std::string out = "{";
  for (const auto& [key, value] : map) {
    out += fmt::format("{}{}: {}", out.size() == 1 ? "" : ", ", quoted(key), quoted(value));
  }
  return out + "}";
}

std::string extensions_text(const std::map<std::string, Bytes>& extensions) {
  std::string out = "{";
  for (const auto& [key, value] : extensions) {
    out += fmt::format("{}{}: 0x{}", out.size() == 1 ? "" : ", ", quoted(key), base::to_hex(value));
  }
  return out + "}";
}

/// A double as Java prints it: "1.0", "0.01".
// fmt prints the shortest text that reads back as the same number, as Java does, but without ".0".
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string short_class(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || !name.starts_with("org.apache.cassandra.locator.")
             ? name
             : name.substr(dot + 1);
}

std::string joined_names(std::span<const ColumnSchema> columns) {
  std::string out;
  for (const auto& column : columns)
    out += (out.empty() ? "" : ", ") + quote_identifier(column.name);
  return out;
}

/// PRIMARY KEY (…), as a line of its own.
std::string primary_key_line(const TableSchema& table) {
  const std::string partition = joined_names(table.partition_key());
  const bool alone = table.clustering().empty() || table.has_hidden_clustering();
  return fmt::format("    PRIMARY KEY ({}{}{})\n",
                     table.partition_key().size() > 1 ? "(" + partition + ")" : partition,
                     alone ? "" : ", ", alone ? "" : joined_names(table.clustering()));
}

/// What stands behind WITH, with the semicolon.
// In Cassandra's order. An option that is added needs its place here, or a schema that is restored
// from this text loses it.
void add_options(const TableSchema& table, bool internals, std::string& out) {
  const TableOptions& o = table.options;
  if (internals) out += "ID = " + table.id.to_string() + "\n    AND ";
  if (!table.clustering().empty()) {
    std::string order;
    for (const auto& column : table.clustering()) {
      order += fmt::format("{}{} {}", order.empty() ? "" : ", ", quote_identifier(column.name),
                           column.descending ? "DESC" : "ASC");
    }
    out += "CLUSTERING ORDER BY (" + order + ")\n    AND ";
  }
  out += "additional_write_policy = " + quoted(o.additional_write_policy);
  const auto add = [&out](std::string_view option, const std::string& value) {
    out += fmt::format("\n    AND {} = {}", option, value);
  };
  add("allow_auto_snapshot", o.allow_auto_snapshot ? "true" : "false");
  add("bloom_filter_fp_chance", real_text(o.bloom_filter_fp_chance));
  add("caching", map_text(o.caching));
  add("cdc", o.cdc ? "true" : "false");
  add("comment", quoted(o.comment));
  add("compaction", map_text(o.compaction));
  add("compression", map_text(o.compression));
  add("memtable", "'default'");
  if (o.throughput.autoscale_max != 0)
    add(kAutoscaleMaxThroughput, std::to_string(o.throughput.autoscale_max));
  if (o.throughput.provisioned != 0)
    add(kProvisionedThroughput, std::to_string(o.throughput.provisioned));
  add("crc_check_chance", real_text(o.crc_check_chance));
  if (!table.view) add("default_time_to_live", std::to_string(o.default_time_to_live_s));
  add("extensions", extensions_text(o.extensions));
  add("gc_grace_seconds", std::to_string(o.gc_grace_seconds.value_or(864'000)));
  add("incremental_backups", o.incremental_backups ? "true" : "false");
  add("max_index_interval", std::to_string(o.max_index_interval));
  add("memtable_flush_period_in_ms", std::to_string(o.memtable_flush_period_in_ms));
  add("min_index_interval", std::to_string(o.min_index_interval));
  add("read_repair", quoted(o.read_repair));
  add("speculative_retry", quoted(o.speculative_retry));
  if (o.initial_partitions != 0)
    add("tetrad_initial_partitions", std::to_string(o.initial_partitions));
  if (o.max_partition_mb != 0) add("tetrad_max_partition_mb", std::to_string(o.max_partition_mb));
  out += ";";
}

bool was_dropped(const TableSchema& table, const std::string& name) {
  return std::ranges::find(table.dropped_columns, name, &DroppedColumn::name) !=
         table.dropped_columns.end();
}

/// The column as CREATE TABLE and ALTER TABLE take it: `name type static`.
std::string column_text(const TableSchema& table, const std::string& name, const std::string& type,
                        ColumnKind kind) {
  const bool is_static = kind == ColumnKind::kStatic && !table.is_compact_storage;
  return fmt::format("{} {}{}", quote_identifier(name), type, is_static ? " static" : "");
}

/// With its mask, behind which PRIMARY KEY may stand.
std::string column_text(const TableSchema& table, const ColumnSchema& column) {
  return column_text(table, column.name, column.type->cql_text(), column.kind) +
         (column.mask ? " MASKED WITH " + column.mask->cql_text() : "");
}

/// A line for each column. With `internals` a column that was dropped, and perhaps added again,
/// stands there as it was before: what follows CREATE TABLE drops and adds it as it happened.
void add_columns(const TableSchema& table, bool internals, std::string& out) {
  const bool short_key = table.partition_key().size() == 1 && table.clustering().empty();
  std::vector<const ColumnSchema*> columns;
  for (const auto& column : table.columns()) {
    if (!column.hidden && !(internals && was_dropped(table, column.name)))
      columns.push_back(&column);
  }
  std::ranges::stable_sort(columns, [](const ColumnSchema* a, const ColumnSchema* b) {
    return described_before(*a, *b);
  });
  for (const ColumnSchema* column : columns) {
    out +=
        fmt::format("    {}{},\n", column_text(table, *column),
                    short_key && column->kind == ColumnKind::kPartitionKey ? " PRIMARY KEY" : "");
  }
  if (internals) {
    for (const DroppedColumn& dropped : table.dropped_columns)
      out += fmt::format("    {},\n",
                         column_text(table, dropped.name, dropped.type_text, dropped.kind));
  }
  if (short_key)
    out.erase(out.size() - 2, 1);
  else
    out += primary_key_line(table);
}

/// Columns that were dropped, and those of them that were added again.
void add_drops(const TableSchema& table, const std::string& name, std::string& out) {
  for (const DroppedColumn& dropped : table.dropped_columns) {
    out += fmt::format("\nALTER TABLE {} DROP {} USING TIMESTAMP {};", name,
                       quote_identifier(dropped.name), dropped.dropped_time_us);
    if (const ColumnSchema* const again = table.find(dropped.name))
      out += fmt::format("\nALTER TABLE {} ADD {};", name, column_text(table, *again));
  }
}

}  // namespace

std::string signature_text(const std::string& name, std::span<const TypePtr> argument_types) {
  std::string types;
  for (const TypePtr& type : argument_types) {
    types += (types.empty() ? "" : ", ") + type->cql_text_without_frozen();
  }
  return fmt::format("{}({})", quote_identifier(name), types);
}

// The two spaces before AND are Cassandra's.
std::string describe_keyspace(const KeyspaceSchema& keyspace) {
  if (is_listed_as_virtual(keyspace.name)) {
    return fmt::format(
        "/*\nWarning: Keyspace {} is a virtual keyspace and cannot be recreated with "
        "CQL.\nStructure, for "
        "reference:*/\n// VIRTUAL KEYSPACE {};",
        keyspace.name, keyspace.name);
  }
  std::map<std::string, std::string> replication = keyspace.replication;
  replication["class"] = short_class(replication["class"]);
  std::string out =
      fmt::format("CREATE KEYSPACE {} WITH replication = {}  AND durable_writes = {}",
                  quote_identifier(keyspace.name), map_text(replication), keyspace.durable_writes);
  const ThroughputSetting& throughput = keyspace.throughput;
  if (throughput.autoscale_max != 0)
    out += fmt::format(" AND {} = {}", kAutoscaleMaxThroughput, throughput.autoscale_max);
  if (throughput.provisioned != 0)
    out += fmt::format(" AND {} = {}", kProvisionedThroughput, throughput.provisioned);
  return out + ";";
}

std::string describe_type(const DataType& udt) {
  std::string fields;
  for (size_t i = 0; i < udt.field_names().size(); ++i) {
    fields += fmt::format("{}    {} {}", i == 0 ? "" : ",\n",
                          quote_identifier(udt.field_names()[i]), udt.components()[i]->cql_text());
  }
  return fmt::format("CREATE TYPE {}.{} (\n{}\n);", quote_identifier(udt.keyspace()),
                     quote_identifier(udt.name()), fields);
}

std::string describe_function(const FunctionSchema& function) {
  std::string arguments;
  for (size_t i = 0; i < function.argument_names.size(); ++i) {
    arguments +=
        fmt::format("{}{} {}", i == 0 ? "" : ", ", quote_identifier(function.argument_names[i]),
                    function.argument_types[i]->cql_text_without_frozen());
  }
  return fmt::format(
      "CREATE FUNCTION {}.{}({})\n    {} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS "
      "$${}$$;",
      quote_identifier(function.keyspace), quote_identifier(function.name), arguments,
      function.called_on_null_input ? "CALLED" : "RETURNS NULL",
      function.return_type->cql_text_without_frozen(), function.language, function.body);
}

std::string describe_aggregate(const AggregateSchema& aggregate) {
  std::string out = fmt::format(
      "CREATE AGGREGATE {}.{}\n    SFUNC {}\n    STYPE {}", quote_identifier(aggregate.keyspace),
      signature_text(aggregate.name, aggregate.argument_types),
      quote_identifier(aggregate.state_function), aggregate.state_type->cql_text_without_frozen());
  if (!aggregate.final_function.empty()) {
    out += "\n    FINALFUNC " + quote_identifier(aggregate.final_function);
  }
  if (aggregate.initial_condition) {
    out += "\n    INITCOND " + to_cql_literal(*aggregate.state_type, *aggregate.initial_condition);
  }
  return out + ";";
}

std::string describe_index(const TableSchema& table, const IndexSchema& index) {
  const bool is_custom = index.options.contains("class_name");
  std::string out = fmt::format("CREATE {}INDEX {} ON {}.{} ({})", is_custom ? "CUSTOM " : "",
                                quote_identifier(index.name), quote_identifier(table.keyspace),
                                quote_identifier(table.name), index.options.at("target"));
  if (!is_custom) return out + ";";
  out += " USING " + quoted(index.options.at("class_name"));
  std::map<std::string, std::string> options = index.options;
  options.erase("class_name");
  options.erase("target");
  if (!options.empty()) out += " WITH OPTIONS = " + map_text(options);
  return out + ";";
}

std::string describe_table(const TableSchema& table, bool internals) {
  const std::string name = quote_identifier(table.keyspace) + "." + quote_identifier(table.name);
  const bool compact = table.is_compact_storage;
  std::string out;
  const bool is_virtual = is_listed_as_virtual(table.keyspace);
  if (is_virtual) {
    out = fmt::format(
        "/*\nWarning: Table {} is a virtual table and cannot be recreated with CQL.\nStructure, "
        "for "
        "reference:\nVIRTUAL TABLE {} (\n",
        name, name);
  } else if (compact) {
    out = fmt::format(
        "/*\nWarning: Table {} omitted because it has constructs not compatible with CQL (was "
        "created via legacy API).\nApproximate structure, for reference:\n(this should not be used "
        "to reproduce this schema)\n\nCREATE TABLE {} (\n",
        name, name);
  } else {
    out = fmt::format("CREATE TABLE {} (\n", name);
  }
  add_columns(table, internals, out);
  out += ") WITH ";
  if (is_virtual) return out + "comment = " + quoted(table.options.comment) + ";\n*/";
  if (compact) out += "COMPACT STORAGE\n    AND ";
  add_options(table, internals, out);
  if (internals) add_drops(table, name, out);
  if (compact) out += "\n*/";
  return out;
}

std::string describe_view(const TableSchema& view, bool internals) {
  std::string columns = "*";
  if (!view.view->include_all_columns) {
    columns.clear();
    for (const ColumnSchema& column : view.columns())
      columns += (columns.empty() ? "" : ", ") + quote_identifier(column.name);
  }
  std::string out = fmt::format(
      "CREATE MATERIALIZED VIEW {}.{} AS\n    SELECT {}\n    FROM {}.{}\n    WHERE {}\n{} WITH ",
      quote_identifier(view.keyspace), quote_identifier(view.name), columns,
      quote_identifier(view.keyspace), quote_identifier(view.view->base_table), view.view->where,
      primary_key_line(view));
  add_options(view, internals, out);
  return out;
}

}  // namespace tetrad::cql
