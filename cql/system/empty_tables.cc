// SPDX-License-Identifier: Apache-2.0
// Tables of Cassandra's system keyspaces about things that Tetrad does not have or keeps otherwise.
// Tools read them; there is never a row.
#include "cql/system/computed_tables.h"

namespace tetrad::cql {
namespace {

struct EmptyTable {
  const char *keyspace, *name;
  std::vector<ComputedTables::Column> columns;
};

std::vector<EmptyTable> tables_of_system() {
  return {
      {"system",
       "available_ranges_v2",
       {{"keyspace_name", "text", "pk"},
        {"full_ranges", "frozen<set<blob>>"},
        {"transient_ranges", "frozen<set<blob>>"}}},
      {"system",
       "available_ranges",
       {{"keyspace_name", "text", "pk"}, {"ranges", "frozen<set<blob>>"}}},
      {"system",
       "batches",
       {{"id", "timeuuid", "pk"}, {"mutations", "frozen<list<blob>>"}, {"version", "int"}}},
      {"system",
       "built_views",
       {{"keyspace_name", "text", "pk"},
        {"view_name", "text", "ck"},
        {"status_replicated", "boolean"}}},
      {"system",
       "view_builds_in_progress",
       {{"keyspace_name", "text", "pk"},
        {"view_name", "text", "ck"},
        {"start_token", "text", "ck"},
        {"end_token", "text", "ck"},
        {"keys_built", "bigint"},
        {"last_token", "text"}}},
      {"system",
       "compaction_history",
       {{"id", "uuid", "pk"},
        {"bytes_in", "bigint"},
        {"bytes_out", "bigint"},
        {"columnfamily_name", "text"},
        {"compacted_at", "timestamp"},
        {"compaction_properties", "frozen<map<text, text>>"},
        {"keyspace_name", "text"},
        {"rows_merged", "frozen<map<int, bigint>>"}}},
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
       "peer_events_v2",
       {{"peer", "inet", "pk"},
        {"peer_port", "int", "ck"},
        {"hints_dropped", "frozen<map<uuid, int>>"}}},
      {"system",
       "prepared_statements",
       {{"prepared_id", "blob", "pk"}, {"logged_keyspace", "text"}, {"query_string", "text"}}},
      {"system",
       "repairs",
       {{"parent_id", "timeuuid", "pk"},
        {"cfids", "frozen<set<uuid>>"},
        {"coordinator", "inet"},
        {"coordinator_port", "int"},
        {"last_update", "timestamp"},
        {"participants", "frozen<set<inet>>"},
        {"participants_wp", "frozen<set<text>>"},
        {"ranges", "frozen<set<blob>>"},
        {"repaired_at", "timestamp"},
        {"started_at", "timestamp"},
        {"state", "int"}}},
      {"system",
       "sstable_activity_v2",
       {{"keyspace_name", "text", "pk"},
        {"table_name", "text", "pk"},
        {"id", "text", "pk"},
        {"rate_120m", "double"},
        {"rate_15m", "double"}}},
  };
}

std::vector<EmptyTable> tables_of_others() {
  return {
      {"system_distributed",
       "repair_history",
       {{"keyspace_name", "text", "pk"},
        {"columnfamily_name", "text", "pk"},
        {"id", "timeuuid", "ck"},
        {"coordinator", "inet"},
        {"coordinator_port", "int"},
        {"exception_message", "text"},
        {"exception_stacktrace", "text"},
        {"finished_at", "timestamp"},
        {"parent_id", "timeuuid"},
        {"participants", "frozen<set<inet>>"},
        {"participants_v2", "frozen<set<text>>"},
        {"range_begin", "text"},
        {"range_end", "text"},
        {"started_at", "timestamp"},
        {"status", "text"}}},
      {"system_distributed",
       "view_build_status",
       {{"keyspace_name", "text", "pk"},
        {"view_name", "text", "pk"},
        {"host_id", "uuid", "ck"},
        {"status", "text"}}},
  };
}

}  // namespace

void define_empty_tables(ComputedTables& tables) {
  for (const auto& of : {tables_of_system(), tables_of_others()})
    for (const EmptyTable& table : of)
      tables.define(table.keyspace, table.name, table.columns, no_rows);
  tables.set_replication(
      "system_distributed",
      {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", "3"}});
}

}  // namespace tetrad::cql
