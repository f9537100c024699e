// SPDX-License-Identifier: Apache-2.0
// A node is about to become a member of tablets when it is cut off, and the change of members is
// given up. Rows are deleted meanwhile, the deletions purged. When the node comes back it becomes a
// member after all, and what it had kept must not (rule 11).
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::TabletStage;

constexpr int kKeys = 40;

std::string key_name(int i) { return "key" + std::to_string(i); }

class Return {
 public:
  explicit Return(uint64_t seed)
      : random_(seed * 7103 + 3), cluster_(seed, 3), restarts_(seed % 3 == 0) {
    for (size_t i = 0; i < cluster_.size(); ++i) set_options(cluster_[i]);
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    if (!settled(3)) return "the tablets do not get their members";
    if (!write_all(false)) return "the rows are not written";

    SimNode& comer = cluster_.add();
    set_options(comer);
    comer.start();
    const auto streams = [this] { return any_tablet(TabletStage::kStream); };
    if (!run_until(streams)) return "the new node becomes no member";
    run_for(static_cast<int64_t>(random_.below(20'000)));
    cluster_.isolate(3);
    if (!run_until([this] { return !any_tablet(TabletStage::kWriteBoth, TabletStage::kStream); }))
      return "the change is not given up";
    if (!write_all(true)) return "the rows are not deleted";
    // Until the deletions are purged.
    run_for(20'000'000);
    if (restarts_) comer.start();
    cluster_.network().mend_all();
    if (!settled(4)) return "the tablets do not get their fourth member";
    for (int i = 0; i < kKeys; ++i) {
      RowSeen seen;
      cluster_[0].spawn(
          read_row(&cluster_[0], incarnation_, key_name(i), ConsistencyLevel::kAll, &seen));
      run_until([&] { return seen.answered; });
      if (!seen.answered) return key_name(i) + " cannot be read";
      if (seen.value) return key_name(i) + " was deleted, and is there again";
    }
    return "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  static void set_options(SimNode& node) {
    purge_often(node);
    node.options().moves.stalled_us = 2'000'000;
    node.data_options.repair.pause_us = 2'000;
  }
  void run_for(int64_t us) { cluster_.world().run_for(us); }
  template <class Condition>
  bool run_until(Condition condition) {
    return cluster_.world().run_until(std::move(condition), 60'000'000);
  }
  template <class... Stages>
  bool any_tablet(Stages... stages) {
    for (const auto& tablet : cluster_[0].state()->table(incarnation_)->tablets.tablets())
      if (((static_cast<int>(tablet.stage) == static_cast<int>(stages)) || ...) &&
          tablet.stage != TabletStage::kNormal)
        return true;
    return false;
  }
  bool settled(size_t members) {
    return run_until([&] {
      for (const auto& tablet : cluster_[0].state()->table(incarnation_)->tablets.tablets())
        if (tablet.stage != TabletStage::kNormal || tablet.replicas.size() != members) return false;
      return true;
    });
  }
  bool write_all(bool deletes) {
    int acknowledged = 0;
    for (int i = 0; i < kKeys; ++i) {
      const int wanted = acknowledged + 1;
      for (int attempt = 0; attempt < 10 && acknowledged < wanted; ++attempt) {
        RowWrite write{.key = key_name(i)};
        if (deletes) write.value.reset();
        cluster_[0].spawn(write_row(&cluster_[0], incarnation_, std::move(write), &acknowledged));
        cluster_.world().run_until([&] { return acknowledged >= wanted; }, 2'500'000);
      }
    }
    return acknowledged >= kKeys;
  }

  base::Random random_;
  SimCluster cluster_;
  const bool restarts_;
  TableIncarnation incarnation_;
};

}  // namespace

ScenarioResult run_return(uint64_t seed) {
  Return scenario(seed);
  return {scenario.run(), scenario.trace()};
}

}  // namespace tetrad::simulation
