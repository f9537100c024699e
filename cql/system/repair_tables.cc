// SPDX-License-Identifier: Apache-2.0
// system_distributed.repair_history: of each physical partition the last repair, which the metadata has.
// parent_repair_history has no rows: repairs go on by themselves, no command has several of them.
#include "base/uuid.h"
#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "replication/meta/meta_state.h"
#include "replication/rpc/transport.h"

namespace tetrad::cql {
namespace {

using namespace cells;
using partitioner::Tablet;
using replication::MetaState;

/// The same whenever it is asked: of the moment when the repair began, and the physical partition.
Uuid repair_id(const Tablet& tablet) {
  return base::make_time_uuid(base::uuid_ticks_of_unix_us(tablet.repaired_us), 0,
                              tablet.id.value & ((uint64_t{1} << 48) - 1));
}

VirtualRow repair_row(const MetaState& state, const replication::TableInfo& table,
                      const Tablet& tablet) {
  std::vector<std::string> addresses, with_ports;
  for (const StoreAddress& member : tablet.replicas) {
    const auto node = state.nodes.find(member.host);
    if (node == state.nodes.end()) continue;
    addresses.push_back(node->second.address);
    with_ports.push_back(
        replication::make_endpoint(node->second.address, node->second.internode_port));
  }
  return {text(table.keyspace),
          text(table.name),
          uuid(repair_id(tablet)),
          kNull,  // whoever led it; one after another does
          kNull,
          kNull,
          kNull,
          kNull,  // when the last member was done
          kNull,
          inet_set(addresses),
          text_set(with_ports),
          text(fmt::to_string(tablet.range.start.token)),
          text(fmt::to_string(tablet.range.end.token)),
          big(tablet.repaired_us / 1000),
          text("SUCCESS")};
}

}  // namespace

void define_repair_tables(ComputedTables& tables, replication::MetaService& meta) {
  tables.define("system_distributed", "repair_history",
                {{"keyspace_name", "text", "pk"},
                 {"columnfamily_name", "text", "pk"},
                 {"id", "timeuuid", "ck"},
                 {"coordinator", "inet"},
                 {"coordinator_port", "int"},
                 {"exception_message", "text"},
                 {"exception_stacktrace", "text"},
                 {"finished_at", "timestamp"},
                 {"parent_id", "timeuuid"},
                 {"participants", "set<inet>"},
                 {"participants_v2", "set<text>"},
                 {"range_begin", "text"},
                 {"range_end", "text"},
                 {"started_at", "timestamp"},
                 {"status", "text"}},
                [&meta](const SchemaSnapshot&) {
                  const replication::MetaSnapshot state = meta.snapshot();
                  VirtualRows rows;
                  for (const auto& [id, table] : state->tables)
                    for (const Tablet& tablet : table->tablets.tablets())
                      if (tablet.repaired_us != 0)
                        rows.push_back(repair_row(*state, *table, tablet));
                  return rows;
                });
}

}  // namespace tetrad::cql
