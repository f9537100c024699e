// SPDX-License-Identifier: Apache-2.0
// What the plans for tables, views and indexes share: where a table is, and what columns and
// options it may have. Each check stands in a plan where Cassandra makes it.
#include "cql/prepare/table_checks.h"

#include <algorithm>
#include <set>

#include "cql/types/keyword.h"

namespace tetrad::cql {

SchemaChange table_changed(SchemaChange::Kind kind, const std::string& keyspace,
                           const std::string& table) {
  return SchemaChange{kind, SchemaChange::Target::kTable, keyspace, table, {}};
}

Result<const KeyspaceSchema*> keyspace_for_table(const ast::QualifiedName& name,
                                                 const PlanInput& input,
                                                 std::string& keyspace_name) {
  TETRAD_TRY(keyspace_name, keyspace_of(name, input));
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  return input.schema.keyspace(keyspace_name);
}

std::string shown_name(const std::string& keyspace, const std::string& name) {
  return quote_identifier(keyspace) + "." + quote_identifier(name);
}

std::string shown_type(const DataType& type) {
  const auto frozen = [&type](std::string text) {
    const bool is_marked = !type.is_multi_cell() && type.kind() != TypeKind::kTuple &&
                           type.kind() != TypeKind::kVector;
    return is_marked ? "frozen<" + text + ">" : text;
  };
  // Cassandra does not quote it here.
  if (type.kind() == TypeKind::kUdt) return frozen(type.keyspace() + "." + type.name());
  if (!type.references_udt()) return type.cql_text();
  std::string parts;
  for (const TypePtr& part : type.components())
    parts += (parts.empty() ? "" : ", ") + shown_type(*part);
  if (type.kind() == TypeKind::kVector) parts += fmt::format(", {}", type.dimension());
  const std::string text = type.cql_text_without_frozen();
  return frozen(fmt::format("{}<{}>", text.substr(0, text.find('<')), parts));
}

std::unexpected<Error> undefined_column(const std::string& column, const TableSchema& table) {
  return fail(ErrorCode::kInvalid, "Undefined column name {} in table {}", quote_identifier(column),
              shown_name(table.keyspace, table.name));
}

Result<void> check_ordered_once(const std::vector<ast::ClusteringOrder>& orders,
                                std::string_view what, const std::string& name) {
  std::set<std::string> seen;
  for (const auto& order : orders) {
    if (seen.insert(order.column.text).second) continue;
    return fail(ErrorCode::kInvalid,
                "Duplicate column '{}' in CLUSTERING ORDER BY clause for {} '{}'",
                order.column.text, what, name);
  }
  return {};
}

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

// Sorted, so that a warning or error lists the names in one order.
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

// `options` as check_compression() left them: no compression is always {enabled: false}.
Result<void> check_compressed(const TableOptions& options, const PlanInput& input) {
  const auto found = options.compression.find("enabled");
  return check_enabled(input.settings.guardrails.uncompressed_tables ||
                           found == options.compression.end() || found->second != "false",
                       "uncompressed_tables_enabled", "Uncompressed table");
}

}  // namespace tetrad::cql
