// SPDX-License-Identifier: Apache-2.0
// Claims (rule 23): written with their rows, looked up, built, and dropped when no row bears them out.
#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "storage/index/claim.h"
#include "tests/support/column_claims.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

using tests::ColumnClaims;
using tests::component_of;

constexpr uint16_t kIndex = 3;
constexpr uint32_t kStaticColumn = 9;

ClaimMakerPtr on_column_1() {
  return std::make_shared<ColumnClaims>(std::map<uint16_t, uint32_t>{{kIndex, 1}});
}

ReadCommand index_read(BytesView lower, std::optional<BytesView> upper = {}) {
  ReadCommand command = range_read();
  command.by_index = IndexBounds{};
  command.by_index->index_id = kIndex;
  command.by_index->lower = component_of(lower);
  command.by_index->upper = component_of(upper.value_or(lower));
  return command;
}

IndexBuildPage build_page(StoreRig& rig, uint64_t bytes_max = 1 << 20) {
  std::optional<Result<IndexBuildPage>> answer;
  rig.store->build_index(kTable, kIndex, bytes_max,
                         [&](Result<IndexBuildPage> page) { answer = std::move(page); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  if (!*answer) FAIL(answer->error().message);
  return **answer;
}

void build(StoreRig& rig) {
  for (int i = 0; i < 1000; ++i)
    if (build_page(rig).built) return;
  FAIL("a build without an end");
}

ClaimSweepPage sweep(StoreRig& rig, uint64_t claims_max = 1024,
                     std::function<bool(RingPosition, uint64_t, uint64_t)> may_drop = nullptr) {
  ClaimSweepPage all;
  Bytes after;
  for (int i = 0; i < 1000; ++i) {
    std::optional<Result<ClaimSweepPage>> answer;
    rig.store->sweep_claims({kTable, kIndex, claims_max, may_drop}, after,
                            [&](Result<ClaimSweepPage> page) { answer = std::move(page); });
    REQUIRE(rig.comes([&] { return answer.has_value(); }));
    if (!*answer) FAIL(answer->error().message);
    all.claims += (*answer)->claims;
    all.disproved += (*answer)->disproved;
    all.dropped += (*answer)->dropped;
    if ((*answer)->exhausted) return all;
    after = (*answer)->next;
  }
  FAIL("a sweep without an end");
  return all;
}

/// All pages of a read, each of so many rows.
std::string paged(StoreRig& rig, ReadCommand command, uint32_t rows) {
  std::string text;
  command.row_limit = rows;
  for (int i = 0; i < 1000; ++i) {
    const auto page = rig.read(command);
    if (!page) return "error: " + page.error().message;
    const std::string keys = keys_of(*page);
    if (!keys.empty()) text += (text.empty() ? "" : " ") + keys;
    if (page->exhausted) return text;
    const auto& before = command.resume_after;
    const bool goes_on = before && before->partition_key == page->complete_up_to.partition_key;
    command.partition_rows_done = goes_on ? command.partition_rows_done : 0;
    if (!page->partitions.empty() &&
        page->partitions.back().partition_key == page->complete_up_to.partition_key)
      command.partition_rows_done += static_cast<uint32_t>(page->partitions.back().rows.size());
    command.resume_after = page->complete_up_to;
  }
  return "pages without an end";
}

std::vector<std::shared_ptr<StoreFactory>> both() { return {rocks_factory(), memory_factory()}; }

void put(StoreRig& rig, int64_t token, BytesView partition, BytesView row, int64_t timestamp,
         BytesView value) {
  REQUIRE(rig.apply(row_mutation(token, partition, row, inserted(timestamp, value))).has_value());
}

}  // namespace

TEST_CASE("a claim's key is as its format says") {
  ClaimView claim;
  claim.incarnation = {7};
  claim.index_id = 3;
  claim.value = "ab";
  claim.position = {-2, 3};
  claim.partition_key = "pk";
  claim.clustering_key = "ck";
  Mutation mutation = mutation_of(0, "pk");
  mutation.position = {-2, 3};
  mutation.rows.push_back({"ck", inserted(5, "ab"), true});
  class Plain final : public ClaimMaker {
   public:
    const std::vector<uint16_t>& index_ids() const override { return ids_; }
    uint16_t next_index_id() const override { return 4; }
    void of_partition(BytesView, BytesView, bool, int64_t, ClaimSink&) const override {}
    void of_row(BytesView, BytesView, int64_t, ClaimSink& sink) const override {
      sink.take(3, "ab");
    }
    std::vector<uint16_t> ids_{3};
  };
  Claims claims;
  add_claims(Plain(), mutation, claims);
  REQUIRE(claims.size() == 1);
  CHECK(base::to_hex(claims[0].first) ==
        "fffffffe0000000700036162"
        "7ffffffffffffffe00000000000000030002706b02636b");
  CHECK(base::to_hex(claims[0].second) == "0002");
  const auto decoded = decode_claim(claims[0].first, claims[0].second);
  REQUIRE(decoded.has_value());
  CHECK(decoded->value == "ab");
  CHECK(decoded->position == claim.position);
  CHECK(decoded->partition_key == "pk");
  CHECK_FALSE(decoded->of_partition);
  CHECK(decoded->clustering_key == "ck");
  for (size_t size = 0; size < claims[0].first.size() - 2; ++size)
    CHECK_FALSE(decode_claim(BytesView(claims[0].first).substr(0, size), claims[0].second));
}

TEST_CASE("rows are found by a value, in the order of the ring") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    put(rig, 9, "c", "x", 10, "red");
    put(rig, -4, "a", "x", 10, "red");
    put(rig, 3, "b", "x", 10, "blue");
    put(rig, 3, "b", "y", 10, "red");
    put(rig, 3, "b", "z", 10, "green");
    CHECK(rig.read_keys(index_read("red")) == "a/x b/y c/x");
    CHECK(rig.read_keys(index_read("green")) == "b/z");
    CHECK(rig.read_keys(index_read("re")) == "");
    CHECK(rig.read_keys(index_read("blue", "green")) == "b/x b/z");
    CHECK(rig.read_keys(index_read("a", "z")) == "a/x b/x b/y b/z c/x");
    ReadCommand open = index_read("green");
    open.by_index->upper.reset();
    CHECK(rig.read_keys(open) == "a/x b/y b/z c/x");
    for (uint32_t rows = 1; rows < 4; ++rows) {
      CHECK(paged(rig, index_read("red"), rows) == "a/x b/y c/x");
      CHECK(paged(rig, index_read("a", "z"), rows) == "a/x b/x b/y b/z c/x");
    }
    ReadCommand one = partition_read(3, "b");
    one.by_index = index_read("a", "z").by_index;
    CHECK(rig.read_keys(one) == "b/x b/y b/z");
    CHECK(paged(rig, one, 1) == "b/x b/y b/z");
    one.reversed = true;
    CHECK(paged(rig, one, 2) == "b/z b/y b/x");
    one.clustering_ranges = {{"x", "z"}};
    CHECK(paged(rig, one, 1) == "b/y b/x");
    REQUIRE(rig.flush().has_value());
    CHECK(rig.read_keys(index_read("red")) == "a/x b/y c/x");
    REQUIRE(rig.compact().has_value());
    CHECK(rig.read_keys(index_read("red")) == "a/x b/y c/x");
    CHECK(rig.read_keys(range_read()) == "a/x b/x b/y b/z c/x");
  }
}

