// SPDX-License-Identifier: Apache-2.0
// Tables of the keyspace `system` about what this process keeps: statements that were prepared.
#include "server/shard_views.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRows;
using namespace cql::cells;

// A reader must not be what holds up the first shard: 4,000 rows take it some milliseconds.
constexpr size_t kStatementsMax = 4'000;

/// Of all shards, each once: they share the texts.
NodeTable prepared_statements_table(const NodeViewSources& from) {
  return {
      "prepared_statements",
      {{"prepared_id", "blob", "pk"}, {"logged_keyspace", "text"}, {"query_string", "text"}},
      on_first(from,
               [&from] {
                 VirtualRows rows;
                 for (const auto& one : from.shards.front()->processor->prepared(kStatementsMax))
                   rows.push_back({one.id, one.keyspace.empty() ? kNull : text(utf8(one.keyspace)),
                                   text(utf8(one.text))});
                 return rows;
               }),
      "system"};
}

}  // namespace

std::vector<NodeTable> history_views(const NodeViewSources& from) {
  return {prepared_statements_table(from)};
}

}  // namespace tetrad::server
