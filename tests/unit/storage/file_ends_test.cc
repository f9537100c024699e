// SPDX-License-Identifier: Apache-2.0
// Where one file of a level ends and the next cannot be read, a view says so: it does not take the
// place for the end of the data.
#include <cerrno>
#include <filesystem>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>

#include "storage/engine/rocks_options.h"
#include "storage/engine/rocks_view.h"
#include "tests/unit/storage/faulty_files.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 3, kKeysOfFile = 4;

Bytes key_of(int number) { return fmt::format("a partition's key of a test {:06}", number); }

/// A database with files of kKeysOfFile keys each, all in the last level, opened with an empty
/// cache.
struct LevelRig {
  LevelRig() {
    std::string pattern = (fs::temp_directory_path() / "tetrad-ends-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    StoreOptions settings;
    settings.block_cache_bytes = 1 << 20;
    files = std::make_shared<FaultyFiles>(faults);
    options = store_options(settings, make_shared_resources(settings, files),
                            std::make_shared<MergeReport>(), std::make_shared<FilterState>());
    env = rocksdb::NewCompositeEnv(files);
    options.env = env.get();
    options.create_if_missing = true;
    open();
    for (int file = 0; file < kFiles; ++file) {
      const std::string name = (path / fmt::format("{}.sst", file)).string();
      rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
      REQUIRE(writer.Open(name).ok());
      for (int i = 0; i < kKeysOfFile; ++i)
        REQUIRE(writer.Put(key_of(file * kKeysOfFile + i), Bytes(9000, 'v')).ok());
      REQUIRE(writer.Finish().ok());
      REQUIRE(db->IngestExternalFile({name}, {}).ok());
    }
    std::string count;
    REQUIRE(db->GetProperty("rocksdb.num-files-at-level6", &count));
    REQUIRE(count == std::to_string(kFiles));
    open_again();
  }
  ~LevelRig() {
    db.reset();
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void open() {
    rocksdb::DB* opened = nullptr;
    REQUIRE(rocksdb::DB::Open(options, path.string(), &opened).ok());
    db.reset(opened);
  }
  void open_again() {
    db.reset();
    options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()
        ->block_cache->EraseUnRefEntries();
    open();
  }

  fs::path path;
  std::shared_ptr<FileFaults> faults = std::make_shared<FileFaults>();
  std::shared_ptr<FaultyFiles> files;
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::Options options;
  std::unique_ptr<rocksdb::DB> db;
};

struct Walked {
  int keys = 0;
  Result<void> end;
  bool gave_up = false;
};

/// Through all keys from the first, forwards or backwards.
Walked walk(rocksdb::DB& db, const RocksViewOptions& options, bool backwards = false) {
  RocksView view(db, options);
  const auto it = view.iterate({key_of(0), key_of(999), false, backwards});
  Walked out;
  backwards ? it->seek_before(key_of(999)) : it->seek(key_of(0));
  for (; it->valid(); backwards ? it->prev() : it->next()) ++out.keys;
  out.end = it->status();
  out.gave_up = view.gave_up();
  return out;
}

TEST_CASE("a walk on the loop gives up where the next file is not in memory", "[rocks_view]") {
  for (const bool backwards : {false, true}) {
    LevelRig rig;
    for (int known = 0; known < kFiles; ++known) {
      CAPTURE(backwards, known);
      const Walked here = walk(*rig.db, {.memory_only = true}, backwards);
      CHECK(here.keys <= known * kKeysOfFile);
      CHECK(here.keys >= known * kKeysOfFile - 1);  // a step back looks at the key before, too
      CHECK(here.gave_up);
      CHECK(!here.end);
      const int file = backwards ? kFiles - 1 - known : known;  // comes into memory
      RocksView view(*rig.db, {});
      const auto it = view.iterate(
          {key_of(file * kKeysOfFile), key_of((file + 1) * kKeysOfFile), false, false});
      for (it->seek(key_of(0)); it->valid();) it->next();
      REQUIRE(it->status());
    }
    const Walked all = walk(*rig.db, {.memory_only = true}, backwards);
    CHECK(all.keys == kFiles * kKeysOfFile);
    CHECK(all.end);
    CHECK(!all.gave_up);
  }
}

TEST_CASE("a walk fails where the next file cannot be read", "[rocks_view]") {
  for (const bool backwards : {false, true}) {
    LevelRig rig;
    rig.faults->fail(FileCall::kRead, ".sst", EIO);
    CHECK(!walk(*rig.db, {}, backwards).end);
    rig.faults->heal();
    // Each read of a file in turn is the one that fails: a walk has all keys or an error.
    for (int good = 0;; ++good) {
      CAPTURE(backwards, good);
      rig.open_again();
      rig.faults->fail(FileCall::kRead, ".sst", EIO, good);
      const Walked seen = walk(*rig.db, {}, backwards);
      rig.faults->heal();
      if (seen.end) {
        CHECK(seen.keys == kFiles * kKeysOfFile);
        break;
      }
      CHECK(seen.keys < kFiles * kKeysOfFile);
      REQUIRE(good < 200);
    }
  }
}

TEST_CASE("what an iterator could not read it has not read after its next seek", "[rocks_view]") {
  for (const bool backwards : {false, true}) {
    LevelRig rig;
    bool failed = false;
    for (int good = 0;; ++good) {
      CAPTURE(backwards, good);
      rig.open_again();
      RocksView view(*rig.db, {});
      const auto it = view.iterate({key_of(0), key_of(999), false, backwards});
      rig.faults->fail(FileCall::kRead, ".sst", EIO, good, 1);
      const auto look = [&](int number) {
        backwards ? it->seek_before(key_of(number) + "x") : it->seek(key_of(number));
        return it->valid();
      };
      const bool first = look(1), second = look(kKeysOfFile + 1);
      rig.faults->heal();
      CHECK(it->status().has_value() == (first && second));
      failed |= !first && second;
      if (first && second) break;
      REQUIRE(good < 200);
    }
    CHECK(failed);
  }
}

TEST_CASE("a get of memory only gives up where the file is not open", "[rocks_view]") {
  LevelRig rig;
  rig.options.max_open_files = 20;  // the least: of the files some are not opened with the database
  rig.open_again();
  int found = 0, gave_up = 0;
  for (int number = 0; number < kFiles * kKeysOfFile; ++number) {
    RocksView view(*rig.db, {.memory_only = true});
    const auto got = view.get(key_of(number));
    gave_up += view.gave_up();
    if (!got) continue;
    REQUIRE(*got);
    CHECK((*got)->size() == 9000);
    ++found;
  }
  CHECK(found == 0);
  CHECK(gave_up == kFiles * kKeysOfFile);
}

TEST_CASE("a compaction that cannot read a file loses nothing", "[rocks_view]") {
  LevelRig rig;
  for (int good = 0;; ++good) {
    CAPTURE(good);
    // A file of level 0 over all of them: one compaction reads the level from end to end.
    REQUIRE(rig.db->Put({}, key_of(0), Bytes(9000, 'w')).ok());
    REQUIRE(rig.db->Put({}, key_of(kFiles * kKeysOfFile - 1), Bytes(9000, 'w')).ok());
    REQUIRE(rig.db->Flush({}).ok());
    rig.open_again();
    rig.faults->fail(FileCall::kRead, ".sst", EIO, good);
    const bool done = rig.db->CompactRange({}, nullptr, nullptr).ok();
    rig.faults->heal();
    rig.open_again();
    const Walked seen = walk(*rig.db, {});
    REQUIRE(seen.end);
    REQUIRE(seen.keys == kFiles * kKeysOfFile);
    if (done) break;
    REQUIRE(good < 200);
  }
}

}  // namespace
}  // namespace tetrad::storage
