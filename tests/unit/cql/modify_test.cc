// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE and BATCH against one node: what a later SELECT shows, and what is sent to
// the coordinator.
#include <array>

#include <catch2/catch.hpp>

#include "cql/types/value.h"
#include "storage/row/row_record.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

struct Fixture : LocalCluster {
  Fixture() {
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
};

TEST_CASE_METHOD(Fixture, "INSERT makes a row, UPDATE only cells") {
  run({"CREATE TABLE t (k int, c int, v int, w int, PRIMARY KEY (k, c))",
       "INSERT INTO t (k, c, v) VALUES (1, 1, 1)", "UPDATE t SET v = 1 WHERE k = 1 AND c = 2",
       "DELETE v FROM t WHERE k = 1 AND c = 1", "DELETE v FROM t WHERE k = 1 AND c = 2"});
  CHECK(rows("SELECT c, v FROM t WHERE k = 1") == "1 | null");
  run({"INSERT INTO t (k, c) VALUES (1, 3)", "UPDATE t SET v = null WHERE k = 1 AND c = 4"});
  CHECK(rows("SELECT c, v FROM t WHERE k = 1") == "1 | null\n3 | null");
  run({"INSERT INTO t (k, c, v, w) VALUES (1, 5, 1, 2)", "INSERT INTO t (k, c, v) VALUES (1, 5, 9)",
       "INSERT INTO t (k, c, w) VALUES (1, 5, null)"});
  CHECK(rows("SELECT v, w FROM t WHERE k = 1 AND c = 5") == "9 | null");
}

TEST_CASE_METHOD(Fixture, "now_in_seconds moves what expires, and dates no deletion") {
  run({"CREATE TABLE t (k int, c int, v int, s set<int>, PRIMARY KEY (k, c))"});
  const int64_t node_s = reactor.wall_time_us() / 1'000'000;
  for (const int64_t client_s : {node_s - 3600, node_s + 3600}) {
    options.now_in_seconds = static_cast<int32_t>(client_s);
    const auto written = [&]() -> const storage::Mutation& { return coordinator->written.at(0); };
    const auto record = [](const Bytes& encoded) { return *storage::decode_row_record(encoded); };
    run({"DELETE FROM t WHERE k = 1"});
    CHECK(record(written().header).deletion.deletion_time_s == node_s);
    run({"DELETE FROM t WHERE k = 1 AND c > 1"});
    CHECK(written().range_tombstones.at(0).deletion.deletion_time_s == node_s);
    run({"DELETE FROM t WHERE k = 1 AND c = 1"});
    CHECK(record(written().rows.at(0).record).deletion.deletion_time_s == node_s);
    run({"UPDATE t SET v = null, s = {} WHERE k = 1 AND c = 1"});
    for (const storage::Cell& cell : record(written().rows.at(0).record).cells)
      CHECK(cell.expiry_s == node_s);

    // A TTL counts from the client's now, and what is written is as old as it is.
    run({"INSERT INTO t (k, c, v) VALUES (1, 1, 1) USING TTL 7200"});
    CHECK(warnings.empty());
    const storage::RowRecord bytes = record(written().rows.at(0).record);
    CHECK(bytes.liveness.expiry_s == client_s + 7200);
    CHECK(bytes.liveness.expiry_s - bytes.liveness.ttl_s == node_s);
    CHECK(bytes.cells.at(0).expiry_s == client_s + 7200);
    CHECK(bytes.cells.at(0).expiry_s - bytes.cells.at(0).ttl_s == node_s);
    CHECK(rows("SELECT ttl(v) FROM t WHERE k = 1") == "7200");
    options.now_in_seconds = static_cast<int32_t>(client_s + 7199);
    CHECK(rows("SELECT ttl(v) FROM t WHERE k = 1") == "1");
    options.now_in_seconds = static_cast<int32_t>(client_s + 7200);
    CHECK(rows("SELECT v FROM t WHERE k = 1") == "");
  }
  // What had ended before it was written.
  options.now_in_seconds = static_cast<int32_t>(node_s - 3600);
  run(
      {"BEGIN BATCH INSERT INTO t (k, c, v) VALUES (1, 2, 1) USING TTL 60; DELETE FROM t WHERE k = "
       "1 AND c = 3 APPLY BATCH"});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("now_in_seconds "));
  REQUIRE(coordinator->written.at(0).rows.size() == 2);
  const auto ended = *storage::decode_row_record(coordinator->written[0].rows[0].record);
  CHECK(ended.cells.at(0).expiry_s == node_s - 10);
  CHECK(ended.cells.at(0).expiry_s - ended.cells.at(0).ttl_s >= node_s - 11);
  const auto gone = *storage::decode_row_record(coordinator->written[0].rows[1].record);
  CHECK(gone.deletion.deletion_time_s == node_s);
}

