// SPDX-License-Identifier: Apache-2.0
// Tables WITH COMPACT STORAGE: what may be one, rows that live by their values, hidden columns, and
// what DROP COMPACT STORAGE leaves.
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
          "USE ks", "CREATE TABLE s (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE",
          "CREATE TABLE d (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
          "CREATE TABLE dc (k int, c1 int, c2 text, v text, PRIMARY KEY (k, c1, c2)) WITH COMPACT "
          "STORAGE",
          "CREATE TABLE e (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE"}) {
      INFO(statement);
      REQUIRE(cql(statement) == "ok");
    }
  }

  bool describes(const char* table, const char* text) {
    return rows(std::string("DESCRIBE TABLE ") + table).find(text) != std::string::npos;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "what may be a compact table") {
  const auto create = [&](const char* columns) {
    return cql(std::string("CREATE TABLE x (") + columns + ") WITH COMPACT STORAGE");
  };
  CHECK(create("k int PRIMARY KEY") ==
        "error: No definition found that is not part of the PRIMARY KEY");
  CHECK(create("k int, c int, b int, a int, PRIMARY KEY (k, c)") ==
        "error: COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part "
        "of the PRIMARY KEY (got: a, b)");
  CHECK(create("k int, c int, s int STATIC, PRIMARY KEY (k, c)") ==
        "error: Static columns are not supported in COMPACT STORAGE tables");
  CHECK(create("k int PRIMARY KEY, l list<int>") ==
        "error: Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
  CHECK(create("column1 int PRIMARY KEY, value frozen<list<int>>") == "ok");
  CHECK(rows("SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = 'ks' "
             "AND table_name = 'x'") ==
        "'column1' | 'partition_key' | 'int'\n'column2' | 'clustering' | 'text'\n"
        "'value' | 'static' | 'frozen<list<int>>'\n'value1' | 'regular' | 'blob'");
}

TEST_CASE_METHOD(Fixture, "without clustering columns a row is its values") {
  CHECK(cql("INSERT INTO s (k, a) VALUES (1, 10)") == "ok");
  CHECK(cql("UPDATE s SET b = 'x' WHERE k = 2") == "ok");
  CHECK(cql("INSERT INTO s (k, a) VALUES (3, null)") == "ok");
  CHECK(cql("INSERT INTO s JSON '{\"k\": 4, \"a\": 40}'") == "ok");
  CHECK(error("INSERT INTO s (k) VALUES (5)") == "Some clustering keys are missing: column1");
  CHECK(cql("SELECT * FROM s") == "k | a | b\n1 | 10 | null\n2 | null | 'x'\n4 | 40 | null");
  CHECK(rows("SELECT DISTINCT k, a FROM s") == "1 | 10\n2 | null\n4 | 40");
  CHECK(rows("SELECT count(*) FROM s") == "3");
  CHECK(pages("SELECT k FROM s", 2) == "1\n2\n--\n4");
  CHECK(error("SELECT column1 FROM s") == "Undefined column name column1 in table ks.s");
  CHECK(error("UPDATE s SET value = 0x WHERE k = 1") ==
        "Undefined column name value in table ks.s");
  CHECK(cql("DELETE a FROM s WHERE k = 1") == "ok");
  CHECK(cql("DELETE FROM s WHERE k = 2") == "ok");
  CHECK(rows("SELECT k FROM s") == "4");
}

TEST_CASE_METHOD(Fixture, "with clustering columns a row is its value") {
  CHECK(cql("INSERT INTO d (k, c, v) VALUES (1, 1, 11)") == "ok");
  CHECK(error("INSERT INTO d (k, c) VALUES (1, 2)") ==
        "Column v is mandatory for this COMPACT STORAGE table");
  CHECK(cql("INSERT INTO d (k, c, v) VALUES (1, 3, null)") == "ok");
  CHECK(cql("UPDATE d SET v = 14 WHERE k = 1 AND c = 4") == "ok");
  CHECK(rows("SELECT * FROM d") == "1 | 1 | 11\n1 | 4 | 14");
  CHECK(cql("DELETE v FROM d WHERE k = 1 AND c = 4") == "ok");
  CHECK(rows("SELECT * FROM d") == "1 | 1 | 11");
  // Without a value of its own the key is enough.
  CHECK(cql("INSERT INTO e (k, c) VALUES (1, 1)") == "ok");
  CHECK(cql("INSERT INTO e JSON '{\"k\": 1, \"c\": 2}'") == "ok");  // value is null
  CHECK(cql("INSERT INTO e JSON '{\"k\": 1, \"c\": 3}' DEFAULT UNSET") == "ok");
  CHECK(cql("SELECT * FROM e") == "k | c\n1 | 1");
  CHECK(rows("SELECT count(*) FROM e") == "1");
  CHECK(error("SELECT value FROM e") == "Undefined column name value in table ks.e");
}

TEST_CASE_METHOD(Fixture, "a part of the clustering key names a row of its own") {
  CHECK(cql("INSERT INTO dc (k, c1, v) VALUES (1, 1, 'part')") == "ok");
  CHECK(cql("INSERT INTO dc (k, c1, c2, v) VALUES (1, 1, 'a', 'whole')") == "ok");
  CHECK(cql("UPDATE dc SET v = 'two' WHERE k = 1 AND c1 IN (2, 3)") == "ok");
  CHECK(rows("SELECT c1, c2, v FROM dc") ==
        "1 | null | 'part'\n1 | 'a' | 'whole'\n2 | null | 'two'\n3 | null | 'two'");
  CHECK(pages("SELECT c1, v FROM dc", 1) ==
        "1 | 'part'\n--\n1 | 'whole'\n--\n2 | 'two'\n--\n3 | 'two'");
  CHECK(rows("SELECT v FROM dc WHERE k = 1 AND c1 = 1") == "'part'\n'whole'");
  CHECK(error("INSERT INTO dc (k, c2, v) VALUES (1, 'a', 'x')") ==
        "PRIMARY KEY column \"c2\" cannot be restricted as preceding column \"c1\" is not "
        "restricted");
  CHECK(error("UPDATE dc SET v = 'x' WHERE k = 1 AND c2 = 'a'") ==
        "PRIMARY KEY column \"c2\" cannot be restricted as preceding column \"c1\" is not "
        "restricted");
  CHECK(error("UPDATE dc SET v = 'x' WHERE k = 1") == "Some clustering keys are missing: c1, c2");
  CHECK(error("DELETE v FROM dc WHERE k = 1 AND c1 = 1") ==
        "Range deletions are not supported for specific columns");
  CHECK(cql("DELETE FROM dc WHERE k = 1 AND c1 = 1") == "ok");
  CHECK(rows("SELECT c1, c2 FROM dc") == "2 | null\n3 | null");
}

TEST_CASE_METHOD(Fixture, "ALTER of compact tables, and DROP COMPACT STORAGE") {
  CHECK(error("ALTER TABLE s ADD x int") == "Cannot add new column to a COMPACT STORAGE table");
  CHECK(error("ALTER TABLE d DROP v") == "Cannot drop the value v of a COMPACT STORAGE table");
  CHECK(error("ALTER TABLE e DROP value") == "Column value was not found in table 'ks.e'");
  CHECK(error("ALTER TABLE s RENAME column1 TO x") ==
        "Undefined column name column1 in table ks.s");
  CHECK(cql("ALTER TABLE s DROP b") == "ok");
  CHECK(cql("ALTER TABLE s RENAME k TO kk") == "ok");
  CHECK(describes("s", "Warning: Table ks.s omitted because"));
  CHECK(describes("s",
                  "PRIMARY KEY (kk)\n) WITH COMPACT STORAGE\n    AND CLUSTERING ORDER BY "
                  "(column1 ASC)"));
  CHECK(cql("INSERT INTO s (kk, a) VALUES (1, 10)") == "ok");
  CHECK(cql("INSERT INTO e (k, c) VALUES (1, 1)") == "ok");
  CHECK(rows("SELECT table_name, flags FROM system_schema.tables WHERE keyspace_name = 'ks'") ==
        "'d' | {'dense'}\n'dc' | {'compound', 'dense'}\n'e' | {'dense'}\n's' | {}");

  settings.guardrails.drop_compact_storage = false;
  CHECK(error("ALTER TABLE s DROP COMPACT STORAGE") ==
        "DROP COMPACT STORAGE is disabled. Enable it with the option "
        "drop_compact_storage_enabled.");
  settings.guardrails.drop_compact_storage = true;
  for (const char* table : {"s", "e", "d"}) {
    CHECK(cql(fmt::format("ALTER TABLE {} DROP COMPACT STORAGE", table)) == "ok");
  }
  CHECK(error("ALTER TABLE s DROP COMPACT STORAGE") ==
        "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
  CHECK(cql("SELECT * FROM s") == "kk | column1 | a | value\n1 | null | 10 | null");
  CHECK(cql("INSERT INTO s (kk, column1, value) VALUES (1, 'x', 0x01)") == "ok");
  CHECK(rows("SELECT * FROM s") == "1 | 'x' | 10 | 0x01");
  CHECK(cql("SELECT * FROM e").starts_with("k | c | value\n1 | 1 | "));
  CHECK(cql("INSERT INTO d (k, c) VALUES (1, 1)") == "ok");  // a marker from now on
  CHECK(rows("SELECT * FROM d") == "1 | 1 | null");
  CHECK(cql("ALTER TABLE d ADD w int") == "ok");
  CHECK_FALSE(describes("s", "COMPACT STORAGE"));
  CHECK(describes("e", "    value empty,\n"));
}

}  // namespace tetrad::tests
