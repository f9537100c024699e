// SPDX-License-Identifier: Apache-2.0
// The sweep (rules 17 and 18): what goes, what stays, and that nothing that was hidden shows again.
#include <catch2/catch.hpp>

#include "base/random.h"
#include "storage/engine/tombstone_filter.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kHorizon_s = kNow_s - 1000;
constexpr int64_t kOld_s = kHorizon_s - 10, kFresh_s = kHorizon_s + 10;

SweepCommand sweep_command(uint64_t keys_max = 4096) {
  SweepCommand command;
  command.incarnation = kTable;
  command.bound = {kHorizon_s, kHorizon_s, kNow_s - kExpiredValueMargin_s};
  command.keys_max = keys_max;
  return command;
}

SweepPage sweep_one(StoreRig& rig, const SweepCommand& command, const SweepPlace& from) {
  std::optional<Result<SweepPage>> answer;
  rig.store->sweep(command, from, [&](Result<SweepPage> page) { answer = std::move(page); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  REQUIRE(answer->has_value());
  return **answer;
}

SweepPage sweep(StoreRig& rig, const SweepCommand& command = sweep_command()) {
  SweepPage all;
  SweepPlace from;
  for (int i = 0; i < 1000; ++i) {
    const SweepPage page = sweep_one(rig, command, from);
    all.keys += page.keys;
    all.changed += page.changed;
    all.erased += page.erased;
    all.skipped += page.skipped;
    all.tombstones += page.tombstones;
    all.oldest_left_s = std::min(all.oldest_left_s, page.oldest_left_s);
    if (page.exhausted) return all;
    from = page.next;
  }
  FAIL("a sweep without an end");
  return all;
}

/// What a whole sweep tells of: "key bytes/tombstones; " each.
std::string told(StoreRig& rig, PartitionExtent beyond, uint64_t keys_max) {
  SweepCommand command = sweep_command(keys_max);
  command.told_beyond = beyond;
  std::string text;
  SweepPlace from;
  for (int i = 0; i < 1000; ++i) {
    const SweepPage page = sweep_one(rig, command, from);
    for (const LargePartition& large : page.large)
      text += fmt::format("{} {}/{}; ", large.key, large.extent.bytes, large.extent.tombstones);
    CHECK(page.large_left_out == 0);
    if (page.exhausted) return text;
    from = page.next;
  }
  return "a sweep without an end";
}

/// Everything the store has, as text.
std::string stored(StoreRig& rig) {
  const auto page = rig.export_range({}, "", 1 << 20);
  REQUIRE(page.has_value());
  std::string text;
  for (const Mutation& m : page->mutations) {
    text += std::string(m.partition_key) + ":";
    if (!m.header.empty()) text += " header";
    for (const RangeTombstone& t : m.range_tombstones)
      text += " [" + std::string(t.range.start) + "," + std::string(t.range.end) + ")";
    for (const RowChange& row : m.rows) text += " " + std::string(row.clustering_key);
    text += "; ";
  }
  return text;
}

Mutation row_deletion(BytesView key, BytesView row, Deletion deletion) {
  return row_mutation(1, key, row, encoded(record_of({}, {}, deletion)));
}
Mutation range_deletion(BytesView key, BytesView start, BytesView end, Deletion deletion) {
  Mutation m = mutation_of(1, key);
  m.range_tombstones.push_back({{Bytes(start), Bytes(end)}, deletion});
  return m;
}
Mutation partition_deletion(BytesView key, Deletion deletion) {
  Mutation m = mutation_of(1, key);
  m.header = encoded(record_of({}, {}, deletion));
  return m;
}
void apply(StoreRig& rig, const Mutation& m) { REQUIRE(rig.apply(m).has_value()); }

const auto kFactories = {+[] { return rocks_factory(); }, +[] { return memory_factory(); }};

}  // namespace

TEST_CASE("a sweep drops what is dead since before the horizon, and that only") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    for (const char* row : {"a", "b", "c", "d"})
      apply(rig, row_mutation(1, "p", row, inserted(10, "v"), true));
    apply(rig, row_deletion("p", "a", {20, kOld_s}));
    apply(rig, row_deletion("p", "b", {20, kFresh_s}));
    apply(rig, row_mutation(1, "p", "c", encoded(record_of({tombstone_cell(1, 20, kOld_s)}))));
    // Made long ago, with a timestamp of the future.
    apply(rig, row_deletion("p", "d", {(kNow_s + 100) * 1'000'000, kOld_s}));
    const SweepPage page = sweep(rig);
    CHECK(stored(rig) == "p: b c d; ");
    CHECK(page.erased == 1);
    CHECK(page.changed == 1);
    CHECK(page.tombstones == 2);
    CHECK(page.oldest_left_s == kFresh_s);
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/c");
    CHECK(sweep(rig).changed == 0);
    // The deletions that stayed do what they did.
    apply(rig, row_mutation(1, "p", "b", inserted(15, "late")));
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/c");
  }
}

