// SPDX-License-Identifier: Apache-2.0
// User-defined functions and aggregates in statements. Whole scripts with Cassandra's answers are
// in tests/conformance/scripts/functions.cql.
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    settings.user_functions_enabled = true;
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "USE ks", "CREATE TABLE t (k int, c int, v int, s text, PRIMARY KEY (k, c))"}) {
      INFO(statement);
      REQUIRE_FALSE(cql(statement).starts_with("error: "));
    }
    for (int i = 1; i <= 3; ++i) {
      REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v, s) VALUES (1, {0}, {0}0, 's{0}')", i)) ==
              "ok");
    }
  }

  void make(std::string_view statement) {
    INFO(statement);
    const std::string answer = cql(statement);
    CHECK_FALSE(answer.starts_with("error: "));
    if (answer.starts_with("error: ")) CHECK(answer.empty());
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "functions stand wherever values do") {
  make(
      "CREATE FUNCTION twice (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'return a * 2'");
  make(
      "CREATE FUNCTION twice (a text) CALLED ON NULL INPUT RETURNS text LANGUAGE lua AS "
      "$$return (a or '-') .. (a or '-')$$");
  CHECK(rows("SELECT twice(v), ks.twice(s), abs(twice(v)) FROM t WHERE k = 1 AND c = 1") ==
        "20 | 's1s1' | 20");
  CHECK(rows("SELECT c FROM t WHERE k = 1 AND c = twice((int)1)") == "2");
  make("INSERT INTO t (k, c, v) VALUES (twice(4), twice(2), twice(7))");
  make("UPDATE t SET s = twice('u') WHERE k = 8 AND c = 4");
  CHECK(rows("SELECT v, s FROM t WHERE k = 8") == "14 | 'uu'");
  CHECK(rows("SELECT sum(twice(v)), twice(max(v)) FROM t WHERE k = 1") == "120 | 60");
  CHECK(rows("SELECT twice(v) FROM t WHERE k = 77").empty());
}

TEST_CASE_METHOD(Fixture, "rows and statements with much work have turns of their own") {
  make(
      "CREATE FUNCTION heavy (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'for i = 1, 900000 do end return a'");
  make(
      "CREATE FUNCTION state (s int, a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'for i = 1, 900000 do end return s + 1'");
  make("CREATE AGGREGATE counted (int) SFUNC state STYPE int INITCOND 0");
  for (int i = 4; i <= 20; ++i)
    make(fmt::format("INSERT INTO t (k, c, v) VALUES (1, {0}, {0})", i));
  // Every row has a turn of its own.
  CHECK(rows("SELECT counted(v), max(heavy(c)) FROM t WHERE k = 1") == "20 | 20");
  CHECK(rows("SELECT heavy(c), heavy(v) FROM t WHERE k = 1 AND c > 18") == "19 | 19\n20 | 20");
  std::string batch = "BEGIN UNLOGGED BATCH ";
  for (int i = 0; i < 10; ++i)
    batch += fmt::format("INSERT INTO t (k, c) VALUES (2, heavy({})); ", i);
  CHECK(cql(batch + "APPLY BATCH") == "ok");
  CHECK(rows("SELECT count(*) FROM t WHERE k = 2") == "10");
}

TEST_CASE_METHOD(Fixture, "an aggregate over nothing may fail") {
  CHECK(cql("SELECT count(*) / 0 FROM t WHERE k IN ()").starts_with("error: "));
  CHECK(cql("SELECT count(*) / 0 FROM t WHERE k = 77").starts_with("error: "));
  CHECK(rows("SELECT count(*) + 1, sum(v) FROM t WHERE k IN ()") == "1 | 0");
}

TEST_CASE_METHOD(Fixture, "a prepared statement goes with the function that it calls") {
  make(
      "CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return "
      "a'");
  make(
      "CREATE FUNCTION g (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return "
      "a'");
  make(
      "CREATE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'return (a or 0) + b'");
  make("CREATE AGGREGATE total (int) SFUNC plus STYPE int");
  const auto select = prepare("SELECT f(v) FROM t WHERE k = 1");
  const auto insert = prepare("INSERT INTO t (k, c) VALUES (1, f(?))");
  const auto other = prepare("SELECT g(v) FROM t WHERE k = 1");
  const auto sum = prepare("SELECT total(v) FROM t WHERE k = 1");
  make(
      "CREATE OR REPLACE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'return a + 1'");
  const auto schema = cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
  CHECK_FALSE(select->is_current(*schema));
  CHECK_FALSE(insert->is_current(*schema));
  CHECK(sum->is_current(*schema) == other->is_current(*schema));
  make(
      "CREATE OR REPLACE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE "
      "lua "
      "AS 'return (a or 0) - b'");
  CHECK_FALSE(sum->is_current(*cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {})));
  CHECK(rows("SELECT total(v) FROM t WHERE k = 1") == "-60");
}

