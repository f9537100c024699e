// SPDX-License-Identifier: Apache-2.0
// From the policy's moves to changes of members.
#include "replication/tablets/balance_plan.h"

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

using partitioner::BalanceMove;
using partitioner::BalanceTablet;
using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

/// If the size of more than one in this many is unknown, the leader does not know enough.
constexpr size_t kUnknownOneIn = 20;

/// Members that come and go, counted by store and by node.
class UnderWay {
 public:
  void count(const StoreAddress& from, const StoreAddress& to) {
    ++out_of_store_[from];
    ++out_of_node_[from.host];
    ++into_store_[to];
    ++into_node_[to.host];
    ++all_;
  }
  /// Of a set that changes.
  void count(const std::vector<StoreAddress>& before, const std::vector<StoreAddress>& after) {
    for (const StoreAddress& member : after) {
      if (std::ranges::find(before, member) != before.end()) continue;
      ++into_store_[member];
      ++into_node_[member.host];
      ++all_;
    }
    for (const StoreAddress& member : before) {
      if (std::ranges::find(after, member) != after.end()) continue;
      ++out_of_store_[member];
      ++out_of_node_[member.host];
    }
  }
  bool has_room(const StoreAddress& from, const StoreAddress& to, const BalanceLimits& limits,
                size_t nodes) {
    return all_ < limits.per_node_of_cluster * nodes && out_of_store_[from] < limits.per_store &&
           into_store_[to] < limits.per_store && out_of_node_[from.host] < limits.per_node &&
           into_node_[to.host] < limits.per_node;
  }

 private:
  std::map<StoreAddress, size_t> out_of_store_, into_store_;
  std::map<HostId, size_t> out_of_node_, into_node_;
  size_t all_ = 0;
};

/// All tablets of all tables as the policy sees them.
struct Tablets {
  std::vector<BalanceTablet> weighed;
  std::vector<std::pair<const TableInfo*, const Tablet*>> named;
  UnderWay under_way;
  size_t unknown = 0;
};

Tablets tablets_of(const BalanceView& view) {
  std::set<HostId> on_ring;
  for (const partitioner::RingNode& node : view.nodes) on_ring.insert(node.host);
  const auto is_sound = [&](const StoreAddress& member) {
    const StoreOutlook seen = view.outlook(member);
    return on_ring.contains(member.host) && seen.is_live && seen.may_give && !seen.is_vacated;
  };
  Tablets tablets;
  size_t number = 0;
  for (const auto& [id, table] : view.state.tables) {
    ++number;
    for (const Tablet& tablet : table->tablets.tablets()) {
      BalanceTablet weighed;
      const auto proposed = view.proposed.find(tablet.id);
      const bool is_proposed = proposed != view.proposed.end() && !proposed->second.empty();
      weighed.may_move = tablet.stage == TabletStage::kNormal && !is_proposed &&
                         !view.held.contains(tablet.id) &&
                         std::ranges::all_of(tablet.replicas, is_sound);
      weighed.members = tablet.replicas;
      if (!TETRAD_MUTANT(balance_pending_uncounted)) {
        if (tablet.stage != TabletStage::kNormal)
          weighed.members = tablet.new_replicas;
        else if (is_proposed)
          weighed.members = proposed->second;
        tablets.under_way.count(tablet.replicas, weighed.members);
      }
      const auto bytes = view.bytes_of(tablet.id);
      if (!bytes) {
        ++tablets.unknown;
        weighed.may_move = false;
      }
      weighed.bytes = bytes.value_or(0);
      weighed.table = number;
      tablets.weighed.push_back(std::move(weighed));
      tablets.named.emplace_back(table.get(), &tablet);
    }
  }
  return tablets;
}

}  // namespace

std::vector<BalanceChange> balance_changes(const BalanceView& view,
                                           const partitioner::BalanceOptions& options,
                                           const BalanceLimits& limits) {
  Tablets tablets = tablets_of(view);
  TETRAD_ASSERT(tablets.weighed.size() == tablets.named.size());
  if (tablets.unknown * kUnknownOneIn > tablets.weighed.size()) return {};
  const partitioner::MayGet may_get = [&](const StoreAddress& store) {
    const StoreOutlook seen = view.outlook(store);
    return seen.is_live && seen.may_get && !seen.is_vacated;
  };
  partitioner::BalanceOptions used = options;
  if (TETRAD_MUTANT(balance_without_band)) {
    used.margin = -1;
    used.past_mean_ratio = 1;
    used.start_ratio = used.stop_ratio = 0;
  }
  std::vector<BalanceChange> changes;
  std::set<size_t> changing;
  for (const BalanceMove& move :
       partitioner::plan_balance(view.nodes, tablets.weighed, may_get, used)) {
    TETRAD_ASSERT(move.tablet < tablets.named.size());
    const auto& [table, tablet] = tablets.named[move.tablet];
    TETRAD_ASSERT(tablet->stage == TabletStage::kNormal);
    // One member of a set at a time. A later move of the same set counts on this one: it may lead
    // to the very store that this one leaves. So it waits also where there is no room for this one.
    const bool has_room = tablets.under_way.has_room(move.from, move.to, limits, view.nodes.size());
    if (!has_room && TETRAD_MUTANT(balance_second_alone)) continue;
    if (!changing.insert(move.tablet).second || !has_room) continue;
    const auto leaves = std::ranges::find(tablet->replicas, move.from);
    if (leaves == tablet->replicas.end()) continue;
    BalanceChange change{table,     tablet->id, tablet->epoch, tablet->replicas,
                         move.from, move.to,    move.bytes};
    change.members[static_cast<size_t>(leaves - tablet->replicas.begin())] = move.to;
    tablets.under_way.count(move.from, move.to);
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace tetrad::replication
