// SPDX-License-Identifier: Apache-2.0
// What requests cost, and what ALLOW FILTERING tells of it.
#include "cql/prepare/request_charge.h"

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

using cql::ReadWork;
using cql::RequestCharge;
using storage::kWeightOfUnit;
using storage::row_weight;

double read_units(const ReadWork& work, ConsistencyLevel level = ConsistencyLevel::kOne) {
  RequestCharge charge;
  charge.add_read(work, level);
  return charge.units();
}

double write_units(size_t row_count, size_t bytes) {
  std::vector<storage::Mutation> mutations(1);
  for (size_t i = 0; i < row_count; ++i) mutations[0].rows.push_back({"", Bytes(bytes, 'x')});
  RequestCharge charge;
  charge.add_write(mutations);
  return charge.units();
}

struct Fixture : LocalCluster {
  Fixture() {
    REQUIRE(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 1}") == "ok");
    REQUIRE(cql("USE ks") == "ok");
    REQUIRE(cql("CREATE TABLE t (k int, c int, v text, n int, s text static, PRIMARY KEY (k, c)) "
                "WITH tetrad_initial_partitions = 1") == "ok");
  }
  /// `count` rows of one KiB in the partition.
  void fill(int k, int count) {
    for (int c = 0; c < count; ++c) {
      REQUIRE(cql(fmt::format("INSERT INTO t (k, c, v, n) VALUES ({}, {}, '{}', {})", k, c,
                              Bytes(1024, 'x'), c % 5)) == "ok");
    }
  }
  /// What the statement costs, the same each time: on every other the store's rows come another
  /// way.
  double cost(std::string_view text) {
    const std::string first = cql(text);
    INFO(text << ": " << first);
    REQUIRE_FALSE(first.starts_with("error: "));
    const double units = charge.units();
    for (int i = 0; i < 4; ++i) {
      CHECK(cql(text) == first);
      CHECK(charge.units() == units);
    }
    return units;
  }
  std::string warning(std::string_view text) {
    const std::string answer = cql(text);
    return warnings.empty() ? "" : warnings.back();
  }
};

}  // namespace

TEST_CASE("a row weighs by the byte below a KiB, and an eleventh for each further KiB") {
  CHECK(row_weight(0) == 0);
  CHECK(row_weight(512) == kWeightOfUnit / 2);
  CHECK(row_weight(1024) == kWeightOfUnit);
  CHECK(row_weight(2047) == kWeightOfUnit);
  CHECK(row_weight(100 * 1024) == 10 * kWeightOfUnit);
  uint64_t last = 0;
  for (uint64_t bytes = 0; bytes < 5000; ++bytes) {
    CHECK(row_weight(bytes) >= last);
    last = row_weight(bytes);
  }
}

TEST_CASE("reads and writes cost what the documented points say") {
  CHECK(read_units({1, 0, 0}) == 1);
  CHECK(read_units({1, row_weight(1024), 0}) == 1);
  CHECK(read_units({1, row_weight(100 * 1024), 0}) == 10);
  CHECK(read_units({1, 1000 * row_weight(1024), 0}) == 1000);
  CHECK(read_units({1, 1000 * row_weight(8), 0}) == 7.81);
  CHECK(read_units({3, row_weight(10), 0}) == 3);
  CHECK(read_units({1, 0, 2}) == 6);
  for (const auto level :
       {ConsistencyLevel::kTwo, ConsistencyLevel::kQuorum, ConsistencyLevel::kLocalQuorum,
        ConsistencyLevel::kThree, ConsistencyLevel::kAll, ConsistencyLevel::kSerial}) {
    CHECK(read_units({1, row_weight(1024), 0}, level) == 2);
    CHECK(read_units({1, 0, 2}, level) == 12);
  }
  CHECK(read_units({1, row_weight(1024), 0}, ConsistencyLevel::kLocalOne) == 1);
  CHECK(write_units(1, 1) == 5);
  CHECK(write_units(1, 1100) == 5);
  CHECK(write_units(1, 100 * 1024) == 50);
  CHECK(write_units(1, 2048) == 5.45);
  CHECK(write_units(7, 10) == 35);
}

TEST_CASE("the charge travels as a big-endian double") {
  CHECK(base::to_hex(cql::encode_request_charge(1.0)) == "3ff0000000000000");
  CHECK(base::to_hex(cql::encode_request_charge(5.45)) == "4015cccccccccccd");
}

