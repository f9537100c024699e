// SPDX-License-Identifier: Apache-2.0
// What a disk in trouble means for a store, and how it comes back.
//
//   no room, no descriptors   full: writes are refused with the reason. Every few seconds: is there
//                             room? RocksDB resumes on a maintenance thread and a record is written
//                             and synced; if it cannot resume, it is closed and opened in place.
//   a write takes too long    hung: writes are refused until it comes back.
//   damaged files, blocks     damaged: a compaction that met one stops RocksDB, so it is opened in
//   that the disk withholds   place without compactions; writes go on.
//   any sync that failed, any failed for good: nothing more is written, synced or closed, for the
//   other error of a write    page cache may show what the disk does not have (fsyncgate).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/reactor.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/store.h"

namespace rocksdb {
class EventListener;
}

namespace tetrad::storage {

/// Which work of RocksDB met an error: only a compaction can leave its input as it is.
enum class BackgroundWork : uint8_t { kCompaction, kOther };

/// Receives errors of flushes and compactions, on RocksDB's threads. One for each open database.
class BackgroundErrors {
 public:
  using Listener = std::function<void(const rocksdb::Status&, BackgroundWork)>;

  BackgroundErrors();
  ~BackgroundErrors();
  /// For Options::listeners.
  std::shared_ptr<rocksdb::EventListener> listener() const;
  /// Sets the listener, which first gets the errors so far. Null: none. It must not call RocksDB.
  void deliver_to(Listener listener);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

/// Owned by the store, on its thread. The state changes in become() alone; kFailed is for good, and
/// a store that was damaged is damaged again when everything else is over.
class StoreHealth {
 public:
  using Opened = Result<std::shared_ptr<RocksDatabase>>;
  /// On the store's thread.
  struct Actions {
    /// Writes are refused with `why` from now on, those that wait as well; unset: taken again.
    std::function<void(std::optional<Error> why)> refuse;
    /// status() is another.
    std::function<void()> changed;
    std::function<std::shared_ptr<RocksDatabase>()> database;
    /// Nobody looks at the database any more until `use` is called.
    std::function<void()> let_go;
    std::function<void(std::shared_ptr<RocksDatabase>)> use;
    /// Opens it anew; on a maintenance thread, when it is closed.
    std::function<Opened(bool compacts)> open;
  };

  /// `name`: the store's folder. The references outlive this.
  StoreHealth(std::string name, base::Reactor& reactor, base::IoPool& pool, Actions actions,
              Logger logger);
  ~StoreHealth();
  StoreHealth(const StoreHealth&) = delete;
  StoreHealth& operator=(const StoreHealth&) = delete;

  const StoreStatus& status() const { return status_; }
  /// A write or a sync has failed, or a flush or compaction. Where a compaction could not read,
  /// nothing that was written is in doubt.
  void take(const rocksdb::Status& error, std::string_view what,
            BackgroundWork work = BackgroundWork::kOther);
  /// A read met damaged data.
  void take_damage(const std::string& what);
  /// As take_damage(), of an earlier life.
  void begin_damaged(const std::string& what);
  /// A write has been under way for long; or has ended.
  void set_hung(bool hung);
  /// Tries nothing any more.
  void stop();

 private:
  /// What came of trying to go on with the same database.
  struct Attempt {
    Result<void> outcome;
    bool must_reopen = false;
  };
  static Attempt resume(RocksDatabase& database);
  void become(StoreState state, std::string reason);
  void try_later();
  void try_again();
  void reopen();
  void recovered();

  const std::string name_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const Actions actions_;
  const Logger logger_;
  StoreStatus status_;
  std::string damage_;  // stays when the rest is over
  bool hung_ = false, trying_ = false, must_reopen_ = false, stopped_ = false, compacts_ = true;
  base::Reactor::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::storage
