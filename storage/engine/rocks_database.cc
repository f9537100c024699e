// SPDX-License-Identifier: Apache-2.0
// Opening and closing of databases, and the format file beside them.
//
//   TETRAD_FORMAT := "tetrad <kind> format <number>\n"
#include "storage/engine/rocks_database.h"

#include <charconv>
#include <utility>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include "storage/engine/rocks_status.h"

namespace tetrad::storage {
namespace {

/// Of a store 2: range tombstones that are not of one prefix lie apart (row/range_tombstones.h);
/// what was written in format 1 is read, and stays where it is until it is purged.
int newest_format(std::string_view kind) { return kind == "store" ? 2 : 1; }
constexpr uint64_t kFormatFileBytesMax = 256;

Result<void> make_format_file(rocksdb::Env& env, const std::string& directory,
                              const std::string& file, const std::string& text) {
  // Complete under its name or not there at all.
  const std::string draft = file + ".new";
  rocksdb::Status status = rocksdb::WriteStringToFile(&env, text, draft, true);
  if (status.ok()) status = env.RenameFile(draft, file);
  std::unique_ptr<rocksdb::Directory> folder;
  if (status.ok()) status = env.NewDirectory(directory, &folder);
  if (status.ok()) status = folder->Fsync();
  if (!status.ok()) return std::unexpected(error_of(status, "writing " + file));
  return {};
}

/// The format it says.
Result<int> check_format_text(const std::string& text, const std::string& file,
                              std::string_view kind) {
  const std::string head = fmt::format("tetrad {} format ", kind);
  int format = 0;
  const char* number = text.data() + head.size();
  const char* end = text.data() + text.size();
  const bool readable = text.starts_with(head) && text.ends_with('\n') &&
                        std::from_chars(number, end, format).ptr == end - 1;
  if (!readable)
    return fail(ErrorCode::kCorruption, "{} does not say \"{}<number>\": damaged, or not a {}",
                file, head, kind);
  if (format < 1 || format > newest_format(kind))
    return fail(
        ErrorCode::kConfig,
        "{} says format {}; this program reads formats up to {} and leaves the folder alone", file,
        format, newest_format(kind));
  return format;
}

Result<void> check_format(rocksdb::Env& env, const std::string& directory, std::string_view kind) {
  const std::string file = directory + "/TETRAD_FORMAT";
  const std::string newest = fmt::format("tetrad {} format {}\n", kind, newest_format(kind));
  uint64_t size = 0;
  const rocksdb::Status found = env.GetFileSize(file, &size);
  if (!found.ok()) {
    if (env.FileExists(file).ok()) return std::unexpected(error_of(found, "reading " + file));
    if (env.FileExists(directory + "/CURRENT").ok())
      return fail(ErrorCode::kConfig,
                  "{} holds a database but no TETRAD_FORMAT file: not one of Tetrad's", directory);
    return make_format_file(env, directory, file, newest);
  }
  if (size > kFormatFileBytesMax)
    return fail(ErrorCode::kCorruption, "{} has {} bytes: damaged", file, size);
  std::string text;
  const rocksdb::Status read = rocksdb::ReadFileToString(&env, file, &text);
  if (!read.ok()) return std::unexpected(error_of(read, "reading " + file));
  TETRAD_TRY(const int format, check_format_text(text, file, kind));
  if (format == newest_format(kind)) return {};
  return make_format_file(env, directory, file, newest);  // before anything is written in it
}

/// CreateDirIfMissing of every folder on the way.
Result<void> make_directories(rocksdb::Env& env, const std::string& directory) {
  for (size_t at = 1; at <= directory.size(); ++at) {
    if (at != directory.size() && directory[at] != '/') continue;
    const std::string folder = directory.substr(0, at);
    if (env.FileExists(folder).ok()) continue;
    const rocksdb::Status status = env.CreateDirIfMissing(folder);
    if (!status.ok()) return std::unexpected(error_of(status, "making the folder " + folder));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<RocksDatabase>> RocksDatabase::open(const rocksdb::Options& options,
                                                           const std::string& directory,
                                                           std::string_view kind,
                                                           std::shared_ptr<rocksdb::Env> env) {
  rocksdb::Env& files = env != nullptr ? *env : *rocksdb::Env::Default();
  TETRAD_TRY_VOID(make_directories(files, directory));
  TETRAD_TRY_VOID(check_format(files, directory, kind));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  if (!status.ok()) return std::unexpected(error_of(status, "opening " + directory));
  return std::shared_ptr<RocksDatabase>(
      new RocksDatabase(std::unique_ptr<rocksdb::DB>(db), std::move(env)));
}

RocksDatabase::RocksDatabase(std::unique_ptr<rocksdb::DB> db, std::shared_ptr<rocksdb::Env> env)
    : env_(std::move(env)), db_(std::move(db)) {}

RocksDatabase::~RocksDatabase() { release_snapshots(); }

bool RocksDatabase::enter() {
  const std::lock_guard lock(mutex_);
  if (closing_) return false;
  ++inside_;
  return true;
}

void RocksDatabase::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

const rocksdb::Snapshot* RocksDatabase::take_snapshot() {
  const std::lock_guard lock(mutex_);
  return *snapshots_.insert(db_->GetSnapshot()).first;
}

void RocksDatabase::give_back(const rocksdb::Snapshot* snapshot) {
  const std::lock_guard lock(mutex_);
  if (snapshots_.erase(snapshot) == 1) db_->ReleaseSnapshot(snapshot);
}

void RocksDatabase::release_snapshots() {
  const std::lock_guard lock(mutex_);
  for (const rocksdb::Snapshot* snapshot : std::exchange(snapshots_, {}))
    db_->ReleaseSnapshot(snapshot);
}

void RocksDatabase::shut_out_jobs() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  empty_.wait(lock, [this] { return inside_ == 0; });
}

Result<void> RocksDatabase::sync_log() {
  if (env_ != nullptr) return {};  // files in memory outlive nothing, and cannot be synced so
  const rocksdb::Status status = db_->SyncWAL();
  if (!status.ok()) return std::unexpected(error_of(status, "syncing the log"));
  return {};
}

Result<void> RocksDatabase::close() {
  release_snapshots();
  const Result<void> synced = sync_log();
  const rocksdb::Status closed = db_->Close();
  if (!synced) return synced;
  if (!closed.ok()) return std::unexpected(error_of(closed, "closing the store"));
  return {};
}

}  // namespace tetrad::storage
