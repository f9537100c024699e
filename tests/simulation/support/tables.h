// SPDX-License-Identifier: Apache-2.0
// Tables of simulated clusters.
#pragma once

#include <string>

#include "partitioner/token.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// Makes the table ks.t through a node. `max_partition_mb`: 0 for no limit of its own.
inline Task<void> create_table(SimNode* node, uint32_t max_partition_mb, bool* created) {
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  replication::SchemaChange::NewTable table;
  table.id.value.octets[0] = 1;
  table.keyspace = "ks";
  table.name = "t";
  table.max_partition_mb = max_partition_mb;
  change.new_tables.push_back(table);
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *created = result.has_value();
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
