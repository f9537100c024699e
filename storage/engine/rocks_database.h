// SPDX-License-Identifier: Apache-2.0
// An open RocksDB and who works on it: the store's thread and jobs on the I/O pool. It closes when
// no job is inside any more.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "storage/engine/disk_watch.h"

namespace rocksdb {
class DB;
class Env;
class FileSystem;
class Snapshot;
class Status;
struct Options;
}  // namespace rocksdb

namespace tetrad::storage {

class LogChain;

/// Where a database is: in memory, or on files under a folder (null: the system's).
struct DatabaseFiles {
  std::shared_ptr<rocksdb::Env> memory;
  std::shared_ptr<rocksdb::FileSystem> files;
};

/// Shared by a store and by the jobs it has sent out, so a job never outlives the database it
/// reads. Who works on it from another thread holds a Visit; close waits until there is none.
class RocksDatabase {
 public:
  /// Checks the format file (made with a new database) and opens. `kind` is what the file says,
  /// "store" or "local log". A gap in the log is damage like any other: as `options` recover from
  /// it. Errors: kConfig for a format or a folder this program does not read, kCorruption, kIo.
  static Result<std::shared_ptr<RocksDatabase>> open(rocksdb::Options options,
                                                     const std::string& directory,
                                                     std::string_view kind,
                                                     const DatabaseFiles& files);
  ~RocksDatabase();

  rocksdb::DB& db() { return *db_; }

  /// While one lives, the database stays open. False: it is closing, keep away.
  class Visit {
   public:
    explicit Visit(RocksDatabase& database) : database_(database), inside_(database.enter()) {}
    ~Visit() {
      if (inside_) database_.leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const { return inside_; }

   private:
    RocksDatabase& database_;
    const bool inside_;
  };

  /// Snapshots that jobs carry. What is not given back goes with close().
  const rocksdb::Snapshot* take_snapshot();
  void give_back(const rocksdb::Snapshot* snapshot);

  /// Makes everything written so far safe from a power cut; on any thread. Blocks. Aborted, and
  /// touches nothing, once an append to the log or a sync has failed.
  rocksdb::Status sync_log();
  DiskWatch& watch() { return *watch_; }
  /// Whether the disk has room for the memtables and `bytes` more: tried by writing a file. Blocks.
  bool has_room(uint64_t bytes);
  /// Logs that an open does not need (kept_logs.h) go. Blocks.
  void drop_kept_logs();

  /// No job comes in any more; waits for those inside.
  void shut_out_jobs();
  /// Syncs the log and closes. Jobs must be shut out.
  Result<void> close();
  /// Closes when the last job is out. False: it was closed already.
  bool close_when_idle();
  /// It must not be looked at any more, but for what is behind it here.
  bool is_closed() const { return db_ == nullptr; }

 private:
  RocksDatabase(std::string directory, bool in_memory, std::shared_ptr<DiskWatch> watch,
                std::shared_ptr<rocksdb::Env> env, std::shared_ptr<LogChain> chain,
                std::unique_ptr<rocksdb::DB> db);
  /// Of a Visit: false when the database is closing.
  bool enter();
  void leave();
  /// Those that jobs still hold: RocksDB closes only without any.
  void release_snapshots();

  const std::string directory_;
  const bool in_memory_;
  const std::shared_ptr<DiskWatch> watch_;
  const std::shared_ptr<rocksdb::Env> env_;  // outlives db_
  const std::shared_ptr<LogChain> chain_;    // as env_
  std::unique_ptr<rocksdb::DB> db_;
  /// Guards the members that follow.
  std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
  bool closing_ = false;
  std::set<const rocksdb::Snapshot*> snapshots_;
};

}  // namespace tetrad::storage
