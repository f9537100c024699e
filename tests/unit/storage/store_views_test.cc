// SPDX-License-Identifier: Apache-2.0
// What stores do for materialized views (rule 24), RocksDB's and the model alike.
#include "storage/views/store_views.h"

#include <set>

#include <catch2/catch.hpp>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr TableIncarnation kView{21};
constexpr TableIncarnation kAfterView{22};

/// By column 1.
class ByColumn1 final : public ViewMaker {
 public:
  TableIncarnation incarnation() const override { return kView; }
  SchemaVersion schema_version() const override { return {1}; }
  std::optional<uint32_t> key_column() const override { return 1; }
  const std::vector<ViewColumn>& columns() const override { return columns_; }
  std::optional<ViewPlace> place_of(const BaseRowName&, BytesView key_value) const override {
    return ViewPlace{Bytes(key_value), {}, {}, {}};
  }
  std::optional<ViewOrigin> origin_of(const BaseRowName&) const override { return std::nullopt; }

 private:
  std::vector<ViewColumn> columns_;
};

ViewMakersPtr one_view() {
  return std::make_shared<ViewMakers>(ViewMakers{std::make_shared<ByColumn1>()});
}

std::vector<std::shared_ptr<StoreFactory>> both() { return {rocks_factory(), memory_factory()}; }

Mutation put(BytesView row, int64_t timestamp, BytesView value) {
  return row_mutation(0, "p", row, inserted(timestamp, value));
}

ViewRow view_row(BytesView row) {
  const Mutation m = mutation_of(0, "p");
  return {kTable, m.position, m.partition_key, Bytes(row)};
}

Result<ViewRowAnswer> read_row(StoreRig& rig, BytesView row, int64_t stamp_us) {
  std::optional<Result<ViewRowAnswer>> answer;
  rig.store->views().read(view_row(row), ViewStamp{stamp_us}, base::kNoDeadline,
                          [&](Result<ViewRowAnswer> found) { answer = std::move(found); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  return std::move(*answer);
}

void settle(StoreRig& rig, BytesView row, std::vector<uint64_t> sequences, ViewNamesByView names,
            int64_t stamp_us) {
  std::optional<Result<void>> done;
  rig.store->views().settle({view_row(row), std::move(sequences), std::move(names), {stamp_us}},
                            [&](Result<void> settled) { done = std::move(settled); });
  REQUIRE(rig.comes([&] { return done.has_value(); }));
  REQUIRE(done->has_value());
}

/// Rows with tasks, and ranges: "a", "b..".
std::string tasks(StoreRig& rig) {
  std::string text;
  Bytes after;
  for (int i = 0; i < 100; ++i) {
    std::optional<Result<ViewTaskPage>> page;
    rig.store->views().list(kTable, after, 2,
                            [&](Result<ViewTaskPage> listed) { page = std::move(listed); });
    REQUIRE(rig.comes([&] { return page.has_value(); }));
    REQUIRE(page->has_value());
    for (const ViewTaskEntry& task : (*page)->tasks)
      text += (text.empty() ? "" : " ") + task.row.clustering_key + (task.of_range ? ".." : "");
    if ((*page)->exhausted) return text;
    after = (*page)->next;
  }
  return "a list without an end";
}

std::string names_of(const ViewRowAnswer& answer) {
  std::string text;
  for (const auto& [view, names] : answer.names)
    for (const ViewName& name : names) text += (text.empty() ? "" : " ") + name.key_value;
  return text;
}

void build(StoreRig& rig) {
  for (int i = 0; i < 100; ++i) {
    std::optional<Result<ViewBuildPage>> page;
    rig.store->views().build(kTable, kView, 64,
                             [&](Result<ViewBuildPage> built) { page = std::move(built); });
    REQUIRE(rig.comes([&] { return page.has_value(); }));
    REQUIRE(page->has_value());
    if ((*page)->built) return;
  }
  FAIL("a build without an end");
}

TEST_CASE("every change of a row leaves a task until it is settled") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    std::vector<std::string> told;
    REQUIRE(rig.apply(put("0", 1, "before")).has_value());
    rig.store->set_views(kTable, one_view(), kAfterView);
    rig.store->views().on_task(
        [&](ViewTaskEntry entry) { told.push_back(entry.row.clustering_key); });
    REQUIRE(rig.apply(put("a", 1, "red")).has_value());
    REQUIRE(rig.apply(put("b", 1, "red"), true).has_value());  // a hint, a repair or a stream
    CHECK(tasks(rig) == "a b");
    CHECK(told == std::vector<std::string>{"a", "b"});

    auto answer = read_row(rig, "a", 1000);
    REQUIRE(answer);
    CHECK_FALSE(answer->seen);
    CHECK(names_of(*answer) == "red");
    REQUIRE(answer->sequences.size() == 1);
    REQUIRE(rig.apply(put("a", 2, "blue")).has_value());  // it comes after the read
    settle(rig, "a", answer->sequences, answer->names, 1000);
    CHECK(tasks(rig) == "a b");
    answer = read_row(rig, "a", 1002);
    REQUIRE(answer);
    CHECK(names_of(*answer) == "blue red");  // what was in the view, and what comes
    CHECK(answer->sequences.size() == 2);
    settle(rig, "a", answer->sequences, {{kView, {{"blue", ""}}}}, 1002);
    CHECK(tasks(rig) == "b");
    answer = read_row(rig, "a", 1004);
    REQUIRE(answer);
    CHECK(names_of(*answer) == "blue");
  }
}

