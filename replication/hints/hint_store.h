// SPDX-License-Identifier: Apache-2.0
// Mutations that a replica missed, kept on disk by the coordinator until the replica takes them: a
// queue for each replica, in a log of their own, so that a storm of hints holds up nothing else.
//
//   key    := "hint/" 16 B host, u32 store, u16 shard that keeps it, u48 position
//   value  := u8 version (1), i64 hybrid clock at creation (us), mutation
//   key    := "hinm/" 16 B host, u32 store, u16 shard
//   value  := u8 version (1), u64 low, u64 head, u64 bytes between them; a second old or so
// Positions of a queue rise by one. Those from `low` to before `head` are pending, and are counted
// so, never by what was added and removed. A cursor, in memory only, goes ahead of `low` as pages
// are read, so nothing is read, sent or counted twice however late the disk is; after a restart
// what was sent in the last second is sent again, which does no harm. A hint that its replica did
// not take goes to the end of the queue, as old as it was.
//
// Bounded in bytes per replica and for the node, and in age; what does not fit is left to repair.
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

/// How much is kept, and for how long; what comes on top is refused or dropped, and repair mends
/// it.
struct HintOptions {
  uint64_t bytes_per_replica_max = 256u << 20;
  uint64_t bytes_max = uint64_t{4} << 30;  // of all replicas
  int64_t age_max_us = int64_t{3} * 3600 * 1'000'000;
  uint32_t shard = 0;  // whose hints these are
};

/// Counters of one shard, changed by its thread only.
struct HintMetrics {
  base::Counter stored, replayed, dropped, refused;
};

/// Belongs to one shard.
class HintStore {
 public:
  /// One hint as it is read back for the replay.
  struct Hint {
    int64_t created_us = 0;
    Bytes encoded;  // the mutation
    uint64_t bytes = 0;
    storage::Mutation mutation;
  };
  /// Consecutive positions, oldest first. Empty: nothing waits, or what does is on its way to disk.
  struct Page {
    std::vector<Hint> hints;
    uint64_t next = 0;  // position behind them
    uint64_t bytes = 0;
  };
  using PageCallback = std::move_only_function<void(Result<Page>)>;

  /// `log` is for hints alone.
  HintStore(storage::LocalLog& log, HintOptions options);
  ~HintStore() { *alive_ = false; }
  HintStore(const HintStore&) = delete;
  HintStore& operator=(const HintStore&) = delete;
  /// Finds what the log holds. Errors: kIo, kCorruption.
  Result<void> open();

  /// Not synced: a hint is a help, not a promise (an acknowledged write is on W members without
  /// it).
  void add(const StoreAddress& replica, const storage::Mutation& mutation, int64_t now_us);
  /// The next hints of a replica, read off the loop; one page of a replica at a time, until
  /// finish_page().
  void read_page(const StoreAddress& replica, size_t hints_max, PageCallback done);
  /// What became of a page: those in `kept` wait again, at the end.
  void finish_page(const StoreAddress& replica, const Page& page, std::vector<const Hint*> kept);
  /// Those of a replica that never comes back.
  void drop_all(const StoreAddress& replica);
  /// Says on disk how far the queues are; to be called about each second.
  void save_places();
  /// How long a hint is of use.
  int64_t age_max_us() const { return options_.age_max_us; }
  bool is_expired(const Hint& hint, int64_t now_us) const {
    return hint.created_us + options_.age_max_us < now_us;
  }

  std::vector<StoreAddress> replicas() const;
  uint64_t pending_bytes(const StoreAddress& replica) const;
  uint64_t pending_count(const StoreAddress& replica) const;
  /// Also from other threads.
  uint64_t pending_count() const { return pending_count_.load(std::memory_order_relaxed); }
  HintMetrics& metrics() { return metrics_; }

 private:
  /// The hints for one replica, by position; positions rise and are not used twice.
  struct Queue {
    uint64_t low = 0, cursor = 0, head = 0;  // low <= cursor <= head
    uint64_t on_disk = 0;                    // positions before it can be read
    uint64_t saved_low = 0, saved_head = 0;
    uint64_t bytes = 0;  // of what is pending
    bool is_reading = false;
  };
  Queue& queue_of(const StoreAddress& replica);
  /// Queues whose places were saved: only what came after the last save is looked for.
  Result<void> open_saved();
  /// Queues without a saved place.
  Result<void> open_others();
  Result<void> find_head(const StoreAddress& replica, Queue& queue);
  void append(const StoreAddress& replica, BytesView mutation, int64_t created_us);
  void take_page(const StoreAddress& replica, uint64_t on_disk,
                 Result<storage::LocalLog::Pairs> pairs, PageCallback& done);
  void move_low(Queue& queue, uint64_t low, uint64_t bytes);
  /// Both totals, by a difference that may be negative.
  void add_pending(int64_t count, int64_t bytes);

  storage::LocalLog& log_;
  const HintOptions options_;
  std::map<StoreAddress, Queue> queues_;
  std::atomic<uint64_t> pending_count_{0};
  uint64_t pending_bytes_ = 0;
  HintMetrics metrics_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::replication
