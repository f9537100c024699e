// SPDX-License-Identifier: Apache-2.0
// Schema objects as the text that the metadata group keeps: JSON, with types in CQL. What one
// version of the program writes the next ones read: fields are only ever added.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

// Keys of schema objects.
std::string keyspace_key(std::string_view keyspace);
std::string table_key(std::string_view keyspace, std::string_view table);
std::string type_key(std::string_view keyspace, std::string_view type);

std::string function_key(std::string_view keyspace, std::string_view name,
                         std::span<const TypePtr> argument_types);
std::string aggregate_key(std::string_view keyspace, std::string_view name,
                          std::span<const TypePtr> argument_types);

std::string keyspace_text(const KeyspaceSchema& keyspace);
/// Name, replication and durable_writes only. Errors: kCorruption.
Result<KeyspaceSchema> read_keyspace_text(const std::string& text);

/// All but the incarnation, which the metadata group assigns.
std::string table_text(const TableSchema& table);
Result<std::shared_ptr<TableSchema>> read_table_text(const std::string& text,
                                                     const UdtResolver& resolve_udt);

std::string type_text(const DataType& udt);
/// A type's fields may name others of its keyspace. Errors: kCorruption, kNotFound (a type it needs
/// is not there yet).
Result<TypePtr> read_type_text(const std::string& text, const UdtResolver& resolve_udt);

std::string function_text(const FunctionSchema& function);
Result<FunctionPtr> read_function_text(const std::string& text, const UdtResolver& resolve_udt);
std::string aggregate_text(const AggregateSchema& aggregate);
Result<AggregatePtr> read_aggregate_text(const std::string& text, const UdtResolver& resolve_udt);

}  // namespace tetrad::cql
