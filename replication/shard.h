// SPDX-License-Identifier: Apache-2.0
// The replication of a shard other than the first: messages of its own, the metadata as shard 0
// brings it, and the tablets of its stores. Made while no shard runs; belongs to its shard's thread
// from then on.
#pragma once

#include <functional>
#include <memory>

#include "replication/node.h"

namespace tetrad::replication {

/// How a shard other than the first is reached from the others, and reaches them.
struct ShardOptions {
  uint32_t shard = 1;
  /// To another shard of this node, in this shard's turn.
  std::function<void(uint32_t shard, ShardMessage message)> forward;
  /// Once, on this shard, when it has heard that its node is a member of a cluster.
  std::function<void()> ready;
};

/// What shards other than the first have of replication below the data plane: messages, metadata,
/// tablets. Belongs to the shard and its thread.
class ReplicationShard {
 public:
  /// `main` is asked for what all shards share; its hub stays in use. Everything in `environment`
  /// outlives it.
  ReplicationShard(const NodeEnvironment& environment, ReplicationNode& main, ShardOptions options);
  ReplicationShard(const ReplicationShard&) = delete;
  ReplicationShard& operator=(const ReplicationShard&) = delete;

  void start() { tablets_.start(); }
  RpcNode& rpc() { return rpc_; }
  MetaService& meta() { return meta_; }
  const Fences& fences() const { return tablets_.fences(); }
  StoreCleanup& cleanup() { return tablets_.cleanup(); }
  ChangeLogs& changes() { return tablets_.changes(); }
  BehindStores& behind() { return tablets_.behind(); }
  PaxosKeys& paxos_keys() { return tablets_.paxos_keys(); }
  IndexRunner& indexes() { return tablets_.indexes(); }
  const TabletStream& stream() const { return tablets_.stream(); }

 private:
  /// Addresses of nodes for the messages of this shard, and the word that it may begin.
  void on_state(const MetaSnapshot& before, const MetaSnapshot& now);

  const ShardOptions options_;
  RpcNode rpc_;
  MetaFront meta_;
  ShardTablets tablets_;
  std::shared_ptr<void> subscription_;
  bool ready_ = false;
};

}  // namespace tetrad::replication
