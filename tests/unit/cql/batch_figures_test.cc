// SPDX-License-Identifier: Apache-2.0
// Over how many partitions batches are, as a shard counts them.
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {
namespace {

struct Batches : WholeRequests {
  Batches() {
    REQUIRE(cql("CREATE TABLE ks.n (k int PRIMARY KEY, n counter)") == "ok");
    REQUIRE(cql("CREATE TABLE ks.other (k int PRIMARY KEY, v int)") == "ok");
  }
  void run_batch(std::string_view text) { REQUIRE(error_of(query(text)) == ""); }
  base::RecentFigures figures(cql::BatchType type) {
    base::RecentFigures out;
    out.add(processor->metrics().batches.of(type), reactor.now_us());
    return out;
  }
  /// Of the largest batch; 0: there was none.
  double largest(cql::BatchType type) { return std::max(figures(type).at(1) - 1, 0.0); }
};

using cql::BatchType;

}  // namespace

TEST_CASE_METHOD(Batches, "partitions of a batch are counted by its type, not its parts") {
  CHECK(largest(BatchType::kLogged) == 0);
  run_batch(
      "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (1, 1); INSERT INTO ks.t (k, c) VALUES (1, 2); "
      "APPLY BATCH");
  CHECK(largest(BatchType::kLogged) == 1);
  run_batch(
      "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (1, 1); INSERT INTO ks.t (k, c) VALUES (2, 1); "
      "INSERT INTO ks.other (k, v) VALUES (3, 1); APPLY BATCH");
  CHECK(largest(BatchType::kLogged) == 3);
  CHECK(figures(BatchType::kLogged).at(0.5) - 1 == 1);
  CHECK(largest(BatchType::kUnlogged) == 0);
  run_batch(
      "BEGIN UNLOGGED BATCH INSERT INTO ks.t (k, c) VALUES (1, 1); INSERT INTO ks.t (k, c) VALUES "
      "(2, 1); APPLY BATCH");
  CHECK(largest(BatchType::kUnlogged) == 2);
  CHECK(largest(BatchType::kCounter) == 0);
}

TEST_CASE_METHOD(Batches, "a partition of counters that is added to and deleted from is one") {
  run_batch(
      "BEGIN COUNTER BATCH UPDATE ks.n SET n = n + 1 WHERE k = 1; UPDATE ks.n SET n = n + 1 WHERE "
      "k = 1; UPDATE ks.n SET n = n + 1 WHERE k = 2; DELETE FROM ks.n WHERE k = 2; APPLY BATCH");
  CHECK(largest(BatchType::kCounter) == 2);
}

TEST_CASE_METHOD(Batches, "what is no batch, or decides, or is refused does not count") {
  run_batch("INSERT INTO ks.t (k, c) VALUES (1, 1)");
  run_batch("UPDATE ks.n SET n = n + 1 WHERE k = 1");
  run_batch(
      "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (9, 1) IF NOT EXISTS; INSERT INTO ks.t (k, c) "
      "VALUES (9, 2); APPLY BATCH");
  CHECK(error_of(query("BEGIN BATCH INSERT INTO ks.t (k) VALUES (9); APPLY BATCH")) != "");
  for (const BatchType type : {BatchType::kLogged, BatchType::kUnlogged, BatchType::kCounter})
    CHECK(largest(type) == 0);
}

}  // namespace tetrad::tests
