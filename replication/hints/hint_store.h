// SPDX-License-Identifier: Apache-2.0
// Mutations that a replica missed, kept on disk by the coordinator until the replica takes them.
// Bounded in bytes per replica and in age; what does not fit is left to repair.
//
//   key   := "hint/" 16 B host, u32 store, u16 shard that keeps it, u48 sequence
//   value := u8 version (1), i64 wall clock at creation (us), mutation
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "storage/engine/local_log.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

struct HintOptions {
  uint64_t bytes_per_replica_max = 256u << 20;
  int64_t age_max_us = int64_t{3} * 3600 * 1'000'000;
  uint32_t shard = 0;  // whose hints these are
};

struct HintMetrics {
  base::Counter stored, replayed, dropped, refused;
};

/// Belongs to one shard.
class HintStore {
 public:
  struct Hint {
    Bytes key;
    int64_t created_us = 0;
    storage::Mutation mutation;
  };

  HintStore(storage::LocalLog& log, HintOptions options);
  /// Counts what the log holds. Errors: kIo, kCorruption.
  Result<void> open();

  /// Not synced: a hint is a help, not a promise (an acknowledged write is on W members without
  /// it).
  void add(const StoreAddress& replica, const storage::Mutation& mutation, int64_t now_us);
  /// The oldest ones for a replica.
  Result<std::vector<Hint>> oldest(const StoreAddress& replica, size_t limit) const;
  void remove(const StoreAddress& replica, const Hint& hint);
  bool is_expired(const Hint& hint, int64_t now_us) const {
    return hint.created_us + options_.age_max_us < now_us;
  }

  std::vector<StoreAddress> replicas() const;
  uint64_t pending_bytes(const StoreAddress& replica) const;
  /// Also from other threads.
  uint64_t pending_count() const { return pending_count_.load(std::memory_order_relaxed); }
  HintMetrics& metrics() { return metrics_; }

 private:
  struct Pending {
    uint64_t bytes = 0, count = 0, next_sequence = 0;
  };
  storage::LocalLog& log_;
  const HintOptions options_;
  Pending& pending_of(const StoreAddress& replica);
  void count(Pending& pending, int64_t hints);

  std::map<StoreAddress, Pending> pending_;
  std::atomic<uint64_t> pending_count_{0};
  HintMetrics metrics_;
};

}  // namespace tetrad::replication
