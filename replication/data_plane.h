// SPDX-License-Identifier: Apache-2.0
// The data plane of one shard: replica, coordinator and hints over the node's messages and
// metadata.
#pragma once

#include <memory>

#include "replication/coordinator/coordinator_impl.h"
#include "replication/hints/hint_dispatcher.h"
#include "replication/hints/hint_store.h"
#include "replication/node.h"
#include "replication/repair/comparison.h"
#include "replication/repair/purge_runner.h"
#include "replication/repair/repair_runner.h"
#include "replication/replica/replica_service.h"
#include "replication/throughput/throughput_gate.h"

namespace tetrad::replication {

struct DataPlaneOptions {
  CoordinatorOptions coordinator;
  HintOptions hints;
  HintDispatchOptions hint_dispatch;
  RepairOptions repair;
  PurgeOptions purge;
  ThroughputOptions throughput;
  HorizonSlack horizon;
  uint32_t shard = 0, shard_count = 1;
};

class DataPlane {
 public:
  /// `rpc`, `meta`, `fences`, `cleanup` and `changes` are the shard's own, `clock` the node's; they
  /// and everything in `environment` outlive it. Errors: those of HintStore::open().
  static Result<std::unique_ptr<DataPlane>> make(const NodeEnvironment& environment, RpcNode& rpc,
                                                 MetaService& meta, HybridClock& clock,
                                                 const Fences& fences, StoreCleanup& cleanup,
                                                 ChangeLogs& changes, DataPlaneOptions options);

  Coordinator& coordinator() { return coordinator_; }
  const CoordinatorImpl& coordinator_impl() const { return coordinator_; }
  HintStore& hints() { return hints_; }
  const ReplicaService& replicas() const { return replicas_; }
  RepairRunner& repairs() { return repairs_; }
  Comparison& comparison() { return comparison_; }
  PurgeRunner& purges() { return purges_; }
  ThroughputGate& throughput() { return throughput_; }

 private:
  DataPlane(const NodeEnvironment& environment, RpcNode& rpc, MetaService& meta, HybridClock& clock,
            const Fences& fences, StoreCleanup& cleanup, ChangeLogs& changes,
            const DataPlaneOptions& options);

  ReplicaService replicas_;
  HintStore hints_;
  CoordinatorImpl coordinator_;
  HintDispatcher dispatcher_;
  RepairRunner repairs_;
  Comparison comparison_;
  PurgeRunner purges_;
  ThroughputGate throughput_;
};

}  // namespace tetrad::replication
