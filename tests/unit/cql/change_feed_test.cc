// SPDX-License-Identifier: Apache-2.0
// The change feed by CQL: what it delivers and in which order, page by page, and what it refuses.
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "cql/execute/feed_position.h"
#include "cql/types/value.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

constexpr const char* kSince = "COSMOS_CHANGEFEED_START_TIME() = '2023-11-14 00:00:00'";

struct Fixture : LocalCluster {
  Fixture() {
    run(
        {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
         "1}",
         "USE ks",
         "CREATE TABLE t (k int, c int, v text, s text static, PRIMARY KEY (k, c)) WITH cdc = "
         "true"});
  }
  void run(std::initializer_list<std::string_view> statements) {
    for (const auto statement : statements) {
      INFO(statement);
      REQUIRE(cql(statement) == "ok");
    }
  }
};

/// A reader that keeps its place.
struct Reader {
  LocalCluster& cluster;
  std::string text;
  int32_t page_size = 100;
  std::optional<Bytes> at = {};
  uint32_t row_count = 0;  // of the last page

  std::string next(std::vector<cql::BoundValue> values = {}) {
    const auto statement = cluster.prepare(text);
    cluster.options.page_size = page_size;
    cluster.options.paging_position = at;
    const auto result = cluster.execute(statement, std::move(values));
    cluster.options.page_size = -1;
    cluster.options.paging_position.reset();
    if (const auto* rows = result ? std::get_if<cql::RowsResult>(&*result) : nullptr) {
      if (page_size > 0) REQUIRE(rows->next_position);
      at = rows->next_position;
      row_count = rows->row_count;
      if (page_size > 0) REQUIRE(row_count <= static_cast<uint32_t>(page_size));
    }
    return cluster.print(result, false);
  }
  /// All pages up to an empty one, parted by "/".
  std::string rest() {
    std::string all;
    for (int i = 0; i < 1000; ++i) {
      const std::string page = next();
      if (page.empty() && row_count == 0) return all;
      all += (all.empty() ? "" : "/") + page;
    }
    return all + " and so on";
  }
};

Reader reader(LocalCluster& cluster, int32_t page_size = 100,
              const std::string& what = "k, c, v, s", const std::string& more = "") {
  return {cluster, "SELECT " + what + " FROM t WHERE " + kSince + more, page_size};
}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "the feed gives rows in the order in which they were written, as they are") {
  run({"INSERT INTO t (k, c, v) VALUES (3, 1, 'a')", "INSERT INTO t (k, c, v) VALUES (1, 2, 'b')",
       "INSERT INTO t (k, c, v) VALUES (3, 0, 'c')", "INSERT INTO t (k, c, v) VALUES (1, 1, 'd')"});
  Reader feed = reader(*this);
  CHECK(feed.next() ==
        "3 | 1 | 'a' | null\n1 | 2 | 'b' | null\n3 | 0 | 'c' | null\n"
        "1 | 1 | 'd' | null");
  CHECK(feed.next().empty());
  run({"UPDATE t SET v = 'e' WHERE k = 1 AND c = 2", "UPDATE t SET v = 'f' WHERE k = 1 AND c = 2",
       "INSERT INTO t (k, c, v) VALUES (9, 9, 'g')"});
  CHECK(feed.next() == "1 | 2 | 'f' | null\n9 | 9 | 'g' | null");
  CHECK(feed.next().empty());
  CHECK(feed.next().empty());
  CHECK(reader(*this).rest() ==
        "3 | 1 | 'a' | null\n3 | 0 | 'c' | null\n1 | 1 | 'd' | null\n1 | 2 | 'f' | null\n"
        "9 | 9 | 'g' | null");
  CHECK(reader(*this, 2).rest() ==
        "3 | 1 | 'a' | null\n3 | 0 | 'c' | null/1 | 1 | 'd' | null\n1 | 2 | 'f' | null/"
        "9 | 9 | 'g' | null");
  CHECK(reader(*this, 1, "c").rest() == "1/0/1/2/9");
  CHECK(reader(*this, 3, "c").rest() == "1\n0\n1/2\n9");
  CHECK(reader(*this, -1, "c").next() == "1\n0\n1\n2\n9");
  CHECK(reader(*this, 0, "c").next() == "1\n0\n1\n2\n9");
}

