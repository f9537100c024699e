// SPDX-License-Identifier: Apache-2.0
#include "cql/system/partition_sizes.h"

#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "partitioner/split_policy.h"

namespace tetrad::cql {
namespace {

using namespace cells;
using partitioner::Tablet;
using replication::MetaService;

VirtualRows rows_of_sizes(const MetaService& meta) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const auto& [id, table] : state->tables) {
    const auto bytes = largest_partition_bytes(
        table->tablets, [&meta](TabletId tablet) { return meta.tablet_bytes(tablet); });
    if (!bytes) continue;
    const uint64_t mebibytes = (*bytes >> 20) + ((*bytes & 0xFFFFF) != 0 ? 1 : 0);
    rows.push_back({text(table->keyspace), text(table->name), count(mebibytes)});
  }
  return rows;
}

}  // namespace

std::optional<uint64_t> largest_partition_bytes(const partitioner::TabletMap& map,
                                                const std::function<uint64_t(TabletId)>& bytes_of) {
  uint64_t most = 0;
  bool is_alone = false;
  for (const Tablet& tablet : map.tablets()) {
    const uint64_t bytes = bytes_of(tablet.id);
    if (bytes <= most) continue;
    most = bytes;
    is_alone = partitioner::is_set_apart(tablet);
  }
  return is_alone ? std::optional(most) : std::nullopt;
}

void define_partition_sizes(ComputedTables& tables, MetaService& meta) {
  tables.define(
      "system_views", "max_partition_size",
      {{"keyspace_name", "text", "pk"}, {"table_name", "text", "pk"}, {"mebibytes", "bigint"}},
      [&meta](const SchemaSnapshot&) { return rows_of_sizes(meta); });
}

}  // namespace tetrad::cql
