// SPDX-License-Identifier: Apache-2.0
// Pages of a SELECT with GROUP BY while rows are written: a group that was given comes no second
// time, and none is lost. (Cassandra 5.0 gives it again on the next page.)
#include <functional>

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

using Fields = std::vector<std::string>;

Fields split(const std::string& row) {
  Fields out;
  for (size_t from = 0; from <= row.size();) {
    const size_t to = std::min(row.find(" | ", from), row.size());
    out.push_back(row.substr(from, to - from));
    from = to + 3;
  }
  return out;
}

struct Fixture : LocalCluster {
  Fixture() {
    REQUIRE(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 1}") == "ok");
    REQUIRE(cql("USE ks") == "ok");
  }
  void run(const std::string& statement) {
    INFO(statement);
    REQUIRE(cql(statement) == "ok");
  }

  /// All pages as one text; `between` is called with the last row of each page but the last.
  std::string pages_with(std::string_view query, int32_t page_size,
                         const std::function<void(const Fields&)>& between) {
    const cql::StatementPtr statement = prepare(query);
    std::string out;
    options.page_size = page_size;
    for (int page = 0; page < 1000; ++page) {
      const auto result = execute(statement, {});
      REQUIRE(result);
      const auto& rows = std::get<cql::RowsResult>(*result);
      const std::string printed = print(result, false);
      if (!printed.empty()) out += (out.empty() ? "" : "\n") + printed;
      if (!rows.next_position) break;
      const auto position = rows.next_position;
      options = {};
      if (!printed.empty()) between(split(printed.substr(printed.rfind('\n') + 1)));
      options.page_size = page_size;
      options.paging_position = position;
    }
    options = {};
    return out;
  }
};

/// Keys that INSERT takes, made of a group that was given: "k", "a" and so on.
struct Form {
  std::string columns;  // of the group, which SELECT shows
  std::string where, rest;
  std::function<std::vector<Fields>(const Fields&)> rows;
};

/// A clustering column's type, and values in their order: those of rows, and ones before and
/// behind.
struct Column {
  std::string type;
  Fields values;
  std::string first, last;
};

constexpr std::string_view kHour = "'2020-01-01 01:";

std::vector<Form> forms(const Column& a) {
  const auto of_partition = [=](const Fields& g) -> std::vector<Fields> {
    return {{g[0], a.first, "'2020-01-01 00:30Z'", "1"},
            {g[0], a.values[1], "'2020-01-01 07:30Z'", "1"},
            {g[0], a.last, "'2020-01-01 07:30Z'", "1"}};
  };
  const auto of_a = [](const Fields& g) -> std::vector<Fields> {
    return {{g[0], g[1], "'2020-01-01 00:30Z'", "1"}, {g[0], g[1], "'2020-01-01 07:30Z'", "1"}};
  };
  const auto of_b = [](const Fields& g) -> std::vector<Fields> {
    return {{g[0], g[1], g[2], "-7"}, {g[0], g[1], g[2], "7"}};
  };
  const auto of_row = [](const Fields& g) -> std::vector<Fields> { return {g}; };
  const auto of_hour = [](const Fields& g) -> std::vector<Fields> {
    const std::string hour = g[2].substr(0, kHour.size());
    return {{g[0], g[1], hour + "01Z'", "1"},
            {g[0], g[1], hour + "10Z'", "-7"},
            {g[0], g[1], hour + "20Z'", "7"},
            {g[0], g[1], hour + "59Z'", "1"}};
  };
  const std::string in = "k IN (0, 1, 2)", here = "k = 1", there = "k = 1 AND a = " + a.values[1];
  const std::string hour = "floor(b, 1h)";
  std::vector<Form> out;
  const auto add = [&](const std::string& columns, const std::string& by, const auto& rows,
                       const std::vector<std::string>& where) {
    for (const std::string& w : where) {
      for (const std::string rest : {"", " LIMIT 4", " PER PARTITION LIMIT 1",
                                     " PER PARTITION LIMIT 2", " PER PARTITION LIMIT 3 LIMIT 7"})
        out.push_back({columns, w.empty() ? "" : " WHERE " + w, " GROUP BY " + by + rest, rows});
      if (!w.starts_with(here)) continue;
      for (const std::string rest : {"", " PER PARTITION LIMIT 2", " LIMIT 2"})
        out.push_back(
            {columns, " WHERE " + w, " GROUP BY " + by + " ORDER BY a DESC" + rest, rows});
    }
  };
  add("k", "k", of_partition, {"", in, here, "token(k) > token(0)"});
  add("k, a", "k, a", of_a, {"", in, here, "k = 1 AND a > " + a.values[0]});
  add("k, a, b", "k, a, b", of_b, {"", in, here, there});
  add("k, a, b", "b", of_b, {there});
  add("k, a, b, c", "k, a, b, c", of_row, {"", in, here});
  add("k, a, " + hour, "k, a, " + hour, of_hour, {"", in, here});
  add("k, a, " + hour, hour, of_hour, {there});
  for (const std::string by : {"k", "k, a"}) {
    out.push_back({by, " WHERE v = 0", " GROUP BY " + by + " ALLOW FILTERING",
                   by == "k" ? std::function<std::vector<Fields>(const Fields&)>(of_partition)
                             : std::function<std::vector<Fields>(const Fields&)>(of_a)});
  }
  return out;
}

