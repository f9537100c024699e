// SPDX-License-Identifier: Apache-2.0
// A damaged store is removed whole, whatever an earlier attempt has left; a folder of somebody else is
// known.
#include "server/runtime/data_folder.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"

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

TEST_CASE("a folder that has other things in it and nothing of a node is none for data") {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "tetrad-folder-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const fs::path top = pattern;
  const auto is_taken = [&](std::vector<std::string> names, std::vector<std::string> named = {}) {
    const fs::path path = top / "data";
    fs::create_directory(path);
    for (const std::string& name : names) fs::create_directory(path / name);
    for (std::string& name : named) name = path / name;
    const auto checked = check_data_folder(path.string(), named);
    if (!checked) CHECK(checked.error().code == ErrorCode::kConfig);
    fs::remove_all(path);
    return checked.has_value();
  };
  CHECK(check_data_folder((top / "none").string(), {}));
  CHECK(is_taken({}));
  CHECK(is_taken({"lost+found", ".snapshot", "LOCK"}));
  CHECK(is_taken({"node.log", "tetrad.yaml", "node.key", "tetrad.pid"}));
  CHECK(is_taken({"LOCK", "audit", "log", "hints", "batches", "snapshots"}));
  CHECK(is_taken({"secret"}, {"secret"}));
  for (const char* of_node : {"store-0", "admin_token", "RUNNING", "decommissioned",
                              "set-aside-x-20260101T000000Z", "init-scripts-ran", "erased-store-1"})
    CHECK(is_taken({"photos", of_node}));
  CHECK_FALSE(is_taken({"photos"}));
  CHECK_FALSE(is_taken({"secret"}, {"other"}));
  CHECK_FALSE(is_taken({"photos", "lost+found"}));
  CHECK_FALSE(is_taken({"cache", "lib", "log", "tmp"}));                  // /var
  CHECK_FALSE(is_taken({"LOCK", "CURRENT", "MANIFEST-1"}));               // another database
  CHECK_FALSE(is_taken({"commitlog", "data", "hints", "saved_caches"}));  // Cassandra's
  const auto usr = check_data_folder("/usr", {});
  REQUIRE_FALSE(usr);
  CHECK(usr.error().message.starts_with(
      "data_directory: /usr is not empty and is no data directory of tetrad: 'bin' is in it"));
  fs::remove_all(top);
}

TEST_CASE("whether a folder can hold files is known without making it") {
  const tests::TemporaryFolder folder;
  const std::string& top = folder.path();
  const auto said = [](const std::string& path) {
    const auto checked = check_can_hold_files(path);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(said(top) == "");
  CHECK(said(top + "/") == "");
  CHECK(said(top + "/a/b/c") == "");
  CHECK(std::filesystem::is_empty(top));
  CHECK(said("/proc/x/y").starts_with("/proc/x/y cannot hold files: /proc: "));
  std::ofstream(top + "/file") << "x";
  for (const char* below : {"/file", "/file/a", "/file/a/b"})
    CHECK(said(top + below).ends_with(": Not a directory"));
  std::filesystem::create_symlink(top + "/nowhere", top + "/link");
  CHECK(said(top + "/link/a").starts_with(top + "/link/a cannot hold files: " + top + "/link"));
  CHECK(said(top + "/" + std::string(300, 'x')).ends_with(": File name too long"));
}

TEST_CASE("only a file system that is not to be written gets the hint of systemd") {
  CHECK(std::string(read_only_hint(EROFS)).find("ReadWritePaths=") != std::string::npos);
  CHECK(std::string(read_only_hint(EACCES)).empty());
}

}  // namespace tetrad::server
