// SPDX-License-Identifier: Apache-2.0
// Background repair (design, section 7 and rule 18): every tablet is read from all of its members,
// page by page and paced, by digests of the merged form; where they differ, what a member lacks is
// written to it. Nobody has to ask for it. The runner of a tablet is the shard of its first live
// member. First every member says what time it is: the repair begins at the earliest of these, so
// that no clock which is ahead makes what is young count as old. A member whose clock is off has no
// say, and without it there is no repair. When all members of one epoch were read to the end, the
// metadata group notes it: what the tablet's members hold from before the purge horizon is equal
// from then on. Where logged batches may be older than that (a node that may hold some is silent)
// the members are made equal all the same, and the horizon stays until a later repair.
//
// Two neighbours that are to be merged are repaired together: both begin at the same time, the
// earliest that a member of either says, so that both have one horizon in the end.
//
// And settling: while a tablet's new set is read already, all of it is read once at the quorums of
// both sets. A write that failed, or its hint, may have come to old members alone after the new
// ones were filled, and have been answered from there; so it comes to the new set before that is
// read alone (rules 3 and 9). Where members were lost for good all that are left are read: what was
// acknowledged may be on one of them alone.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/task_group.h"
#include "replication/coordinator/coordinator.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// When and how fast tablets are repaired.
struct RepairOptions {
  int64_t look_every_us = 1'000'000;
  /// Time between the beginnings of two repairs of a tablet.
  int64_t period_us = int64_t{3600} * 1'000'000;
  /// After one that failed (a member is down, the set changed).
  int64_t retry_us = 60'000'000;
  uint64_t page_bytes = 256 << 10;
  /// Between two pages: about 10 MB/s at most.
  int64_t pause_us = 25'000;
  int64_t page_timeout_us = 10'000'000;
};

/// Counters of one shard's repairs, changed by its thread only.
struct RepairMetrics {
  base::Counter tablets, pages, failed;
  base::Counter horizons_held;  // repaired, and the horizon stayed: logged batches may be older
};

/// Repairs the tablets whose first live member is a store of this shard, and answers for the
/// members that it has. Owned by the shard, on its thread. Always: a horizon is proposed only after
/// all members were read to the end and have synced, and never a lower one than before.
class RepairRunner {
 public:
  /// What an ordered repair came to: numbers of tablets.
  struct Summary {
    uint64_t repaired = 0, failed = 0;
    std::string first_error;
  };
  using Done = std::function<void(Summary)>;

  /// Everything outlives it. `is_own`: whether a replica's store is of this shard. `stores` by
  /// number; null: another shard's.
  RepairRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
               const HybridClock& clock, const BehindStores& behind, Coordinator& coordinator,
               std::function<bool(const StoreAddress&)> is_own, const Fences& fences,
               std::vector<storage::Store*> stores, RepairOptions options, Logger logger);
  ~RepairRunner();
  RepairRunner(const RepairRunner&) = delete;
  RepairRunner& operator=(const RepairRunner&) = delete;
  void start();

  /// Repairs every tablet of the tables named ("": all) that has a part of one of `ranges` now, on
  /// whichever shards their repairs run.
  void repair_now(std::string keyspace, std::string table, std::vector<RingRange> ranges,
                  Done done);

  const RepairMetrics& metrics() const { return metrics_; }

 private:
  /// A tablet as it was when its repair was begun: a repair is of one epoch and one range (rule
  /// 12).
  struct Target {
    TableIncarnation incarnation;
    partitioner::Tablet tablet;
  };
  void look();
  std::optional<Target> next_due();
  Task<void> run_due(Target target);
  void on_settle(BytesView body, RpcNode::Reply reply);
  /// Each member fills the Paxos registers of the tablet from all (tablet_stream.h).
  Task<Result<void>> join_registers(Target target);
  /// `leaves_old_out`: only the new set is read.
  Task<void> settle(Target target, ConsistencyLevel level, bool leaves_old_out,
                    RpcNode::Reply reply);
  Task<void> run_all(std::vector<Target> targets, Done done);
  /// One tablet, or neighbours, which get one horizon. False: the members of each are equal, and
  /// the horizon stays.
  Task<Result<bool>> repair(std::vector<Target> targets);
  /// Compares the members of one.
  Task<Result<void>> make_equal(Target target);
  Task<Result<void>> note_repaired(Target target, int64_t began_us);
  void on_together(BytesView body, RpcNode::Reply reply);
  Task<void> repair_together(std::vector<Target> targets);
  void on_begin(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void on_sync(uint32_t store, BytesView body, RpcNode::Reply reply);
  /// What the repair has brought is on the disks of all members.
  Task<Result<void>> sync(const Target& target);
  /// Asks all members, and answers with the earliest time, or one not above the tablet's horizon:
  /// logged batches may be older. Errors: that of the first that refuses.
  Task<Result<int64_t>> begin(const Target& target);
  /// Reads the whole tablet, so that its members get what they lack; ends when the tablet changes.
  Task<Result<void>> read_pages(Target target, ConsistencyLevel level, int64_t pause_us,
                                bool leaves_old_out = false);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const BehindStores& behind_;
  Coordinator& coordinator_;
  const std::function<bool(const StoreAddress&)> is_own_;
  const Fences& fences_;
  const std::vector<storage::Store*> stores_;
  const RepairOptions options_;
  const Logger logger_;
  RepairMetrics metrics_;
  std::map<TabletId, base::MonotonicUs> not_before_us_;
  /// A settling that is under way or `done`, of one epoch of its tablet.
  struct Settling {
    TableIncarnation incarnation;
    SetEpoch epoch;
    bool done = false;
  };
  std::map<TabletId, Settling> settling_;
  std::set<TabletId> together_;  // left halves of pairs that are repaired together now
  bool busy_ = false;
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
