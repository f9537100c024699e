// SPDX-License-Identifier: Apache-2.0
// Order and sync matter more than speed here: each function must leave a state that the next start
// understands, wherever the process or the machine stops.
#include "server/runtime/data_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace tetrad::server {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLogFolder = "log";
constexpr const char* kErased = "erased-store-";
constexpr const char* kMark = "decommissioned";

std::string utc_text(int64_t wall_us) {
  const auto seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return std::string(text, size);
}

bool is_of_node(const std::string& name) {
  return name == kLogFolder || name == "hints" || name == "batches" || name.starts_with("store-");
}

Result<void> move_into(const std::string& from, const std::string& name, const std::string& to) {
  std::error_code error;
  fs::rename(from + "/" + name, to + "/" + name, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot move {}/{} to {}: {}", from, name, to, error.message());
  return {};
}

/// What nobody else calls so: a start has made it, or what comes with the program (docker/entrypoint).
bool shows_a_node(const std::string& name) {
  constexpr std::string_view kNames[] = {"RUNNING", "admin_token", "init-scripts-ran", kMark};
  constexpr std::string_view kStore = "store-";
  const bool is_store = name.starts_with(kStore) && name.size() > kStore.size() &&
                        name.find_first_not_of("0123456789", kStore.size()) == std::string::npos;
  return is_store || std::ranges::find(kNames, name) != std::end(kNames) ||
         name.starts_with("set-aside-") || name.starts_with(kErased);
}

/// A node's, too, but not only: /var has a log. A start that was refused leaves a LOCK alone.
bool may_be_of_node(const std::string& name) {
  return is_of_node(name) || name == "LOCK" || name == "audit" || name == "snapshots";
}

/// Of whoever prepares a folder for a node.
bool is_beside_data(const std::string& name) {
  constexpr std::string_view kEnds[] = {".yaml", ".yml", ".log", ".pid", ".pem", ".crt", ".key"};
  return name.starts_with('.') || name == "lost+found" ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

Result<void> check_data_folder(const std::string& data_directory,
                               const std::vector<std::string>& named) {
  std::error_code error;
  std::string foreign;  // the first by name: the order of a directory is arbitrary
  for (const auto& entry : fs::directory_iterator(data_directory, error)) {
    const std::string name = entry.path().filename().string();
    if (shows_a_node(name)) return {};
    const bool is_named = std::ranges::any_of(named, [&](const std::string& path) {
      std::error_code none;
      return !path.empty() && fs::equivalent(path, entry.path(), none);
    });
    if (is_named || may_be_of_node(name) || is_beside_data(name)) continue;
    if (foreign.empty() || name < foreign) foreign = name;
  }
  // What cannot be read is said when it is opened.
  if (error || foreign.empty()) return {};
  return fail(ErrorCode::kConfig,
              "data_directory: {} is not empty and is no data directory of tetrad: '{}' is in it; "
              "name an empty folder, or one that is to be made",
              data_directory, foreign);
}

// What may be done is tried, since permissions do not tell it: root may write everywhere, and /proc
// takes nothing.
Result<void> check_can_hold_files(const std::string& path) {
  std::error_code error;
  fs::path there = fs::absolute(path, error);
  // Up to what is there; that nothing is counts as an error, too.
  while (!error && fs::symlink_status(there, error).type() == fs::file_type::not_found &&
         there.has_relative_path()) {
    error.clear();
    there = there.parent_path();
  }
  if (!error && !fs::is_directory(there, error) && !error)
    error = std::make_error_code(std::errc::not_a_directory);
  if (!error) {
    std::string trial = there / ".tetrad-check-XXXXXX";
    if (::mkdtemp(trial.data()) != nullptr && ::rmdir(trial.c_str()) == 0) return {};
    error = std::error_code(errno, std::generic_category());
  }
  return fail(ErrorCode::kIo, "{} cannot hold files: {}: {}{}", path, there.string(),
              error.message(), read_only_hint(error.value()));
}

const char* read_only_hint(int error) {
  return error == EROFS ? " (where the disk is not so, the service may not write there: "
                          "ReadWritePaths= in a drop-in, systemctl edit tetrad)"
                        : "";
}

Result<void> sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  if (folder >= 0) ::close(folder);
  if (!synced) return fail(ErrorCode::kIo, "cannot sync the folder {}", path);
  return {};
}

// 1. Make the folder. 2. Move stores, hints and batches. 3. Sync both folders. 4. Move the log,
//    which says who the node is. 5. Sync again. Renames are within one file system, so each is
//    whole or not at all.
Result<std::string> set_data_aside(const std::string& data_directory, HostId host,
                                   int64_t wall_us) {
  const std::string aside =
      fmt::format("{}/set-aside-{}-{}", data_directory, host.to_string(), utc_text(wall_us));
  std::error_code error;
  fs::create_directory(aside, error);
  if (error) return fail(ErrorCode::kIo, "cannot make {}: {}", aside, error.message());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_directory, error)) {
    const std::string name = entry.path().filename().string();
    if (is_of_node(name) && name != kLogFolder) names.push_back(name);
  }
  if (error) return fail(ErrorCode::kIo, "cannot read {}: {}", data_directory, error.message());
  // The order of a directory is arbitrary; a stop in the middle should leave the same state
  // everywhere.
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) TETRAD_TRY_VOID(move_into(data_directory, name, aside));
  TETRAD_TRY_VOID(sync_folder(aside));
  TETRAD_TRY_VOID(sync_folder(data_directory));
  if (fs::exists(data_directory + "/" + kLogFolder, error))
    TETRAD_TRY_VOID(move_into(data_directory, kLogFolder, aside));
  TETRAD_TRY_VOID(sync_folder(aside));
  TETRAD_TRY_VOID(sync_folder(data_directory));
  return aside;
}

// A folder that is removed file by file could be opened half empty after a crash. Renamed first, it
// is no store any more.
Result<void> erase_store(const std::string& data_directory, uint32_t store) {
  const std::string path = fmt::format("{}/store-{}", data_directory, store);
  const std::string aside = fmt::format("{}/{}{}", data_directory, kErased, store);
  std::error_code error;
  fs::remove_all(aside, error);
  // Whole or not at all, even if the power goes.
  if (!error) fs::rename(path, aside, error);
  if (error) return fail(ErrorCode::kIo, "cannot erase {}: {}", path, error.message());
  TETRAD_TRY_VOID(sync_folder(data_directory));
  fs::remove_all(aside, error);  // what stays is removed at the next start
  return {};
}

void finish_erasing(const std::string& data_directory) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(data_directory, error))
    if (entry.path().filename().string().starts_with(kErased)) left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove_all(path, error);
}

Result<void> mark_decommissioned(const std::string& data_directory, HostId host, int64_t wall_us) {
  const std::string path = data_directory + "/" + kMark;
  const std::string text =
      fmt::format("host {} has left its cluster at {}", host.to_string(), utc_text(wall_us));
  std::FILE* const file = std::fopen(path.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = written && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) return fail(ErrorCode::kIo, "cannot write {}", path);
  return sync_folder(data_directory);
}

std::optional<std::string> decommission_mark(const std::string& data_directory) {
  std::ifstream file(data_directory + "/" + kMark);
  if (!file) return std::nullopt;
  std::string text;
  std::getline(file, text);
  return text;
}

}  // namespace tetrad::server
