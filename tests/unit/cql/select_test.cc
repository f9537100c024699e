// SPDX-License-Identifier: Apache-2.0
// SELECT against one node: what comes back, in which order, page by page. The expected answers are
// those of Cassandra 5.0 to the same statements.
#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

/// A keyspace "ks" in use.
struct Fixture : LocalCluster {
  Fixture() {
    settings.in_cartesian_product_max = 1000;
    REQUIRE(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 1}") == "ok");
    REQUIRE(cql("USE ks") == "ok");
  }
  void run(std::initializer_list<std::string_view> statements) {
    for (const auto statement : statements) {
      INFO(statement);
      REQUIRE(cql(statement) == "ok");
    }
  }
  void make_p() {
    run({"CREATE TABLE p (k int, c int, v int, s int static, PRIMARY KEY (k, c))",
         "INSERT INTO p (k, c, v) VALUES (1, 1, 1)", "INSERT INTO p (k, c, v) VALUES (1, 2, 2)",
         "INSERT INTO p (k, c, v, s) VALUES (2, 1, 1, 5)",
         "INSERT INTO p (k, c, v) VALUES (3, 1, 1)", "INSERT INTO p (k, s) VALUES (4, 9)"});
  }
};

TEST_CASE_METHOD(Fixture, "partitions are read by key, by IN and by scan") {
  make_p();
  CHECK(cql("SELECT * FROM p WHERE k = 1") == "k | c | s | v\n1 | 1 | null | 1\n1 | 2 | null | 2");
  CHECK(rows("SELECT * FROM p WHERE k IN (3, 1, 2, 4, 3)") ==
        "1 | 1 | null | 1\n1 | 2 | null | 2\n2 | 1 | 5 | 1\n3 | 1 | null | 1\n4 | null | 9 | null");
  CHECK(rows("SELECT * FROM p WHERE k IN (3, 1, 2, 4) AND c IN (2, 1)") ==
        "1 | 1 | null | 1\n1 | 2 | null | 2\n2 | 1 | 5 | 1\n3 | 1 | null | 1");
  CHECK(rows("SELECT * FROM p WHERE k = 1 AND c IN (2, 1, 2)") ==
        "1 | 1 | null | 1\n1 | 2 | null | 2");
  CHECK(rows("SELECT * FROM p") ==
        "1 | 1 | null | 1\n1 | 2 | null | 2\n2 | 1 | 5 | 1\n4 | null | 9 | null\n3 | 1 | null | 1");
  CHECK(rows("SELECT DISTINCT k, s FROM p") == "1 | null\n2 | 5\n4 | 9\n3 | null");
  CHECK(rows("SELECT k, c FROM p WHERE k = 4") == "4 | null");
  CHECK(rows("SELECT k, c FROM p WHERE k = 4 AND c = 1").empty());
  CHECK(rows("SELECT k, c, s FROM p WHERE k = 4 AND c > 1").empty());
  CHECK(rows("SELECT k FROM p WHERE k IN ()").empty());
  CHECK(rows("SELECT k FROM p WHERE k = 1 AND c IN ()").empty());
  CHECK(rows("SELECT c FROM p WHERE k = 1 AND c > null") == "1\n2");
  CHECK(rows("SELECT c FROM p WHERE k = 1 AND c < null").empty());
  CHECK(rows("SELECT c FROM p WHERE k = 1 AND (c) IN ((2), (1))") == "1\n2");
  CHECK(rows("SELECT c FROM p WHERE k = 1 AND (c) >= (1) AND (c) < (2)") == "1");
  CHECK(rows("SELECT c FROM p WHERE k = 1 ORDER BY c DESC") == "2\n1");
  CHECK(rows("SELECT k, c FROM p WHERE k IN (1, 2) ORDER BY c DESC") == "1 | 2\n1 | 1\n2 | 1");
  CHECK(rows("SELECT k, c FROM p WHERE k IN (1, 2) ORDER BY c DESC LIMIT 1") == "1 | 2");
  CHECK(rows("SELECT * FROM p LIMIT 2") == "1 | 1 | null | 1\n1 | 2 | null | 2");
  CHECK(rows("SELECT k, c FROM p PER PARTITION LIMIT 1") == "1 | 1\n2 | 1\n4 | null\n3 | 1");
  CHECK(rows("SELECT k, c FROM p PER PARTITION LIMIT 1 LIMIT 2") == "1 | 1\n2 | 1");
}

