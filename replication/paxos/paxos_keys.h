// SPDX-License-Identifier: Apache-2.0
// The logical partitions of a shard's stores that a Paxos message is being answered for: their
// registers, and who waits. Messages of one partition are looked at one after another, each when
// what the one before has changed is in the store, though perhaps not on the disk: a sync covers
// what was written before, so who writes itself is answered when its own write is synced, and who
// does not waits for those that it has seen (when_synced). So no answer tells of what a power cut
// may take, and one sync serves all that came during the one before.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/reactor.h"
#include "base/result.h"
#include "storage/engine/store.h"
#include "storage/row/paxos_registers.h"

namespace tetrad::replication {

/// The partitions of a shard's stores that are being voted on, and who waits for them. Owned by the
/// shard, on its thread. Always: at most one turn of a partition is out, and its registers in
/// memory are those of the store or of a write to it that is under way.
class PaxosKeys {
  struct Entry;

 public:
  /// A write that is seen and not on the disk yet; ends as failed with the object, or by end(). May
  /// outlive the PaxosKeys.
  class Unsynced {
   public:
    Unsynced(Unsynced&&) noexcept = default;
    Unsynced& operator=(Unsynced&&) = delete;
    ~Unsynced();
    void end(const Result<void>& synced);

   private:
    friend class PaxosKeys;
    Unsynced(std::weak_ptr<PaxosKeys*> keys, std::shared_ptr<Entry> entry, uint64_t number)
        : keys_(std::move(keys)), entry_(std::move(entry)), number_(number) {}
    std::weak_ptr<PaxosKeys*> keys_;
    std::shared_ptr<Entry> entry_;  // null: it has ended
    uint64_t number_;
  };
  using SyncedCallback = std::move_only_function<void(Result<void>)>;

  /// The right to answer; ends with the object. May outlive the PaxosKeys.
  class Turn {
   public:
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&& other) noexcept {
      end();
      keys_ = std::move(other.keys_);
      entry_ = std::move(other.entry_);
      return *this;
    }
    ~Turn() { end(); }

    /// As they are, or are being written.
    storage::PaxosRegisters& registers();
    storage::PartitionName partition() const;
    /// A write of them has failed: whoever comes next reads them anew.
    void forget();
    void end();
    /// Ends it when what it has changed is written, and not synced yet.
    Unsynced pass_on();
    /// Runs `done`, perhaps at once, when everything that this turn sees is on the disk. An error:
    /// it may not be.
    void when_synced(SyncedCallback done);

   private:
    friend class PaxosKeys;
    Turn(std::weak_ptr<PaxosKeys*> keys, std::shared_ptr<Entry> entry)
        : keys_(std::move(keys)), entry_(std::move(entry)) {}
    std::weak_ptr<PaxosKeys*> keys_;
    std::shared_ptr<Entry> entry_;
  };
  using TurnCallback = std::move_only_function<void(Result<Turn>)>;

  /// `stores` by number; null: another shard's. They outlive it.
  PaxosKeys(base::Reactor& reactor, std::vector<storage::Store*> stores);
  ~PaxosKeys();
  PaxosKeys(const PaxosKeys&) = delete;
  PaxosKeys& operator=(const PaxosKeys&) = delete;

  /// Errors: kOverloaded (too many wait), kTimedOut (at the deadline, however long a disk hangs
  /// under who has the turn), those of reading registers.
  void enter(uint32_t store, storage::PartitionName partition, base::Deadline deadline,
             TurnCallback done);
  size_t waiting_count() const { return waiting_; }

 private:
  using Key = std::pair<uint32_t, Bytes>;  // store, incarnation and partition key
  /// A message that waits for its turn; the first of an entry has the turn, or is about to get it.
  struct Waiter {
    base::Deadline deadline;
    TurnCallback done;
  };
  static Key key_of(uint32_t store, const storage::PartitionName& partition);
  void next(const std::shared_ptr<Entry>& entry);
  void end_unsynced(const std::shared_ptr<Entry>& entry, uint64_t number,
                    const Result<void>& synced);
  void erase_unused(const std::shared_ptr<Entry>& entry);
  void give_turn(const std::shared_ptr<Entry>& entry);
  void look_at(base::MonotonicUs deadline_us);
  void end_late();

  base::Reactor& reactor_;
  const std::vector<storage::Store*> stores_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
  size_t waiting_ = 0;
  base::Reactor::TimerId timer_ = 0;  // for deadlines of those behind the first
  base::MonotonicUs timer_at_us_ = 0;
  std::shared_ptr<PaxosKeys*> self_ = std::make_shared<PaxosKeys*>(this);
};

}  // namespace tetrad::replication
