// SPDX-License-Identifier: Apache-2.0
// Writes to a RocksDB that is behind with its compactions: slower, then refused, never standing.
#include <condition_variable>
#include <mutex>

#include <catch2/catch.hpp>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>

#include "storage/engine/row_merge_operator.h"
#include "storage/engine/write_turn.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

/// Holds compactions up until it is opened.
struct Gate final : rocksdb::EventListener {
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return is_open; });
  }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    wake.notify_all();
  }
  std::mutex mutex;
  std::condition_variable wake;
  bool is_open = false;
};

/// A writer whose database takes 16 MB/s from the first file on, and none from the fourth.
struct PaceRig {
  PaceRig() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.merge_operator = make_row_merge_operator(std::make_shared<MergeReport>());
    options.listeners.push_back(gate);
    options.level0_file_num_compaction_trigger = 1;
    options.level0_slowdown_writes_trigger = 1;
    options.level0_stop_writes_trigger = 4;
    options.delayed_write_rate = 16 << 20;
    const std::shared_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    options.env = env.get();
    auto opened = RocksDatabase::open(options, "/tetrad/paced", "store", {env, nullptr});
    REQUIRE(opened.has_value());
    database = *opened;
    turn.emplace(database, reactor, pool, 1, StoreOptions(), tables, records, Logger());
  }
  ~PaceRig() {
    gate->open();
    database->shut_out_jobs();
    (void)turn->finish();
    (void)database->close();
  }
  void make_file() {
    rocksdb::WriteOptions wait;
    REQUIRE(database->db().Put(wait, "a key", "a value").ok());
    rocksdb::FlushOptions flush;
    flush.allow_write_stall = true;
    REQUIRE(database->db().Flush(flush).ok());
  }
  void add(int number, size_t bytes) {
    turn->add(
        row_mutation(number, "p" + std::to_string(number), "a", inserted(1, Bytes(bytes, 'x'))),
        true, {}, [this](const Result<void>& r) { r ? ++written : ++refused; });
  }
  /// RocksDB's time is the machine's.
  bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 30'000; ++i) {
      if (reactor.run_until(condition, 100'000)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  std::shared_ptr<RocksDatabase> database;
  TablesKnown tables;
  SyncRecords records;
  std::optional<WriteTurn> turn;
  int written = 0, refused = 0;
};

TEST_CASE("batches larger than a millisecond's part of the delayed rate are written") {
  PaceRig t;
  t.make_file();
  for (int i = 0; i < 40; ++i) {
    t.add(i, 48 << 10);
    REQUIRE(t.comes([&] { return t.written == i + 1; }));
  }
  CHECK(t.turn->behind());
  CHECK(t.turn->figures().paced_us > 0);
}

TEST_CASE("what would wait too long at the delayed rate is refused") {
  PaceRig t;
  t.make_file();
  // Half a second of 16 MB/s is 8 MB.
  for (int i = 0; i < 400; ++i) {
    t.add(i, 48 << 10);
    t.reactor.run_until([] { return false; }, 0);
  }
  CHECK(t.refused > 100);
  REQUIRE(t.comes([&] { return t.written + t.refused == 400; }));
  CHECK(t.written > 100);
  t.add(1'000, 48 << 10);
  REQUIRE(t.comes([&] { return t.written + t.refused == 401; }));
}

TEST_CASE("a database that takes nothing answers overloaded after a while, and goes on") {
  PaceRig t;
  for (int i = 0; i < 4; ++i) t.make_file();
  t.add(1, 100);
  REQUIRE(t.comes([&] { return t.turn->behind(); }));
  t.reactor.run_until([] { return false; }, 300'000);
  t.add(2, 100);
  CHECK(t.refused == 0);
  t.reactor.run_until([] { return false; }, 300'000);
  t.add(3, 100);
  CHECK(t.refused == 1);
  t.gate->open();
  REQUIRE(t.comes([&] { return t.written == 2; }));
  REQUIRE(t.comes([&] { return !t.turn->behind(); }));
  t.add(4, 100);
  REQUIRE(t.comes([&] { return t.written == 3; }));
}

TEST_CASE("a sweep goes with the writes that it has seen, and with no other") {
  const auto swept_after = [](bool seen_is_late) {
    PaceRig t;
    for (int i = 0; i < 4; ++i) t.make_file();
    const base::MonotonicUs soon_us = t.reactor.now_us() + 50'000;
    std::optional<Result<void>> swept, late;
    const auto add = [&](int number, base::MonotonicUs deadline_us) {
      t.turn->add(row_mutation(number, "p" + std::to_string(number), "a", inserted(1, "v")), true,
                  {WritePass(), deadline_us}, [&](Result<void> r) { late = std::move(r); });
    };
    if (seen_is_late) add(1, soon_us);
    Bytes key;
    append_storage_key(key, kTable, position_of(9), "p9", KeyKind::kRow, "a");
    t.turn->when_settled([&] {
      t.turn->replace({SweptKey{.key = key, .value = inserted(1, "swept")}},
                      [&](Result<void> r) { swept = std::move(r); });
    });
    if (!seen_is_late) add(2, soon_us);
    t.add(3, 100);
    t.reactor.run_until([] { return false; }, 100'000);
    CHECK((late && !*late && late->error().code == ErrorCode::kTimedOut));
    CHECK_FALSE(swept.has_value());
    t.gate->open();
    REQUIRE(t.comes([&] { return t.written == 1 && swept.has_value(); }));
    std::string stored;
    const std::unique_ptr<rocksdb::Iterator> it(t.database->db().NewIterator({}));
    for (it->SeekToFirst(); it->Valid(); it->Next())
      if (const auto place = decode_storage_key({it->key().data(), it->key().size()}))
        if (place->incarnation == kTable) stored += Bytes(place->partition_key) + " ";
    return (*swept                                          ? "done: "
            : swept->error().code == ErrorCode::kOverloaded ? "again: "
                                                            : "?") +
           stored;
  };
  CHECK(swept_after(true) == "again: p3 ");
  CHECK(swept_after(false) == "done: p3 p9 ");
}

TEST_CASE("the pace: what went is paid for before the next") {
  WritePace pace;
  pace.look({false, 1'000'000}, 10);
  CHECK(pace.may_write(10));
  pace.wrote(2'000, 10);
  CHECK_FALSE(pace.may_write(2'009));
  CHECK(pace.may_write(2'010));
  CHECK(pace.due_us() == 2'010);
  CHECK_FALSE(pace.is_overloaded(500'000, 2'010));
  CHECK(pace.is_overloaded(500'001, 2'010));
  pace.look({true, 0}, 3'000);
  CHECK_FALSE(pace.may_write(1'000'000));
  CHECK_FALSE(pace.is_overloaded(1, 3'000 + WritePace::kWaitUsMax));
  CHECK(pace.is_overloaded(1, 3'001 + WritePace::kWaitUsMax));
  pace.look({false, 0}, 1'000'000);
  CHECK((pace.is_over() && pace.may_write(1'000'000)));
}

}  // namespace
}  // namespace tetrad::storage