TEST_CASE_METHOD(Fixture, "the feed begins at the start time, in every form of a timestamp") {
  run({"INSERT INTO t (k, c) VALUES (1, 1)"});
  reactor.advance_us(3'600'000'000);  // 23:13:20
  run({"INSERT INTO t (k, c) VALUES (2, 2)"});
  for (const char* value :
       {"'2023-11-14 23:00:00'", "'2023-11-14T23:00:00Z'", "'2023-11-14T23:00:00.000+0000'",
        "'2023-11-15 00:00+0100'", "1700002800000", "(timestamp)'2023-11-14 23:00:00'",
        "'2023-11-14 23:13:20'"}) {
    INFO(value);
    CHECK(rows(std::string("SELECT k FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = ") + value) ==
          "2");
  }
  CHECK(rows("SELECT k FROM t WHERE cosmos_changefeed_start_time() = '2023-11-14'") == "1\n2");
  CHECK(rows("SELECT k FROM t WHERE Cosmos_ChangeFeed_Start_Time() = '2024-01-01'").empty());
  CHECK(rows("SELECT k FROM t WHERE (COSMOS_CHANGEFEED_START_TIME() = '2024-01-01')").empty());
  CHECK(rows("SELECT k FROM t WHERE cosmos_changefeed_start_time() = -9223372036854775808") ==
        "1\n2");
  CHECK(rows("SELECT k FROM t WHERE cosmos_changefeed_start_time() = 9223372036854775807").empty());
  reactor.advance_us(1'000'000);
  // now() is that of the first page.
  Reader feed{*this, "SELECT k FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = toTimestamp(now())"};
  CHECK(feed.next().empty());
  run({"INSERT INTO t (k, c) VALUES (3, 3)"});
  reactor.advance_us(10'000'000);
  CHECK(feed.next() == "3");
}

TEST_CASE_METHOD(Fixture, "rows that are gone are left out") {
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 'a')", "INSERT INTO t (k, c, v) VALUES (1, 2, 'b')",
       "INSERT INTO t (k, c, v) VALUES (2, 1, 'c')",
       "INSERT INTO t (k, c, v) VALUES (3, 1, 'd') USING TTL 10",
       "UPDATE t USING TTL 10 SET v = 'e' WHERE k = 1 AND c = 2",
       "DELETE FROM t WHERE k = 1 AND c = 1", "DELETE FROM t WHERE k = 2"});
  CHECK(reader(*this).rest() == "3 | 1 | 'd' | null\n1 | 2 | 'e' | null");
  // They take no place in a page.
  Reader feed = reader(*this, 1);
  CHECK(feed.next() == "3 | 1 | 'd' | null");
  reactor.advance_us(11'000'000);
  CHECK(feed.next() == "1 | 2 | null | null");
  CHECK(reader(*this).rest() == "1 | 2 | null | null");
  run({"DELETE v FROM t WHERE k = 1 AND c = 2", "DELETE FROM t WHERE k = 1 AND c > 0"});
  CHECK(reader(*this).rest().empty());
}

TEST_CASE_METHOD(Fixture, "static columns that were written are a row of their own") {
  run({"INSERT INTO t (k, c, v, s) VALUES (1, 1, 'a', 'x')", "UPDATE t SET s = 'y' WHERE k = 2",
       "INSERT INTO t (k, c, v) VALUES (2, 5, 'b')"});
  Reader feed = reader(*this);
  CHECK(feed.next() ==
        "1 | null | null | 'x'\n1 | 1 | 'a' | 'x'\n2 | null | null | 'y'\n"
        "2 | 5 | 'b' | 'y'");
  run({"UPDATE t SET s = 'z' WHERE k = 1"});
  CHECK(feed.next() == "1 | null | null | 'z'");
  run({"DELETE s FROM t WHERE k = 1"});
  CHECK(feed.next().empty());
  CHECK(reader(*this, 1).rest() == "1 | 1 | 'a' | null/2 | null | null | 'y'/2 | 5 | 'b' | 'y'");
  run({"UPDATE t SET s = 'w' WHERE k = 1"});
  CHECK(reader(*this, 5, "k, s").rest() == "1 | 'w'\n2 | 'y'\n2 | 'y'\n1 | 'w'");
}

