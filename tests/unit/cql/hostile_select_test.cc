// SPDX-License-Identifier: Apache-2.0
// SELECTs that once hung or ended a node: times at the ends of their range, answers without bound.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        "1}");
    run("USE ks");
  }
  void run(const std::string& statement) {
    INFO(statement.substr(0, 200));
    CHECK(cql(statement) == "ok");
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "floor ends at the ends of the range of timestamps") {
  run("CREATE TABLE t (k int, ts timestamp, d date, PRIMARY KEY (k, ts))");
  run("INSERT INTO t (k, ts) VALUES (1, 9223372036854775807)");
  run("INSERT INTO t (k, ts) VALUES (2, -9223372036854775808)");
  const auto ms = [&](const std::string& floor, int k) {
    return rows("SELECT to_unix_timestamp(" + floor + ") FROM t WHERE k = " + std::to_string(k));
  };
  CHECK(ms("floor(ts, 1mo)", 1) == "9223372035446400000");  // August 292278994
  CHECK(ms("floor(ts, 1mo, '2020-01-01')", 1) == "9223372035446400000");
  CHECK(ms("floor(ts, 1ms)", 1) == "9223372036854775807");
  CHECK(ms("floor(ts, 1d)", 1) == "9223372036828800000");
  for (const char* duration :
       {"1mo", "1y", "1mo1d", "1mo1ms", "1d1ms", "1d1ns", "89478485y", "178956970y",
        "178956970y7mo2147483647d", "2147483647d1ms", "1mo106751d23h47m16s854ms"}) {
    INFO(duration);
    const std::string call = std::string("floor(ts, ") + duration;
    CHECK_FALSE(ms(call + ")", 1).starts_with("error"));
    CHECK_FALSE(ms(call + ", -9223372036854775808)", 1).starts_with("error"));
    CHECK(ms(call + ", -9223372036854775808)", 2) == "-9223372036854775808");
    CHECK(ms(call + ")", 2).find("is greater than the provided time") != std::string::npos);
  }
  CHECK(rows("SELECT count(*) FROM t WHERE k = 1 GROUP BY k, floor(ts, 1mo)") == "1");
}

TEST_CASE_METHOD(Fixture, "times that would leave their range are refused") {
  run("CREATE TABLE t (k int PRIMARY KEY, ts timestamp)");
  run("INSERT INTO t (k, ts) VALUES (1, 9223372036854775807)");
  run("INSERT INTO t (k, ts) VALUES (2, -9223372036854775808)");
  const auto answer = [&](const std::string& selector, int k) {
    return rows("SELECT " + selector + " FROM t WHERE k = " + std::to_string(k));
  };
  for (const char* sum : {"ts + 1ms", "ts + 1d", "ts + 1mo", "ts + 178956970y"}) {
    CHECK(answer(sum, 1).find("out of the range of timestamps") != std::string::npos);
    CHECK_FALSE(answer(sum, 2).starts_with("error"));
  }
  for (const char* rest : {"ts - 1ms", "ts - 1d", "ts - 1mo", "ts - 178956970y"}) {
    CHECK(answer(rest, 2).find("out of the range of timestamps") != std::string::npos);
    CHECK_FALSE(answer(rest, 1).starts_with("error"));
  }
  for (const int k : {1, 2})
    for (const char* bound : {"minTimeuuid(ts)", "maxTimeuuid(ts)"})
      CHECK(answer(bound, k).find("No timeuuid has the time") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "an answer that is too large is refused before it is made") {
  run("CREATE TABLE t (k int PRIMARY KEY, v text)");
  run("INSERT INTO t (k, v) VALUES (1, '" + std::string(1 << 20, 'x') + "')");
  const auto select = [&](size_t count, const char* selector) {
    std::string text = "SELECT ";
    for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::string(selector);
    return error(text + " FROM t");
  };
  const std::string too_large =
      "The result is larger than 67108864 bytes: use paging or fewer columns";
  CHECK(select(10'000, "v") == too_large);
  CHECK(select(10'000, "(text)v") == too_large);
  CHECK(select(10'001, "v") == "A SELECT may have 10000 selectors at most, not 10001");
  CHECK(select(2, "v").size() > (2u << 20));
}

// The size of a page is in rows, and drivers ask for 5,000: no client knows how long rows are.
TEST_CASE_METHOD(Fixture, "a page of long rows ends early, and the next one goes on") {
  run("CREATE TABLE w (p int, c int, b blob, PRIMARY KEY (p, c))");
  constexpr int kRows = 70;
  const std::string megabyte(2 << 20, 'f');  // in hex
  for (int c = 0; c < kRows; ++c)
    run(fmt::format("INSERT INTO w (p, c, b) VALUES ({}, {}, 0x{})", c / 35, c, megabyte));
  const std::string everything = "SELECT p, c, b FROM w";
  CHECK(error(everything).starts_with("The result is larger than 67108864 bytes"));
  for (const auto& [query, expected] : {
           std::pair{everything, kRows},
           {everything + " WHERE p = 1", 35},
           {everything + " WHERE p = 1 ORDER BY c DESC", 35},
           {everything + " WHERE p IN (0, 1)", kRows},
           {everything + " WHERE b > 0x00 ALLOW FILTERING", kRows},
           {everything + " LIMIT 67", 67},
           {everything + " PER PARTITION LIMIT 33", 66},
           {std::string("SELECT JSON p, c, b FROM w"), kRows},
           {std::string("SELECT p, c, max(b) FROM w GROUP BY p, c"), kRows},
       }) {
    INFO(query);
    options.page_size = 5'000;
    options.paging_position.reset();
    uint32_t row_count = 0;
    for (int pages = 0; pages < kRows; ++pages) {
      const auto result = execute(prepare(query), {});
      REQUIRE(result);
      const auto& page = std::get<cql::RowsResult>(*result);
      REQUIRE(page.cells.size() <= (40u << 20));
      row_count += page.row_count;
      options.paging_position = page.next_position;
      if (!page.next_position) break;
      REQUIRE(page.row_count >= 5);
      REQUIRE(page.row_count <= 17);
    }
    CHECK(row_count == static_cast<uint32_t>(expected));
  }
  options = {};
}

// Resolving each level anew would take 2.6 times as long with each.
TEST_CASE_METHOD(Fixture, "nested arithmetic with markers is prepared in one pass") {
  run("CREATE TABLE t (k int PRIMARY KEY, d date)");
  std::string selector = "d";
  for (int level = 0; level < 30; ++level) selector = "(date)(" + selector + " + ?)";
  CHECK_NOTHROW(prepare("SELECT " + selector + " FROM t"));
  selector = "d";
  for (int level = 0; level < 30; ++level) selector = "cast(" + selector + " + ? as date)";
  CHECK_NOTHROW(prepare("SELECT " + selector + " FROM t"));
}

}  // namespace tetrad::tests
