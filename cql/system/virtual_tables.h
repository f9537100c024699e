// SPDX-License-Identifier: Apache-2.0
// Tables whose rows are computed when they are read: system, system_schema, system_virtual_schema,
// system_auth, system_distributed, system_traces, system_views and system_tetrad. They answer the
// same ReadCommand as a replica does, so SELECT has one way to run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/system/node_table.h"
#include "replication/coordinator/coordinator.h"
#include "replication/meta/meta_service.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

/// The computed tables as a SELECT reads them: prepare_read(), which may wait, then read(), which
/// does not. One per shard.
class VirtualTables {
 public:
  virtual ~VirtualTables() = default;
  /// The schemas of the computed keyspaces, for SchemaSnapshot::build(). Their incarnations are
  /// from 0xF0000000 up.
  virtual const std::vector<std::shared_ptr<const KeyspaceSchema>>& keyspaces() const = 0;
  /// What has to be found out before the table can be read: estimates are made on demand, and what
  /// the server knows is asked of all shards. Errors: kServerError.
  virtual Task<Result<void>> prepare_read(const TableSchema& table,
                                          const storage::ReadCommand& command,
                                          base::Reactor& reactor,
                                          replication::Coordinator& coordinator) = 0;
  /// Live rows of one computed table, as the command selects them; from this node's own state,
  /// never from others.
  virtual Result<storage::ReadResult> read(const TableSchema& table,
                                           const storage::ReadCommand& command,
                                           const SchemaSnapshot& schema) = 0;
};

/// The computed keyspaces that system_virtual_schema lists as virtual; the others look like
/// Cassandra's own system keyspaces.
inline bool is_listed_as_virtual(std::string_view keyspace) {
  return keyspace == "system_virtual_schema" || keyspace == "system_tetrad" ||
         keyspace == "system_views";
}

/// What system.local and others say of this node beside the metadata.
struct LocalNodeFacts {
  std::string listen_address, address,
      client_address;  // for nodes; where nodes and drivers reach it
  uint16_t native_port = 9042, internode_port = 7000;
  std::string release_version = "5.0.0", cql_version = "3.4.7", tetrad_version;
};

/// `meta` outlives `tables`.
void define_gossip_table(ComputedTables& tables, replication::MetaService& meta,
                         const LocalNodeFacts& facts);

/// system_tetrad.throughput: what clients use of the throughputs of tables and keyspaces.
void define_throughput_table(ComputedTables& tables, replication::MetaService& meta);

/// Of system_tetrad: partitions, moves, partition_skew and key_location.
void define_placement_tables(ComputedTables& tables, replication::MetaService& meta);
/// system_distributed.repair_history.
void define_repair_tables(ComputedTables& tables, replication::MetaService& meta);

/// system_views.max_partition_size (partition_sizes.h).
void define_partition_sizes(ComputedTables& tables, replication::MetaService& meta);

/// One per shard, with the shard's `meta`, which outlives the object, as does what `of_node` asks.
/// Null: there is no server, and none of its tables.
std::unique_ptr<VirtualTables> make_system_tables(replication::MetaService& meta,
                                                  LocalNodeFacts facts, NodeTables of_node = {});

}  // namespace tetrad::cql
