// SPDX-License-Identifier: Apache-2.0
// system_views.gossip_info: what this node knows of all of them. There is no gossip here, so what
// Cassandra tells of it (generations, heartbeats, versions of values) is null.
#include <map>

#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "replication/rpc/transport.h"

namespace tetrad::cql {
namespace {

using namespace cells;
using replication::NodeInfo;
using replication::NodeState;

/// Each has a column `<name>_version` beside it.
constexpr const char* kStates[] = {"dc",          "disk_usage",
                                   "host_id",     "index_status",
                                   "internal_ip", "load",
                                   "net_version", "internal_address_and_port",
                                   "rack",        "release_version",
                                   "rpc_address", "native_address_and_port",
                                   "rpc_ready",   "schema",
                                   "severity",    "removal_coordinator",
                                   "status",      "sstable_versions",
                                   "x1",          "status_with_port",
                                   "x2",          "x3",
                                   "x4",          "x5",
                                   "x6",          "x7",
                                   "x8",          "x9",
                                   "x10",         "x_11_padding"};

std::vector<ComputedTables::Column> columns() {
  std::vector<ComputedTables::Column> out = {{"address", "inet", "pk"}, {"port", "int", "ck"},
                                             {"generation", "int"},     {"heartbeat", "int"},
                                             {"tokens_version", "int"}, {"hostname", "text"}};
  for (const std::string name : kStates) {
    out.push_back({name, "text"});
    out.push_back({name + "_version", "int"});
  }
  return out;
}

/// As Cassandra calls it.
const char* status_of(const NodeInfo& node) {
  if (node.state == NodeState::kJoining) return "BOOT";
  return node.state == NodeState::kLeaving ? "LEAVING" : "NORMAL";
}

VirtualRow row_of(const NodeInfo& node, const std::string& release, std::string schema) {
  const std::string status = node.tokens.empty()
                                 ? status_of(node)
                                 : fmt::format("{},{}", status_of(node), node.tokens.front());
  const std::map<std::string, std::string> known = {
      {"dc", node.data_center},
      {"host_id", node.host.to_string()},
      {"rack", node.rack},
      {"release_version", release},
      {"rpc_address", node.address_of_clients()},
      {"native_address_and_port",
       replication::make_endpoint(node.address_of_clients(), node.native_port)},
      {"schema", std::move(schema)},
      {"status", status},
      {"status_with_port", status}};
  VirtualRow row = {inet(node.address), number(node.internode_port), kNull, kNull, kNull, kNull};
  for (const char* name : kStates) {
    const auto found = known.find(name);
    row.push_back(found == known.end() ? kNull : text(found->second));
    row.push_back(kNull);
  }
  return row;
}

}  // namespace

void define_gossip_table(ComputedTables& tables, replication::MetaService& meta,
                         const LocalNodeFacts& facts) {
  tables.define("system_views", "gossip_info", columns(),
                [&meta, release = facts.release_version](const SchemaSnapshot& schema) {
                  const replication::MetaSnapshot state = meta.snapshot();
                  VirtualRows rows;
                  for (const auto& [host, node] : state->nodes) {
                    // Its address is its key.
                    if (node.state != NodeState::kRemoved && inet(node.address))
                      rows.push_back(row_of(node, release, schema.version_uuid().to_string()));
                  }
                  return rows;
                });
}

}  // namespace tetrad::cql
