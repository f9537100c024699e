// SPDX-License-Identifier: Apache-2.0
// What becomes of the machines and tablets of a simulated cluster, all in one history: nodes join, are
// decommissioned, die for good and are taken out, come back without their disk, end and begin again,
// lose power one at a time; tablets are split and merged by order. It does nothing that an operator
// is warned of: one disk at a time is lost for good, and only where the sets have three members or
// more, and the cluster three nodes that stay; no second machine loses power before the first one is
// whole again, and none that is alone in a set. Where every write is synced any machine may lose
// power at any time, but for the members of a set that has lost a disk: R others of each data centre
// must be whole, else who is behind waits for the lost one as long as an operator is given to bring
// it back.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/swarm/swarm_profile.h"

namespace tetrad::simulation {

/// What has become of a machine.
struct Machine {
  size_t center = 0;
  uint64_t starts = 0;       // again
  HostId host;               // of its present disk, once it is known
  bool is_for_good = false;  // it has left, or is lost, and never starts again
  bool is_out = false;       // its process has heard that it was taken out
  bool is_leaving = false;   // it has been told to
  bool is_behind = false;    // it lost power, and has not been whole since
};

class TopologyNemesis {
 public:
  struct Figures {
    uint64_t joins = 0, leaves = 0, losses = 0, wipes = 0, kills = 0, cuts = 0, splits = 0,
             merges = 0, removals = 0;
    void add(const Figures& other);
    std::string text() const;
  };

  /// `set_up` prepares a node before its first life. All outlive it.
  TopologyNemesis(uint64_t seed, SwarmProfile profile, SimCluster& cluster,
                  std::function<void(SimNode&)> set_up);

  SimNode& add_node(size_t center, std::string rack);
  /// Between two steps of the world.
  void step();
  /// Nothing begins any more: machines that are down start.
  void calm();
  /// What the cluster's own upkeep needs from outside: to be called now and then, also after calm().
  void attend();

  /// The newest state that any node has had.
  const replication::MetaSnapshot& newest_state();
  /// Which machine has the disk of a host; unset: it is lost, or nobody has seen it yet.
  std::optional<size_t> machine_of(HostId host) const;
  bool is_lost(HostId host) const { return lost_.contains(host); }
  size_t center_of_lost(HostId host) const { return lost_.at(host); }
  const Machine& machine(size_t index) const { return machines_[index]; }
  /// It may lack what a power cut took, and knows it.
  bool may_lack(const StoreAddress& member, TableIncarnation incarnation, RingPosition at);
  /// A node that clients use, if the drawn one is such.
  SimNode* random_ready_node();
  bool is_ready(size_t index);
  /// Nobody who left or was lost is left in the cluster's sets, nobody is on the way.
  bool is_settled();
  size_t normal_nodes(size_t center);
  const Figures& figures() const { return figures_; }

 private:
  using Action = void (TopologyNemesis::*)(size_t victim);
  size_t down_count();
  bool any_is_behind();
  bool is_loss_open();
  bool knows_only_who_left(size_t index);
  bool may_lose(size_t victim);
  bool may_lose_beside_behind();
  bool may_be_cut(size_t victim);
  /// Whether who is behind gets what it lacks although the victim loses its power, or its disk.
  bool can_fetch(size_t victim, bool loses_disk);
  void join(size_t victim);
  void leave(size_t victim);
  void lose(size_t victim);
  void wipe(size_t victim);
  void kill(size_t victim);
  void cut(size_t victim);
  void start(size_t victim);
  void split(size_t victim);
  void merge(size_t victim);
  void lose_disk(size_t victim);
  void order_removal(HostId host);
  void keep_who_leaves();
  static Task<void> cancel_decommission(TopologyNemesis* self, size_t index);
  SimNode* any_ready_node();

  base::Random random_;
  const SwarmProfile profile_;
  SimCluster& cluster_;
  const std::function<void(SimNode&)> set_up_;
  std::vector<Machine> machines_;
  std::map<HostId, size_t> lost_;  // with their data centres
  std::optional<size_t> cut_;      // the machine that lost power and has not been whole since
  replication::MetaSnapshot newest_;
  base::MonotonicUs removal_ordered_us_ = 0;
  Figures figures_;
};

}  // namespace tetrad::simulation