TEST_CASE_METHOD(Fixture, "aggregates of users") {
  make(
      "CREATE FUNCTION plus (a int, b int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'return a + b'");
  make(
      "CREATE FUNCTION show (a int) CALLED ON NULL INPUT RETURNS text LANGUAGE lua AS "
      "'return \"=\" .. tostring(a)'");
  make("CREATE AGGREGATE total (int) SFUNC plus STYPE int FINALFUNC show INITCOND 5");
  make("INSERT INTO t (k, c) VALUES (1, 9)");
  CHECK(rows("SELECT total(v) FROM t WHERE k = 1") == "'=65'");
  CHECK(rows("SELECT total(v) FROM t WHERE k = 77") == "'=5'");
  CHECK(rows("SELECT c, total(v) FROM t WHERE k = 1 GROUP BY k, c LIMIT 2") ==
        "1 | '=15'\n2 | '=25'");
  CHECK(error("SELECT total(max(v)) FROM t") ==
        "aggregate functions cannot be used as arguments of aggregate functions");
  CHECK(error("DROP FUNCTION plus") ==
        "Function 'ks.plus' is still referenced by aggregates ks.total");
  CHECK(rows("DESCRIBE AGGREGATE total").find("CREATE AGGREGATE ks.total(int)") !=
        std::string::npos);
  make("DROP AGGREGATE total");
  make("DROP FUNCTION plus(int, int)");
  CHECK(error("SELECT total(v) FROM t") == "Unknown function 'total'");
}

TEST_CASE_METHOD(Fixture, "results of functions are frozen where columns are") {
  make("CREATE TYPE p (x int, y int)");
  make("CREATE TABLE u (k int PRIMARY KEY, f frozen<p>, n p)");
  make("CREATE FUNCTION same (a p) CALLED ON NULL INPUT RETURNS p LANGUAGE lua AS 'return a'");
  make("INSERT INTO u (k, f, n) VALUES (1, same({x: 1, y: 2}), same({x: 3}))");
  CHECK(rows("SELECT same(f).y, same(n).x FROM u") == "2 | 3");
}

TEST_CASE_METHOD(Fixture, "many rows are evaluated in turns") {
  make(
      "CREATE FUNCTION slow (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'local n = 0 for i = 1, 2000 do n = n + 1 end return a + n'");
  for (int i = 0; i < 200; ++i) {
    REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v) VALUES (5, {0}, {0})", i)) == "ok");
  }
  CHECK(rows("SELECT sum(slow(v)), count(*) FROM t WHERE k = 5") == "419900 | 200");
  CHECK(rows("SELECT max(slow(v)) FROM t WHERE k IN (1, 5, 6)") == "2199");
  const std::string all = rows("SELECT slow(v) FROM t WHERE k = 5");
  CHECK(std::count(all.begin(), all.end(), '\n') == 199);
}

TEST_CASE_METHOD(Fixture, "failures name the function") {
  make(
      "CREATE FUNCTION bad (a int, b text) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'error(\"as told\")'");
  const auto statement = prepare("SELECT bad(v, s) FROM t WHERE k = 1");
  const auto result = execute(statement, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kFunctionFailure);
  const auto* detail = std::get_if<base::FunctionFailureDetail>(result.error().detail.get());
  REQUIRE(detail != nullptr);
  CHECK(detail->keyspace == "ks");
  CHECK(detail->name == "bad");
  CHECK(detail->argument_types == std::vector<std::string>{"int", "text"});
  CHECK(error("INSERT INTO t (k, c) VALUES (1, bad(1, 'a'))").find("as told") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "languages and the switch") {
  const std::string error_java = error(
      "CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return "
      "a;'");
  CHECK(error_java.find("language java") != std::string::npos);
  CHECK(error_java.find("LANGUAGE lua") != std::string::npos);
  CHECK(error("CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
              "'return ('")
            .starts_with("Lua source compilation failed"));
  make(
      "CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return "
      "a'");
  settings.user_functions_enabled = false;
  const std::string off =
      "User-defined functions are disabled. Enable them with the option "
      "user_defined_functions_enabled.";
  CHECK(error("CREATE FUNCTION g (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
              "'return a'") == off);
  CHECK(error("SELECT f(v) FROM t") == off);
  make("DROP FUNCTION f");
}

}  // namespace tetrad::tests
