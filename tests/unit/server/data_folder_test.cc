// SPDX-License-Identifier: Apache-2.0
// A damaged store is removed whole, whatever an earlier attempt has left.
#include "server/runtime/data_folder.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("a store is erased as a whole, and what an earlier erasing left goes") {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "tetrad-folder-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const fs::path path = pattern;
  for (const char* folder : {"store-0", "store-1", "log", "erased-store-1"}) {
    fs::create_directory(path / folder);
    std::ofstream(path / folder / "file") << "data";
  }
  CHECK(erase_store(path.string(), 1));
  CHECK_FALSE(fs::exists(path / "store-1"));
  CHECK_FALSE(fs::exists(path / "erased-store-1"));
  CHECK((fs::exists(path / "store-0" / "file") && fs::exists(path / "log" / "file")));
  CHECK_FALSE(erase_store(path.string(), 1));
  fs::create_directories(path / "erased-store-0" / "inner");
  finish_erasing(path.string());
  CHECK_FALSE(fs::exists(path / "erased-store-0"));
  CHECK(fs::exists(path / "store-0" / "file"));
  fs::remove_all(path);
}

}  // namespace tetrad::server
