// SPDX-License-Identifier: Apache-2.0
// Schema objects as the text that the metadata group keeps: JSON, with types in CQL. What one
// version of the program writes the next ones read: fields are only ever added.
//
// Examples:
//   keyspace/k     {"durable_writes":true,"format":1,"name":"k","replication":{"class":"…"}}
//   type/ks/t      {"fields":[{"name":"a","type":"int"}],"format":1,"keyspace":"ks","name":"t"}
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

// Keys of schema objects.
// "keyspace/ks", "table/ks/t", "type/ks/t": kind and names, joined by slashes, which no name has.
std::string keyspace_key(std::string_view keyspace);
std::string table_key(std::string_view keyspace, std::string_view table);
std::string type_key(std::string_view keyspace, std::string_view type);

/// "function/ks/f(int, text)": each overload is an object of its own.
std::string function_key(std::string_view keyspace, std::string_view name,
                         std::span<const TypePtr> argument_types);
std::string aggregate_key(std::string_view keyspace, std::string_view name,
                          std::span<const TypePtr> argument_types);

std::string keyspace_text(const KeyspaceSchema& keyspace);
/// Name, replication and durable_writes only. Errors: kCorruption.
Result<KeyspaceSchema> read_keyspace_text(const std::string& text);

/// All but the incarnation, which the metadata group assigns.
std::string table_text(const TableSchema& table);
/// The types of its columns are resolved with `resolve_udt`, so those of the keyspace are read
/// before. Errors: kCorruption, and kInvalid for a type that is not there.
Result<std::shared_ptr<TableSchema>> read_table_text(const std::string& text,
                                                     const UdtResolver& resolve_udt);

/// `udt` is a user type; its fields in order, each with its type in CQL.
std::string type_text(const DataType& udt);
/// A type's fields may name others of its keyspace. Errors: kCorruption, kNotFound (a type it needs
/// is not there yet).
Result<TypePtr> read_type_text(const std::string& text, const UdtResolver& resolve_udt);

/// The body stays a text; it is compiled by whoever runs it. Errors of reading: as of tables.
std::string function_text(const FunctionSchema& function);
Result<FunctionPtr> read_function_text(const std::string& text, const UdtResolver& resolve_udt);
std::string aggregate_text(const AggregateSchema& aggregate);
Result<AggregatePtr> read_aggregate_text(const std::string& text, const UdtResolver& resolve_udt);

}  // namespace tetrad::cql
