// SPDX-License-Identifier: Apache-2.0
// Snapshots on the disk of a node: what is listed, cleared, expired, and what a crash leaves.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "server/snapshots/snapshot_folder.h"

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A data directory with a store of two files: a.sst, which two tables share, and b.sst.
struct Data {
  Data() {
    std::string pattern = (fs::temp_directory_path() / "tetrad-snapshots-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    top = pattern;
    fs::create_directory(top / "store-0");
    write(top / "store-0" / "a.sst", 100);
    write(top / "store-0" / "b.sst", 10);
    folder.emplace(top.string());
  }
  ~Data() { fs::remove_all(top); }
  static void write(const fs::path& path, size_t bytes) {
    std::ofstream(path) << std::string(bytes, 'x');
  }
  void take(const std::string& tag, std::optional<int64_t> expires_ms = {}) {
    REQUIRE(folder->begin(tag).has_value());
    const fs::path draft = folder->draft_of(tag, 0);
    fs::create_directory(draft);
    for (const char* name : {"a.sst", "b.sst"})
      fs::create_hard_link(top / "store-0" / name, draft / name);
    json manifest = json::parse(R"({
      "format": 1, "created_ms": 7,
      "tables": [{"keyspace": "ks", "name": "t", "incarnation": 1},
                 {"keyspace": "other", "name": "t", "incarnation": 2}],
      "stores": [{"number": 0, "files": [{"name": "a.sst", "bytes": 100, "tables": [1, 2]},
                                         {"name": "b.sst", "bytes": 10, "tables": [2]}]}]})");
    if (expires_ms) manifest["expires_ms"] = *expires_ms;
    REQUIRE(folder->finish(tag, manifest).has_value());
  }
  /// "tag keyspace.table bytes own", one after another.
  std::string listed() {
    std::string out;
    const auto found = folder->list();
    REQUIRE(found.has_value());
    unreadable = found->unreadable;
    own_bytes = found->own_bytes;
    lasting_own_bytes = found->lasting_own_bytes;
    for (const SnapshotRow& row : found->rows)
      out += fmt::format("{}{} {}.{} {} {}", out.empty() ? "" : ", ", row.tag, row.keyspace,
                         row.table, row.bytes, row.own_bytes);
    return out;
  }

  fs::path top;
  std::optional<SnapshotFolder> folder;
  // Of the list that was made last.
  std::vector<std::string> unreadable;
  uint64_t own_bytes = 0, lasting_own_bytes = 0;
};

}  // namespace

TEST_CASE("a snapshot tells the files of each table, and which only it has") {
  Data data;
  CHECK(data.listed().empty());
  data.take("one");
  CHECK(data.listed() == "one ks.t 100 0, one other.t 110 0");
  fs::remove(data.top / "store-0" / "b.sst");  // as a compaction does
  CHECK(data.listed() == "one ks.t 100 0, one other.t 110 10");
  CHECK(data.own_bytes == 10);
  fs::remove(data.top / "store-0" / "a.sst");
  Data::write(data.top / "store-0" / "a.sst", 100);  // of the same name, after an erased store
  CHECK(data.listed() == "one ks.t 100 100, one other.t 110 110");
  // Each file once, whichever tables share it.
  CHECK(data.own_bytes == 110);
  CHECK(data.lasting_own_bytes == 110);
  Data::write(data.top / "store-0" / "b.sst", 10);
  data.take("brief", 9);
  CHECK(data.listed().starts_with("brief ks.t 100 0, brief other.t 110 0, one ks.t 100 100"));
  CHECK(data.own_bytes == 110);
  fs::remove(data.top / "store-0" / "a.sst");
  CHECK(data.listed().starts_with("brief ks.t 100 100, brief other.t 110 100, one ks.t 100 100"));
  CHECK(data.own_bytes == 210);
  CHECK(data.lasting_own_bytes == 110);
  CHECK(data.folder->begin("one").error().message == "Snapshot one already exists.");
}

TEST_CASE("snapshots are cleared whole, or the tables of a keyspace only") {
  Data data;
  data.take("one");
  data.take("two");
  CHECK(data.folder->clear("three", {}) == 0u);
  CHECK(data.folder->clear("one", {"none"}) == 0u);
  CHECK(data.folder->clear("one", {"other"}) == 1u);
  CHECK(data.listed() == "one ks.t 100 0, two ks.t 100 0, two other.t 110 0");
  CHECK_FALSE(fs::exists(data.top / "snapshots/one/store-0/b.sst"));
  CHECK(fs::exists(data.top / "snapshots/one/store-0/a.sst"));
  CHECK(data.folder->clear("", {"ks"}) == 2u);
  CHECK(data.listed() == "two other.t 110 0");
  CHECK_FALSE(fs::exists(data.top / "snapshots/one"));
  CHECK(data.folder->clear("", {}) == 1u);
  CHECK(fs::is_empty(data.top / "snapshots"));
  CHECK(fs::exists(data.top / "store-0/a.sst"));
}

TEST_CASE("a snapshot goes when its time is over, and only then") {
  Data data;
  data.take("brief", 1'000);
  data.take("long", 5'000);
  data.take("kept");
  CHECK(data.folder->expire(999) == 0u);
  CHECK(data.folder->expire(1'000) == 1u);
  CHECK(data.listed() ==
        "kept ks.t 100 0, kept other.t 110 0, long ks.t 100 0, long other.t 110 0");
}

TEST_CASE("what is half done after a crash goes, and a damaged snapshot is named") {
  Data data;
  data.take("good");
  REQUIRE(data.folder->begin("half").has_value());
  fs::create_directory(data.top / "snapshots/.gone-old");
  fs::create_directory(data.top / "snapshots/empty");
  fs::create_directory(data.top / "snapshots/odd");
  std::ofstream(data.top / "snapshots/odd/manifest.json") << R"({"format": 1, "tables": [7]})";
  fs::create_directory(data.top / "snapshots/newer");
  std::ofstream(data.top / "snapshots/newer/manifest.json") << R"({"format": 2})";
  CHECK(data.listed() == "good ks.t 100 0, good other.t 110 0");
  CHECK(data.unreadable.size() == 3);
  data.folder->clean();
  CHECK_FALSE(fs::exists(data.top / "snapshots/.new-half"));
  CHECK_FALSE(fs::exists(data.top / "snapshots/.gone-old"));
  CHECK(data.folder->expire(1'000'000).has_value());  // looks past the damaged ones
  CHECK(data.folder->clear("odd", {}) == 1u);         // which can be removed
  REQUIRE(data.folder->begin("half").has_value());
  data.folder->abandon("half");
  CHECK_FALSE(fs::exists(data.top / "snapshots/.new-half"));
}

TEST_CASE("a tag is the name of a folder beside others, and leads nowhere else") {
  for (const char* good : {"a", "1795438899123", "before-upgrade_2.0"})
    CHECK(is_snapshot_tag(good));
  for (const char* bad : {"", ".", "..", ".new-a", "-t", "a/b", "a b", "a\n", "\xC3\xA4"})
    CHECK_FALSE(is_snapshot_tag(bad));
  CHECK_FALSE(is_snapshot_tag(std::string(101, 'a')));
}

}  // namespace tetrad::server
