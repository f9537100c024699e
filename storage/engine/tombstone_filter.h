// SPDX-License-Identifier: Apache-2.0
// The compaction filter of a store (rule 17): keys of retired incarnations go, cells expired long
// ago lose their value, and dead cells go where the purge horizon allows it. It changes full values
// only, never merge operands (but for those of retired incarnations).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "base/ids.h"
#include "base/ring_position.h"

namespace rocksdb {
class CompactionFilterFactory;
}

namespace tetrad::storage {

/// Whether a dead cell of a partition may be dropped: below the horizon of its tablet (rule 18),
/// and nothing as old is in a memtable or file outside the compaction. Called by background
/// threads. Deletion time in seconds, of an expired cell its write time.
using PurgeDecision = std::function<bool(TableIncarnation incarnation, RingPosition position,
                                         int64_t timestamp_us, int64_t deletion_time_s)>;

/// What the filter knows. Shared by the store's thread and the background threads.
class FilterState {
 public:
  /// Empty: nothing is purged.
  explicit FilterState(PurgeDecision may_purge = {}) : may_purge_(std::move(may_purge)) {}

  void set_now_s(int64_t now_s) { now_s_.store(now_s, std::memory_order_relaxed); }
  int64_t now_s() const { return now_s_.load(std::memory_order_relaxed); }
  void retire(TableIncarnation incarnation) {
    const std::lock_guard lock(mutex_);
    retired_.insert(incarnation.value);
  }
  std::set<uint32_t> retired() const {
    const std::lock_guard lock(mutex_);
    return retired_;
  }
  const PurgeDecision& may_purge() const { return may_purge_; }

 private:
  const PurgeDecision may_purge_;
  std::atomic<int64_t> now_s_{0};
  mutable std::mutex mutex_;
  std::set<uint32_t> retired_;
};

/// An expired cell keeps its value for so long: a coordinator whose clock is behind may still see
/// it as live.
inline constexpr int64_t kExpiredValueMargin_s = 3600;

std::shared_ptr<rocksdb::CompactionFilterFactory> make_tombstone_filter(
    std::shared_ptr<FilterState> state);

}  // namespace tetrad::storage
