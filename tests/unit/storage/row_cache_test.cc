// SPDX-License-Identifier: Apache-2.0
// The row cache: whatever is read through it is what lies below it, in every order of reads and
// writes; what is written, scanned once or too large is not kept; memory is bounded.
#include "storage/engine/row_cache.h"

#include <map>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

using Entries = std::map<Bytes, Bytes>;

/// A view of a map that counts how often it is moved over.
class MapView final : public KeyView {
 public:
  explicit MapView(const Entries& entries) : entries_(entries) {}
  Result<std::optional<BytesView>> get(BytesView) override {
    return fail(ErrorCode::kCorruption, "not asked for");
  }
  std::unique_ptr<KeyIterator> iterate(Bounds bounds) override;

  uint64_t moves = 0;
  uint64_t fails_after = UINT64_MAX;  // moves: then as a store that would have to read a file

 private:
  friend class MapIterator;
  const Entries& entries_;
};

class MapIterator final : public KeyIterator {
 public:
  MapIterator(MapView& view, KeyView::Bounds bounds) : view_(view), bounds_(std::move(bounds)) {}
  void seek(BytesView key) override {
    at_ = view_.entries_.lower_bound(std::max(Bytes(key), bounds_.start));
    show();
  }
  void seek_before(BytesView key) override {
    at_ = view_.entries_.lower_bound(std::min(Bytes(key), bounds_.end));
    step_back();
  }
  void next() override {
    ++at_;
    show();
  }
  void prev() override { step_back(); }
  Result<void> status() const override {
    if (failed_) return fail(ErrorCode::kCancelled, "not in memory");
    return {};
  }

 private:
  void step_back() {
    if (at_ == view_.entries_.begin()) {
      valid_ = false;
      return;
    }
    --at_;
    show();
  }
  void show() {
    failed_ = failed_ || ++view_.moves > view_.fails_after;
    valid_ = !failed_ && at_ != view_.entries_.end() && at_->first >= bounds_.start &&
             at_->first < bounds_.end;
    if (valid_) key_ = at_->first, value_ = at_->second;
  }

  MapView& view_;
  const KeyView::Bounds bounds_;
  Entries::const_iterator at_;
  bool failed_ = false;
};

std::unique_ptr<KeyIterator> MapView::iterate(Bounds bounds) {
  REQUIRE(bounds.partition_prefix_bytes == 0);
  return std::make_unique<MapIterator>(*this, std::move(bounds));
}

Bytes key_of(int partition, int row) {
  return fmt::format("partition {} row {:04}", partition, row);
}
constexpr size_t kPrefixBytes = 12;

KeyView::Bounds bounds_of(int partition, int from, int to, bool reversed = false) {
  return {key_of(partition, from), key_of(partition, to), true, reversed, kPrefixBytes};
}

/// At most `limit` keys and values in the order of the read.
std::vector<Bytes> walk(KeyIterator& it, const Bytes& place, bool reversed, size_t limit) {
  std::vector<Bytes> out;
  for (reversed ? it.seek_before(place) : it.seek(place); it.valid() && out.size() < limit;
       reversed ? it.prev() : it.next()) {
    out.push_back(fmt::format("{}={}", it.key(), it.value()));
    if (out.size() == limit) break;  // as a page that is full: it does not look further
  }
  return out;
}

std::vector<Bytes> read(RowCache& cache, MapView& view, RowCache::Moment moment, int partition,
                        int from, int to, size_t limit = 1000, bool reversed = false) {
  const auto it = cache.iterate(view, bounds_of(partition, from, to, reversed), moment);
  return walk(*it, key_of(partition, reversed ? to : from), reversed, limit);
}

Entries some_rows(int partitions, int rows) {
  Entries entries;
  for (int p = 0; p < partitions; ++p)
    for (int r = 0; r < rows; ++r) entries[key_of(p, r)] = fmt::format("value {}", r);
  return entries;
}

}  // namespace

