// SPDX-License-Identifier: Apache-2.0
// A tablet grows from one member to three or four while the disk of the first one is stuck or slow.
// What was let in before the change lands late; every acknowledged write is on W members in the end
// (rules 8 and 10).
#include <map>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

struct Writes {
  std::map<std::string, int> acknowledged;  // by key
};

class Fenced {
 public:
  explicit Fenced(uint64_t seed)
      : random_(seed * 6007 + 1), cluster_(seed, 1), members_(3 + seed % 2), slow_(seed % 3 == 0) {}

  std::string run() {
    set_options(cluster_[0]);
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    const auto table = cluster_[0].state()->tables.begin()->second;
    incarnation_ = table->incarnation;
    for (size_t i = 1; i < members_; ++i) {
      SimNode& node = cluster_.add();
      set_options(node);
      node.start();
    }
    for (int step = 0; step < 4'000 && !grown(); ++step) {
      maybe_fault();
      write_some();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    for (int step = 0; step < 40; ++step) {
      write_some();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    cluster_[0].faults(0).heal();
    if (!grown()) return "the tablet does not grow";
    cluster_.world().run_for(8'000'000);
    return check();
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  static void set_options(SimNode& node) { node.data_options.repair.period_us = 3'600'000'000; }
  bool grown() {
    const auto& tablets = cluster_[0].state()->table(incarnation_)->tablets.tablets();
    return tablets.front().stage == partitioner::TabletStage::kNormal &&
           tablets.front().replicas.size() == members_;
  }
  /// Shorter than the deadlines of the writes, so that what was parked is done.
  void maybe_fault() {
    const base::MonotonicUs now_us = cluster_.world().now_us();
    StoreFaults& faults = cluster_[0].faults(0);
    if (now_us < fault_until_us_) return;
    faults.heal();
    if (!random_.one_in(10)) return;
    fault_until_us_ = now_us + 500'000 + static_cast<int64_t>(random_.below(2'500'000));
    if (slow_) {
      faults.sync_us = fault_until_us_ - now_us;
    } else {
      faults.parks_writes = true;
    }
  }
  void write_some() {
    SimNode* via = ready_node(cluster_, random_.below(cluster_.size()));
    if (via == nullptr || via->state()->table(incarnation_) == nullptr) return;
    const std::string key = "key" + std::to_string(writes_.acknowledged.size());
    RowWrite write{.key = key, .value = key, .within_us = 5'000'000};
    via->spawn(write_row(via, incarnation_, std::move(write), &writes_.acknowledged[key]));
  }
  std::string check() {
    const auto state = cluster_[0].state();
    const auto& members = state->table(incarnation_)->tablets.tablets().front().replicas;
    size_t acknowledged = 0;
    for (const auto& [key, count] : writes_.acknowledged) {
      if (count == 0) continue;
      ++acknowledged;
      size_t held = 0;
      for (const StoreAddress& member : members) {
        for (size_t i = 0; i < cluster_.size(); ++i) {
          if (cluster_[i].node().self() != member.host) continue;
          auto found = cluster_[i].peek(member.store, row_read(incarnation_, key, 1));
          held += found && value_of(*found) ? 1 : 0;
        }
      }
      if (held < members.size() / 2 + 1)
        return fmt::format("{} was acknowledged and is on {} of {} members", key, held,
                           members.size());
    }
    return acknowledged < 10 ? "too few writes succeed" : "";
  }

  base::Random random_;
  SimCluster cluster_;
  const size_t members_;
  const bool slow_;  // what was let in is on its way to the disk
  TableIncarnation incarnation_;
  Writes writes_;
  base::MonotonicUs fault_until_us_ = 0;
};

}  // namespace

ScenarioResult run_fence(uint64_t seed) {
  Fenced scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
