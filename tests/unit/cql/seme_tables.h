// SPDX-License-Identifier: Apache-2.0
// The tables that recorded statements are asked of, and what is recorded of a statement.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {

struct RecordedStatement {
  std::string_view statement, answer;  // "P …" is prepared only
};

/// SELECTs that are refused, with the texts of the errors.
std::span<const RecordedStatement> refused_selects();

/// Keyspace seme with a table of each kind.
struct SemeTables : LocalCluster {
  SemeTables() {
    for (const std::string_view statement :
         {"CREATE KEYSPACE seme WITH replication = {'class': 'SimpleStrategy', "
          "'replication_factor': 1}",
          "CREATE TABLE seme.t (a int, b int, c int, d text, s text static, v int, m map<text, "
          "int>, l list<int>, st set<int>, PRIMARY KEY ((a, b), c, d))",
          "CREATE TYPE seme.u (x int, y text)",
          "CREATE TABLE seme.w (k int PRIMARY KEY, t text, i int, bi bigint, f float, do double, "
          "de decimal, vi varint, bo boolean, bl blob, ts timestamp, da date, ti time, du "
          "duration, uu uuid, tu timeuuid, ine inet, li list<int>, se set<int>, ma map<text, "
          "int>, fl frozen<list<int>>, fm frozen<map<text, int>>, u1 u, fu frozen<u>, tp "
          "tuple<int, text>, ve vector<float, 3>)",
          "CREATE TABLE seme.r (a int, b int, c int, d int, v int, PRIMARY KEY (a, b, c, d)) WITH "
          "CLUSTERING ORDER BY (b ASC, c DESC, d ASC)",
          "CREATE TABLE seme.p (k int, c int, v int, s int static, PRIMARY KEY (k, c))",
          "CREATE TABLE seme.tx (k text, c text, v text, PRIMARY KEY (k, c))"}) {
      INFO(statement);
      REQUIRE(cql(statement) == "ok");
    }
    REQUIRE(cql("CREATE TABLE seme.cnt (k int PRIMARY KEY, c counter)") == "ok");
  }
  std::string answer(std::string_view statement) {
    // Drivers page; so are statements meant that these were asked with.
    options.page_size = 5000;
    if (statement.starts_with("P ")) {
      const std::string prepared = bind(statement.substr(2));
      return prepared.starts_with("error: ") ? prepared.substr(7) : prepared;
    }
    return error(statement);
  }
};

}  // namespace tetrad::tests