TEST_CASE_METHOD(Fixture, "a complete INSERT says so") {
  run({"CREATE TABLE t (k int, c int, v int, l list<int>, s int static, PRIMARY KEY (k, c))",
       "INSERT INTO t (k, c, v, l) VALUES (1, 1, 1, [1])"});
  REQUIRE(coordinator->written.size() == 1);
  REQUIRE(coordinator->written[0].rows.size() == 1);
  CHECK(coordinator->written[0].rows[0].complete);
  run({"INSERT INTO t (k, c, v, l) VALUES (1, 1, null, null) USING TTL 5"});
  CHECK(coordinator->written[0].rows[0].complete);
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 1)"});
  CHECK_FALSE(coordinator->written[0].rows[0].complete);
  run({"UPDATE t SET v = 1, l = [1] WHERE k = 1 AND c = 1"});
  CHECK_FALSE(coordinator->written[0].rows[0].complete);
  const auto statement = prepare("INSERT INTO t (k, c, v, l) VALUES (1, 1, ?, [1])");
  CHECK(execute(statement, {cql::BoundValue::unset()}).has_value());
  CHECK_FALSE(coordinator->written[0].rows[0].complete);
  CHECK(rows("SELECT v FROM t") == "1");
  run({"INSERT INTO t (k, s) VALUES (1, 5)"});
  CHECK(coordinator->written[0].rows.empty());
  CHECK_FALSE(coordinator->written[0].header.empty());
  run({"CREATE TABLE lossy (k int, c decimal, v int, PRIMARY KEY (k, c))",
       "INSERT INTO lossy (k, c, v) VALUES (1, 1, 1)"});
  CHECK_FALSE(coordinator->written[0].rows[0].complete);
}

TEST_CASE_METHOD(Fixture, "lists keep their order") {
  run({"CREATE TABLE t (k int PRIMARY KEY, l list<int>)", "UPDATE t SET l = [1, 2] WHERE k = 1",
       "UPDATE t SET l = l + [3, 4] WHERE k = 1", "UPDATE t SET l = [9, 0] + l WHERE k = 1",
       "UPDATE t SET l = [8] + l WHERE k = 1", "UPDATE t SET l += [5] WHERE k = 1"});
  CHECK(rows("SELECT l FROM t") == "[8, 9, 0, 1, 2, 3, 4, 5]");
  run({"UPDATE t SET l[0] = 80 WHERE k = 1", "UPDATE t SET l[7] = 50, l[1] = 90 WHERE k = 1",
       "DELETE l[2] FROM t WHERE k = 1"});
  CHECK(rows("SELECT l FROM t") == "[80, 90, 1, 2, 3, 4, 50]");
  run({"UPDATE t SET l = l - [1, 3, 77] WHERE k = 1"});
  CHECK(rows("SELECT l FROM t") == "[80, 90, 2, 4, 50]");
  run(
      {"BEGIN BATCH UPDATE t SET l = l + [1] WHERE k = 2; UPDATE t SET l = l + [2] WHERE k = 2; "
       "UPDATE t SET l = [3] + l WHERE k = 2; UPDATE t SET l = [4] + l WHERE k = 2; APPLY BATCH"});
  CHECK(rows("SELECT l FROM t WHERE k = 2") == "[4, 3, 1, 2]");
  CHECK(error("UPDATE t SET l[9] = 1 WHERE k = 1") == "List index 9 out of bound, list has size 5");
  CHECK(error("UPDATE t SET l[-1] = 1 WHERE k = 1") ==
        "List index -1 out of bound, list has size 5");
  CHECK(error("UPDATE t SET l[0] = 1 WHERE k = 77") ==
        "Attempted to set an element on a list which is null");
  CHECK(error("DELETE l[7] FROM t WHERE k = 1") == "List index 7 out of bound, list has size 5");
  CHECK(error("UPDATE t SET l[null] = 1 WHERE k = 1") == "Invalid null value for list index");
  run({"UPDATE t SET l = [] WHERE k = 1"});
  CHECK(rows("SELECT l FROM t WHERE k = 1").empty());
  run({"INSERT INTO t (k, l) VALUES (3, [])"});
  CHECK(rows("SELECT l FROM t WHERE k = 3") == "null");
}

