// SPDX-License-Identifier: Apache-2.0
// What the metadata group agrees on: nodes, schema, tablets, settings. An immutable, versioned
// value; a request takes one snapshot on entry and keeps it to its end. CQL types are text in here:
// only cql reads the schema objects.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/shared_map.h"
#include "partitioner/placement.h"
#include "partitioner/tablet_map.h"
#include "replication/meta/cluster_format.h"
#include "replication/meta/data_centers.h"

namespace tetrad::replication {

/// Where a node is on its way through the cluster, by its number in images and commands.
enum class NodeState : uint8_t { kJoining = 0, kNormal = 1, kLeaving = 2, kRemoved = 3 };

/// A node as the whole cluster knows it.
struct NodeInfo {
  HostId host;
  std::string address;  // where nodes reach it: IPv4 or IPv6 text
  uint16_t native_port = 9042, internode_port = 7000, admin_port = 9180;
  std::string data_center, rack;
  std::vector<int64_t> tokens;  // 16, fixed when the node joins
  uint32_t store_count = 1;
  NodeState state = NodeState::kJoining;
  std::string version;  // of the program
  /// The newest that its program reads.
  ClusterFormat format = kFormatFirst;
  std::string client_address = {};  // where drivers reach it; "": at `address`

  const std::string& address_of_clients() const {
    return client_address.empty() ? address : client_address;
  }
  bool operator==(const NodeInfo&) const = default;
};

/// How many request units (RU) clients may use in a second; 0: no limit.
struct Throughput {
  uint32_t ru_per_s = 0;
  /// False: the table's own, its tablets have equal parts of it. True: the keyspace's, which all of
  /// its tables use together that have none of their own.
  bool of_keyspace = false;
  bool is_limited() const { return ru_per_s != 0; }
  bool operator==(const Throughput&) const = default;
};

/// One CQL table as replication sees it. Immutable; shared between snapshots until it changes.
struct TableInfo {
  TableId id;
  std::string keyspace, name;
  TableIncarnation incarnation;
  uint32_t max_partition_mb = 0;  // 0: the setting max_physical_partition_mb
  /// Under which each store keeps its log of this table's changes; unset: no changes are kept.
  /// Lower than `incarnation`: the log is as old as the table; otherwise the table may have older
  /// rows.
  std::optional<TableIncarnation> change_log;
  Throughput throughput;
  partitioner::TabletMap tablets;
};

/// All metadata at one index of the log. Immutable once it is published; shards share it as a
/// snapshot.
struct MetaState {
  Uuid cluster_id;
  std::string cluster_name;
  Bytes secret;       // 32 bytes, authenticates paging states
  MetaIndex applied;  // index of the last command in it
  SchemaVersion
      schema_version;  // rises with every schema change, equal on all nodes that applied it
  /// "keyspace/<ks>", "table/<ks>/<name>", "type/<ks>/<name>", "function/…", "aggregate/…" → text
  /// that cql wrote.
  base::SharedMap<std::string, std::string> schema_objects;
  std::map<HostId, NodeInfo> nodes;  // removed ones stay with their state
  /// In which commands, images and messages are written: the lowest of all nodes but removed ones.
  ClusterFormat format = kFormatFirst;
  /// Null: all nodes but removed ones are in one data centre.
  std::shared_ptr<const DataCenters> data_centers;
  base::SharedMap<TableId, std::shared_ptr<const TableInfo>> tables;
  base::SharedMap<TableIncarnation, std::shared_ptr<const TableInfo>> by_incarnation;
  uint64_t limited_tables = 0;  // how many have a throughput
  partitioner::StoreLoad load;  // how many tablets of all tables each store is a member of
  std::vector<TableIncarnation> retired;  // dropped or truncated; stores clean them up
  std::map<std::string, std::string>
      settings;  // of the whole cluster, for example replication.mode
  uint32_t next_incarnation = 1;
  uint64_t next_tablet_id = 1;
  /// The last commands applied and how they ended, oldest first: a command that is proposed again
  /// because its answer was lost is not applied twice.
  struct Outcome {
    Uuid command_id;
    MetaIndex index;
    ErrorCode code = ErrorCode::kServerError;  // counts when failed
    std::string message;                       // "" when it succeeded
    bool failed = false;
  };
  std::vector<Outcome> recent_outcomes;

  /// To be called when `nodes` has changed: finds `format` and `data_centers`.
  void look_at_nodes();
  /// In place of the table of the same id, if there is one.
  void put_table(std::shared_ptr<const TableInfo> table);
  void erase_table(TableId id);

  const TableInfo* table(TableIncarnation incarnation) const;
  const TableInfo* table(TableId id) const;
  /// Null if there is no such host.
  const NodeInfo* node(HostId host) const;
  /// For people: where nodes reach it; its id if there is no such host.
  std::string address_of(HostId host) const;
  /// Of the nodes of each, in the same order.
  std::vector<std::string> addresses_of(std::span<const StoreAddress> replicas) const;
  /// What drivers compare for schema agreement: a UUID made of the cluster id and the schema
  /// version.
  Uuid schema_version_uuid() const;
};

using MetaSnapshot = std::shared_ptr<const MetaState>;

/// A DDL statement as the metadata group sees it: applied only while the schema version is still
/// `expected`.
struct SchemaChange {
  /// A table that CREATE TABLE asks for.
  struct NewTable {
    TableId id;
    std::string keyspace, name;
    uint32_t max_partition_mb = 0;
    uint32_t initial_tablets = 0;  // 0: as placement decides
    bool change_log = false;
    Throughput throughput = {};
  };
  /// What ALTER TABLE changes of a table beside its schema.
  struct AlteredTable {
    TableId id;
    std::string keyspace, name;
    uint32_t max_partition_mb = 0;
    bool change_log = false;  // what was kept is gone once it is false
    Throughput throughput = {};
  };
  SchemaVersion expected;
  std::vector<std::pair<std::string, std::optional<std::string>>> objects;  // unset text: erase
  std::vector<NewTable> new_tables;
  std::vector<AlteredTable> altered_tables;
  std::vector<TableId> dropped_tables, truncated_tables;
};

/// The whole state as bytes, for snapshots of the metadata group, in the state's own format.
void encode_meta_state(const MetaState& state, Bytes& out);
/// Errors: kCorruption; kConfig: a later program's, of a format above `known`.
Result<MetaSnapshot> decode_meta_state(BytesView encoded, ClusterFormat known = kFormatNewest);

}  // namespace tetrad::replication
