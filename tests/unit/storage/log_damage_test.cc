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

/// A folder with kRows rows in its log, each its own write, left as by a kill.
void fill(const Folder& folder) {
  StoreRig rig(rocks_factory(file_options()), folder.path / "store");
  for (int i = 0; i < kRows; ++i)
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
  StoreRig rig(
      make_rocks_store_factory(file_options(), Logger(), nullptr, LogRecovery::kAfterPowerCut),
      folder.path / "store");
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
