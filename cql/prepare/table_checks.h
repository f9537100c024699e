// SPDX-License-Identifier: Apache-2.0
// What CREATE TABLE and ALTER TABLE check alike.
#pragma once

#include "cql/prepare/schema_plan.h"

namespace tetrad::cql {

/// The answer to a change of a table.
SchemaChange table_changed(SchemaChange::Kind kind, const std::string& keyspace,
                           const std::string& table);

/// The keyspace of a table's name if it may be changed; null: there is none. Its name goes to
/// `keyspace_name` in any case.
Result<const KeyspaceSchema*> keyspace_for_table(const ast::QualifiedName& name,
                                                 const PlanInput& input,
                                                 std::string& keyspace_name);
/// Null: there is none.
TablePtr find_table(const KeyspaceSchema* keyspace, const std::string& name);

/// A table or a type as errors name it: with quotes where its names need them.
std::string shown_name(const std::string& keyspace, const std::string& name);
/// A type as errors about a type that it has inside name it: user types with their keyspace.
std::string shown_type(const DataType& type);
/// There is no such column in the table.
std::unexpected<Error> undefined_column(const std::string& column, const TableSchema& table);

/// CLUSTERING ORDER BY names no column twice. `what`: "table" or "view". Before all else of CREATE:
/// Cassandra finds it while it reads the statement.
Result<void> check_ordered_once(const std::vector<ast::ClusteringOrder>& orders,
                                std::string_view what, const std::string& name);
/// A user type that is not frozen cannot hold what is not.
Result<void> check_nesting(const DataType& type);
/// The guardrail columns_per_table.
Result<void> check_column_count(const std::string& table, size_t columns, const PlanInput& input);
/// The properties without those that the guardrail table_properties ignores. Errors: kInvalid, it
/// refuses one.
Result<ast::Properties> guarded_properties(const ast::Properties& properties,
                                           const PlanInput& input);
/// The guardrail on tables without compression.
Result<void> check_compressed(const TableOptions& options, const PlanInput& input);

}  // namespace tetrad::cql
