// SPDX-License-Identifier: Apache-2.0
// The disk under the log of the metadata group's leader hangs, without an error. Another leads
// within a few elections' time, so the schema can be changed through the other nodes; when the disk
// answers again the node is one of them.
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

class Hung {
 public:
  explicit Hung(uint64_t seed) : random_(seed * 2'971 + 7), cluster_(seed, 3 + seed % 3) {}

  std::string run() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(5'000'000);
    const auto leader = cluster_.leader();
    if (!leader) return "no leader";
    cluster_[*leader].log_faults.hangs = true;
    const size_t other = (*leader + 1 + random_.below(cluster_.size() - 1)) % cluster_.size();
    if (!change_schema(other)) return "no schema change while the leader's disk hangs";
    const auto now_leads = cluster_.leader();
    if (!now_leads || *now_leads == *leader) return "it still leads";
    cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000'000)));
    cluster_[*leader].log_faults.hangs = false;
    cluster_.world().run_for(5'000'000);
    if (!change_schema(*leader)) return "no schema change after the disk answers again";
    const auto same = [this] {
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (cluster_[i].state()->applied != cluster_[0].state()->applied) return false;
      return true;
    };
    if (!cluster_.world().run_until(same, 10'000'000)) return "a node is left behind";
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].fatal()) return cluster_[i].fatal()->message;
    return "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  /// Asks again, each time for another table, until it is answered.
  bool change_schema(size_t through) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      bool made = false;
      replication::SchemaChange change;
      change.new_tables.push_back(table_t());
      change.new_tables.back().id.value.octets[1] = ++tables_;
      change.new_tables.back().name = fmt::format("t{}", tables_);
      cluster_[through].spawn(change_schema_now(&cluster_[through], std::move(change), &made));
      if (cluster_.world().run_until([&] { return made; }, 5'500'000)) return true;
    }
    return false;
  }

  base::Random random_;
  SimCluster cluster_;
  uint8_t tables_ = 1;
};

}  // namespace

ScenarioResult run_hung(uint64_t seed) {
  Hung hung(seed);
  return {hung.run(), hung.trace()};
}

}  // namespace tetrad::simulation