TEST_CASE_METHOD(Fixture, "sets, maps and user types change by element") {
  run({"CREATE TYPE u (x int, y text)",
       "CREATE TABLE t (k int PRIMARY KEY, s set<int>, m map<text, int>, u1 u, fu frozen<u>, sd "
       "set<decimal>)",
       "UPDATE t SET s = {3, 1}, m = {'b': 2, 'a': 1}, u1 = {x: 1, y: 'q'} WHERE k = 1",
       "UPDATE t SET s = s + {2, 3}, m = m + {'c': 3}, u1.x = 5 WHERE k = 1"});
  CHECK(rows("SELECT s, m, u1 FROM t") == "{1, 2, 3} | {'a': 1, 'b': 2, 'c': 3} | {x: 5, y: 'q'}");
  run({"UPDATE t SET s = s - {1, 9}, m = m - {'a', 'zz'}, u1.y = null WHERE k = 1"});
  CHECK(rows("SELECT s, m, u1 FROM t") == "{2, 3} | {'b': 2, 'c': 3} | {x: 5, y: null}");
  run({"UPDATE t SET m['b'] = null, m['d'] = 4 WHERE k = 1",
       "DELETE s[2], m['c'] FROM t WHERE k = 1"});
  CHECK(rows("SELECT s, m FROM t") == "{3} | {'d': 4}");
  run({"UPDATE t SET s = {7} WHERE k = 1", "UPDATE t SET m = {} WHERE k = 1",
       "UPDATE t SET u1 = {x: 9} WHERE k = 1", "UPDATE t SET sd = {1.50, 2} WHERE k = 1"});
  CHECK(rows("SELECT s, m, u1, sd FROM t") == "{7} | null | {x: 9, y: null} | {1.50, 2}");
  run({"DELETE s, u1 FROM t WHERE k = 1", "UPDATE t SET m = m + null, s = s - {} WHERE k = 1",
       "DELETE u1.x FROM t WHERE k = 1"});
  CHECK(rows("SELECT s, m, u1 FROM t") == "null | null | null");
  CHECK(error("UPDATE t SET m[null] = 1 WHERE k = 1") == "Invalid null map key");
}

TEST_CASE_METHOD(Fixture, "elements of sets and keys of maps may be above 64 KiB") {
  const std::string shorter(65'536, 'a'), longer = std::string(200'000, 'a');
  run({"CREATE TABLE t (k int PRIMARY KEY, s set<text>, m map<text, int>)"});
  run({fmt::format("INSERT INTO t (k, s, m) VALUES (1, {{'{0}', '{1}'}}, {{'{0}': 1, '{1}': 2}})",
                   longer, shorter),
       fmt::format("UPDATE t SET s = s + {{'{0}b'}}, m['{0}b'] = 3 WHERE k = 1", longer)});
  CHECK(rows("SELECT collection_count(s), collection_count(m) FROM t") == "3 | 3");
  CHECK(rows("SELECT s FROM t") == fmt::format("{{'{0}', '{1}', '{1}b'}}", shorter, longer));
  run({fmt::format("DELETE m['{}'] FROM t WHERE k = 1", longer),
       fmt::format("UPDATE t SET s = s - {{'{}'}} WHERE k = 1", shorter)});
  CHECK(rows("SELECT s FROM t") == fmt::format("{{'{0}', '{0}b'}}", longer));
  CHECK(rows("SELECT m FROM t") == fmt::format("{{'{}': 2, '{}b': 3}}", shorter, longer));
}

