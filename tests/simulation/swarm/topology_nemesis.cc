// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/swarm/topology_nemesis.h"

#include <algorithm>

#include "partitioner/token.h"
#include "replication/membership/leaving.h"
#include "tests/simulation/cluster/data_clients.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using replication::NodeState;

constexpr size_t kNodesMost = 6;  // up at once, of one data centre
constexpr size_t kMachinesMost = 14;
constexpr size_t kDownMost = 2;

Task<void> decommission(SimNode* node) {
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto done = co_await node->node().decommission(deadline);
  (void)done;
}

}  // namespace

void TopologyNemesis::Figures::add(const Figures& other) {
  joins += other.joins;
  leaves += other.leaves;
  losses += other.losses;
  wipes += other.wipes;
  kills += other.kills;
  cuts += other.cuts;
  splits += other.splits;
  merges += other.merges;
  removals += other.removals;
}

std::string TopologyNemesis::Figures::text() const {
  return fmt::format(
      "{} joins, {} decommissions, {} lost for good, {} wiped, {} removed, {} kills, {} power "
      "cuts, {} "
      "splits, {} merges",
      joins, leaves, losses, wipes, removals, kills, cuts, splits, merges);
}

TopologyNemesis::TopologyNemesis(uint64_t seed, SwarmProfile profile, SimCluster& cluster,
                                 std::function<void(SimNode&)> set_up)
    : random_(seed * 15'485'863 + 7),
      profile_(profile),
      cluster_(cluster),
      set_up_(std::move(set_up)) {}

SimNode& TopologyNemesis::add_node(size_t center, std::string rack) {
  SimNode& node = cluster_.add(1, 1);
  const size_t index = machines_.size();
  machines_.emplace_back().center = center;
  node.options().data_center = "dc" + std::to_string(center + 1);
  node.options().rack = std::move(rack);
  node.options().removed = [this, index] { machines_[index].is_out = true; };
  set_up_(node);
  return node;
}

// ---- what is known ----

const replication::MetaSnapshot& TopologyNemesis::newest_state() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) continue;
    machines_[i].host = cluster_[i].node().self();
    auto state = cluster_[i].state();
    if (!newest_ || newest_->applied < state->applied) newest_ = std::move(state);
  }
  return newest_;
}

std::optional<size_t> TopologyNemesis::machine_of(HostId host) const {
  if (lost_.contains(host)) return std::nullopt;
  for (size_t i = 0; i < machines_.size(); ++i)
    if (machines_[i].host == host) return i;
  return std::nullopt;
}

bool TopologyNemesis::is_ready(size_t index) {
  return cluster_[index].is_ready() && !cluster_[index].clock().is_frozen();
}

/// A node without a cluster none of whose seeds comes back. A node that started when no other was
/// ready has the first of all as its seed, which may leave before it has answered.
bool TopologyNemesis::knows_only_who_left(size_t index) {
  SimNode& node = cluster_[index];
  if (!node.is_up() || node.node().meta_group().started()) return false;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!machines_[i].is_for_good &&
        std::ranges::count(node.options().seeds, cluster_[i].endpoint()) > 0)
      return false;
  return !node.options().seeds.empty();
}

SimNode* TopologyNemesis::random_ready_node() {
  const size_t index = random_.below(cluster_.size());
  return is_ready(index) ? &cluster_[index] : nullptr;
}

SimNode* TopologyNemesis::any_ready_node() {
  const size_t from = random_.below(cluster_.size());
  for (size_t i = 0; i < cluster_.size(); ++i) {
    const size_t index = (from + i) % cluster_.size();
    if (is_ready(index)) return &cluster_[index];
  }
  return nullptr;
}

size_t TopologyNemesis::down_count() {
  size_t down = 0;
  for (size_t i = 0; i < cluster_.size(); ++i)
    down += cluster_[i].is_up() || machines_[i].is_for_good ? 0 : 1;
  for (const auto& [host, node] : newest_state()->nodes)
    down += lost_.contains(host) && node.state != NodeState::kRemoved ? 1 : 0;
  return down;
}

bool TopologyNemesis::any_is_behind() {
  if (cut_) return true;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (cluster_[i].is_up() && (!cluster_[i].is_ready() || cluster_[i].is_behind())) return true;
  return false;
}

bool TopologyNemesis::may_lack(const StoreAddress& member, TableIncarnation incarnation,
                               RingPosition at) {
  const auto index = machine_of(member.host);
  if (!index || cut_ != *index) return false;
  SimNode& node = cluster_[*index];
  if (!node.is_ready()) return true;
  const auto& behind = node.data(member.store % node.shard_count()).behind();
  return behind.is_behind(member.store, incarnation, at);
}

