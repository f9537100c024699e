// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/table_latencies.h"

#include <catch2/catch.hpp>

#include "replication/meta/meta_state.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {
namespace {

constexpr TableIncarnation kTable{7}, kOther{8};
constexpr auto kRead = TableFigure::kLocalRead;

TableMeasure measure_of(const TableLatencies& latencies, TableIncarnation table,
                        TableFigure figure) {
  const TableMeasures found = latencies.measures({&figure, 1});
  const auto entry = found.find({table, figure});
  return entry == found.end() ? TableMeasure() : entry->second;
}

void put(MetaState& state, TableIncarnation incarnation) {
  auto table = std::make_shared<TableInfo>();
  table->id = TableId{Uuid{{static_cast<uint8_t>(incarnation.value)}}};
  table->incarnation = incarnation;
  state.put_table(table);
}

struct Fixture {
  tests::ManualReactor reactor;
  TableLatencies latencies{reactor};

  void request(TableFigure figure, TableIncarnation table, int64_t took_us) {
    const TableLatencies::Timing timing = latencies.begin(figure, table);
    reactor.advance_us(took_us);
    latencies.end(timing);
  }
};

storage::Mutation mutation_of(TableIncarnation table) {
  storage::Mutation mutation;
  mutation.incarnation = table;
  return mutation;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "requests that are far apart are all timed") {
  for (int i = 0; i < 100; ++i) request(kRead, kTable, 2'000);
  const TableMeasure measure = measure_of(latencies, kTable, kRead);
  CHECK(measure.count == 100);
  CHECK(measure.total == 200'000);
  CHECK((measure.recent.at(0.5) > 2'000 && measure.recent.at(0.5) <= 2'560));
}

TEST_CASE_METHOD(Fixture,
                 "of many at once every sixteenth is timed and stands for those before it") {
  int timed = 0;
  for (int i = 0; i < 1'601; ++i) {
    const TableLatencies::Timing timing = latencies.begin(kRead, kTable);
    timed += timing.is_timed() ? 1 : 0;
    latencies.end(timing);
  }
  CHECK(timed == 101);
  const TableMeasure measure = measure_of(latencies, kTable, kRead);
  CHECK(measure.count == 1'601);
  // All of them have their weight in the rate.
  CHECK(measure.recent.per_second == 1'601);
}

TEST_CASE_METHOD(Fixture, "each table and kind of request has figures of its own") {
  request(kRead, kTable, 5'000);
  request(TableFigure::kLocalWrite, kTable, 50);
  request(kRead, kOther, 700);
  CHECK(measure_of(latencies, kTable, kRead).total == 5'000);
  CHECK(measure_of(latencies, kTable, TableFigure::kLocalWrite).total == 50);
  CHECK(measure_of(latencies, kOther, kRead).total == 700);
  CHECK(measure_of(latencies, kOther, TableFigure::kLocalWrite).count == 0);
}

TEST_CASE_METHOD(Fixture,
                 "a request that is taken back leaves nothing, and the next one is timed") {
  request(kRead, kTable, 10);
  reactor.advance_us(1'000'000);
  const TableLatencies::Timing tried = latencies.begin(kRead, kTable);
  CHECK(tried.is_timed());
  latencies.take_back(tried);
  CHECK(measure_of(latencies, kTable, kRead).count == 1);
  const TableLatencies::Timing again = latencies.begin(kRead, kTable);
  CHECK(again.is_timed());
  CHECK(again.weight == 1);
  const TableLatencies::Timing soon = latencies.begin(kRead, kTable);
  CHECK(!soon.is_timed());
  latencies.take_back(soon);
  CHECK(measure_of(latencies, kTable, kRead).count == 2);
}

TEST_CASE_METHOD(Fixture, "rows and tombstones are those of the reads that are timed") {
  TableLatencies::Timing timing = latencies.begin(kRead, kTable);
  latencies.note_found(timing, 3, 40);
  latencies.end(timing);
  timing = latencies.begin(kRead, kTable);
  REQUIRE(!timing.is_timed());
  latencies.note_found(timing, 1'000, 1'000);
  latencies.end(timing);
  const TableMeasure rows = measure_of(latencies, kTable, TableFigure::kRowsOfRead);
  const TableMeasure tombstones = measure_of(latencies, kTable, TableFigure::kTombstonesOfRead);
  CHECK((rows.count == 1 && rows.total == 3));
  CHECK((tombstones.count == 1 && tombstones.total == 40));
  CHECK((tombstones.recent.at(1) > 40 && tombstones.recent.at(1) <= 50));
}

TEST_CASE_METHOD(Fixture, "a batch counts once for each of its tables, sixteen at most") {
  std::vector<storage::Mutation> mutations;
  for (const uint32_t table : {7, 8, 7, 8, 8}) mutations.push_back(mutation_of({table}));
  latencies.end(latencies.begin_write(mutations));
  const auto kWrite = TableFigure::kCoordinatorWrite;
  CHECK(measure_of(latencies, kTable, kWrite).count == 1);
  CHECK(measure_of(latencies, kOther, kWrite).count == 1);
  for (uint32_t table = 100; table < 200; ++table) mutations.push_back(mutation_of({table}));
  latencies.end(latencies.begin_write(mutations));
  CHECK(measure_of(latencies, kTable, kWrite).count == 2);
  CHECK(latencies.measures({&kWrite, 1}).size() == 16);
  CHECK(latencies.begin_write({}).others.empty());
}

TEST_CASE_METHOD(Fixture, "the figures of a table that was dropped are gone") {
  request(kRead, kTable, 10);
  request(kRead, kOther, 10);
  MetaState state;
  put(state, kOther);
  latencies.follow(state);
  CHECK(measure_of(latencies, kTable, kRead).count == 0);
  CHECK(measure_of(latencies, kOther, kRead).count == 1);
  request(kRead, kOther, 10);
  CHECK(measure_of(latencies, kOther, kRead).count == 2);
}

TEST_CASE_METHOD(Fixture, "of many tables only the busiest have figures") {
  for (uint32_t table = 1; table <= 50; ++table)
    for (uint32_t i = 0; i < table; ++i) request(kRead, {table}, 1);
  const TableMeasures busiest = latencies.measures({&kRead, 1}, 10);
  CHECK(busiest.size() == 10);
  for (const auto& [key, measure] : busiest) CHECK(key.first.value > 40);
}

}  // namespace tetrad::replication
