// SPDX-License-Identifier: Apache-2.0
// Rot that nobody reads is found, a store that has it says so until it is erased, and a scrub goes
// on where the last life was.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondUs = 1'000'000;

/// A store over files of the system, with some table files.
struct ScrubRig {
  explicit ScrubRig(int64_t period_us) {
    std::string pattern = (fs::temp_directory_path() / "tetrad-scrub-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    options.write_buffer_bytes = 4 << 20;
    options.block_cache_bytes = 1 << 20;
    options.row_cache_bytes = 0;
    options.scrub_period_us = period_us;
    factory = make_rocks_store_factory(options, Logger());
    rig.emplace(factory, (path / "store").string());
  }
  ~ScrubRig() {
    rig.reset();
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void put_and_flush(int from) {
    for (int number = from; number < from + 50; ++number)
      REQUIRE(rig->apply(
          row_mutation(number, "p" + std::to_string(number), "a", inserted(1, Bytes(1000, 'v')))));
    REQUIRE(rig->flush());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(path / "store"))
      if (entry.path().extension() == ".sst") out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
  }
  static void flip(const fs::path& file) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) / 3));
    bytes << "rotten";
  }
  void open_again() {
    rig->close();
    rig->open();
  }
  StoreState state() const { return rig->store->status().state; }
  uint64_t scrubbed() { return rig->store->statistics().scrubbed_files; }
  ScrubSummary verify() {
    std::optional<Result<ScrubSummary>> answer;
    rig->store->verify([&](Result<ScrubSummary> summary) { answer = std::move(summary); });
    REQUIRE(rig->comes([&] { return answer.has_value(); }));
    REQUIRE(answer->has_value());
    return **answer;
  }
  void pass(int64_t us) { rig->reactor.advance_us(us); }

  StoreOptions options;
  fs::path path;
  std::shared_ptr<StoreFactory> factory;
  std::optional<StoreRig> rig;
};

}  // namespace

TEST_CASE("verifying reads every file and names those that have rotted") {
  ScrubRig t(0);
  CHECK(t.verify().files == 0);
  t.put_and_flush(0);
  t.put_and_flush(100);
  const ScrubSummary well = t.verify();
  CHECK(well.files == t.files().size());
  CHECK(well.bytes > 0);
  CHECK(well.damaged.empty());
  CHECK(t.state() == StoreState::kServing);
  t.flip(t.files().front());
  const ScrubSummary rotten = t.verify();
  CHECK(rotten.files == t.files().size());
  REQUIRE(rotten.damaged.size() == 1);
  CHECK(rotten.damaged[0].find(t.files().front().filename().string()) != std::string::npos);
  CHECK(t.state() == StoreState::kDamaged);
  CHECK(t.rig->store->status().takes_writes());
  CHECK(t.rig->store->statistics().damaged_files == 1);
  // Until it is erased, also in its next lives.
  t.open_again();
  CHECK(t.state() == StoreState::kDamaged);
  CHECK(t.rig->store->status().reason.find("sst") != std::string::npos);
  t.rig->close();
  fs::remove_all(t.path / "store");
  t.rig->open();
  CHECK(t.state() == StoreState::kServing);
}

TEST_CASE("rot that nobody reads is found within the period") {
  constexpr int64_t kPeriodUs = 1000 * kSecondUs;
  ScrubRig t(kPeriodUs);
  t.put_and_flush(0);
  t.put_and_flush(100);
  t.pass(3 * kPeriodUs);
  CHECK(t.scrubbed() >= t.files().size());
  CHECK(t.state() == StoreState::kServing);
  t.flip(t.files().back());
  t.pass(3 * kPeriodUs);
  CHECK(t.state() == StoreState::kDamaged);
}

TEST_CASE("a scrub keeps its pace, and goes on where the last life was") {
  constexpr int64_t kPeriodUs = 1000 * kSecondUs;
  ScrubRig t(kPeriodUs);
  for (int i = 0; i < 3; ++i) t.put_and_flush(i * 100);  // too few for a compaction
  const uint64_t files = t.files().size();
  t.pass(10 * kPeriodUs);
  const uint64_t read = t.scrubbed();
  CHECK(read >= 9 * files);
  CHECK(read <= 11 * files + 1);
  // Twelve lives of an eighth of the period each read about what one life of as long does.
  uint64_t in_short_lives = 0;
  for (int life = 0; life < 12; ++life) {
    t.open_again();
    t.pass(kPeriodUs / 8);
    in_short_lives += t.scrubbed();
  }
  CHECK(in_short_lives >= 1);
  CHECK(in_short_lives <= 2 * files);
}

}  // namespace tetrad::storage
