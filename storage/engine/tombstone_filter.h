// SPDX-License-Identifier: Apache-2.0
// The compaction filter of a store (rule 17): keys of retired incarnations go, and cells expired
// long ago lose their value. It changes full values only, never merge operands (but for those of
// retired incarnations). It drops no tombstone: RocksDB does not say whether older data lies
// outside the compaction. The sweep drops them.
//
// Claims of retired incarnations and of dropped indexes go, too, and so do tasks and notes of views
// of tables that are retired or have no views any more.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/ids.h"
#include "storage/index/claim.h"
#include "storage/views/view_task.h"

namespace rocksdb {
class CompactionFilterFactory;
}

namespace tetrad::storage {

/// What the filter knows. Shared by the store's thread and the background threads.
class FilterState {
 public:
  /// As Store::note_time().
  void set_now_s(int64_t now_s) { now_s_.store(now_s, std::memory_order_relaxed); }
  int64_t now_s() const { return now_s_.load(std::memory_order_relaxed); }
  /// Compactions that begin from now on drop its keys.
  void retire(TableIncarnation incarnation) {
    const std::lock_guard lock(mutex_);
    retired_.insert(incarnation.value);
    makers_.erase(incarnation.value);
  }
  std::set<uint32_t> retired() const {
    const std::lock_guard lock(mutex_);
    return retired_;
  }

  /// Of tables that have, or had, indexes.
  using Makers = std::unordered_map<uint32_t, ClaimMakerPtr>;
  void set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) {
    const std::lock_guard lock(mutex_);
    makers_[incarnation.value] = std::move(maker);
  }
  /// Of base tables; nothing is known of others.
  void set_views(TableIncarnation base, bool has_views) {
    const std::lock_guard lock(mutex_);
    if (has_views)
      without_views_.erase(base.value);
    else
      without_views_.insert(base.value);
  }
  std::set<uint32_t> without_views() const {
    const std::lock_guard lock(mutex_);
    return without_views_;
  }
  Makers makers() const {
    const std::lock_guard lock(mutex_);
    return makers_;
  }

 private:
  std::atomic<int64_t> now_s_{0};
  /// Guards the sets and makers; each compaction copies them once, at its beginning.
  mutable std::mutex mutex_;
  std::set<uint32_t> retired_, without_views_;
  Makers makers_;
};

/// How long an expired cell keeps its value: a coordinator whose clock is behind may still see it
/// as live.
inline constexpr int64_t kExpiredValueMargin_s = 3600;

/// One for each store. `state` lives as long as it.
std::shared_ptr<rocksdb::CompactionFilterFactory> make_tombstone_filter(
    std::shared_ptr<FilterState> state);

}  // namespace tetrad::storage
