// SPDX-License-Identifier: Apache-2.0
// What lies on the disk survives a loss of power at every step:
//
// 1. A draft has a name that is no tag (`.new-…`). Lists do not show it, and clean() removes it at
//    the next start.
// 2. finish() writes and syncs the manifest, renames the draft, and syncs the folder above. A
//    folder with the name of a tag has a whole manifest.
// 3. remove() renames to `.gone-…` and syncs before it deletes files. A snapshot of which some
//    files are missing never has the name of a tag.
//
// Manifests are read as data from outside: their size has a bound, and an entry that is missing or
// of another type is an error of that snapshot only.
#include "server/snapshots/snapshot_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "server/runtime/data_folder.h"

namespace tetrad::server {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Far below 255, the longest file name, with the prefix of a draft.
constexpr size_t kTagMax = 100;
constexpr uint64_t kManifestBytesMax = uint64_t{256} << 20;
constexpr std::string_view kDraft = ".new-", kGone = ".gone-";
constexpr const char* kManifest = "manifest.json";

// "cannot <what> <path>: <reason>", as kIo.
std::unexpected<Error> cannot(const char* what, const std::string& path,
                              const std::error_code& error) {
  return fail(ErrorCode::kIo, "cannot {} {}: {}", what, path, error.message());
}

/// The number of the kept file where the store has replaced it, or has none of that name.
std::optional<ino_t> file_of_snapshots(const std::string& kept, const std::string& in_store) {
  // Hard links of one file have one inode number. The store deletes its link when compaction has
  // replaced the file; from then on the snapshot alone holds the bytes.
  struct stat here {
  }, there{};
  if (::stat(kept.c_str(), &here) != 0) return std::nullopt;
  if (::stat(in_store.c_str(), &there) == 0 && here.st_ino == there.st_ino) return std::nullopt;
  return here.st_ino;
}

bool has(const json& numbers, uint32_t wanted) {
  return std::ranges::any_of(numbers, [&](const json& number) { return number == wanted; });
}

/// Runs `work` over a manifest; what a damaged one makes the library throw is an error of its file.
template <class Work>
auto guarded(const std::string& path, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const json::exception& error) {
    return fail(ErrorCode::kIo, "{} is damaged: {}", path, error.what());
  }
}

}  // namespace

bool is_snapshot_tag(std::string_view tag) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  // No '/', and no '.' in front: a tag from a request cannot leave the folder or name a draft. No
  // '-' in front: tools would take it for an option.
  return !tag.empty() && tag.size() <= kTagMax && tag[0] != '.' && tag[0] != '-' &&
         std::ranges::all_of(tag, fits);
}

SnapshotFolder::SnapshotFolder(std::string data_directory)
    : data_directory_(std::move(data_directory)), directory_(data_directory_ + "/snapshots") {}

void SnapshotFolder::clean() {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kDraft) || name.starts_with(kGone)) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
}

Result<void> SnapshotFolder::begin(const std::string& tag) {
  std::error_code error;
  if (fs::exists(path_of(tag), error))
    return fail(ErrorCode::kConflict, "Snapshot {} already exists.", tag);
  fs::create_directories(directory_, error);
  if (error) return cannot("make", directory_, error);
  // The draft itself is not synced: finish() syncs what has to stay.
  TETRAD_TRY_VOID(sync_folder(data_directory_));
  const std::string draft = path_of(std::string(kDraft) + tag);
  fs::remove_all(draft, error);
  fs::create_directory(draft, error);
  if (error) return cannot("make", draft, error);
  return {};
}

std::string SnapshotFolder::draft_of(const std::string& tag, uint32_t store) const {
  return fmt::format("{}/{}{}/store-{}", directory_, kDraft, tag, store);
}

Result<void> SnapshotFolder::finish(const std::string& tag, const json& manifest) {
  const std::string draft = path_of(std::string(kDraft) + tag);
  TETRAD_TRY_VOID(write_manifest(draft, manifest));
  std::error_code error;
  fs::rename(draft, path_of(tag), error);
  if (error) return cannot("rename", draft, error);
  return sync_folder(directory_);
}

void SnapshotFolder::abandon(const std::string& tag) {
  std::error_code error;
  fs::remove_all(path_of(std::string(kDraft) + tag), error);
}

Result<SnapshotList> SnapshotFolder::list() const {
  SnapshotList out;
  std::set<ino_t> counted, counted_lasting;
  const auto add = [&](const std::string& tag) -> Result<void> {
    TETRAD_TRY(const json manifest, manifest_of(tag));
    for (const json& table : manifest.at("tables")) {
      SnapshotRow row{tag, table.at("keyspace"), table.at("name"), 0, 0, manifest.at("created_ms"),
                      {}};
      if (manifest.contains("expires_ms")) row.expires_ms = manifest.at("expires_ms");
      // A file may hold rows of several tables; it counts for each of them.
      const uint32_t incarnation = table.at("incarnation");
      for (const json& store : manifest.at("stores")) {
        const std::string folder = fmt::format("/store-{}/", store.at("number").get<uint32_t>());
        for (const json& file : store.at("files")) {
          if (!has(file.at("tables"), incarnation)) continue;
          const std::string name = folder + file.at("name").get<std::string>();
          const uint64_t bytes = file.at("bytes").get<uint64_t>();
          row.bytes += bytes;
          const auto own = file_of_snapshots(path_of(tag) + name, data_directory_ + name);
          if (!own) continue;
          row.own_bytes += bytes;
          if (counted.insert(*own).second) out.own_bytes += bytes;
          if (!row.expires_ms && counted_lasting.insert(*own).second)
            out.lasting_own_bytes += bytes;
        }
      }
      out.rows.push_back(std::move(row));
    }
    return {};
  };
  for (const std::string& tag : tags()) {
    // One snapshot that does not read must not hide the others.
    const Result<void> added = guarded(path_of(tag), [&] { return add(tag); });
    if (!added) out.unreadable.push_back(added.error().message);
  }
  std::ranges::sort(out.rows, {}, [](const SnapshotRow& row) {
    return std::tie(row.tag, row.keyspace, row.table);
  });
  return out;
}

