// SPDX-License-Identifier: Apache-2.0
// Guardrails: statements with the warnings and errors that Cassandra 5.0.9 gives under the same
// limits.
#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "USE ks", "CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))",
          "CREATE TABLE t0 (k int PRIMARY KEY, l list<int>, fl frozen<list<text>>, m map<text, "
          "text>)"}) {
      INFO(statement);
      REQUIRE_FALSE(cql(statement).starts_with("error: "));
    }
  }

  /// The guardrail's warnings of a statement, or its error, without what is the same in all.
  std::string guard(std::string_view text) {
    std::string answer = cql(text);
    if (answer.starts_with("error: ")) return answer.substr(7);
    std::string out;
    for (const std::string& warning : warnings) {
      if (warning.starts_with("Guardrail")) out += (out.empty() ? "" : "\n") + warning;
    }
    return out.empty() ? "ok" : out;
  }

  cql::Guardrails& rails() { return settings.guardrails; }
};

const std::string kReplication =
    " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

}  // namespace

TEST_CASE_METHOD(Fixture, "guardrails on the schema's size") {
  rails().keyspaces = {1, 2};
  CHECK(guard("CREATE KEYSPACE k2" + kReplication) ==
        "Guardrail keyspaces violated: Creating keyspace k2, current number of keyspaces 2 exceeds "
        "warning threshold of 1.");
  CHECK(guard("CREATE KEYSPACE k3" + kReplication) ==
        "Guardrail keyspaces violated: Cannot have more than 2 keyspaces, aborting the creation of "
        "keyspace k3");
  rails().tables = {2, 3};
  CHECK(guard("CREATE TABLE a (k int PRIMARY KEY)") ==
        "Guardrail tables violated: Creating table a, current number of tables 3 exceeds warning "
        "threshold of 2.");
  CHECK(guard("CREATE TABLE b (k int PRIMARY KEY)") ==
        "Guardrail tables violated: Cannot have more than 3 tables, aborting the creation of table "
        "b");
  rails().tables = {};
  rails().columns_per_table = {3, 5};
  CHECK(
      guard("CREATE TABLE c1 (k int PRIMARY KEY, a int, b int, c int)") ==
      "Guardrail columns_per_table violated: The table c1 has 4 columns, this exceeds the warning "
      "threshold of 3.");
  CHECK(guard("CREATE TABLE c2 (k int PRIMARY KEY, a int, b int, c int, d int, e int)") ==
        "Guardrail columns_per_table violated: Tables cannot have more than 5 columns, but 6 "
        "provided for table c2");
  CHECK(guard("ALTER TABLE t ADD x int") ==
        "Guardrail columns_per_table violated: The table t has 4 columns, this exceeds the warning "
        "threshold of 3.");
  rails().columns_per_table = {};
  rails().fields_per_udt = {2, 3};
  CHECK(guard("CREATE TYPE u1 (a int, b int, c int)") ==
        "Guardrail fields_per_udt violated: The user type u1 has 3 columns, this exceeds the "
        "warning threshold of 2.");
  CHECK(guard("ALTER TYPE u1 ADD d int") ==
        "Guardrail fields_per_udt violated: User types cannot have more than 3 columns, but 4 "
        "provided for user type u1.");
  CHECK(guard("CREATE TYPE u3 (a int, b int)") == "ok");
  rails().vector_dimensions = {3, 5};
  CHECK(guard("CREATE TABLE v1 (k int PRIMARY KEY, v vector<float, 4>)") ==
        "Guardrail vector_dimensions violated: Column v has a vector of 4 dimensions, this exceeds "
        "the warning threshold of 3.");
  CHECK(guard("CREATE TABLE v2 (k int PRIMARY KEY, v frozen<list<vector<float, 6>>>)") ==
        "Guardrail vector_dimensions violated: Column v has a vector of 6 dimensions, this exceeds "
        "the failure threshold of 5.");
}

