// SPDX-License-Identifier: Apache-2.0
// Range tombstones of a partition: a read finds all that it needs, and looks at few others. Steps
// are counted, not time.
#include "storage/engine/tombstone_window.h"

#include <map>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "storage/engine/value_merge.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

/// Ordered keys; every movement counts.
class CountingView final : public KeyView {
 public:
  std::map<Bytes, Bytes> keys;
  uint64_t steps = 0;

  Result<std::optional<BytesView>> get(BytesView key) override {
    ++steps;
    const auto found = keys.find(Bytes(key));
    if (found == keys.end()) return std::nullopt;
    return BytesView(found->second);
  }
  std::unique_ptr<KeyIterator> iterate(Bounds bounds) override {
    return std::make_unique<Iterator>(*this, std::move(bounds));
  }
  void apply(const Mutation& m) {
    for (const auto& [place, set] : tombstone_values(m)) {
      Bytes key;
      append_storage_key(key, m.incarnation, m.position, m.partition_key, KeyKind::kRangeTombstone,
                         place);
      Bytes& stored = keys[key];
      std::vector<BytesView> values = {set};
      if (!stored.empty()) values.push_back(stored);
      Bytes joined;
      merge_values(KeyKind::kRangeTombstone, values, joined);
      stored = joined;
    }
    for (const RowChange& row : m.rows) {
      Bytes key;
      append_storage_key(key, m.incarnation, m.position, m.partition_key, KeyKind::kRow,
                         row.clustering_key);
      keys[key] = row.record;
    }
  }

 private:
  class Iterator final : public KeyIterator {
   public:
    Iterator(CountingView& view, Bounds bounds)
        : view_(view), bounds_(std::move(bounds)), at_(view.keys.end()) {}
    void seek(BytesView key) override {
      at_ = view_.keys.lower_bound(Bytes(std::max(key, BytesView(bounds_.start))));
      settle(at_ != view_.keys.end() && at_->first < bounds_.end);
    }
    void seek_before(BytesView key) override {
      at_ = view_.keys.lower_bound(Bytes(std::min(key, BytesView(bounds_.end))));
      prev();
    }
    void next() override {
      ++at_;
      settle(at_ != view_.keys.end() && at_->first < bounds_.end);
    }
    void prev() override { settle(at_ != view_.keys.begin() && (--at_)->first >= bounds_.start); }
    Result<void> status() const override { return {}; }

   private:
    void settle(bool inside) {
      ++view_.steps;
      valid_ = inside;
      if (!inside) return;
      key_ = at_->first;
      value_ = at_->second;
    }
    CountingView& view_;
    const Bounds bounds_;
    std::map<Bytes, Bytes>::iterator at_;
  };
};

Bytes number(uint32_t n) {  // as a clustering column of four bytes
  Bytes bytes("\x02");
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(n >> shift));
  return bytes;
}
Mutation deletes(BytesView start, BytesView end, int64_t at) {
  Mutation m = mutation_of(1, "p");
  m.range_tombstones.push_back({{Bytes(start), Bytes(end)}, {at, 5}});
  return m;
}
/// DELETE … WHERE order = n
Mutation deletes_order(uint32_t n, int64_t at) {
  return deletes(number(n), number(n) + "\xFF", at);
}

}  // namespace

TEST_CASE("a window shows the tombstones that all of them together would") {
  base::Random random(11);
  const char digits[] = {'\x00', '\x01', 'a', 'b', '\xFE'};
  const auto some_key = [&](size_t most) {
    Bytes key;
    for (uint64_t n = random.below(most + 1); n > 0; --n) key.push_back(digits[random.below(5)]);
    return key.empty() || key[0] != '\xFF' ? key : Bytes();
  };
  for (int round = 0; round < 3000; ++round) {
    CountingView view;
    std::vector<std::pair<Bytes, Bytes>> bounds;
    std::vector<RangeTombstone> tombstones;
    const bool scattered = random.one_in(4);
    for (uint64_t n = 1 + random.below(round % 7 == 0 ? 150 : 12); n > 0; --n) {
      Bytes start = some_key(4), end = random.one_in(2) ? start + "\xFF" : some_key(4);
      if (random.one_in(8)) end = "\xFF";
      const Deletion deletion{static_cast<int64_t>(random.below(20)), 5};
      if (start >= end) continue;
      tombstones.push_back({{start, end}, deletion});
      if (!scattered) {
        view.apply(deletes(start, end, deletion.timestamp_us));
        continue;
      }
      // As format 1 stored them.
      Bytes key, value, joined;
      const Mutation m = mutation_of(1, "p");
      append_storage_key(key, m.incarnation, m.position, m.partition_key, KeyKind::kRangeTombstone,
                         start);
      encode_tombstone_set({{end, deletion}}, value);
      std::vector<BytesView> values = {value};
      if (view.keys.contains(key)) values.push_back(view.keys[key]);
      merge_values(KeyKind::kRangeTombstone, values, joined);
      view.keys[key] = joined;
    }
    std::vector<RangeTombstoneView> all;
    for (const RangeTombstone& t : tombstones)
      all.push_back({t.range.start, t.range.end, t.deletion});
    const Deletion partition =
        random.one_in(3) ? Deletion{static_cast<int64_t>(random.below(20)), 5} : Deletion{};
    const TombstoneSteps wanted = make_steps(all, partition);
    Bytes prefix;
    const Mutation m = mutation_of(1, "p");
    append_partition_prefix(prefix, m.incarnation, m.position, m.partition_key);
    TableContents contents;
    contents.scattered_tombstones = scattered;
    const bool whole = random.one_in(2), reversed = random.one_in(2);
    TombstoneWindow window(view, prefix, contents, partition, whole);
    const Bytes start = some_key(3), end = random.one_in(3) ? Bytes("\xFF") : some_key(4);
    if (start >= end) continue;
    window.begin(start, end, reversed);
    std::vector<Bytes> keys;
    for (int i = 0; i < 30; ++i)
      if (Bytes key = some_key(5); start <= key && key < end) keys.push_back(std::move(key));
    std::ranges::sort(keys);
    if (reversed) std::ranges::reverse(keys);
    for (const Bytes& key : keys) {
      const auto got = window.at(key);
      REQUIRE(got.has_value());
      REQUIRE(*got == deletion_at(wanted, key));
    }
    REQUIRE(window.finish().has_value());
    if (!whole) continue;
    TombstoneSteps cut_wanted, cut_got;
    append_cut_steps(wanted, start, end, cut_wanted);
    append_cut_steps(window.steps(), start, end, cut_got);
    REQUIRE(cut_got.size() == cut_wanted.size());
    for (size_t i = 0; i < cut_got.size(); ++i) {
      CHECK(cut_got[i].start == cut_wanted[i].start);
      CHECK(cut_got[i].end == cut_wanted[i].end);
      CHECK(cut_got[i].deletion == cut_wanted[i].deletion);
    }
  }
}

