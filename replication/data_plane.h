// SPDX-License-Identifier: Apache-2.0
// The data plane of one shard: replica, coordinator and hints over the node's messages and
// metadata.
#pragma once

#include <memory>

#include "replication/batches/batch_service.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/hints/hint_dispatcher.h"
#include "replication/hints/hint_store.h"
#include "replication/node.h"
#include "replication/paxos/paxos_service.h"
#include "replication/paxos/turn_keeper.h"
#include "replication/repair/comparison.h"
#include "replication/repair/purge_runner.h"
#include "replication/repair/repair_runner.h"
#include "replication/replica/behind.h"
#include "replication/replica/recent_fetch.h"
#include "replication/replica/recent_source.h"
#include "replication/replica/replica_service.h"
#include "replication/replica/store_teller.h"
#include "replication/throughput/throughput_gate.h"
#include "replication/views/view_runner.h"
#include "replication/views/view_verifier.h"

namespace tetrad::replication {

/// The options of all that a data plane is made of.
struct DataPlaneOptions {
  CoordinatorOptions coordinator;
  HintOptions hints;
  HintDispatchOptions hint_dispatch;
  RepairOptions repair;
  PurgeOptions purge;
  ThroughputOptions throughput;
  ViewOptions views;
  HorizonSlack horizon;
  RecentFetchOptions recent_fetch;
  ReplicaOptions replica;
  uint32_t shard = 0, shard_count = 1;
  /// Of this life of the node (membership/node_life.h), for ballots; 0: any.
  uint64_t start_number = 0;
  /// For heartbeats, on this shard's thread: Membership::set_store_facts().
  StoreTeller::Tell tell_store;
  /// Of the first shard: replays by its coordinator. Outlives the data plane.
  BatchService* batches = nullptr;
};

/// What moves rows on one shard: coordinator, replica service, hints, repair, purge, throughput.
/// Belongs to the shard and its thread; a member is declared after what it uses.
class DataPlane {
 public:
  /// `rpc`, `meta`, `fences`, `cleanup`, `changes`, `behind` and `paxos_keys` are the shard's own,
  /// `clock` the node's; they and everything in `environment` outlive it. Errors: those of
  /// HintStore::open().
  static Result<std::unique_ptr<DataPlane>> make(const NodeEnvironment& environment, RpcNode& rpc,
                                                 MetaService& meta, HybridClock& clock,
                                                 const Fences& fences, StoreCleanup& cleanup,
                                                 ChangeLogs& changes, BehindStores& behind,
                                                 PaxosKeys& paxos_keys, DataPlaneOptions options);

  ~DataPlane();
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  /// Parts for the layers above and for admin pages; all on this shard's thread.
  Coordinator& coordinator() { return coordinator_; }
  const CoordinatorImpl& coordinator_impl() const { return coordinator_; }
  HintStore& hints() { return hints_; }
  const ReplicaService& replicas() const { return replicas_; }
  RepairRunner& repairs() { return repairs_; }
  Comparison& comparison() { return comparison_; }
  PurgeRunner& purges() { return purges_; }
  ThroughputGate& throughput() { return throughput_; }
  BehindStores& behind() { return behind_; }
  RecentFetch& recent_fetch() { return recent_fetch_; }
  ViewRunner& views() { return views_; }
  ViewVerifier& view_verifier() { return view_verifier_; }

 private:
  DataPlane(const NodeEnvironment& environment, RpcNode& rpc, MetaService& meta, HybridClock& clock,
            const Fences& fences, StoreCleanup& cleanup, ChangeLogs& changes, BehindStores& behind,
            PaxosKeys& paxos_keys, const DataPlaneOptions& options);

  /// Gives stores the clock by which their sync records are dated.
  void set_sync_clocks(const NodeEnvironment& environment, const HybridClock& clock);

  // Order matters: members are destroyed from the last to the first, and tasks of a later one use
  // the earlier ones.
  //
  // The replica's side: what answers other coordinators. It serves before this shard coordinates.
  BehindStores& behind_;
  BatchService* const batches_;
  const std::vector<storage::Store*> stores_;
  ReplicaService replicas_;
  PaxosService paxos_;
  TurnKeeper turns_;
  // The coordinator's side. A write that misses a member leaves a hint.
  HintStore hints_;
  CoordinatorImpl coordinator_;
  HintDispatcher dispatcher_;
  // Work in the background. Repair raises a tablet's horizon, and purge follows it.
  RepairRunner repairs_;
  Comparison comparison_;
  PurgeRunner purges_;
  ThroughputGate throughput_;
  // After a power cut: what was written lately, given to others and fetched from them.
  RecentSource recent_source_;
  RecentFetch recent_fetch_;
  StoreTeller store_teller_;
  // Views are written by the coordinator above, as a client's writes are.
  ViewRunner views_;
  ViewVerifier view_verifier_;
};

}  // namespace tetrad::replication
