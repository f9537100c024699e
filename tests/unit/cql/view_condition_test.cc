// SPDX-License-Identifier: Apache-2.0
// Conditions of materialized views, which recorded scripts do not show: that they leave out what
// SELECT leaves out, that their texts read back, and what Cassandra takes and Tetrad refuses.
#include "cql/prepare/view_condition.h"

#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/parser.h"
#include "cql/schema/schema_text.h"
#include "cql/types/ordered_encoding.h"
#include "cql/views/view_maker.h"
#include "partitioner/token.h"
#include "replication/meta/cluster_format.h"
#include "tests/unit/cql/good_schema.h"

namespace tetrad::tests {
namespace {

/// A key of the table t below.
struct TestKey {
  int32_t k, k2, c;
  std::string d;
  int32_t element;  // the frozen list e is [1, element]

  std::string text() const {
    return fmt::format("{}, {}, {}, {}, [1, {}]", k, k2, c, cql::ast::quote_string(d), element);
  }
};

class Fixture : public GoodSchema {
 public:
  Fixture() {
    run("CREATE TYPE pair (a int, b text)");
    run("CREATE TABLE t (k int, k2 int, c int, d text, e frozen<list<int>>, v int, "
        "PRIMARY KEY ((k, k2), c, d, e)) WITH CLUSTERING ORDER BY (c DESC, d ASC, e ASC)");
    run("CREATE TABLE p (k int, u frozen<pair>, v int, PRIMARY KEY (k, u))");
  }
  cql::SchemaPtr schema() const {
    return cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
  }
  /// As the stores are given it; null: there is none.
  storage::ViewMakerPtr maker(const std::string& base, const std::string& view) const {
    const auto state = meta.snapshot();
    const auto makers = cql::view_makers_of(*state, *state->table(schema()->table("ks", base)->id));
    if (makers == nullptr) return nullptr;
    const auto incarnation = schema()->table("ks", view)->incarnation;
    const auto found = std::ranges::find(*makers, incarnation, &storage::ViewMaker::incarnation);
    return found == makers->end() ? nullptr : *found;
  }
  std::string where(const std::string& view) const {
    return schema()->table("ks", view)->view->where;
  }
  bool has_place(const storage::ViewMaker& maker, const TestKey& key) const {
    const auto table = schema()->table("ks", "t");
    const Bytes k = cql::make_int(key.k), k2 = cql::make_int(key.k2), c = cql::make_int(key.c);
    const auto partition =
        partitioner::serialize_partition_key(std::vector<BytesView>{k, k2}).value();
    const Bytes one = cql::make_int(1), two = cql::make_int(key.element);
    const Bytes list = cql::join_list(std::vector<BytesView>{one, two});
    Bytes clustering;
    size_t place = 0;
    for (const BytesView value : {BytesView(c), BytesView(key.d), BytesView(list)}) {
      const cql::ColumnSchema& column = table->clustering()[place++];
      REQUIRE(cql::append_ordered(clustering, *column.type, value, column.descending));
    }
    return maker.place_of({partition, clustering, {}}, {}).has_value();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a view leaves out the rows that SELECT leaves out") {
  std::vector<TestKey> keys;
  for (const int32_t k : {-1, 0, 2})
    for (const int32_t k2 : {1, 2})
      for (const int32_t c : {1, 2, 3})
        for (const char* d : {"", "a", "it's"})
          for (const int32_t element : {1, 7}) keys.push_back({k, k2, c, d, element});
  for (const TestKey& key : keys) run("INSERT INTO t (k, k2, c, d, e) VALUES (" + key.text() + ")");
  int views = 0;
  for (const std::string condition : {"k = 2",
                                      "k > -1 AND k <= 2",
                                      "k IN (2, 5, -1)",
                                      "k2 = 1 AND k < 1",
                                      "c >= 2 AND c < 3",
                                      "d = 'it''s'",
                                      "d > ''",
                                      "c = 1 AND d = 'a'",
                                      "(c, d) > (1, 'a')",
                                      "(c, d) >= (2, 'a') AND (c) < (3)",
                                      "(c, d) IN ((1, 'a'), (3, 'it''s'), (3, ''))",
                                      "(c, d, e) = (2, 'a', [1, 7])",
                                      "e CONTAINS 7",
                                      "k > 0 AND e CONTAINS 1",
                                      "e = [1, 1]",
                                      "c IN (1, 3) AND d < 'b'",
                                      "k IN ()",
                                      "k > 3 AND k < 3",
                                      "c = 1 + 1 * 1 AND k2 = 3 % 2",
                                      "k = -(1)",
                                      "k NOT IN (0, 2)",
                                      "c BETWEEN 2 AND 3",
                                      "e NOT CONTAINS 7",
                                      "k = (int)2 AND d IN ('a', '')"}) {
    INFO(condition);
    std::string all = condition;
    for (const char* column : {"k", "k2", "c", "d", "e"})
      all += std::string(" AND ") + column + " IS NOT NULL";
    const std::string name = fmt::format("v{}", views++);
    run("CREATE MATERIALIZED VIEW " + name + " AS SELECT * FROM t WHERE " + all +
        " PRIMARY KEY (c, k, k2, d, e)");
    const auto view = maker("t", name);
    REQUIRE(view);
    const std::string shown =
        "\n" + rows("SELECT k, k2, c, d, e FROM t WHERE " + condition + " ALLOW FILTERING") + "\n";
    size_t there = 0;
    for (const TestKey& key : keys) {
      const std::string row = fmt::format("\n{} | {} | {} | {} | [1, {}]\n", key.k, key.k2, key.c,
                                          cql::ast::quote_string(key.d), key.element);
      const bool selected = shown.find(row) != std::string::npos;
      INFO(row << shown);
      CHECK(has_place(*view, key) == selected);
      there += selected ? 1 : 0;
    }
    const auto lines = static_cast<size_t>(std::ranges::count(shown, '\n'));
    CHECK(there == (shown == "\n\n" ? 0 : lines - 1));
    // The text says the same when it is read again.
    CHECK(cql::view_where_text(cql::parse_where(where(name)).value()) == where(name));
    run("DROP MATERIALIZED VIEW " + name);
  }
}

TEST_CASE_METHOD(Fixture, "a text and the name of a field are quoted where a condition is kept") {
  run("CREATE TYPE odd (\"A b\" int, c text)");
  run("CREATE TABLE o (k int, u frozen<odd>, v int, PRIMARY KEY (k, u))");
  run("CREATE MATERIALIZED VIEW ov AS SELECT * FROM o WHERE k = 1 AND u = {\"A b\": 1, c: 'it''s'} "
      "PRIMARY KEY (u, k)");
  CHECK(where("ov").find("\"A b\": 1") != std::string::npos);
  CHECK(where("ov").find("'it''s'") != std::string::npos);
  REQUIRE(maker("o", "ov"));
}

TEST_CASE_METHOD(Fixture, "a condition has a constant value") {
  const auto refusal = [&](const std::string& table, const std::string& condition,
                           const std::string& key) {
    return error("CREATE MATERIALIZED VIEW x AS SELECT * FROM " + table + " WHERE " + condition +
                 " PRIMARY KEY (" + key + ")");
  };
  run("CREATE TABLE w (k timeuuid PRIMARY KEY, v int)");
  CHECK(refusal("w", "k < now()", "k") ==
        "not supported yet: the function now in a condition of a materialized view, which must be "
        "the same on all nodes and at all times");
  CHECK(refusal("w", "k > max_timeuuid(current_timestamp())", "k")
            .starts_with("not supported yet: the function current_timestamp in a condition"));
  run("CREATE FUNCTION one (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
      "'return 1'");
  CHECK(refusal("good", "k = one(1)", "k") ==
        "not supported yet: user-defined functions in a condition of a materialized view");
  CHECK(refusal("good", "k = null", "k") == "Unsupported null value for column k");
  CHECK(refusal("good", "k > null", "k") == "Unsupported null value for column k");
  CHECK(refusal("good", "k IN (1, null)", "k") == "Invalid null value in condition for column k");
  CHECK(refusal("p", "k IS NOT NULL AND (u) > (null)", "k, u") ==
        "Unsupported null value for column u");
  CHECK(refusal("good", "k = blob_as_int(0x01)", "k") != "");
  CHECK(refusal("good", "COSMOS_CHANGEFEED_START_TIME() = '2026-01-01' AND k = 1", "k") ==
        "COSMOS_CHANGEFEED_START_TIME() cannot be used in WHERE clauses for CREATE MATERIALIZED "
        "VIEW statements");
  CHECK(refusal("good", "k = ?", "k") ==
        "Bind variables are not allowed in CREATE MATERIALIZED VIEW statements");
}

TEST_CASE_METHOD(Fixture, "a condition has a size, since every node reads it") {
  const auto create = [&](size_t values) {
    std::string list = "1";
    for (size_t i = 1; i < values; ++i) list += ", 1";
    return error("CREATE MATERIALIZED VIEW x AS SELECT * FROM good WHERE k IN (" + list +
                 ") PRIMARY KEY (k)");
  };
  CHECK(create((256 << 10) / 3 + 1) ==
        "The WHERE of materialized view x has 262151 bytes, more than the 262144 that it may have");
  CHECK(create((256 << 10) / 3 - 3) == "ok");
}

TEST_CASE_METHOD(Fixture, "a type whose field a condition names keeps the field") {
  run("CREATE MATERIALIZED VIEW pv AS SELECT * FROM p WHERE k IS NOT NULL AND u = {a: 1, b: 'x'} "
      "PRIMARY KEY (k, u)");
  CHECK(error("ALTER TYPE pair RENAME b TO bb")
            .starts_with("the condition of materialized view "
                         "ks.pv: "));
  run("ALTER TYPE pair ADD c int");
  REQUIRE(maker("p", "pv"));
  run("DROP MATERIALIZED VIEW pv");
  run("ALTER TYPE pair RENAME b TO bb");
}

TEST_CASE_METHOD(Fixture, "a renamed column has its new name in the conditions of views") {
  run("CREATE MATERIALIZED VIEW tv AS SELECT * FROM t WHERE k = 2 AND k2 IS NOT NULL AND "
      "(c, d) > (1, 'it''s') AND e CONTAINS 7 PRIMARY KEY (k2, k, c, d, e)");
  run("ALTER TABLE t RENAME k TO \"K\" AND d TO dd");
  CHECK(where("tv") == "\"K\" = 2 AND k2 IS NOT NULL AND (c, dd) > (1, 'it''s') AND e CONTAINS 7");
  const auto view = maker("t", "tv");
  REQUIRE(view);
  CHECK(has_place(*view, {2, 1, 3, "a", 7}));
  CHECK_FALSE(has_place(*view, {1, 1, 3, "a", 7}));
  CHECK(error("ALTER TABLE t RENAME k2 TO q AND c TO k2")
            .starts_with("Cannot rename column c to k2 in table 'ks.t'"));
}

TEST_CASE_METHOD(Fixture, "no field takes another's name while a view has conditions") {
  run("CREATE TYPE swap (a int, b int)");
  run("CREATE TABLE x (k int, c frozen<swap>, PRIMARY KEY (k, c))");
  run("CREATE MATERIALIZED VIEW xv AS SELECT * FROM x WHERE k IS NOT NULL AND c = {a: 1} "
      "PRIMARY KEY (k, c)");
  for (const char* renames : {"a TO old AND b TO a", "a TO b AND b TO a"})
    CHECK(error(std::string("ALTER TYPE swap RENAME ") + renames) ==
          "not supported yet: a field that takes the name of another while materialized view ks.xv "
          "has conditions");
  run("ALTER TYPE swap RENAME b TO other");
  run("DROP MATERIALIZED VIEW xv");
  run("ALTER TYPE swap RENAME a TO old AND other TO a");
}

TEST_CASE_METHOD(Fixture, "the text of a condition makes the same view again") {
  for (const std::string condition : {"k > 2 + 3", "k IN (-(-5), 7 % 4 * 2)"}) {
    run("CREATE MATERIALIZED VIEW ov AS SELECT * FROM good WHERE " + condition +
        " PRIMARY KEY (k)");
    const std::string text = where("ov");
    run("DROP MATERIALIZED VIEW ov");
    run("CREATE MATERIALIZED VIEW ov AS SELECT * FROM good WHERE " + text + " PRIMARY KEY (k)");
    CHECK(where("ov") == text);
    run("DROP MATERIALIZED VIEW ov");
  }
}

TEST_CASE_METHOD(Fixture, "conditions of views wait for the newest format of the cluster") {
  const std::string create =
      "CREATE MATERIALIZED VIEW gv AS SELECT * FROM good WHERE k > 1 PRIMARY KEY (k)";
  meta.set_format(replication::kFormatThroughput - 1);
  CHECK(error(create) ==
        "conditions of a materialized view other than IS NOT NULL wait until all nodes run a "
        "program that knows them");
  run("CREATE MATERIALIZED VIEW all_of AS SELECT * FROM good WHERE k IS NOT NULL PRIMARY KEY (k)");
  meta.set_format(replication::kFormatThroughput);
  run(create);
}

TEST_CASE_METHOD(Fixture, "a view whose condition does not read harms nothing else") {
  run("CREATE MATERIALIZED VIEW gv AS SELECT * FROM good WHERE k > 1 PRIMARY KEY (k)");
  run("CREATE MATERIALIZED VIEW gw AS SELECT * FROM good WHERE k < 1 PRIMARY KEY (k)");
  const std::string key = cql::table_key("ks", "gv");
  const auto view = *cql::read_table_text(meta.snapshot()->schema_objects.find(key)->second,
                                          [](auto, auto) { return cql::TypePtr(); });
  const auto plant = [&](const std::string& condition) {
    replication::SchemaChange change;
    change.expected = meta.snapshot()->schema_version;
    view->view->where = condition;
    change.objects.emplace_back(key, cql::table_text(*view));
    REQUIRE(run_task(reactor, meta.change_schema(std::move(change), base::Deadline{}, nullptr)));
  };
  for (const std::string condition : {"k >", "k = ?", "k = 'x'", "nope = 1", "k = null", ""}) {
    INFO(condition);
    plant(condition);
    CHECK(maker("good", "gw"));
    CHECK(rows("SELECT v FROM good WHERE k = 1") == "'x'");
  }
  plant("k >");
  CHECK(rows("SELECT name FROM system_tetrad.unreadable_objects WHERE keyspace_name = 'ks'") ==
        "'gv'");
  CHECK(error("SELECT * FROM gv").find("does not read") != std::string::npos);
  run("DROP MATERIALIZED VIEW gv");
  run("DROP MATERIALIZED VIEW gw");
  run("DROP TABLE good");
}

}  // namespace tetrad::tests
