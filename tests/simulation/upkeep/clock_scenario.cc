// SPDX-License-Identifier: Apache-2.0
// Wall clocks step by an hour in either direction, on any node at any time, on all of them, or on
// half of them; machines stand still; nodes end and come back. Clients write and delete the same
// rows all the while, repairs and sweeps run every second. No acknowledged write is lost, no delete
// undone, no quorum read goes back; a node whose clock is off coordinates nothing; no tablet counts
// as repaired from a time on that a member has not reached; and with the clocks right again all
// nodes serve.
#include <algorithm>

#include "tests/simulation/upkeep/sequence_clients.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kClients = 4;
constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;
constexpr int64_t kBoundUs = 400'000;
/// So much of its time a node may not have kept over its end.
constexpr int64_t kForgottenUs = 500'000;

void prepare(SimCluster& cluster, base::Random& random) {
  for (size_t i = 0; i < cluster.size(); ++i) {
    SimNode& node = cluster[i];
    purge_often(node);
    node.options().clock_skew_max_us = kBoundUs;
    node.clock_skew_max_us = 0;
    node.clock().set_offset_us(static_cast<int64_t>(random.below(80'000)) - 40'000);
  }
}

std::string check_horizons(SimCluster& cluster) {
  for (size_t i = 0; i < cluster.size(); ++i) {
    SimNode& node = cluster[i];
    if (!node.is_ready() || node.clock().is_frozen() || !node.node().clock().is_good()) continue;
    const auto state = node.state();
    const int64_t own_us = node.node().clock().own_us(node.reactor()) + kForgottenUs;
    for (const auto& [id, table] : state->tables)
      for (const auto& tablet : table->tablets.tablets())
        if (tablet.repaired_us > own_us)
          return fmt::format("tablet {} counts as repaired {} ms ahead of the time of node {}",
                             tablet.id.value, (tablet.repaired_us - own_us) / 1000, i + 1);
  }
  return "";
}

/// What the clocks do. What is stepped is stepped back later.
class ClockFaults {
 public:
  ClockFaults(SimCluster& cluster, base::Random& random)
      : cluster_(cluster), random_(random), off_us_(cluster.size(), 0) {}

  void step() {
    const size_t victim = random_.below(cluster_.size());
    switch (random_.below(60)) {
      case 0:
      case 1:
        return set(victim, random_.one_in(2) ? kHourUs : -kHourUs);
      case 2: {
        const int64_t us = random_.one_in(2) ? kHourUs : -kHourUs;
        for (size_t i = 0; i < cluster_.size(); ++i) set(i, us);
        return;
      }
      case 3: {
        const int64_t us = random_.one_in(2) ? kHourUs : -kHourUs;
        for (size_t i = 0; i < cluster_.size() / 2; ++i) set((victim + i) % cluster_.size(), us);
        return;
      }
      case 4:
      case 5:
      case 6:
      case 7:
        return set_right();
      case 8:
        cluster_[victim].clock().freeze(static_cast<int64_t>(random_.below(8'000'000)));
        return;
      case 9: {  // a virtual machine that is paused, and then set right
        const auto us = static_cast<int64_t>(random_.below(12'000'000));
        off_us_[victim] -= cluster_[victim].clock().freeze(us, true);
        return;
      }
      case 10:
        for (size_t i = 0; i < cluster_.size(); ++i)
          if (!cluster_[i].is_up()) return;
        return cluster_[victim].kill();
      case 11:
      case 12:
        for (size_t i = 0; i < cluster_.size(); ++i)
          if (!cluster_[i].is_up()) cluster_[i].start();
        return;
      case 13:
        return cluster_.isolate(victim);
      case 14:
      case 15:
        return cluster_.network().mend_all();
      default:
        return;
    }
  }
  void set_right() {
    for (size_t i = 0; i < cluster_.size(); ++i) set(i, 0);
  }

 private:
  void set(size_t node, int64_t off_us) {
    cluster_[node].clock().step(off_us - std::exchange(off_us_[node], off_us));
  }

  SimCluster& cluster_;
  base::Random& random_;
  std::vector<int64_t> off_us_;
};

/// Writes through a node until one is answered, or the time is over.
bool serves(SimCluster& cluster, SimNode& node, TableIncarnation incarnation, int64_t within_us) {
  const base::MonotonicUs until_us = cluster.world().now_us() + within_us;
  int acknowledged = 0;
  while (acknowledged == 0 && cluster.world().now_us() < until_us) {
    if (node.is_ready())
      node.spawn(write_row(&node, incarnation, {.key = "served"}, &acknowledged));
    cluster.world().run_for(500'000);
  }
  return acknowledged != 0;
}

}  // namespace

ScenarioResult run_clocks(uint64_t seed) {
  base::Random random(seed * 7127 + 5);
  SimCluster cluster(seed, 1 + seed % 4);
  prepare(cluster, random);
  std::string wrong = form_with_table(cluster);
  if (!wrong.empty()) return {wrong, trace_of(cluster)};
  const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
  SequenceClients clients(cluster, incarnation, kClients);
  ClockFaults faults(cluster, random);
  for (int step = 0; step < 600 && wrong.empty(); ++step) {
    faults.step();
    wrong = clients.step(random);
    if (wrong.empty()) wrong = check_horizons(cluster);
    cluster.world().run_for(static_cast<int64_t>(random.below(100'000)));
  }
  const auto settle = [&]() -> std::string {
    faults.set_right();
    cluster.network().mend_all();
    for (size_t i = 0; i < cluster.size(); ++i)
      if (!cluster[i].is_up()) cluster[i].start();
    cluster.world().run_for(20'000'000);
    for (size_t i = 0; i < cluster.size(); ++i)
      if (!serves(cluster, cluster[i], incarnation, 20'000'000))
        return fmt::format("node {} does not serve although all clocks are right", i + 1);
    if (!clients.read_all(&cluster[0])) return "a read fails although all clocks are right";
    return clients.wrong();
  };
  if (wrong.empty()) wrong = settle();
  return {wrong, trace_of(cluster)};
}

/// One of three or four nodes is off by an hour: it acknowledges nothing, and no repair ends
/// without it; the others serve. All the wall clocks go back and all nodes end: what they write
/// then is not hidden by what they wrote before.
ScenarioResult run_clock_off(uint64_t seed) {
  base::Random random(seed * 4391 + 1);
  SimCluster cluster(seed, 3 + seed % 2);
  prepare(cluster, random);
  const auto repaired_us = [&](TableIncarnation incarnation) {
    int64_t newest_us = 0;
    for (const auto& tablet : cluster[0].state()->table(incarnation)->tablets.tablets())
      if (tablet.replicas.size() == cluster.size())
        newest_us = std::max(newest_us, tablet.repaired_us);
    return newest_us;
  };
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    const size_t victim = random.below(cluster.size());
    SimNode& off = cluster[victim];
    SimNode& other = cluster[(victim + 1) % cluster.size()];
    if (!serves(cluster, off, incarnation, 5'000'000)) return "a node does not serve";
    cluster.world().run_for(static_cast<int64_t>(random.below(3'000'000)));
    const int64_t step_us = random.one_in(2) ? kHourUs : -kHourUs;
    off.clock().step(step_us);
    cluster.world().run_for(5'000'000);
    if (serves(cluster, off, incarnation, 2'000'000))
      return "a node whose clock is off by an hour acknowledges a write";
    if (off.node().meta_group().is_leader())
      return "a node whose clock is off by an hour leads the metadata group";
    if (!serves(cluster, other, incarnation, 2'000'000)) return "the others do not serve";
    const int64_t before_us = repaired_us(incarnation);
    cluster.world().run_for(5'000'000);
    if (repaired_us(incarnation) > before_us)
      return "a tablet was repaired without the word of a member whose clock is off";
    off.clock().step(-step_us);
    if (!serves(cluster, off, incarnation, 10'000'000)) return "it does not come back";

    SequenceClients clients(cluster, incarnation, kClients);
    for (int step = 0; step < 40; ++step) {
      if (const auto wrong = clients.step(random); !wrong.empty()) return wrong;
      cluster.world().run_for(50'000);
    }
    cluster.world().run_for(5'000'000);
    for (size_t i = 0; i < cluster.size(); ++i) cluster[i].kill();
    for (size_t i = 0; i < cluster.size(); ++i) {
      cluster[i].clock().step(-kHourUs);
      cluster[i].start();
    }
    cluster.world().run_for(10'000'000);
    const int acknowledged = clients.acknowledged();
    for (int step = 0; step < 100; ++step) {
      if (const auto wrong = clients.step(random); !wrong.empty()) return wrong;
      cluster.world().run_for(50'000);
    }
    cluster.world().run_for(5'000'000);
    if (clients.acknowledged() == acknowledged) return "nobody serves after all clocks went back";
    if (!clients.read_all(&cluster[0])) return "a read fails after all clocks went back";
    return clients.wrong();
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
