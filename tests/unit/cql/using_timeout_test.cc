// SPDX-License-Identifier: Apache-2.0
// USING TIMEOUT, which ScyllaDB has and Cassandra has not: what it takes, what it refuses, and
// which deadline the coordinator is given.
#include <catch2/catch.hpp>

#include "cql/types/value.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

struct Fixture : LocalCluster {
  Fixture() {
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "USE ks",
          "CREATE TABLE t (k int, c int, timeout int, l list<int>, PRIMARY KEY (k, c))"}) {
      INFO(statement);
      REQUIRE_FALSE(cql(statement).starts_with("error: "));
    }
  }
  /// Milliseconds that the coordinator is given for the statement.
  int64_t given_ms(std::string_view text, std::vector<cql::BoundValue> values = {}) {
    const auto statement = prepare(text);
    const int64_t began_us = reactor.now_us();
    const auto result = execute(statement, std::move(values));
    INFO(text << ": " << print(result));
    REQUIRE(result.has_value());
    return (coordinator->deadline.at_us - began_us) / 1000;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "USING TIMEOUT takes the place of the server's timeouts") {
  CHECK(given_ms("SELECT * FROM t WHERE k = 1") == 5'000);
  CHECK(given_ms("SELECT * FROM t WHERE k = 1 USING TIMEOUT 500ms") == 500);
  CHECK(given_ms("SELECT * FROM t USING TIMEOUT 1m") == 60'000);
  CHECK(given_ms("SELECT * FROM t LIMIT 3 ALLOW FILTERING USING TIMEOUT 1s500ms") == 1'500);
  CHECK(given_ms("SELECT count(*) FROM t using timeout 20s") == 20'000);
  CHECK(given_ms("SELECT timeout FROM t WHERE k IN (1, 2) USING TIMEOUT PT2S") == 2'000);
  CHECK(given_ms("INSERT INTO t (k, c) VALUES (1, 1)") == 2'000);
  CHECK(given_ms("INSERT INTO t (k, c) VALUES (1, 1) USING TIMEOUT 7s") == 7'000);
  CHECK(given_ms("INSERT INTO t (k, c) VALUES (1, 1) USING TIMEOUT 2s AND TTL 100 AND TIMESTAMP "
                 "5") == 2'000);
  CHECK(given_ms("INSERT INTO t JSON '{\"k\": 1, \"c\": 2}' USING TTL 3 AND TIMEOUT 1s") == 1'000);
  CHECK(given_ms("UPDATE t USING TIMEOUT 30ms SET timeout = 3 WHERE k = 1 AND c = 1") == 30);
  CHECK(given_ms("DELETE FROM t USING TIMEOUT 40ms WHERE k = 1") == 40);
  CHECK(given_ms("DELETE FROM t USING TIMEOUT 40ms AND TIMESTAMP 3 WHERE k = 1") == 40);
  CHECK(
      given_ms("DELETE timeout FROM t USING TIMESTAMP 3 AND TIMEOUT 50ms WHERE k = 1 AND c = 1") ==
      50);
  CHECK(given_ms("BEGIN BATCH USING TIMEOUT 60ms INSERT INTO t (k, c) VALUES (1, 1); "
                 "DELETE FROM t WHERE k = 1 AND c = 2 APPLY BATCH") == 60);
  CHECK(given_ms("BEGIN BATCH USING TIMESTAMP 4 AND TIMEOUT 70ms INSERT INTO t (k, c) VALUES (1, "
                 "1) APPLY BATCH") == 70);
}

TEST_CASE_METHOD(Fixture, "USING TIMEOUT takes markers of type duration") {
  CHECK(bind("SELECT * FROM t WHERE k = ? LIMIT ? USING TIMEOUT ?") ==
        "k int, [limit] int, [timeout] duration | pk 0 | k int, c int, l list<int>, timeout int");
  CHECK(bind("INSERT INTO t (k, c) VALUES (?, ?) USING TTL ? AND TIMEOUT :wait") ==
        "k int, c int, [ttl] int, wait duration | pk 0");
  CHECK(bind("DELETE FROM t USING TIMEOUT ? WHERE k = ?") == "[timeout] duration, k int | pk 1");
  CHECK(bind("BEGIN BATCH USING TIMEOUT ? INSERT INTO t (k, c) VALUES (?, 1) APPLY BATCH") ==
        "[timeout] duration, k int | pk 1");
  const Bytes one = cql::make_int(1), wait = cql::make_duration({0, 0, 250'000'000});
  const auto key = cql::BoundValue::of(one), timeout = cql::BoundValue::of(wait);
  CHECK(given_ms("SELECT * FROM t WHERE k = ? USING TIMEOUT ?", {key, timeout}) == 250);
  CHECK(given_ms("SELECT * FROM t WHERE k = ? USING TIMEOUT ?", {key, cql::BoundValue::unset()}) ==
        5'000);
  CHECK(given_ms("DELETE FROM t USING TIMEOUT ? WHERE k = ?", {timeout, key}) == 250);
  CHECK(given_ms("BEGIN BATCH USING TIMEOUT ? INSERT INTO t (k, c) VALUES (?, 1) APPLY BATCH",
                 {timeout, key}) == 250);
  CHECK(print(execute(prepare("SELECT * FROM t WHERE k = ? USING TIMEOUT ?"),
                      {key, cql::BoundValue::null()})) == "error: Timeout value cannot be null");
}

TEST_CASE_METHOD(Fixture, "USING TIMEOUT refuses what is no timeout") {
  const auto refused = [this](const std::string& timeout) {
    const std::string of_read = error("SELECT * FROM t WHERE k = 1 USING TIMEOUT " + timeout);
    CHECK(error("INSERT INTO t (k, c) VALUES (1, 1) USING TIMEOUT " + timeout) == of_read);
    CHECK(error("BEGIN BATCH USING TIMEOUT " + timeout +
                " INSERT INTO t (k, c) VALUES (1, 1) APPLY BATCH") == of_read);
    return of_read;
  };
  CHECK(refused("1d") == "Timeout values cannot be expressed in days/months");
  CHECK(refused("1mo2s") == "Timeout values cannot be expressed in days/months");
  CHECK(refused("60us") == "Timeout values cannot have granularity finer than milliseconds");
  CHECK(refused("1ms1ns") == "Timeout values cannot have granularity finer than milliseconds");
  CHECK(refused("0ms") == "Timeout values must be positive");
  CHECK(refused("-5s") == "Timeout values must be positive");
  CHECK(refused("61s") == "Timeout values cannot be longer than 60 seconds");
  CHECK(error("SELECT * FROM t WHERE k IN () USING TIMEOUT 0ms") ==
        "Timeout values must be positive");
  CHECK(error("BEGIN BATCH INSERT INTO t (k, c) VALUES (1, 1) USING TIMEOUT 1s APPLY BATCH") ==
        "Timeout must be set on BATCH, not on individual statements");
  const auto insert = prepare("INSERT INTO t (k, c) VALUES (1, 1) USING TIMEOUT 1s");
  const std::vector<cql::BatchEntry> entries{{insert, {}}};
  CHECK(print(execute_batch(cql::BatchType::kUnlogged, entries)) ==
        "error: Timeout must be set on BATCH, not on individual statements");
  CHECK(error("SELECT * FROM t USING TIMEOUT 5").starts_with("line 1:30 no viable alternative"));
  CHECK(error("SELECT * FROM t USING TIMEOUT '5s'").starts_with("line 1:30 no viable alternative"));
  CHECK(error("SELECT * FROM t USING TTL 5").starts_with("line 1:16 mismatched input 'USING'"));
  CHECK(error("DELETE FROM t USING TTL 5 WHERE k = 1").starts_with("line 1:20 mismatched input"));
}

}  // namespace tetrad::tests