TEST_CASE_METHOD(Fixture, "the feed of one partition") {
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 'a')", "INSERT INTO t (k, c, v) VALUES (2, 1, 'b')",
       "INSERT INTO t (k, c, v) VALUES (1, 0, 'c')"});
  CHECK(reader(*this, 100, "k, c", " AND k = 1").rest() == "1 | 1\n1 | 0");
  CHECK(reader(*this, 1, "k, c", " AND k = 1").rest() == "1 | 1/1 | 0");
  CHECK(reader(*this, 100, "k, c", " AND k IN (2)").rest() == "2 | 1");
  CHECK(reader(*this, 100, "k, c", " AND k = 7").rest().empty());
  run({"CREATE TABLE w (a int, b text, v int, PRIMARY KEY ((a, b))) WITH cdc = true",
       "INSERT INTO w (a, b, v) VALUES (1, 'x', 1)", "INSERT INTO w (a, b, v) VALUES (1, 'y', 2)",
       "UPDATE w SET v = 3 WHERE a = 1 AND b = 'x'"});
  CHECK(rows(fmt::format("SELECT * FROM w WHERE b = 'x' AND {} AND a = 1", kSince)) ==
        "1 | 'x' | 3");
  CHECK(rows(fmt::format("SELECT * FROM w WHERE {}", kSince)) == "1 | 'y' | 2\n1 | 'x' | 3");
}

TEST_CASE_METHOD(Fixture, "what selects from single rows works in the feed") {
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 'a') USING TIMESTAMP 77 AND TTL 100",
       "INSERT INTO t (k, c, v) VALUES (2, 2, 'b') USING TIMESTAMP 78"});
  const auto feed = [&](const std::string& what) { return reader(*this, 100, what).next(); };
  CHECK(feed("v AS x, writetime(v), ttl(v)") == "'a' | 77 | 100\n'b' | 78 | null");
  CHECK(feed("JSON k, v") == R"('{"k": 1, "v": "a"}')"
                             "\n"
                             R"('{"k": 2, "v": "b"}')");
  CHECK(feed("CAST(k AS text), c + 1, token(k), blobAsInt(intAsBlob(c))") ==
        "'1' | 2 | -4069959284402364209 | 1\n'2' | 3 | -3248873570005575792 | 2");
  CHECK(feed("*") == "1 | 1 | null | 'a'\n2 | 2 | null | 'b'");
  CHECK(cql(fmt::format("SELECT v AS x FROM t WHERE {}", kSince)) == "x\n'a'\n'b'");
}

TEST_CASE_METHOD(Fixture, "the feed is read at QUORUM at least, and costs what its rows cost") {
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 'a')", "INSERT INTO t (k, c, v) VALUES (2, 2, 'b')",
       "INSERT INTO t (k, c, v) VALUES (2, 3, 'b')"});
  const auto read_at = [&](ConsistencyLevel level) {
    options.consistency = level;
    reader(*this).next();
    options.consistency = ConsistencyLevel::kOne;
    return coordinator->level;
  };
  CHECK(read_at(ConsistencyLevel::kOne) == ConsistencyLevel::kQuorum);
  CHECK(read_at(ConsistencyLevel::kTwo) == ConsistencyLevel::kQuorum);
  CHECK(read_at(ConsistencyLevel::kLocalOne) == ConsistencyLevel::kQuorum);
  CHECK(read_at(ConsistencyLevel::kAll) == ConsistencyLevel::kAll);
  CHECK(charge.units() == 4);
  CHECK(reader(*this).next({}).size() > 3);
  CHECK(charge.units() == 4);
}

