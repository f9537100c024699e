// SPDX-License-Identifier: Apache-2.0
// What this node does when a coordinator asks it as a replica. Plain functions, one per message;
// the coordinator of the same node calls them without a message. A request that names a table or an
// epoch this node has not heard of yet waits until the metadata has caught up (rule 29); one that
// names what is gone is refused, so that its sender catches up.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "replication/changes/change_log.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/replica/place.h"
#include "replication/replica/table_latencies.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/store_cleanup.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Counters of one shard, changed by its thread only.
struct ReplicaMetrics {
  base::Counter mutations, reads, digests, refused_stale, refused_times, waited_for_metadata;
};

/// Limits of one shard's replica service.
struct ReplicaOptions {
  /// Requests that wait for newer metadata; more are refused, and the sender tries again.
  size_t waiting_max = 10'000;
};

/// What this node does as a replica when a coordinator asks: checks epoch and schema, then applies
/// or reads. Belongs to a shard and its thread.
class ReplicaService {
 public:
  using ApplyCallback = storage::Store::ApplyCallback;
  using ReadCallback = storage::Store::ReadCallback;

  /// `stores` by number; null: another shard's. `clock` follows server timestamps in messages.
  /// `read_fold` decodes the folds that peers ask for; null: none is known. Registers its verbs;
  /// everything outlives it.
  ReplicaService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
                 HorizonSlack slack, std::vector<storage::Store*> stores, const Fences& fences,
                 StoreCleanup& cleanup, ChangeLogs& changes, BehindStores& behind,
                 storage::FoldReader read_fold, ReplicaOptions options, Logger logger);

  /// True when the store is this shard's, so that no message is needed.
  bool is_local(const StoreAddress& replica) const {
    return replica.host == self_ && replica.store < stores_.size() &&
           stores_[replica.store] != nullptr;
  }

  /// Rows that were read from replicas or kept as a hint, and what was known of the tablet's last
  /// repair then. Where another has passed since they may be older than what was purged after it:
  /// they are refused (kStaleEpoch), to be read anew.
  struct Merged {
    int64_t repaired_us = 0;
    /// Others will rely on it as on what is old: it is on disk before it is acknowledged, whatever
    /// the store's mode (rule 20).
    bool synced = false;
  };
  /// `merged` unset: a write. It ends at its deadline, and is not done after it. Errors:
  /// kStaleSchema, kStaleEpoch, kTimedOut, and the store's.
  void apply(uint32_t store, SetEpoch epoch, const storage::Mutation& mutation,
             std::optional<Merged> merged, base::Deadline deadline, ApplyCallback done);
  /// The bucket mark of the mutation's partition if it is not below `server_timestamp_us` (rule
  /// 28). To be asked before apply(), which raises it.
  std::optional<int64_t> mark_not_below(uint32_t store, const storage::Mutation& mutation,
                                        int64_t server_timestamp_us) const;
  /// `mark_us` of mark_not_below(), or what the mark may have been before a power cut if that is
  /// higher. To be asked once apply() is done.
  std::optional<int64_t> mark_after_cut(uint32_t store, TableIncarnation incarnation,
                                        RingPosition position, int64_t server_timestamp_us,
                                        std::optional<int64_t> mark_us) const;
  /// Whether a write may be taken with the times its coordinator gave it, by this node's own time.
  /// To be asked before apply(). Errors: kRedate: its deletions are older than any write may be, so
  /// they might be purged before all members have them (rule 18). kClockOff: the server timestamp
  /// is further off than clocks may be (rule 28).
  Result<void> check_times(std::optional<int64_t> server_timestamp_us, int64_t dated_us) const;
  /// Errors: as apply(), and kReplicaBehind.
  void read(uint32_t store, SetEpoch epoch, storage::ReadCommand command, base::Deadline deadline,
            ReadCallback done);

  /// As Store::read_here(); for the coordinator of this shard, whose map is this node's own: `table`
  /// and `tablet` are where the command's partition is.
  std::optional<Result<storage::ReadEnd>> read_here(uint32_t store, const TableInfo& table,
                                                    const partitioner::Tablet& tablet,
                                                    const storage::ReadCommand& command,
                                                    storage::RowSink& sink);

  /// Whether the own store has lost something of the command's place: others are to be asked.
  bool is_behind(uint32_t store, const storage::ReadCommand& command) const {
    return behind_.any() && lacks(store, command);
  }

  /// Whether the table has views, as far as the stores of this shard know.
  bool has_views(TableIncarnation table) const;

  const ReplicaMetrics& metrics() const { return metrics_; }
  /// Of this shard; its coordinator measures there, too.
  TableLatencies& latencies() { return latencies_; }
  const TableLatencies& latencies() const { return latencies_; }
  const Fences& fences() const { return fences_; }

 private:
  /// A peer's kMutate, or with `merged` its kMutateMerged, whose times check_times() does not judge.
  void on_mutate(bool merged, const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// A peer's kRead, answered with rows, or with `digest` its kReadDigest.
  void on_read(bool digest, const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// Calls of this node's other shards.
  void take(std::unique_ptr<ShardCall> call);
  void take_mutation(std::unique_ptr<ShardCall> call);
  void take_read(std::unique_ptr<ShardCall> call);

  MapStanding standing_of_rows(uint32_t store, const storage::Mutation& mutation,
                               const partitioner::Tablet& tablet,
                               const std::optional<Merged>& merged);
  /// Of a write at its place. kAhead: it waits, for a newer map, for the change log that it must
  /// be noted in, or until the store has fetched what a power cut took.
  MapStanding standing_to_apply(uint32_t store, const storage::Mutation& mutation,
                                const Place& place, const std::optional<Merged>& merged,
                                bool is_logged);
  bool lacks(uint32_t store, const storage::ReadCommand& command) const;
  static Error refusal(MapStanding standing);
  /// `done`, or where the request is timed what ends its time and calls `done`.
  ApplyCallback timed_write(TableIncarnation table, ApplyCallback done);
  ReadCallback timed_read(const storage::ReadCommand& command, ReadCallback done);
  /// Runs `retry` with the next metadata, or when the deadline has come.
  void wait(base::Deadline deadline, base::Callback retry);
  void run_waiting();

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  HybridClock& clock_;
  const HorizonSlack slack_;
  const HostId self_;
  const std::vector<storage::Store*> stores_;
  const Fences& fences_;
  StoreCleanup& cleanup_;
  ChangeLogs& changes_;
  BehindStores& behind_;
  const storage::FoldReader read_fold_;
  const ReplicaOptions options_;
  Logger logger_;
  ReplicaMetrics metrics_;
  TableLatencies latencies_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  /// A request that needs metadata newer than this node has applied.
  struct Waiting {
    base::MonotonicUs deadline_us;
    base::Callback retry;
  };
  std::deque<Waiting> waiting_;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;

 public:
  ~ReplicaService();
  ReplicaService(const ReplicaService&) = delete;
  ReplicaService& operator=(const ReplicaService&) = delete;
};

}  // namespace tetrad::replication
