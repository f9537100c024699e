// SPDX-License-Identifier: Apache-2.0
// Tables about what the stores of this node build beside their rows: materialized views and indexes.
#include <map>

#include "cql/system/index_tables.h"
#include "server/shard_views.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRows;
using namespace cql::cells;

/// A materialized view in all stores of this node.
struct BuiltView {
  bool built = true;
  RingPosition position = RingPosition::highest();  // all before it has tasks
  uint64_t rows = 0;
};
using BuiltViews = std::map<TableIncarnation, BuiltView>;

// A view is built when the tasks of all stores have been executed; the least position and all rows
// together.
BuiltViews join_views(const std::vector<std::vector<replication::ViewStatus>>& parts) {
  BuiltViews views;
  for (const auto& part : parts) {
    for (const replication::ViewStatus& status : part) {
      BuiltView& view = views[status.view];
      view.built = view.built && status.complete;
      view.position = std::min(view.position, status.position);
      view.rows += status.rows;
    }
  }
  return views;
}

/// `add` makes the row of a view, or none.
NodeTable views_table(
    const NodeViewSources& from, std::string name, std::string keyspace,
    std::vector<cql::ComputedTables::Column> columns,
    std::function<void(const replication::TableInfo&, const BuiltView&, VirtualRows&)> add) {
  return {std::move(name), std::move(columns),
          [&from, add = std::move(add)](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<replication::ViewStatus>>(
                from, asker, [](Shard& shard) { return shard.data->views().statuses(); },
                [&from, add](const auto& parts) {
                  const replication::MetaSnapshot state = from.meta().snapshot();
                  VirtualRows rows;
                  for (const auto& [incarnation, view] : join_views(parts))
                    if (const auto* table = state->table(incarnation); table != nullptr)
                      add(*table, view, rows);
                  return rows;
                },
                std::move(done));
          },
          std::move(keyspace)};
}

NodeTable built_views_table(const NodeViewSources& from) {
  return views_table(from, "built_views", "system",
                     {{"keyspace_name", "text", "pk"},
                      {"view_name", "text", "ck"},
                      {"status_replicated", "boolean"}},
                     [](const auto& table, const BuiltView& view, VirtualRows& rows) {
                       if (!view.built) return;
                       rows.push_back({text(table.keyspace), text(table.name), flag(true)});
                     });
}

/// The stores of a node have one row together, with the token of the one that is least far.
NodeTable view_builds_table(const NodeViewSources& from) {
  return views_table(
      from, "view_builds_in_progress", "system",
      {{"keyspace_name", "text", "pk"},
       {"view_name", "text", "ck"},
       {"start_token", "text", "ck"},
       {"end_token", "text", "ck"},
       {"keys_built", "bigint"},
       {"last_token", "text"}},
      [](const auto& table, const BuiltView& view, VirtualRows& rows) {
        if (view.built) return;
        const auto token = [](int64_t value) { return text(std::to_string(value)); };
        rows.push_back({text(table.keyspace), text(table.name), token(RingPosition::lowest().token),
                        token(RingPosition::highest().token), count(view.rows),
                        token(view.position.token)});
      });
}

/// What this node knows: its own part.
NodeTable view_status_table(const NodeViewSources& from) {
  return views_table(
      from, "view_build_status", "system_distributed",
      {{"keyspace_name", "text", "pk"},
       {"view_name", "text", "pk"},
       {"host_id", "uuid", "ck"},
       {"status", "text"}},
      [&from](const auto& table, const BuiltView& view, VirtualRows& rows) {
        rows.push_back({text(table.keyspace), text(table.name), uuid(from.meta().self().value),
                        text(view.built ? "SUCCESS" : "STARTED")});
      });
}

/// An index that a store of this node has not built yet is not built.
NodeTable indexes_table(const NodeViewSources& from, std::string keyspace, std::string name,
                        std::vector<cql::ComputedTables::Column> columns,
                        VirtualRows (*rows_of)(const cql::SchemaSnapshot&,
                                               const cql::UnbuiltIndexes&)) {
  return {std::move(name), std::move(columns),
          [&from, rows_of](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<cql::UnbuiltIndexes>(
                from, asker,
                [&from](Shard& shard) {
                  cql::UnbuiltIndexes found;
                  for (const auto& status : from.indexes(shard).statuses())
                    if (!status.built) found.emplace(status.incarnation, status.index_id);
                  return found;
                },
                [&from, rows_of](const std::vector<cql::UnbuiltIndexes>& parts) {
                  cql::UnbuiltIndexes unbuilt;
                  for (const auto& part : parts) unbuilt.insert(part.begin(), part.end());
                  const cql::SchemaPtr schema = from.shards.front()->processor->schema();
                  return schema == nullptr ? VirtualRows() : rows_of(*schema, unbuilt);
                },
                std::move(done));
          },
          std::move(keyspace)};
}

}  // namespace

std::vector<NodeTable> build_views(const NodeViewSources& from) {
  return {
      built_views_table(from), view_builds_table(from), view_status_table(from),
      indexes_table(from, "system", "IndexInfo", cql::built_index_columns(), cql::built_index_rows),
      indexes_table(from, "system_views", "sai_column_indexes", cql::sai_index_columns(),
                    cql::sai_index_rows)};
}

}  // namespace tetrad::server
