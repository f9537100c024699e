// SPDX-License-Identifier: Apache-2.0
// Masked columns: who sees them, in every form of a SELECT and whoever reads the rows, and what the
// schema keeps of them. Answers and texts are in tests/drivers/auth/scripts/masks.cql, too.
#include <catch2/catch.hpp>

#include "cql/execute/access.h"
#include "cql/schema/schema_text.h"
#include "replication/meta/cluster_format.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Masks : public LocalCluster {
 public:
  Masks() {
    settings.data_masking_enabled = settings.user_functions_enabled = true;
    cql::Role root;
    root.name = "root";
    root.can_login = root.is_superuser = true;
    put(root);
    as("root");
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "USE ks", "CREATE ROLE plain WITH LOGIN = true", "GRANT SELECT ON KEYSPACE ks TO plain",
          "CREATE FUNCTION plus (x int, y int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS "
          "'return (x or 0) + y'",
          "CREATE TABLE t (k int, c int MASKED WITH DEFAULT, s text STATIC MASKED WITH "
          "mask_inner(1, null), v text MASKED WITH DEFAULT, n int MASKED WITH ks.plus(100), w int, "
          "PRIMARY KEY (k, c)) WITH cdc = true",
          "INSERT INTO t (k, c, s, v, n, w) VALUES (1, 1, 'static', 'one', 5, 7)",
          "INSERT INTO t (k, c, v, n, w) VALUES (1, 2, 'two', 6, 8)"})
      run(statement);
  }
  void as(std::string user) {
    client.must_log_in = true;
    client.user = std::move(user);
  }
  void run(const std::string& statement) {
    INFO(statement);
    const std::string answer = cql(statement);
    INFO(answer);
    REQUIRE_FALSE(answer.starts_with("error: "));
  }
  /// Whether the client may run it: "" or the error.
  std::string refusal(const std::string& statement) {
    const auto made = try_prepare(statement);
    REQUIRE(made);
    const auto checked = cql::check_access(**made, client, *schema(), "dc");
    return checked ? "" : checked.error().message;
  }

 private:
  void put(const cql::Role& role) {
    replication::SchemaChange change;
    change.expected = meta.snapshot()->schema_version;
    change.objects.emplace_back(cql::role_key(role.name), cql::role_text(role));
    REQUIRE(run_task(reactor, meta.change_schema(std::move(change), {INT64_MAX}, nullptr)));
  }
};

}  // namespace

TEST_CASE_METHOD(Masks, "who may not unmask sees masks, however the rows are read") {
  CHECK(rows("SELECT * FROM t") ==
        "1 | 1 | 'static' | 5 | 'one' | 7\n1 | 2 | 'static' | 6 | 'two' | 8");
  as("plain");
  const std::string masked =
      "1 | 0 | 's*****' | 105 | '****' | 7\n1 | 0 | 's*****' | 106 | '****' | 8";
  CHECK(rows("SELECT * FROM t") == masked);
  CHECK(rows("SELECT * FROM t WHERE k = 1") == masked);
  CHECK(rows("SELECT k, c, s, n, v, w FROM t WHERE k IN (1, 2) ORDER BY c") == masked);
  CHECK(rows("SELECT DISTINCT k, s FROM t") == "1 | 's*****'");
  CHECK(rows("SELECT n + 1, w FROM t WHERE k = 1") == "106 | 7\n107 | 8");
  CHECK(rows("SELECT JSON v, n FROM t LIMIT 1") == R"('{"v": "****", "n": 105}')");
  CHECK(pages("SELECT c, n FROM t", 1) == "0 | 105\n--\n0 | 106");
  const std::string fed = rows("SELECT v FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = 0");
  CHECK(fed.find("****") != std::string::npos);
  CHECK(fed.find("one") == std::string::npos);
}

TEST_CASE_METHOD(Masks, "aggregates are of what is shown, whether replicas could fold or not") {
  const std::string statement = "SELECT count(*), sum(n), max(n), count(w), max(v) FROM t";
  for (const bool folds : {true, false}) {
    coordinator->folds = folds;
    as("root");
    CHECK(rows(statement) == "2 | 11 | 6 | 2 | 'two'");
    as("plain");
    CHECK(rows(statement) == "2 | 211 | 106 | 2 | '****'");
    CHECK(rows("SELECT k, sum(n) FROM t GROUP BY k") == "1 | 211");
    CHECK(rows("SELECT k, c, sum(n) FROM t GROUP BY k, c") == "1 | 0 | 105\n1 | 0 | 106");
  }
}