TEST_CASE_METHOD(Fixture, "filters test merged rows") {
  make_p();
  CHECK(rows("SELECT * FROM p WHERE s = 9 ALLOW FILTERING") == "4 | null | 9 | null");
  CHECK(rows("SELECT * FROM p WHERE v = 1 ALLOW FILTERING") ==
        "1 | 1 | null | 1\n2 | 1 | 5 | 1\n3 | 1 | null | 1");
  CHECK(rows("SELECT * FROM p WHERE c > 1 ALLOW FILTERING") == "1 | 2 | null | 2");
  CHECK(rows("SELECT k FROM p WHERE token(k) > 0 AND c = 1 ALLOW FILTERING") == "3");
  CHECK(rows("SELECT k FROM p WHERE k IN (1, 2) AND v = 1 ALLOW FILTERING") == "1\n2");
  CHECK(rows("SELECT k, c FROM p WHERE v IN (2, 7) ALLOW FILTERING") == "1 | 2");
  CHECK(rows("SELECT k, c FROM p WHERE v >= 1 AND v < 2 LIMIT 2 ALLOW FILTERING") ==
        "1 | 1\n2 | 1");
  CHECK(rows("SELECT k FROM p WHERE k > 1 ALLOW FILTERING") == "2\n4\n3");
  CHECK(pages("SELECT k, c FROM p WHERE v = 1 ALLOW FILTERING", 2) == "1 | 1\n2 | 1\n--\n3 | 1");
}

TEST_CASE_METHOD(Fixture, "token ranges select parts of the ring") {
  make_p();
  CHECK(rows("SELECT k, token(k) FROM p WHERE k = 1 LIMIT 1") == "1 | -4069959284402364209");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) > token(2)") == "4\n3");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) >= token(2)") == "2\n4\n3");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) <= token(2)") == "1\n2");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) < token(2)") == "1");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) = token(2)") == "2");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) > token(1) AND token(k) <= token(4)") ==
        "2\n4");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) > -9223372036854775808") == "1\n2\n4\n3");
  CHECK(rows("SELECT DISTINCT k FROM p WHERE token(k) <= -9223372036854775808") == "1\n2\n4\n3");
  CHECK(rows("SELECT k, c FROM p WHERE token(k) > token(1) AND k = 2") == "2 | 1");
  CHECK(rows("SELECT k, c FROM p WHERE token(k) > token(2) AND k = 2").empty());
}

TEST_CASE_METHOD(Fixture, "pages give every row once, in both directions") {
  run({"CREATE TABLE t (k int, c int, v int, s int static, PRIMARY KEY (k, c))"});
  for (int k = 0; k < 4; ++k) {
    for (int c = 0; c < 5; ++c) {
      REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v) VALUES ({}, {}, {})", k, c, c)) == "ok");
    }
  }
  run({"INSERT INTO t (k, s) VALUES (9, 1)"});
  const auto without_marks = [](std::string text) {
    for (size_t at; (at = text.find("\n--")) != std::string::npos;) text.erase(at, 3);
    while (text.ends_with("\n")) text.pop_back();  // an empty last page
    return text;
  };
  const auto page_sizes = [](const std::string& text) {
    std::vector<int> sizes(1, 0);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line == "--") {
        sizes.push_back(0);
      } else if (!line.empty()) {
        ++sizes.back();
      }
    }
    return sizes;
  };
  // As a merge does whose replicas disagree on the first rows of the second partition.
  const auto stop_inside = [](storage::ReadResult& result) {
    if (result.partitions.size() < 2) return;
    const storage::PartitionData& next = result.partitions[1];
    result.complete_up_to = {next.position, Bytes(next.partition_key), Bytes()};
    result.exhausted = false;
    result.partitions.resize(1);
    const size_t rows = result.partitions.front().rows.size();
    result.live_row_count = static_cast<uint32_t>(std::max<size_t>(1, rows));
  };
  for (const std::string query :
       {"SELECT k, c, v, s FROM t", "SELECT k, c FROM t WHERE k IN (0, 1, 2, 3, 9)",
        "SELECT c FROM t WHERE k = 2", "SELECT c FROM t WHERE k = 2 ORDER BY c DESC",
        "SELECT DISTINCT k, s FROM t", "SELECT k, c FROM t PER PARTITION LIMIT 2",
        "SELECT k, c FROM t PER PARTITION LIMIT 3 LIMIT 7", "SELECT k, c FROM t LIMIT 7",
        "SELECT k, c FROM t WHERE k IN (0, 1, 3) AND c IN (1, 3, 4)",
        "SELECT k, c FROM t WHERE k IN (0, 1, 3) AND c > 1 AND c < 4",
        "SELECT k, count(*) FROM t GROUP BY k", "SELECT k, c, max(v) FROM t GROUP BY k, c",
        "SELECT k, c, v FROM t GROUP BY k, c PER PARTITION LIMIT 2",
        "SELECT k, c, v FROM t GROUP BY k, c LIMIT 3",
        "SELECT k, c, v FROM t WHERE v > 0 PER PARTITION LIMIT 2 ALLOW FILTERING",
        "SELECT k, c FROM t WHERE token(k) > token(1)"}) {
    const std::string all = rows(query);
    for (const int size : {1, 2, 3, 4, 5, 7, 100}) {
      INFO(query << " by " << size);
      const std::string paged = pages(query, size);
      CHECK(without_marks(paged) == all);
      const auto sizes = page_sizes(paged);
      for (size_t i = 0; i + 1 < sizes.size(); ++i) CHECK(sizes[i] == size);
    }
    INFO(query << " by reads that stop inside a partition");
    coordinator->on_read = stop_inside;
    CHECK(rows(query) == all);
    CHECK(without_marks(pages(query, 2)) == all);
    coordinator->on_read = nullptr;
  }
  CHECK(pages("SELECT count(*) FROM t", 3) == "21");
}