/// A lost disk's host is still a member somewhere, or a set is not whole again.
bool TopologyNemesis::is_loss_open() {
  const auto& state = newest_state();
  if (!state) return true;
  for (const auto& [host, node] : state->nodes)
    if (lost_.contains(host) && node.state != NodeState::kRemoved) return true;
  for (const auto& [id, table] : state->tables)
    for (const auto& tablet : table->tablets.tablets())
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas})
        for (const StoreAddress& member : *set)
          if (lost_.contains(member.host)) return true;
  return false;
}

bool TopologyNemesis::is_settled() {
  if (is_loss_open()) return false;
  for (const auto& [host, node] : newest_->nodes)
    if (node.state == NodeState::kLeaving || node.state == NodeState::kJoining) return false;
  for (const auto& [id, table] : newest_->tables)
    for (const auto& tablet : table->tablets.tablets())
      if (tablet.stage != partitioner::TabletStage::kNormal) return false;
  return true;
}

size_t TopologyNemesis::normal_nodes(size_t center) {
  const std::string name = "dc" + std::to_string(center + 1);
  size_t count = 0;
  for (const auto& [host, node] : newest_state()->nodes)
    count += node.data_center == name && node.state == NodeState::kNormal ? 1 : 0;
  return count;
}

/// Of each set that it is in, three members at least are of its data centre, and none lacks
/// anything. Of two nodes that stay each may be needed to elect the metadata group's leader.
bool TopologyNemesis::may_lose(size_t victim) {
  if (!cluster_[victim].is_ready() || is_loss_open() || down_count() >= kDownMost) return false;
  const bool may_be_behind = profile_.has(Trouble::kPower) && !profile_.has(Trouble::kSyncs);
  if (may_be_behind && any_is_behind()) return false;
  const HostId host = cluster_[victim].node().self();
  const auto own = newest_->nodes.find(host);
  if (own == newest_->nodes.end() || own->second.state != NodeState::kNormal) return false;
  if (normal_nodes(0) + normal_nodes(1) < 3) return false;
  // On the way from one voter to three there are two for a moment, of which both are needed.
  const auto& raft = cluster_[victim].node().meta_group().driver()->core();
  if (raft.configuration().voters.size() < 3) return false;
  for (const auto& [id, table] : newest_->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
        if (std::ranges::none_of(*set, [&](const auto& m) { return m.host == host; })) continue;
        size_t near = 0;
        for (const StoreAddress& member : *set) {
          const auto index = machine_of(member.host);
          if (!index) return false;
          near += machines_[*index].center == machines_[victim].center ? 1 : 0;
        }
        if (near < 3) return false;
      }
    }
  }
  return can_fetch(victim, true) && may_lose_beside_behind();
}

/// A change of members towards a disk that has just been lost may begin. Who is behind does without
/// that one if its sets are of four already and stay so; two of them would not.
bool TopologyNemesis::may_lose_beside_behind() {
  std::optional<size_t> behind;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (!machines_[i].is_behind) continue;
    if (behind) return false;
    behind = i;
  }
  if (!behind) return true;
  if (std::ranges::any_of(machines_, &Machine::is_leaving)) return false;
  for (const auto& [host, node] : newest_->nodes)
    if (node.state == NodeState::kLeaving) return false;
  for (const auto& [id, table] : newest_->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
        size_t near = 0;
        bool is_in = false;
        for (const StoreAddress& member : *set) {
          const auto index = machine_of(member.host);
          is_in |= index == behind;
          near += index && machines_[*index].center == machines_[*behind].center ? 1 : 0;
        }
        if (is_in && near < 4) return false;
      }
    }
  }
  return true;
}

/// It needs R others of each data centre that are not behind, or all others (rule 20).
bool TopologyNemesis::can_fetch(size_t victim, bool loses_disk) {
  struct Center {
    size_t members = 0, whole = 0;
  };
  const HostId host = machines_[victim].host;
  for (const auto& [id, table] : newest_->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
        if (std::ranges::none_of(*set, [&](const auto& m) { return m.host == host; })) continue;
        bool any_lost = loses_disk, any_behind = !loses_disk;
        std::map<size_t, Center> centers;
        for (const StoreAddress& member : *set) {
          const auto index = machine_of(member.host);
          if (!index && !is_lost(member.host)) return false;  // nobody has seen it yet
          Center& center = centers[index ? machines_[*index].center : center_of_lost(member.host)];
          ++center.members;
          const bool is_behind = index && *index != victim && machines_[*index].is_behind;
          any_lost |= !index;
          any_behind |= is_behind;
          center.whole += index && *index != victim && !is_behind ? 1 : 0;
        }
        const bool all_have_r = std::ranges::all_of(centers, [](const auto& one) {
          const size_t w = one.second.members / 2 + 1;
          return one.second.whole >= one.second.members - w + 1;
        });
        if (any_lost && any_behind && !all_have_r) return false;
      }
    }
  }
  return true;
}