TEST_CASE_METHOD(Masks, "a masked column is not searched by who may not see it or search it") {
  as("plain");
  CHECK(refusal("SELECT v FROM t WHERE k = 1").empty());
  CHECK(refusal("SELECT v FROM t WHERE k = 1 AND c = 1") ==
        "User plain has no UNMASK nor SELECT_MASKED permission on table ks.t, cannot query masked "
        "columns [c]");
  CHECK(refusal("SELECT w FROM t WHERE n > 1 AND v = 'a' ALLOW FILTERING")
            .ends_with("columns [n, v]"));
  CHECK(refusal("SELECT w FROM t WHERE w = 1 ALLOW FILTERING").empty());
  as("root");
  CHECK(refusal("SELECT v FROM t WHERE k = 1 AND c = 1").empty());
  run("GRANT SELECT_MASKED ON t TO plain");
  as("plain");
  CHECK(refusal("SELECT v FROM t WHERE k = 1 AND c = 1").empty());
  CHECK(rows("SELECT n FROM t WHERE k = 1 AND c = 1") == "105");
}

TEST_CASE_METHOD(Masks, "a conditional statement answers with masks to who may not unmask") {
  const std::string insert = "INSERT INTO t (k, c, v) VALUES (1, 1, 'x') IF NOT EXISTS";
  const std::string update = "UPDATE t SET w = 1 WHERE k = 1 AND c = 1 IF w = 0";
  const std::string batch =
      "BEGIN BATCH UPDATE t SET w = 1 WHERE k = 1 AND c = 1 IF v = 'no' AND n = 0; "
      "UPDATE t SET w = 1 WHERE k = 1 AND c = 2 IF w = 8; APPLY BATCH";
  for (const int decisions : {1, 3}) {
    coordinator->decisions = decisions;
    as("root");
    CHECK(rows(insert) == "false | 1 | 1 | null | 5 | 'one' | 7");
    CHECK(rows(batch) == "false | 1 | 1 | 'one' | 5 | 7\nfalse | 1 | 2 | 'two' | 6 | 8");
    as("plain");
    CHECK(rows(insert) == "false | 1 | 0 | null | 105 | '****' | 7");
    CHECK(rows(update) == "false | 7");
    CHECK(rows(batch) == "false | 1 | 0 | '****' | 105 | 7\nfalse | 1 | 0 | '****' | 106 | 8");
    CHECK(rows("UPDATE t SET s = 'x' WHERE k = 1 IF s = 'no'") == "false | 's*****'");
    CHECK(rows("UPDATE t SET w = 7 WHERE k = 1 AND c = 1 IF w = 7") == "true");
  }
  settings.data_masking_enabled = false;
  CHECK(rows(insert) == "false | 1 | 1 | null | 5 | 'one' | 7");
}

TEST_CASE_METHOD(Masks, "a condition on a masked column needs what WHERE needs") {
  run("GRANT MODIFY ON t TO plain");
  as("plain");
  const std::string update = "UPDATE t SET w = 1 WHERE k = 1 AND c = 1 IF n > 1 AND w = 7";
  const std::string told =
      "User plain has no UNMASK nor SELECT_MASKED permission on table ks.t, cannot query masked "
      "columns [n]";
  CHECK(refusal(update) == told);
  CHECK(refusal("BEGIN BATCH " + update + "; APPLY BATCH") == told);
  CHECK(refusal("DELETE FROM t WHERE k = 1 AND c = 1 IF v = 'a'").ends_with("columns [v]"));
  CHECK(refusal("DELETE FROM t WHERE k = 1 AND c = 1 IF EXISTS").empty());
  CHECK(refusal("UPDATE t SET v = 'a' WHERE k = 1 AND c = 1 IF w = 7").empty());
  as("root");
  CHECK(refusal(update).empty());
  run("GRANT SELECT_MASKED ON t TO plain");
  as("plain");
  CHECK(refusal(update).empty());
}

