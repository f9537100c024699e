// SPDX-License-Identifier: Apache-2.0
// Tables of Cassandra's system keyspaces about things that Tetrad does not have or keeps otherwise.
// Tools read them; there is never a row.
#include "cql/system/computed_tables.h"

namespace tetrad::cql {
namespace {

/// A table of Cassandra 5.0: keys come first in its columns, then the others by name.
struct EmptyTable {
  const char *keyspace, *name;
  std::vector<ComputedTables::Column> columns;
};

/// Of the keyspace `system`. One table, by name: no entry depends on another one, so it stands in
/// one piece.
std::vector<EmptyTable> tables_of_system() {
  return {
      {"system", "available_ranges", {{"keyspace_name", "text", "pk"}, {"ranges", "set<blob>"}}},
      {"system",
       "available_ranges_v2",
       {{"keyspace_name", "text", "pk"},
        {"full_ranges", "set<blob>"},
        {"transient_ranges", "set<blob>"}}},
      {"system",
       "paxos",
       {{"row_key", "blob", "pk"},
        {"cf_id", "uuid", "ck"},
        {"in_progress_ballot", "timeuuid"},
        {"in_progress_read_ballot", "timeuuid"},
        {"most_recent_commit", "blob"},
        {"most_recent_commit_at", "timeuuid"},
        {"most_recent_commit_version", "int"},
        {"proposal", "blob"},
        {"proposal_ballot", "timeuuid"},
        {"proposal_version", "int"}}},
      {"system",
       "paxos_repair_history",
       {{"keyspace_name", "text", "pk"},
        {"table_name", "text", "ck"},
        {"points", "frozen<list<frozen<tuple<blob, timeuuid>>>>"}}},
      {"system", "peer_events", {{"peer", "inet", "pk"}, {"hints_dropped", "map<timeuuid, int>"}}},
      {"system",
       "peer_events_v2",
       {{"peer", "inet", "pk"},
        {"peer_port", "int", "ck"},
        {"hints_dropped", "map<timeuuid, int>"}}},
      {"system",
       "repairs",
       {{"parent_id", "timeuuid", "pk"},
        {"cfids", "set<uuid>"},
        {"coordinator", "inet"},
        {"coordinator_port", "int"},
        {"last_update", "timestamp"},
        {"participants", "set<inet>"},
        {"participants_wp", "set<text>"},
        {"ranges", "set<blob>"},
        {"repaired_at", "timestamp"},
        {"started_at", "timestamp"},
        {"state", "int"}}},
      {"system",
       "sstable_activity",
       {{"keyspace_name", "text", "pk"},
        {"columnfamily_name", "text", "pk"},
        {"generation", "int", "pk"},
        {"rate_120m", "double"},
        {"rate_15m", "double"}}},
      {"system",
       "sstable_activity_v2",
       {{"keyspace_name", "text", "pk"},
        {"table_name", "text", "pk"},
        {"id", "text", "pk"},
        {"rate_120m", "double"},
        {"rate_15m", "double"}}},
      {"system",
       "top_partitions",
       {{"keyspace_name", "text", "pk"},
        {"table_name", "text", "ck"},
        {"top_type", "text", "ck"},
        {"last_update", "timestamp"},
        {"top", "frozen<list<frozen<tuple<text, bigint>>>>"}}},
      {"system",
       "transferred_ranges",
       {{"operation", "text", "pk"},
        {"keyspace_name", "text", "pk"},
        {"peer", "inet", "ck"},
        {"ranges", "set<blob>"}}},
      {"system",
       "transferred_ranges_v2",
       {{"operation", "text", "pk"},
        {"keyspace_name", "text", "pk"},
        {"peer", "inet", "ck"},
        {"peer_port", "int", "ck"},
        {"ranges", "set<blob>"}}},
  };
}

/// Of the keyspace `system_distributed`: what Cassandra keeps of repairs that were ordered, and of denied partitions.
std::vector<EmptyTable> tables_of_others() {
  return {
      {"system_distributed",
       "parent_repair_history",
       {{"parent_id", "timeuuid", "pk"},
        {"columnfamily_names", "set<text>"},
        {"exception_message", "text"},
        {"exception_stacktrace", "text"},
        {"finished_at", "timestamp"},
        {"keyspace_name", "text"},
        {"options", "map<text, text>"},
        {"requested_ranges", "set<text>"},
        {"started_at", "timestamp"},
        {"successful_ranges", "set<text>"}}},
      {"system_distributed",
       "partition_denylist",
       {{"ks_name", "text", "pk"}, {"table_name", "text", "pk"}, {"key", "blob", "ck"}}},
  };
}

}  // namespace

void define_empty_tables(ComputedTables& tables) {
  for (const auto& of : {tables_of_system(), tables_of_others()})
    for (const EmptyTable& table : of)
      tables.define(table.keyspace, table.name, table.columns, no_rows);
  // Cassandra's own setting for this keyspace; without it DESCRIBE would show LocalStrategy.
  tables.set_replication(
      "system_distributed",
      {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", "3"}});
}

}  // namespace tetrad::cql
