// SPDX-License-Identifier: Apache-2.0
// A node's replication, wired together: messages, metadata group, membership, tablets. One
// ReplicationNode per node, on shard 0; the other shards have a ReplicationShard each (shard.h). It
// may be destroyed at any moment: what runs then is dropped, which is what a crash does; what was
// synced is in the local log and the stores.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/reactor.h"
#include "replication/batches/batch_service.h"
#include "replication/membership/disk_usage.h"
#include "replication/membership/formation.h"
#include "replication/membership/leaving_runner.h"
#include "replication/membership/membership.h"
#include "replication/meta/meta_front.h"
#include "replication/meta/meta_service_impl.h"
#include "replication/replica/behind.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/merge_runner.h"
#include "replication/tablets/move_runner.h"
#include "replication/tablets/shard_tablets.h"
#include "replication/throughput/throughput_holder.h"
#include "storage/engine/local_log.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// What a node takes from outside. Everything outlives it.
struct NodeEnvironment {
  base::Reactor& reactor;
  base::IoPool& pool;
  base::Random& random;
  Transport& transport;
  storage::LocalLog& log;
  /// By store number; null: another shard's.
  std::vector<storage::Store*> stores;
  Logger logger;
  base::MetricsRegistry& metrics;
  /// What peers may want rows to be folded to; null: nothing.
  storage::FoldReader read_fold = nullptr;
  /// Of the disk that the stores are on; null: nothing is measured. Outlives the pool.
  DiskGauge* disk = nullptr;
  /// For hints alone; null: they are kept in `log`.
  storage::LocalLog* hint_log = nullptr;
  /// By store number, of all shards: what a power cut took before this life; shorter: nothing.
  std::vector<std::optional<PowerLoss>> losses = {};
  /// The same: whole_to_compare().
  std::vector<uint64_t> whole = {};
  /// For logged batches alone, of the first shard; null: they are kept in `log`.
  storage::LocalLog* batch_log = nullptr;
  /// Which indexes tables have; null: none.
  ClaimMakers claim_makers = nullptr;
  /// Which views tables have; null: none.
  ViewMakersOf view_makers = nullptr;
  /// Microseconds that this shard's loop has worked; null: unknown, it counts as busy.
  HeatRunner::BusyUs busy_us = nullptr;
};

/// What a node is called, where it is reached, and how its parts behave. Fixed for its life;
/// numbers that are not options of the server are for tests.
struct NodeOptions {
  std::string address = "127.0.0.1";
  std::string client_address = {};  // where drivers reach it; "": at `address`
  uint16_t native_port = 9042, internode_port = 7000, admin_port = 9180;
  std::string data_center = "datacenter1", rack = "rack1";
  std::string cluster_name = "Tetrad";
  std::string version;
  /// Names this start of the machine: while it stays, Reactor::boot_time_us() counts on. "":
  /// unknown.
  std::string boot_id;
  /// Of this life, above those of all before (membership/node_life.h); 0: any.
  uint64_t start_number = 0;
  /// Random, of this life alone; 0: other nodes do not know its lives apart by it.
  uint64_t nonce = 0;
  // What it tells the others of itself: it asks clients for no password, and shows values of masked
  // columns.
  bool is_open = false, shows_masked = false;
  /// Asked with each heartbeat. `leaves`: the node is on its way out and holds nothing any more, and
  /// it sends its clients away now; false: it has them, and lets them in again if it had sent them
  /// away. Answers whether they are gone, or have been given time enough: before that it does not
  /// leave, for nobody answers it when it has left. On the first shard's thread; null: it has none.
  std::function<bool(bool leaves)> let_clients_go = {};
  /// The newest that this node reads; tests make an older program of it.
  ClusterFormat format = kFormatNewest;
  std::vector<Endpoint> seeds;
  /// By the operator's word a new node founds a cluster although not all seeds answer.
  bool found = false;
  uint32_t store_count = 1;
  /// Shards of this node; store s belongs to shard s % shard_count. From shard 0 messages to the
  /// others go by `forward`.
  uint32_t shard_count = 1;
  std::function<void(uint32_t shard, ShardMessage message)> forward;

  int64_t raft_tick_us = 100'000;
  int64_t heartbeat_us = 200'000;
  /// How far clocks of nodes may be apart.
  int64_t clock_skew_max_us = kClockSkewMaxUs;
  uint64_t raft_snapshot_every = 1000;
  int64_t voter_away_us = 30'000'000;
  int64_t join_retry_us = 50'000;
  int64_t load_period_us = 1'000'000;
  HeatOptions heat;
  MoveOptions moves;
  MergeOptions merges;
  LeavingOptions leaving;
  DiskUsageOptions disk_usage;
  ChangeLogOptions changes;
  IndexOptions indexes;
  BatchOptions batches;
  /// The process must end with this error. Called at most a few times; not from a destructor.
  std::function<void(const Error&)> fatal;
  /// Once, when this node is a member of a cluster and knows its state: clients may come. One that
  /// was away asks first whether it still is.
  std::function<void()> ready;
  /// A damaged store has no tablets any more: it is to be erased as a whole and opened anew. On the
  /// thread of its shard, once for each store. Null: damaged stores stay as they are.
  std::function<void(uint32_t store)> renew_store;
  /// A store has less than it reported to others in an earlier life: BehindStores::lost(). Once
  /// for each. Null: it is only logged.
  std::function<void(uint32_t store)> store_lost;
  /// Once, when this node has been taken out of its cluster: it serves nobody any more, and its
  /// data belongs to nobody.
  std::function<void()> removed;
  /// Why this node and the one there refuse each other; "": it is not known. Null: it never is.
  std::function<std::string(const Endpoint&)> refusal = nullptr;
  /// Whether something takes connections there. Null: it is not known.
  std::function<bool(const Endpoint&)> is_reached = nullptr;
};