TEST_CASE("every way into a store leaves claims") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    put(rig, 1, "a", "x", 10, "v");
    REQUIRE(rig.apply(row_mutation(2, "b", "x", inserted(10, "v")), true).has_value());
    REQUIRE(rig.apply(row_mutation(3, "c", "x", encoded(record_of({value_cell(1, 10, "v")})), true))
                .has_value());
    PaxosRegisters registers;
    registers.promised.us = 5;
    const Mutation rows = row_mutation(4, "d", "x", inserted(10, "v"));
    std::optional<Result<void>> answer;
    rig.store->write_registers({{kTable, position_of(4), "d"}, registers, &rows}, {},
                               [&](Result<void> result) { answer = std::move(result); });
    REQUIRE(rig.comes([&] { return answer.has_value(); }));
    CHECK(rig.read_keys(index_read("v")) == "a/x b/x c/x d/x");
    rig.close();
    rig.open();
    rig.store->set_indexes(kTable, on_column_1());
    CHECK(rig.read_keys(index_read("v")) == "a/x b/x c/x d/x");
  }
}

TEST_CASE("a row that has another value is named, not answered") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    put(rig, 1, "a", "x", 10, "old");
    put(rig, 1, "a", "y", 10, "old");
    put(rig, 1, "a", "x", 20, "new");
    put(rig, 2, "b", "x", 10, "old");
    Mutation gone = row_mutation(2, "b", "x", encoded(record_of({}, {}, {20, kNow_s})));
    REQUIRE(rig.apply(gone).has_value());
    for (const bool live_only : {true, false}) {
      ReadCommand command = index_read("old");
      command.live_only = live_only;
      CHECK(rig.read_keys(command) == "a/y");
      command.by_index->names_only = true;
      CHECK(rig.read_keys(command) == "a/x a/y b/x");
    }
    ReadCommand kept = index_read("old");
    kept.live_only = false;
    kept.by_index->keeps_disproved = true;
    CHECK(rig.read_keys(kept) == "a/x a/y b/x");
    CHECK(rig.read_keys(index_read("new")) == "a/x");
    CHECK(paged(rig, index_read("old"), 1) == "a/y");
  }
}

