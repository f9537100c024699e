// SPDX-License-Identifier: Apache-2.0
// EXPLAIN SELECT: the access path, and estimates of a sample.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    CHECK(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
              "'replication_factor': 1}") == "ok");
    CHECK(cql("CREATE TABLE ks.t (k int, c int, v int, w int, PRIMARY KEY (k, c))") == "ok");
    CHECK(cql("CREATE INDEX by_v ON ks.t (v)") == "ok");
    for (int k = 0; k < 50; ++k)
      for (int c = 0; c < 10; ++c)
        CHECK(cql(fmt::format("INSERT INTO ks.t (k, c, v, w) VALUES ({}, {}, {}, 0)", k, c,
                              k % 5)) == "ok");
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "EXPLAIN names the access path of a SELECT") {
  const auto show = [&](std::string_view select) {
    return rows(fmt::format("EXPLAIN {}", select));
  };
  CHECK(show("SELECT * FROM ks.t WHERE k = 1")
            .starts_with("'partitions' | null | false | 1 | 10 | "));
  CHECK(show("SELECT * FROM ks.t WHERE k IN (1, 2, 3)")
            .starts_with("'partitions' | null | false | 1 | 30 | "));
  CHECK(show("SELECT * FROM ks.t WHERE k = 1 AND c = 3")
            .starts_with("'partitions' | null | false | 1 | 1 | "));
  CHECK(show("SELECT * FROM ks.t WHERE k = 1 AND w = 0 ALLOW FILTERING")
            .starts_with("'partitions' | null | true | 1 | 10 | "));
  CHECK(show("SELECT * FROM ks.t WHERE v = 2").starts_with("'index' | 'by_v' | false | 1 | "));
  CHECK(show("SELECT * FROM ks.t WHERE v = 2 AND k = 2")
            .starts_with("'index in partitions' | 'by_v' | false | 1 | 10 | "));
  CHECK(show("SELECT * FROM ks.t WHERE v = 2 AND w = 0 ALLOW FILTERING")
            .starts_with("'index' | 'by_v' | true | 1 | "));
  CHECK(show("SELECT * FROM system.local").starts_with("'computed' | null | false | 0 | 1 | "));
}

TEST_CASE_METHOD(Fixture, "EXPLAIN names the index of a vector search") {
  CHECK(cql("CREATE TABLE ks.v (k int PRIMARY KEY, e vector<float, 2>)") == "ok");
  CHECK(cql("CREATE CUSTOM INDEX by_e ON ks.v (e) USING 'StorageAttachedIndex'") == "ok");
  CHECK(cql("INSERT INTO ks.v (k, e) VALUES (1, [1, 2])") == "ok");
  CHECK(rows("EXPLAIN SELECT * FROM ks.v ORDER BY e ANN OF [1, 2] LIMIT 1")
            .starts_with("'nearest' | 'by_e' | false | 1 | 1 | "));
}

TEST_CASE_METHOD(Fixture, "what a sample did not reach is estimated") {
  const std::string shown = rows("EXPLAIN SELECT * FROM ks.t");
  CHECK(shown.starts_with("'range' | null | false | 1 | "));
  const int64_t estimated =
      std::stoll(shown.substr(std::string("'range' | null | false | 1 | ").size()));
  CHECK(estimated > 250);
  CHECK(estimated < 1000);
}

TEST_CASE_METHOD(Fixture, "static columns that stand alone are rows to EXPLAIN") {
  CHECK(cql("CREATE TABLE ks.s (k int, c int, s text static, PRIMARY KEY (k, c))") == "ok");
  for (int k = 0; k < 10; ++k)
    CHECK(cql(fmt::format("INSERT INTO ks.s (k, s) VALUES ({}, 'static')", k)) == "ok");
  CHECK(rows("EXPLAIN SELECT * FROM ks.s").starts_with("'range' | null | false | 1 | 10 | "));
  CHECK(rows("EXPLAIN SELECT * FROM ks.s WHERE k = 1")
            .starts_with("'partitions' | null | false | 1 | 1 | "));
}

TEST_CASE_METHOD(Fixture, "EXPLAIN answers the errors of its SELECT, and is no other statement") {
  CHECK(error("EXPLAIN SELECT * FROM ks.nothing") == "table nothing does not exist");
  CHECK(error("EXPLAIN SELECT * FROM ks.t WHERE w = 1") == error("SELECT * FROM ks.t WHERE w = 1"));
  CHECK(error("EXPLAIN SELECT * FROM ks.t LIMIT 0") == "LIMIT must be strictly positive");
  CHECK(error("EXPLAIN INSERT INTO ks.t (k, c) VALUES (1, 1)")
            .starts_with("line 1:8 EXPLAIN takes a SELECT"));
  CHECK(error("EXPLAIN") == "line 0:-1 EXPLAIN takes a SELECT");
  CHECK(cql("ALTER TABLE ks.t WITH cdc = true") == "ok");
  CHECK(error("EXPLAIN SELECT * FROM ks.t WHERE COSMOS_CHANGEFEED_START_TIME() = 0") ==
        "EXPLAIN of a change feed is not supported");
}

}  // namespace tetrad::tests
