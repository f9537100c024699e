// SPDX-License-Identifier: Apache-2.0
// The algebra of reconciliation and each of its rules.
#include "storage/row/reconcile.h"

#include <catch2/catch.hpp>

#include "storage/engine/value_merge.h"
#include "storage/row/range_tombstones.h"
#include "tests/unit/storage/random_rows.h"

namespace tetrad::storage {
namespace {

TEST_CASE("reconciliation is associative, commutative and idempotent") {
  RandomRows rows(11);
  for (int i = 0; i < 60000; ++i) {
    const RowRecord a = rows.record(), b = rows.record(), c = rows.record();
    const RowRecord ab = reconcile(a, b), bc = reconcile(b, c);
    REQUIRE(ab == reconcile(b, a));
    REQUIRE(reconcile(ab, c) == reconcile(a, bc));
    REQUIRE(reconcile(ab, ab) == ab);
    REQUIRE(reconcile(ab, a) == ab);
    RowRecord canonical = a;
    drop_hidden(canonical);
    REQUIRE(reconcile(a, a) == canonical);
    REQUIRE(reconcile(a, RowRecord()) == canonical);
    REQUIRE(reconcile(canonical, b) == ab);
  }
}

TEST_CASE("hiding and reconciling may be done in any order") {
  RandomRows rows(12);
  for (int i = 0; i < 30000; ++i) {
    RowRecord a = rows.record(), b = rows.record();
    const Deletion cover{rows.timestamp(), rows.deletion_time()};
    RowRecord after = reconcile(a, b);
    hide(after, cover);
    hide(a, cover);
    RowRecord one = reconcile(a, b);
    hide(one, cover);
    REQUIRE(one == after);
  }
}

TEST_CASE("what is missing of a merge completes it") {
  RandomRows rows(13);
  for (int i = 0; i < 30000; ++i) {
    const RowRecord held = rows.canonical_record();
    const RowRecord merged = reconcile(held, rows.record());
    const RowRecord missing = missing_part(merged, held);
    REQUIRE(reconcile(held, missing) == merged);
    REQUIRE(missing_part(merged, merged).empty());
  }
}

TEST_CASE("a complete record of newer time leaves the same whether it is put or merged") {
  RandomRows rows(14);
  for (int i = 0; i < 30000; ++i) {
    RowRecord stored = rows.record();
    stored.deletion = {};  // the flag of the bucket forbids Put otherwise
    drop_hidden(stored);
    const RowRecord put = rows.complete_record(101 + static_cast<int64_t>(rows.timestamps));
    RowRecord canonical = put;
    drop_hidden(canonical);
    REQUIRE(reconcile(stored, put) == canonical);
  }
}

TEST_CASE("each rule of a tie") {
  const auto wins = [](const Cell& winner, const Cell& loser) {
    const RowRecord a = record_of({winner}), b = record_of({loser});
    return reconcile(a, b) == a && reconcile(b, a) == a;
  };
  CHECK(wins(value_cell(1, 2, "a"), value_cell(1, 1, "z")));
  CHECK(wins(value_cell(1, 2, "a"), tombstone_cell(1, 1)));
  CHECK(wins(tombstone_cell(1, 2), value_cell(1, 2, "z")));
  CHECK(wins(tombstone_cell(1, 2), value_cell(1, 2, "z", 10, 99)));
  CHECK(wins(tombstone_cell(1, 2, 9), tombstone_cell(1, 2, 8)));
  CHECK(wins(value_cell(1, 2, "a", 10, 99), value_cell(1, 2, "z")));
  CHECK(wins(value_cell(1, 2, "a", 10, 99), value_cell(1, 2, "z", 10, 98)));
  CHECK(wins(value_cell(1, 2, "z", 10, 99), value_cell(1, 2, "a", 10, 99)));
  CHECK(wins(value_cell(1, 2, "a", 10, 99), value_cell(1, 2, "a", 11, 99)));
  CHECK(wins(value_cell(1, 2, "b"), value_cell(1, 2, "a")));
  CHECK(wins(value_cell(1, 2, "ab"), value_cell(1, 2, "a")));
  CHECK(wins(value_cell(1, 2, "\xFF"), value_cell(1, 2, "\x01")));
  CHECK(later_of({5, 1}, {4, 9}) == Deletion{5, 1});
  CHECK(later_of({5, 1}, {5, 2}) == Deletion{5, 2});
  CHECK(later_of({}, {5, 2}) == Deletion{5, 2});
  CHECK(reconcile_liveness({5, 0, 0}, {5, 10, 20}) == Liveness{5, 10, 20});
  CHECK(reconcile_liveness({5, 9, 21}, {5, 10, 20}) == Liveness{5, 9, 21});
  CHECK(reconcile_liveness({6, 0, 0}, {5, 10, 20}) == Liveness{6, 0, 0});
}

TEST_CASE("a row deletion hides what is not newer, itself it stays") {
  const RowRecord deleted = record_of({}, {}, {10, 3});
  CHECK(reconcile(deleted, record_of({value_cell(1, 10, "v")}, {10, 0, 0})) == deleted);
  const RowRecord newer = record_of({value_cell(1, 11, "v")}, {11, 0, 0});
  CHECK(reconcile(deleted, newer) == record_of({value_cell(1, 11, "v")}, {11, 0, 0}, {10, 3}));
}

TEST_CASE("a column deletion hides its own column's elements that are not newer") {
  const RowRecord deleted = record_of({column_deletion(4, 10, 3)});
  const RowRecord stored = record_of({value_cell(3, 1, "s"), element_cell(4, 10, "x", "1"),
                                      element_cell(4, 11, "y", "2"), value_cell(5, 1, "t")});
  CHECK(reconcile(deleted, stored) ==
        record_of({value_cell(3, 1, "s"), column_deletion(4, 10, 3), element_cell(4, 11, "y", "2"),
                   value_cell(5, 1, "t")}));
}

TEST_CASE("a row is live by its marker or by a cell that is no key cell") {
  CHECK_FALSE(is_live({}, 100));
  CHECK(is_live(record_of({}, {1, 0, 0}), 100));
  CHECK(is_live(record_of({}, {1, 10, 101}), 100));
  CHECK_FALSE(is_live(record_of({}, {1, 10, 100}), 100));
  CHECK(is_live(record_of({value_cell(1, 1, "")}), 100));
  CHECK_FALSE(is_live(record_of({value_cell(kKeyCellColumnId, 1, "k")}), 100));
  CHECK_FALSE(is_live(record_of({tombstone_cell(1, 1)}), 100));
  CHECK_FALSE(is_live(record_of({value_cell(1, 1, "v", 10, 100)}), 100));
}

TEST_CASE("an expired cell is a tombstone that keeps its times") {
  RowRecord r = record_of({value_cell(1, 1, "v", 10, 100), value_cell(2, 1, "w", 10, 101)});
  drop_expired_values(r, 100);
  CHECK(r == record_of({value_cell(1, 1, "", 10, 100), value_cell(2, 1, "w", 10, 101)}));
  keep_live(r, 100);
  CHECK(r == record_of({value_cell(2, 1, "w", 10, 101)}));
}

TEST_CASE("steps of range tombstones say for every key what the newest of them says") {
  RandomRows rows(15);
  static constexpr BytesView bounds[] = {"", "a", "ab", "b", "c", "cc", "d", "\xFF"};
  static constexpr BytesView probes[] = {"",   "a", "aa", "ab", "abc", "b",
                                         "bz", "c", "cc", "d",  "e"};
  for (int i = 0; i < 20000; ++i) {
    const Deletion partition = rows.one_in(3) ? Deletion{rows.timestamp(), 1} : Deletion{};
    std::vector<RangeTombstoneView> tombstones;
    for (uint64_t n = rows.below(6); n > 0; --n)
      tombstones.push_back(
          {bounds[rows.below(8)], bounds[rows.below(8)], {rows.timestamp(), rows.deletion_time()}});
    const TombstoneSteps steps = make_steps(tombstones, partition);
    for (size_t s = 0; s < steps.size(); ++s) {
      REQUIRE(steps[s].start < steps[s].end);
      if (s == 0) continue;
      REQUIRE(steps[s - 1].end <= steps[s].start);
      REQUIRE((steps[s - 1].end != steps[s].start || steps[s - 1].deletion != steps[s].deletion));
    }
    for (const BytesView key : probes) {
      Deletion expected;
      for (const RangeTombstoneView& t : tombstones)
        if (t.start <= key && key < t.end && !partition.hides(t.deletion.timestamp_us))
          expected = later_of(expected, t.deletion);
      REQUIRE(deletion_at(steps, key) == expected);
    }
    // Cutting and completing.
    const BytesView from = bounds[rows.below(8)], to = bounds[rows.below(8)];
    TombstoneSteps cut;
    append_cut_steps(steps, from, to, cut);
    for (const BytesView key : probes)
      REQUIRE(deletion_at(cut, key) ==
              (from <= key && key < to ? deletion_at(steps, key) : Deletion{}));
    const TombstoneSteps other = make_steps({{from, to, {rows.timestamp(), 5}}}, partition);
    const TombstoneSteps missing = missing_steps(steps, other);
    for (const BytesView key : probes) {
      const Deletion wanted = deletion_at(steps, key);
      REQUIRE(deletion_at(missing, key) ==
              (wanted != deletion_at(other, key) ? wanted : Deletion{}));
    }
  }
}

TEST_CASE("values join to the same, few or many, in whatever order") {
  RandomRows rows(15);
  for (size_t count = 1; count <= 60; ++count) {
    for (int i = 0; i < 50; ++i) {
      RowRecord one_by_one;
      std::vector<Bytes> encoded(count);
      for (Bytes& value : encoded) {
        const RowRecord record = rows.record();
        one_by_one = reconcile(one_by_one, record);
        encode_row_record(record, value);
      }
      Bytes expected, joined;
      encode_row_record(one_by_one, expected);
      REQUIRE(merge_values(KeyKind::kRow, std::vector<BytesView>(encoded.begin(), encoded.end()),
                           joined) == 0);
      REQUIRE(joined == expected);
      joined.clear();
      REQUIRE(merge_values(KeyKind::kRow, std::vector<BytesView>(encoded.rbegin(), encoded.rend()),
                           joined) == 0);
      REQUIRE(joined == expected);
    }
  }
}

TEST_CASE("a value that does not decode is kept, reported, and never taken for data") {
  const Bytes good = inserted(5, "v"), newer = inserted(6, "w");
  Bytes joined;
  CHECK(merge_values(KeyKind::kRow, std::vector<BytesView>{good, newer}, joined) == 0);
  CHECK(joined == newer);
  const Bytes broken = "\x55garbage";
  joined.clear();
  CHECK(merge_values(KeyKind::kRow, std::vector<BytesView>{good, broken, newer}, joined) == 1);
  CHECK_FALSE(decode_row_record(joined).has_value());
  // Joining again, in any grouping, keeps it and goes on joining the rest.
  Bytes first, again;
  CHECK(merge_values(KeyKind::kRow, std::vector<BytesView>{good, broken}, first) == 1);
  CHECK(merge_values(KeyKind::kRow, std::vector<BytesView>{first, newer}, again) == 1);
  CHECK(again == joined);
  again.clear();
  CHECK(merge_values(KeyKind::kRow, std::vector<BytesView>{joined, joined}, again) == 1);
  CHECK(again == joined);
  again.clear();
  CHECK(merge_values(KeyKind::kRangeTombstone, std::vector<BytesView>{good}, again) == 1);
}

}  // namespace
}  // namespace tetrad::storage
