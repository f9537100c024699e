// SPDX-License-Identifier: Apache-2.0
// DESCRIBE: schema objects as the statements that make them, byte for byte as Cassandra 5.0 prints
// them, since cqlsh prints them on and tools compare them.
//
// Preparing keeps only the tree. Running makes all rows from the request's snapshot of the schema,
// then answers the page that is wanted. The paging state is the schema's version and the number of
// the next row; a page of another version is refused, as in Cassandra.
#include "cql/prepare/describe.h"

#include <algorithm>

#include "cql/grammar/ast_print.h"
#include "cql/protocol/response.h"
#include "cql/schema/schema_text.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/keyword.h"
#include "cql/types/literal.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

using Target = ast::Describe::Target;

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

/// One row of an answer.
struct Row {
  std::string keyspace, type, name, statement;
};

/// `name(int, text)`, as functions are listed.
template <class Function>
std::string signature_of(const Function& function) {
  std::string types;
  for (const TypePtr& type : function.argument_types) {
    types += (types.empty() ? "" : ", ") + type->cql_text_without_frozen();
  }
  return fmt::format("{}({})", quote_identifier(function.name), types);
}

std::string describe(const FunctionSchema& function) { return describe_function(function); }
std::string describe(const AggregateSchema& aggregate) { return describe_aggregate(aggregate); }

/// All overloads of `name`, or all there are, in the order in which Cassandra lists them.
template <class Function>
void add_functions(std::vector<Row>& rows, const KeyspaceSchema& keyspace,
                   const std::vector<std::shared_ptr<const Function>>& functions,
                   std::string_view type, const std::string* name, bool with_statement) {
  std::map<std::string, const Function*> sorted;
  for (const auto& function : functions) {
    if (name != nullptr && function->name != *name) continue;
    std::string key =
        function->name + signature_of(*function).substr(quote_identifier(function->name).size());
    // ASCII only: names that are not quoted have no other letters.
    for (char& c : key) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    sorted.emplace(std::move(key), function.get());
  }
  for (const auto& [key, function] : sorted) {
    rows.push_back({quote_identifier(keyspace.name), std::string(type), signature_of(*function),
                    with_statement ? describe(*function) : std::string()});
  }
}

