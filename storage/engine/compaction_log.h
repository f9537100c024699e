// SPDX-License-Identifier: Apache-2.0
// The last compactions of all stores of a node, for system.compaction_history. In memory: a node
// that is started again has forgotten them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rocksdb {
class EventListener;
}

namespace tetrad::storage {

/// A compaction that has ended well.
struct CompactionRecord {
  uint64_t number = 0;   // in the order in which they ended, from 1 in each life of the process
  int64_t ended_us = 0;  // wall clock
  std::string family;    // the column family of its store, all of whose tables are in one
  uint64_t bytes_in = 0, bytes_out = 0;  // of the files that it read and wrote
};

/// Thread-safe. Bounded: of more than `kept_max` the oldest goes.
class CompactionLog {
 public:
  /// `wall_time_us` is called on RocksDB's threads.
  CompactionLog(size_t kept_max, std::function<int64_t()> wall_time_us)
      : kept_max_(kept_max), wall_time_us_(std::move(wall_time_us)) {}

  /// One that ends now.
  void add(std::string family, uint64_t bytes_in, uint64_t bytes_out);
  /// Oldest first.
  std::vector<CompactionRecord> records() const;

 private:
  const size_t kept_max_;
  const std::function<int64_t()> wall_time_us_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<CompactionRecord> records_;
  uint64_t next_number_ = 1;
};

/// For the options of a store. Files that only come to another level, or go whole, are no compaction:
/// nothing is read.
std::shared_ptr<rocksdb::EventListener> make_compaction_listener(
    std::shared_ptr<CompactionLog> log);

}  // namespace tetrad::storage