/// As answers of replicas that stop inside partitions.
void cut_short(storage::ReadResult& result) {
  uint32_t rows = 4;
  for (size_t p = 0; p < result.partitions.size(); ++p) {
    storage::PartitionData& partition = result.partitions[p];
    if (partition.rows.size() <= rows) {
      rows -= static_cast<uint32_t>(partition.rows.size());
      continue;
    }
    if (rows == 0) return;
    partition.rows.resize(rows);
    result.complete_up_to = {partition.position, Bytes(partition.partition_key),
                             Bytes(partition.rows.back().clustering_key)};
    result.exhausted = false;
    result.live_row_count = 4;
    result.partitions.resize(p + 1);
    return;
  }
}

TEST_CASE_METHOD(Fixture, "a group that was given comes no second time when it grows") {
  const std::vector<Column> columns = {
      {"int", {"-5", "3", "400"}, "-6", "500"},
      {"text", {"''", "'ab'", "'abc'"}, "''", "'b'"},
      {"blob", {"0x00", "0x00ff", "0xff"}, "0x", "0xffff"},
      {"decimal", {"-1.5", "0", "1.25"}, "-100", "7E+3"},
  };
  for (const Column& a : columns) {
    for (const std::string order : {"a ASC, b ASC, c ASC", "a DESC, b ASC, c DESC",
                                    "a ASC, b DESC, c ASC", "a DESC, b DESC, c DESC"}) {
      run("DROP TABLE IF EXISTS t");
      run("CREATE TABLE t (k int, a " + a.type +
          ", b timestamp, c int, v int, s int static, PRIMARY KEY (k, a, b, c)) WITH CLUSTERING "
          "ORDER BY (" +
          order + ")");
      for (const std::string k : {"0", "1", "2"}) {
        for (const std::string& value : a.values) {
          for (const std::string b : {"01:10", "01:20", "02:10"})
            run("INSERT INTO t (k, a, b, c, v, s) VALUES (" + k + ", " + value + ", '2020-01-01 " +
                b + "Z', 1, 0, 5)");
        }
      }
      run("INSERT INTO t (k, s) VALUES (9, 1)");
      for (const Form& form : forms(a)) {
        const std::string query =
            "SELECT " + form.columns + ", count(*) FROM t" + form.where + form.rest;
        const std::string all = rows(query);
        REQUIRE(!all.starts_with("error"));
        for (const int size : {1, 2, 3, 5}) {
          for (const bool cuts : {false, true}) {
            INFO(a.type << " " << order << ": " << query << " by " << size
                        << (cuts ? " from short reads" : ""));
            std::vector<std::string> added;
            if (cuts) coordinator->on_read = cut_short;
            const auto grow = [&](Fields group) {
              if (group[0] == "9") return;
              group.pop_back();
              for (const Fields& row : form.rows(group)) {
                const std::string where = "k = " + row[0] + " AND a = " + row[1] +
                                          " AND b = " + row[2] + " AND c = " + row[3];
                if (!rows("SELECT k FROM t WHERE " + where).empty()) continue;
                run("UPDATE t SET v = 0 WHERE " + where);
                added.push_back(where);
              }
            };
            CHECK(pages_with(query, size, grow) == all);
            coordinator->on_read = nullptr;
            for (const std::string& where : added) run("DELETE FROM t WHERE " + where);
          }
        }
      }
    }
  }
}

