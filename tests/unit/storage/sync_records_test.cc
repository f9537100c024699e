// SPDX-License-Identifier: Apache-2.0
// What a store says of itself across a power cut, and what it still knows of what was written
// lately.
#include "storage/engine/sync_records.h"

#include <limits>
#include <set>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kSecond = 1'000'000;

/// Time of records is the reactor's.
void start_clock(StoreRig& rig) {
  rig.store->set_sync_clock(
      [&rig]() -> std::optional<int64_t> { return rig.reactor.wall_time_us(); });
}

Result<void> sync(StoreRig& rig) {
  std::optional<Result<void>> answer;
  rig.store->sync([&](Result<void> r) { answer = std::move(r); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  return *answer;
}

void put(StoreRig& rig, int64_t token, BytesView value, int64_t timestamp = 10) {
  REQUIRE(rig.apply(
      row_mutation(token, "p" + std::to_string(token), "c", inserted(timestamp, value), true)));
}

Result<Store::RecentPage> recent_page(StoreRig& rig, const Store::RecentCommand& command,
                                      Bytes after = {}, uint64_t bytes_max = 1 << 20) {
  std::optional<Result<Store::RecentPage>> answer;
  rig.store->recent(command, std::move(after), bytes_max, [&](auto r) { answer = std::move(r); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  return std::move(*answer);
}

/// "p1=value ..." of all pages, each once.
std::string recent(StoreRig& rig, int64_t since_us, int64_t until_us, uint64_t bytes_max = 1 << 20,
                   RingRange range = {}) {
  const Store::RecentCommand command{{{kTable, range}}, since_us, until_us};
  std::set<std::string> found;
  Bytes after;
  for (;;) {
    const auto page = recent_page(rig, command, after, bytes_max);
    if (!page) return "error: " + page.error().message;
    for (const Mutation& m : page->mutations) {
      CHECK(m.incarnation == kTable);
      CHECK(m.schema_version.value == 1);
      for (const RowChange& row : m.rows) {
        const auto record = decode_row_record(row.record);
        REQUIRE(record.has_value());
        found.insert(m.partition_key + "=" +
                     (record->cells.empty() ? "-" : std::string(record->cells[0].value)));
      }
      if (!m.header.empty()) found.insert(m.partition_key + " is deleted");
      if (!m.range_tombstones.empty()) found.insert(m.partition_key + " in part");
    }
    if (page->exhausted) break;
    CHECK(page->next != after);
    after = page->next;
  }
  std::string text;
  for (const std::string& one : found) text += one + " ";
  if (!text.empty()) text.pop_back();
  return text;
}
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

std::vector<std::shared_ptr<StoreFactory>> both() { return {rocks_factory(), memory_factory()}; }
StoreOptions of_group() {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  return options;
}
std::vector<std::shared_ptr<StoreFactory>> both_in_both_modes() {
  return {rocks_factory(), memory_factory(), rocks_factory(of_group()), memory_factory(of_group())};
}

}  // namespace

TEST_CASE("each open of a store is another life, and knows the end of those before") {
  for (const auto& factory : both_in_both_modes()) {
    StoreRig rig(factory);
    CHECK(rig.store->recovered().life == 1);
    CHECK_FALSE(rig.store->recovered().last_sync.has_value());
    put(rig, 1, "a");
    const SyncNumbers before = rig.store->sync_numbers();
    CHECK(before.life == 1);
    CHECK(before.written > rig.store->recovered().number);
    rig.crash();
    rig.open();
    CHECK(rig.store->recovered().life == 2);
    CHECK(rig.store->recovered().number == before.written);
    rig.close();
    rig.open();
    CHECK(rig.store->recovered().life == 3);
    CHECK(rig.store->recovered().number >= before.written);
  }
}

TEST_CASE("a sync record goes with the first write after the sync that it tells of") {
  for (const auto& factory : both_in_both_modes()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(2 * kSecond);  // the first of this life
    put(rig, 1, "a");
    const int64_t written_us = rig.reactor.wall_time_us();
    const uint64_t written = rig.store->sync_numbers().written;
    REQUIRE(sync(rig));
    CHECK(rig.store->sync_numbers().durable >= written);
    CHECK(rig.store->sync_numbers().durable <= rig.store->sync_numbers().written);
    rig.reactor.advance_us(kSecond);
    put(rig, 2, "b");
    rig.crash();
    rig.open();
    const auto& last = rig.store->recovered().last_sync;
    REQUIRE(last.has_value());
    CHECK(last->life == 1);
    CHECK(last->number >= written);
    CHECK(last->number < rig.store->recovered().number);
    CHECK(last->time_us >= written_us);
    CHECK(last->time_us < rig.reactor.wall_time_us());
  }
}

TEST_CASE("while nothing is written a record goes out each minute, and none without a clock") {
  for (const auto& factory : both_in_both_modes()) {
    StoreRig rig(factory);
    put(rig, 1, "a");
    rig.reactor.advance_us(300 * kSecond);
    put(rig, 2, "b");
    rig.crash();
    rig.open();
    CHECK_FALSE(rig.store->recovered().last_sync.has_value());

    std::optional<int64_t> time_us;
    rig.store->set_sync_clock([&] { return time_us; });
    rig.reactor.advance_us(100 * kSecond);
    put(rig, 1, "a");
    rig.crash();
    rig.open();
    CHECK_FALSE(rig.store->recovered().last_sync.has_value());

    rig.store->set_sync_clock([&] { return time_us; });
    time_us = 5'000;
    rig.reactor.advance_us(2 * kSecond);
    time_us = 7'000;
    rig.reactor.advance_us(125 * kSecond);
    const uint64_t written = rig.store->sync_numbers().written;
    CHECK(rig.store->sync_numbers().durable == written);
    rig.crash();
    rig.open();
    REQUIRE(rig.store->recovered().last_sync.has_value());
    CHECK(rig.store->recovered().last_sync->time_us == 7'000);
    CHECK(rig.store->recovered().last_sync->life == 3);

    // The time is in doubt: the last one stays.
    time_us.reset();
    rig.store->set_sync_clock([&] { return time_us; });
    put(rig, 3, "c");
    rig.reactor.advance_us(200 * kSecond);
    put(rig, 4, "d");
    rig.crash();
    rig.open();
    CHECK(rig.store->recovered().last_sync->time_us == 7'000);
  }
}

TEST_CASE("calls of one turn share a sync, and one after it gets its own") {
  StoreRig rig(rocks_factory());
  int done = 0;
  for (int i = 0; i < 10; ++i) {
    rig.store->apply(row_mutation(i, "p", "c", inserted(10, "a"), true), [](const auto&) {});
    rig.store->sync([&](const Result<void>& r) { done += r ? 1 : 0; });
  }
  const uint64_t before = rig.pool.run_count();
  REQUIRE(rig.comes([&] { return done == 10; }));
  CHECK(rig.pool.run_count() == before + 1);
  CHECK(rig.store->sync_numbers().durable == rig.store->sync_numbers().written);
  rig.pool.hold();
  rig.store->sync([&](const auto&) { ++done; });
  rig.reactor.run_until_idle();
  put(rig, 20, "b");
  rig.store->sync([&](const auto&) { ++done; });
  rig.reactor.run_until_idle();
  CHECK(done == 10);
  rig.pool.release();
  REQUIRE(rig.comes([&] { return done == 12; }));
  CHECK(rig.store->sync_numbers().durable == rig.store->sync_numbers().written);
  CHECK(rig.pool.run_count() == before + 3);
}

TEST_CASE("a sync that a closing store did not come to is no success") {
  StoreRig rig(rocks_factory());
  rig.pool.hold();
  std::vector<bool> good;
  rig.store->sync([&](const Result<void>& r) { good.push_back(r.has_value()); });
  rig.reactor.run_until_idle();
  rig.store->sync([&](const Result<void>& r) { good.push_back(r.has_value()); });
  REQUIRE(rig.store->close());
  rig.pool.release();
  rig.reactor.run_until_idle();
  CHECK(good == std::vector<bool>{false, false});
  rig.store->sync([&](const Result<void>& r) { good.push_back(r.has_value()); });
  CHECK(good.size() == 3);
}

TEST_CASE("what was written lately comes as it is now, each key once") {
  const auto factories = both_in_both_modes();
  for (const auto& factory : factories) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(2 * kSecond);
    put(rig, 1, "old");
    put(rig, 2, "old");
    REQUIRE(sync(rig));
    rig.reactor.advance_us(30 * kSecond);
    put(rig, 3, "x");  // carries the record of the sync
    REQUIRE(sync(rig));
    rig.reactor.advance_us(145 * kSecond);  // a record of an idle minute is written
    const int64_t since_us = rig.reactor.wall_time_us();
    put(rig, 2, "b");
    put(rig, 2, "new", 20);
    put(rig, 4, "d");
    Mutation gone = mutation_of(5, "p5");
    gone.header = encoded(record_of({}, {}, {10, 5}));
    REQUIRE(rig.apply(gone));
    rig.reactor.advance_us(30 * kSecond);
    const int64_t until_us = rig.reactor.wall_time_us();
    rig.reactor.advance_us(30 * kSecond);
    REQUIRE(sync(rig));
    rig.reactor.advance_us(30 * kSecond);
    put(rig, 6, "later");
    put(rig, 4, "newest", 30);
    const std::string wanted = "p2=new p4=newest p5 is deleted";
    CHECK(recent(rig, since_us, until_us) == wanted);
    CHECK(recent(rig, since_us, until_us, 1) == wanted);  // pages of one key
    CHECK(recent(rig, since_us, kForever) == wanted + " p6=later");
    CHECK(recent(rig, since_us, kForever, 1 << 20, {position_of(2), position_of(4)}) ==
          "p4=newest");
    // Through a restart, and of the life before.
    rig.crash();
    rig.open();
    INFO("factory " << (&factory - &factories[0]));
    CHECK(recent(rig, since_us, until_us) == wanted);
    put(rig, 7, "g");
    CHECK(recent(rig, since_us, kForever) == wanted + " p6=later p7=g");
  }
}

TEST_CASE("a table that is gone, and nothing at all, is nothing") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    CHECK(recent(rig, since_us, kForever).empty());
    put(rig, 1, "a");
    CHECK(recent(rig, since_us, kForever) == "p1=a");
    rig.store->retire(kTable);
    rig.reactor.advance_us(kSecond);
    CHECK(recent(rig, since_us, kForever).empty());
  }
}

TEST_CASE("what is gone meanwhile does not come, nor what it hid") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    put(rig, 1, "a");
    put(rig, 2, "stays");
    REQUIRE(rig.apply(row_mutation(1, "p1", "c", encoded(record_of({}, {}, {20, 5})))));
    SweepCommand command;
    command.incarnation = kTable;
    command.bound = {1000, 1000, PurgeBound::kNothing};
    std::optional<Result<SweepPage>> page;
    rig.store->sweep(command, {}, [&](auto swept) { page = std::move(swept); });
    REQUIRE(rig.comes([&] { return page.has_value(); }));
    REQUIRE(page->has_value());
    CHECK((*page)->erased == 1);
    CHECK(recent(rig, since_us, kForever) == "p2=stays");
  }
}

