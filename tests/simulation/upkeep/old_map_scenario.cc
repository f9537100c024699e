// SPDX-License-Identifier: Apache-2.0
// TRUNCATE by a node that has not heard of the tablet's growth from one member to four. Those who
// have the change, but do not know that it is committed, are a quorum of the members by themselves:
// what they acknowledge after the answer lasts (rule 29).
#include "replication/meta/raft_driver.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 5;

/// Of TRUNCATE. It may be given up where no majority is seen, and be applied in the end.
enum class TruncateEnd { kNone, kDone, kGivenUp };

Task<void> truncate_table(SimNode* node, TruncateEnd* answer) {
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  change.truncated_tables.push_back(node->state()->tables.begin()->first);
  const base::Deadline deadline{node->reactor().now_us() + 60'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *answer = result.has_value() ? TruncateEnd::kDone : TruncateEnd::kGivenUp;
}

class OldMap {
 public:
  explicit OldMap(uint64_t seed) : random_(seed * 6151 + 1), cluster_(seed, 1) {}

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    while (cluster_.size() < kNodes) cluster_.add().start();
    if (!cluster_.world().run_until([&] { return cluster_.is_formed(); }, 30'000'000))
      return "the cluster does not form";
    const TableIncarnation old = incarnation(0);
    constexpr size_t kDeaf = kNodes - 1;
    if (cluster_[kDeaf].state()->tables.empty() || is_growing(kDeaf)) return "";
    cluster_.network().set_deaf(cluster_[kDeaf].endpoint(), true);
    const auto grown = [&] {
      const auto& tablet = cluster_[0].state()->table(old)->tablets.tablets().front();
      return tablet.replicas.size() == 4 && tablet.stage == partitioner::TabletStage::kNormal;
    };
    // It may be to become a member itself, which it does not hear of.
    if (!cluster_.world().run_until(grown, 30'000'000)) return "";
    cluster_.world().run_for(2'000'000);
    if (cluster_.leader() != std::optional<size_t>(0)) return "";
    for (const auto& member : cluster_[0].state()->table(old)->tablets.tablets().front().replicas)
      if (member.host == cluster_[kDeaf].node().self()) return "";
    if (is_growing(kDeaf)) return "it has heard of the growth";

    TruncateEnd answer = TruncateEnd::kNone;
    const auto answered = [&] { return answer != TruncateEnd::kNone; };
    const auto begun = last_index(0);
    cluster_[kDeaf].spawn(truncate_table(&cluster_[kDeaf], &answer));
    const auto stored = [&] {
      for (size_t i = 1; i < kDeaf; ++i)
        if (last_index(i) <= begun) return false;
      return true;
    };
    if (!cluster_.world().run_until(stored, 2'000'000)) return "the change is not stored";
    // The leader gets their word that they have it, and no word of what is committed comes to them.
    cluster_.network().set_deaf(cluster_[kDeaf].endpoint(), false);
    for (size_t i = 1; i < kDeaf; ++i) {
      cluster_.network().set_deaf(cluster_[i].endpoint(), true);
      cluster_.network().cut(cluster_[0].endpoint(), cluster_[i].endpoint());
      cluster_.network().cut(cluster_[kDeaf].endpoint(), cluster_[i].endpoint());
    }
    const auto applied = [&] { return incarnation(0) != old && incarnation(kDeaf) != old; };
    if (!cluster_.world().run_until(applied, 10'000'000)) return "";
    for (size_t i = 1; i < kDeaf; ++i)
      cluster_.network().cut(cluster_[i].endpoint(), cluster_[kDeaf].endpoint());
    cluster_.world().run_until(answered, 20'000'000);
    const bool told = answer == TruncateEnd::kDone;
    const size_t other = 1 + random_.below(kDeaf - 1);
    const TableIncarnation seen = incarnation(other);
    int after = 0;
    cluster_[other].spawn(write_row(&cluster_[other], seen, {.key = "after"}, &after));
    cluster_.world().run_for(2'500'000);
    const bool acknowledged = after > 0;

    cluster_.network().mend_all();
    cluster_.network().hear_all();
    const auto same = [&] {
      for (size_t i = 0; i < kNodes; ++i)
        if (incarnation(i) == old) return false;
      return true;
    };
    if (!cluster_.world().run_until(same, 30'000'000)) return "TRUNCATE does not come to all";
    if (!cluster_.world().run_until(answered, 30'000'000)) return "TRUNCATE gets no answer";
    RowSeen row;
    cluster_[0].spawn(
        read_row(&cluster_[0], incarnation(0), "after", ConsistencyLevel::kQuorum, &row));
    if (!cluster_.world().run_until([&] { return row.answered; }, 5'000'000))
      return "a read fails at the end";
    if (told && acknowledged && !row.value)
      return "a write that was acknowledged after TRUNCATE had answered is gone";
    return "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  TableIncarnation incarnation(size_t node) {
    return cluster_[node].state()->tables.begin()->second->incarnation;
  }
  bool is_growing(size_t node) {
    const auto state = cluster_[node].state();
    const auto& tablet = state->tables.begin()->second->tablets.tablets().front();
    return tablet.replicas.size() != 1 || tablet.stage != partitioner::TabletStage::kNormal;
  }
  replication::RaftIndex last_index(size_t node) {
    return cluster_[node].node().meta_group().driver()->core().last_index();
  }

  base::Random random_;
  SimCluster cluster_;
};

}  // namespace

ScenarioResult run_old_map(uint64_t seed) {
  OldMap scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
