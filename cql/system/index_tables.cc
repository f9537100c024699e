// SPDX-License-Identifier: Apache-2.0
#include "cql/system/index_tables.h"

#include "cql/index/index_options.h"

namespace tetrad::cql {
namespace {

using namespace cells;

template <class Visit>
void for_each_index(const SchemaSnapshot& schema, Visit visit) {
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      for (const IndexSchema& index : table->indexes) visit(*table, index);
    }
  }
}

const char* truth(bool value) { return value ? "true" : "false"; }

/// What Cassandra calls that which makes terms of values.
std::string analyzer_text(const IndexSchema& index) {
  const auto analysis = text_analysis(index.options);
  const bool named = index.options.contains("case_sensitive") ||
                     index.options.contains("normalize") || index.options.contains("ascii");
  if (!analysis || !named) return "NoOpAnalyzer";
  return fmt::format("NonTokenizingAnalyzer{{caseSensitive={}, normalized={}, ascii={}}}",
                     truth(analysis->case_sensitive), truth(analysis->normalize),
                     truth(analysis->ascii));
}

}  // namespace

std::vector<ComputedTables::Column> sai_index_columns() {
  return {
      {"keyspace_name", "text", "pk"}, {"index_name", "text", "ck"}, {"analyzer", "text"},
      {"column_name", "text"},         {"is_building", "boolean"},   {"is_queryable", "boolean"},
      {"is_string", "boolean"},        {"table_name", "text"}};
}

VirtualRows sai_index_rows(const SchemaSnapshot& schema, const UnbuiltIndexes& unbuilt) {
  VirtualRows rows;
  for_each_index(schema, [&](const TableSchema& table, const IndexSchema& index) {
    const ColumnSchema* const column = table.find(index.column);
    if (index.index_class != IndexClass::kSai || column == nullptr) return;
    const bool is_literal = is_literal_term(indexed_type(*column->type, index.target).get());
    rows.push_back({text(table.keyspace), text(index.name), text(analyzer_text(index)),
                    text(index.column), flag(unbuilt.contains({table.incarnation, index.id})),
                    flag(true), flag(is_literal), text(table.name)});
  });
  return rows;
}

std::vector<ComputedTables::Column> built_index_columns() {
  return {{"table_name", "text", "pk"}, {"index_name", "text", "ck"}, {"value", "blob"}};
}

VirtualRows built_index_rows(const SchemaSnapshot& schema, const UnbuiltIndexes& unbuilt) {
  VirtualRows rows;
  for_each_index(schema, [&](const TableSchema& table, const IndexSchema& index) {
    if (!unbuilt.contains({table.incarnation, index.id}))
      rows.push_back({text(table.keyspace), text(index.name), kNull});
  });
  return rows;
}

// Where no server knows better, what the schema has is built.
void define_index_tables(ComputedTables& tables) {
  tables.define("system", "IndexInfo", built_index_columns(),
                [](const SchemaSnapshot& schema) { return built_index_rows(schema, {}); });
  tables.define("system_views", "sai_column_indexes", sai_index_columns(),
                [](const SchemaSnapshot& schema) { return sai_index_rows(schema, {}); });
}

}  // namespace tetrad::cql