TEST_CASE("with what is recent comes what hides it, however old") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    Mutation gone = mutation_of(1, "p1");
    gone.header = encoded(record_of({}, {}, {100, 5}));
    REQUIRE(rig.apply(gone));
    gone = mutation_of(2, "p2");
    gone.range_tombstones.push_back({{"a", "d"}, {100, 5}});
    REQUIRE(rig.apply(gone));
    gone.range_tombstones[0] = {{"d", "e"}, {100, 5}};
    REQUIRE(rig.apply(gone));
    REQUIRE(sync(rig));
    rig.reactor.advance_us(30 * kSecond);
    put(rig, 3, "x");  // carries the record of the sync
    REQUIRE(sync(rig));
    rig.reactor.advance_us(145 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    put(rig, 1, "late");
    put(rig, 2, "late");
    put(rig, 4, "d");
    const std::string wanted = "p1 is deleted p1=late p2 in part p2=late p4=d";
    CHECK(recent(rig, since_us, kForever) == wanted);
    CHECK(recent(rig, since_us, kForever, 1) == wanted);
    // Never one without the other.
    const auto page = recent_page(rig, {{{kTable, {}}}, since_us, kForever}, {}, 1);
    REQUIRE(page);
    REQUIRE(page->mutations.size() == 1);
    CHECK_FALSE(page->mutations[0].header.empty());
    CHECK(page->mutations[0].rows.size() == 1);
  }
}