/// Named without regard to case.
std::string lower_name(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

Row row_of(const TableSchema& table, const IndexSchema& index) {
  return {quote_identifier(table.keyspace), "index", quote_identifier(index.name),
          describe_index(table, index)};
}

Row row_of_view(const TableSchema& view, bool internals) {
  return {quote_identifier(view.keyspace), "materialized_view", quote_identifier(view.name),
          describe_view(view, internals)};
}

/// With its indexes and views.
void add_table(std::vector<Row>& rows, const KeyspaceSchema& keyspace, const TableSchema& table,
               bool internals) {
  rows.push_back({quote_identifier(table.keyspace), "table", quote_identifier(table.name),
                  describe_table(table, internals)});
  std::multimap<std::string, const IndexSchema*> sorted;
  for (const IndexSchema& index : table.indexes) sorted.emplace(lower_name(index.name), &index);
  for (const auto& [key, index] : sorted) rows.push_back(row_of(table, *index));
  for (const std::string& name : table.views)
    if (const auto view = keyspace.tables.find(name); view != keyspace.tables.end())
      rows.push_back(row_of_view(*view->second, internals));
}

/// False: no table of the keyspace has an index of that name.
bool add_index(std::vector<Row>& rows, const KeyspaceSchema& keyspace, const std::string& name) {
  for (const auto& [table_name, table] : keyspace.tables) {
    for (const IndexSchema& index : table->indexes) {
      if (index.name != name) continue;
      rows.push_back(row_of(*table, index));
      return true;
    }
  }
  return false;
}

/// Names in the order in which Cassandra lists them: without regard to case.
template <class Map>
std::vector<std::string> listed(const Map& named) {
  std::vector<std::string> names;
  for (const auto& [name, value] : named) names.push_back(name);
  std::ranges::stable_sort(names, {}, lower_name);
  return names;
}

void add_list(std::vector<Row>& rows, const KeyspaceSchema& keyspace, Target target) {
  const auto add = [&](std::string_view type, const std::string& name) {
    rows.push_back(
        {quote_identifier(keyspace.name), std::string(type), quote_identifier(name), ""});
  };
  if (target == Target::kTables) {
    for (const std::string& name : listed(keyspace.tables))
      if (!keyspace.tables.find(name)->second->view) add("table", name);
  } else if (target == Target::kTypes) {
    for (const std::string& name : listed(keyspace.types)) add("type", name);
  } else if (target == Target::kFunctions) {
    add_functions(rows, keyspace, keyspace.functions, "function", nullptr, false);
  } else if (target == Target::kAggregates) {
    add_functions(rows, keyspace, keyspace.aggregates, "aggregate", nullptr, false);
  }
}

// Types before what uses them, then functions, aggregates and tables: the statements can be run in
// this order.
void add_keyspace(std::vector<Row>& rows, const KeyspaceSchema& keyspace, bool only,
                  bool internals) {
  rows.push_back({quote_identifier(keyspace.name), "keyspace", quote_identifier(keyspace.name),
                  describe_keyspace(keyspace)});
  if (only) return;
  for (const std::string& name : keyspace.types_in_dependency_order) {
    rows.push_back({quote_identifier(keyspace.name), "type", quote_identifier(name),
                    describe_type(*keyspace.types.at(name))});
  }
  add_functions(rows, keyspace, keyspace.functions, "function", nullptr, true);
  add_functions(rows, keyspace, keyspace.aggregates, "aggregate", nullptr, true);
  for (const std::string& name : listed(keyspace.tables)) {
    const auto table = keyspace.tables.find(name);
    if (!table->second->view) add_table(rows, keyspace, *table->second, internals);
  }
}

/// A description that is paged by row number; the schema it began with must still hold.
class DescribeStatement final : public Statement {
 public:
  DescribeStatement(ast::Describe statement, std::string keyspace)
      : statement_(std::move(statement)), keyspace_(std::move(keyspace)) {}

  // Nothing of the schema is kept in the statement.
  bool is_current(const SchemaSnapshot&) const override { return true; }
  void required_access(RequiredAccess&) const override {}  // as Cassandra: whoever logged in

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_read({}, context.options.consistency);
    if (statement_.target == Target::kCluster) co_return describe_cluster(context);
    TETRAD_CO_TRY(const std::vector<Row> rows, rows_of(*context.schema));
    const bool with_statement = !is_list();
    size_t first = 0;
    const uint64_t version = context.schema->version().value;
    if (context.options.paging_position) {
      base::ByteReader reader(*context.options.paging_position);
      // Paging states are client input: a short one is an error, not a crash.
      TETRAD_CO_TRY(const uint64_t began_with, reader.read_u64());
      TETRAD_CO_TRY(first, reader.read_u64());
      if (began_with != version) {
        co_return fail(ErrorCode::kInvalid,
                       "The schema has changed since the previous page of the DESCRIBE statement "
                       "result. Please retry "
                       "the DESCRIBE statement.");
      }
    }
    const size_t page = context.options.page_size > 0
                            ? static_cast<size_t>(context.options.page_size)
                            : rows.size();
    RowsResult result;
    result.metadata = metadata(with_statement);
    for (size_t i = first; i < rows.size() && i - first < page; ++i) {
      for (const std::string* cell : {&rows[i].keyspace, &rows[i].type, &rows[i].name})
        append_cell(result.cells, *cell);
      if (with_statement) append_cell(result.cells, rows[i].statement);
      ++result.row_count;
    }
    if (first + result.row_count < rows.size()) {
      Bytes next;
      base::ByteWriter writer(next);
      writer.u64(version);
      writer.u64(first + result.row_count);
      result.next_position = std::move(next);
    }
    co_return StatementResult(std::move(result));
  }

 private:
  bool is_list() const {
    return statement_.target == Target::kKeyspaces || statement_.target == Target::kTables ||
           statement_.target == Target::kTypes || statement_.target == Target::kFunctions ||
           statement_.target == Target::kAggregates;
  }

  static ResultMetadataPtr metadata(bool with_statement) {
    std::vector<ColumnSpec> columns;
    for (const char* name : {"keyspace_name", "type", "name", "create_statement"}) {
      if (std::string_view(name) == "create_statement" && !with_statement) continue;
      columns.push_back({"system", "describe", name, text_type()});
    }
    return std::make_shared<const ResultMetadata>(std::move(columns));
  }

  Result<const KeyspaceSchema*> keyspace_named(const SchemaSnapshot& schema) const {
    const std::string name = statement_.keyspace ? statement_.keyspace->text : keyspace_;
    if (name.empty())
      return fail(ErrorCode::kInvalid, "No keyspace specified and no current keyspace");
    const KeyspaceSchema* keyspace = schema.keyspace(name);
    if (keyspace == nullptr) {
      // The object may be in the metadata and not read: that error comes before "not found".
      TETRAD_TRY_VOID(schema.check_readable(keyspace_key(name)));
      return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", name);
    }
    return keyspace;
  }

  Result<std::vector<Row>> rows_of(const SchemaSnapshot& schema) const {
    std::vector<Row> rows;
    const bool internals = statement_.with_internals;
    switch (statement_.target) {
      case Target::kKeyspaces:
        for (const std::string& listed_name : listed(schema.keyspaces())) {
          const std::string name = quote_identifier(listed_name);
          rows.push_back({name, "keyspace", name, ""});
        }
        return rows;
      case Target::kTables:
      case Target::kTypes:
      case Target::kFunctions:
      case Target::kAggregates: {
        if (!keyspace_.empty()) {
          if (const KeyspaceSchema* keyspace = schema.keyspace(keyspace_))
            add_list(rows, *keyspace, statement_.target);
          return rows;
        }
        for (const std::string& name : listed(schema.keyspaces()))
          add_list(rows, *schema.keyspace(name), statement_.target);
        return rows;
      }
      case Target::kSchema:
        for (const std::string& name : listed(schema.keyspaces())) {
          const KeyspaceSchema* const keyspace = schema.keyspace(name);
          if (statement_.full || !is_system(*keyspace))
            add_keyspace(rows, *keyspace, false, internals);
        }
        return rows;
      case Target::kKeyspace: {
        // DESCRIBE KEYSPACE x keeps x as the keyspace or as the name, as it was parsed.
        const std::string name = statement_.name ? statement_.name->text : "";
        if (!name.empty()) {
          const KeyspaceSchema* keyspace = schema.keyspace(name);
          if (keyspace == nullptr) {
            TETRAD_TRY_VOID(schema.check_readable(keyspace_key(name)));
            return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", name);
          }
          add_keyspace(rows, *keyspace, statement_.only, internals);
          return rows;
        }
        TETRAD_TRY(const KeyspaceSchema* const keyspace, keyspace_named(schema));
        add_keyspace(rows, *keyspace, statement_.only, internals);
        return rows;
      }
      case Target::kGeneric: {
        const std::string& name = statement_.name->text;
        if (!statement_.keyspace) {
          if (const KeyspaceSchema* keyspace = schema.keyspace(name)) {
            add_keyspace(rows, *keyspace, false, internals);
            return rows;
          }
          TETRAD_TRY_VOID(schema.check_readable(keyspace_key(name)));
          if (keyspace_.empty())
            return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", name);
        }
        const std::string in = statement_.keyspace ? statement_.keyspace->text : keyspace_;
        TETRAD_TRY_VOID(schema.check_readable(keyspace_key(in)));
        if (schema.keyspace(in) == nullptr)
          return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", in);
        const TablePtr table = schema.table(in, name);
        TETRAD_TRY_VOID(schema.check_readable(table_key(in, name)));
        if (table != nullptr && table->view) {
          rows.push_back(row_of_view(*table, internals));
        } else if (table != nullptr) {
          add_table(rows, *schema.keyspace(in), *table, internals);
        } else if (!add_index(rows, *schema.keyspace(in), name)) {
          return fail(ErrorCode::kInvalid, "'{}' not found in keyspace '{}'", name, in);
        }
        return rows;
      }
      default:
        break;
    }
    TETRAD_TRY(const KeyspaceSchema* const keyspace, keyspace_named(schema));
    const std::string& name = statement_.name->text;
    if (statement_.target == Target::kTable) {
      TETRAD_TRY_VOID(schema.check_readable(table_key(keyspace->name, name)));
      const auto table = keyspace->tables.find(name);
      if (table == keyspace->tables.end() || table->second->view) {
        return fail(ErrorCode::kInvalid, "Table '{}' not found in keyspace '{}'", name,
                    keyspace->name);
      }
      add_table(rows, *keyspace, *table->second, internals);
      return rows;
    }
    if (statement_.target == Target::kType) {
      TETRAD_TRY_VOID(schema.check_readable(type_key(keyspace->name, name)));
      const auto type = keyspace->types.find(name);
      if (type == keyspace->types.end()) {
        return fail(ErrorCode::kInvalid, "User defined type '{}' not found in '{}'", name,
                    keyspace->name);
      }
      rows.push_back({quote_identifier(keyspace->name), "type", quote_identifier(name),
                      describe_type(*type->second)});
      return rows;
    }
    if (statement_.target == Target::kIndex) {
      if (add_index(rows, *keyspace, name)) return rows;
      return fail(ErrorCode::kInvalid, "Table for existing index '{}' not found in '{}'", name,
                  keyspace->name);
    }
    if (statement_.target == Target::kView) {
      TETRAD_TRY_VOID(schema.check_readable(table_key(keyspace->name, name)));
      const auto view = keyspace->tables.find(name);
      if (view != keyspace->tables.end() && view->second->view) {
        rows.push_back(row_of_view(*view->second, internals));
        return rows;
      }
      return fail(ErrorCode::kInvalid, "Materialized view '{}' not found in '{}'", name,
                  keyspace->name);
    }
    if (statement_.target == Target::kFunction) {
      add_functions(rows, *keyspace, keyspace->functions, "function", &name, true);
    } else {
      add_functions(rows, *keyspace, keyspace->aggregates, "aggregate", &name, true);
    }
    if (!rows.empty()) return rows;
    return fail(ErrorCode::kInvalid, "User defined {} '{}' not found in '{}'",
                statement_.target == Target::kFunction ? "function" : "aggregate", name,
                keyspace->name);
  }

  Result<StatementResult> describe_cluster(ExecuteContext& context) const {
    const replication::MetaSnapshot meta = context.meta.snapshot();
    std::vector<ColumnSpec> columns;
    for (const char* name : {"cluster", "partitioner", "snitch"}) {
      columns.push_back({"system", "describe", name, text_type()});
    }
    RowsResult result;
    result.row_count = 1;
    append_cell(result.cells, meta->cluster_name);
    append_cell(result.cells, "Murmur3Partitioner");
    append_cell(result.cells, "GossipingPropertyFileSnitch");
    const KeyspaceSchema* keyspace =
        keyspace_.empty() ? nullptr : context.schema->keyspace(keyspace_);
    if (keyspace != nullptr && !is_system(*keyspace)) {
      columns.push_back({"system", "describe", "range_ownership",
                         make_map(text_type(), make_list(text_type(), true), false)});
      std::map<std::string, Bytes> ownership;  // token text → list of endpoints
      for (const auto& [host, node] : meta->nodes) {
        if (node.state != replication::NodeState::kNormal) continue;
        for (const int64_t token : node.tokens) {
          const std::string endpoint = fmt::format("/{}:{}", node.address, node.internode_port);
          const BytesView one[] = {endpoint};
          ownership[std::to_string(token)] = join_list(one);
        }
      }
      std::vector<std::pair<BytesView, BytesView>> entries(ownership.begin(), ownership.end());
      append_cell(result.cells, join_map(entries));
    }
    result.metadata = std::make_shared<const ResultMetadata>(std::move(columns));
    return StatementResult(std::move(result));
  }

  const ast::Describe statement_;
  const std::string keyspace_;
};

}  // namespace

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
  std::string out = fmt::format("CREATE AGGREGATE {}.{}\n    SFUNC {}\n    STYPE {}",
                                quote_identifier(aggregate.keyspace), signature_of(aggregate),
                                quote_identifier(aggregate.state_function),
                                aggregate.state_type->cql_text_without_frozen());
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

/// A line for each column. With `internals` a column that was dropped, and perhaps added again, stands
/// there as it was before: what follows CREATE TABLE drops and adds it as it happened.
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

Result<StatementPtr> prepare_describe(const ast::Describe& statement,
                                      const PrepareContext& context) {
  return std::make_shared<DescribeStatement>(statement, context.keyspace);
}

}  // namespace tetrad::cql
