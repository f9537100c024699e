// SPDX-License-Identifier: Apache-2.0
// Stores and local logs on a disk that is full, fails, hangs or rots.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "storage/engine/disk_watch.h"
#include "storage/engine/local_log.h"
#include "tests/unit/storage/faulty_files.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondUs = 1'000'000;

struct TroubleRig {
  explicit TroubleRig(CommitLogSync sync = CommitLogSync::kPeriodic) {
    std::string pattern = (fs::temp_directory_path() / "tetrad-trouble-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    StoreOptions options;
    options.sync = sync;
    options.write_buffer_bytes = 4 << 20;
    options.block_cache_bytes = 1 << 20;
    options.row_cache_bytes = 0;
    factory = make_rocks_store_factory(options, Logger(), std::make_shared<FaultyFiles>(faults));
    rig.emplace(factory, (path / "store").string());
    listen();
  }
  ~TroubleRig() {
    rig.reset();
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void listen() {
    rig->store->on_status([this](const StoreStatus& status) { told.push_back(status.state); });
  }
  StoreState state() const { return rig->store->status().state; }
  bool becomes(StoreState state) {
    return rig->comes([&] { return this->state() == state; });
  }
  void pass(int64_t us) {
    rig->reactor.run_until([] { return false; }, us);
  }
  Result<void> put(int number, BytesView value = "v") {
    return rig->apply(row_mutation(number, "p" + std::to_string(number), "a", inserted(1, value)));
  }
  /// Fifty rows in a table that nothing of is in memory.
  void fill_and_reopen() {
    for (int i = 0; i < 50; ++i) REQUIRE(put(i, Bytes(2'000, 'x')));
    REQUIRE(rig->flush());
    rig->close();
    rig->open();
    listen();
  }
  bool has(int number) {
    const std::string key = "p" + std::to_string(number);
    return rig->read_keys(partition_read(number, key)) == key + "/a";
  }
  Result<void> compact() {
    std::optional<Result<void>> answer;
    rig->store->compact([&](Result<void> r) { answer = std::move(r); });
    REQUIRE(rig->comes([&] { return answer.has_value(); }));
    return *answer;
  }

  const std::shared_ptr<FileFaults> faults = std::make_shared<FileFaults>();
  fs::path path;
  std::shared_ptr<StoreFactory> factory;
  std::optional<StoreRig> rig;
  std::vector<StoreState> told;
};

const auto kBothModes = {CommitLogSync::kPeriodic, CommitLogSync::kGroup};

TEST_CASE("a store whose log has no room refuses writes, reads, and goes on when there is room") {
  for (const CommitLogSync mode : kBothModes) {
    TroubleRig t(mode);
    REQUIRE(t.put(1));
    t.faults->fail(FileCall::kAppend, ".log", ENOSPC);
    t.faults->set_free_bytes(0);
    CHECK_FALSE(t.put(2).has_value());
    CHECK(t.state() == StoreState::kFull);
    CHECK(t.rig->store->status().reason.find("is full") != std::string::npos);
    const auto refused = t.put(3);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kOverloaded);
    CHECK(refused.error().message.find("is full") != std::string::npos);
    t.pass(30 * kSecondUs);  // syncs of the log come due
    CHECK(t.state() == StoreState::kFull);
    CHECK(t.has(1));
    t.faults->heal();
    t.pass(30 * kSecondUs);
    CHECK(t.state() == StoreState::kFull);  // still no room
    t.faults->set_free_bytes(uint64_t{1} << 40);
    REQUIRE(t.becomes(StoreState::kServing));
    CHECK(t.put(4).has_value());
    t.pass(1);
    CHECK(t.told == std::vector<StoreState>{StoreState::kFull, StoreState::kServing});
    t.rig->close();
    t.rig->open();
    CHECK((t.has(1) && !t.has(3) && t.has(4)));
  }
}

TEST_CASE("a flush without room, or without descriptors, stops writes until it can be done") {
  for (const auto& [call, error] :
       {std::pair(FileCall::kAppend, ENOSPC), std::pair(FileCall::kOpen, EMFILE),
        std::pair(FileCall::kAppend, EDQUOT)}) {
    INFO(strerror(error));
    TroubleRig t;
    for (int i = 0; i < 50; ++i) REQUIRE(t.put(i));
    t.faults->fail(call, ".sst", error);
    CHECK_FALSE(t.rig->flush().has_value());
    REQUIRE(t.becomes(StoreState::kFull));
    const auto refused = t.put(60);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kOverloaded);
    for (int i = 0; i < 50; ++i) CHECK(t.has(i));
    t.faults->heal();
    REQUIRE(t.becomes(StoreState::kServing));
    for (int i = 0; i < 50; ++i) CHECK(t.has(i));
    CHECK(t.put(61).has_value());
    CHECK(t.rig->flush().has_value());
    t.rig->close();
    t.rig->open();
    for (int i = 0; i < 50; ++i) CHECK(t.has(i));
    CHECK((t.has(61) && !t.has(60)));
  }
}

TEST_CASE("a full store drops tables, and remembers that it did") {
  TroubleRig t;
  REQUIRE(t.put(1));
  t.faults->fail(FileCall::kAppend, ".log", ENOSPC);
  CHECK_FALSE(t.put(2).has_value());
  t.rig->store->retire(kTable);
  CHECK(t.rig->read_keys(partition_read(1, "p1")).starts_with("error"));
  t.faults->heal();
  REQUIRE(t.becomes(StoreState::kServing));
  t.pass(kSecondUs);
  t.rig->close();
  t.rig->open();
  CHECK(t.rig->read_keys(partition_read(1, "p1")).starts_with("error"));
}

TEST_CASE("after a failed sync or write of the log nothing is written, synced or closed any more") {
  for (const CommitLogSync mode : kBothModes) {
    for (const auto& [call, error] :
         {std::pair(FileCall::kSync, EIO), std::pair(FileCall::kAppend, EIO),
          std::pair(FileCall::kSync, ENOSPC)}) {
      TroubleRig t(mode);
      REQUIRE(t.put(1));
      t.faults->fail(call, ".log", error);
      const bool told_at_once = mode == CommitLogSync::kGroup || call == FileCall::kAppend;
      CHECK(t.put(2).has_value() == !told_at_once);
      REQUIRE(t.becomes(StoreState::kFailed));
      t.faults->heal();
      const uint64_t syncs = t.faults->calls(FileCall::kSync);
      const uint64_t appends = t.faults->calls(FileCall::kAppend);
      const auto refused = t.put(3);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::kIo);
      t.pass(60 * kSecondUs);
      CHECK(t.state() == StoreState::kFailed);
      CHECK(t.has(1));
      CHECK_FALSE(t.rig->store->close().has_value());
      CHECK(t.faults->calls(FileCall::kSync) == syncs);
      CHECK(t.faults->calls(FileCall::kAppend) == appends);
    }
  }
}

TEST_CASE("after a failed sync no file of the database is synced") {
  const auto faults = std::make_shared<FileFaults>();
  const auto watch = std::make_shared<DiskWatch>();
  const auto env = make_watched_env(std::make_shared<FaultyFiles>(faults), watch);
  std::string folder = (fs::temp_directory_path() / "tetrad-trouble-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::unique_ptr<rocksdb::WritableFile> first, second;
  REQUIRE(env->NewWritableFile(folder + "/1.log", &first, rocksdb::EnvOptions()).ok());
  REQUIRE(env->NewWritableFile(folder + "/2.log", &second, rocksdb::EnvOptions()).ok());
  REQUIRE(first->Append("a").ok());
  REQUIRE(second->Append("b").ok());
  CHECK(second->Sync().ok());
  faults->fail(FileCall::kSync, "1.log", EIO, 0, 1);  // the next would succeed
  CHECK_FALSE(first->Sync().ok());
  CHECK_FALSE(first->Sync().ok());
  CHECK_FALSE(first->Fsync().ok());
  CHECK_FALSE(second->Sync().ok());
  CHECK_FALSE(watch->begin_log_sync());
  fs::remove_all(folder);
}

TEST_CASE("a failed sync is followed by no record that covers what it was to sync") {
  TroubleRig t;
  t.rig->store->set_sync_clock(
      [&t]() -> std::optional<int64_t> { return t.rig->reactor.wall_time_us(); });
  t.pass(2 * kSecondUs);
  REQUIRE(t.put(1));
  t.pass(2 * kSecondUs);
  const uint64_t durable = t.rig->store->sync_numbers().durable;
  t.faults->fail(FileCall::kSync, ".log", EIO, 0, 1);
  REQUIRE(t.put(2));
  REQUIRE(t.becomes(StoreState::kFailed));
  for (int i = 0; i < 200; ++i) t.pass(kSecondUs);
  CHECK(t.rig->store->sync_numbers().durable == durable);
  CHECK_FALSE(t.rig->store->close().has_value());
}

TEST_CASE("a failed sync of a table file or of the manifest is for good") {
  for (const char* file : {".sst", "MANIFEST"}) {
    TroubleRig t;
    REQUIRE(t.put(1));
    t.faults->fail(FileCall::kSync, file, EIO);
    CHECK_FALSE(t.rig->flush().has_value());
    REQUIRE(t.becomes(StoreState::kFailed));
    t.faults->heal();
    t.pass(60 * kSecondUs);
    CHECK(t.state() == StoreState::kFailed);
    CHECK(t.has(1));
  }
}

TEST_CASE("a store whose disk hangs refuses writes until it answers") {
  TroubleRig t(CommitLogSync::kGroup);
  REQUIRE(t.put(1));
  t.rig->pool.hold();
  std::optional<Result<void>> first;
  t.rig->store->apply(row_mutation(2, "p2", "a", inserted(1, "v")),
                      [&](Result<void> r) { first = std::move(r); });
  t.pass(4 * kSecondUs);
  CHECK(t.state() == StoreState::kServing);
  t.pass(3 * kSecondUs);
  CHECK(t.state() == StoreState::kHung);
  std::optional<Result<void>> second;
  t.rig->store->apply(row_mutation(3, "p3", "a", inserted(1, "v")),
                      [&](Result<void> r) { second = std::move(r); });
  REQUIRE(second.has_value());
  CHECK(second->error().code == ErrorCode::kOverloaded);
  CHECK_FALSE(first.has_value());
  t.rig->pool.release();
  REQUIRE(t.becomes(StoreState::kServing));
  REQUIRE(first.has_value());
  CHECK(first->has_value());
  CHECK(t.put(4).has_value());
}

void damage_tables(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) / 2));
    file.write("damage", 6);
    REQUIRE(file.good());
  }
}

