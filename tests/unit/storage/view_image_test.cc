// SPDX-License-Identifier: Apache-2.0
// Images of view rows (rule 24): whatever rows the base had, in whatever order their images come, a
// view's rows are those of the last one, at any time.
#include "storage/views/view_image.h"

#include <map>

#include <catch2/catch.hpp>

#include "storage/row/reconcile.h"
#include "tests/unit/storage/random_rows.h"

namespace tetrad::storage {
namespace {

/// Of a base with simple columns 1 to 3 and a collection 4, as RandomRows makes it.
class TestView final : public ViewMaker {
 public:
  TestView(std::optional<uint32_t> key_column, std::vector<ViewColumn> columns)
      : key_column_(key_column), columns_(std::move(columns)) {}
  TableIncarnation incarnation() const override { return {8}; }
  SchemaVersion schema_version() const override { return {1}; }
  std::optional<uint32_t> key_column() const override { return key_column_; }
  bool may_have_key_cells() const override { return has_key_cells; }
  const std::vector<ViewColumn>& columns() const override { return columns_; }
  std::optional<ViewPlace> place_of(const BaseRowName& row, BytesView key_value) const override {
    return ViewPlace{Bytes(key_value), {}, Bytes(row.partition_key), {}};
  }
  std::optional<ViewOrigin> origin_of(const BaseRowName&) const override { return std::nullopt; }

  bool has_key_cells = false;

 private:
  const std::optional<uint32_t> key_column_;
  const std::vector<ViewColumn> columns_;
};

TestView keyed_view() { return {2, {{1, 11, false}, {3, 13, false}, {4, 14, true}}}; }
/// It lacks column 3, which keeps its rows alive all the same.
TestView unkeyed_view() { return {{}, {{1, 11, false}, {2, 12, false}, {4, 14, true}}}; }

/// Column and path of what a SELECT shows, and its value.
using Shown = std::map<std::pair<uint32_t, Bytes>, Bytes>;

/// Unset: a SELECT shows no row.
std::optional<Shown> shown(RowRecord row, int64_t now_s) {
  drop_hidden(row);
  if (!is_live(row, now_s)) return std::nullopt;
  keep_live(row, now_s);
  Shown all;
  for (const Cell& cell : row.cells) all[{cell.column_id, Bytes(cell.path)}] = Bytes(cell.value);
  return all;
}

/// What the view's query gives over the base row.
std::optional<Shown> queried(const TestView& view, const RowRecord& base_row, BytesView name,
                             int64_t now_s) {
  const auto base = shown(base_row, now_s);
  if (!base) return std::nullopt;
  if (view.key_column()) {
    const auto key = base->find({*view.key_column(), Bytes()});
    if (key == base->end() || key->second != name) return std::nullopt;
  }
  Shown all;
  for (const auto& [place, value] : *base)
    for (const ViewColumn& column : view.columns())
      if (column.base_id == place.first) all[{column.view_id, place.second}] = value;
  return all;
}

/// Rows of a view by name; records as stores keep them.
using ViewRows = std::map<ViewName, Bytes>;

void apply(ViewRows& rows, const ViewName& name, const RowRecord& image) {
  Bytes& stored = rows[name];
  stored = stored.empty() ? encoded(image) : encoded(reconcile(*decode_row_record(stored), image));
}

/// Base rows that have nothing to do with one another, as purges and overwrites leave them; all their
/// images, shuffled.
void check_history(const TestView& view, uint64_t seed) {
  RandomRows rows(seed);
  ViewNames names;
  std::vector<Bytes> base_rows;
  std::vector<std::pair<ViewName, std::pair<Bytes, ViewStamp>>> writes;
  ViewStamp stamp;
  for (uint64_t i = 0; i < 1 + rows.below(4); ++i) {
    base_rows.push_back(encoded(rows.canonical_record()));
    stamp = stamp_above(stamp, 1'000'000 + static_cast<int64_t>(rows.below(3)));
    REQUIRE(add_view_names(view, base_rows.back(), names));
    for (const ViewName& name : names) writes.push_back({name, {base_rows.back(), stamp}});
  }
  ViewRows in_view;
  while (!writes.empty()) {
    const size_t at = rows.below(writes.size());
    const auto& [name, made_of] = writes[at];
    const RowRecord base_row = *decode_row_record(made_of.first);
    apply(in_view, name, view_image(view, base_row, name, {}, made_of.second));
    if (!rows.one_in(4)) writes.erase(writes.begin() + static_cast<ptrdiff_t>(at));
  }
  const RowRecord last = *decode_row_record(base_rows.back());
  for (int64_t now_s = kNow_s - 600; now_s <= kNow_s + 600; now_s += 50) {
    for (const ViewName& name : names) {
      INFO("seed " << seed << ", name \"" << name.key_value << "\", at " << now_s - kNow_s);
      const RowRecord row = *decode_row_record(in_view[name]);
      CHECK(shown(row, now_s) == queried(view, last, name.key_value, now_s));
    }
  }
}

TEST_CASE("images leave a view equal to its query, in any order") {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    check_history(keyed_view(), seed);
    check_history(unkeyed_view(), seed);
  }
}

TEST_CASE("an image is encoded and decoded as it is") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    RandomRows rows(seed);
    const Bytes base_row = encoded(rows.canonical_record());
    const RowRecord image =
        view_image(unkeyed_view(), *decode_row_record(base_row), {}, "original", {1000});
    const Bytes bytes = encoded(image);
    CHECK(*decode_row_record(bytes) == image);
  }
}

