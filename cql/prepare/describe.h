// SPDX-License-Identifier: Apache-2.0
// DESCRIBE, answered by the server: what cqlsh 6 sends as it was typed. Its CREATE statements run
// again.
#pragma once

#include <span>
#include <string>

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

Result<StatementPtr> prepare_describe(const ast::Describe& statement,
                                      const PrepareContext& context);

// The texts (describe_text.cc), in Cassandra 5.0's layout. Each ends with a semicolon and can be
// run, but for virtual keyspaces and compact tables, which stand in a comment as in Cassandra.
std::string describe_keyspace(const KeyspaceSchema& keyspace);
std::string describe_type(const DataType& udt);
std::string describe_function(const FunctionSchema& function);
std::string describe_aggregate(const AggregateSchema& aggregate);
/// `internals`: WITH INTERNALS adds the id and what was dropped.
std::string describe_table(const TableSchema& table, bool internals);
/// Of a table that is a view.
std::string describe_view(const TableSchema& view, bool internals);
/// `name(int, text)`, as functions are listed.
std::string signature_text(const std::string& name, std::span<const TypePtr> argument_types);
std::string describe_index(const TableSchema& table, const IndexSchema& index);

}  // namespace tetrad::cql
