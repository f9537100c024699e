// SPDX-License-Identifier: Apache-2.0
// Conditional statements beyond what recorded scripts can show: how they go through the coordinator
// and over the wire, what they cost, and that each decision begins anew.
#include <catch2/catch.hpp>

#include "cql/prepare/prepared_modify.h"
#include "storage/row/row_record.h"
#include "tests/unit/cql/whole_requests.h"

using namespace tetrad;
using namespace tetrad::tests;

namespace {

struct Fixture : WholeRequests {
  Fixture() {
    for (const char* statement :
         {"USE ks",
          "CREATE TABLE r (k int, c int, s int static, v int, w text, l list<int>, m map<text, "
          "int>, PRIMARY KEY (k, c))",
          "INSERT INTO r (k, c, v, w, l) VALUES (1, 1, 10, 'a', [1, 2, 3])"})
      REQUIRE(cql(statement) == "ok");
  }
  /// All timestamps of what was written last.
  std::set<int64_t> timestamps() const {
    std::set<int64_t> out;
    const auto collect = [&](const Bytes& encoded) {
      if (encoded.empty()) return;
      const auto record = storage::decode_row_record(encoded);
      REQUIRE(record);
      if (record->deletion.present()) out.insert(record->deletion.timestamp_us);
      if (record->liveness.timestamp_us != storage::kNoTimestamp)
        out.insert(record->liveness.timestamp_us);
      for (const storage::Cell& cell : record->cells) out.insert(cell.timestamp_us);
    };
    for (const storage::Mutation& mutation : coordinator->written) {
      collect(mutation.header);
      for (const auto& tombstone : mutation.range_tombstones)
        out.insert(tombstone.deletion.timestamp_us);
      for (const storage::RowChange& row : mutation.rows) collect(row.record);
    }
    return out;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "all that a conditional batch writes has the timestamp of its decision") {
  options.timestamp_us = 5;  // the protocol's default timestamp does not count
  REQUIRE(cql("BEGIN BATCH UPDATE r SET v = 11 WHERE k = 1 AND c = 1 IF v = 10; UPDATE r USING "
              "TIMESTAMP 7 SET w = 'b' WHERE k = 1 AND c = 2; UPDATE r SET s = 3 WHERE k = 1; "
              "DELETE FROM r WHERE k = 1 AND c > 7; DELETE FROM r WHERE k = 1 AND c = 4; INSERT "
              "INTO r (k, c, v) VALUES (1, 5, 5); APPLY BATCH") == "[applied]\ntrue");
  REQUIRE(coordinator->written.size() == 1);
  // Ranges are deleted before anything else is written.
  const std::set<int64_t> all = timestamps();
  CHECK(all.size() == 2);
  CHECK(*all.rbegin() == *all.begin() + 1);
  CHECK(*all.begin() > 1'000'000);
  CHECK(rows("SELECT c, s, v, w FROM r WHERE k = 1") ==
        "1 | 3 | 11 | 'a'\n2 | 3 | null | 'b'\n5 | 3 | 5 | null");
}

TEST_CASE_METHOD(Fixture, "a condition that does not hold writes nothing") {
  REQUIRE(cql("UPDATE r SET v = 1 WHERE k = 1 AND c = 1 IF v = 10") == "[applied]\ntrue");
  coordinator->written.clear();
  CHECK(cql("UPDATE r SET v = 2 WHERE k = 1 AND c = 1 IF v = 10") == "[applied] | v\nfalse | 1");
  CHECK(coordinator->written.empty());
}

TEST_CASE_METHOD(Fixture, "each decision of a statement begins anew") {
  coordinator->decisions = 3;
  CHECK(cql("UPDATE r SET l = l + [4], v = 11 WHERE k = 1 AND c = 1 IF v = 10") ==
        "[applied]\ntrue");
  const double applied = charge.units();
  CHECK(rows("SELECT l FROM r WHERE k = 1") == "[1, 2, 3, 4]");
  CHECK(cql("UPDATE r SET v = 12 WHERE k = 1 AND c = 1 IF v = 10 AND w = 'b'") ==
        "[applied] | v | w\nfalse | 11 | 'a'");
  coordinator->decisions = 1;
  CHECK(cql("UPDATE r SET l = l + [5], v = 12 WHERE k = 1 AND c = 1 IF v = 11") ==
        "[applied]\ntrue");
  CHECK(charge.units() == Approx(applied).margin(0.5));
}

TEST_CASE_METHOD(Fixture, "lists of rows without conditions are read for what is done to them") {
  REQUIRE(cql("INSERT INTO r (k, c, l) VALUES (1, 2, [4, 5, 4])") == "ok");
  CHECK(
      cql("BEGIN BATCH UPDATE r SET v = 1 WHERE k = 1 AND c = 1 IF v = 10; UPDATE r SET l = l - "
          "[4] WHERE k = 1 AND c = 2; UPDATE r SET l[0] = 9 WHERE k = 1 AND c = 1; APPLY BATCH") ==
      "[applied]\ntrue");
  CHECK(rows("SELECT c, l FROM r WHERE k = 1") == "1 | [9, 2, 3]\n2 | [5]");
  CHECK(cql("BEGIN BATCH UPDATE r SET v = 1 WHERE k = 1 AND c = 1 IF v = 99; UPDATE r SET l = l - "
            "[4] WHERE k = 1 AND c = 2; APPLY BATCH") ==
        "[applied] | k | c | v\nfalse | 1 | 1 | 1");
}

TEST_CASE_METHOD(Fixture, "a key that is made by a function is made once") {
  REQUIRE(cql("CREATE TABLE u (k int, c timeuuid, d timeuuid, PRIMARY KEY (k, c))") == "ok");
  CHECK(cql("INSERT INTO u (k, c, d) VALUES (1, now(), now()) IF NOT EXISTS") == "[applied]\ntrue");
  CHECK(rows("SELECT count(*) FROM u") == "1");
  CHECK(coordinator->written[0].rows.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a conditional statement that sets nothing is applied") {
  const auto statement =
      LocalCluster::prepare("UPDATE r SET v = ? WHERE k = 1 AND c = 1 IF v = 10");
  CHECK(print(execute(statement, {cql::BoundValue::unset()})) == "[applied]\ntrue");
  CHECK(rows("SELECT v FROM r WHERE k = 1") == "10");
}

TEST_CASE_METHOD(Fixture,
                 "a conditional statement costs its read, and its write if it is applied") {
  CHECK(cql("UPDATE r SET v = 10 WHERE k = 1 AND c = 1 IF v = 11").starts_with("[applied] | v"));
  CHECK(charge.units() == 2);
  CHECK(cql("UPDATE r SET v = 11 WHERE k = 1 AND c = 1 IF v = 10") == "[applied]\ntrue");
  CHECK(charge.units() == 7);
}

TEST_CASE_METHOD(Fixture, "a conditional statement has its own time") {
  const int64_t now_us = reactor.now_us();
  CHECK(cql("UPDATE r USING TIMEOUT 250ms SET v = 1 WHERE k = 1 AND c = 1 IF v = 10") ==
        "[applied]\ntrue");
  CHECK(coordinator->deadline.at_us == now_us + 250'000);
  CHECK(coordinator->contention_deadline.at_us == now_us + 250'000);
  CHECK(cql("UPDATE r SET v = 2 WHERE k = 1 AND c = 1 IF v = 1") == "[applied]\ntrue");
  CHECK(coordinator->contention_deadline.at_us == now_us + settings.cas_contention_timeout_us);
  CHECK(coordinator->deadline.at_us == now_us + settings.write_timeout_us);
}

TEST_CASE_METHOD(Fixture, "rows that are too much to look at on the loop are looked at elsewhere") {
  REQUIRE(cql("CREATE TABLE big (k int PRIMARY KEY, v int, t text)") == "ok");
  REQUIRE(cql("INSERT INTO big (k, v, t) VALUES (1, 1, '" + std::string(600'000, 'x') + "')") ==
          "ok");
  CHECK(cql("UPDATE big SET v = 2 WHERE k = 1 IF v = 1") == "[applied]\ntrue");
  const std::string refused = cql("INSERT INTO big (k) VALUES (1) IF NOT EXISTS");
  CHECK(refused.starts_with("[applied] | k | t | v\nfalse | 1 | 'xxx"));
  CHECK(refused.size() > 600'000);
}

TEST_CASE_METHOD(Fixture, "PREPARE says no columns, and every EXECUTE sends them") {
  for (const int version : {3, 4, 5}) {
    const auto prepared =
        prepare_in(version, "UPDATE r SET v = 5 WHERE k = 1 AND c = 1 IF v = 4 AND w = 'a'");
    CHECK(prepared.result.columns.empty());
    const Bytes id(prepared.id), metadata_id(prepared.result_metadata_id);
    for (int i = 0; i < 2; ++i) {
      const auto response = run_in(version, id, metadata_id, {.skip_metadata = true});
      const auto* told = std::get_if<cql::client::RowsReply>(&response.reply);
      REQUIRE(told != nullptr);
      REQUIRE(told->metadata.columns.size() == 3);
      CHECK(told->metadata.columns[0].name == "[applied]");
      CHECK(told->metadata.columns[2].name == "w");
      CHECK_FALSE(told->metadata.new_id.has_value());
    }
  }
}

TEST_CASE_METHOD(Fixture, "a batch of statements with conditions shows the rows of all of them") {
  REQUIRE(cql("INSERT INTO r (k, c, v) VALUES (1, 2, 20)") == "ok");
  std::vector<cql::BatchEntry> entries(2);
  entries[0].statement = LocalCluster::prepare("UPDATE r SET v = ? WHERE k = 1 AND c = 2 IF v = ?");
  const Bytes one = cql::make_int(1), ten = cql::make_int(10), twenty = cql::make_int(20);
  entries[0].values = {cql::BoundValue::of(one), cql::BoundValue::of(twenty)};
  entries[1].statement = LocalCluster::prepare("UPDATE r SET v = 0 WHERE k = ? AND c = 1 IF v = ?");
  entries[1].values = {cql::BoundValue::of(one), cql::BoundValue::of(one)};
  CHECK(print(execute_batch(cql::BatchType::kUnlogged, entries)) ==
        "[applied] | k | c | v\nfalse | 1 | 1 | 10\nfalse | 1 | 2 | 20");
  entries[1].values[1] = cql::BoundValue::of(ten);
  CHECK(print(execute_batch(cql::BatchType::kUnlogged, entries)) == "[applied]\ntrue");
  CHECK(rows("SELECT c, v FROM r WHERE k = 1") == "1 | 0\n2 | 1");
}

TEST_CASE_METHOD(Fixture,
                 "a batch that tests a column which is gone by its first part is refused") {
  std::vector<cql::BatchEntry> entries(2);
  entries[1].statement =
      LocalCluster::prepare("UPDATE r SET v = 1 WHERE k = 1 AND c = 1 IF w = 'b'");
  REQUIRE(cql("ALTER TABLE r DROP w") == "ok");
  for (const char* other : {"INSERT INTO r (k, c) VALUES (1, 2) IF NOT EXISTS",
                            "UPDATE r SET v = 2 WHERE k = 1 AND c = 2 IF v = 3"}) {
    entries[0].statement = LocalCluster::prepare(other);
    CHECK(print(execute_batch(cql::BatchType::kUnlogged, entries)) ==
          "error: Undefined column name w in table ks.r");
    std::swap(entries[0], entries[1]);  // all of it is of the table as it was
    CHECK(
        print(execute_batch(cql::BatchType::kUnlogged, entries)).starts_with("[applied] | k | c"));
    std::swap(entries[0], entries[1]);
  }
}