TEST_CASE_METHOD(Fixture, "slices of several columns follow mixed directions") {
  run(
      {"CREATE TABLE m (k int, a int, b int, c int, PRIMARY KEY (k, a, b, c)) WITH CLUSTERING "
       "ORDER BY (a ASC, b DESC, c ASC)"});
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        REQUIRE(cql(fmt::format("INSERT INTO m (k, a, b, c) VALUES (1, {}, {}, {})", a, b, c)) ==
                "ok");
      }
    }
  }
  // Every slice against a plain test of every row.
  const auto expected = [](auto&& test, bool reversed) {
    std::vector<std::string> lines;
    for (int a = 0; a < 3; ++a) {
      for (int b = 2; b >= 0; --b) {
        for (int c = 0; c < 3; ++c) {
          if (test(a, b, c)) lines.push_back(fmt::format("{} | {} | {}", a, b, c));
        }
      }
    }
    if (reversed) std::ranges::reverse(lines);
    return fmt::format("{}", fmt::join(lines, "\n"));
  };
  using Key = std::tuple<int, int, int>;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        const Key at(a, b, c);
        for (const std::string op : {">", ">=", "<", "<="}) {
          const auto holds = [&](const auto& key, const auto& bound) {
            return op == ">"    ? key > bound
                   : op == ">=" ? key >= bound
                   : op == "<"  ? key < bound
                                : key <= bound;
          };
          for (const bool reversed : {false, true}) {
            const std::string order = reversed ? " ORDER BY a DESC, b ASC, c DESC" : "";
            CHECK(rows(fmt::format("SELECT a, b, c FROM m WHERE k = 1 AND (a, b, c) {} ({}, {}, "
                                   "{}){}",
                                   op, a, b, c, order)) ==
                  expected([&](int x, int y, int z) { return holds(Key(x, y, z), at); }, reversed));
          }
          if (op[0] == '>')
            CHECK(rows(fmt::format("SELECT a, b, c FROM m WHERE k = 1 AND (a, b) {} ({}, {}) AND a "
                                   "<= 1",
                                   op, a, b)) ==
                  expected([&](int x, int y,
                               int) { return holds(std::pair(x, y), std::pair(a, b)) && x <= 1; },
                           false));
          CHECK(rows(fmt::format("SELECT a, b, c FROM m WHERE k = 1 AND a IN (0, 2) AND (b, c) {} "
                                 "({}, {})",
                                 op, b, c)) ==
                expected([&](int x, int y,
                             int z) { return x != 1 && holds(std::pair(y, z), std::pair(b, c)); },
                         false));
        }
      }
    }
  }
  CHECK(rows("SELECT a, b, c FROM m WHERE k = 1 AND (a, b, c) > (0, 2, 1) AND (a, b) < (1, 1)") ==
        expected(
            [](int x, int y, int z) {
              return Key(x, y, z) > Key(0, 2, 1) && std::pair(x, y) < std::pair(1, 1);
            },
            false));
  CHECK(rows("SELECT a, b, c FROM m WHERE k = 1 AND (a, b) IN ((0, 1), (2, 2)) AND c = 1") ==
        "0 | 1 | 1\n2 | 2 | 1");
  CHECK(rows("SELECT a FROM m WHERE k = 1 AND a = 1 AND (b, c) > (5, 5)").empty());
}

