// SPDX-License-Identifier: Apache-2.0
// The node's door to the metadata group, on shard 0: runs the group's member of this node, applies
// what is committed, hands out the state, takes proposals on any node and brings them to the
// leader.
//
//   proposal := u8 hops, command
//   answer   := u64 index, u8 refused, [u8 error code, text]
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/membership/membership.h"
#include "replication/meta/meta_command.h"
#include "replication/meta/meta_service.h"
#include "replication/meta/raft_driver.h"
#include "replication/tablets/heat_board.h"
#include "replication/throughput/throughput_board.h"

namespace tetrad::replication {

/// How the metadata group keeps time, and what happens when it cannot go on.
struct MetaServiceOptions {
  int64_t tick_us = 100'000;  // of the group
  uint64_t snapshot_every = 1000;
  int64_t voter_away_us = 30'000'000;        // a voter silent so long is replaced
  int64_t schema_agreement_us = 10'000'000;  // how long a DDL waits for live nodes
  ClusterFormat format = kFormatNewest;      // the newest that this node reads
  std::function<void(const Error&)> fatal;   // the process must end
};

/// The metadata of the first shard, with the Raft group itself. Belongs to the first shard's
/// thread; other shards have a MetaFront.
class MetaServiceImpl final : public MetaService {
 public:
  /// Everything handed in outlives it.
  MetaServiceImpl(base::Reactor& reactor, base::Random& random, storage::LocalLog& log,
                  RpcNode& rpc, Membership& membership, MetaServiceOptions options, Logger logger);
  ~MetaServiceImpl() override;

  /// Becomes a member of the group, with what the local log held or with RaftStored::joining().
  /// Errors: kCorruption.
  Result<void> start(Uuid cluster_id, RaftDriver::Stored stored);
  bool started() const { return driver_ != nullptr; }
  /// Leads the group and knows all that is committed.
  bool is_leader() const { return driver_ && driver_->core().ready_to_lead(); }
  /// By the operator's word: most voters of the metadata group are gone for good, and this node is
  /// its only one from now on. Changes of the metadata that no node has which is left are lost.
  /// Errors: kConflict, with a sentence for the operator: enough voters are alive, or another node
  /// knows more.
  Result<void> take_over_group();
  /// As far as this node knows; it may be this node before it is_leader(). Unset: none is known.
  std::optional<HostId> leader() const { return driver_ ? driver_->core().leader() : std::nullopt; }
  /// Raft index up to which everything is applied here.
  MetaIndex applied_index() const;
  /// Called by MetaHub when every other shard's front has this state. The node reports an index as
  /// applied, and completes schema changes, when all of its shards have it.
  void set_fronts_applied(MetaIndex index);
  /// `done` when a restart would not fall behind what is applied now.
  void sync_applied(std::function<void()> done);
  /// Index up to which every shard of this node has applied everything.
  MetaIndex applied_by_shards() const;
  RaftDriver* driver() { return driver_.get(); }

  /// Answers with the index at which the command was applied, once it is applied on this node too.
  /// Errors: what the command was refused with; kTimedOut, kBootstrapping.
  Task<Result<MetaIndex>> propose(MetaCommandBody body, base::Deadline deadline);
  /// As propose(), under an id that the caller has made.
  Task<Result<MetaIndex>> propose_as(Uuid id, MetaCommandBody body, base::Deadline deadline);
  /// Answers false when `until_us` comes first. `condition` is looked at after every change of the
  /// state, of liveness or of what other nodes have applied.
  Task<bool> wait_for(std::function<bool()> condition, base::MonotonicUs until_us);
  /// Wakes those who wait, and the listeners.
  void on_liveness_changed();

  void set_tablet_bytes(TabletId tablet, uint64_t bytes);
  /// What was last reported, and a number that rises with each report.
  const std::unordered_map<TabletId, uint64_t>& all_tablet_bytes() const { return tablet_bytes_; }
  uint64_t tablet_bytes_version() const { return tablet_bytes_version_; }
  /// Of all replicas of a node. Of one that is down: as it was when it went down, since what its
  /// peers report grows without it; unset if it has been down for as long as this node runs, or if
  /// not all sizes have been reported yet.
  std::optional<uint64_t> host_bytes(HostId host) const;
  HeatBoard& heat_board() { return heat_; }
  ThroughputBoard& throughput_board() { return throughputs_; }
  /// Ticks of this leader since it last heard of a member of the group; 0 when it does not lead.
  uint64_t ticks_away(HostId host) const;
  uint64_t ticks_of(int64_t us) const { return static_cast<uint64_t>(us / options_.tick_us); }
  /// Without self.
  std::vector<HostId> live_hosts() const { return membership_.live_hosts(); }

