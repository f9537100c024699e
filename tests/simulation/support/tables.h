// SPDX-License-Identifier: Apache-2.0
// Tables of simulated clusters.
#pragma once

#include <string>

#include "partitioner/token.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// The table ks.t without options.
inline replication::SchemaChange::NewTable table_t() {
  replication::SchemaChange::NewTable table;
  table.id.value.octets[0] = 1;
  table.keyspace = "ks";
  table.name = "t";
  return table;
}

/// Through a node, of the schema as it is now.
inline Task<void> change_schema_now(SimNode* node, replication::SchemaChange change, bool* done) {
  change.expected = node->state()->schema_version;
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *done = result.has_value();
}

/// Makes ks.t through a node. `max_partition_mb`: 0 for no limit of its own.
inline Task<void> create_table(SimNode* node, uint32_t max_partition_mb, bool* created) {
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  change.new_tables.back().max_partition_mb = max_partition_mb;
  return change_schema_now(node, std::move(change), created);
}

/// Every other time, as the clock has it: has the tablet there merged with the one behind it. False: it
/// may be split.
inline bool merge_instead(SimNode& via, const replication::TableInfo& table, RingPosition at) {
  const partitioner::Tablet& tablet = table.tablets.find(at);
  if (via.world().now_us() / 1000 % 2 != 0 || tablet.range.end == RingPosition::highest())
    return false;
  via.node().merges().order(tablet.id, [](Result<void>) {});
  return true;
}

/// An INSERT of nothing but the key, of a table without clustering columns.
inline storage::Mutation row_of(TableIncarnation incarnation, const std::string& key) {
  storage::RowRecord record;
  record.liveness.timestamp_us = 1;
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = key;
  mutation.position = partitioner::position_of(key);
  storage::RowChange row;
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return mutation;
}

}  // namespace tetrad::simulation