TEST_CASE_METHOD(Masks, "a page ends where who may not unmask cannot read it, if keys are masked") {
  const auto hides = [&](const std::string& statement) {
    const auto made = try_prepare(statement);
    REQUIRE(made);
    options.page_size = 1;
    const auto result = execute(*made, {});
    options.page_size = -1;
    REQUIRE(result);
    const auto& page = std::get<cql::RowsResult>(*result);
    REQUIRE(page.next_position);
    return page.hides_position;
  };
  run("CREATE TABLE open (k int, c int, v text MASKED WITH DEFAULT, PRIMARY KEY (k, c))");
  run("INSERT INTO open (k, c) VALUES (1, 1)");
  run("INSERT INTO open (k, c) VALUES (1, 2)");
  CHECK_FALSE(hides("SELECT w FROM t"));
  as("plain");
  CHECK(hides("SELECT w FROM t"));  // whether the key is asked for or not
  CHECK(hides("SELECT c FROM t WHERE k = 1"));
  CHECK(hides("SELECT k, c, sum(n) FROM t GROUP BY k, c"));
  CHECK(hides("SELECT w FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = 0"));
  CHECK_FALSE(hides("SELECT v FROM open"));
}

TEST_CASE_METHOD(Masks, "who makes a view sees it masked") {
  run("CREATE TABLE base (k int PRIMARY KEY, v text MASKED WITH DEFAULT)");
  run("INSERT INTO base (k, v) VALUES (1, 'seen')");
  as("plain");
  run("CREATE TABLE own (k int PRIMARY KEY, v text MASKED WITH DEFAULT)");
  run("CREATE MATERIALIZED VIEW by_v AS SELECT * FROM base WHERE v IS NOT NULL AND k IS NOT NULL "
      "PRIMARY KEY (v, k)");
  const auto may_unmask = [&](const char* table) {
    const auto held = schema()->roles()->permissions("plain", cql::table_resource("ks", table));
    return (held & cql::set_of(cql::Permission::kUnmask)) != 0;
  };
  CHECK(may_unmask("own"));
  CHECK_FALSE(may_unmask("by_v"));
  CHECK_FALSE(may_unmask("base"));
}

TEST_CASE_METHOD(Masks, "the constants of a mask follow their types") {
  run("CREATE TYPE way (a int)");
  run("CREATE FUNCTION by_way (x text, y way) CALLED ON NULL INPUT RETURNS text LANGUAGE "
      "lua AS 'return \"hidden\"'");
  run("CREATE TABLE w (k int PRIMARY KEY, v text MASKED WITH ks.by_way({a: 1}))");
  run("INSERT INTO w (k, v) VALUES (1, 'seen')");
  run("ALTER TYPE way ADD b int");
  as("plain");
  CHECK(rows("SELECT v FROM w") == "'hidden'");
  as("root");
  CHECK(error("DROP FUNCTION by_way").find("still referenced by column masks in tables w") !=
        std::string::npos);
}

TEST_CASE_METHOD(Masks, "a column that was dropped and added is described with its mask") {
  run("ALTER TABLE t DROP w");
  run("ALTER TABLE t ADD w int MASKED WITH mask_replace(1)");
  CHECK(cql("DESCRIBE TABLE t WITH INTERNALS")
            .find("ADD w int MASKED WITH system.mask_replace(1);") != std::string::npos);
}

TEST_CASE_METHOD(Masks,
                 "the nearest of masked vectors are those by their values, for who may search") {
  run("CREATE TABLE near (k int PRIMARY KEY, v vector<float, 2> MASKED WITH DEFAULT)");
  run("CREATE INDEX ON near (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}");
  for (int k = 0; k < 10; ++k)
    run(fmt::format("INSERT INTO near (k, v) VALUES ({}, [{}, 0])", k, k));
  const std::string nearest = "SELECT k FROM near ORDER BY v ANN OF [7.2, 0] LIMIT 2";
  as("plain");
  CHECK(refusal(nearest).ends_with("columns [v]"));
  as("root");
  run("GRANT SELECT_MASKED ON near TO plain");
  as("plain");
  CHECK(refusal(nearest).empty());
  CHECK(rows(nearest) == "7\n8");
}

TEST_CASE_METHOD(Masks, "what a mask is made of has bounds") {
  const std::string longer(4096, 'x');
  CHECK(error("ALTER TABLE t ALTER v MASKED WITH mask_replace('" + longer + "')")
            .starts_with("The mask of a column may take 4096 bytes at most, not"));
  run("CREATE TABLE most (k int PRIMARY KEY, v vector<float, 8192> MASKED WITH DEFAULT)");
  CHECK(error("CREATE TABLE more (k int PRIMARY KEY, v vector<float, 8193> MASKED WITH DEFAULT)")
            .find("more than 8192 elements") != std::string::npos);
  CHECK(error("CREATE TABLE more (k int PRIMARY KEY, v vector<vector<int, 100>, 100> MASKED WITH "
              "DEFAULT)")
            .find("more than 8192 elements") != std::string::npos);
}

