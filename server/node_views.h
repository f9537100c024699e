// SPDX-License-Identifier: Apache-2.0
// Tables of system_views about this process: settings, clients, caches, requests, snapshots and
// others. What belongs to a shard is asked on its thread; the rows are made on the first shard's.
#pragma once

#include "cql/execute/address_filter.h"
#include "cql/system/node_table.h"
#include "replication/meta/meta_state.h"
#include "server/config/memory_plan.h"
#include "server/config/options.h"
#include "server/runtime/recent_log.h"
#include "server/serving.h"
#include "server/snapshots/snapshots.h"
#include "storage/engine/compaction_log.h"

namespace tetrad::server {

/// What the tables are made of; outlives them, as does all it names.
struct NodeViewSources {
  const Options& options;
  const MemoryPlan& memory;
  const Serving::Shards& shards;
  Serving& serving;
  std::function<Snapshots&()> snapshots;            // while clients are served
  std::function<replication::MetaService&()> meta;  // the first shard's
  const cql::AddressFilter& addresses;
  const RecentLog& log;
  /// To be asked on the shard's thread.
  std::function<const replication::IndexRunner&(const Shard&)> indexes;
  std::function<const replication::TabletStream&(const Shard&)> streams;
  /// On the first shard's thread.
  std::function<const replication::BatchService&()> batches;
  const storage::CompactionLog& compactions;
};

/// Names and values of system_views.settings: all options, and under Cassandra's names, in its
/// units, those that mean the same there. `timeouts`: as they are now.
std::vector<std::pair<std::string, std::string>> settings_of(
    const Options& options, const std::vector<StatementTimeout>& timeouts);

/// Columns and names are Cassandra's where it has the table; values that Tetrad does not have are
/// null.
cql::NodeTables make_node_views(const NodeViewSources& from);

}  // namespace tetrad::server
