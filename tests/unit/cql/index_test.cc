// SPDX-License-Identifier: Apache-2.0
// What recorded scripts do not show of indexes: which part of one a SELECT looks at, and limits.
// Scripts are in recorded_scripts_test.cc.
#include <catch2/catch.hpp>

#include "cql/index/index_terms.h"
#include "cql/schema/schema_text.h"
#include "replication/meta/cluster_format.h"
#include "tests/unit/cql/good_schema.h"

using namespace tetrad;
using namespace tetrad::tests;

namespace {

class Fixture : public GoodSchema {
 public:
  Fixture() {
    settings.guardrails.sasi_indexes = true;
    run("CREATE TABLE t (k int, k2 int, c int, a int, b text, d text, l list<int>, m map<text, "
        "int>, "
        "PRIMARY KEY ((k, k2), c)) WITH CLUSTERING ORDER BY (c DESC)");
    run("INSERT INTO t (k, k2, c, a, b, d, l, m) VALUES (1, 1, 1, 1, 'x', 'y', [1], {'k': 1})");
  }

  cql::TablePtr table() const {
    const auto schema = cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
    return schema->table("ks", "t");
  }
  cql::IndexTerms terms(std::string_view index) const {
    const auto all = table();
    const auto found = std::ranges::find(all->indexes, index, &cql::IndexSchema::name);
    REQUIRE(found != all->indexes.end());
    return cql::IndexTerms::of(*all, *found).value();
  }
  /// What the statement's read looks at.
  std::optional<storage::IndexBounds> looked_at(const std::string& statement) {
    coordinator->by_index.reset();
    run(statement);
    return coordinator->by_index;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a SELECT looks at the index of its condition") {
  CHECK_FALSE(looked_at("SELECT * FROM t WHERE a = 1 ALLOW FILTERING"));
  run("CREATE INDEX ta ON t (a)");
  run("CREATE INDEX tc ON t (c) USING 'sai'");
  run("CREATE INDEX tl ON t (l)");
  run("CREATE INDEX tk ON t (keys(m))");
  run("CREATE INDEX te ON t (entries(m))");
  const Bytes one = cql::make_int(1), two = cql::make_int(2);
  CHECK(looked_at("SELECT * FROM t WHERE a = 1") == terms("ta").equal(one).value());
  CHECK(looked_at("SELECT * FROM t WHERE k = 1 AND k2 = 1 AND a = 1") ==
        terms("ta").equal(one).value());
  CHECK(looked_at("SELECT count(*) FROM t WHERE a = 2") == terms("ta").equal(two).value());
  CHECK(looked_at("SELECT * FROM t WHERE c > 1") == terms("tc").between(one, std::nullopt).value());
  CHECK(looked_at("SELECT * FROM t WHERE c >= 1 AND c < 2") ==
        terms("tc").between(one, two).value());
  CHECK(looked_at("SELECT * FROM t WHERE c = 1 AND b = 'x' ALLOW FILTERING") ==
        terms("tc").equal(one).value());
  CHECK(looked_at("SELECT * FROM t WHERE l CONTAINS 1") == terms("tl").equal(one).value());
  CHECK(looked_at("SELECT * FROM t WHERE m CONTAINS KEY 'k'") == terms("tk").equal("k").value());
  CHECK(looked_at("SELECT * FROM t WHERE m['k'] = 1") == terms("te").entry("k", one).value());
  // The native index before the storage-attached one, as Cassandra.
  CHECK(looked_at("SELECT * FROM t WHERE c = 1 AND a = 2 ALLOW FILTERING") ==
        terms("ta").equal(two).value());
  CHECK_FALSE(looked_at("SELECT * FROM t WHERE a > 1 ALLOW FILTERING"));
  CHECK_FALSE(looked_at("SELECT * FROM t WHERE a IN (1, 2) ALLOW FILTERING"));
  CHECK_FALSE(looked_at("SELECT * FROM t WHERE k = 1 AND k2 = 1"));
  CHECK_FALSE(looked_at("SELECT * FROM t"));
}

TEST_CASE_METHOD(Fixture, "LIKE looks at the part of the index that has its text") {
  const std::string sasi = " USING 'org.apache.cassandra.index.sasi.SASIIndex'";
  run("CREATE CUSTOM INDEX tb ON t (b)" + sasi);
  run("CREATE CUSTOM INDEX td ON t (d)" + sasi + " WITH OPTIONS = {'mode': 'CONTAINS'}");
  CHECK(looked_at("SELECT * FROM t WHERE b LIKE 'abc%'") == terms("tb").beginning("abc").value());
  CHECK(looked_at("SELECT * FROM t WHERE b LIKE 'abc'") == terms("tb").equal("abc").value());
  CHECK(looked_at("SELECT * FROM t WHERE d LIKE '%abc'") == terms("td").ending("abc").value());
  CHECK(looked_at("SELECT * FROM t WHERE d LIKE '%abcd%'") == terms("td").having("abcd").value());
  CHECK(cql("SELECT k FROM t WHERE d LIKE '%y%'") == "k\n1");
}

TEST_CASE_METHOD(Fixture, "what an index does not take is refused and changes nothing") {
  run("CREATE INDEX tb ON t (b)");
  run("CREATE INDEX td ON t (d) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}");
  run("CREATE INDEX tk ON t (keys(m))");
  const std::string large(70'000, 'x');
  const auto refused = [](std::string_view index) {
    return fmt::format("Cannot index value of size 70000 for index {} (maximum allowed size=65535)",
                       index);
  };
  CHECK(error("UPDATE t SET b = '" + large + "' WHERE k = 1 AND k2 = 1 AND c = 1") ==
        refused("tb on ks.t(b)"));
  CHECK(error("INSERT INTO t (k, k2, c, d) VALUES (1, 1, 1, '" + large + "')") ==
        refused("td on ks.t(d)"));
  // Keys of maps have 64 K at most anyway.
  run("INSERT INTO t (k, k2, c, b) VALUES (1, 1, 2, '" + large.substr(0, 65'535) + "')");
  CHECK(rows("SELECT c, b FROM t WHERE b = 'x'") == "1 | 'x'");
}

TEST_CASE_METHOD(Fixture, "words of SASI indexes have limits") {
  const std::string words =
      " USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {'analyzed': 'true'";
  CHECK(error("CREATE CUSTOM INDEX tb ON t (b)" + words +
              ", 'tokenization_normalize_lowercase': 'true', "
              "'tokenization_normalize_uppercase': 'true'}") ==
        "Options to normalize terms cannot be both uppercase and lowercase at the same time");
  CHECK(error("CREATE CUSTOM INDEX tb ON t (b)" + words +
              ", 'tokenization_locale': 'e', 'tokenization_skip_stop_words': 'true'}") ==
        "tokenization_locale 'e' names no language");
  run("CREATE CUSTOM INDEX tb ON t (b)" + words + "}");
  run("CREATE CUSTOM INDEX td ON t (d)" + words + ", 'mode': 'CONTAINS'}");
  const auto insert = [](const std::string& column, size_t size) {
    return fmt::format("INSERT INTO t (k, k2, c, {}) VALUES (1, 1, 1, '{}')", column,
                       std::string(size, ' '));
  };
  CHECK(error(insert("b", 65'536)) ==
        "Cannot index value of size 65536 for index tb on ks.t(b) (maximum allowed size=65535)");
  CHECK(error(insert("d", 8'193)) ==
        "Cannot index value of size 8193 for index td on ks.t(d) (maximum allowed size=8192)");
  run("INSERT INTO t (k, k2, c, d) VALUES (1, 1, 1, 'one two-three')");
  CHECK(cql("SELECT k FROM t WHERE d LIKE '%hre%'") == "k\n1");
  CHECK(error("SELECT k FROM t WHERE d LIKE 'tw%'") ==
        "d LIKE '<term>%' tw is only supported on properly indexed columns");
  // Each word is a claim with the whole primary key.
  run("CREATE TABLE w (p text PRIMARY KEY, v text)");
  run("CREATE CUSTOM INDEX wv ON w (v)" + words + "}");
  std::string many;
  for (int i = 0; i < 3000; ++i) many += std::to_string(i) + " ";
  const auto insert_many = [&](size_t key_bytes) {
    return "INSERT INTO w (p, v) VALUES ('" + std::string(key_bytes, 'p') + "', '" + many + "')";
  };
  run(insert_many(5592));
  CHECK(error(insert_many(5593)) ==
        "Cannot index 3000 words of a row whose primary key has 5593 bytes for index wv on ks.w(v) "
        "(maximum allowed product=16777216)");
  // So are the words of a clustering column.
  run("CREATE TABLE x (p text, c text, v int, PRIMARY KEY (p, c))");
  run("CREATE CUSTOM INDEX xc ON x (c)" + words + "}");
  const std::string refused =
      "Cannot index 3000 words of a row whose primary key has 13894 bytes for index xc on ks.x(c) "
      "(maximum allowed product=16777216)";
  CHECK(error("INSERT INTO x (p, c) VALUES ('p', '" + many + "')") == refused);
  CHECK(error("UPDATE x SET v = 1 WHERE p = 'p' AND c IN ('a', '" + many + "')") == refused);
  run("DELETE FROM x WHERE p = 'p' AND c = '" + many + "'");
  CHECK(rows("SELECT p FROM x").empty());
  run("DROP INDEX xc");
  run("CREATE CUSTOM INDEX xc ON x (c)" + words + ", 'mode': 'CONTAINS'}");
  CHECK(error("INSERT INTO x (p, c) VALUES ('p', '" + std::string(8'193, ' ') + "')") ==
        "Cannot index value of size 8193 for index xc on ks.x(c) (maximum allowed size=8192)");
  // The rows of a batch count together: each of these alone is taken.
  const auto batch_of = [&](int rows) {
    std::string batch = "BEGIN UNLOGGED BATCH ";
    for (int i = 0; i < rows; ++i)
      batch += "INSERT INTO w (p, v) VALUES ('" + std::string(4'000, 'k') + std::to_string(i) +
               "', '" + many + "');";
    return batch + "APPLY BATCH";
  };
  run(batch_of(2));
  CHECK(error(batch_of(60)).starts_with("Operation timed out"));
  // So are the elements of a collection.
  run("CREATE TABLE y (p text PRIMARY KEY, s set<int>)");
  run("CREATE INDEX ys ON y (s)");
  std::string elements;
  for (int i = 0; i < 3000; ++i) elements += (i == 0 ? "" : ",") + std::to_string(i);
  const auto update = [&](size_t key_bytes) {
    return "UPDATE y SET s = s + {" + elements + "} WHERE p = '" + std::string(key_bytes, 'p') +
           "'";
  };
  run(update(5592));
  CHECK(error(update(5593)) ==
        "Cannot index 3000 elements of a row whose primary key has 5593 bytes for index ys on "
        "ks.y(s) (maximum allowed product=16777216)");
  run("UPDATE y SET s = s - {" + elements + "} WHERE p = '" + std::string(60'000, 'p') + "'");
  // Without a word nothing can match, and nothing is read.
  CHECK_FALSE(looked_at("SELECT k FROM t WHERE b LIKE '!!'"));
  CHECK(rows("SELECT k FROM t WHERE b LIKE '!!'").empty());
  CHECK(rows("SELECT count(*) FROM t WHERE d LIKE '%!!%'") == "0");
  CHECK(error("SELECT k FROM t WHERE b LIKE '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17'") ==
        "LIKE value of 17 words; 16 are compared at most");
  CHECK(error("SELECT k FROM t WHERE b LIKE '" + std::string(65'536, ' ') + "'") ==
        "LIKE value of 65536 bytes; words of 65535 are compared at most");
}

TEST_CASE_METHOD(Fixture, "indexes wait for the newest format of the cluster") {
  meta.set_format(replication::kFormatIndexes - 1);
  CHECK(error("CREATE INDEX ta ON t (a)") ==
        "indexes wait until all nodes run a program that knows them");
  meta.set_format(replication::kFormatIndexes);
  run("CREATE INDEX ta ON t (a)");
  const std::string words =
      "CREATE CUSTOM INDEX tb ON t (b) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH "
      "OPTIONS = {'analyzed': 'true'}";
  CHECK(error(words) == "indexes on words wait until all nodes run a program that knows them");
  meta.set_format(replication::kFormatNearest);
  run(words);
}

TEST_CASE_METHOD(Fixture, "a number of an index is not used twice, and reads back") {
  run("CREATE INDEX one ON t (a)");
  run("CREATE INDEX two ON t (b)");
  run("DROP INDEX one");
  run("CREATE INDEX three ON t (a)");
  const auto all = table();
  REQUIRE(all->indexes.size() == 2);
  CHECK(all->indexes[0].name == "three");
  CHECK(all->indexes[0].id == 3);
  CHECK(all->indexes[1].id == 2);
  CHECK(all->next_index_id == 4);
  const auto again = cql::read_table_text(cql::table_text(*all), nullptr);
  REQUIRE(again);
  CHECK((*again)->indexes == all->indexes);
  std::string text = cql::table_text(*all);
  text.replace(text.find("\"legacy\""), 8, "\"newer!\"");
  CHECK_FALSE(cql::read_table_text(text, nullptr));
}

TEST_CASE_METHOD(Fixture,
                 "an index without a name has one that fits, whatever its column is called") {
  const std::string column(216, 'c');
  run(fmt::format("CREATE TABLE long_names (k int PRIMARY KEY, {0} int, {0}1 int)", column));
  run(fmt::format("CREATE INDEX ON long_names ({})", column));
  run(fmt::format("CREATE INDEX ON long_names ({}1)", column));
  const auto schema = cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
  const auto table = schema->table("ks", "long_names");
  REQUIRE(table->indexes.size() == 2);
  const std::string cut = ("long_names_" + column).substr(0, 212) + "_idx";
  CHECK(table->indexes[0].name == cut);
  CHECK(table->indexes[1].name == cut + "_1");
}

TEST_CASE_METHOD(Fixture, "a SELECT by an index asks for about the rows it needs") {
  run("CREATE TABLE many (k int PRIMARY KEY, v int)");
  run("CREATE INDEX ON many (v)");
  for (int k = 0; k < 600; ++k)
    run(fmt::format("INSERT INTO many (k, v) VALUES ({}, {})", k, k % 2));
  coordinator->reads = 0;
  CHECK(rows("SELECT v FROM many WHERE v = 1 LIMIT 2") == "1\n1");
  CHECK(coordinator->reads == 1);
  CHECK(coordinator->row_limit == 32);
  // No store heeds the index here: reads grow until there is enough.
  CHECK(rows("SELECT count(*) FROM many WHERE v = 1") == "300");
  CHECK(pages("SELECT v FROM many WHERE v = 1", 100).size() > 300);
  coordinator->reads = 0;
  CHECK(rows("SELECT v FROM many WHERE v = 7 LIMIT 2").empty());
  CHECK(coordinator->reads == 3);
}