TEST_CASE("the row cache keeps what is read twice, until it is written") {
  Entries entries = some_rows(2, 50);
  MapView view(entries);
  RowCache cache(1 << 20);
  const auto moves_of = [&](RowCache::Moment moment, int from, int to, size_t limit,
                            bool reversed = false) {
    const uint64_t before = view.moves;
    (void)read(cache, view, moment, 0, from, to, limit, reversed);
    return view.moves - before;
  };
  CHECK(moves_of({1, 1}, 0, 9999, 10) == 10);
  CHECK(cache.figures().runs == 0);  // once is not enough
  CHECK(moves_of({1, 1}, 0, 9999, 10) == 10);
  CHECK(cache.figures().runs == 1);
  CHECK(moves_of({1, 1}, 0, 9999, 10) == 0);
  CHECK(moves_of({1, 1}, 3, 9999, 5) == 0);
  CHECK(moves_of({1, 7}, 0, 8, 100) == 0);        // writes elsewhere
  CHECK(moves_of({1, 1}, 0, 8, 100, true) == 0);  // backwards
  CHECK(moves_of({1, 1}, 5, 9999, 10) == 5);      // goes on behind the run, which grows
  CHECK(moves_of({1, 1}, 0, 9999, 15) == 0);
  CHECK(moves_of({1, 1}, 0, 9999, 100) == 36);  // to the end, which is then known
  CHECK(moves_of({1, 1}, 0, 9999, 100) == 0);
  CHECK(cache.figures().runs == 1);

  entries[key_of(0, 3)] = "new";
  CHECK(read(cache, view, {2, 2}, 0, 3, 4) == std::vector<Bytes>{"partition 0 row 0003=new"});
  CHECK(cache.figures().runs == 0);
  CHECK(moves_of({2, 2}, 0, 9999, 10) == 10);  // the first read since has knocked
  CHECK(moves_of({2, 2}, 0, 9999, 10) == 0);
  // A mutation that is not in the store yet: what is read may be older than the next read's.
  CHECK(moves_of({3, 2}, 0, 9999, 10) == 10);
  CHECK(moves_of({3, 2}, 0, 9999, 10) == 10);
  CHECK(cache.figures().runs == 0);
}

TEST_CASE("the row cache goes on before a run when reading backwards") {
  const Entries entries = some_rows(1, 50);
  MapView view(entries);
  RowCache cache(1 << 20);
  for (int i = 0; i < 2; ++i) (void)read(cache, view, {}, 0, 0, 9999, 10, true);
  const uint64_t before = view.moves;
  CHECK(read(cache, view, {}, 0, 0, 9999, 20, true).size() == 20);
  CHECK(view.moves == before + 10);
  CHECK(read(cache, view, {}, 0, 30, 9999, 20).size() == 20);
  CHECK(view.moves == before + 10);
}

TEST_CASE("the row cache keeps nothing of a read that was given up") {
  const Entries entries = some_rows(1, 50);
  MapView view(entries);
  RowCache cache(1 << 20);
  (void)read(cache, view, {}, 0, 0, 9999, 10);
  view.fails_after = view.moves + 5;
  {
    const auto it = cache.iterate(view, bounds_of(0, 0, 9999), {});
    CHECK(walk(*it, key_of(0, 0), false, 10).size() == 5);
    CHECK_FALSE(it->status().has_value());
  }
  CHECK(cache.figures().runs == 0);
}

