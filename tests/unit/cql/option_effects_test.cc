// SPDX-License-Identifier: Apache-2.0
// Options of tables that change nothing, the old name of a keyspace, tables without rows.
#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    CHECK(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
              "'replication_factor': 1}") == "ok");
  }
  /// What a statement answers, and its warnings, a line each.
  std::string told(std::string_view text) {
    std::string out = cql(text);
    for (const std::string& warning : warnings) out += "\nwarning: " + warning;
    return out;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "options that change nothing are named in one warning") {
  const std::string store =
      "all tables of a shard share one store, which compacts, compresses and caches by itself";
  CHECK(told("CREATE TABLE ks.plain (k int PRIMARY KEY) WITH comment = 'c' AND gc_grace_seconds = "
             "5") == "ok");
  CHECK(
      told("CREATE TABLE ks.same (k int PRIMARY KEY) WITH compression = {'class': 'LZ4Compressor'} "
           "AND compaction = {'class': 'SizeTieredCompactionStrategy'} AND speculative_retry = "
           "'99p' AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}") == "ok");
  CHECK(
      told(
          "CREATE TABLE ks.a (k int PRIMARY KEY) WITH compression = {'class': 'ZstdCompressor'}") ==
      "ok\nwarning: compression has no effect in Tetrad: " + store);
  CHECK(
      told("ALTER TABLE ks.plain WITH compression = {'enabled': false} AND compaction = "
           "{'class': 'LeveledCompactionStrategy'} AND speculative_retry = 'NEVER' AND comment = "
           "'d'") ==
      "ok\nwarning: compaction, compression, speculative_retry have no effect in Tetrad: " + store +
          "; the coordinator asks a further replica when 99 in 100 reads would have had their "
          "answers, "
          "and reads repair what differs");
  CHECK(told("ALTER TABLE ks.plain WITH incremental_backups = false") ==
        "ok\nwarning: incremental_backups has no effect in Tetrad: snapshots are taken by order: "
        "tetractl snapshot");
  CHECK(told("ALTER TABLE ks.plain WITH comment = 'e'") == "ok");
}

TEST_CASE_METHOD(Fixture, "a keyspace whose writes need not be durable gets a warning") {
  const std::string warning =
      "\nwarning: durable_writes has no effect in Tetrad: every write goes through the store's log "
      "before it is acknowledged";
  CHECK(told("CREATE KEYSPACE plain WITH durable_writes = true") == "ok");
  CHECK(told("CREATE KEYSPACE hasty WITH durable_writes = false") == "ok" + warning);
  CHECK(told("ALTER KEYSPACE plain WITH durable_writes = false") == "ok" + warning);
  CHECK(told("ALTER KEYSPACE plain WITH durable_writes = true") == "ok");
  CHECK(rows("SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = 'hasty'") ==
        "false");
}

TEST_CASE_METHOD(Fixture, "DESCRIBE explains each table of system_tetrad") {
  CHECK(rows("SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = "
             "'system_tetrad' AND comment = '' ALLOW FILTERING") == "");
}

TEST_CASE_METHOD(Fixture, "system_tetrad is found by its old name, unless a keyspace has that") {
  const std::string nodes = rows("SELECT address, state FROM system_tetrad.nodes");
  CHECK_FALSE(nodes.starts_with("error"));
  CHECK(rows("SELECT address, state FROM tetrad.nodes") == nodes);
  CHECK(rows("SELECT keyspace_name FROM system_virtual_schema.keyspaces WHERE keyspace_name = "
             "'system_tetrad'") == "'system_tetrad'");
  CHECK(error("SELECT * FROM tetrad.t") == "table t does not exist");
  CHECK(cql("CREATE KEYSPACE tetrad WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': 1}") == "ok");
  CHECK(cql("CREATE TABLE tetrad.t (k int PRIMARY KEY)") == "ok");
  CHECK(rows("SELECT * FROM tetrad.t").empty());
  CHECK(error("SELECT * FROM tetrad.nodes") == "table nodes does not exist");
  CHECK(rows("SELECT address, state FROM system_tetrad.nodes") == nodes);
}

TEST_CASE_METHOD(Fixture, "a value that no key may have is refused in the key column of a view") {
  CHECK(cql("CREATE KEYSPACE viewed WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': 1}") == "ok");
  CHECK(cql("CREATE TABLE viewed.t (k int PRIMARY KEY, a text, b text)") == "ok");
  CHECK(cql("CREATE MATERIALIZED VIEW viewed.v AS SELECT * FROM viewed.t WHERE k IS NOT NULL AND "
            "a IS NOT NULL PRIMARY KEY (a, k)") == "ok");
  const auto insert = [](const char* column, size_t bytes) {
    return fmt::format("INSERT INTO viewed.t (k, {}) VALUES (1, '{}')", column,
                       std::string(bytes, 'x'));
  };
  CHECK(cql(insert("a", 65'535)) == "ok");
  CHECK(cql(insert("b", 65'536)) == "ok");
  CHECK(error(insert("a", 65'536)) ==
        "Key length of 65536 is longer than maximum of 65535: column a is in the key of "
        "materialized view v");
}

TEST_CASE_METHOD(Fixture, "tables of Cassandra's about what is not here are there, and empty") {
  for (const char* table :
       {"system.available_ranges", "system.paxos", "system.peer_events_v2", "system.repairs",
        "system.sstable_activity_v2", "system_auth.role_members", "system_auth.role_permissions",
        "system_distributed.parent_repair_history"}) {
    CAPTURE(table);
    CHECK(rows(std::string("SELECT * FROM ") + table).empty());
  }
  CHECK(error("INSERT INTO system.paxos (row_key) VALUES (0x)") ==
        "Modification is not supported by table system.paxos");
}

}  // namespace tetrad::tests
