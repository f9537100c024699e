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
  CHECK(rows("SELECT * FROM t") == "1 | 1 | static | 5 | one | 7\n1 | 2 | static | 6 | two | 8");
  as("plain");
  const std::string masked = "1 | 0 | s***** | 105 | **** | 7\n1 | 0 | s***** | 106 | **** | 8";
  CHECK(rows("SELECT * FROM t") == masked);
  CHECK(rows("SELECT * FROM t WHERE k = 1") == masked);
  CHECK(rows("SELECT k, c, s, n, v, w FROM t WHERE k IN (1, 2) ORDER BY c") == masked);
  CHECK(rows("SELECT DISTINCT k, s FROM t") == "1 | s*****");
  CHECK(rows("SELECT n + 1, w FROM t WHERE k = 1") == "106 | 7\n107 | 8");
  CHECK(rows("SELECT JSON v, n FROM t LIMIT 1") == R"({"v": "****", "n": 105})");
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
    CHECK(rows(statement) == "2 | 11 | 6 | 2 | two");
    as("plain");
    CHECK(rows(statement) == "2 | 211 | 106 | 2 | ****");
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

TEST_CASE_METHOD(Masks, "a statement prepared before a grant shows what the grant says") {
  const auto statement = try_prepare("SELECT v FROM t WHERE k = 1");
  REQUIRE(statement);
  const auto shown = [&] { return print(execute(*statement, {}), false); };
  as("plain");
  CHECK(shown() == "****\n****");
  as("root");
  run("GRANT UNMASK ON KEYSPACE ks TO plain");
  as("plain");
  CHECK(shown() == "one\ntwo");
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
  CHECK(rows("SELECT v FROM t") == "one\ntwo");
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