TEST_CASE("what has expired goes once it was written before the horizon and ended long ago") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    const auto expiring = [&](BytesView row, int64_t written_s, int32_t ttl_s) {
      apply(rig, row_mutation(1, "p", row,
                              encoded(record_of({value_cell(1, 10, "v", ttl_s, written_s + ttl_s)},
                                                {10, ttl_s, written_s + ttl_s}))));
    };
    expiring("a", kOld_s - 5000, 100);
    expiring("b", kOld_s - 10, 100);  // not for long
    expiring("c", kOld_s, 100'000);   // not yet
    expiring("d", kFresh_s, 5);       // others may not have it
    CHECK(sweep(rig).tombstones == 2);
    CHECK(stored(rig) == "p: b c d; ");
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/c");
  }
}

TEST_CASE("gc_grace keeps a tombstone longer than the horizon does") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    apply(rig, row_deletion("p", "a", {20, kOld_s}));
    apply(rig, row_deletion("p", "b", {20, kOld_s - 500}));
    SweepCommand command = sweep_command();
    command.bound.deleted_before_s = kOld_s - 100;
    sweep(rig, command);
    CHECK(stored(rig) == "p: a; ");
  }
}

TEST_CASE("partition and range tombstones go with the last of what they hide") {
  for (const auto& factory : kFactories) {
    for (const uint64_t keys_max : {1, 2, 3, 5, 100}) {
      StoreRig rig(factory());
      for (const char* key : {"p", "q", "r"})
        for (const char* row : {"a", "b", "c", "d", "e"})
          apply(rig, row_mutation(1, key, row, inserted(10, "v"), true));
      apply(rig, partition_deletion("p", {20, kOld_s}));
      apply(rig, row_mutation(1, "p", "d", inserted(30, "new")));
      apply(rig, range_deletion("q", "b", "d", {20, kOld_s}));
      apply(rig, range_deletion("q", "b", "c", {20, kFresh_s}));
      apply(rig, partition_deletion("r", {20, kFresh_s}));
      SweepPlace from;
      const SweepCommand command = sweep_command(keys_max);
      while (true) {
        CHECK(rig.read_keys(range_read()) == "p/d q/a q/d q/e");
        const SweepPage page = sweep_one(rig, command, from);
        if (page.exhausted) break;
        from = page.next;
      }
      CHECK(stored(rig) == "p: d; q: [b,c) a d e; r: header; ");
      CHECK(rig.read_keys(range_read()) == "p/d q/a q/d q/e");
    }
  }
}

