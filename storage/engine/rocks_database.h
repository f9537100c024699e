// SPDX-License-Identifier: Apache-2.0
// An open RocksDB and who works on it: the store's thread and jobs on the I/O pool. It closes when
// no job is inside any more.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/result.h"

namespace rocksdb {
class DB;
class Env;
class Snapshot;
struct Options;
}  // namespace rocksdb

namespace tetrad::storage {

class RocksDatabase {
 public:
  /// Checks the format file (made with a new database) and opens. `kind` is what the file says,
  /// "store" or "local log". Errors: kConfig for a format or a folder this program does not read,
  /// kCorruption, kIo.
  static Result<std::shared_ptr<RocksDatabase>> open(const rocksdb::Options& options,
                                                     const std::string& directory,
                                                     std::string_view kind,
                                                     std::shared_ptr<rocksdb::Env> env);
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

  /// Makes everything written so far safe from a power cut; on any thread. Blocks.
  Result<void> sync_log();

  /// No job comes in any more; waits for those inside.
  void shut_out_jobs();
  /// Syncs the log and closes. Jobs must be shut out.
  Result<void> close();

 private:
  RocksDatabase(std::unique_ptr<rocksdb::DB> db, std::shared_ptr<rocksdb::Env> env);
  bool enter();
  void leave();
  void release_snapshots();

  const std::shared_ptr<rocksdb::Env> env_;  // null: the system's; outlives db_
  std::unique_ptr<rocksdb::DB> db_;
  std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
  bool closing_ = false;
  std::set<const rocksdb::Snapshot*> snapshots_;
};

}  // namespace tetrad::storage