  HostId self() const override { return rpc_.self(); }
  MetaSnapshot snapshot() const override { return state_; }
  std::shared_ptr<void> subscribe(Listener listener) override;
  Task<Result<void>> change_schema(SchemaChange change, base::Deadline deadline,
                                   std::vector<std::string>* warnings) override;
  bool is_live(HostId host) const override { return membership_.is_live(host); }
  bool takes_clients(HostId host) const override { return !clientless().contains(host); }
  const std::set<HostId>& clientless() const { return membership_.clientless(); }
  const FillingDisks& filling_disks() const override { return membership_.filling_disks(); }
  const StoreTroubles& store_troubles() const override { return membership_.store_troubles(); }
  uint64_t tablet_bytes(TabletId tablet) const override;
  TabletHeat tablet_heat(TabletId tablet) const override { return heat_.of(tablet); }
  UsedThroughput used_throughput(ThroughputKey key) const override { return throughputs_.of(key); }

 private:
  /// What became of a proposal, and at which index it was applied.
  struct Answer {
    MetaIndex index;
    Result<void> outcome;
  };
  using AnswerSetter = base::OneShot<Result<Answer>>::Setter;

  Task<Result<Answer>> propose_once(Bytes command, Uuid id, base::Deadline deadline);
  Task<Result<Answer>> propose_here(Bytes command, Uuid id, base::Deadline deadline);
  Result<void> check_start(BytesView command) const;
  Task<void> serve_proposal(Bytes body, base::Deadline deadline, RpcNode::Reply reply);
  std::optional<HostId> whom_to_ask();
  /// Nodes, voters of the metadata group or members of a tablet, as this node sees them.
  struct Presence {
    size_t all = 0, live = 0;
    std::string away;  // addresses of the others, each with a blank before it
  };
  Presence presence_of(const std::vector<HostId>& hosts) const;
  Presence live_voters() const { return presence_of(driver_->core().configuration().voters); }
  Result<void> on_apply(RaftIndex index, BytesView command);
  void on_applied(RaftIndex index);
  Result<void> on_install(BytesView image, RaftIndex index);
  /// Unset: the sizes of some of its tablets have not been reported since this node began.
  std::optional<uint64_t> reported_bytes(HostId host) const;
  void note_liveness(HostId host, bool live);
  void on_role_change(const RaftRoleChange& change);
  void publish(MetaSnapshot now);
  void notify(const MetaSnapshot& before, const MetaSnapshot& now);
  void wake();
  void manage_voters();
  bool hand_over_if_unfit();
  bool still_to_be_told(HostId removed);
  void forget_retired();
  Task<void> run_forget(ForgetRetired command);
  void tell_applied();
  void on_heartbeat(HostId from, AppliedEntry entry);
  bool all_live_applied(MetaIndex index) const;
  using HostSets = std::vector<std::vector<HostId>>;
  /// Of which members must refuse what the change takes away; both sets of a tablet whose members
  /// change.
  static HostSets sets_to_fence(const MetaState& state, const SchemaChange& change);
  /// When nobody knows the sets any more.
  static HostSets every_node(const MetaState& state);
  /// Members that would apply a change again after a restart, and those that were asked to.
  struct Synced {
    std::set<HostId> hosts, asked;
  };
  /// How many of a set must refuse: W, or while fewer are live as many as leave no W.
  size_t refusing(const std::vector<HostId>& hosts) const;
  /// Errors: kUnavailable, a set has fewer live members than must refuse a TRUNCATE.
  Result<void> check_truncates(const SchemaChange& change) const;
  /// Whether that many hosts of each set refuse requests from before `index`, even after a power
  /// cut; asks those that have applied it to sync. `by_live_alone`: of a set of which fewer live, all
  /// of these.
  bool fenced(const HostSets& sets, MetaIndex index, const std::shared_ptr<Synced>& synced,
              bool by_live_alone);

  base::Reactor& reactor_;
  base::Random& random_;
  storage::LocalLog& log_;
  RpcNode& rpc_;
  Membership& membership_;
  const MetaServiceOptions options_;
  const Logger logger_;
  MetaSnapshot state_ = std::make_shared<MetaState>();
  std::vector<std::weak_ptr<Listener>> listeners_;
  std::map<Uuid, std::vector<AnswerSetter>> awaited_;  // proposals of this leader, by command id
  /// Schema changes of this node, by command id: what they have to fence, once they are applied.
  std::map<Uuid, std::optional<HostSets>> to_fence_;
  std::vector<base::OneShot<bool>::Setter> waiting_;
  std::vector<std::pair<MetaIndex, HostId>> to_tell_;  // who waits for what he proposed
  MetaIndex fronts_applied_{UINT64_MAX};
  std::unordered_map<TabletId, uint64_t> tablet_bytes_;
  std::map<HostId, uint64_t> bytes_when_down_;  // of hosts that were live before
  /// Of which all sizes were known once: what is made later begins with nothing.
  mutable std::set<HostId> known_hosts_;
  size_t tablet_bytes_most_ = 1024;  // above this those of tablets that are gone are forgotten
  uint64_t tablet_bytes_version_ = 0;
  HeatBoard heat_;
  ThroughputBoard throughputs_;
  bool forgetting_ = false;
  std::map<HostId, base::MonotonicUs> removed_since_;  // as this leader has seen it
  uint64_t ask_round_ = 0;
  base::Reactor::TimerId voter_timer_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::unique_ptr<RaftDriver> driver_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