TEST_CASE("a sweep tells of partitions by what it leaves of them, however long its pages are") {
  for (const auto& factory : kFactories) {
    std::string first;
    for (const uint64_t keys_max : {1, 2, 3, 5, 100}) {
      StoreRig rig(factory());
      for (const char* key : {"p", "q", "r"})
        for (const char* row : {"a", "b", "c", "d", "e"})
          apply(rig, row_mutation(1, key, row, inserted(10, "v"), true));
      for (const char* row : {"a", "b", "c"})
        apply(rig, row_mutation(1, "s", row, inserted(10, Bytes(1000, 'v')), true));
      apply(rig, partition_deletion("p", {20, kOld_s}));
      apply(rig, row_mutation(1, "p", "d", inserted(30, "new")));
      apply(rig, range_deletion("q", "b", "d", {20, kOld_s}));
      apply(rig, range_deletion("q", "b", "c", {20, kFresh_s}));
      apply(rig, row_deletion("q", "x", {20, kFresh_s}));
      apply(rig, row_mutation(1, "q", "y", encoded(record_of({tombstone_cell(1, 20, kFresh_s)}))));
      apply(rig, partition_deletion("r", {20, kFresh_s}));
      CHECK(told(rig, {}, keys_max).empty());
      const std::string all = told(rig, {1, 0}, keys_max);
      if (first.empty()) first = all;
      CHECK(all == first);
      CHECK(told(rig, {1, 0}, keys_max) == first);  // and by what is there
      INFO(all);
      CHECK(all.find("/0; q ") != std::string::npos);
      CHECK(all.find("/3; r ") != std::string::npos);
      CHECK(all.find("/1; s 3") != std::string::npos);
      CHECK(told(rig, {3000, 0}, keys_max).starts_with("s 3"));
      CHECK(told(rig, {4000, 0}, keys_max).empty());
      CHECK(told(rig, {0, 2}, keys_max).starts_with("q "));
      CHECK(told(rig, {0, 3}, keys_max).empty());
      CHECK(told(rig, {4000, 2}, keys_max).starts_with("q "));
    }
    StoreRig rig(factory());
    for (int i = 0; i < 120; ++i)
      apply(rig, row_mutation(1, std::to_string(i), "a", inserted(10, "v"), true));
    SweepCommand command = sweep_command();
    command.told_beyond.bytes = 1;
    const SweepPage page = sweep_one(rig, command, {});
    CHECK(page.large.size() == 100);
    CHECK(page.large_left_out == 20);
  }
}

TEST_CASE("a partition that is written during the sweep keeps its tombstones") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    for (const char* row : {"a", "b", "c", "d", "e"})
      apply(rig, row_mutation(1, "p", row, inserted(10, "v"), true));
    apply(rig, partition_deletion("p", {20, kOld_s}));
    const SweepCommand command = sweep_command(3);
    SweepPage page = sweep_one(rig, command, {});
    REQUIRE(page.next.inside);
    apply(rig, row_mutation(1, "p", "a", inserted(15, "an older one comes late")));
    while (!page.exhausted) page = sweep_one(rig, command, page.next);
    CHECK(stored(rig) == "p: header a; ");
    CHECK(rig.read_keys(range_read()).empty());
    sweep(rig, command);
    CHECK(stored(rig).empty());
  }
}

TEST_CASE("a partition that is written all the time loses its tombstones all the same") {
  StoreOptions group = small_options();
  group.sync = CommitLogSync::kGroup;
  for (const auto& factory : {rocks_factory(), rocks_factory(group), memory_factory()}) {
    for (const uint64_t keys_max : {1, 3, 100}) {
      StoreRig rig(factory, fmt::format("/tetrad/{}", keys_max));
      for (int i = 0; i < 10; ++i)
        apply(rig, row_mutation(1, "p", std::to_string(i), inserted(10, "v"), true));
      apply(rig, range_deletion("p", "0", "5", {20, kOld_s}));
      apply(rig, partition_deletion("p", {15, kOld_s}));
      apply(rig, row_deletion("p", "7", {20, kOld_s}));
      apply(rig, row_mutation(1, "p", "8", encoded(record_of({tombstone_cell(1, 20, kOld_s)}))));
      int64_t now = 30;
      SweepPlace from;
      while (true) {
        std::optional<Result<SweepPage>> answer;
        rig.store->sweep(sweep_command(keys_max), from,
                         [&](Result<SweepPage> page) { answer = std::move(page); });
        size_t written = 0;
        for (const char* row : {"3", "7", "8"}) {  // what is swept, too
          ++now;
          rig.store->apply(row_mutation(1, "p", row, inserted(now, "new"), now % 2 == 0),
                           [&](const Result<void>& result) { written += result.has_value(); });
        }
        REQUIRE(rig.comes([&] { return answer.has_value() && written == 3; }));
        REQUIRE(answer->has_value());
        CHECK((*answer)->skipped == 0);
        apply(rig, row_mutation(1, "p", "9", inserted(now, "new")));
        if ((*answer)->exhausted) break;
        from = (*answer)->next;
      }
      CHECK(stored(rig) == "p: 3 7 8 9; ");
      ReadCommand command = partition_read(1, "p");
      command.live_only = false;
      const auto left = rig.read(command);
      REQUIRE(left.has_value());
      for (const PartitionData& p : left->partitions)
        for (const RowData& row : p.rows) {
          const auto record = decode_row_record(row.record);
          REQUIRE(record.has_value());
          CHECK(!record->deletion.present());
          CHECK(is_live(*record, kNow_s));
        }
    }
  }
}