TEST_CASE_METHOD(Fixture, "guardrails that switch things off") {
  rails().alter_table = rails().drop_truncate_table = rails().drop_keyspace = false;
  rails().allow_filtering = rails().group_by = rails().user_timestamps = false;
  rails().simplestrategy = rails().compact_tables = rails().uncompressed_tables = false;
  rails().read_before_write_list_operations = false;
  const std::string alter =
      "Guardrail alter_table violated: ALTER TABLE changing columns is not allowed";
  CHECK(guard("ALTER TABLE t ADD z int") == alter);
  CHECK(guard("ALTER TABLE t DROP v") == alter);
  CHECK(guard("ALTER TABLE t RENAME c TO d") == alter);
  CHECK(guard("ALTER TABLE t WITH comment = 'x'") == "ok");
  const std::string drop =
      "Guardrail drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is "
      "not allowed";
  CHECK(guard("TRUNCATE t") == drop);
  CHECK(guard("DROP TABLE t") == drop);
  CHECK(guard("DROP TABLE IF EXISTS nosuch") == drop);
  CHECK(guard("DROP KEYSPACE ks") ==
        "Guardrail drop_keyspace_enabled violated: DROP KEYSPACE functionality is not allowed");
  CHECK(guard("SELECT k, count(*) FROM t GROUP BY k") ==
        "Guardrail group_by violated: GROUP BY functionality is not allowed");
  CHECK(guard("SELECT * FROM t WHERE c = 1 ALLOW FILTERING") ==
        "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW "
        "FILTERING can potentially visit all the data in the table and have unpredictable "
        "performance.");
  CHECK(guard("INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP 1") ==
        "Guardrail user_timestamps violated: User provided timestamps (USING TIMESTAMP) is not "
        "allowed");
  CHECK(guard("INSERT INTO t (k, c) VALUES (1, 1) USING TTL 100") == "ok");
  CHECK(guard("CREATE KEYSPACE s" + kReplication) ==
        "Guardrail simplestrategy violated: SimpleStrategy is not allowed");
  CHECK(guard("CREATE TABLE p (k int PRIMARY KEY) WITH compression = {'enabled': false}") ==
        "Guardrail uncompressed_tables_enabled violated: Uncompressed table is not allowed");
  CHECK(guard("CREATE TABLE p (k int PRIMARY KEY, v int) WITH COMPACT STORAGE") ==
        "Guardrail compact_tables violated: Creation of new COMPACT STORAGE tables is not allowed");
  CHECK(guard("UPDATE t0 SET l[0] = 1 WHERE k = 1") ==
        "Guardrail read_before_write_list_operations violated: Setting of list items by index "
        "requiring read before write is not allowed");
  CHECK(guard("UPDATE t0 SET l = l - [1] WHERE k = 1") ==
        "Guardrail read_before_write_list_operations violated: Removal of list items requiring "
        "read before write is not allowed");
  CHECK(guard("DELETE l[0] FROM t0 WHERE k = 1") ==
        "Guardrail read_before_write_list_operations violated: Removal of list items by index "
        "requiring read before write is not allowed");
  CHECK(guard("UPDATE t0 SET l = [1] + l WHERE k = 1") == "ok");
}

TEST_CASE_METHOD(Fixture, "guardrails on table properties") {
  rails().table_properties = {{"comment"}, {"gc_grace_seconds"}, {"crc_check_chance"}};
  CHECK(guard("ALTER TABLE t WITH comment = 'x'") ==
        "Guardrail table_properties violated: Provided values [comment] are not recommended for "
        "Table Properties (warned values are: [comment])");
  CHECK(guard("CREATE TABLE p (k int PRIMARY KEY) WITH gc_grace_seconds = 5") ==
        "Guardrail table_properties violated: Ignoring provided values [gc_grace_seconds] as they "
        "are not supported for Table Properties (ignored values are: [gc_grace_seconds])");
  CHECK(rows("DESCRIBE TABLE p").find("gc_grace_seconds = 864000") != std::string::npos);
  CHECK(guard("ALTER TABLE t WITH crc_check_chance = 0.5") ==
        "Guardrail table_properties violated: Provided values [crc_check_chance] are not allowed "
        "for Table Properties (disallowed values are: [crc_check_chance])");
}

