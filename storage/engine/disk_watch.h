// SPDX-License-Identifier: Apache-2.0
// What the file system did to a database, seen from below RocksDB. RocksDB's statuses do not
// distinguish a failed sync from a failed write or a failed read, and syncing its log after a failed
// append ends the process by an assertion.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace rocksdb {
class Env;
class FileSystem;
}  // namespace rocksdb

namespace tetrad::storage {

/// On any thread.
/// What went wrong below one database. Shared by its files and by who decides on its health.
/// Nothing is ever taken back: a database that is opened anew has a new one.
class DiskWatch {
 public:
  /// After the first, what the page cache shows may not be on the disk, and a second sync would say
  /// that it is (fsyncgate).
  void note_failed_sync(std::string what) {
    const std::lock_guard lock(mutex_);
    if (!failed_sync_) failed_sync_ = std::move(what);
  }
  /// File and reason of the first.
  std::optional<std::string> failed_sync() const {
    const std::lock_guard lock(mutex_);
    return failed_sync_;
  }

  /// A block that the disk does not give harms only what stands in it.
  void note_failed_read() { read_failed_.store(true, std::memory_order_relaxed); }
  bool read_failed() const { return read_failed_.load(std::memory_order_relaxed); }

  /// Before RocksDB hears of it: a sync of the log that has begun ends first.
  void note_failed_append() {
    std::unique_lock lock(mutex_);
    append_failed_ = true;
    idle_.wait_for(lock, std::chrono::seconds(10), [this] { return log_syncs_ == 0; });
  }
  /// The log takes nothing any more, even if RocksDB resumes: it must be opened anew.
  bool append_failed() const {
    const std::lock_guard lock(mutex_);
    return append_failed_;
  }
  /// Around a sync of the log. False: it must not be.
  bool begin_log_sync() {
    const std::lock_guard lock(mutex_);
    if (append_failed_ || failed_sync_) return false;
    ++log_syncs_;
    return true;
  }
  void end_log_sync() {
    const std::lock_guard lock(mutex_);
    if (--log_syncs_ == 0) idle_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  /// Ends of log syncs, for note_failed_append().
  std::condition_variable idle_;
  int log_syncs_ = 0;
  bool append_failed_ = false;
  std::atomic<bool> read_failed_ = false;
  std::optional<std::string> failed_sync_;
};

/// Files of one database over `files` (null: the system's).
std::shared_ptr<rocksdb::Env> make_watched_env(std::shared_ptr<rocksdb::FileSystem> files,
                                               std::shared_ptr<DiskWatch> watch);

}  // namespace tetrad::storage