TEST_CASE_METHOD(Fixture, "groups that come behind the last one of a page are given") {
  run("CREATE TABLE t (k int, a int, b int, PRIMARY KEY (k, a, b))");
  for (const std::string a : {"1", "2", "3"})
    run("INSERT INTO t (k, a, b) VALUES (1, " + a + ", 1)");
  const auto with = [&](const std::string& query, const std::string& a) {
    const std::string all = pages_with(query, 1, [&](const Fields& group) {
      if (group[0] == "2") run("INSERT INTO t (k, a, b) VALUES (1, " + a + ", 1)");
    });
    run("DELETE FROM t WHERE k = 1 AND a = " + a);
    return all;
  };
  // Each is behind what was given, and before what was looked at for it.
  CHECK(with("SELECT a FROM t WHERE k = 1 GROUP BY a", "4") == "1\n2\n3\n4");
  CHECK(with("SELECT a FROM t GROUP BY k, a PER PARTITION LIMIT 3", "0") == "1\n2\n3");
  CHECK(with("SELECT a FROM t WHERE k = 1 GROUP BY a ORDER BY a DESC", "0") == "3\n2\n1\n0");
}

TEST_CASE_METHOD(Fixture, "a partition whose rows go while its groups are given") {
  run("CREATE TABLE t (k int, a int, b int, s int static, PRIMARY KEY (k, a, b))");
  const auto fill = [&] {
    for (const std::string k : {"1", "2"}) {
      run("UPDATE t SET s = 7 WHERE k = " + k);
      for (const std::string a : {"1", "2"})
        run("INSERT INTO t (k, a, b) VALUES (" + k + ", " + a + ", 1)");
    }
  };
  for (const std::string by : {"k", "k, a"}) {
    fill();
    const std::string query = "SELECT k, s, count(*) FROM t GROUP BY " + by;
    INFO(query);
    const std::string one = by == "k" ? "1 | 7 | 2\n" : "1 | 7 | 1\n";
    const std::string two = by == "k" ? "2 | 7 | 2" : "2 | 7 | 1\n2 | 7 | 1";
    CHECK(pages_with(query, 1, [&](const Fields& group) {
            if (group[0] != "1") return;
            run("DELETE FROM t WHERE k = 1 AND a = 1");
            run("DELETE FROM t WHERE k = 1 AND a = 2");
          }) == one + two);
  }
}

TEST_CASE_METHOD(Fixture, "a group goes on where a position names its last row") {
  run("CREATE TABLE t (k int, a int, PRIMARY KEY (k, a))");
  for (const std::string k : {"1", "2"}) {
    for (const std::string a : {"1", "2", "3"})
      run("INSERT INTO t (k, a) VALUES (" + k + ", " + a + ")");
  }
  // The position of a page of rows, as one of groups was before.
  options.page_size = 2;
  const auto page = execute(prepare("SELECT k, a FROM t"), {});
  REQUIRE(page);
  options.paging_position = std::get<cql::RowsResult>(*page).next_position;
  REQUIRE(options.paging_position);
  CHECK(print(execute(prepare("SELECT k, count(*) FROM t GROUP BY k"), {}), false) == "2 | 3");
  options = {};
}

TEST_CASE_METHOD(Fixture, "values that compare equal are one group") {
  run("CREATE TABLE t (k int, a decimal, b int, PRIMARY KEY (k, a, b))");
  for (const std::string row : {"1.0, 1", "1.00, 2", "1.000, 3", "2, 1", "2.0, 2"})
    run("INSERT INTO t (k, a, b) VALUES (1, " + row + ")");
  CHECK(rows("SELECT a, count(*) FROM t GROUP BY k, a") == "1.0 | 3\n2 | 2");
  CHECK(rows("SELECT a, count(*) FROM t WHERE k = 1 GROUP BY a ORDER BY a DESC") ==
        "2.0 | 2\n1.000 | 3");
  CHECK(pages("SELECT a, count(*) FROM t WHERE k = 1 GROUP BY a", 1) == "1.0 | 3\n--\n2 | 2");
}

// Cassandra fails with a ClassCastException.
TEST_CASE_METHOD(Fixture, "GROUP BY takes columns and calls only") {
  run("CREATE TABLE t (k int, a int, l frozen<list<int>>, v int, PRIMARY KEY (k, a, l))");
  const auto refused = [&](const std::string& what) {
    CHECK(error("SELECT count(*) FROM t GROUP BY k, " + what) ==
          "Group by is currently only supported on the columns of the PRIMARY KEY, got " + what);
  };
  for (const std::string what : {"cast(a as text)", "(int)a", "(a, l)", "[a]", "writetime(v)"})
    refused(what);
  CHECK(error("SELECT count(*) FROM t GROUP BY k, nope + 1") ==
        "Undefined column name nope in table ks.t");
}

}  // namespace
}  // namespace tetrad::tests