TEST_CASE("damaged data is said, counted, and does not stop writes") {
  TroubleRig t;
  for (int i = 0; i < 50; ++i) REQUIRE(t.put(i, Bytes(2'000, 'x')));
  REQUIRE(t.rig->flush());
  t.rig->close();
  damage_tables(t.path / "store");
  t.rig->open();
  t.listen();
  int unreadable = 0;
  for (int i = 0; i < 50; ++i) {
    auto read = t.rig->read(partition_read(i, "p" + std::to_string(i)));
    // RocksDB may compact the file by itself, after which it is opened anew.
    for (int more = 0; !read && read.error().code == ErrorCode::kIo && more < 30'000; ++more) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      t.pass(100'000);
      read = t.rig->read(partition_read(i, "p" + std::to_string(i)));
    }
    if (read) continue;
    ++unreadable;
    CHECK(read.error().code == ErrorCode::kCorruption);
  }
  CHECK((unreadable > 0 && unreadable < 50));
  CHECK(t.state() == StoreState::kDamaged);
  CHECK(t.rig->store->statistics().corruptions > 0);
  CHECK(t.rig->comes([&] { return t.put(100).has_value(); }));
  CHECK_FALSE(t.compact().has_value());  // RocksDB stops writes after such a compaction
  REQUIRE(t.rig->comes([&] { return t.put(101).has_value(); }));
  CHECK(t.state() == StoreState::kDamaged);
  CHECK((t.has(100) && t.has(101)));
}

TEST_CASE("a read that the disk does not give is tried twice") {
  TroubleRig t;
  t.fill_and_reopen();
  t.faults->fail(FileCall::kRead, ".sst", EIO, 0, 1);
  CHECK(t.has(40));
  CHECK(t.state() == StoreState::kServing);
  t.faults->fail(FileCall::kRead, ".sst", EIO);
  CHECK_FALSE(t.rig->read(partition_read(20, "p20")).has_value());
  CHECK(t.state() == StoreState::kDamaged);
  CHECK(t.rig->store->statistics().corruptions == 1);
  t.faults->heal();
  // RocksDB may have compacted by itself meanwhile, after which it is opened anew.
  CHECK(t.rig->comes([&] { return t.has(20); }));
}

TEST_CASE("a compaction that the disk does not let read damages the store and does not end it") {
  TroubleRig t;
  t.fill_and_reopen();
  REQUIRE(t.put(50));  // two tables: one alone is not read again
  REQUIRE(t.rig->flush());
  t.faults->fail(FileCall::kRead, ".sst", EIO);
  CHECK_FALSE(t.compact().has_value());
  REQUIRE(t.becomes(StoreState::kDamaged));
  t.faults->heal();
  REQUIRE(t.rig->comes([&] { return t.put(101).has_value(); }));
  CHECK(t.state() == StoreState::kDamaged);
  CHECK((t.has(0) && t.has(49) && t.has(50) && t.has(101)));
  REQUIRE(t.rig->flush());
}

TEST_CASE("a damaged store that cannot be opened anew has failed") {
  TroubleRig t;
  t.fill_and_reopen();
  REQUIRE(t.put(50));
  REQUIRE(t.rig->flush());
  t.faults->fail(FileCall::kRead, ".sst", EIO);
  t.faults->fail(FileCall::kOpen, "", EIO);  // nor does it take a new file
  CHECK_FALSE(t.compact().has_value());
  REQUIRE(t.becomes(StoreState::kFailed));
}

TEST_CASE("a start on a full disk says so") {
  TroubleRig t;
  REQUIRE(t.put(1));
  t.rig->close();
  t.faults->fail(FileCall::kAppend, "MANIFEST", ENOSPC);
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  const auto opened = t.factory->open((t.path / "store").string(), reactor, pool);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::kLimit);
  CHECK(opened.error().message.find("the disk is full") != std::string::npos);
  t.faults->heal();
  t.rig->open();
  CHECK(t.has(1));
}

struct LogRig {
  LogRig() {
    std::string pattern = (fs::temp_directory_path() / "tetrad-trouble-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    open();
  }
  ~LogRig() {
    log.reset();
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void open() {
    auto opened = open_rocks_local_log((path / "log").string(), reactor, pool, 0, Logger(),
                                       std::make_shared<FaultyFiles>(faults));
    if (!opened) FAIL(opened.error().message);
    log = std::move(*opened);
  }
  void write(const char* key, std::optional<Result<void>>& answer) {
    log->write({{key, Bytes("v")}}, true, [&](Result<void> r) { answer = std::move(r); });
  }
  bool has(const char* key) {
    const auto value = log->get(key);
    return value && *value;
  }

  const std::shared_ptr<FileFaults> faults = std::make_shared<FileFaults>();
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  fs::path path;
  std::unique_ptr<LocalLog> log;
};

TEST_CASE("a local log without room acknowledges nothing, and goes on when there is room") {
  LogRig t;
  std::optional<Result<void>> before, during, behind;
  t.write("a", before);
  REQUIRE(t.reactor.run_until([&] { return before.has_value(); }));
  t.faults->fail(FileCall::kAppend, ".log", ENOSPC);
  t.write("b", during);
  t.reactor.run_until([] { return false; }, 10 * kSecondUs);
  t.write("c", behind);
  t.reactor.run_until([] { return false; }, 10 * kSecondUs);
  CHECK((!during.has_value() && !behind.has_value()));
  CHECK(t.has("a"));
  t.faults->heal();
  REQUIRE(t.reactor.run_until([&] { return during && behind; }, 10 * kSecondUs));
  CHECK((during->has_value() && behind->has_value()));
  CHECK(t.log->close().has_value());
  t.log.reset();
  t.open();
  CHECK((t.has("a") && t.has("b") && t.has("c")));
}

TEST_CASE("a local log whose sync fails is not synced or closed any more") {
  LogRig t;
  std::optional<Result<void>> first, second;
  t.faults->fail(FileCall::kSync, ".log", EIO);
  t.write("a", first);
  REQUIRE(t.reactor.run_until([&] { return first.has_value(); }));
  CHECK_FALSE(first->has_value());
  t.faults->heal();
  const uint64_t syncs = t.faults->calls(FileCall::kSync);
  t.write("b", second);
  REQUIRE(t.reactor.run_until([&] { return second.has_value(); }));
  CHECK_FALSE(second->has_value());
  CHECK_FALSE(t.log->close().has_value());
  CHECK(t.faults->calls(FileCall::kSync) == syncs);
}

}  // namespace
}  // namespace tetrad::storage
