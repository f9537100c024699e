// SPDX-License-Identifier: Apache-2.0
// The marks of tables (rule 14): their encoding, their growth, and that tables are told apart.
#include "storage/engine/table_marks.h"

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "base/random.h"
#include "storage/engine/table_summary.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr TableMarks::Seen kAllSeen[] = {TableMarks::kRowTombstones, TableMarks::kRangeTombstones,
                                         TableMarks::kStraddlingTombstones};

Bytes encoded(const TableMarks& marks) {
  Bytes out;
  marks.encode(out);
  return out;
}

}  // namespace

TEST_CASE("marks survive their encoding, exactly while there are few") {
  MarkBudget budget;
  TableMarks few, many;
  few.see(7, TableMarks::kRowTombstones, budget);
  CHECK(few.bucket_count() == kBucketCount);
  for (int i = 0; i < 500; ++i) few.raise(static_cast<uint16_t>(i * 131), i - 200, budget);
  few.see(9, TableMarks::kStraddlingTombstones, budget);
  many.see(0, TableMarks::kRowTombstones, budget);
  for (int i = 0; i < 65536; i += 2)
    many.raise(static_cast<uint16_t>(i), 1'700'000'000'000'000 + i, budget);
  many.raise(30'000, std::numeric_limits<int64_t>::max() - 5, budget);  // it speaks for itself only
  for (int i = 0; i < 65536; i += 3)
    many.see(static_cast<uint16_t>(i), TableMarks::kRangeTombstones, budget);
  for (const TableMarks* marks : {&few, &many}) {
    TableMarks joined;
    REQUIRE(joined.join(encoded(*marks), budget).has_value());
    bool exact = true, bound = true, same_flags = true;
    for (int i = 0; i < 65536; ++i) {
      const auto b = static_cast<uint16_t>(i);
      exact &= joined.mark(b) == marks->mark(b);
      bound &= joined.mark(b) >= marks->mark(b);
      for (const auto what : kAllSeen) same_flags &= joined.has(b, what) == marks->has(b, what);
    }
    CHECK(exact == (marks == &few));
    CHECK(bound);
    CHECK(same_flags);
    CHECK(joined.mark(30'002) < 1'800'000'000'000'000);
    CHECK(encoded(*marks).size() < 12'000);
    for (const size_t size : {0, 1, 3, 700})
      CHECK_FALSE(joined.join(encoded(*marks).substr(0, size), budget).has_value());
    CHECK_FALSE(joined.join(encoded(*marks) + "x", budget).has_value());
    CHECK_FALSE(joined.join("\x11" + encoded(*marks).substr(1), budget).has_value());
  }
}

TEST_CASE("marks never fall, however fine they become and whatever they are joined with") {
  base::Random random(5);
  for (int round = 0; round < 20; ++round) {
    MarkBudget budget;
    if (round % 4 == 0) budget.buckets_left = 3000;  // not as fine as it would like
    TableMarks marks, other;
    std::vector<int64_t> wanted(kBucketCount, kNoTimestamp);
    std::vector<uint8_t> seen(kBucketCount);
    for (int i = 0; i < 3000; ++i) {
      const auto bucket = static_cast<uint16_t>(random.below(round % 2 == 0 ? 65536 : 40));
      const auto at = static_cast<int64_t>(random.below(1000));
      TableMarks& to = random.one_in(3) ? other : marks;
      to.raise(bucket, at, budget);
      wanted[bucket] = std::max(wanted[bucket], at);
      if (!random.one_in(10)) continue;
      const auto what = kAllSeen[random.below(3)];
      to.see(bucket, what, budget);
      seen[bucket] |= what;
    }
    REQUIRE(marks.join(encoded(other), budget).has_value());
    bool held = true;
    for (size_t i = 0; i < kBucketCount; ++i) {
      const auto bucket = static_cast<uint16_t>(i);
      held &= marks.mark(bucket) >= wanted[i];
      for (const auto what : kAllSeen) held &= (seen[i] & what) == 0 || marks.has(bucket, what);
    }
    CHECK(held);
  }
}

TEST_CASE("tables share a budget of marks and give back what they had") {
  MarkBudget budget;
  const size_t whole = budget.buckets_left;
  std::vector<TableMarks> tables(20);
  for (TableMarks& table : tables) table.see(1, TableMarks::kRowTombstones, budget);
  CHECK(tables.front().bucket_count() == kBucketCount);
  CHECK(tables.back().bucket_count() < kBucketCount);
  CHECK(tables.back().has(1, TableMarks::kRowTombstones));
  CHECK(budget.buckets_left < kBucketCount);
  for (TableMarks& table : tables) table.release(budget);
  CHECK(budget.buckets_left == whole);
}

TEST_CASE("what was put is not put over something as new or under a row tombstone") {
  MarkBudget budget;
  TableMarks marks;
  const auto complete = *facts_of(inserted(50, "v"));
  CHECK(marks.may_put(3, complete));
  marks.raise(3, 50, budget);
  CHECK_FALSE(marks.may_put(3, complete));
  CHECK(marks.may_put(3, *facts_of(inserted(51, "v"))));
  marks.see(3, TableMarks::kRowTombstones, budget);
  CHECK_FALSE(marks.may_put(3, *facts_of(inserted(51, "v"))));
  CHECK_FALSE(
      marks.may_put(60'000, *facts_of(storage::encoded(record_of({value_cell(1, 9, "v")})))));
  CHECK_FALSE(marks.may_put(
      60'000, *facts_of(storage::encoded(record_of({value_cell(1, 9, "v")}, {9, 0, 0}, {8, 1})))));
}

TEST_CASE("a table with timestamps of the future says nothing of another, nor after a restart") {
  StoreRig rig(rocks_factory());
  const TableIncarnation strange{8};
  const int64_t nanoseconds = kNow_s * 1'000'000'000;
  for (int token = 1; token <= 3000; ++token) {
    Mutation m = mutation_of(token, "p", strange);
    m.rows.push_back({"a", inserted(nanoseconds + token, "v"), true});
    REQUIRE(rig.apply(m).has_value());
  }
  REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(10, "v"), true)).has_value());
  for (int restarts = 0; restarts < 2; ++restarts) {
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 10);
    bool all_low = true, all_high = true;
    for (int token = 1; token <= 3000; ++token) {
      all_low &= rig.store->high_water_timestamp(kTable, position_of(token)) <= 10;
      all_high &= rig.store->high_water_timestamp(strange, position_of(token)) > nanoseconds;
    }
    CHECK(all_low);
    CHECK(all_high);
    rig.close();
    rig.open();
  }
}

TEST_CASE("a file of before tells of all its tables at once") {
  // As it was written: few marks in a list, few row tombstones in another.
  Bytes marks, row_tombstones, tables;
  base::ByteWriter m(marks), t(row_tombstones), n(tables);
  m.u8(1);
  m.varint(1);
  m.u16(1234);
  m.zigzag(77);
  t.u8(1);
  t.varint(1);
  t.u16(1235);
  n.varint(2);
  for (const uint32_t incarnation : {7, 9}) {
    n.u32(incarnation);
    for (const int count : {1, incarnation == 9 ? 1 : 0, 5, 100})
      n.varint(static_cast<uint64_t>(count));
  }
  const std::map<std::string, std::string> properties = {{"tetrad.marks", marks},
                                                         {"tetrad.row_tombstones", row_tombstones},
                                                         {"tetrad.tables", tables}};
  TablesKnown known;
  REQUIRE(join_summary(properties, known).has_value());
  for (const uint32_t incarnation : {7, 9}) {
    const TableKnowledge* table = known.find({incarnation});
    REQUIRE(table != nullptr);
    CHECK(table->marks.mark(1234) == 77);
    CHECK(table->marks.mark(1235) == kNoTimestamp);
    CHECK(table->marks.has(1235, TableMarks::kRowTombstones));
    CHECK_FALSE(table->marks.has(1234, TableMarks::kRowTombstones));
    CHECK(table->contents.headers);
    CHECK(table->contents.scattered_tombstones == (incarnation == 9));
    CHECK(table->contents.range_tombstones == (incarnation == 9));
    CHECK(table->dead == 1);
  }
  CHECK(known.find({8}) == nullptr);
  CHECK_FALSE(join_summary({{"tetrad.tables", tables}}, known).has_value());
}

}  // namespace tetrad::storage