/// Where a write is acknowledged before it is synced, another of each of its sets and of its data
/// centre must have all that it has.
bool TopologyNemesis::may_be_cut(size_t victim) {
  if (!newest_state()) return false;
  if (profile_.has(Trouble::kSyncs)) {
    const bool was_behind = std::exchange(machines_[victim].is_behind, true);
    const bool may = can_fetch(victim, false) && (!is_loss_open() || may_lose_beside_behind());
    machines_[victim].is_behind = was_behind;
    return may;
  }
  if (!cluster_[victim].is_ready() || any_is_behind() || is_loss_open()) return false;
  const HostId host = cluster_[victim].node().self();
  for (const auto& [id, table] : newest_->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
        if (std::ranges::none_of(*set, [&](const auto& m) { return m.host == host; })) continue;
        const auto near = std::ranges::count_if(*set, [&](const StoreAddress& member) {
          const auto index = machine_of(member.host);
          return index && machines_[*index].center == machines_[victim].center;
        });
        if (near < 2) return false;
      }
    }
  }
  return true;
}

// ---- what is done ----

void TopologyNemesis::step() {
  attend();
  struct Choice {
    Trouble trouble;
    uint64_t one_in;
    Action action;
  };
  static constexpr Choice kChoices[] = {
      {Trouble::kJoins, 25, &TopologyNemesis::join},
      {Trouble::kLeaves, 30, &TopologyNemesis::leave},
      {Trouble::kLosses, 25, &TopologyNemesis::lose},
      {Trouble::kWipes, 25, &TopologyNemesis::wipe},
      {Trouble::kKills, 12, &TopologyNemesis::kill},
      {Trouble::kPower, 12, &TopologyNemesis::cut},
      {Trouble::kSplits, 10, &TopologyNemesis::split},
      {Trouble::kMerges, 10, &TopologyNemesis::merge},
  };
  for (const Choice& choice : kChoices)
    if (profile_.has(choice.trouble) && random_.one_in(choice.one_in))
      (this->*choice.action)(random_.below(cluster_.size()));
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up() && random_.one_in(8)) start(i);
}

void TopologyNemesis::calm() {
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up()) start(i);
}

void TopologyNemesis::attend() {
  newest_state();
  for (size_t i = 0; i < cluster_.size(); ++i) {
    Machine& machine = machines_[i];
    if (cluster_[i].is_up() && cluster_[i].fatal()) {  // the process ends
      machine.is_out |= cluster_[i].fatal()->message.find("was removed") != std::string::npos;
      cluster_[i].kill();
    }
    if (knows_only_who_left(i) && any_ready_node() != nullptr) {  // the operator gives it others
      cluster_[i].kill();
      start(i);
    }
    if (machine.is_behind && cluster_[i].is_ready() && !cluster_[i].is_behind())
      machine.is_behind = false;
    if (!machine.is_out) continue;
    machine.is_out = false;
    const bool has_left = machine.is_leaving;
    lose_disk(i);  // what it holds belongs to nobody
    machine.is_leaving = false;
    machine.is_for_good = has_left;
    if (!has_left) start(i);  // as a new node, as the program does by itself
  }
  if (cut_ && machines_[*cut_].is_for_good) cut_.reset();
  if (cut_ && cluster_[*cut_].is_ready() && !cluster_[*cut_].is_behind()) cut_.reset();
  if (!newest_) return;
  for (const auto& [host, node] : newest_->nodes)
    if (lost_.contains(host) && node.state == NodeState::kNormal) order_removal(host);
}

void TopologyNemesis::order_removal(HostId host) {
  if (cluster_.world().now_us() < removal_ordered_us_ + 1'000'000) return;
  SimNode* const via = any_ready_node();
  if (via == nullptr) return;
  const auto live = [&](HostId other) { return via->node().meta().is_live(other); };
  if (!replication::check_leaving(*via->state(), host, true, live)) return keep_who_leaves();
  removal_ordered_us_ = cluster_.world().now_us();
  ++figures_.removals;
  via->spawn(propose(via, replication::SetNodeState{host, NodeState::kLeaving}));
}

