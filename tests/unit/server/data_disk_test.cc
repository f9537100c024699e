// SPDX-License-Identifier: Apache-2.0
// The disk under the data directory.
#include "server/runtime/data_disk.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {

namespace fs = std::filesystem;

TEST_CASE("a data directory has the bytes of its files, those of its folders too") {
  const fs::path top = fs::temp_directory_path() / ("tetrad-disk-" + std::to_string(getpid()));
  fs::create_directories(top / "store0" / "deeper");
  DataDisk disk(top.string());
  const auto empty = disk.measure();
  REQUIRE(empty);
  CHECK(empty->used_bytes == 0);
  CHECK(empty->usable_bytes > 0);
  const auto write = [&](const fs::path& file, size_t bytes) {
    std::ofstream(file) << std::string(bytes, 'x');
  };
  write(top / "LOCK", 0);
  write(top / "store0" / "000001.sst", 5'000);
  write(top / "store0" / "deeper" / "file", 70'000);
  fs::create_directory_symlink(top, top / "store0" / "around");
  fs::create_symlink(top / "store0" / "000001.sst", top / "again");
  const auto full = disk.measure();
  REQUIRE(full);
  CHECK(full->used_bytes == 75'000);
  const auto capacity = disk.capacity_bytes();
  REQUIRE(capacity);
  CHECK(*capacity >= full->usable_bytes);
  fs::remove_all(top);
  const auto gone = disk.measure();
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::kIo);
}

}  // namespace tetrad::server