TEST_CASE(
    "a tombstone stays while something that it hides has come since its partition was begun") {
  for (const auto& factory : kFactories) {
    for (const uint64_t keys_max : {2, 100}) {
      StoreRig rig(factory());
      for (const char* row : {"a", "b", "c", "d", "e"})
        apply(rig, row_mutation(1, "p", row, inserted(10, "v"), true));
      apply(rig, range_deletion("p", "a", "d", {20, kOld_s}));
      SweepPlace from;
      SweepPage page;
      do {
        std::optional<Result<SweepPage>> answer;
        rig.store->sweep(sweep_command(keys_max), from,
                         [&](Result<SweepPage> result) { answer = std::move(result); });
        apply(rig, row_mutation(1, "p", "a", inserted(19, "late")));
        REQUIRE(rig.comes([&] { return answer.has_value(); }));
        REQUIRE(answer->has_value());
        page = **answer;
        from = page.next;
        CHECK(rig.read_keys(range_read()) == "p/d p/e");
      } while (!page.exhausted);
      CHECK(page.skipped == 1);
      CHECK(page.oldest_left_s <= kOld_s);
      CHECK(stored(rig).starts_with("p: [a,d) "));
      sweep(rig);
      CHECK(stored(rig) == "p: d e; ");
    }
  }
}

TEST_CASE("what two sweeps do at a time is what one does after the other") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    for (const char* row : {"a", "b", "c", "d", "e"})
      apply(rig, row_mutation(1, "p", row, inserted(10, "v"), true));
    apply(rig, range_deletion("p", "a", "d", {20, kOld_s}));
    std::optional<Result<SweepPage>> first, second;
    rig.store->sweep(sweep_command(3), {},
                     [&](Result<SweepPage> page) { first = std::move(page); });
    rig.store->sweep(sweep_command(), {},
                     [&](Result<SweepPage> page) { second = std::move(page); });
    REQUIRE(rig.comes([&] { return first && second; }));
    REQUIRE((first->has_value() && second->has_value()));
    // The first one has to begin again where the second has taken the tombstone away.
    SweepPage page = **first;
    while (!page.exhausted) page = sweep_one(rig, sweep_command(3), page.next);
    sweep(rig);
    CHECK(stored(rig) == "p: d e; ");
  }
}

TEST_CASE("what ends long ago by a timestamp of the future is not called due for ever") {
  StoreRig rig(memory_factory());
  const int64_t future_us = (kNow_s + 1000) * 1'000'000;
  apply(rig, row_mutation(1, "p", "a",
                          encoded(record_of({value_cell(1, future_us, "v", 100, kOld_s - 9000)},
                                            {future_us, 100, kOld_s - 9000}))));
  const SweepPage page = sweep(rig);
  CHECK(page.erased == 0);
  CHECK(page.oldest_left_s >= kNow_s + 1000);
}