TEST_CASE("names are values live, expired and hidden") {
  const TestView view = keyed_view();
  RowRecord row = record_of({value_cell(1, 50, "other"), value_cell(2, 10, "k", 5)});
  row.deletion = {20, 5};
  ViewNames names;
  REQUIRE(add_view_names(view, encoded(row), names));
  REQUIRE(add_view_names(view, encoded(record_of({value_cell(2, 5, "k2")})), names));
  REQUIRE(add_view_names(view, encoded(record_of({tombstone_cell(2, 9)})), names));
  CHECK(names == ViewNames{{"k", ""}, {"k2", ""}});
  CHECK_FALSE(add_view_names(view, "\x01", names));

  ViewNames without;
  REQUIRE(add_view_names(unkeyed_view(), encoded(row), without));
  CHECK(without == ViewNames{{"", ""}});
}

TEST_CASE("nothing of an image outlives the key column's cell") {
  Cell key = value_cell(2, 10, "k");
  key.ttl_s = 100;
  key.expiry_s = 1100;
  Cell sooner = value_cell(3, 10, "c");
  sooner.ttl_s = 50;
  sooner.expiry_s = 1050;
  const RowRecord image =
      view_image(keyed_view(), record_of({value_cell(1, 10, "v"), key, sooner}, {10, 0, 0}),
                 {"k", ""}, {}, {2000});
  CHECK(image.liveness == Liveness{2000, 100, 1100});
  REQUIRE(image.cells.size() == 3);
  CHECK(image.cells[0].expiry_s == 1100);
  CHECK(image.cells[1].expiry_s == 1050);
  CHECK(image.cells[2].kind == CellKind::kColumnDeletion);
  CHECK(image.cells[2].timestamp_us == 1999);
}

TEST_CASE("a key that has lost nothing takes the place of one that had") {
  // As 1.00 and 1 of decimals, which are one key: the row shows what its last image has.
  TestView view = unkeyed_view();
  view.has_key_cells = true;
  const RowRecord base_row = record_of({value_cell(1, 10, "v")}, {10, 0, 0});
  ViewRows rows;
  apply(rows, {}, view_image(view, base_row, {}, "1.00", {1000}));
  const auto key_cell = [&] {
    const auto row = shown(*decode_row_record(rows[{}]), kNow_s);
    REQUIRE(row);
    const auto found = row->find({kKeyCellColumnId, Bytes()});
    return found == row->end() ? Bytes("none") : found->second;
  };
  CHECK(key_cell() == "1.00");
  apply(rows, {}, view_image(view, base_row, {}, "", {2000}));
  CHECK(key_cell() == "none");
  apply(rows, {}, view_image(view, base_row, {}, "1.0", {3000}));
  CHECK(key_cell() == "1.0");
}

TEST_CASE("a stamp is even and above all before") {
  CHECK(stamp_above({}, 1000) == ViewStamp{1002});
  CHECK(stamp_above({}, 1001) == ViewStamp{1002});
  CHECK(stamp_above({5000}, 1000) == ViewStamp{5002});
  CHECK(stamp_above({5000}, 5000) == ViewStamp{5002});
}

}  // namespace
}  // namespace tetrad::storage