TEST_CASE("the row cache is bounded in all and for each partition") {
  Entries entries = some_rows(40, 20);
  for (int r = 0; r < 500; ++r) entries[key_of(90, r)] = Bytes(1000, 'x');
  MapView view(entries);
  RowCache cache(32 << 10);
  for (int p = 0; p < 40; ++p)
    for (int i = 0; i < 3; ++i) {
      REQUIRE(read(cache, view, {}, p, 0, 9999).size() == 20);
      REQUIRE(cache.figures().bytes <= 32 << 10);
    }
  CHECK(cache.figures().runs > 10);
  CHECK(cache.figures().runs < 40);
  // Half a megabyte of one partition: too much for this cache, and for one run of a larger one.
  for (int i = 0; i < 3; ++i) REQUIRE(read(cache, view, {}, 90, 0, 9999).size() == 500);
  CHECK(cache.figures().bytes <= 32 << 10);
  RowCache large(8 << 20);
  for (int i = 0; i < 4; ++i) REQUIRE(read(large, view, {}, 90, 0, 9999).size() == 500);
  CHECK(large.figures().bytes > 100 << 10);
  CHECK(large.figures().bytes < 600 << 10);
  large.forget("partition 9");
  CHECK(large.figures().bytes == 0);
  RowCache none(0);
  for (int i = 0; i < 3; ++i) REQUIRE(read(none, view, {}, 0, 0, 9999).size() == 20);
  CHECK(none.figures().runs == 0);
}

TEST_CASE("reads through the row cache are those of what lies below") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Random random(seed);
    Entries entries = some_rows(3, 30);
    MapView view(entries);
    RowCache cache(seed % 3 == 0 ? 4 << 10 : 1 << 20);
    uint64_t written = 0;
    std::array<uint64_t, 3> newest{};
    for (int step = 0; step < 400; ++step) {
      const int p = static_cast<int>(random.below(3));
      const auto row = [&] { return static_cast<int>(random.below(33)); };
      if (random.one_in(12)) {
        newest[static_cast<size_t>(p)] = ++written;
        if (random.one_in(3)) {
          entries.erase(key_of(p, row()));
        } else {
          entries[key_of(p, row())] = fmt::format("written {}", written);
        }
        continue;
      }
      const bool reversed = random.one_in(3);
      const int from = random.one_in(2) ? 0 : row(), to = random.one_in(2) ? 9999 : from + row();
      const uint64_t seen = written - (written > 0 && random.one_in(8) ? 1 : 0);
      const auto through = cache.iterate(view, bounds_of(p, from, to, reversed),
                                         {newest[static_cast<size_t>(p)], seen});
      MapView below(entries);
      KeyView::Bounds bounds = bounds_of(p, from, to, reversed);
      bounds.partition_prefix_bytes = 0;
      const auto direct = below.iterate(bounds);
      for (uint64_t seeks = 1 + random.below(2); seeks > 0; --seeks) {  // slices of one read
        const Bytes place = key_of(p, random.one_in(2) ? (reversed ? to : from) : from + row());
        const size_t limit = random.one_in(2) ? 1000 : 1 + random.below(12);
        INFO("seed " << seed << " step " << step);
        REQUIRE(walk(*through, place, reversed, limit) == walk(*direct, place, reversed, limit));
        REQUIRE(through->status().has_value());
      }
    }
    CHECK(cache.figures().hits > 20);
  }
}

TEST_CASE("a store answers slices from its row cache, never what was written since") {
  for (const CommitLogSync sync : {CommitLogSync::kPeriodic, CommitLogSync::kGroup}) {
    StoreOptions options = small_options();
    options.sync = sync;
    StoreRig rig(rocks_factory(options));
    const auto write = [&](BytesView row, int64_t timestamp) {
      REQUIRE(
          rig.apply(row_mutation(1, "p", row, encoded(record_of({value_cell(1, timestamp, "v")}))))
              .has_value());
    };
    for (const char* row : {"a", "b", "c"}) write(row, 1);
    const ReadCommand all = partition_read(1, "p");
    const std::string before = rig.read_keys(all);
    for (int i = 0; i < 4; ++i) CHECK(rig.read_keys(all) == before);
    CHECK(rig.store->statistics().row_cache_hits == 3);
    CHECK(rig.store->statistics().row_cache_bytes > 0);
    write("d", 1);
    const std::string after = rig.read_keys(all);
    CHECK(after != before);
    for (int i = 0; i < 3; ++i) CHECK(rig.read_keys(all) == after);
    CHECK(rig.store->statistics().row_cache_hits == 5);
    rig.store->retire(kTable);
    CHECK(rig.store->statistics().row_cache_bytes == 0);
  }
}

}  // namespace tetrad::storage