/// As the operator does to whom the removal of a lost node was refused.
void TopologyNemesis::keep_who_leaves() {
  for (const auto& [host, node] : newest_->nodes) {
    const auto index = machine_of(host);
    if (node.state != NodeState::kLeaving || !index || !is_ready(*index)) continue;
    removal_ordered_us_ = cluster_.world().now_us();
    cluster_[*index].spawn(cancel_decommission(this, *index));
  }
}

Task<void> TopologyNemesis::cancel_decommission(TopologyNemesis* self, size_t index) {
  SimNode& node = self->cluster_[index];
  const base::Deadline deadline{node.reactor().now_us() + 5'000'000};
  auto kept = co_await node.node().cancel_decommission(deadline);
  if (kept) self->machines_[index].is_leaving = false;
}

void TopologyNemesis::join(size_t victim) {
  const size_t center = machines_[victim].center;
  if (cluster_.size() >= kMachinesMost || normal_nodes(center) >= kNodesMost) return;
  ++figures_.joins;
  const std::string rack = profile_.has(Trouble::kRacks)
                               ? "rack" + std::to_string(cluster_.size() % 3)
                               : "rack" + std::to_string(cluster_.size());
  add_node(center, rack);
  start(cluster_.size() - 1);
}

void TopologyNemesis::leave(size_t victim) {
  SimNode& node = cluster_[victim];
  if (!is_ready(victim) || is_loss_open() || normal_nodes(machines_[victim].center) < 2) return;
  const auto live = [&](HostId host) { return node.node().meta().is_live(host); };
  if (!replication::check_leaving(*node.state(), node.node().self(), false, live)) return;
  ++figures_.leaves;
  machines_[victim].is_leaving = true;
  node.spawn(decommission(&node));
}

void TopologyNemesis::lose_disk(size_t victim) {
  SimNode& node = cluster_[victim];
  if (node.is_ready()) machines_[victim].host = node.node().self();
  lost_[machines_[victim].host] = machines_[victim].center;
  if (cut_ == victim) cut_.reset();
  machines_[victim].is_behind = false;
  node.wipe();
}

void TopologyNemesis::lose(size_t victim) {
  if (!may_lose(victim)) return;
  ++figures_.losses;
  lose_disk(victim);
  machines_[victim].is_for_good = true;
}

void TopologyNemesis::wipe(size_t victim) {
  if (!may_lose(victim) || machines_[victim].is_leaving) return;
  ++figures_.wipes;
  lose_disk(victim);
}

void TopologyNemesis::kill(size_t victim) {
  if (!cluster_[victim].is_up() || down_count() >= kDownMost) return;
  ++figures_.kills;
  cluster_[victim].kill();
}

void TopologyNemesis::cut(size_t victim) {
  if (!cluster_[victim].is_up() || down_count() >= kDownMost || !may_be_cut(victim)) return;
  if (!profile_.has(Trouble::kSyncs)) cut_ = victim;
  machines_[victim].is_behind = true;
  ++figures_.cuts;
  cluster_[victim].power_cut();
}

/// One whose disk is new asks nodes that are there: those that it knew may have left.
void TopologyNemesis::start(size_t victim) {
  if (machines_[victim].is_for_good) return;
  std::vector<replication::Endpoint> seeds;
  for (size_t i = 0; i < cluster_.size() && seeds.size() < 4; ++i)
    if (i != victim && cluster_[i].is_ready()) seeds.push_back(cluster_[i].endpoint());
  if (!seeds.empty()) cluster_[victim].options().seeds = std::move(seeds);
  ++machines_[victim].starts;
  cluster_[victim].start();
}

void TopologyNemesis::split(size_t) {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  const auto state = via->state();
  auto entry = state->tables.begin();
  std::advance(entry, random_.below(state->tables.size()));
  const auto& table = *entry->second;
  const RingPosition at =
      partitioner::position_of(key_text(static_cast<int>(random_.below(kKeys))));
  ++figures_.splits;
  split_at(*via, table, at);
}

void TopologyNemesis::merge(size_t) {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  const auto state = via->state();
  auto entry = state->tables.begin();
  std::advance(entry, random_.below(state->tables.size()));
  const auto& tablets = entry->second->tablets.tablets();
  if (tablets.size() < 2) return;
  ++figures_.merges;
  via->node().merges().order(tablets[random_.below(tablets.size() - 1)].id, [](Result<void>) {});
}

}  // namespace tetrad::simulation