TEST_CASE_METHOD(Fixture, "functions of users take turns in the feed") {
  settings.user_functions_enabled = true;
  run(
      {"CREATE FUNCTION slow (n int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
       "'local s = 0 for i = 1, 100000 do s = s + 1 end return n + s - s'"});
  for (int c = 0; c < 20; ++c) {
    REQUIRE(cql(fmt::format("INSERT INTO t (k, c) VALUES (1, {})", c)) == "ok");
  }
  CHECK(reader(*this, 100, "slow(c)").rest().ends_with("17\n18\n19"));
  coordinator->changes_since_us = reactor.wall_time_us();
  CHECK(reader(*this, 100, "slow(c)").rest().ends_with("17\n18\n19"));
}

TEST_CASE_METHOD(Fixture, "what comes while a page is held back is in it") {
  Reader feed = reader(*this, 100, "k, c");
  CHECK(feed.next().empty());
  const uint64_t looks = coordinator->changes_read;
  reactor.call_at(reactor.now_us() + 50'000,
                  [this] { run({"INSERT INTO t (k, c) VALUES (7, 1)"}); });
  CHECK(feed.next() == "7 | 1");
  CHECK(coordinator->changes_read == looks + 2);
  CHECK(feed.next().empty());
  CHECK(feed.next().empty());
}

