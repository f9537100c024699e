// SPDX-License-Identifier: Apache-2.0
// The logged batches that a node keeps for coordinators, in a log of their own: no Raft state waits
// for their syncs, and theirs wait for no hints.
//
//   key   := "bat/" u64 sequence        in the order in which they came
//   value := entry (batch_entry.h)
//   key   := "bal/"                     where entries begin: what is before it, is erased
//   value := u8 format (1), u64 sequence
//   key   := "bax/" u64 sequence        an entry that does not decode, set apart as it was
//   value := what was found
// What is set apart is not replayed, and holds no purge horizon; its other holder may have it
// whole. Ids are indexed in memory, so that nothing is searched for and no erased key is walked
// over.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/reactor.h"
#include "replication/batches/batch_entry.h"
#include "storage/engine/local_log.h"

namespace tetrad::replication {

/// How much a node keeps; what comes on top is refused, and its coordinator asks another node.
struct BatchStoreOptions {
  uint64_t count_max = 200'000;
  uint64_t bytes_max = uint64_t{256} << 20;
  /// How long the id of a removed entry is known: a store of it may come later than its removal.
  int64_t removed_for_us = 60'000'000;
};

/// On the first shard of a node.
class BatchStore {
 public:
  using DoneCallback = std::move_only_function<void(Result<void>)>;
  using ReadCallback = std::move_only_function<void(Result<std::optional<Bytes>>)>;
  /// No entry: every time is before it.
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

  BatchStore(storage::LocalLog& log, base::Reactor& reactor, BatchStoreOptions options)
      : log_(log), reactor_(reactor), options_(options) {}
  ~BatchStore() { *alive_ = false; }
  BatchStore(const BatchStore&) = delete;
  BatchStore& operator=(const BatchStore&) = delete;

  /// Finds what the log holds; it is due at `due_us(rank)`. Entries that do not decode are set
  /// apart. Of two entries of one id the later version stays, the other one is erased. Errors: kIo,
  /// kCorruption.
  Result<void> open(const std::function<base::MonotonicUs(uint8_t rank)>& due_us);

  /// `done` when it is on the disk. Replaces an earlier version; has no effect for one that is not
  /// later than what is held. Errors: kOverloaded; kNotFound: it was
  /// removed; kConflict: a later version is held; those of the log.
  void store(const BatchHead& head, Bytes encoded, base::MonotonicUs due_us, DoneCallback done);
  /// Also when it has not come yet. Not synced, see oldest_us(). Messages that write its parts may
  /// be under way for `under_way_us` more.
  void remove(const Uuid& id, int64_t under_way_us = 0);
  /// Off the loop; unset: it is gone.
  void read(const Uuid& id, ReadCallback done);
  void set_due(const Uuid& id, base::MonotonicUs due_us);

  /// An entry whose replay may begin; a copy, since the entry may be replaced or go meanwhile.
  struct Due {
    Uuid id;
    uint32_t version = 0;
    uint8_t rank = 0;
  };
  /// The oldest that are due at `now_us`, of `count_max` at most.
  std::vector<Due> due(base::MonotonicUs now_us, size_t count_max) const;
  /// An entry that waits.
  struct Waiting {
    Uuid id;
    int64_t created_us = 0;
  };
  /// In the order in which they came, of `count_max` at most.
  std::vector<Waiting> waiting(size_t count_max) const;
  /// Unset: it is not held.
  std::optional<uint32_t> version_of(const Uuid& id) const;

  /// It does not decode: from now on it is not held, but kept as it is.
  void set_apart(const Uuid& id, Bytes found);
  size_t apart_count() const { return apart_.size(); }
  /// Erases what was set apart. `done`: of how many, when it is on the disk. Errors: of the log.
  void drop_apart(std::move_only_function<void(Result<size_t>)> done);

  /// It has held something, in this life or before.
  bool was_used() const { return next_sequence_ > 1; }
  size_t count() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }
  /// When the oldest entry was created that is held, or would be again after a power cut.
  int64_t oldest_us() const;
  /// For who must know whether the store is still there.
  const std::shared_ptr<bool>& alive() const { return alive_; }
  /// Brings removals to the disk; to be called about each second.
  void sync_removed();

 private:
  /// What is known in memory of an entry that is in the log. Each one stands in by_sequence_,
  /// by_due_ and created_us_ exactly once.
  struct Held {
    uint64_t sequence = 0;
    uint32_t version = 0;
    uint8_t rank = 0;
    int64_t created_us = 0;
    uint64_t bytes = 0;
    base::MonotonicUs due_us = 0;
  };
  void index(const BatchHead& head, uint64_t sequence, uint64_t bytes, base::MonotonicUs due_us);
  bool is_superseded(const BatchHead& head);
  void erase(uint64_t sequence);
  Result<void> open_apart();
  void keep_apart(uint64_t sequence, Bytes found);
  void forget_old_removals();
  void take_back(const Uuid& id, uint32_t version, uint32_t version_before, uint64_t bytes_before);
  /// Out of memory alone; it is held.
  Held forget(const Uuid& id);

  storage::LocalLog& log_;
  base::Reactor& reactor_;
  const BatchStoreOptions options_;
  std::unordered_map<Uuid, Held, base::UuidHash> entries_;
  std::set<std::pair<uint64_t, Uuid>> by_sequence_;
  std::set<std::pair<base::MonotonicUs, Uuid>> by_due_;
  std::multiset<int64_t> created_us_;          // of what is held
  std::multiset<int64_t> removed_created_us_;  // of what is erased, and not surely on the disk
  std::multimap<base::MonotonicUs, int64_t> under_way_us_;               // until when, and created
  std::unordered_map<Uuid, base::MonotonicUs, base::UuidHash> removed_;  // until when it is known
  std::set<std::pair<base::MonotonicUs, Uuid>> removed_until_us_;
  std::set<uint64_t> apart_;  // sequences of what was set apart
  uint64_t next_sequence_ = 1, low_ = 0, bytes_ = 0;
  bool is_syncing_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::replication