TEST_CASE_METHOD(Fixture, "guardrails on consistency levels") {
  rails().write_consistency_levels = {{"ALL"}, {}, {"EACH_QUORUM"}};
  rails().read_consistency_levels = {{"ALL"}, {}, {"EACH_QUORUM"}};
  for (const bool is_write : {true, false}) {
    const std::string kind = is_write ? "write" : "read";
    const auto* const statement =
        is_write ? "INSERT INTO t (k, c) VALUES (1, 1)" : "SELECT * FROM t WHERE k = 1";
    options.consistency = ConsistencyLevel::kAll;
    CHECK(guard(statement) == fmt::format("Guardrail {0}_consistency_levels violated: Provided "
                                          "values [ALL] are not recommended for {0} consistency "
                                          "levels (warned values are: [ALL])",
                                          kind));
    options.consistency = ConsistencyLevel::kEachQuorum;
    CHECK(guard(statement) == fmt::format("Guardrail {0}_consistency_levels violated: Provided "
                                          "values [EACH_QUORUM] are not allowed for {0} "
                                          "consistency levels (disallowed values are: "
                                          "[EACH_QUORUM])",
                                          kind));
    options.consistency = ConsistencyLevel::kQuorum;
    CHECK(guard(statement) == "ok");
  }
  options.consistency = ConsistencyLevel::kEachQuorum;
  CHECK(guard("BEGIN BATCH INSERT INTO t (k, c) VALUES (1, 1); APPLY BATCH")
            .starts_with("Guardrail write_consistency_levels violated"));
}

TEST_CASE_METHOD(Fixture, "guardrails on what a SELECT asks for") {
  rails().partition_keys_in_select = {3, 5};
  CHECK(guard("SELECT * FROM t WHERE k IN (1, 2, 3)") == "ok");
  CHECK(guard("SELECT * FROM t WHERE k IN (1, 2, 3, 4)") ==
        "Guardrail partition_keys_in_select violated: Query with partition keys in IN clause on "
        "table t, with number of partition keys 4 exceeds warning threshold of 3.");
  CHECK(guard("SELECT * FROM t WHERE k IN (1, 2, 3, 4, 5, 6)") ==
        "Guardrail partition_keys_in_select violated: Aborting query with partition keys in IN "
        "clause on table t, number of partition keys 6 exceeds fail threshold of 5.");
  rails().in_select_cartesian_product = {6, 9};
  CHECK(guard("SELECT * FROM t WHERE k = 1 AND c IN (1, 2, 3, 4, 5, 6, 7)") ==
        "Guardrail in_select_cartesian_product violated: The cartesian product of the IN "
        "restrictions on clustering key produces 7 values, this exceeds warning threshold of 6.");
  CHECK(guard("SELECT * FROM t WHERE k = 1 AND c IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)")
            .starts_with("Guardrail in_select_cartesian_product violated: Aborting query"));
  rails().page_size = {100, 200};
  options.page_size = 150;
  CHECK(guard("SELECT * FROM t WHERE k = 1") ==
        "Guardrail page_size violated: Query for table t with page size 150 exceeds warning "
        "threshold of 100.");
  options.page_size = 250;
  CHECK(guard("SELECT * FROM t WHERE k = 1") ==
        "Guardrail page_size violated: Aborting query for table t, page size 250 exceeds fail "
        "threshold of 200.");
}

