// SPDX-License-Identifier: Apache-2.0
// The write-ahead log on real files: a torn end is what a power cut leaves, damage before the end
// is a reason not to open.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "storage/engine/log_recovery.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;
constexpr int kRows = 50;

StoreOptions file_options() {
  StoreOptions options = small_options();
  options.in_memory_files = false;
  return options;
}

struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "tetrad-log-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// A folder with `rows` rows in its log, each its own write, left as by a kill.
void fill(const Folder& folder, int rows = kRows) {
  StoreRig rig(rocks_factory(file_options()), folder.path / "store");
  for (int i = 0; i < rows; ++i)
    REQUIRE(rig.apply(row_mutation(i, "p" + std::to_string(i), "a", inserted(1, Bytes(500, 'x'))))
                .has_value());
}

fs::path log_of(const Folder& folder) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(folder.path / "store"))
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      REQUIRE(found.empty());
      found = entry.path();
    }
  REQUIRE(!found.empty());
  return found;
}

void flip_byte(const fs::path& file, uint64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(byte ^ 0x40));
  REQUIRE(stream.good());
}

/// RocksDB passes over a block that begins with zeros as if the log had never had one there.
constexpr uint64_t kLogBlockBytes = 32 << 10;
constexpr int kRowsOfBlocks = 400;  // six blocks
void zero_block(const fs::path& file, uint64_t number) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(number * kLogBlockBytes));
  const Bytes zeros(kLogBlockBytes, '\0');
  stream.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  REQUIRE(stream.good());
}

/// As fill(), with records that end where blocks end.
void fill_aligned(const Folder& folder) {
  StoreRig rig(rocks_factory(file_options()), folder.path / "store");
  const auto put = [&](int row, uint64_t bytes) {
    const auto before = fs::file_size(log_of(folder));
    REQUIRE(
        rig.apply(row_mutation(row, "p" + std::to_string(row), "a", inserted(1, Bytes(bytes, 'x'))))
            .has_value());
    return fs::file_size(log_of(folder)) - before;
  };
  constexpr uint64_t kRecordBytes = 1024;
  put(1000, 600);  // with what is written once
  const uint64_t around = put(1200, 600) - 600;
  const uint64_t to_go = kRecordBytes - fs::file_size(log_of(folder)) % kRecordBytes;
  put(1001, to_go + kRecordBytes - around);
  for (int row = 1002; row < 1200; ++row) put(row, kRecordBytes - around);
  REQUIRE(fs::file_size(log_of(folder)) % kRecordBytes == 0);
}

std::shared_ptr<StoreFactory> after_cut() {
  return make_rocks_store_factory(file_options(), Logger(), nullptr, LogRecovery::kAfterPowerCut);
}

bool has_row(StoreRig& rig, int row) {
  return !rig.read_keys(partition_read(row, "p" + std::to_string(row))).empty();
}
/// The first that is not there, of `of`.
int rows_until_gap(StoreRig& rig, int of) {
  int rows = 0;
  while (rows < of && has_row(rig, rows)) ++rows;
  return rows;
}

TEST_CASE("a log with a torn end opens with what is before it") {
  for (const uint64_t lost : {1u, 300u, 700u}) {
    const Folder folder;
    fill(folder);
    const fs::path log = log_of(folder);
    fs::resize_file(log, fs::file_size(log) - lost);
    StoreRig rig(rocks_factory(file_options()), folder.path / "store");
    const int rows_lost = lost < 500 ? 1 : 2;
    for (int i = 0; i < kRows; ++i) {
      const std::string key = "p" + std::to_string(i);
      CHECK(rig.read_keys(partition_read(i, key)) == (i < kRows - rows_lost ? key + "/a" : ""));
    }
    rig.close();
  }
}

TEST_CASE("a log damaged before its end does not open") {
  for (const double where : {0.1, 0.5, 0.9}) {
    const Folder folder;
    fill(folder);
    const fs::path log = log_of(folder);
    flip_byte(log, static_cast<uint64_t>(static_cast<double>(fs::file_size(log)) * where));
    tests::ManualReactor reactor;
    tests::InlineIoPool pool;
    const auto opened =
        rocks_factory(file_options())->open((folder.path / "store").string(), reactor, pool);
    REQUIRE(!opened.has_value());
    INFO(opened.error().message);
    CHECK(opened.error().code == ErrorCode::kCorruption);
    CHECK(opened.error().message.find((folder.path / "store").string()) != std::string::npos);
    CHECK(opened.error().message.find("checksum mismatch") != std::string::npos);
  }
}