TEST_CASE("a row with many tasks is read a part at a time, and no name is lost") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_views(kTable, one_view(), kAfterView);
    constexpr int kWrites = 1500;
    for (int i = 1; i <= kWrites; ++i)
      REQUIRE(rig.apply(put("a", i, "c" + std::to_string(i))).has_value());
    std::set<std::string> seen;
    int64_t stamp_us = 1000;
    int reads = 0;
    while (!tasks(rig).empty()) {
      REQUIRE(++reads < 10);
      stamp_us += 2;
      const auto answer = read_row(rig, "a", stamp_us);
      REQUIRE(answer);
      CHECK(answer->sequences.size() < 600);
      CHECK(std::ranges::is_sorted(answer->sequences));
      for (const ViewName& name : answer->names.at(kView)) seen.insert(name.key_value);
      settle(rig, "a", answer->sequences, {{kView, {{"c" + std::to_string(kWrites), ""}}}},
             stamp_us);
    }
    CHECK(seen.size() == kWrites);
    CHECK(reads > 1);
    const auto last = read_row(rig, "a", stamp_us + 2);
    REQUIRE(last);
    CHECK(last->sequences.size() == 1);  // the one note
    CHECK(names_of(*last) == "c" + std::to_string(kWrites));
  }
}

TEST_CASE("a task that was asked for has its names until it is settled") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_views(kTable, one_view(), kAfterView);
    std::optional<Result<void>> done;
    rig.store->views().add_task(view_row("a"), {{kView, {{"found", ""}}}},
                                [&](Result<void> written) { done = std::move(written); });
    REQUIRE(rig.comes([&] { return done.has_value(); }));
    CHECK(tasks(rig) == "a");
    const auto answer = read_row(rig, "a", 1000);
    REQUIRE(answer);
    CHECK(names_of(*answer) == "found");
    settle(rig, "a", answer->sequences, {}, 1000);
    CHECK(tasks(rig).empty());
  }
}

TEST_CASE("a stamp is taken once, also across a restart; tasks and notes stay") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_views(kTable, one_view(), kAfterView);
    REQUIRE(rig.apply(put("a", 1, "red")).has_value());
    REQUIRE(read_row(rig, "a", 1000));
    auto again = read_row(rig, "a", 1000);
    REQUIRE(again);
    CHECK(again->seen == ViewStamp{1000});
    again = read_row(rig, "a", 998);
    REQUIRE(again);
    CHECK(again->seen);
    rig.close();
    rig.open();
    CHECK(tasks(rig) == "a");
    CHECK(read_row(rig, "a", 5000).error().code == ErrorCode::kNotFound);  // no schema is known
    rig.store->set_views(kTable, nullptr, kView);  // one from before the view
    CHECK(tasks(rig) == "a");
    rig.store->set_views(kTable, one_view(), kAfterView);
    again = read_row(rig, "a", 5000);
    REQUIRE(again);
    REQUIRE(again->seen);  // the bound was higher
    const auto above = read_row(rig, "a", again->seen->us + 2);
    REQUIRE(above);
    CHECK_FALSE(above->seen);
    CHECK(names_of(*above) == "red");
  }
}

