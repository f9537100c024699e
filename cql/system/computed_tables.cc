// SPDX-License-Identifier: Apache-2.0
// Definitions of computed tables become the same TableSchema objects as tables of users have, so
// preparing and the schema tables treat them alike.
#include "cql/system/computed_tables.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "cql/protocol/inet.h"

namespace tetrad::cql {

void ComputedTables::define(const std::string& keyspace, const std::string& name,
                            std::vector<Column> columns, Source source) {
  auto table = std::make_shared<TableSchema>();
  table->keyspace = keyspace;
  table->name = name;
  // Computed tables count from here (virtual_tables.h).
  table->incarnation = TableIncarnation{0xF0000000u + static_cast<uint32_t>(sources_.size())};
  table->version = SchemaVersion{1};
  table->is_virtual = true;
  // Ids that are the same on every node and at every start: made of the name.
  const auto digest = base::sha256(keyspace + "." + name);
  table->id =
      TableId{Uuid::from_bytes(BytesView(reinterpret_cast<const char*>(digest.data()), 16))};
  // Of no effect here. Cassandra's values, since DESCRIBE and drivers show them.
  table->options.caching = {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
  table->options.compaction = {
      {"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
      {"max_threshold", "32"},
      {"min_threshold", "4"}};
  table->options.compression = {{"chunk_length_in_kb", "16"},
                                {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
  std::vector<ColumnSchema> list;
  uint32_t partition = 0, clustering = 0;
  std::vector<std::string> order;
  for (const auto& words : columns) {
    ColumnSchema column;
    column.name = words[0];
    auto type = parse_type(words[1]);
    TETRAD_ASSERT(type.has_value());
    column.type = *type;
    const std::string kind = words.size() > 2 ? words[2] : "";
    column.kind = kind == "pk"   ? ColumnKind::kPartitionKey
                  : kind.empty() ? ColumnKind::kRegular
                                 : ColumnKind::kClustering;
    column.descending = kind == "desc";
    if (column.kind == ColumnKind::kPartitionKey) column.position = partition++;
    if (column.kind == ColumnKind::kClustering) column.position = clustering++;
    if (!column.is_primary_key()) column.id = table->next_column_id++;
    order.push_back(column.name);
    list.push_back(std::move(column));
  }
  table->set_columns(std::move(list));
  // Sources give cells in the order of definition; rows are kept in the order of the table's
  // columns.
  std::vector<size_t> place;
  for (const auto& column : table->columns()) {
    place.push_back(
        static_cast<size_t>(std::find(order.begin(), order.end(), column.name) - order.begin()));
  }
  sources_.emplace(table->incarnation,
                   [place, source = std::move(source)](
                       const SchemaSnapshot& schema,
                       const storage::ReadCommand& command) -> Result<VirtualRows> {
                     TETRAD_TRY(VirtualRows rows, source(schema, command));
                     for (VirtualRow& row : rows) {
                       VirtualRow ordered;
                       ordered.reserve(place.size());
                       for (const size_t at : place) ordered.push_back(std::move(row[at]));
                       row = std::move(ordered);
                     }
                     return rows;
                   });
  KeyspaceSchema& in = keyspaces_[keyspace];
  in.name = keyspace;
  in.is_virtual = true;
  in.replication = {{"class", "org.apache.cassandra.locator.LocalStrategy"}};
  in.tables.put(name, std::move(table));
}

void ComputedTables::define(const std::string& keyspace, const std::string& name,
                            std::vector<Column> columns, WholeSource source) {
  define(
      keyspace, name, std::move(columns),
      Source([source = std::move(source)](const SchemaSnapshot& schema,
                                          const storage::ReadCommand&) { return source(schema); }));
}

void ComputedTables::set_replication(const std::string& keyspace,
                                     std::map<std::string, std::string> replication) {
  keyspaces_[keyspace].replication = std::move(replication);
}

void ComputedTables::set_comment(const std::string& keyspace, const std::string& name,
                                 const std::string& comment) {
  KeyspaceSchema& in = keyspaces_[keyspace];
  const auto known = in.tables.find(name);
  if (known == in.tables.end()) return;
  auto table = std::make_shared<TableSchema>(*known->second);
  table->options.comment = comment;
  in.tables.put(name, std::move(table));
}

std::vector<std::shared_ptr<const KeyspaceSchema>> ComputedTables::keyspaces() const {
  std::vector<std::shared_ptr<const KeyspaceSchema>> out;
  for (const auto& [name, keyspace] : keyspaces_)
    out.push_back(std::make_shared<const KeyspaceSchema>(keyspace));
  return out;
}

const ComputedTables::Source* ComputedTables::source(TableIncarnation incarnation) const {
  const auto found = sources_.find(incarnation);
  return found == sources_.end() ? nullptr : &found->second;
}

namespace cells {

VirtualCell inet(const std::string& address) {
  const auto parsed = Inet::parse(address, 0);
  return parsed ? VirtualCell(Bytes(parsed->address())) : kNull;
}

VirtualCell inet_set(const std::vector<std::string>& addresses) {
  std::vector<std::string> values;
  for (const std::string& address : addresses)
    if (const VirtualCell value = inet(address)) values.push_back(*value);
  return text_set(std::move(values));
}

VirtualCell text_set(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  const std::vector<BytesView> views(values.begin(), values.end());
  return join_list(views);
}

VirtualCell text_list(const std::vector<std::string>& values) {
  const std::vector<BytesView> views(values.begin(), values.end());
  return join_list(views);
}

VirtualCell text_map(const std::map<std::string, std::string>& map) {
  std::vector<std::pair<BytesView, BytesView>> entries;
  for (const auto& [key, value] : map) entries.emplace_back(key, value);
  return join_map(entries);
}

}  // namespace cells
}  // namespace tetrad::cql
