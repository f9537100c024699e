// SPDX-License-Identifier: Apache-2.0
// Opening and closing of databases, and the format file beside them.
//
//   TETRAD_FORMAT := "tetrad ", kind, " format ", number in decimal, newline
//   kind          := "store" | "local log"
//   for example "tetrad store format 2\n"
#include "storage/engine/rocks_database.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include "base/assert.h"
#include "storage/encryption/file_header.h"
#include "storage/engine/kept_logs.h"
#include "storage/engine/log_chain.h"
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

/// A file of an encrypted database that was opened without its keys; where there are keys `env`
/// shows what is in it.
Result<void> refuse_encrypted(rocksdb::Env& env, const std::string& file) {
  std::unique_ptr<rocksdb::SequentialFile> sequence;
  uint64_t bytes = 0;
  if (!env.GetFileSize(file, &bytes).ok() ||
      !env.NewSequentialFile(file, &sequence, rocksdb::EnvOptions()).ok())
    return {};  // what follows says why
  std::array<char, kFileHeaderUsedBytes> scratch;
  rocksdb::Slice first;
  if (!sequence->Read(scratch.size(), &first, scratch.data()).ok()) return {};
  const BytesView header(first.data(), first.size());
  if (file_kind(header, bytes) != FileKind::kEncrypted) return {};
  TETRAD_TRY(const MasterKeyName name, master_key_of(header, file));
  TETRAD_TRY_VOID(find_master_key(name, nullptr, file));
  return {};
}

