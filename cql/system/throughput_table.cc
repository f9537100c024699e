// SPDX-License-Identifier: Apache-2.0
// system_tetrad.throughput: what clients use of the throughputs of tables and keyspaces, a row for each
// bucket. The node that keeps the bucket counts, and tells all others every five seconds.
#include <algorithm>
#include <set>

#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "replication/throughput/throughput_holder.h"
#include "storage/row/row_weight.h"

namespace tetrad::cql {
namespace {

using namespace cells;
using replication::TableInfo;
using replication::UsedThroughput;

constexpr int64_t kHourMs = 3'600'000;

bool is_autoscaled(const SchemaSnapshot& schema, const TableInfo& table) {
  if (table.throughput.of_keyspace) {
    const KeyspaceSchema* keyspace = schema.keyspace(table.keyspace);
    return keyspace != nullptr && keyspace->throughput.autoscale_max != 0;
  }
  const TablePtr known = schema.table(table.keyspace, table.name);
  return known != nullptr && known->options.throughput.autoscale_max != 0;
}

/// What an hour is booked for: an autoscaled throughput for its busiest second, and at least a tenth.
int64_t booked(bool autoscaled, uint64_t part, uint32_t busiest) {
  const auto all = static_cast<int64_t>(part);
  return autoscaled ? std::max<int64_t>(busiest, (all + 9) / 10) : all;
}

VirtualRow row_of(const TableInfo& table, TabletId tablet, const UsedThroughput& used,
                  bool autoscaled) {
  const uint64_t part =
      std::max<uint64_t>(replication::bucket_of(table, tablet).per_s / storage::kWeightOfUnit, 1);
  const bool is_shared = table.throughput.of_keyspace;
  return {text(table.keyspace),
          text(is_shared ? std::string_view() : table.name),
          big(is_shared ? 0 : static_cast<int64_t>(tablet.value)),
          flag(autoscaled),
          count(part),
          big(used.used_ru_per_s),
          count(used.used_ru_per_s * uint64_t{100} / part),
          count(used.refused),
          big(used.banked_ru),
          used.hour == 0 ? kNull : big(used.hour * kHourMs),
          big(booked(autoscaled, part, used.busiest_ru_per_s)),
          big(booked(autoscaled, part, used.busiest_before_ru_per_s))};
}

VirtualRows rows_of(const replication::MetaService& meta, const SchemaSnapshot& schema) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  if (state->limited_tables == 0) return rows;
  std::set<std::string> keyspaces;
  const auto add = [&](const TableInfo& table, TabletId tablet) {
    const UsedThroughput used = meta.used_throughput(replication::bucket_of(table, tablet).key);
    rows.push_back(row_of(table, tablet, used, is_autoscaled(schema, table)));
  };
  for (const auto& [id, table] : state->tables) {
    if (!table->throughput.is_limited()) continue;
    if (table->throughput.of_keyspace) {
      if (keyspaces.insert(table->keyspace).second) add(*table, {});
      continue;
    }
    for (const auto& tablet : table->tablets.tablets()) add(*table, tablet.id);
  }
  return rows;
}

}  // namespace

void define_throughput_table(ComputedTables& tables, replication::MetaService& meta) {
  tables.define("system_tetrad", "throughput",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"id", "bigint", "ck"},
                 {"autoscaled", "boolean"},
                 {"provisioned_ru_per_s", "bigint"},
                 {"used_ru_per_s", "bigint"},
                 {"used_percent", "bigint"},
                 {"refused", "bigint"},
                 {"banked_ru", "bigint"},
                 {"hour", "timestamp"},
                 {"booked_ru_per_s", "bigint"},
                 {"booked_before_ru_per_s", "bigint"}},
                [&meta](const SchemaSnapshot& schema) { return rows_of(meta, schema); });
}

}  // namespace tetrad::cql
