// SPDX-License-Identifier: Apache-2.0
// How many tombstones a read says that it came by, on both engines: as Cassandra counts them.
#include <catch2/catch.hpp>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

std::vector<std::shared_ptr<StoreFactory>> both() { return {memory_factory(), rocks_factory()}; }

Mutation deletes_range(BytesView start, BytesView end, int64_t at) {
  Mutation m = mutation_of(1, "p");
  m.range_tombstones.push_back({{Bytes(start), Bytes(end)}, {at, kNow_s - 10}});
  return m;
}

/// For the client and to be compared, of the partition and of a range, forward and backward: all
/// say the same.
void check_met(StoreRig& rig, uint64_t wanted) {
  for (const bool live_only : {true, false}) {
    for (const bool is_range : {true, false}) {
      for (const bool reversed : {true, false}) {
        INFO("live_only " << live_only << " range " << is_range << " reversed " << reversed);
        ReadCommand c = is_range ? range_read() : partition_read(1, "p");
        c.live_only = live_only;
        c.reversed = reversed;
        const auto result = rig.read(c);
        REQUIRE(result.has_value());
        CHECK(result->tombstones == wanted);
        if (!live_only) continue;
        const auto here = rig.read_here(c);
        REQUIRE(here.has_value());
        CHECK(here->tombstones == wanted);
      }
    }
  }
}

}  // namespace

TEST_CASE("live rows have no tombstones") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (const char* ck : {"a", "b", "c"})
      REQUIRE(rig.apply(row_mutation(1, "p", ck, inserted(5, ck), true)).has_value());
    check_met(rig, 0);
  }
}

TEST_CASE("each dead cell is a tombstone, of a live row and of a dead one") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(5, "v"))).has_value());
    REQUIRE(rig.apply(row_mutation(1, "p", "a",
                                   encoded(record_of({tombstone_cell(2, 6, kNow_s - 1),
                                                      tombstone_cell(3, 6, kNow_s - 1)}))))
                .has_value());
    REQUIRE(
        rig.apply(row_mutation(1, "p", "b", encoded(record_of({tombstone_cell(1, 6, kNow_s - 1)}))))
            .has_value());
    check_met(rig, 3);
  }
}

TEST_CASE("what has expired is a tombstone, what will expire is none") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    REQUIRE(rig.apply(row_mutation(1, "p", "a",
                                   encoded(record_of({value_cell(1, 6, "v", 10, kNow_s - 1),
                                                      value_cell(2, 6, "v", 10, kNow_s + 100)}))))
                .has_value());
    check_met(rig, 1);
    // A row that was nothing but its key.
    REQUIRE(rig.apply(row_mutation(1, "p", "b", encoded(record_of({}, {6, 10, kNow_s - 1}))))
                .has_value());
    check_met(rig, 2);
  }
}

TEST_CASE("a deleted row is one tombstone, whatever it had") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(5, "v"), true)).has_value());
    REQUIRE(rig.apply(row_mutation(1, "p", "b", inserted(5, "v"), true)).has_value());
    REQUIRE(
        rig.apply(row_mutation(1, "p", "a", encoded(record_of({}, {}, Deletion{6, kNow_s - 10}))))
            .has_value());
    check_met(rig, 1);
    // Written again: it lives, and what was deleted before is nothing that a reader meets.
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(7, "w"))).has_value());
    check_met(rig, 0);
  }
}

TEST_CASE("a deleted range counts for its two ends, and what it hides counts no more") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (const char* ck : {"a", "b", "c", "d", "e", "f", "g"})
      REQUIRE(rig.apply(row_mutation(1, "p", ck, inserted(5, ck), true)).has_value());
    REQUIRE(
        rig.apply(row_mutation(1, "p", "b", encoded(record_of({}, {}, Deletion{6, kNow_s - 10}))))
            .has_value());
    REQUIRE(rig.apply(deletes_range("b", "f", 7)).has_value());
    check_met(rig, 2);
    REQUIRE(rig.apply(deletes_range("g", "h", 7)).has_value());
    check_met(rig, 4);
    Mutation all = mutation_of(1, "p");
    all.header = encoded(record_of({}, {}, Deletion{9, kNow_s - 10}));
    REQUIRE(rig.apply(all).has_value());
    check_met(rig, 0);
  }
}

TEST_CASE("the pages of a read share its tombstones") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (int i = 0; i < 50; ++i) {
      const Bytes ck = fmt::format("{:02}", i);
      const Cell cell = i % 2 == 0 ? value_cell(1, 5, "v") : tombstone_cell(1, 5, kNow_s - 1);
      REQUIRE(rig.apply(row_mutation(1, "p", ck, encoded(record_of({cell})), true)).has_value());
    }
    ReadCommand c = partition_read(1, "p");
    c.row_limit = 10;
    uint64_t met = 0, rows = 0;
    for (int pages = 0; pages < 10; ++pages) {
      const auto page = rig.read(c);
      REQUIRE(page.has_value());
      met += page->tombstones;
      rows += page->live_row_count;
      CHECK(page->tombstones <= 10);
      if (page->exhausted) break;
      c.resume_after = page->complete_up_to;
    }
    CHECK((met == 25 && rows == 25));
  }
}

}  // namespace tetrad::storage