TEST_CASE("a read looks at few of a partition's 20,000 range tombstones") {
  CountingView view;
  for (uint32_t n = 0; n < 20'000; ++n) {
    view.apply(deletes_order(2 * n, 20));
    view.apply(row_mutation(1, "p", number(2 * n + 1) + number(0), inserted(10, "v")));
  }
  const auto steps_of = [&](const ReadCommand& command) {
    view.steps = 0;
    const auto result = read_partitions(view, command, TableContents{}, 1'000'000);
    REQUIRE(result.has_value());
    CHECK(result->live_row_count > 0);
    return view.steps;
  };
  const auto check = [&] {
    ReadCommand one = partition_read(1, "p");
    one.rows = {number(20'001) + number(0)};
    CHECK(steps_of(one) < 20);
    ReadCommand slice = partition_read(1, "p");
    slice.clustering_ranges = {{number(30'001), number(30'001) + "\xFF"}};
    CHECK(steps_of(slice) < 20);
    slice.live_only = false;
    CHECK(steps_of(slice) < 20);
    ReadCommand first = partition_read(1, "p");
    first.row_limit = 3;
    CHECK(steps_of(first) < 40);
    first.reversed = true;
    CHECK(steps_of(first) < 40);
    first.reversed = false;
    first.row_limit = 100;
    CHECK(steps_of(first) < 1500);
    first.clustering_ranges = {{number(100), number(120)}};
    first.live_only = false;
    CHECK(steps_of(first) < 120);
  };
  check();
  // Neither a range over all, nor many that hold no key in common, hide the others from view.
  view.apply(deletes(number(0), number(39'000), 1));
  view.apply(deletes("", number(500) + "\xFF", 2));
  for (uint32_t n = 0; n < 20'000; ++n)
    view.apply(deletes(number(2 * n), number(2 * n + 1), 3));  // n inclusive to n + 1 exclusive
  const auto more = [&] {
    ReadCommand one = partition_read(1, "p");
    one.rows = {number(20'001) + number(0)};
    return steps_of(one);
  };
  CHECK(more() < 300);
}

TEST_CASE("a store reads past 20,000 range tombstones of a partition on the loop") {
  StoreRig rig(rocks_factory());
  Mutation m = mutation_of(1, "p");
  for (uint32_t n = 0; n < 20'000; ++n)
    m.range_tombstones.push_back({{number(n), number(n) + "\xFF"}, {20, 5}});
  REQUIRE(rig.apply(m).has_value());
  REQUIRE(
      rig.apply(row_mutation(1, "p", number(15'000) + number(1), inserted(10, "v"))).has_value());
  REQUIRE(
      rig.apply(row_mutation(1, "p", number(15'000) + number(2), inserted(30, "v"))).has_value());
  REQUIRE(rig.apply(row_mutation(2, "q", number(1), inserted(10, "v"))).has_value());
  for (int flushed = 0; flushed < 2; ++flushed) {
    ReadCommand one = partition_read(1, "p");
    one.clustering_ranges = {{number(15'000), number(15'000) + "\xFF"}};
    CollectingSink sink;
    const auto end = rig.store->read_here(one, sink);
    REQUIRE(end.has_value());
    REQUIRE(end->has_value());
    CHECK(keys_of(sink.result) == "p/" + number(15'000) + number(2));
    CHECK(rig.read(partition_read(1, "p"))->live_row_count == 1);
    CHECK(rig.read(range_read())->live_row_count == 2);
    REQUIRE(rig.flush().has_value());
    rig.close();
    rig.open();
    (void)rig.read(range_read());  // the files' blocks are in memory again
    (void)rig.read(one);
  }
}

}  // namespace tetrad::storage
