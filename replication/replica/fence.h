// SPDX-License-Identifier: Apache-2.0
// The fence of one store, on its thread (design, rules 8 and 10): lets writes in by the epoch of
// their tablet, takes that back when a newer epoch comes, and knows which of them have not ended.
//
// Every write that is let in gets a pass of its tablet's present epoch and keeps it until it has
// ended, wherever it waits (storage/engine/write_guard.h). When the map changes, the passes of
// older epochs are void before anybody acts on the new map: what still waits is not written any
// more, what is on its way to the disk is waited for by drained(). So when a store says that it is
// at an epoch, or shows what it holds, no write of an older one can come after.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/reactor.h"
#include "replication/meta/meta_service.h"
#include "replication/tablets/heat_meters.h"
#include "storage/engine/write_guard.h"

namespace tetrad::replication {

/// The writes of one store that are under way, by the epoch of their tablet. Belongs to the store's
/// shard and its thread.
class Fence {
 public:
  using Then = std::move_only_function<void(bool drained)>;

  /// Both outlive it.
  Fence(base::Reactor& reactor, MetaService& meta);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  /// A pass of the tablet's epoch. `table` and `tablet` are of `now`, the newest snapshot.
  storage::WritePass enter(const MetaSnapshot& now, const TableInfo& table,
                           const partitioner::Tablet& tablet);

  /// Of the store's tablets; kept here since each request that is let in is measured.
  HeatMeters& heat() { return heat_; }

  /// Runs `then(true)` when all writes of epochs before `epoch`, which the map has reached, have
  /// ended: perhaps at once. False: not before the deadline.
  void drained(TableIncarnation incarnation, const RingRange& range, SetEpoch epoch,
               base::Deadline deadline, Then then);
  /// As drained(), of all writes that are in now, whatever their epoch.
  void drained_now(TableIncarnation incarnation, const RingRange& range, base::Deadline deadline,
                   Then then);

 private:
  class Gate;
  /// Of one incarnation.
  struct Gates {
    std::vector<Gate*> of_tablets;  // as in the map; null: no write has come yet
    std::vector<Gate*> former;      // of earlier maps, with passes out
  };
  struct Waiter;

  void catch_up(const MetaSnapshot& now);
  void change_table(const TableInfo& before, const TableInfo* now);
  static void retire(Gates& gates, Gate* gate);
  void on_empty(Gate& gate);
  bool is_drained(const Waiter& waiter) const;
  void wait(std::shared_ptr<Waiter> waiter, base::Deadline deadline);
  void look_at_waiters();

  base::Reactor& reactor_;
  MetaService& meta_;
  MetaSnapshot state_;
  std::unordered_map<uint32_t, Gates> gates_;  // by incarnation
  uint64_t next_serial_ = 1;                   // of a gate
  std::vector<std::shared_ptr<Waiter>> waiters_;
  HeatMeters heat_;
  bool look_posted_ = false;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

/// Of a shard's stores, by number; null: another shard's.
using Fences = std::vector<std::unique_ptr<Fence>>;

}  // namespace tetrad::replication