TEST_CASE("after a power cut a damaged log opens with what is before the damage") {
  const Folder folder;
  fill(folder);
  const fs::path log = log_of(folder);
  flip_byte(log, fs::file_size(log) / 2);
  StoreRig rig(after_cut(), folder.path / "store");
  int rows = 0;
  for (; rows < kRows; ++rows)
    if (rig.read_keys(partition_read(rows, "p" + std::to_string(rows))).empty()) break;
  CHECK((rows > kRows / 3 && rows < 2 * kRows / 3));
  for (int i = rows; i < kRows; ++i)
    CHECK(rig.read_keys(partition_read(i, "p" + std::to_string(i))).empty());
  // What is written from now on stays as ever.
  REQUIRE(rig.apply(row_mutation(0, "later", "a", inserted(1, "x"))).has_value());
  rig.close();
  StoreRig again(rocks_factory(file_options()), folder.path / "store");
  CHECK(again.read_keys(partition_read(0, "later")) == "later/a");
  again.close();
}

TEST_CASE("a log with a hole in it does not open, however often it is tried") {
  const Folder folder;
  fill_aligned(folder);
  zero_block(log_of(folder), 2);
  for (int i = 0; i < 3; ++i) {
    tests::ManualReactor reactor;
    tests::InlineIoPool pool;
    const std::string name = (folder.path / "store").string();
    const auto opened = rocks_factory(file_options())->open(name, reactor, pool);
    REQUIRE(!opened.has_value());
    INFO(opened.error().message);
    CHECK(opened.error().code == ErrorCode::kCorruption);
    CHECK(opened.error().message.starts_with("opening " + name + ": the log lacks what was"));
  }
}

TEST_CASE("after a power cut a log is taken up to its first hole, and what is behind is lost") {
  const Folder folder;
  fill(folder, kRowsOfBlocks);
  const fs::path log = log_of(folder);
  zero_block(log, 2);
  uint64_t whole = 0;
  {
    StoreRig rig(after_cut(), folder.path / "store");
    const int rows = rows_until_gap(rig, kRowsOfBlocks);
    CHECK((rows > 50 && rows < 200));
    for (int i = rows; i < kRowsOfBlocks; ++i) CHECK_FALSE(has_row(rig, i));
    whole = rig.store->recovered().whole;
    CHECK(whole == rig.store->recovered().number);
    CHECK((whole > static_cast<uint64_t>(rows) && whole < static_cast<uint64_t>(rows) + 10));
    CHECK(rig.store->status().state == StoreState::kServing);
    REQUIRE(rig.apply(row_mutation(0, "later", "a", inserted(1, "x"))).has_value());
  }
  StoreRig again(rocks_factory(file_options()), folder.path / "store");
  CHECK(again.read_keys(partition_read(0, "later")) == "later/a");
  CHECK(again.store->recovered().whole > whole);
  CHECK(again.store->recovered().whole == again.store->recovered().number);
  again.close();
}

/// Rows, a sync record that covers them, and rows.
void fill_synced(const Folder& folder) {
  StoreRig rig(rocks_factory(file_options()), folder.path / "store");
  rig.store->set_sync_clock(
      [&rig]() -> std::optional<int64_t> { return rig.reactor.wall_time_us(); });
  rig.reactor.advance_us(2'000'000);
  for (int i = 0; i < kRowsOfBlocks; ++i) {
    REQUIRE(rig.apply(row_mutation(i, "p" + std::to_string(i), "a", inserted(1, Bytes(500, 'x'))))
                .has_value());
    if (i == kRowsOfBlocks / 2) rig.reactor.advance_us(1'000'000);
  }
}

TEST_CASE("a log that lacks what had been synced makes the store damaged, for good") {
  for (const bool is_zeros : {true, false}) {
    const Folder folder;
    fill_synced(folder);
    const fs::path log = log_of(folder);
    is_zeros ? zero_block(log, 1) : flip_byte(log, kLogBlockBytes + kLogBlockBytes / 2);
    for (int i = 0; i < 2; ++i) {
      StoreRig rig(i == 0 ? after_cut() : rocks_factory(file_options()), folder.path / "store");
      CHECK(rig.store->status().state == StoreState::kDamaged);
      CHECK(rig.store->status().reason.find("which had been synced") != std::string::npos);
    }
  }
}