TEST_CASE("more range tombstones than fit a page of what is recent: not covered") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    const std::string fill(40'000, 'f');
    for (int i = 0; i < 60; ++i) {
      Mutation gone = mutation_of(1, "p1");
      const std::string start = fmt::format("{:03}", i) + fill;
      gone.range_tombstones.push_back({{start, start + "x"}, {100, 5}});
      REQUIRE(rig.apply(gone));
    }
    const auto page = recent_page(rig, {{{kTable, {}}}, since_us, kForever});
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kNotFound);
  }
}

TEST_CASE("what is recent is told to the end though less is asked for meanwhile") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    // More keys than a page looks at.
    for (int64_t token = 50; token < 130; ++token)
      REQUIRE(rig.apply(row_mutation(token, std::string(60'000, 'k'), "c", inserted(10, "v"))));
    put(rig, 1, "last");
    Store::RecentCommand command{{{kTable, {}}}, since_us, kForever};
    auto page = recent_page(rig, command, {}, 1);
    REQUIRE(page);
    REQUIRE_FALSE(page->exhausted);
    command.ranges = {{kTable, {RingPosition::lowest(), position_of(60)}}};
    std::set<int64_t> tokens;
    while (!page->exhausted) {
      page = recent_page(rig, command, page->next);
      REQUIRE(page);
      for (const Mutation& m : page->mutations) tokens.insert(m.position.token);
    }
    for (int64_t token = 51; token <= 60; ++token) CHECK(tokens.contains(token));
    CHECK(tokens.contains(1));
  }
}

TEST_CASE("pages of what is recent end with the life of the store") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    const int64_t since_us = rig.reactor.wall_time_us();
    put(rig, 1, "a");
    put(rig, 2, "b");
    const Store::RecentCommand command{{{kTable, {}}}, since_us, kForever};
    auto page = recent_page(rig, command, {}, 1);
    REQUIRE(page);
    REQUIRE_FALSE(page->exhausted);
    rig.crash();
    rig.open();
    page = recent_page(rig, command, page->next, 1);
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kCancelled);
  }
}