TEST_CASE("a claim of a static column names its partition") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, std::make_shared<ColumnClaims>(
                                       std::map<uint16_t, uint32_t>{{kIndex, kStaticColumn}}));
    build(rig);
    put(rig, 1, "a", "x", 10, "1");
    put(rig, 1, "a", "y", 10, "2");
    Mutation header = mutation_of(1, "a");
    header.header = encoded(record_of({value_cell(kStaticColumn, 10, "s")}));
    REQUIRE(rig.apply(header).has_value());
    put(rig, 2, "b", "x", 10, "1");
    CHECK(rig.read_keys(index_read("s")) == "a/x a/y");
    CHECK(paged(rig, index_read("s"), 1) == "a/x a/y");
    ReadCommand names = index_read("s");
    names.by_index->names_only = true;
    CHECK(rig.read_keys(names) == "a/-");
  }
}

TEST_CASE("an index is built of the rows that are there, and answers no read before") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (int i = 0; i < 40; ++i)
      put(rig, i, fmt::format("p{:02}", i), "x", 10, i % 2 == 0 ? "even" : "odd");
    rig.store->set_indexes(kTable, on_column_1());
    CHECK(rig.read(index_read("even")).error().code == ErrorCode::kIndexNotBuilt);
    put(rig, 50, "p50", "x", 10, "even");  // while it is built
    int pages = 1;
    for (; !build_page(rig, 300).built; ++pages) {
      CHECK_FALSE(rig.store->is_built(kTable, kIndex));
      if (pages != 2) continue;
      rig.close();
      rig.open();
      rig.store->set_indexes(kTable, on_column_1());
      CHECK(rig.read(index_read("even")).error().code == ErrorCode::kIndexNotBuilt);
    }
    CHECK(pages > 3);
    const auto found = rig.read(index_read("even"));
    REQUIRE(found.has_value());
    CHECK(found->live_row_count == 21);
    rig.close();
    rig.open();
    rig.store->set_indexes(kTable, on_column_1());
    CHECK(rig.store->is_built(kTable, kIndex));
    CHECK(rig.read(index_read("odd"))->live_row_count == 20);
  }
}

TEST_CASE("rows that came while the index was not known end its build") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    put(rig, 1, "a", "x", 10, "v");
    build(rig);
    rig.close();
    rig.open();
    put(rig, 2, "b", "x", 10, "v");  // the metadata is older than the last life's
    rig.store->set_indexes(kTable, on_column_1());
    CHECK_FALSE(rig.store->is_built(kTable, kIndex));
    build(rig);
    CHECK(rig.read_keys(index_read("v")) == "a/x b/x");
    rig.close();
    rig.open();
    rig.store->set_indexes(kTable, on_column_1());
    CHECK(rig.store->is_built(kTable, kIndex));
  }
}

TEST_CASE("claims of a dropped index and of a table that is gone go") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    put(rig, 1, "a", "x", 10, "v");
    REQUIRE(rig.flush().has_value());
    const auto none = std::make_shared<ColumnClaims>(std::map<uint16_t, uint32_t>{}, kIndex + 1);
    rig.store->set_indexes(kTable, none);
    CHECK(rig.read(index_read("v")).error().code == ErrorCode::kIndexNotBuilt);
    REQUIRE(rig.compact().has_value());
    CHECK(rig.read_keys(range_read()) == "a/x");
    // Only in a test a number serves again: nothing of the first use is left.
    rig.store->set_indexes(kTable, on_column_1());
    put(rig, 2, "b", "x", 10, "w");
    CHECK(sweep(rig).claims == 1);
    rig.store->retire(kTable);
    CHECK(rig.read(index_read("w")).error().code == ErrorCode::kStaleSchema);
  }
}

TEST_CASE("claims go when no row bears them out, and only then") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    for (int i = 0; i < 10; ++i) put(rig, i, fmt::format("p{}", i), "x", 10, "old");
    for (int i = 0; i < 5; ++i) put(rig, i, fmt::format("p{}", i), "x", 20, "new");
    // Expired, but not purged: other clocks may still see it.
    const Bytes expired = encoded(record_of({value_cell(1, 30, "ttl", 5, kNow_s - 100)}));
    REQUIRE(rig.apply(row_mutation(20, "e", "x", expired)).has_value());
    const ClaimSweepPage kept =
        sweep(rig, 3, [](RingPosition, uint64_t, uint64_t) { return false; });
    CHECK(kept.claims == 16);
    CHECK(kept.disproved == 5);
    CHECK(kept.dropped == 0);
    const ClaimSweepPage swept = sweep(rig, 3);
    CHECK(swept.dropped == 5);
    CHECK(sweep(rig).claims == 11);
    ReadCommand names = index_read("old");
    names.by_index->names_only = true;
    CHECK(rig.read_keys(names) == "p5/x p6/x p7/x p8/x p9/x");
    CHECK(rig.read_keys(index_read("new")) == "p0/x p1/x p2/x p3/x p4/x");
  }
}

