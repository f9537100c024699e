// SPDX-License-Identifier: Apache-2.0
// Snapshots of a node's tables: taken, listed, cleared, and removed when their time is over. Belongs
// to the first shard's thread; what blocks runs on the I/O pool, one job after another.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/task_group.h"
#include "replication/meta/meta_state.h"
#include "server/snapshots/snapshot_folder.h"
#include "storage/engine/store.h"

namespace tetrad::server {

/// What is to be kept, under which name, for how long.
struct SnapshotOrder {
  std::string tag;
  /// Of the metadata, when the order came.
  std::vector<std::shared_ptr<const replication::TableInfo>> tables;
  std::optional<int64_t> ttl_s;
  // Otherwise what is in memtables only is not in it.
  bool flushes = true;
};

/// Makes, lists and removes snapshots of all stores of a node. Owned by the node, on the first
/// shard's thread; what blocks runs on the I/O pool, one job after another.
class Snapshots {
 public:
  /// A store belongs to its reactor's thread.
  struct Store {
    base::Reactor& reactor;
    storage::Store& store;
  };
  /// What snapshots are made of; all of it outlives the object.
  struct Parts {
    std::vector<Store> stores;  // by number; the first one's reactor is that of this object
    base::IoPool& pool;
    std::string data_directory;
    std::function<replication::MetaSnapshot()> meta;
    std::function<HostId()> self;
    std::string version;  // of the program
    Logger logger;
  };
  using Done = std::function<void(Result<void>)>;
  using Listed = std::function<void(Result<SnapshotList>)>;
  using Cleared = std::function<void(Result<size_t>)>;

  explicit Snapshots(Parts parts);
  ~Snapshots();

  /// Removes what is half done, and from now on what is over.
  void start();
  /// `done` of each runs once, on this thread, unless the object is gone.
  /// Errors: kConflict: there is one of this tag, another is being taken, or the tables have changed
  /// meanwhile; kIo and what Store::keep_files() says: nothing of it stays.
  void take(SnapshotOrder order, Done done);
  /// All snapshots of the data directory, also those of tables that are gone.
  void list(Listed done);
  /// An empty tag is every snapshot, no keyspaces are all of them. Answers how many were removed.
  void clear(std::string tag, std::vector<std::string> keyspaces, Cleared done);

 private:
  /// On the pool, then on this thread.
  template <class T>
  void run(std::function<Result<T>(SnapshotFolder&)> work, std::function<void(Result<T>)> done);
  // One order under way: keep() asks all stores to keep their files; finish() writes the manifest
  // and gives the draft its name, after which the snapshot exists; end() answers, and removes what
  // is there of one that failed.
  struct Taking;
  void keep(const std::shared_ptr<Taking>& taking);
  void finish(const std::shared_ptr<Taking>& taking);
  void end(const std::shared_ptr<Taking>& taking, Result<void> result);
  void watch_times();

  base::Reactor& reactor() { return parts_.stores.front().reactor; }

  Parts parts_;
  const std::shared_ptr<SnapshotFolder> folder_;  // of the pool's jobs, too
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  // One at a time: a second order meanwhile is refused.
  bool is_taking_ = false;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::server