TEST_CASE("of logs that have gone to files it is still known what was written") {
  StoreRig rig(rocks_factory());
  start_clock(rig);
  rig.reactor.advance_us(70 * kSecond);
  const int64_t since_us = rig.reactor.wall_time_us();
  std::string wanted;
  for (int round = 0; round < 4; ++round) {
    put(rig, round, "v" + std::to_string(round));
    wanted += fmt::format("{}p{}=v{}", round == 0 ? "" : " ", round, round);
    REQUIRE(rig.flush());
    rig.reactor.advance_us(kSecond);
  }
  REQUIRE(rig.compact());
  CHECK(recent(rig, since_us, kForever) == wanted);
  rig.close();
  rig.open();
  CHECK(recent(rig, since_us, kForever) == wanted);
}

TEST_CASE("a time before the records, or a log that is not kept, is not covered") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    put(rig, 1, "a");
    const Store::RecentCommand before{{{kTable, {}}}, 1, kForever};
    auto page = recent_page(rig, before);
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kNotFound);
    start_clock(rig);
    rig.reactor.advance_us(70 * kSecond);
    put(rig, 1, "b");
    page = recent_page(rig, before);
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kNotFound);
    // Idle records are one a minute, and of the last sixty-four of ten seconds.
    const int64_t since_us = rig.reactor.wall_time_us();
    for (int i = 0; i < 100; ++i) {
      put(rig, 2, "c");
      rig.reactor.advance_us(10 * kSecond);
    }
    page = recent_page(rig, {{{kTable, {}}}, since_us, kForever});
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kNotFound);
    CHECK(recent(rig, rig.reactor.wall_time_us() - 300 * kSecond, kForever) == "p2=c");
  }
  StoreOptions options = small_options();
  options.logs_kept_s = 0;
  StoreRig rig(rocks_factory(options));
  start_clock(rig);
  rig.reactor.advance_us(70 * kSecond);
  const int64_t since_us = rig.reactor.wall_time_us();
  put(rig, 1, "a");
  REQUIRE(rig.flush());
  put(rig, 2, "b");
  REQUIRE(rig.flush());
  const auto page = recent_page(rig, {{{kTable, {}}}, since_us, kForever});
  REQUIRE_FALSE(page);
  CHECK(page.error().code == ErrorCode::kNotFound);
}