TEST_CASE("a claim stays when its row is written between the look and the drop") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.store->set_indexes(kTable, on_column_1());
    build(rig);
    put(rig, 1, "a", "x", 10, "v");
    put(rig, 1, "a", "x", 20, "w");
    std::optional<Result<ClaimSweepPage>> answer;
    // The write comes back to "v" in the turn that drops: the claim that it puts must stay.
    const auto may_drop = [&](RingPosition, uint64_t, uint64_t) { return true; };
    rig.store->sweep_claims({kTable, kIndex, 100, may_drop}, "",
                            [&](Result<ClaimSweepPage> page) { answer = std::move(page); });
    bool written = false;
    rig.store->apply(row_mutation(1, "a", "x", inserted(30, "v")),
                     [&](Result<void>) { written = true; });
    REQUIRE(rig.comes([&] { return answer.has_value() && written; }));
    CHECK(rig.read_keys(index_read("v")) == "a/x");
    put(rig, 1, "a", "x", 40, "w");
    sweep(rig);
    CHECK(rig.read_keys(index_read("w")) == "a/x");
    CHECK(sweep(rig).claims == 1);
  }
}

// Random rows, values and deletions; pages of every size. The answer is a filter over a scan.
TEST_CASE("an index answers what a filter over the table answers") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Random random(seed);
    StoreOptions options = small_options();
    options.read_keys_max = 1 + random.below(12);
    StoreRig rig(seed % 2 == 0 ? rocks_factory(options) : memory_factory(options));
    const bool late = random.one_in(2);
    if (!late) {
      rig.store->set_indexes(kTable, on_column_1());
      build(rig);
    }
    const auto value = [&] { return fmt::format("v{}", random.below(4)); };
    for (int i = 0; i < 120; ++i) {
      const int64_t token = static_cast<int64_t>(random.below(5));
      const std::string partition = fmt::format("p{}", token);
      const std::string row(1, static_cast<char>('a' + random.below(6)));
      const auto timestamp = static_cast<int64_t>(random.below(200));
      Mutation m = mutation_of(token, partition);
      if (random.one_in(8)) {
        m.range_tombstones.push_back({{row, "\xFF"}, {timestamp, kNow_s}});
      } else if (random.one_in(8)) {
        m.rows.push_back({row, encoded(record_of({}, {}, {timestamp, kNow_s})), false});
      } else if (random.one_in(8)) {
        m.rows.push_back({row, encoded(record_of({tombstone_cell(1, timestamp)})), false});
      } else {
        const std::string v = value();
        const bool ttl = random.one_in(5);
        m.rows.push_back(
            {row,
             encoded(record_of({value_cell(1, timestamp, v, ttl ? 10 : 0,
                                           ttl ? kNow_s + (random.one_in(2) ? 5 : -5) : 0)},
                               {timestamp, 0, 0})),
             random.one_in(2)});
      }
      REQUIRE(rig.apply(m, random.one_in(3)).has_value());
      if (i == 60 && late) rig.store->set_indexes(kTable, on_column_1());
      if (i == 80) build(rig);
      if (i > 80 && random.one_in(10)) sweep(rig, 1 + random.below(5));
      if (random.one_in(40)) REQUIRE(rig.flush().has_value());
    }
    ReadCommand scan = range_read();
    std::set<std::string> expected[4];
    for (bool all = false; !all;) {
      const auto page = rig.read(scan);
      REQUIRE(page.has_value());
      for (const PartitionData& p : page->partitions)
        for (const RowData& row : p.rows) {
          const auto record = decode_row_record(row.record);
          for (const Cell& cell : record->cells)
            expected[cell.value[1] - '0'].insert(std::string(p.partition_key) + "/" +
                                                 std::string(row.clustering_key));
        }
      all = page->exhausted;
      scan.resume_after = page->complete_up_to;
    }
    const auto joined = [](const std::set<std::string>& keys) {
      std::string text;
      for (const std::string& key : keys) text += (text.empty() ? "" : " ") + key;
      return text;
    };
    INFO("seed " << seed);
    for (int v = 0; v < 4; ++v)
      for (const uint32_t rows : {1u, 3u, 1000u})
        CHECK(paged(rig, index_read(fmt::format("v{}", v)), rows) == joined(expected[v]));
    std::set<std::string> middle = expected[1];
    middle.insert(expected[2].begin(), expected[2].end());
    for (const uint32_t rows : {1u, 3u, 1000u})
      CHECK(paged(rig, index_read("v1", "v2"), rows) == joined(middle));
  }
}

}  // namespace tetrad::storage
