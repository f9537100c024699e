// SPDX-License-Identifier: Apache-2.0
// Tables of system_views, system_tetrad and others whose rows only the server can give: they are of
// the whole process, of all its shards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/reactor.h"
#include "cql/system/computed_tables.h"

namespace tetrad::cql {

/// One table; no two have one name.
struct NodeTable {
  using Done = std::function<void(VirtualRows)>;

  std::string name;
  std::vector<ComputedTables::Column> columns;
  /// Calls `done` once, later, on the thread of `asker`, unless the node ends before; rows have
  /// their cells in the order of `columns`. Any shard's thread may ask.
  std::function<void(base::Reactor& asker, Done done)> gather;
  std::string keyspace = "system_views";
};

/// All of a node; the same ones for each of its shards.
using NodeTables = std::shared_ptr<const std::vector<NodeTable>>;

}  // namespace tetrad::cql