Result<size_t> SnapshotFolder::clear(const std::string& tag,
                                     const std::vector<std::string>& keyspaces) {
  size_t cleared = 0;
  for (const std::string& one : tags()) {
    if (!tag.empty() && one != tag) continue;
    bool had = true;
    // Without keyspaces the manifest is not read, so a damaged snapshot can be cleared, too.
    if (keyspaces.empty()) {
      TETRAD_TRY_VOID(remove(one));
    } else {
      TETRAD_TRY(had, guarded(path_of(one), [&] { return clear_keyspaces(one, keyspaces); }));
    }
    cleared += had ? 1 : 0;
  }
  return cleared;
}

Result<size_t> SnapshotFolder::expire(int64_t now_ms) {
  size_t expired = 0;
  for (const std::string& tag : tags()) {
    const auto is_over = guarded(path_of(tag), [&]() -> Result<bool> {
      TETRAD_TRY(const json manifest, manifest_of(tag));
      return manifest.contains("expires_ms") && manifest.at("expires_ms").get<int64_t>() <= now_ms;
    });
    // A manifest that does not read never expires: only an operator removes it.
    if (!is_over || !*is_over) continue;
    TETRAD_TRY_VOID(remove(tag));
    ++expired;
  }
  return expired;
}

std::vector<std::string> SnapshotFolder::tags() const {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    if (is_snapshot_tag(name)) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

Result<json> SnapshotFolder::manifest_of(const std::string& tag) const {
  const std::string path = path_of(tag) + "/" + kManifest;
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return cannot("read", path, error);
  if (bytes > kManifestBytesMax)
    return fail(ErrorCode::kIo, "{} has {} bytes: damaged", path, bytes);
  std::ifstream file(path);
  json manifest = json::parse(file, nullptr, false);
  if (manifest.is_discarded() || manifest.value("format", 0) != kSnapshotFormat)
    return fail(ErrorCode::kIo, "{} is damaged, or of a format that this program does not read",
                path);
  return manifest;
}

Result<void> SnapshotFolder::write_manifest(const std::string& folder, const json& manifest) const {
  // Written beside, synced, renamed: whoever reads has the old text or the new one.
  const std::string path = folder + "/" + kManifest, unfinished = path + ".new";
  const std::string text = manifest.dump(1) + "\n";
  std::FILE* const file = std::fopen(unfinished.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = written && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) return fail(ErrorCode::kIo, "cannot write {}", unfinished);
  std::error_code error;
  fs::rename(unfinished, path, error);
  if (error) return cannot("rename", unfinished, error);
  return sync_folder(folder);
}

/// Whole or not at all, even if the power goes.
Result<void> SnapshotFolder::remove(const std::string& tag) {
  const std::string gone = path_of(std::string(kGone) + tag);
  std::error_code error;
  fs::remove_all(gone, error);
  fs::rename(path_of(tag), gone, error);
  if (error) return cannot("remove", path_of(tag), error);
  TETRAD_TRY_VOID(sync_folder(directory_));
  fs::remove_all(gone, error);  // what stays is removed at the next start
  return {};
}

/// False: it had none of them.
Result<bool> SnapshotFolder::clear_keyspaces(const std::string& tag,
                                             const std::vector<std::string>& keyspaces) {
  TETRAD_TRY(json manifest, manifest_of(tag));
  json left = json::array();
  std::set<uint32_t> stay;
  for (const json& table : manifest.at("tables")) {
    if (std::ranges::find(keyspaces, table.at("keyspace").get<std::string>()) != keyspaces.end())
      continue;
    // `stay` has the tables that the snapshot keeps; a file goes when none of its tables stays.
    stay.insert(table.at("incarnation").get<uint32_t>());
    left.push_back(table);
  }
  if (left.size() == manifest.at("tables").size()) return false;
  if (left.empty()) {
    TETRAD_TRY_VOID(remove(tag));
    return true;
  }
  std::vector<std::string> unneeded;
  for (json& store : manifest.at("stores")) {
    json files = json::array();
    for (json& file : store.at("files")) {
      json tables = json::array();
      for (const json& table : file.at("tables"))
        if (stay.contains(table.get<uint32_t>())) tables.push_back(table);
      if (tables.empty()) {
        unneeded.push_back(fmt::format("{}/store-{}/{}", path_of(tag),
                                       store.at("number").get<uint32_t>(),
                                       file.at("name").get<std::string>()));
        continue;
      }
      file["tables"] = std::move(tables);
      files.push_back(std::move(file));
    }
    store["files"] = std::move(files);
  }
  manifest["tables"] = std::move(left);
  // The manifest first: after a crash in between some files are left that no manifest names, which
  // cost space only. The other way round the manifest would name files that are gone.
  TETRAD_TRY_VOID(write_manifest(path_of(tag), manifest));
  std::error_code error;
  for (const std::string& path : unneeded) fs::remove(path, error);
  return true;
}

}  // namespace tetrad::server
