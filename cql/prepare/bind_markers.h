// SPDX-License-Identifier: Apache-2.0
// What the bind markers of a statement stand for: name and type of each, and which of them give the
// partition key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cql/grammar/ast_terms.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

/// What a term is for: its name in messages and marker specs, the type wanted, and the column
/// itself when it is one.
struct Receiver {
  std::string name;
  TypePtr type;
  const ColumnSchema* column = nullptr;

  static Receiver of(const ColumnSchema& column) { return {column.name, column.type, &column}; }
};

/// Collects what each bind marker of a statement is for while the statement is prepared. Every
/// marker is recorded once.
class BindMarkers {
 public:
  explicit BindMarkers(size_t count) : specs_(count), columns_(count, nullptr) {}

  /// Every marker gets here once. A named marker keeps its own name, another takes the receiver's.
  void record(const ast::BindMarker& marker, const TableSchema& table, const Receiver& receiver);
  /// For statements without a table (the attributes of a batch).
  void record(const ast::BindMarker& marker, std::string keyspace, std::string table,
              const Receiver& receiver);

  /// For each column of the partition key the last marker that gives it; empty when one has none.
  std::vector<uint16_t> partition_key_indexes(const TableSchema& table) const;
  /// The specifications by marker index, for the metadata of PREPARED.
  std::vector<ColumnSpec> take() && { return std::move(specs_); }

 private:
  // By marker index, in the order of the text. A column is null where the marker is for something
  // else.
  std::vector<ColumnSpec> specs_;
  std::vector<const ColumnSchema*> columns_;
};

}  // namespace tetrad::cql