TEST_CASE_METHOD(Fixture, "deletes of every width") {
  run({"CREATE TABLE t (k int, a int, b int, v int, s int static, PRIMARY KEY (k, a, b))"});
  const auto fill = [&] {
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) {
        REQUIRE(cql(fmt::format("INSERT INTO t (k, a, b, v, s) VALUES (1, {}, {}, 1, 7)", a, b)) ==
                "ok");
      }
    }
  };
  const auto left = [&] { return rows("SELECT a, b FROM t WHERE k = 1"); };
  fill();
  run({"DELETE FROM t WHERE k = 1 AND a = 1"});
  CHECK(left() == "0 | 0\n0 | 1\n0 | 2\n2 | 0\n2 | 1\n2 | 2");
  run({"DELETE FROM t WHERE k = 1 AND a = 0 AND b > 0"});
  CHECK(left() == "0 | 0\n2 | 0\n2 | 1\n2 | 2");
  run({"DELETE FROM t WHERE k = 1 AND a = 2 AND b = 1"});
  CHECK(left() == "0 | 0\n2 | 0\n2 | 2");
  run({"DELETE FROM t WHERE k = 1 AND (a, b) >= (2, 1)"});
  CHECK(left() == "0 | 0\n2 | 0");
  fill();
  run({"DELETE FROM t WHERE k = 1 AND a IN (0, 2) AND b < 2"});
  CHECK(left() == "0 | 2\n1 | 0\n1 | 1\n1 | 2\n2 | 2");
  run({"DELETE v FROM t WHERE k = 1 AND a = 1 AND b IN (0, 1)"});
  CHECK(rows("SELECT a, b, v FROM t WHERE k = 1 AND a = 1") ==
        "1 | 0 | null\n1 | 1 | null\n1 | 2 | 1");
  run({"DELETE s FROM t WHERE k = 1"});
  CHECK(rows("SELECT DISTINCT k, s FROM t") == "1 | null");
  run({"DELETE FROM t WHERE k IN (1, 2)"});
  CHECK(left().empty());
  run({"INSERT INTO t (k, a, b) VALUES (1, 1, 1) USING TIMESTAMP 5"});
  CHECK(left().empty());
  fill();
  run({"DELETE FROM t USING TIMESTAMP 5 WHERE k = 1"});
  CHECK(left().size() > 10);
}

