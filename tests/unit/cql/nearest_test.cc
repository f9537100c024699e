// SPDX-License-Identifier: Apache-2.0
// ORDER BY ... ANN OF: what recorded scripts do not show. How it asks replicas, and what it makes of names
// that are old, too few or none.
#include <algorithm>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/meta/cluster_format.h"
#include "tests/unit/cql/good_schema.h"

using namespace tetrad;
using namespace tetrad::tests;

namespace {

class Fixture : public GoodSchema {
 public:
  Fixture() {
    run("CREATE TABLE t (k int, c int, a int, v vector<float, 2>, PRIMARY KEY (k, c))");
    run("CREATE INDEX ON t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}");
    for (int k = 0; k < 40; ++k)
      run(fmt::format("INSERT INTO t (k, c, a, v) VALUES ({}, 1, {}, [{}, 0])", k, k % 2, k));
  }
  std::string nearest(int to, int count, const std::string& where = "") {
    coordinator->nearest_asked.clear();
    return rows(
        fmt::format("SELECT k FROM t {} ORDER BY v ANN OF [{}, 0.1] LIMIT {}", where, to, count));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "replicas name rows, which are read by their keys") {
  const uint64_t reads = coordinator->reads;
  CHECK(nearest(10, 3) == "10\n11\n9");
  CHECK(coordinator->nearest_asked.size() == 1);
  CHECK(coordinator->nearest_asked.front() < 40);
  CHECK(coordinator->reads - reads < 40);
}

TEST_CASE_METHOD(Fixture, "one partition is read without asking for names") {
  CHECK(nearest(10, 3, "WHERE k = 7") == "7");
  CHECK(coordinator->nearest_asked.empty());
}

TEST_CASE_METHOD(Fixture, "names that are old do not show: more are asked for") {
  // As a replica that has missed writes: it has all rows near, and in a wrong order.
  coordinator->on_nearest = [&](replication::NearestNames& names) {
    for (auto& row : names.rows) row.distance = 0;
    names.beyond = names.rows.size() >= 39 ? std::optional<double>() : 0.0;
  };
  CHECK(nearest(10, 3) == "10\n11\n9");
  CHECK(coordinator->nearest_asked.size() > 1);
}

TEST_CASE_METHOD(Fixture, "where names are never enough all rows are read") {
  coordinator->on_nearest = [](replication::NearestNames& names) {
    names.rows.clear();
    names.beyond = -1.0;
  };
  CHECK(nearest(10, 3) == "10\n11\n9");
  coordinator->on_nearest = nullptr;
  coordinator->knows_nearest = false;  // a node runs an older program
  CHECK(nearest(10, 3) == "10\n11\n9");
  CHECK(coordinator->nearest_asked.empty());
}

TEST_CASE_METHOD(Fixture, "rows that are gone, or lost their vector, are not shown") {
  run("DELETE FROM t WHERE k = 10");
  run("UPDATE t SET v = null WHERE k = 11 AND c = 1");
  run("UPDATE t SET v = [30, 0] WHERE k = 9 AND c = 1");
  CHECK(nearest(10, 2) == "8\n12");
}

TEST_CASE_METHOD(Fixture, "other conditions are tested, by an index") {
  run("CREATE INDEX ON t (a) USING 'sai'");
  CHECK(nearest(10, 3, "WHERE a = 1") == "11\n9\n13");
  CHECK(coordinator->by_index.has_value());
  CHECK(coordinator->nearest_asked.empty());
}

TEST_CASE_METHOD(Fixture, "vectors that have no distance are neither written nor asked for") {
  CHECK(error("INSERT INTO t (k, c, v) VALUES (1, 1, [NaN, 0])")
            .find("NaN or Infinity cannot be indexed") != std::string::npos);
  CHECK(error("UPDATE t SET v = [Infinity, 0] WHERE k = 1 AND c = 1")
            .find("NaN or Infinity cannot be indexed") != std::string::npos);
  CHECK(error("SELECT k FROM t ORDER BY v ANN OF [NaN, 0] LIMIT 1")
            .find("NaN or Infinity cannot be indexed") != std::string::npos);
  run("INSERT INTO t (k, c, v) VALUES (99, 1, [0, 0])");  // not by cosine
  run("CREATE TABLE cosine (k int PRIMARY KEY, v vector<float, 2>)");
  run("INSERT INTO cosine (k, v) VALUES (1, [0, 0])");
  run("INSERT INTO cosine (k, v) VALUES (2, [0, 1])");
  run("CREATE INDEX ON cosine (v) USING 'sai'");
  CHECK(error("INSERT INTO cosine (k, v) VALUES (3, [0, 0])")
            .find("Zero vectors cannot be indexed") != std::string::npos);
  CHECK(error("SELECT k FROM cosine ORDER BY v ANN OF [0, 0] LIMIT 1")
            .find("Zero vectors cannot be indexed") != std::string::npos);
  CHECK(rows("SELECT k FROM cosine ORDER BY v ANN OF [1, 1] LIMIT 9") == "2");
}

TEST_CASE_METHOD(Fixture,
                 "an index takes vectors that a search can name, of one dimension or many") {
  run("CREATE TABLE d (k int PRIMARY KEY, one vector<float, 1>, many vector<float, 8192>, more "
      "vector<float, 8193>)");
  const std::string by_product =
      " USING 'sai' WITH OPTIONS = {'similarity_function': 'dot_product'}";
  CHECK(error("CREATE INDEX ON d (more)" + by_product) ==
        "Vectors of 8193 dimensions cannot be indexed, 8192 at most");
  run("CREATE INDEX ON d (one)" + by_product);
  run("CREATE INDEX ON d (many)" + by_product);
  for (const int k : {1, 2, 3}) {
    std::string many = std::to_string(k);
    for (int i = 1; i < 8192; ++i) many += ",0";
    run(fmt::format("INSERT INTO d (k, one, many) VALUES ({}, [{}], [{}])", k, -k, many));
    if (k == 3)
      CHECK(rows(fmt::format("SELECT k FROM d ORDER BY many ANN OF [{}] LIMIT 2", many)) == "3\n2");
  }
  CHECK(rows("SELECT k FROM d ORDER BY one ANN OF [1] LIMIT 5") == "1\n2\n3");
}

TEST_CASE_METHOD(Fixture, "an index on vectors waits for the last node's program") {
  run("CREATE TABLE late (k int PRIMARY KEY, v vector<float, 2>)");
  meta.set_format(replication::kFormatMerges);
  CHECK(error("CREATE INDEX ON late (v) USING 'sai'").find("wait until all nodes") !=
        std::string::npos);
}

TEST_CASE_METHOD(Fixture, "rows that are as near, and many of them, are as many as asked for") {
  for (int c = 2; c < 200; ++c)
    run(fmt::format("INSERT INTO t (k, c, v) VALUES (5, {}, [5, 0])", c));
  const std::string answer = nearest(5, 150);
  CHECK(std::ranges::count(answer, '\n') == 149);
  CHECK(answer.starts_with("5\n5\n"));
}
