// SPDX-License-Identifier: Apache-2.0
// Carries changes of members from stage to stage, on the node that leads the metadata group; begins
// one for each tablet that has fewer members than there are nodes for, one that leaves, a store
// that is vacated, or too many in a rack; and, where nothing is to heal, those that make the nodes
// hold equal parts (balance_plan.h). What it has learned is in memory: a new leader asks
// again.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/meta/meta_service_impl.h"
#include "replication/tablets/balance_plan.h"
#include "replication/tablets/tablet_move.h"
#include "replication/tablets/vacating.h"

namespace tetrad::replication {

/// When changes of members begin, how many there may be, and when they are given up.
struct MoveOptions {
  int64_t period_us = 200'000;
  /// Nodes that join one after another change a tablet once.
  int64_t settle_us = 1'500'000;
  size_t changes_at_once = 16;
  /// How often sets are looked at that have too many members in a rack.
  int64_t racks_period_us = 2'000'000;
  /// How often the leader looks for moves that make the nodes hold equal parts; 0: never.
  int64_t balance_period_us = 5'000'000;
  int64_t balance_pause_us = 500'000;  // the same while it moves some
  partitioner::BalanceOptions balance;
  BalanceLimits balance_limits;
  /// A change is given up when a new member has not been live for this long.
  int64_t stalled_us = 60'000'000;
  /// Tablets leave a store that has hung or failed for this long; 0: never.
  int64_t store_replace_after_us = int64_t{3600} * 1'000'000;
  /// About this many bytes are in a page that fills a new member.
  uint64_t stream_page_bytes = 1 << 20;
};

/// kConfirmEpoch, kPullTablet and kSettleTablet.
///   request := u32 incarnation, u64 tablet, u64 set epoch
///   answer of the last two := u8 (1: done, 0: under way)
struct TabletEpoch {
  TableIncarnation incarnation;
  TabletId tablet;
  SetEpoch epoch;
};
Bytes encode_tablet_epoch(const TabletEpoch& request);
/// Errors: kCorruption.
Result<TabletEpoch> decode_tablet_epoch(BytesView body);

/// Drives changes of members, on the node that leads the metadata group. Owned by the node, on the
/// first shard's thread. Always: a tablet has one change, and one proposal of it, at a time; a
/// stage is proposed only when enough members have confirmed the epoch of the one before.
class MoveRunner {
 public:
  /// Counters of the changes that this node has driven.
  struct Metrics {
    base::Counter begun, finished, given_up, vacated;
    base::Counter balanced, balanced_bytes;  // begun to make nodes equal, and what they are to copy
  };
  MoveRunner(base::Reactor& reactor, RpcNode& rpc, MetaServiceImpl& meta, MoveOptions options,
             Logger logger);
  ~MoveRunner();
  MoveRunner(const MoveRunner&) = delete;
  MoveRunner& operator=(const MoveRunner&) = delete;
  void start();
  /// All moves that would make the nodes of `state` hold equal parts, as this node sees it: what an
  /// order to balance begins. By itself the leader begins them, a few at a time, once a node is far
  /// enough from the mean. They point into `state`.
  std::vector<BalanceChange> balance_plan(const MetaState& state) const;
  /// Whether this node leads and has begun moves that are not at their end.
  bool is_balancing() const { return balance_has_begun_; }
  /// Whether this node leads and nothing is to heal or to be carried on.
  bool is_at_rest() const { return changes_.empty() && !balance_has_begun_ && !vacating_.store(); }
  /// Gives a tablet that is at rest other members, for a merge. False: one is under way already.
  bool begin(const TableInfo& table, const partitioner::Tablet& tablet,
             std::vector<StoreAddress> members);
  /// Those that are not moved for balance.
  void hold(std::set<TabletId> tablets) { held_ = std::move(tablets); }
  /// What is known of a store when members are chosen.
  StoreOutlook outlook_of(const StoreAddress& member) const;
  /// Those that may hold data.
  std::vector<partitioner::RingNode> ring_nodes(const MetaState& state) const;
  const Metrics& metrics() const { return metrics_; }

 private:
  /// A change under way, in one stage: what members have answered counts for `progress.epoch`
  /// alone.
  struct Change {
    MoveProgress progress;
    base::MonotonicUs since_us = 0;  // in this stage
    bool proposing = false;
    std::vector<StoreAddress> wanted;  // the new set while its first stage is proposed
    std::set<StoreAddress> asked_to_confirm, asked_to_fill;  // and not answered yet
  };

  /// One look, and the timer of the next.
  void tick();
  /// Which store is to be vacated (vacating.h).
  void look_at_troubles(const MetaState& state);
  /// All tablets that are in a stage; forgets changes that the map does not have any more.
  void carry_on(const MetaSnapshot& state);
  /// Asks members for what the stage still needs, gives up what has stalled. The table and the
  /// tablet are those of `state`, here and in evaluate().
  void work_on(const MetaState& state, const TableInfo& table, const partitioner::Tablet& tablet);
  /// At most one question of a kind to a member at a time. `change` is that of the tablet.
  void ask(Change& change, const TabletEpoch& what, StoreAddress member, Verb verb);
  /// An answer to ask(), or its error. One of a stage that is over counts for nothing.
  void on_answer(const TabletEpoch& what, StoreAddress member, Verb verb,
                 const Result<Bytes>& answer);
  /// Proposes the next stage where next_stage() allows it. `change` is that of the tablet.
  void evaluate(const MetaState& state, const TableInfo& table, const partitioner::Tablet& tablet,
                const Change& change);
  void begin_changes(const MetaSnapshot& state);
  void begin_balance(const MetaSnapshot& state);
  void look_at_orders(const MetaState& state);
  std::vector<BalanceChange> plan_within(const MetaState& state, const BalanceLimits& limits,
                                         bool is_ordered) const;
  void propose(const TableInfo& table, ChangeTabletStage change);
  Task<void> run_proposal(std::string name, ChangeTabletStage change);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaServiceImpl& meta_;
  const MoveOptions options_;
  const Logger logger_;
  Metrics metrics_;
  Vacating vacating_;
  std::map<TabletId, Change> changes_;
  std::set<TabletId> held_;
  size_t node_count_ = 0;
  base::MonotonicUs nodes_since_us_ = 0;
  base::MonotonicUs racks_next_us_ = 0;
  base::MonotonicUs balance_next_us_ = 0;
  bool balance_has_begun_ = false, balance_is_ordered_ = false;
  std::optional<uint64_t> balance_orders_;  // as seen last; unset: this node did not lead
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