TEST_CASE("what is written between the reading of a page and its writing stays") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    apply(rig, row_deletion("p", "a", {20, kOld_s}));
    std::optional<Result<SweepPage>> answer;
    rig.store->sweep(sweep_command(), {},
                     [&](Result<SweepPage> page) { answer = std::move(page); });
    std::optional<Result<void>> written;
    rig.store->apply(row_mutation(1, "p", "a", inserted(30, "new")),
                     [&](Result<void> result) { written = std::move(result); });
    REQUIRE(rig.comes([&] { return answer.has_value() && written.has_value(); }));
    REQUIRE(answer->has_value());
    CHECK(rig.read_keys(range_read()) == "p/a");
    if ((*answer)->skipped != 0) CHECK((*answer)->erased == (*answer)->skipped);
    sweep(rig);
    CHECK(rig.read_keys(range_read()) == "p/a");
  }
}

TEST_CASE("a range that is given up is erased whole, and no other") {
  for (const auto& factory : kFactories) {
    StoreRig rig(factory());
    for (int token = 1; token <= 6; ++token) {
      Mutation m = mutation_of(token, "p" + std::to_string(token));
      m.rows.push_back({"a", inserted(10, "v"), true});
      m.header = encoded(record_of({value_cell(9, 10, "s")}));
      m.range_tombstones.push_back({{"x", "y"}, {5, kNow_s}});
      apply(rig, m);
    }
    SweepCommand command = sweep_command(2);
    command.everything = true;
    command.range = {position_of(2), position_of(4)};
    const SweepPage page = sweep(rig, command);
    CHECK(page.erased == 6);
    CHECK(rig.read_keys(range_read()) == "p1/a p2/a p5/a p6/a");
    CHECK(stored(rig).find("p3") == std::string::npos);
  }
}

TEST_CASE("a store knows whether a table has anything that may be purged") {
  StoreRig rig(rocks_factory());
  apply(rig, row_mutation(1, "p", "a", inserted(10, "v"), true));
  CHECK(rig.store->dead_seen(kTable) == 0);
  rig.close();
  rig.open();
  CHECK(rig.store->dead_seen(kTable) == 0);
  apply(rig, row_deletion("p", "a", {20, kOld_s}));
  apply(rig, range_deletion("p", "b", "c", {20, kOld_s}));
  CHECK(rig.store->dead_seen(kTable) == 2);
  rig.close();
  rig.open();
  CHECK(rig.store->dead_seen(kTable) == 2);
  sweep(rig);
  REQUIRE(rig.flush().has_value());
  REQUIRE(rig.compact().has_value());
  rig.close();
  rig.open();
  CHECK(rig.store->dead_seen(kTable) == 0);
}

TEST_CASE("answers that are cut at the horizon do not tell who has purged") {
  StoreRig purged(rocks_factory()), kept(memory_factory());
  for (StoreRig* rig : {&purged, &kept}) {
    for (const char* row : {"a", "b", "c", "d", "e", "f"})
      apply(*rig, row_mutation(1, "p", row, inserted(10, "v"), true));
    apply(*rig, row_deletion("p", "a", {20, kOld_s}));
    apply(*rig, row_mutation(1, "p", "b", encoded(record_of({tombstone_cell(1, 20, kOld_s)}))));
    apply(*rig, range_deletion("p", "c", "e", {20, kOld_s}));
    apply(*rig, range_deletion("p", "d", "f", {30, kFresh_s}));
    apply(*rig, partition_deletion("p", {5, kOld_s}));
    apply(*rig, partition_deletion("gone", {5, kOld_s}));
  }
  sweep(purged);
  CHECK(stored(purged) == "p: [d,f) b f; ");
  ReadCommand command = range_read();
  command.live_only = false;
  CHECK(digest_of(*purged.read(command)) != digest_of(*kept.read(command)));
  command.horizon_s = kHorizon_s;
  CHECK(digest_of(*purged.read(command)) == digest_of(*kept.read(command)));
}

}  // namespace tetrad::storage
