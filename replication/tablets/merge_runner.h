// SPDX-License-Identifier: Apache-2.0
// Merges neighbours that have been cold and small for long (partitioner/merge_policy.h), on the
// node that leads the metadata group; and those that an operator orders, on the node that is asked.
// Each look takes the next step of every pair (merge_plan.h). What is known of a pair is in memory:
// a new leader chooses anew, after it has led long enough to have heard of the heat of all tablets.
//
// Nothing is merged while a node is away or leaves, nor brought together while tablets heal or move
// for balance. While a pair is brought together balance and other nodes' merges leave it alone: all
// nodes hear of it (held_tablets.h).
#pragma once

#include <functional>
#include <list>
#include <map>
#include <unordered_map>

#include "base/log.h"
#include "base/metrics.h"
#include "base/task_group.h"
#include "partitioner/merge_policy.h"
#include "replication/meta/meta_service_impl.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/heat_runner.h"
#include "replication/tablets/held_tablets.h"
#include "replication/tablets/merge_plan.h"
#include "replication/tablets/move_runner.h"

namespace tetrad::replication {

/// Which tablets are merged.
struct MergeOptions {
  bool merge = true;
  /// How long both must have had their ranges before they are merged for the first time.
  int64_t age_us = 60'000'000;
  int64_t look_every_us = 1'000'000;
  /// The physical partitions that the table's owner has asked for when it was made; 0: none. Null:
  /// 0.
  std::function<uint32_t(const TableInfo&)> tablets_asked_for = nullptr;
};

/// Drives pairs of tablets until they are one. Owned by the node, on the first shard's thread.
/// Always: a tablet is in one pair at most, and a pair has one proposal under way at most.
class MergeRunner {
 public:
  /// Counters of this node.
  struct Metrics {
    base::Counter merged, given_up;
  };
  using Done = std::move_only_function<void(Result<void>)>;

  /// `heat`: from where on a tablet is split. Everything outlives it.
  MergeRunner(base::Reactor& reactor, RpcNode& rpc, MetaServiceImpl& meta, MoveRunner& moves,
              HeatOptions heat, MergeOptions options, Logger logger);
  ~MergeRunner();
  MergeRunner(const MergeRunner&) = delete;
  MergeRunner& operator=(const MergeRunner&) = delete;
  void start();

  /// Merges the tablet with the one behind it, however warm they are. `done` runs when they are
  /// one, or with why they are not. Errors: kNotFound, kConflict, kTimedOut, kOverloaded.
  void order(TabletId left, Done done);

  const Metrics& metrics() const { return metrics_; }

 private:
  /// On its way to be merged.
  struct Pair {
    MergeHalves halves;
    std::string table;  // its name
    bool left_moves = false;
    uint32_t tablets_min = 1;
    uint8_t bounces_most = partitioner::kBouncesMost;
    base::MonotonicUs begun_us = 0, asked_us = 0;
    bool is_ordered = false, is_proposing = false, is_over = false;
    Done done = nullptr;  // of an order
  };
  using PairPtr = std::shared_ptr<Pair>;
  /// Since when a tablet has had its range.
  struct Seen {
    RingRange range;
    base::MonotonicUs since_us = 0;
    uint64_t look = 0;
  };

  void tick();
  /// A pair's next step may have come.
  void look_soon();
  /// Every pair's next step. A pair whose table or halves are gone ends.
  void carry_on(const MetaSnapshot& state);
  void work_on(const MetaSnapshot& state, const PairPtr& pair);
  /// Errors: why the pair must not be brought together now.
  Result<void> check_sound(const FoundHalves& found, const Pair& pair) const;
  /// Once for each pair; answers the order that it came from, if any.
  void end(const PairPtr& pair, Result<void> outcome);
  Task<void> propose(PairPtr pair, MergeTablets command);
  void ask_for_repair(const FoundHalves& found, Pair& pair);
  /// Whether the cluster is at rest, and this node has led for long enough to know what is cold.
  bool may_choose(const MetaState& state) const;
  void choose(const MetaState& state);
  void look_at_nodes(const MetaState& state);
  void choose_of(const MetaState& state, const TableInfo& table, size_t tablets_min);
  /// No table is merged to fewer: what a new one has, what its owner asked for, what its throughput
  /// needs.
  size_t tablets_min_of(const MetaState& state, const TableInfo& table);
  std::vector<partitioner::MergeTablet> weigh(const TableInfo& table);
  partitioner::MergeLimits limits_of(const MetaState& state, const TableInfo& table,
                                     size_t tablets_min) const;
  /// Keeps balance away from the pairs, and other nodes' merges from their tablets.
  void hold_pairs();
  /// `from` works on these. Ends own pairs that share one with it, if its host id is lower.
  void hear(HostId from, std::set<TabletId> tablets);
  /// A pair has it already, here or, as far as this node has heard, at another one.
  bool is_taken(TabletId tablet) const;

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaServiceImpl& meta_;
  MoveRunner& moves_;
  const HeatOptions heat_;
  const MergeOptions options_;
  const Logger logger_;
  Metrics metrics_;
  std::list<PairPtr> pairs_;
  HeldTablets elsewhere_;  // what other nodes have said to this one
  bool has_told_ = false;  // others hold tablets for this node
  std::unordered_map<TabletId, Seen> seen_;
  std::unordered_map<TabletId, base::MonotonicUs> not_before_us_;  // left halves that were given up
  /// How many tablets a new table has, by the data centres it is in, on these nodes.
  std::map<std::set<std::string, std::less<>>, size_t> usual_;
  std::vector<std::pair<HostId, NodeState>> nodes_;
  uint64_t looks_ = 0;
  std::optional<base::MonotonicUs> leads_since_us_;
  base::Reactor::TimerId timer_ = 0, soon_ = 0;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
