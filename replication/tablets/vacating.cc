// SPDX-License-Identifier: Apache-2.0
// Which store is vacated, one at a time. A damaged store at once, while its node is live; one that
// has hung or failed after a time, if there is a place for its tablets.
#include "replication/tablets/vacating.h"

#include <algorithm>

#include "partitioner/topology.h"

namespace tetrad::replication {

using storage::StoreState;

namespace {

bool has_tablets(const MetaState& state, const StoreAddress& store) {
  for (const auto& [id, table] : state.tables) {
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas})
        if (std::ranges::find(*set, store) != set->end()) return true;
    }
  }
  return false;
}

}  // namespace

bool Vacating::is_whole_node(const NodeInfo& node) const {
  if (!store_ || store_->host != node.host) return false;
  for (uint32_t store = 0; store < node.store_count; ++store)
    if (!troubles_.contains({node.host, store})) return false;
  return true;
}

/// Sets that would only shrink are better off with a member that may come back.
bool Vacating::has_place(const MetaState& state, const StoreAddress& store,
                         const std::function<bool(HostId)>& is_live) const {
  const NodeInfo& node = *state.node(store.host);
  for (uint32_t other = 0; other < node.store_count; ++other)
    if (!troubles_.contains({store.host, other})) return true;
  // As many other live nodes as a set has members: then each set finds one that it does not have
  // yet.
  const auto spare = std::ranges::count_if(state.nodes, [&](const auto& entry) {
    return entry.first != store.host && entry.second.state == NodeState::kNormal &&
           entry.second.data_center == node.data_center && is_live(entry.first);
  });
  return spare >= partitioner::kReplicasPerDataCenter;
}

void Vacating::look(const MetaState& state, const StoreTroubles& troubles,
                    const std::function<bool(HostId)>& is_live, base::MonotonicUs now_us) {
  if (troubles.empty() && troubles_.empty()) return;
  troubles_ = troubles;
  store_.reset();
  // A store that is well again begins anew when it fails the next time.
  std::erase_if(absent_since_us_, [&](const auto& entry) {
    const auto found = troubles.find(entry.first);
    return found == troubles.end() || !is_absent(found->second);
  });
  for (const auto& [host, node] : state.nodes)
    if (node.state == NodeState::kLeaving) return;  // one at a time, too
  for (const auto& [store, trouble] : troubles) {
    const NodeInfo* node = state.node(store.host);
    if (node == nullptr || node->state != NodeState::kNormal || store.store >= node->store_count)
      continue;
    bool goes = trouble == StoreState::kDamaged && is_live(store.host);
    if (is_absent(trouble)) {
      const auto since = absent_since_us_.try_emplace(store, now_us).first->second;
      goes = after_us_ != 0 && now_us - since >= after_us_ && has_place(state, store, is_live);
    }
    // The first of them, in the order of addresses; the others wait until it has no tablets.
    if (goes && !store_ && has_tablets(state, store)) store_ = store;
  }
}

}  // namespace tetrad::replication