TEST_CASE_METHOD(Masks, "a statement prepared before a grant shows what the grant says") {
  const auto statement = try_prepare("SELECT v FROM t WHERE k = 1");
  REQUIRE(statement);
  const auto shown = [&] { return print(execute(*statement, {}), false); };
  as("plain");
  CHECK(shown() == "'****'\n'****'");
  as("root");
  run("GRANT UNMASK ON KEYSPACE ks TO plain");
  as("plain");
  CHECK(shown() == "'one'\n'two'");
  as("root");
  run("ALTER TABLE t ALTER v DROP MASKED");
  CHECK_FALSE((*statement)->is_current(*schema()));
}

TEST_CASE_METHOD(Masks, "a statement is out of date with the function of a mask") {
  const auto statement = try_prepare("SELECT n FROM t");
  REQUIRE(statement);
  CHECK(error("DROP FUNCTION plus").find("still referenced by column masks in tables") !=
        std::string::npos);
  run("CREATE OR REPLACE FUNCTION plus (x int, y int) CALLED ON NULL INPUT RETURNS int LANGUAGE "
      "lua AS 'return y'");
  CHECK_FALSE((*statement)->is_current(*schema()));
  as("plain");
  CHECK(rows("SELECT n FROM t") == "100\n100");
}

TEST_CASE_METHOD(Masks, "masks are not shown, and none is made, while they are disabled") {
  settings.data_masking_enabled = false;
  as("plain");
  CHECK(rows("SELECT v FROM t") == "'one'\n'two'");
  CHECK(refusal("SELECT v FROM t WHERE k = 1 AND c = 1").empty());
  as("root");
  CHECK(error("ALTER TABLE t ALTER w MASKED WITH DEFAULT")
            .starts_with("Cannot mask columns because dynamic data masking is not enabled"));
  run("ALTER TABLE t ALTER v DROP MASKED");
}

TEST_CASE("a node with an older program in the cluster keeps masks and groups away") {
  LocalCluster cluster;
  cluster.settings.data_masking_enabled = true;
  cluster.cql(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
      "'replication_factor': 1}");
  cluster.meta.set_format(replication::kFormatMasks - 1);
  const std::string create = "CREATE TABLE ks.t (k int PRIMARY KEY, v int MASKED WITH DEFAULT)";
  CHECK(cluster.error(create).starts_with("Masks of columns wait until all nodes"));
  cluster.meta.set_format(replication::kFormatMasks);
  CHECK(cluster.cql(create) == "ok");
}

TEST_CASE("a table's text keeps masks, and one that does not fit is an error") {
  cql::TableSchema table;
  table.keyspace = "ks";
  table.name = "t";
  table.id = TableId{*Uuid::parse("5bc52802-de25-35ed-aeab-188eecebb090")};
  cql::ColumnSchema key, value;
  key.name = "k";
  key.type = cql::int_type();
  key.kind = cql::ColumnKind::kPartitionKey;
  value.name = "v";
  value.type = cql::text_type();
  value.id = 1;
  table.next_column_id = 2;
  const auto mask = std::make_shared<cql::ColumnMask>();
  mask->keyspace = "system";
  mask->function = "mask_inner";
  mask->argument_types = {cql::int_type(), cql::int_type()};
  mask->arguments = {cql::make_int(1), std::nullopt};
  value.mask = mask;
  table.set_columns({key, value});
  const std::string text = cql::table_text(table);
  const auto read = cql::read_table_text(text, nullptr);
  REQUIRE(read);
  REQUIRE((*read)->find("v")->mask != nullptr);
  CHECK((*read)->find("v")->mask->cql_text() == "system.mask_inner(1, null)");
  CHECK((*read)->find("k")->mask == nullptr);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return cql::read_table_text(changed, nullptr);
  };
  CHECK_FALSE(with(R"("keyspace":"system")", R"("keyspace":"other")"));
  CHECK_FALSE(with(R"("arguments":["00000001",null])", R"("arguments":["00000001"])"));
  CHECK_FALSE(with(R"("arguments":["00000001",null])", R"("arguments":["0x",null])"));
}

}  // namespace tetrad::tests
