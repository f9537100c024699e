// SPDX-License-Identifier: Apache-2.0
// DESCRIBE: schema objects as the statements that make them, byte for byte as Cassandra 5.0 prints
// them, since cqlsh prints them on and tools compare them.
//
// Preparing keeps only the tree. Running makes all rows from the request's snapshot of the schema,
// then answers the page that is wanted. The paging state is the schema's version and the number of
// the next row; a page of another version is refused, as in Cassandra.
#include "cql/prepare/describe.h"

#include <algorithm>

#include "cql/protocol/response.h"
#include "cql/schema/schema_text.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/keyword.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

using Target = ast::Describe::Target;

/// One row of an answer.
struct Row {
  std::string keyspace, type, name, statement;
};

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
    std::string key = function->name + signature_text(function->name, function->argument_types)
                                           .substr(quote_identifier(function->name).size());
    // ASCII only: names that are not quoted have no other letters.
    for (char& c : key) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    sorted.emplace(std::move(key), function.get());
  }
  for (const auto& [key, function] : sorted) {
    rows.push_back({quote_identifier(keyspace.name), std::string(type),
                    signature_text(function->name, function->argument_types),
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

/// Rows of indexes and views, which have a table but are listed by their own names.
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

/// The names of one kind of object of a keyspace; views are not among the tables.
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
      const auto began_with = reader.read_u64();
      const auto reached = reader.read_u64();
      if (!began_with || !reached || !reader.at_end())
        co_return fail(ErrorCode::kInvalid, "Incompatible paging state");
      first = *reached;
      if (*began_with != version) {
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
  /// Lists have names and no statements, so their rows lack the fourth column.
  bool is_list() const {
    return statement_.target == Target::kKeyspaces || statement_.target == Target::kTables ||
           statement_.target == Target::kTypes || statement_.target == Target::kFunctions ||
           statement_.target == Target::kAggregates;
  }

  // Cassandra's columns, in a table system.describe that does not exist.
  static ResultMetadataPtr metadata(bool with_statement) {
    std::vector<ColumnSpec> columns;
    for (const char* name : {"keyspace_name", "type", "name", "create_statement"}) {
      if (std::string_view(name) == "create_statement" && !with_statement) continue;
      columns.push_back({"system", "describe", name, text_type()});
    }
    return std::make_shared<const ResultMetadata>(std::move(columns));
  }

  /// The keyspace that the statement names, or the session's. Errors: kInvalid.
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

  /// All rows of the answer, whatever page is wanted: later pages make them anew.
  Result<std::vector<Row>> rows_of(const SchemaSnapshot& schema) const {
    std::vector<Row> rows;
    if (is_list()) {
      TETRAD_TRY_VOID(add_lists(rows, schema));
      return rows;
    }
    switch (statement_.target) {
      case Target::kSchema:
        for (const std::string& name : listed(schema.keyspaces())) {
          const KeyspaceSchema* const keyspace = schema.keyspace(name);
          if (statement_.full || !is_system(*keyspace))
            add_keyspace(rows, *keyspace, false, statement_.with_internals);
        }
        return rows;
      case Target::kKeyspace:
        TETRAD_TRY_VOID(add_one_keyspace(rows, schema));
        return rows;
      case Target::kGeneric:
        TETRAD_TRY_VOID(add_named(rows, schema));
        return rows;
      default:
        TETRAD_TRY_VOID(add_object(rows, schema));
        return rows;
    }
  }

  /// DESCRIBE KEYSPACES, TABLES, TYPES, FUNCTIONS or AGGREGATES: names without statements, of the
  /// current keyspace or, without one, of all. Errors: kInvalid, the current one was dropped.
  Result<void> add_lists(std::vector<Row>& rows, const SchemaSnapshot& schema) const {
    if (statement_.target == Target::kKeyspaces) {
      for (const std::string& listed_name : listed(schema.keyspaces())) {
        const std::string name = quote_identifier(listed_name);
        rows.push_back({name, "keyspace", name, ""});
      }
      return {};
    }
    if (!keyspace_.empty()) {
      TETRAD_TRY(const KeyspaceSchema* const keyspace, keyspace_named(schema));
      add_list(rows, *keyspace, statement_.target);
      return {};
    }
    for (const std::string& name : listed(schema.keyspaces()))
      add_list(rows, *schema.keyspace(name), statement_.target);
    return {};
  }

  /// DESCRIBE KEYSPACE x keeps x as the keyspace or as the name, as it was parsed.
  Result<void> add_one_keyspace(std::vector<Row>& rows, const SchemaSnapshot& schema) const {
    const std::string name = statement_.name ? statement_.name->text : "";
    const KeyspaceSchema* keyspace = nullptr;
    if (name.empty()) {
      TETRAD_TRY(keyspace, keyspace_named(schema));
    } else {
      keyspace = schema.keyspace(name);
      if (keyspace == nullptr) {
        TETRAD_TRY_VOID(schema.check_readable(keyspace_key(name)));
        return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", name);
      }
    }
    add_keyspace(rows, *keyspace, statement_.only, statement_.with_internals);
    return {};
  }

  /// DESCRIBE x: the keyspace x, or else the table, view or index x of a keyspace.
  Result<void> add_named(std::vector<Row>& rows, const SchemaSnapshot& schema) const {
    const bool internals = statement_.with_internals;
    const std::string& name = statement_.name->text;
    if (!statement_.keyspace) {
      if (const KeyspaceSchema* keyspace = schema.keyspace(name)) {
        add_keyspace(rows, *keyspace, false, internals);
        return {};
      }
      TETRAD_TRY_VOID(schema.check_readable(keyspace_key(name)));
      if (keyspace_.empty()) return fail(ErrorCode::kInvalid, "'{}' not found in keyspaces", name);
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
    return {};
  }

  /// DESCRIBE TABLE, TYPE, INDEX, MATERIALIZED VIEW, FUNCTION or AGGREGATE, with a name.
  Result<void> add_object(std::vector<Row>& rows, const SchemaSnapshot& schema) const {
    TETRAD_TRY(const KeyspaceSchema* const keyspace, keyspace_named(schema));
    const std::string& name = statement_.name->text;
    if (statement_.target == Target::kTable || statement_.target == Target::kView)
      return add_table_or_view(rows, schema, *keyspace, name);
    if (statement_.target == Target::kType) {
      TETRAD_TRY_VOID(schema.check_readable(type_key(keyspace->name, name)));
      const auto type = keyspace->types.find(name);
      if (type == keyspace->types.end()) {
        return fail(ErrorCode::kInvalid, "User defined type '{}' not found in '{}'", name,
                    keyspace->name);
      }
      rows.push_back({quote_identifier(keyspace->name), "type", quote_identifier(name),
                      describe_type(*type->second)});
      return {};
    }
    if (statement_.target == Target::kIndex) {
      if (add_index(rows, *keyspace, name)) return {};
      return fail(ErrorCode::kInvalid, "Table for existing index '{}' not found in '{}'", name,
                  keyspace->name);
    }
    if (statement_.target == Target::kFunction) {
      add_functions(rows, *keyspace, keyspace->functions, "function", &name, true);
    } else {
      add_functions(rows, *keyspace, keyspace->aggregates, "aggregate", &name, true);
    }
    if (!rows.empty()) return {};
    return fail(ErrorCode::kInvalid, "User defined {} '{}' not found in '{}'",
                statement_.target == Target::kFunction ? "function" : "aggregate", name,
                keyspace->name);
  }

  /// Tables and views are in one map; each is found under its own word only.
  Result<void> add_table_or_view(std::vector<Row>& rows, const SchemaSnapshot& schema,
                                 const KeyspaceSchema& keyspace, const std::string& name) const {
    const bool wants_view = statement_.target == Target::kView;
    TETRAD_TRY_VOID(schema.check_readable(table_key(keyspace.name, name)));
    const auto found = keyspace.tables.find(name);
    const bool is_known =
        found != keyspace.tables.end() && found->second->view.has_value() == wants_view;
    if (!is_known) {
      return wants_view ? fail(ErrorCode::kInvalid, "Materialized view '{}' not found in '{}'",
                               name, keyspace.name)
                        : fail(ErrorCode::kInvalid, "Table '{}' not found in keyspace '{}'", name,
                               keyspace.name);
    }
    if (wants_view)
      rows.push_back(row_of_view(*found->second, statement_.with_internals));
    else
      add_table(rows, keyspace, *found->second, statement_.with_internals);
    return {};
  }

  /// The nodes that have rows of the keyspace at a token; in an empty keyspace the token's own.
  static std::set<std::string> owners_at(const replication::MetaState& meta,
                                         const KeyspaceSchema& keyspace, int64_t token,
                                         HostId owner) {
    const auto endpoint = [&](HostId host) {
      const auto found = meta.nodes.find(host);
      return found == meta.nodes.end()
                 ? host.to_string()
                 : fmt::format("/{}:{}", found->second.address, found->second.internode_port);
    };
    std::set<HostId> owners;
    for (const auto& [name, schema] : keyspace.tables) {
      if (owners.size() == meta.nodes.size()) break;  // with many tables soon
      const replication::TableInfo* const table = meta.table(schema->id);
      if (table == nullptr) continue;
      for (const auto& replica : table->tablets.find({token, 0}).replicas)
        owners.insert(replica.host);
    }
    if (owners.empty()) owners.insert(owner);
    std::set<std::string> out;
    for (const HostId host : owners) out.insert(endpoint(host));
    return out;
  }

  /// DESCRIBE CLUSTER: one row, and for a keyspace of users also which nodes have which tokens
  /// (range_ownership).
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
          const auto owners = owners_at(*meta, *keyspace, token, host);
          const std::vector<BytesView> endpoints(owners.begin(), owners.end());
          ownership[std::to_string(token)] = join_list(endpoints);
        }
      }
      std::vector<std::pair<BytesView, BytesView>> entries(ownership.begin(), ownership.end());
      append_cell(result.cells, join_map(entries));
    }
    result.metadata = std::make_shared<const ResultMetadata>(std::move(columns));
    return StatementResult(std::move(result));
  }

  // Copied from the tree. keyspace_: the one in effect when it was prepared; "" if none.
  const ast::Describe statement_;
  const std::string keyspace_;
};

}  // namespace

Result<StatementPtr> prepare_describe(const ast::Describe& statement,
                                      const PrepareContext& context) {
  return std::make_shared<DescribeStatement>(statement, context.keyspace);
}

}  // namespace tetrad::cql
