// SPDX-License-Identifier: Apache-2.0
// The leader of counters (design, rule 25): what a store does with the increments that coordinators
// send it. For each partition there is a queue. What has come while a write was under way is one
// group: the store's own shards are read, the sums are added, and the new totals are written to the
// own store in one write; then the next group begins, while the totals go to all members as an
// ordinary mutation. An increment is answered when its group's totals are on the level's number of
// members. So one key's throughput is bounded by the commits of one store, not by round trips.
//
// A total is written under a name (CounterShardName) that no other leader has, and that ends
// whenever the store might not have all that was written under it: with the process, with the
// tablet's epoch, with an error of the store. Under a new name counting begins at 0; what was
// written under old ones stays as it is and counts in the sum.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/metrics.h"
#include "base/task_group.h"
#include "replication/coordinator/coordinator.h"
#include "replication/counters/counter_messages.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/replica/replica_service.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// Counters of one shard, changed by its thread only.
struct CounterMetrics {
  base::Counter increments, groups, unknown;
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;
};

/// Adds to the counters of one shard's stores. Belongs to the shard and its thread. Of one
/// partition of a store one group is under way at a time; what comes meanwhile waits in its queue.
class CounterLeader {
 public:
  using Done = std::move_only_function<void(Result<CounterAnswer>)>;

  /// Registers its verb; everything outlives it. `life`: a number that no other life of this node
  /// has. `coordinator`: of this shard, it takes the totals to the members.
  CounterLeader(base::Reactor& reactor, RpcNode& rpc, HybridClock& clock, ReplicaService& replicas,
                Coordinator& coordinator, uint64_t life);
  ~CounterLeader();
  CounterLeader(const CounterLeader&) = delete;
  CounterLeader& operator=(const CounterLeader&) = delete;

  /// To a store of this shard. `done` may run inside this call. Errors: nothing is applied, nor
  /// will be. kStaleEpoch, kStaleSchema, kBehind, kReplicaBehind, kOverloaded (too many wait),
  /// kTimedOut, those of reading the store.
  void increment(uint32_t store, CounterRequest request, base::Deadline deadline, Done done);

  size_t waiting_count() const { return waiting_; }
  const CounterMetrics& metrics() const { return metrics_; }

 private:
  using Key = std::tuple<uint32_t, TableIncarnation, Bytes>;  // store, table, partition key
  /// One increment that waits for its group, with whom to answer.
  struct Waiter {
    CounterRequest request;
    base::Deadline deadline;
    Done done;
    size_t bytes = 0;
  };
  /// What waits for one partition; is_busy while a group of it is under way.
  struct Queue {
    std::deque<Waiter> waiters;
    bool is_busy = false;
  };
  struct Group;
  using GroupPtr = std::shared_ptr<Group>;

  void next(const Key& key);
  GroupPtr take_group(const Key& key, Queue& queue);
  void read_totals(const GroupPtr& group);
  Result<storage::Mutation> add_up(Group& group, const storage::ReadResult& rows);
  void write_totals(const GroupPtr& group, storage::Mutation mutation);
  /// The totals are in the own store: to all members.
  static Task<void> spread(CounterLeader* self, GroupPtr group, storage::Mutation mutation);
  void refuse(const GroupPtr& group, const Error& error);
  int64_t clock_above(uint32_t store, const CounterIncrement& of);
  Bytes name_of(uint32_t store, SetEpoch epoch) const;

  base::Reactor& reactor_;
  RpcNode& rpc_;
  HybridClock& clock_;
  ReplicaService& replicas_;
  Coordinator& coordinator_;
  const uint64_t life_;
  std::map<Key, Queue> queues_;
  size_t waiting_ = 0, waiting_bytes_ = 0;
  uint64_t sequence_ = 0;  // errors of stores so far
  int64_t last_clock_us_ = 0;
  CounterMetrics metrics_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