TEST_CASE_METHOD(Fixture, "aggregates and groups") {
  make_p();
  CHECK(cql("SELECT count(*), count(v), count(s) FROM p") ==
        "count | system.count(v) | system.count(s)\n5 | 4 | 2");
  CHECK(warnings == std::vector<std::string>{"Aggregation query used without partition key"});
  CHECK(rows("SELECT k, c, max(v) FROM p GROUP BY k") ==
        "1 | 1 | 2\n2 | 1 | 1\n4 | null | null\n3 | 1 | 1");
  CHECK(rows("SELECT k, c, count(*), count(v), sum(v), avg(v) FROM p GROUP BY k LIMIT 2") ==
        "1 | 1 | 2 | 2 | 3 | 1\n2 | 1 | 1 | 1 | 1 | 1");
  CHECK(rows("SELECT k, c, v FROM p GROUP BY k, c PER PARTITION LIMIT 1") ==
        "1 | 1 | 1\n2 | 1 | 1\n4 | null | null\n3 | 1 | 1");
  CHECK(rows("SELECT min(v), max(v), sum(v), avg(v), min(k), count(k) FROM p WHERE k = 99") ==
        "null | null | 0 | 0 | null | 0");
  CHECK(rows("SELECT v, max(v) FROM p WHERE k = 99") == "null | null");
  CHECK(rows("SELECT k, count(*) FROM p WHERE k = 99 GROUP BY k").empty());
  CHECK(rows("SELECT max(v) + 1, min(v) FROM p") == "3 | 1");
  CHECK(rows("SELECT count(*) FROM p WHERE k IN (1, 2) AND v > 1 ALLOW FILTERING") == "1");
  CHECK(warnings == std::vector<std::string>{
                        "Aggregation query used on multiple partition keys (IN "
                        "restriction)",
                        "ALLOW FILTERING read 3 rows, returned 1 and cost 2.00 request units."});
  CHECK(rows("SELECT count(*) FROM p LIMIT 1") == "5");
  CHECK(rows("SELECT DISTINCT k, count(*) FROM p WHERE k = 1") == "1 | 1");
}