/// The first shard of a node, with everything of which a node has one: the metadata group,
/// membership, formation, moves, merges, logged batches. Owned by the server, on the first shard's
/// thread.
class ReplicationNode {
 public:
  /// Errors: kIo, kCorruption.
  static Result<std::unique_ptr<ReplicationNode>> make(NodeEnvironment environment,
                                                       NodeOptions options);
  ~ReplicationNode();
  ReplicationNode(const ReplicationNode&) = delete;
  ReplicationNode& operator=(const ReplicationNode&) = delete;

  /// Founds a cluster, joins one or goes on with the one this node is in.
  void start();
  bool is_ready() const { return ready_; }
  /// Begins to leave for good. It is noted on disk first: when the node is out, it knows that it
  /// was not taken out for being away. Errors: as MetaServiceImpl::propose(); kConflict, another
  /// order to leave or to stay is being carried out.
  Task<Result<void>> decommission(base::Deadline deadline);
  /// The node stays, with what it has not given away yet. Errors: kConflict (it does not leave, or
  /// is out already, or another such order is being carried out), as MetaServiceImpl::propose(); after
  /// kTimedOut it may stay or leave.
  Task<Result<void>> cancel_decommission(base::Deadline deadline);

  HostId self() const { return rpc_.self(); }
  MetaService& meta() { return meta_; }
  MetaServiceImpl& meta_group() { return meta_; }
  /// For the fronts of the other shards.
  std::shared_ptr<MetaHub> hub() { return hub_; }
  RpcNode& rpc() { return rpc_; }
  const Fences& fences() const { return tablets_.fences(); }
  StoreCleanup& cleanup() { return tablets_.cleanup(); }
  ChangeLogs& changes() { return tablets_.changes(); }
  BehindStores& behind() { return tablets_.behind(); }
  PaxosKeys& paxos_keys() { return tablets_.paxos_keys(); }
  IndexRunner& indexes() { return tablets_.indexes(); }
  const TabletStream& stream() const { return tablets_.stream(); }
  BatchService& batches() { return batches_; }
  MergeRunner& merges() { return merges_; }
  Membership& membership() { return membership_; }
  const Formation& formation() const { return formation_; }
  /// Shared by all shards.
  HybridClock& clock() { return clock_; }
  const NodeOptions& options() const { return options_; }
  /// Why this node and that one refuse each other, as far as this one has heard; "": they do not.
  std::string refusal(HostId host) const;
  /// Pure; see MoveRunner::balance_plan().
  std::vector<BalanceChange> balance_plan(const MetaState& state) const {
    return moves_.balance_plan(state);
  }

 private:
  ReplicationNode(NodeEnvironment environment, NodeOptions options, NodeIdentity identity,
                  std::optional<LastLife> last);
  /// From time to time: notes how far the node's own time has come.
  void keep_time();
  void write_time(int64_t time_us, bool synced, base::Callback done);
  void on_state(const MetaSnapshot& now);
  /// Of decommission() and cancel_decommission(). Errors: kConflict, one is under way.
  Result<void> begin_order();
  Task<Result<void>> leave_by_order(base::Deadline deadline);
  Task<Result<void>> stay_by_order(base::Deadline deadline);
  /// The cluster has taken this node out. Once.
  void be_removed();
  /// Reports of shards go on to other nodes; those of other nodes end here.
  void on_load(const RpcContext& context, BytesView body);
  void on_heat(const RpcContext& context, BytesView body);
  void on_throughput_use(const RpcContext& context, BytesView body);
  void register_metrics();

  /// In the order in which each uses those before it; destroyed the other way round.
  NodeEnvironment environment_;
  const NodeOptions options_;
  const Logger logger_;
  HybridClock clock_;
  RpcNode rpc_;
  Membership membership_;
  MetaServiceImpl meta_;
  DiskUsageMonitor disk_usage_;
  ThroughputHolder throughputs_;
  BatchService batches_;
  ShardTablets tablets_;
  MoveRunner moves_;
  MergeRunner merges_;
  LeavingRunner leaving_;
  Formation formation_;
  std::shared_ptr<MetaHub> hub_;
  std::shared_ptr<void> subscription_;
  base::Reactor::TimerId keep_timer_ = 0;
  bool member_ = false, ready_ = false, removed_ = false;
  // An order to leave or to stay is carried out: they write and propose in opposite orders, so one
  // at a time.
  bool is_ordering_ = false;
};

}  // namespace tetrad::replication