TEST_CASE("a place that is no place of a page is refused") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    const auto page = recent_page(rig, {{{kTable, {}}}, 1, kForever}, "short");
    REQUIRE_FALSE(page);
    CHECK(page.error().code == ErrorCode::kCorruption);
  }
}

TEST_CASE("a power cut takes nothing below the number of the newest record") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    const auto disk = std::make_shared<MemoryDisk>();
    StoreRig rig(make_memory_store_factory(disk, small_options()));
    start_clock(rig);
    std::vector<std::pair<uint64_t, int64_t>> written;  // the number behind it, its token
    const int writes = 1 + static_cast<int>(random.below(60));
    for (int i = 0; i < writes; ++i) {
      put(rig, i, "v");
      written.emplace_back(rig.store->sync_numbers().written, i);
      rig.reactor.advance_us(static_cast<int64_t>(random.below(60'000)));
    }
    const uint64_t durable = rig.store->sync_numbers().durable;
    rig.crash();
    disk->lose_unsynced(random, true);
    rig.open();
    const Recovered& recovered = rig.store->recovered();
    const uint64_t safe = recovered.last_sync ? recovered.last_sync->number : 0;
    CHECK(safe <= recovered.whole);
    CHECK(durable <= recovered.whole);
    CHECK(recovered.whole <= recovered.number);
    for (const auto& [behind, token] : written) {
      if (behind > std::max(safe, durable)) continue;
      CHECK(rig.read_keys(partition_read(token, "p" + std::to_string(token))) != "");
    }
  }
}

TEST_CASE("moments are found by the record before them, whatever the clock did between lives") {
  SyncRecords records;
  records.begin_life(10);
  int64_t now_us = 0;
  records.set_clock([&] { return now_us; });
  const auto add = [&](uint64_t number, int64_t second) {
    now_us = second * kSecond;
    records.end(records.begin(number), number);
  };
  add(100, 50);
  add(200, 70);
  add(300, 60);  // it went back
  add(400, 90);
  const auto window = [&](int64_t since, int64_t until) {
    const auto found = records.window(since * kSecond, until * kSecond);
    return found ? std::pair(found->from, found->until) : std::pair<uint64_t, uint64_t>();
  };
  constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  CHECK(window(49, 100) == std::pair<uint64_t, uint64_t>());
  CHECK(window(50, 100) == std::pair<uint64_t, uint64_t>());  // at that very moment
  CHECK(window(55, 100) == std::pair<uint64_t, uint64_t>(100, kEnd));
  CHECK(window(65, 100) == std::pair<uint64_t, uint64_t>(100, kEnd));
  CHECK(window(80, 100) == std::pair<uint64_t, uint64_t>(300, kEnd));
  CHECK(window(80, 85) == std::pair<uint64_t, uint64_t>(300, 400));
  CHECK(window(55, 65) == std::pair<uint64_t, uint64_t>(100, 400));
  CHECK(window(95, 100) == std::pair<uint64_t, uint64_t>(400, kEnd));
}

}  // namespace tetrad::storage