TEST_CASE_METHOD(Fixture, "selectors: names, types, values") {
  make_p();
  CHECK(cql("SELECT (int)v AS q, cast(v as text) AS z, v + 1 AS w, -v, v * 2, v / 2, v % 2 FROM p "
            "WHERE k = 1") ==
        "q | z | w | -v | v * 2 | v / 2 | v % 2\n1 | '1' | 2 | -1 | 2 | 0 | 1\n2 | '2' | 3 | -2 | "
        "4 | 1 | 0");
  CHECK(cql("SELECT v, v FROM p WHERE k = 1 LIMIT 1") == "v | v\n1 | 1");
  run({"CREATE TYPE u (x int, y text)",
       "CREATE TABLE w (k int PRIMARY KEY, i int, li list<int>, se set<int>, ma map<text, int>, fm "
       "frozen<map<text, int>>, u1 u, fu frozen<u>, tp tuple<int, text>, t text)",
       "INSERT INTO w (k, i) VALUES (2, 4)",
       "UPDATE w SET li = [1, 2, 3], ma = {'a': 1, 'b': 2, 'c': 3}, se = {3, 1, 2}, u1 = {x: 1, y: "
       "'q'}, fm = {'z': 1}, fu = {x: 5} WHERE k = 2"});
  CHECK(cql("SELECT ma['a'], ma['zz'], se[1], se[9], ma['b'..], ma[..'a'], se[2..3], se[8..], "
            "fm['z'], fm['q'], u1.x, fu.y FROM w WHERE k = 2") ==
        "ma['a'] | ma['zz'] | se[1] | se[9] | ma['b'..] | ma[..'a'] | se[2..3] | se[8..] | "
        "fm['z'] | fm['q'] | u1.x | fu.y\n"
        "1 | null | 1 | null | {'b': 2, 'c': 3} | {'a': 1} | {2, 3} | null | 1 | null | 1 | null");
  CHECK(rows("SELECT li, se, ma, u1, fu FROM w WHERE k = 2") ==
        "[1, 2, 3] | {1, 2, 3} | {'a': 1, 'b': 2, 'c': 3} | {x: 1, y: 'q'} | {x: 5, y: null}");
  CHECK(rows("SELECT JSON ma, se, u1, fu, tp, t FROM w WHERE k = 2") ==
        "'{\"ma\": {\"a\": 1, \"b\": 2, \"c\": 3}, \"se\": [1, 2, 3], \"u1\": {\"x\": 1, \"y\": "
        "\"q\"}, \"fu\": {\"x\": 5, \"y\": null}, \"tp\": null, \"t\": null}'");
  CHECK(cql("SELECT JSON k AS \"K\", count(*) FROM w") ==
        "[json]\n'{\"\\\"K\\\"\": 2, \"count\": 1}'");
  CHECK(rows("SELECT k FROM w WHERE li CONTAINS 2 ALLOW FILTERING") == "2");
  CHECK(rows("SELECT k FROM w WHERE li CONTAINS 9 ALLOW FILTERING").empty());
  CHECK(rows("SELECT k FROM w WHERE ma['b'] = 2 ALLOW FILTERING") == "2");
  CHECK(rows("SELECT k FROM w WHERE ma['b'] = 3 ALLOW FILTERING").empty());
  CHECK(rows("SELECT k FROM w WHERE ma CONTAINS KEY 'b' AND ma CONTAINS 3 ALLOW FILTERING") == "2");
  CHECK(rows("SELECT k FROM w WHERE fm = {'z': 1} ALLOW FILTERING") == "2");
  CHECK(rows("SELECT k FROM w WHERE fu = {x: 5} ALLOW FILTERING") == "2");
  CHECK(rows("SELECT map_keys(ma), map_values(ma), collection_count(li), collection_sum(li), "
             "collection_max(se), to_json(u1) FROM w WHERE k = 2") ==
        "{'a', 'b', 'c'} | [1, 2, 3] | 3 | 6 | 3 | '{\"x\": 1, \"y\": \"q\"}'");
}

TEST_CASE_METHOD(Fixture, "write times and times to live") {
  run({"CREATE TABLE t (k int PRIMARY KEY, v int, m map<text, int>, l list<int>)",
       "INSERT INTO t (k, v) VALUES (1, 1) USING TIMESTAMP 10 AND TTL 100",
       "UPDATE t USING TIMESTAMP 20 SET m['a'] = 1 WHERE k = 1",
       "UPDATE t USING TIMESTAMP 30 AND TTL 50 SET m['b'] = 2 WHERE k = 1"});
  CHECK(rows("SELECT writetime(v), ttl(v), writetime(m), ttl(m), maxwritetime(m), "
             "writetime(m['b']), ttl(m['a']), ttl(m['b']), writetime(m['a'..'b']), writetime(l) "
             "FROM t") ==
        "10 | 100 | [20, 30] | [null, 50] | 30 | 30 | null | 50 | [20, 30] | null");
  reactor.advance_us(60'000'000);
  CHECK(rows("SELECT ttl(v), m FROM t") == "40 | {'a': 1}");
  reactor.advance_us(60'000'000);
  CHECK(rows("SELECT v, m FROM t") == "null | {'a': 1}");
}

TEST_CASE_METHOD(Fixture, "lossy clustering values come back as they were written") {
  run({"CREATE TABLE d (k int, c decimal, v int, PRIMARY KEY (k, c))",
       "INSERT INTO d (k, c, v) VALUES (1, 1.50, 1)", "INSERT INTO d (k, c, v) VALUES (1, 2, 2)",
       "UPDATE d SET v = 3 WHERE k = 1 AND c = 3.000"});
  CHECK(rows("SELECT c, v FROM d WHERE k = 1") == "1.50 | 1\n2 | 2\n3.000 | 3");
  CHECK(rows("SELECT c FROM d WHERE k = 1 AND c = 1.5") == "1.50");
}

TEST_CASE_METHOD(Fixture, "computed tables answer as others do") {
  CHECK(rows("SELECT key, cluster_name FROM system.local") == "'local' | 'test'");
  CHECK(rows("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'ks'") ==
        "'ks'");
  CHECK(rows("SELECT * FROM system.peers").empty());
  CHECK(error("INSERT INTO system.local (key) VALUES ('x')") ==
        "Modification is not supported by table system.local");
}

}  // namespace
}  // namespace tetrad::tests