TEST_CASE_METHOD(Fixture, "a feed that has nothing new is held back for a moment") {
  Reader feed = reader(*this);
  const auto took_us = [&] {
    const auto before = reactor.now_us();
    feed.next();
    return reactor.now_us() - before;
  };
  CHECK(took_us() == 130'000);
  CHECK(took_us() == 130'000);
  run({"INSERT INTO t (k, c) VALUES (1, 1)"});
  CHECK(took_us() == 0);
  CHECK(took_us() == 130'000);
  feed.text += " USING TIMEOUT 20ms";
  feed.at.reset();
  CHECK(took_us() == 0);
  CHECK(took_us() == 20'000);
  // Gone rows were news, as long as more may follow.
  run({"DELETE FROM t WHERE k = 1"});
  feed.page_size = 1;
  feed.at.reset();
  CHECK(took_us() == 20'000);
}

TEST_CASE_METHOD(Fixture, "where the log does not reach back the table is scanned") {
  for (int k = 0; k < 5; ++k) {
    for (int c = 0; c < 4; ++c) {
      REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v) VALUES ({}, {}, '{}')", k, c, c)) == "ok");
    }
  }
  run({"UPDATE t USING TIMESTAMP 1 SET s = 'old' WHERE k = 1", "UPDATE t SET s = 'n' WHERE k = 2",
       "UPDATE t SET s = 'alone' WHERE k = 9", "DELETE FROM t WHERE k = 3",
       "INSERT INTO t (k, c, v) VALUES (4, 9, 'old') USING TIMESTAMP 5",
       "INSERT INTO t (k, c, v) VALUES (0, 9, 'x') USING TTL 10 AND TIMESTAMP 5",
       "UPDATE t SET v = 'fresh' WHERE k = 0 AND c = 9"});
  coordinator->changes_since_us = reactor.wall_time_us();
  const std::string expected =  // by token
      "1 | 0 | '0' | 'old'\n1 | 1 | '1' | 'old'\n1 | 2 | '2' | 'old'\n1 | 3 | '3' | 'old'\n"
      "0 | 0 | '0' | null\n0 | 1 | '1' | null\n0 | 2 | '2' | null\n0 | 3 | '3' | null\n"
      "0 | 9 | 'fresh' | null\n"
      "2 | null | null | 'n'\n2 | 0 | '0' | 'n'\n2 | 1 | '1' | 'n'\n2 | 2 | '2' | 'n'\n"
      "2 | 3 | '3' | 'n'\n"
      "4 | 0 | '0' | null\n4 | 1 | '1' | null\n4 | 2 | '2' | null\n4 | 3 | '3' | null\n"
      "9 | null | null | 'alone'";
  for (const int32_t page_size : {1, 2, 3, 4, 5, 7, 19, 100}) {
    INFO(page_size);
    Reader feed = reader(*this, page_size);
    std::string all;
    // Until the scan is over: a page may end empty.
    for (int i = 0; i < 30 && std::ranges::count(all, '\n') < 19; ++i) {
      const std::string page = feed.next();
      if (!page.empty()) all += page + "\n";
    }
    CHECK(all == expected + "\n");
    CHECK(feed.rest().empty());
    // What was written meanwhile is in the log.
    run({"INSERT INTO t (k, c, v) VALUES (4, 0, '0')"});
    CHECK(feed.rest() == "4 | 0 | '0' | null");
  }
  Reader unpaged = reader(*this, -1);
  CHECK(unpaged.next() == expected);
  CHECK(unpaged.at);
  CHECK(unpaged.next().empty());
  CHECK_FALSE(unpaged.at);  // that was all
  CHECK(reader(*this, 100, "k, c, v, s", " AND k = 2").next() ==
        "2 | null | null | 'n'\n2 | 0 | '0' | 'n'\n2 | 1 | '1' | 'n'\n2 | 2 | '2' | 'n'\n"
        "2 | 3 | '3' | 'n'");
  CHECK(reader(*this, 2, "c", " AND k = 2").rest() == "null\n0/1\n2/3");
  CHECK(reader(*this, 2, "c", " AND k = 3").rest().empty());
}

TEST_CASE_METHOD(Fixture, "a scan finds static columns before many rows that are gone") {
  run({"UPDATE t SET s = 'x' WHERE k = 1", "INSERT INTO t (k, c, v) VALUES (1, 9, 'last')",
       "UPDATE t SET s = 'y' WHERE k = 2", "DELETE FROM t WHERE k = 1 AND c = 3"});
  const storage::Mutation gone = coordinator->written.front();
  coordinator->changes_since_us = reactor.wall_time_us();
  for (const int32_t page_size : {1, 2, 10}) {
    // So many that a read ends among them: it has nothing to show, and goes on behind them.
    bool is_first = true;
    coordinator->on_read = [&](storage::ReadResult& result) {
      if (!std::exchange(is_first, false)) return;
      result = storage::ReadResult();
      result.exhausted = false;
      result.complete_up_to = {gone.position, gone.partition_key, gone.rows[0].clustering_key};
    };
    Reader feed = reader(*this, page_size);
    std::string all;
    for (int i = 0; i < 12; ++i) {
      const std::string page = feed.next();
      if (!page.empty()) all += page + "\n";
    }
    CHECK(all == "1 | null | null | 'x'\n1 | 9 | 'last' | 'x'\n2 | null | null | 'y'\n");
  }
  coordinator->on_read = nullptr;
}

TEST_CASE_METHOD(Fixture, "a reader that was away for too long scans again") {
  run({"INSERT INTO t (k, c, v) VALUES (1, 1, 'a')"});
  Reader feed = reader(*this);
  CHECK(feed.next() == "1 | 1 | 'a' | null");
  run({"INSERT INTO t (k, c, v) VALUES (1, 2, 'b')", "INSERT INTO t (k, c, v) VALUES (1, 3, 'c')"});
  coordinator->changes_forgotten = 2;
  CHECK(feed.next() == "1 | 1 | 'a' | null\n1 | 2 | 'b' | null\n1 | 3 | 'c' | null");
  CHECK(feed.rest().empty());
  run({"INSERT INTO t (k, c, v) VALUES (1, 4, 'd')"});
  CHECK(feed.rest() == "1 | 4 | 'd' | null");
}

TEST_CASE_METHOD(Fixture, "what is written while a feed is read is not missed") {
  Reader feed = reader(*this, 3, "k, c");
  std::set<std::string> wanted, seen;
  const auto read = [&] {
    std::istringstream lines(feed.next());
    for (std::string line; std::getline(lines, line);) seen.insert(line);
  };
  for (int i = 0; i < 200; ++i) {
    if (i == 50) coordinator->changes_forgotten = coordinator->changes_end();
    REQUIRE(cql(fmt::format("INSERT INTO t (k, c) VALUES ({}, {})", i % 7, i)) == "ok");
    wanted.insert(fmt::format("{} | {}", i % 7, i));
    if (i % 2 == 0) read();
  }
  for (int i = 0; i < 100; ++i) read();
  CHECK(seen == wanted);
}

TEST_CASE_METHOD(Fixture, "rows that are large make small pages") {
  const std::string large(300'000, 'x');
  for (int c = 0; c < 60; ++c) {
    REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v) VALUES ({}, {}, '{}')", c % 3, c, large)) ==
            "ok");
  }
  Reader feed = reader(*this, 5000, "c, v");
  uint32_t all = 0;
  for (int i = 0; i < 40; ++i) {
    feed.next();
    CHECK(feed.row_count <= 30);
    all += feed.row_count;
  }
  CHECK(all == 60);
  CHECK(reader(*this, 5000, "c").rest().size() > 100);
}

TEST_CASE_METHOD(Fixture, "the feed's prepared form has a marker for the start time") {
  CHECK(bind("SELECT k FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = ? AND k = ?") ==
        "cosmos_changefeed_start_time() timestamp, k int | pk 1 | k int");
  CHECK(bind("SELECT k FROM t WHERE k = :key AND COSMOS_CHANGEFEED_START_TIME() = :since") ==
        "key int, since timestamp | pk 0 | k int");
  run({"INSERT INTO t (k, c) VALUES (1, 1)", "INSERT INTO t (k, c) VALUES (2, 1)"});
  const Bytes since = cql::make_timestamp(1'699'999'999'000),
              late = cql::make_timestamp(1'800'000'000'000);
  const Bytes two = cql::make_int(2);
  Reader feed{*this, "SELECT k FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = ?", 1};
  CHECK(feed.next({cql::BoundValue::of(since)}) == "1");
  CHECK(feed.next({cql::BoundValue::of(since)}) == "2");
  feed.text += " AND k = ?";
  feed.at.reset();
  CHECK(feed.next({cql::BoundValue::of(since), cql::BoundValue::of(two)}) == "2");
  feed.at.reset();
  CHECK(feed.next({cql::BoundValue::of(late), cql::BoundValue::of(two)}).empty());
  feed.text = "SELECT k FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = ?";
  feed.at.reset();
  CHECK(feed.next({cql::BoundValue::null()}) ==
        "error: Invalid null value in condition for column cosmos_changefeed_start_time()");
  CHECK(feed.next({cql::BoundValue::of("")}) ==
        "error: Invalid null value in condition for column cosmos_changefeed_start_time()");
  CHECK(feed.next({cql::BoundValue::unset()}) ==
        "error: Invalid unset value for column cosmos_changefeed_start_time()");
}

TEST_CASE_METHOD(Fixture, "the feed refuses what has no meaning for it") {
  const auto refused = [&](const std::string& where, const std::string& what = "*",
                           const std::string& behind = "") {
    return error(fmt::format("SELECT {} FROM t WHERE {}{}", what, where, behind));
  };
  const std::string feed = kSince;
  const std::string function = " cannot be used with COSMOS_CHANGEFEED_START_TIME()";
  CHECK(refused(feed, "*", " LIMIT 3") == "LIMIT" + function);
  CHECK(refused(feed, "*", " PER PARTITION LIMIT 3") == "PER PARTITION LIMIT" + function);
  CHECK(refused(feed + " AND k = 1", "*", " ORDER BY c DESC") == "ORDER BY" + function);
  CHECK(refused(feed, "k", " GROUP BY k") == "GROUP BY" + function);
  CHECK(refused(feed, "DISTINCT k") == "DISTINCT" + function);
  CHECK(refused(feed, "count(*)") == "Aggregates" + function);
  CHECK(refused(feed, "k, max(c)") == "Aggregates" + function);
  CHECK(refused(feed, "*", " ALLOW FILTERING") == "ALLOW FILTERING" + function);
  for (const char* more : {"c = 1", "k = 1 AND c = 1", "k IN (1, 2)", "k IN ?", "token(k) > 1",
                           "v = 'a'", "s = 'a'", "k = 1 AND v = 'a'", "k > 1", "k NOT IN (1)",
                           "k = 1 AND (c) > (1)", "token(k) = 1 AND k = 1"}) {
    INFO(more);
    CHECK(refused(fmt::format("{} AND {}", more, kSince)) ==
          "With COSMOS_CHANGEFEED_START_TIME() nothing else can be restricted but the whole "
          "partition key, by =");
  }
  run({"CREATE TABLE w (a int, b int, PRIMARY KEY ((a, b))) WITH cdc = true"});
  CHECK(error(fmt::format("SELECT * FROM w WHERE a = 1 AND {}", kSince)) ==
        "With COSMOS_CHANGEFEED_START_TIME() nothing else can be restricted but the whole "
        "partition key, by =");
  CHECK(refused(feed + " AND " + feed) ==
        "COSMOS_CHANGEFEED_START_TIME() can only be restricted once");
  const std::string by_equality = "COSMOS_CHANGEFEED_START_TIME() can only be restricted by =: ";
  const std::string name = "COSMOS_CHANGEFEED_START_TIME()";
  for (const char* other : {"> 5", "< 5", ">= 5", "<= 5", "!= 5", "IN (5, 6)", "IN (5)", "IN ?"}) {
    const std::string relation = name + " " + other;
    INFO(relation);
    if (std::string_view(other).starts_with("!=")) {
      CHECK(refused(relation) == "Unsupported \"!=\" relation: " + relation);
    } else {
      CHECK(refused(relation) == by_equality + relation);
    }
  }
  CHECK(refused(name + " BETWEEN 5 AND 6").starts_with(by_equality));
  CHECK(refused(name + " LIKE 'a'").starts_with("line 1:"));
  CHECK(refused(name + " CONTAINS 'a'").starts_with("line 1:"));
  CHECK(refused(name).starts_with("line 0:-1 no viable alternative"));
  CHECK(refused("COSMOS_CHANGEFEED_START_TIME(5) = 5").starts_with("line 1:"));
  CHECK(error(fmt::format("UPDATE t SET v = 'a' WHERE k = 1 AND c = 1 AND {}", kSince)) ==
        "COSMOS_CHANGEFEED_START_TIME() cannot be used in WHERE clauses for UPDATE statements");
  CHECK(error(fmt::format("DELETE FROM t WHERE k = 1 AND {}", kSince)) ==
        "COSMOS_CHANGEFEED_START_TIME() cannot be used in WHERE clauses for DELETE statements");
  CHECK(refused(name + " = null") ==
        "Invalid null value in condition for column cosmos_changefeed_start_time()");
  CHECK(refused(name + " = 'yesterday'") == "Unable to parse a date/time from 'yesterday'");
  CHECK(refused(name + " = 1.5") ==
        "Invalid FLOAT constant (1.5) for \"cosmos_changefeed_start_time()\" of type timestamp");
  CHECK(error("SELECT * FROM system.local WHERE COSMOS_CHANGEFEED_START_TIME() = 5") ==
        "Tables of system keyspaces have no change feed");
}

TEST_CASE_METHOD(Fixture, "a table keeps a log of its changes WITH cdc = true") {
  const std::string missing =
      "Table ks.q keeps no log of its changes: switch it on with ALTER TABLE ks.q WITH cdc = true";
  const std::string read = fmt::format("SELECT k FROM q WHERE {}", kSince);
  const auto shown = [&] {
    return rows(
        "SELECT cdc FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = "
        "'q'");
  };
  const auto described = [&](const char* text) {
    return rows("DESCRIBE TABLE q").find(text) != std::string::npos;
  };
  const auto is_logged = [&] {
    for (const auto& [id, table] : meta.snapshot()->tables) {
      if (table->name == "q") return table->change_log.has_value();
    }
    return false;
  };
  run({"CREATE TABLE q (k int PRIMARY KEY)"});
  CHECK_FALSE(is_logged());
  CHECK(error(read) == missing);
  CHECK(shown() == "null");  // as in Cassandra, where it is off
  CHECK(described("cdc = false"));
  run({"ALTER TABLE q WITH cdc = true"});
  CHECK(shown() == "true");
  CHECK(described("cdc = true"));
  CHECK(rows(read).empty());
  CHECK(is_logged());
  run({"INSERT INTO q (k) VALUES (1)", "ALTER TABLE q WITH comment = 'c'",
       "ALTER TABLE q WITH tetrad_max_partition_mb = 7"});
  CHECK(is_logged());
  CHECK(rows(read) == "1");
  run({"ALTER TABLE q WITH cdc = false"});
  CHECK_FALSE(is_logged());
  CHECK(error(read) == missing);
  CHECK(shown() == "null");
  CHECK(error("CREATE TABLE z (k int PRIMARY KEY) WITH cdc = 'perhaps'")
            .starts_with("Invalid boolean value perhaps for 'cdc'"));
  run({"DROP TABLE q", "CREATE TABLE q (k int PRIMARY KEY) WITH cdc = 'yes' AND comment = 'c'"});
  CHECK(is_logged());
  run({"TRUNCATE q"});
  CHECK(is_logged());
  run({"CREATE TABLE \"Q\" (k int PRIMARY KEY)"});
  CHECK(error(fmt::format("SELECT k FROM \"Q\" WHERE {}", kSince)) ==
        "Table ks.\"Q\" keeps no log of its changes: switch it on with ALTER TABLE ks.\"Q\" WITH "
        "cdc = true");
}

TEST_CASE_METHOD(Fixture, "a place in the feed is good for its table only") {
  const std::string kUnfit =
      "error: Invalid value for the paging state: this cluster gave it to another statement";
  run({"INSERT INTO t (k, c) VALUES (1, 1)"});
  Reader feed = reader(*this, 1, "k");
  CHECK(feed.next() == "1");
  const auto place = feed.at;
  CHECK(feed.next().empty());
  run({"TRUNCATE t", "INSERT INTO t (k, c) VALUES (2, 1)"});
  CHECK(feed.next() == "error: The table was dropped or truncated");
  feed.at = "no position at all";
  CHECK(feed.next() == kUnfit);
  feed.at = place->substr(0, place->size() - 1);
  CHECK(feed.next() == kUnfit);
  feed.at.reset();
  CHECK(feed.next() == "2");
}

TEST_CASE("places in the feed are written and read again") {
  const auto same = [](const cql::FeedPosition& position) {
    const auto again = cql::decode_feed_position(cql::encode_feed_position(position));
    REQUIRE(again);
    CHECK(again->since_us == position.since_us);
    CHECK(again->after == position.after);
    CHECK(again->scans == position.scans);
    CHECK(again->scanned == position.scanned);
    CHECK(again->knows_static == position.knows_static);
  };
  same({INT64_MIN, "x", false, std::nullopt});
  same({INT64_MAX, Bytes(1000, '\0'), true, std::nullopt});
  same({0, "", true, storage::ReadPosition{{5, 6}, "k", "c"}});
  same({0, "", true, storage::ReadPosition{{5, 6}, "k", "c"}, true});
  same({0, "", true, storage::ReadPosition{{5, 6}, "k", std::nullopt}});
  Bytes whole =
      cql::encode_feed_position({7, "abc", true, storage::ReadPosition{{5, 6}, "key", "c"}});
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(cql::decode_feed_position(BytesView(whole).substr(0, size)));
  }
  whole += "x";
  CHECK_FALSE(cql::decode_feed_position(whole));
}

}  // namespace tetrad::tests