TEST_CASE_METHOD(Fixture, "guardrails on timestamps") {
  const int64_t day_us = int64_t{86'400} * 1'000'000;
  const int64_t now_us = reactor.wall_time_us();
  rails().maximum_timestamp_s = {86'400, 864'000};
  rails().minimum_timestamp_s = {86'400, 864'000};
  const auto insert = [&](int64_t days) {
    return guard(fmt::format("INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP {}",
                             now_us + days * day_us));
  };
  CHECK(insert(0) == "ok");
  CHECK(insert(2) ==
        fmt::format("Guardrail maximum_timestamp violated: The modification to table t has a "
                    "timestamp {} after the maximum allowable warning threshold {}. Timestamps too "
                    "far in the future can lead to data that can't be easily overwritten",
                    now_us + 2 * day_us, now_us + day_us));
  CHECK(insert(20).find("after the maximum allowable failure threshold") != std::string::npos);
  CHECK(insert(-2).find("before the minimum allowable warning threshold") != std::string::npos);
  CHECK(insert(-20) ==
        fmt::format("Guardrail minimum_timestamp violated: The modification to table t has a "
                    "timestamp {} before the minimum allowable failure threshold {}. Timestamps "
                    "too far in the past can cause writes can be unexpectedly lost",
                    now_us - 20 * day_us, now_us - 10 * day_us));
}

TEST_CASE_METHOD(Fixture, "guardrails on values") {
  rails().items_per_collection = {2, 4};
  const std::string three =
      "Guardrail items_per_collection violated: Detected collection l with 3 items, this exceeds "
      "the warning threshold of 2.";
  CHECK(guard("INSERT INTO t0 (k, l) VALUES (1, [1, 2, 3])") == three);
  CHECK(guard("UPDATE t0 SET l = l + [1, 2, 3] WHERE k = 1") == three);
  CHECK(guard("BEGIN BATCH INSERT INTO t0 (k, l) VALUES (1, [1, 2, 3]); APPLY BATCH") == three);
  CHECK(guard("INSERT INTO t0 (k, l) VALUES (1, [1, 2, 3, 4, 5])") ==
        "Guardrail items_per_collection violated: Detected collection l with 5 items, this exceeds "
        "the failure threshold of 4.");
  CHECK(guard("INSERT INTO t0 (k, fl) VALUES (1, ['a', 'b', 'c'])") ==
        "Guardrail items_per_collection violated: Detected collection fl with 3 items, this "
        "exceeds the warning threshold of 2.");
  rails().items_per_collection = {};
  rails().collection_size_bytes = {1024, 2048};
  const auto insert = [&](const char* form, size_t size) {
    return guard(fmt::format(fmt::runtime(form), std::string(size, 'x')));
  };
  CHECK(insert("INSERT INTO t0 (k, fl) VALUES (1, ['{}'])", 1500) ==
        "Guardrail collection_size violated: Detected collection fl of size 1528, this exceeds the "
        "warning threshold of 1024.");
  CHECK(insert("INSERT INTO t0 (k, fl) VALUES (1, ['{}'])", 2500) ==
        "Guardrail collection_size violated: Detected collection fl of size 2528, this exceeds the "
        "failure threshold of 2048.");
  CHECK(insert("INSERT INTO t0 (k, m) VALUES (1, {{'1': '{}'}})", 1500)
            .starts_with("Guardrail collection_size violated: Detected collection m of size 15"));
  rails().collection_size_bytes = {};
  rails().column_value_size_bytes = {4096, 8192};
  CHECK(insert("INSERT INTO t (k, c, v) VALUES (1, 1, '{}')", 5000) ==
        "Guardrail column_value_size violated: Value of column 'v' has size 5000, this exceeds the "
        "warning threshold of 4096.");
  CHECK(insert("INSERT INTO t (k, c, v) VALUES (1, 1, '{}')", 9000) ==
        "Guardrail column_value_size violated: Value of column 'v' has size 9000, this exceeds the "
        "failure threshold of 8192.");
}

TEST_CASE_METHOD(Fixture, "guardrails on replication and on windows without a time to live") {
  rails().minimum_replication_factor = {2, 1};
  rails().maximum_replication_factor = {3, 5};
  const auto create = [&](const char* name, int factor) {
    return guard(
        fmt::format("CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', "
                    "'replication_factor': {}}}",
                    name, factor));
  };
  CHECK(create("g1", 1) ==
        "Guardrail minimum_replication_factor violated: The keyspace g1 has a replication factor "
        "of 1, below the warning threshold of 2.");
  CHECK(create("g4", 4) ==
        "Guardrail maximum_replication_factor violated: The keyspace g4 has a replication factor "
        "of 4, above the warning threshold of 3.");
  CHECK(create("g6", 6) ==
        "Guardrail maximum_replication_factor violated: The keyspace g6 has a replication factor "
        "of 6, above the failure threshold of 5.");
  CHECK(create("g0", 0) ==
        "Guardrail minimum_replication_factor violated: The keyspace g0 has a replication factor "
        "of 0, below the failure threshold of 1.");
  CHECK(create("g2", 2) == "ok");
  CHECK(guard("ALTER KEYSPACE g2 WITH replication = {'class': 'NetworkTopologyStrategy', "
              "'datacenter1': 6}")
            .find("above the failure threshold of 5") != std::string::npos);
  rails().zero_ttl_on_twcs_warned = true;
  const std::string reason =
      "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please "
      "keep in mind that data will not start to automatically expire after they are older than a "
      "respective compaction window unit of a certain size. Please set TTL for your INSERT or "
      "UPDATE statements if you expect data to be expired as table settings will not do it. ";
  const std::string windows =
      " (k int PRIMARY KEY) WITH compaction = {'class': 'TimeWindowCompactionStrategy'}";
  CHECK(guard("CREATE TABLE tw" + windows) ==
        "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with "
        "TimeWindowCompactionStrategy compaction strategy is not recommended. " +
            reason);
  CHECK(guard("CREATE TABLE tx" + windows + " AND default_time_to_live = 100") == "ok");
  rails().zero_ttl_on_twcs = false;
  CHECK(guard("CREATE TABLE ty" + windows) ==
        "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with "
        "TimeWindowCompactionStrategy compaction strategy is not allowed. " +
            reason);
}

TEST_CASE_METHOD(Fixture, "writes to replicas whose disks fill up are warned of or refused") {
  using replication::DiskUsage;
  const std::string stuffed =
      "Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold";
  const std::string full =
      "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds "
      "failure threshold";
  const std::string insert = "INSERT INTO t (k, c, v) VALUES (1, 1, 'a')";
  CHECK(guard(insert) == "ok");
  meta.set_disk_usage(DiskUsage::kStuffed);
  CHECK(guard(insert) == stuffed);
  CHECK(guard(insert) == "ok");  // not with every write
  reactor.advance_us(int64_t{30} * 60 * 1'000'000 - 1);
  CHECK(guard(insert) == "ok");
  reactor.advance_us(1);
  const std::string batch =
      "BEGIN UNLOGGED BATCH INSERT INTO t (k, c, v) VALUES (1, 2, 'b'); INSERT INTO t (k, c, v) "
      "VALUES (2, 2, 'b'); APPLY BATCH";
  CHECK(guard(batch) == stuffed);
  CHECK(guard(batch) == "ok");

  meta.set_disk_usage(DiskUsage::kFull);
  for (const std::string& text :
       {insert, batch, std::string("UPDATE t SET v = 'c' WHERE k = 1 AND c = 1"),
        std::string("DELETE FROM t WHERE k = 1 AND c = 1"),
        std::string("DELETE FROM t WHERE k = 1"),
        std::string("BEGIN BATCH DELETE FROM t WHERE k = 1 AND c = 1; APPLY BATCH")}) {
    INFO(text);
    CHECK(guard(text) == full);
  }
  const auto failed = execute(prepare(insert), {});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kInvalid);
  // What is read or leads to room goes on.
  CHECK(rows("SELECT v FROM t WHERE k = 1 AND c = 1") == "'a'");
  CHECK(guard("TRUNCATE t0") == "ok");
  CHECK(guard("DROP TABLE t0") == "ok");
  CHECK(guard("CREATE TABLE t1 (k int PRIMARY KEY)") == "ok");
  meta.set_disk_usage(DiskUsage::kSpacious);
  CHECK(guard(insert) == "ok");
}

}  // namespace tetrad::tests