TEST_CASE("a hole behind what was synced is what a power cut leaves") {
  const Folder folder;
  fill_synced(folder);
  zero_block(log_of(folder), 5);
  StoreRig rig(after_cut(), folder.path / "store");
  CHECK(rig.store->status().state == StoreState::kServing);
  CHECK(rows_until_gap(rig, kRowsOfBlocks) > kRowsOfBlocks / 2);
  REQUIRE(rig.store->recovered().last_sync.has_value());
  CHECK(rig.store->recovered().last_sync->number <= rig.store->recovered().whole);
  rig.close();
}

TEST_CASE("logs that lie behind one another have no gap, whatever ended the process") {
  StoreOptions options = file_options();
  options.write_buffer_bytes = 256 << 10;  // a log for each quarter of it
  for (const bool cut : {true, false}) {
    const Folder folder;
    int next = 0;
    for (int life = 0; life < 4; ++life) {
      const bool was_cut = cut && life % 2 == 1;
      StoreRig rig(
          make_rocks_store_factory(options, Logger(), nullptr,
                                   was_cut ? LogRecovery::kAfterPowerCut : LogRecovery::kStrict),
          folder.path / "store");
      CHECK(rig.store->status().state == StoreState::kServing);
      CHECK(rows_until_gap(rig, next) == next);
      for (int i = 0; i < 300; ++i, ++next)
        REQUIRE(rig.apply(row_mutation(next, "p" + std::to_string(next), "a",
                                       inserted(1, Bytes(700, 'x'))))
                    .has_value());
      if (life == 1) REQUIRE(rig.flush());
      if (life == 2) rig.close();
    }
  }
}

TEST_CASE("a log that ends too early before another is a hole") {
  StoreOptions options = file_options();
  options.write_buffer_bytes = 256 << 10;
  for (const bool cut : {true, false}) {
    const Folder folder;
    {
      StoreRig rig(rocks_factory(options), folder.path / "store");
      for (int i = 0; i < 150; ++i)
        REQUIRE(
            rig.apply(row_mutation(i, "p" + std::to_string(i), "a", inserted(1, Bytes(700, 'x'))))
                .has_value());
    }
    std::vector<fs::path> logs;
    for (const auto& entry : fs::directory_iterator(folder.path / "store"))
      if (entry.path().extension() == ".log") logs.push_back(entry.path());
    std::ranges::sort(logs);
    REQUIRE(logs.size() > 1);
    fs::resize_file(logs[0], fs::file_size(logs[0]) - 5'000);
    if (!cut) {
      tests::ManualReactor reactor;
      tests::InlineIoPool pool;
      CHECK_FALSE(rocks_factory(options)->open((folder.path / "store").string(), reactor, pool));
      continue;
    }
    StoreRig rig(make_rocks_store_factory(options, Logger(), nullptr, LogRecovery::kAfterPowerCut),
                 folder.path / "store");
    const int rows = rows_until_gap(rig, 150);
    CHECK((rows > 20 && rows < 140));
    for (int i = rows; i < 150; ++i) CHECK_FALSE(has_row(rig, i));
    CHECK(rig.store->recovered().whole < 150);
  }
}

TEST_CASE("a damaged local log opens after a power cut only, with what is before the damage") {
  const Folder folder;
  const std::string name = (folder.path / "store").string();
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  {
    const auto log = open_rocks_local_log(name, reactor, pool);
    REQUIRE(log.has_value());
    for (int i = 0; i < kRows; ++i) {
      bool written = false;
      (*log)->write({{std::to_string(i), Bytes(500, 'x')}}, false,
                    [&](const Result<void>& done) { written = done.has_value(); });
      REQUIRE(reactor.run_until([&] { return written; }));
    }
  }
  const fs::path file = log_of(folder);
  flip_byte(file, fs::file_size(file) / 2 + 100);  // a value: a length would look like a torn end
  CHECK_FALSE(open_rocks_local_log(name, reactor, pool).has_value());
  const auto log =
      open_rocks_local_log(name, reactor, pool, 0, Logger(), nullptr, LogRecovery::kAfterPowerCut);
  REQUIRE(log.has_value());
  CHECK(*(*log)->get("0") == Bytes(500, 'x'));
  CHECK_FALSE((*log)->get(std::to_string(kRows - 1))->has_value());
  CHECK((*log)->close().has_value());
}

}  // namespace
}  // namespace tetrad::storage