TEST_CASE("a deletion of many rows becomes tasks of those that a view may have") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_views(kTable, one_view(), kAfterView);
    std::vector<ViewTaskEntry> ranges;
    rig.store->views().on_task([&](ViewTaskEntry entry) {
      if (entry.of_range) ranges.push_back(std::move(entry));
    });
    for (const char* row : {"a", "b", "c", "d"}) {
      REQUIRE(rig.apply(put(row, 1, "red")).has_value());
      const auto answer = read_row(rig, row, 1000 + 2 * row[0]);
      REQUIRE(answer);
      settle(rig, row, answer->sequences, answer->names, 1000 + 2 * row[0]);
    }
    CHECK(tasks(rig).empty());
    Mutation deletes = mutation_of(0, "p");
    deletes.range_tombstones.push_back({{"b", "d"}, {5, 5}});
    REQUIRE(rig.apply(deletes).has_value());
    CHECK(tasks(rig) == "b..");
    REQUIRE(ranges.size() == 1);
    std::optional<Result<bool>> expanded;
    rig.store->views().expand(ranges.front(),
                              [&](Result<bool> is_over) { expanded = std::move(is_over); });
    REQUIRE(rig.comes([&] { return expanded.has_value(); }));
    REQUIRE(expanded->has_value());
    CHECK(**expanded);
    CHECK(tasks(rig) == "b c");
    const auto gone = read_row(rig, "b", 9000);
    REQUIRE(gone);
    CHECK(names_of(*gone) == "red");
    const auto record = decode_row_record(gone->record);
    CHECK((gone->record.empty() || (record && record->cells.empty())));
  }
}

TEST_CASE("a view is built by tasks of the rows that are there, from where a restart left it") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (const char* row : {"a", "b", "c"}) REQUIRE(rig.apply(put(row, 1, "red")).has_value());
    rig.store->set_views(kTable, one_view(), kAfterView);
    CHECK_FALSE(rig.store->views().is_built(kTable, kView));
    build(rig);
    CHECK(rig.store->views().is_built(kTable, kView));
    CHECK(tasks(rig) == "a b c");
    rig.close();
    rig.open();
    rig.store->set_views(kTable, nullptr, kView);
    REQUIRE(
        rig.apply(put("d", 1, "red")).has_value());  // no task: the schema is older than the view
    CHECK(tasks(rig) == "a b c");
    rig.store->set_views(kTable, one_view(), kAfterView);
    CHECK_FALSE(rig.store->views().is_built(kTable, kView));  // so it is built anew
    build(rig);
    const auto answer = read_row(rig, "d", 10'000'000);
    REQUIRE(answer);
    CHECK(names_of(*answer) == "red");
  }
}

TEST_CASE("what is left of a dropped view's tasks goes, and a retired table's") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_views(kTable, one_view(), kAfterView);
    REQUIRE(rig.apply(put("a", 1, "red")).has_value());
    rig.store->set_views(kTable, nullptr, kAfterView);
    CHECK_FALSE(rig.store->views().has_views(kTable));
    REQUIRE(rig.apply(put("b", 1, "red")).has_value());  // no task
    std::optional<Result<void>> compacted;
    rig.store->flush([](const Result<void>&) {});
    rig.store->compact([&](Result<void> done) { compacted = std::move(done); });
    REQUIRE(rig.comes([&] { return compacted.has_value(); }));
    CHECK(tasks(rig).empty());
    rig.store->set_views(kTable, one_view(), kAfterView);
    REQUIRE(rig.apply(put("c", 1, "red")).has_value());
    CHECK(tasks(rig) == "c");
    rig.store->retire(kTable);
    CHECK_FALSE(rig.store->views().has_views(kTable));
  }
}

TEST_CASE("a read notes what its row names, if nothing else does") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    REQUIRE(rig.apply(put("a", 1, "red")).has_value());
    rig.store->set_views(kTable, one_view(), kAfterView);
    const auto first = read_row(rig, "a", 1000);
    REQUIRE(first);
    CHECK(names_of(*first) == "red");
    REQUIRE(first->sequences.size() == 1);
    CHECK(first->sequences.front() == kViewNotes + 1000);
    REQUIRE(rig.apply(put("a", 2, "blue")).has_value());
    const auto second = read_row(rig, "a", 1002);
    REQUIRE(second);
    CHECK(names_of(*second) == "blue red");
  }
}

}  // namespace
}  // namespace tetrad::storage