TEST_CASE_METHOD(Fixture, "timestamps and times to live") {
  run({"CREATE TABLE t (k int PRIMARY KEY, v int) WITH default_time_to_live = 100",
       "INSERT INTO t (k, v) VALUES (1, 1)", "INSERT INTO t (k, v) VALUES (2, 1) USING TTL 0",
       "INSERT INTO t (k, v) VALUES (3, 1) USING TTL 10"});
  CHECK(rows("SELECT k, ttl(v) FROM t") == "1 | 100\n2 | null\n3 | 10");
  auto statement = prepare("INSERT INTO t (k, v) VALUES (4, 1) USING TTL ?");
  CHECK(execute(statement, {cql::BoundValue::unset()}).has_value());
  CHECK(rows("SELECT ttl(v) FROM t WHERE k = 4") == "100");
  CHECK(execute(statement, {cql::BoundValue::null()}).has_value());
  CHECK(rows("SELECT ttl(v) FROM t WHERE k = 4") == "null");
  options.timestamp_us = 4'000'000'000'000'000;
  run({"UPDATE t SET v = 5 WHERE k = 1"});
  options.timestamp_us.reset();
  run({"UPDATE t SET v = 6 WHERE k = 1"});
  CHECK(rows("SELECT v, writetime(v) FROM t WHERE k = 1") == "5 | 4000000000000000");
  run({"BEGIN BATCH USING TIMESTAMP 4000000000000001 UPDATE t SET v = 7 WHERE k = 1; APPLY BATCH"});
  CHECK(rows("SELECT v FROM t WHERE k = 1") == "7");
  statement = prepare("BEGIN BATCH USING TIMESTAMP ? UPDATE t SET v = 8 WHERE k = ?; APPLY BATCH");
  const Bytes timestamp = cql::make_bigint(4'000'000'000'000'002), key = cql::make_int(1);
  CHECK(execute(statement, {cql::BoundValue::of(timestamp), cql::BoundValue::of(key)}).has_value());
  CHECK(rows("SELECT v FROM t WHERE k = 1") == "8");
}

TEST_CASE_METHOD(Fixture, "batches") {
  run({"CREATE TABLE t (k int, c int, v int, w int, PRIMARY KEY (k, c))", "BEGIN BATCH APPLY BATCH",
       "BEGIN UNLOGGED BATCH APPLY BATCH",
       "BEGIN BATCH INSERT INTO t (k, c, v) VALUES (1, 1, 1); UPDATE t SET w = 2 WHERE k = 1 AND c "
       "= 1; INSERT INTO t (k, c, v) VALUES (1, 2, 2); DELETE FROM t WHERE k = 1 AND c = 3; APPLY "
       "BATCH"});
  CHECK(coordinator->written.size() == 1);
  CHECK(coordinator->written[0].rows.size() == 3);
  CHECK(rows("SELECT c, v, w FROM t WHERE k = 1") == "1 | 1 | 2\n2 | 2 | null");
  run(
      {"BEGIN BATCH INSERT INTO t (k, c) VALUES (1, 1); INSERT INTO t (k, c) VALUES (2, 1); "
       "APPLY BATCH"});
  CHECK(coordinator->logged_batches == 1);
  CHECK(coordinator->written.size() == 2);
  run(
      {"BEGIN UNLOGGED BATCH INSERT INTO t (k, c) VALUES (1, 9); INSERT INTO t (k, c) VALUES (2, "
       "9); APPLY BATCH"});
  CHECK(coordinator->written.size() == 2);
  CHECK(rows("SELECT k FROM t WHERE c = 9 ALLOW FILTERING") == "1\n2");
  const auto insert = prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)");
  const Bytes five = cql::make_int(5), six = cql::make_int(6);
  std::vector<cql::BatchEntry> entries(2);
  for (auto& entry : entries) entry.statement = insert;
  entries[0].values = {cql::BoundValue::of(five), cql::BoundValue::of(five),
                       cql::BoundValue::of(five)};
  entries[1].values = {cql::BoundValue::of(five), cql::BoundValue::of(six),
                       cql::BoundValue::null()};
  CHECK(print(execute_batch(cql::BatchType::kLogged, entries)) == "ok");
  CHECK(rows("SELECT c, v FROM t WHERE k = 5") == "5 | 5\n6 | null");
  entries[1].statement = prepare("SELECT * FROM t");
  CHECK(
      print(execute_batch(cql::BatchType::kLogged, entries)) ==
      "error: Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
}

TEST_CASE_METHOD(Fixture, "a batch of many parts makes one row of each") {
  run(
      {"CREATE TABLE t (k int, c int, s set<int> static, m map<int, int>, v int, PRIMARY KEY (k, "
       "c))"});
  const auto entry_of_map = prepare("UPDATE t SET m[?] = ? WHERE k = 1 AND c = ?");
  const auto value = prepare("UPDATE t SET v = ? WHERE k = 1 AND c = ?");
  const auto element = prepare("UPDATE t SET s = s + ? WHERE k = 1");
  constexpr int kParts =
      5000;  // each row with all before it, they would be copied millions of times
  std::vector<Bytes> numbers, sets;
  for (int i = 0; i < kParts; ++i) {
    numbers.push_back(cql::make_int(i));
    const BytesView number = numbers.back();
    sets.push_back(cql::join_list(std::array{number}));
  }
  const auto number = [&](int i) { return cql::BoundValue::of(numbers[static_cast<size_t>(i)]); };
  std::vector<cql::BatchEntry> entries;
  for (int i = 0; i < kParts; ++i) {
    entries.push_back({entry_of_map, {number(i), number(i), number(i % 2)}});
    entries.push_back({value, {number(i), number(i % 2)}});
    entries.push_back({element, {cql::BoundValue::of(sets[static_cast<size_t>(i)])}});
  }
  CHECK(print(execute_batch(cql::BatchType::kLogged, entries)) == "ok");
  CHECK(coordinator->written.size() == 1);
  CHECK(coordinator->written[0].rows.size() == 2);
  // Of equal timestamps the larger value stays.
  CHECK(rows("SELECT c, v, m[4998], m[4999], s[0], s[4999] FROM t WHERE k = 1") ==
        "0 | 4998 | 4998 | null | 0 | 4999\n1 | 4999 | null | 4999 | 0 | 4999");
}

TEST_CASE_METHOD(Fixture, "INSERT JSON") {
  run({"CREATE TYPE u (x int, y text)",
       "CREATE TABLE t (k int PRIMARY KEY, i int, ma map<text, int>, li list<int>, u1 u, \"Q\" "
       "int)",
       "INSERT INTO t JSON '{\"k\": 1, \"ma\": {\"a\": 1}, \"li\": [1, 2], \"u1\": {\"x\": 1}, "
       "\"\\\"Q\\\"\": 3}'"});
  CHECK(rows("SELECT k, i, ma, li, u1, \"Q\" FROM t") ==
        "1 | null | {'a': 1} | [1, 2] | {x: 1, y: null} | 3");
  run({"INSERT INTO t JSON '{\"k\": 1, \"i\": 5}' DEFAULT UNSET"});
  CHECK(rows("SELECT i, li FROM t") == "5 | [1, 2]");
  run({"INSERT INTO t JSON '{\"k\": 1, \"i\": 6}'"});
  CHECK(rows("SELECT i, li FROM t") == "6 | null");
  CHECK(error("INSERT INTO t JSON '{\"k\": 1, \"zz\": 1}'") ==
        "JSON values map contains unrecognized column: zz");
  CHECK(error("INSERT INTO t JSON '{\"i\": 1}'") == "Invalid null value in condition for column k");
  CHECK(error("INSERT INTO t JSON '{\"k\": 1, \"i\": \"x\"}'") ==
        "Error decoding JSON value for i: Unable to make int from 'x'");
}

TEST_CASE_METHOD(Fixture, "functions in values") {
  run(
      {"CREATE TABLE t (k int PRIMARY KEY, i int, tu timeuuid, ts timestamp, b blob, d date, f "
       "float, t text, uu uuid)",
       "INSERT INTO t (k, i, tu, ts, b, uu) VALUES (1, 1 + 2, now(), totimestamp(now()), "
       "intAsBlob(5), uuid())",
       "INSERT INTO t (k, i) VALUES (2, (int)2)", "INSERT INTO t (k, i) VALUES (3, abs(-5))",
       "INSERT INTO t (k, i) VALUES (4, blobAsInt(0x00000007))"});
  CHECK(rows("SELECT i, b, ts FROM t WHERE k = 1") ==
        "3 | 0x00000005 | '2023-11-14T22:13:20.000Z'");
  CHECK(rows("SELECT i FROM t WHERE k IN (2, 3, 4)") == "2\n5\n7");
  CHECK(error("INSERT INTO t (k, i) VALUES (1, 1 / 0)") ==
        "the operation 'int / int' failed: / by zero");
  CHECK(rows("SELECT to_date(ts), to_unix_timestamp(ts), ts + 1h, ts - 1d, floor(ts, 1h) FROM t "
             "WHERE k = 1") ==
        "'2023-11-14' | 1700000000000 | '2023-11-14T23:13:20.000Z' | '2023-11-13T22:13:20.000Z' | "
        "'2023-11-14T22:00:00.000Z'");
  CHECK(rows("SELECT i + 0.5, i * 2.0, cast(i as text), cast(i as double), -i, exp(0), round(1.5) "
             "FROM t WHERE k = 1") == "3.5 | 6.0 | '3' | 3.0 | -3 | 1 | 2.0");
  CHECK(rows("SELECT mask_inner('abcdef', 1, 1), mask_outer('abcdef', 1, 1), mask_default(i), "
             "mask_null(i), mask_replace(i, 9) FROM t WHERE k = 1") ==
        "'a****f' | '*bcde*' | 0 | null | 9");
}

TEST_CASE_METHOD(Fixture, "an error shows the beginning of a text in whole characters") {
  run({"CREATE TABLE t (k int PRIMARY KEY, i int)"});
  std::string text = "x";
  for (int i = 0; i < 600; ++i) text += "\u00e9";
  const std::string told = error("INSERT INTO t (k, i) VALUES (1, from_json('" + text + "'))");
  CHECK(told.find("Could not decode JSON string 'x\u00e9") != std::string::npos);
  CHECK(told.size() < text.size());
  CHECK(cql::is_valid_utf8(told));
}

}  // namespace
}  // namespace tetrad::tests