TEST_CASE_METHOD(Fixture, "statements cost by what they look at, each time the same") {
  fill(1, 20);
  fill(2, 3);
  CHECK(cost("INSERT INTO t (k, c, v) VALUES (3, 1, '" + Bytes(1024, 'y') + "')") == 5);
  CHECK(cost("INSERT INTO t (k, c, v) VALUES (3, 1, '" + Bytes(100 * 1024, 'y') + "')") == 50);
  CHECK(cost("DELETE FROM t WHERE k = 3") == 5);
  CHECK(cost("SELECT * FROM t WHERE k = 1 AND c = 4") == 1);
  CHECK(cost("SELECT n FROM t WHERE k = 1 AND c = 4") == 1);
  CHECK(cost("SELECT * FROM t WHERE k = 9") == 1);
  CHECK(cost("SELECT * FROM t WHERE k = 1") == 20);
  CHECK(cost("SELECT c FROM t WHERE k = 1 ORDER BY c DESC LIMIT 7") == 7);
  CHECK(cost("SELECT c FROM t WHERE k IN (1, 2, 7, 8)") == 23);
  CHECK(cost("SELECT c FROM t WHERE k IN (7, 8)") == 2);
  CHECK(cost("SELECT c FROM t") == 23);
  CHECK(cost("SELECT c FROM t PER PARTITION LIMIT 1") == 2);
  CHECK(cost("SELECT count(*) FROM t") == 23);
  CHECK(cost("SELECT count(*) FROM t WHERE k = 1") == 20);
  CHECK(cost("SELECT sum(n) FROM t WHERE k = 1 GROUP BY k, c") == 20);
  CHECK(cost("SELECT release_version FROM system.local") == 1);
  REQUIRE(cql("INSERT INTO t (k, s) VALUES (2, '" + Bytes(1024, 's') + "')") == "ok");
  CHECK(cost("SELECT * FROM t WHERE k = 2") == 4);
  options.consistency = ConsistencyLevel::kQuorum;
  CHECK(cost("SELECT * FROM t WHERE k = 1 AND c = 4") == 2);
  CHECK(cost("SELECT count(*) FROM t WHERE k = 1") == 40);
  options.consistency = ConsistencyLevel::kOne;
  options.page_size = 5;  // the row that tells of another page belongs to that page
  CHECK(cost("SELECT * FROM t WHERE k = 1") == 5);
  CHECK(cost("SELECT c, sum(n) FROM t WHERE k = 1 GROUP BY k, c") == 5);
  CHECK(cost("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)") == 5);
  CHECK(cost("USE ks") == 0);
}

TEST_CASE_METHOD(Fixture, "every further physical partition of a scan costs two and a half") {
  REQUIRE(cql("CREATE TABLE many (k int PRIMARY KEY, v int) WITH tetrad_initial_partitions = 4") ==
          "ok");
  CHECK(cost("SELECT * FROM many") == 8.5);
  CHECK(cost("SELECT count(*) FROM many") == 8.5);
  CHECK(cost("SELECT * FROM many WHERE token(k) > 0 AND token(k) < 1000") == 1);
  CHECK(cost("SELECT * FROM many WHERE k = 1") == 1);
  CHECK(cost("SELECT * FROM many WHERE k IN (1, 2)") >= 2);
}

TEST_CASE_METHOD(Fixture, "reading a list before it is written costs that read") {
  REQUIRE(cql("CREATE TABLE l (k int PRIMARY KEY, l list<int>)") == "ok");
  CHECK(cost("UPDATE l SET l = [1, 2] WHERE k = 1") == 5);
  CHECK(cost("UPDATE l SET l[0] = 3 WHERE k = 1") == 6);
}

TEST_CASE_METHOD(Fixture, "ALLOW FILTERING tells what was read, returned and spent") {
  fill(1, 20);
  fill(2, 5);
  CHECK(warning("SELECT c FROM t WHERE n = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 25 rows, returned 5 and cost 25.00 request units.");
  CHECK(warning("SELECT c FROM t WHERE n = 3 LIMIT 2 ALLOW FILTERING") ==
        "ALLOW FILTERING read 9 rows, returned 2 and cost 9.00 request units.");
  CHECK(warning("SELECT count(*) FROM t WHERE n = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 25 rows, returned 1 and cost 25.00 request units.");
  CHECK(warning("SELECT c FROM t WHERE k = 2 AND n = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 5 rows, returned 1 and cost 5.00 request units.");
  CHECK(warning("SELECT c FROM t WHERE c = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 2 rows, returned 2 and cost 2.00 request units.");
  CHECK(warning("SELECT c FROM t WHERE n = 77 ALLOW FILTERING") ==
        "ALLOW FILTERING read 25 rows, returned 0 and cost 25.00 request units.");
  options.consistency = ConsistencyLevel::kQuorum;
  CHECK(warning("SELECT c FROM t WHERE n = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 25 rows, returned 5 and cost 50.00 request units.");
  options.consistency = ConsistencyLevel::kOne;
  options.page_size = 3;
  CHECK(warning("SELECT c FROM t WHERE n = 3 ALLOW FILTERING") ==
        "ALLOW FILTERING read 14 rows, returned 3 and cost 14.00 request units.");
  options.page_size = -1;
  // What needs no filter is not told of.
  CHECK(warning("SELECT c FROM t WHERE k = 1 ALLOW FILTERING").empty());
  CHECK(warning("SELECT c FROM t ALLOW FILTERING").empty());
  CHECK(warning("SELECT c FROM t WHERE k = 1 AND c > 3 ALLOW FILTERING").empty());
}

}  // namespace tetrad::tests