Result<void> check_format(rocksdb::Env& env, const std::string& directory, std::string_view kind) {
  for (const char* name : {"/TETRAD_FORMAT", "/CURRENT"})
    TETRAD_TRY_VOID(refuse_encrypted(env, directory + name));
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

std::string parent_of(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

/// Makes every folder on the way; a new one is in its parent even after a power cut.
Result<void> make_directories(rocksdb::Env& env, const std::string& directory) {
  for (size_t at = 1; at <= directory.size(); ++at) {
    if (at != directory.size() && directory[at] != '/') continue;
    const std::string folder = directory.substr(0, at);
    if (env.FileExists(folder).ok()) continue;
    rocksdb::Status status = env.CreateDirIfMissing(folder);
    std::unique_ptr<rocksdb::Directory> parent;
    if (status.ok()) status = env.NewDirectory(parent_of(folder), &parent);
    if (status.ok()) status = parent->Fsync();
    if (!status.ok()) return std::unexpected(error_of(status, "making the folder " + folder));
  }
  return {};
}

/// Whether the disk has room for `bytes`: tried by writing a file.
rocksdb::Status try_room(rocksdb::Env& env, const std::string& directory, uint64_t bytes) {
  const std::string file = directory + "/ROOM";
  const std::string zeros(1 << 20, '\0');
  std::unique_ptr<rocksdb::WritableFile> scratch;
  rocksdb::Status status = env.NewWritableFile(file, &scratch, rocksdb::EnvOptions());
  for (uint64_t done = 0; status.ok() && done < bytes; done += zeros.size())
    status = scratch->Append(zeros);
  if (status.ok()) status = scratch->Close();
  scratch.reset();
  env.DeleteFile(file).PermitUncheckedError();
  return status;
}

/// RocksDB ends the process by an assertion when an open finds no room for its first records. It
/// also writes what is in the logs to files.
Result<void> check_room(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  env.GetChildren(directory, &names).PermitUncheckedError();
  uint64_t bytes = 1 << 20;
  for (const std::string& name : names) {
    uint64_t size = 0;
    if (name.ends_with(".log") && env.GetFileSize(directory + "/" + name, &size).ok())
      bytes += size;
  }
  rocksdb::Status status = try_room(env, directory, bytes);
  if (!status.ok()) {
    trim_kept_logs(env, directory, 0);
    status = try_room(env, directory, bytes);
  }
  if (!status.ok()) return std::unexpected(error_of(status, "opening " + directory));
  return {};
}

}  // namespace

Result<std::shared_ptr<RocksDatabase>> RocksDatabase::open(rocksdb::Options options,
                                                           const std::string& directory,
                                                           std::string_view kind,
                                                           const DatabaseFiles& files) {
  const auto watch = std::make_shared<DiskWatch>();
  const bool in_memory = files.memory != nullptr;
  const std::shared_ptr<rocksdb::Env> env =
      in_memory ? files.memory : make_watched_env(files.files, watch);
  TETRAD_TRY_VOID(make_directories(*env, directory));
  TETRAD_TRY_VOID(check_format(*env, directory, kind));
  if (!in_memory) TETRAD_TRY_VOID(check_room(*env, directory));
  options.env = env.get();
  const auto chain = std::make_shared<LogChain>(
      options.wal_recovery_mode == rocksdb::WALRecoveryMode::kPointInTimeRecovery
          ? LogChain::AtGap::kStop
          : LogChain::AtGap::kRefuse);
  options.wal_filter = chain.get();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  if (!status.ok() && chain->gap())
    return fail(ErrorCode::kCorruption, "opening {}: {}", directory, chain->gap()->text());
  if (!status.ok()) return std::unexpected(error_of(status, "opening " + directory));
  return std::shared_ptr<RocksDatabase>(
      new RocksDatabase(directory, in_memory, watch, env, chain, std::unique_ptr<rocksdb::DB>(db)));
}

RocksDatabase::RocksDatabase(std::string directory, bool in_memory,
                             std::shared_ptr<DiskWatch> watch, std::shared_ptr<rocksdb::Env> env,
                             std::shared_ptr<LogChain> chain, std::unique_ptr<rocksdb::DB> db)
    : directory_(std::move(directory)),
      in_memory_(in_memory),
      watch_(std::move(watch)),
      env_(std::move(env)),
      chain_(std::move(chain)),
      db_(std::move(db)) {}

RocksDatabase::~RocksDatabase() { release_snapshots(); }

bool RocksDatabase::enter() {
  const std::lock_guard lock(mutex_);
  if (closing_) return false;
  ++inside_;
  return true;
}

void RocksDatabase::leave() {
  const std::lock_guard lock(mutex_);
  TETRAD_ASSERT(inside_ > 0);
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

rocksdb::Status RocksDatabase::sync_log() {
  if (in_memory_) return {};  // outlives nothing, and cannot be synced so
  if (!watch_->begin_log_sync()) return rocksdb::Status::Aborted("an append has failed");
  const rocksdb::Status status = db_->SyncWAL();
  watch_->end_log_sync();
  // One that waited for another, which has failed, has found nothing left to sync.
  if (status.ok() && watch_->failed_sync()) return rocksdb::Status::Aborted("a sync has failed");
  return status;
}

bool RocksDatabase::close_when_idle() {
  if (is_closed()) return false;
  shut_out_jobs();
  (void)close();  // what it says is in watch()
  return true;
}

bool RocksDatabase::has_room(uint64_t bytes) {
  if (in_memory_) return true;
  uint64_t held_bytes = 0, free_bytes = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &held_bytes);
  bytes += held_bytes;
  if (env_->GetFreeSpace(directory_, &free_bytes).ok() && free_bytes < bytes) return false;
  // A quota, or the lack of descriptors, shows only so.
  return try_room(*env_, directory_, bytes).ok();
}

void RocksDatabase::drop_kept_logs() {
  if (!in_memory_) trim_kept_logs(*env_, directory_, 0);
}

Result<void> RocksDatabase::close() {
  release_snapshots();
  const rocksdb::Status synced = sync_log();
  const rocksdb::Status closed = db_->Close();
  db_.reset();
  if (!synced.ok()) return std::unexpected(error_of(synced, "syncing the log"));
  if (!closed.ok()) return std::unexpected(error_of(closed, "closing the store"));
  return {};
}

}  // namespace tetrad::storage
