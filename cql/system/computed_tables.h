// SPDX-License-Identifier: Apache-2.0
// The computed keyspaces as they are put together: a table is its columns and a function that gives
// its rows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/system/virtual_rows.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// Of one table; in any order, select_virtual_rows() sorts them.
using VirtualRows = std::vector<VirtualRow>;

/// The definitions of all computed tables of a shard. Filled when the system tables are made
/// (system_tables.cc), only read afterwards.
class ComputedTables {
 public:
  /// Gives at least the rows that the command wants. Errors: kInvalid for a command that the table
  /// cannot answer.
  using Source =
      std::function<Result<VirtualRows>(const SchemaSnapshot&, const storage::ReadCommand&)>;
  using WholeSource = std::function<VirtualRows(const SchemaSnapshot&)>;  // gives all rows
  /// Name, type, and kind where it is not regular: pk, ck, desc.
  using Column = std::vector<std::string>;

  /// `columns` in table order; the source's cells are in the same order.
  void define(const std::string& keyspace, const std::string& name, std::vector<Column> columns,
              Source source);
  void define(const std::string& keyspace, const std::string& name, std::vector<Column> columns,
              WholeSource source);
  /// Of a keyspace with tables; LocalStrategy otherwise.
  void set_replication(const std::string& keyspace, std::map<std::string, std::string> replication);
  /// What DESCRIBE says of a table that is defined; nothing where there is no such table.
  void set_comment(const std::string& keyspace, const std::string& name,
                   const std::string& comment);

  std::vector<std::shared_ptr<const KeyspaceSchema>> keyspaces() const;
  /// Null: no such table. Its rows have their cells in the order of TableSchema::columns().
  const Source* source(TableIncarnation incarnation) const;

 private:
  std::map<std::string, KeyspaceSchema> keyspaces_;
  std::unordered_map<TableIncarnation, Source> sources_;
};

/// A source that is always empty.
inline VirtualRows no_rows(const SchemaSnapshot&) { return {}; }

/// system_schema and system_virtual_schema.
void define_schema_tables(ComputedTables& tables);

/// system_auth.
void define_role_tables(ComputedTables& tables);

/// Tables that Cassandra's system keyspaces have, and that never have a row here.
void define_empty_tables(ComputedTables& tables);
/// The same of system_views.
void define_empty_views(ComputedTables& tables);
/// Tables about indexes, beside system_schema.indexes.
void define_index_tables(ComputedTables& tables);

/// Of the tables of system_tetrad, once all are defined.
void comment_own_tables(ComputedTables& tables);

/// Cells from what the server's own code holds.
namespace cells {
inline const VirtualCell kNull = std::nullopt;
inline VirtualCell text(std::string_view value) { return Bytes(value); }
inline VirtualCell number(int32_t value) { return make_int(value); }
inline VirtualCell big(int64_t value) { return make_bigint(value); }
inline VirtualCell count(uint64_t value) { return big(static_cast<int64_t>(value)); }
inline VirtualCell uuid(const Uuid& value) { return make_uuid(value); }
inline VirtualCell flag(bool value) { return make_boolean(value); }
inline VirtualCell real(double value) { return make_double(value); }
/// Null when it is no address.
VirtualCell inet(const std::string& address);
/// Without those that are none.
VirtualCell inet_set(const std::vector<std::string>& addresses);
VirtualCell text_set(std::vector<std::string> values);
VirtualCell text_list(const std::vector<std::string>& values);
VirtualCell text_map(const std::map<std::string, std::string>& map);
}  // namespace cells

}  // namespace tetrad::cql
