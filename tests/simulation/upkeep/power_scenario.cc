// SPDX-License-Identifier: Apache-2.0
// Machines lose power while clients write, read and delete, and while tablets get new members: one
// at a time, two of four, or all at once; with stores that sync before they acknowledge, and such
// that do not. One at a time, and two of four, take no acknowledged write; after all no read goes
// back (rule 20).
#include <algorithm>

#include "tests/simulation/upkeep/power_clients.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kKeys = 6;

class PowerRun {
 public:
  explicit PowerRun(uint64_t seed)
      : random_(seed * 48271 + 11),
        cuts_(static_cast<Cuts>(seed / 4 % 3)),
        purges_(seed % 5 == 2),
        cluster_(seed, 1 + seed % 4) {
    for (size_t i = 0; i < cluster_.size(); ++i) set_up(cluster_[i]);
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster_[0].state()->tables.begin()->second->incarnation;
    clients_.emplace(cluster_, incarnation, kKeys);
    cluster_.world().run_for(4'000'000);
    const bool grows = cluster_.size() < 4 && random_.one_in(2);
    if (grows) {
      set_up(cluster_.add());
      cluster_[cluster_.size() - 1].start();
    }
    const int cuts = 2 + static_cast<int>(random_.below(3));
    for (int n = 0; n < cuts; ++n) {
      const auto steps = static_cast<int>(random_.below(grows && n == 0 ? 12 : 60));
      for (int i = 0; i < steps; ++i) step();
      cut_power();
      if (!settle()) return "what was lost is not fetched";
      if (!clients_->wrong().empty()) return clients_->wrong();
    }
    return check_end();
  }
  SimCluster& cluster() { return cluster_; }

 private:
  enum class Cuts { kOne, kTwo, kAll };

  void set_up(SimNode& node) {
    if (random_.one_in(3)) node.sync = storage::CommitLogSync::kGroup;
    if (purges_) purge_often(node);
    node.clock_skew_max_us = 0;  // a write that failed is older than the next one
    node.data_options.recent_fetch.write_us = 2'200'000;
    node.data_options.recent_fetch.longest_us = 2'200'000;
    node.data_options.recent_fetch.acknowledges_synced =
        node.sync == storage::CommitLogSync::kGroup;
  }

  void step() {
    for (int n = 0; n < 3; ++n) {
      SimNode* const via = ready_node(cluster_, random_.below(cluster_.size()));
      if (via == nullptr) continue;
      const size_t key = random_.below(kKeys);
      if (random_.one_in(2))
        clients_->write(key, *via, random_.one_in(4));
      else
        clients_->read(key, *via);
    }
    cluster_.world().run_for(static_cast<int64_t>(random_.below(30'000)));
  }

  /// All members of a tablet, as any node knows it: also of the only one's while others join.
  bool are_a_set(const std::vector<size_t>& victims) {
    std::vector<HostId> hosts;
    for (const size_t victim : victims)
      if (cluster_[victim].is_up()) hosts.push_back(cluster_[victim].node().self());
    const auto all_among = [&](const std::vector<StoreAddress>& set) {
      return !set.empty() && std::all_of(set.begin(), set.end(), [&](const StoreAddress& member) {
        return std::find(hosts.begin(), hosts.end(), member.host) != hosts.end();
      });
    };
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!cluster_[i].is_ready()) continue;
      const auto state = cluster_[i].state();
      for (const auto& [id, table] : state->tables)
        for (const auto& tablet : table->tablets.tablets())
          if (all_among(tablet.replicas)) return true;
    }
    return false;
  }

  /// Often at once after an acknowledgement.
  void cut_power() {
    const size_t acknowledged = clients_->acknowledged();
    for (int i = 0; i < 20 && clients_->acknowledged() == acknowledged; ++i) {
      SimNode* const via = ready_node(cluster_, random_.below(cluster_.size()));
      if (via != nullptr) clients_->write(random_.below(kKeys), *via, random_.one_in(6));
      cluster_.world().run_until([&] { return clients_->acknowledged() > acknowledged; }, 50'000);
    }
    size_t count = 1;
    if (cuts_ == Cuts::kTwo && cluster_.size() >= 4) count = 2;
    if (cuts_ == Cuts::kAll) count = cluster_.size();
    std::vector<size_t> victims(cluster_.size());
    for (size_t i = 0; i < victims.size(); ++i) victims[i] = i;
    for (size_t i = victims.size(); i > 1; --i)
      std::swap(victims[i - 1], victims[random_.below(i)]);
    victims.resize(count);
    bool all_synced = true;
    for (size_t i = 0; i < cluster_.size(); ++i)
      all_synced &= cluster_[i].sync == storage::CommitLogSync::kGroup;
    const bool takes_a_set = are_a_set(victims);
    for (const size_t victim : victims) cluster_[victim].power_cut();
    if (takes_a_set && !all_synced) clients_->forget();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(2'000'000)));
    for (const size_t victim : victims) {
      cluster_[victim].start();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(300'000)));
      if (!random_.one_in(3)) continue;
      // The process ends while the store is behind, and comes back.
      cluster_.world().run_for(static_cast<int64_t>(random_.below(2'000'000)));
      cluster_[victim].kill();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(100'000)));
      cluster_[victim].start();
    }
  }

  bool settle() {
    const auto done = [&] {
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_ready() || cluster_[i].is_behind()) return false;
      return true;
    };
    const base::MonotonicUs until_us = cluster_.world().now_us() + 60'000'000;
    while (!done() && cluster_.world().now_us() < until_us && clients_->wrong().empty()) step();
    for (int i = 0; i < 20; ++i) step();
    return done() || !clients_->wrong().empty();
  }

  /// Each member in turn is away: the others have all that was acknowledged.
  std::string check_end() {
    cluster_.world().run_for(5'000'000);
    if (const auto wrong = clients_->read_all(cluster_[0], 10'000'000); !wrong.empty())
      return "at the end: " + wrong;
    if (cluster_.size() < 3) return clients_->wrong();
    for (size_t i = 0; i < cluster_.size(); ++i) {
      cluster_[i].kill();
      const size_t other = (i + 1) % cluster_.size();
      if (const auto wrong = clients_->read_all(cluster_[other], 30'000'000); !wrong.empty())
        return fmt::format("without node {}: {}", i + 1, wrong);
      cluster_[i].start();
      cluster_.world().run_for(8'000'000);
    }
    return clients_->wrong();
  }

  base::Random random_;
  const Cuts cuts_;
  const bool purges_;
  SimCluster cluster_;
  std::optional<PowerClients> clients_;
};

}  // namespace

ScenarioResult run_power(uint64_t seed) {
  PowerRun run(seed);
  std::string wrong = run.run();
  return {std::move(wrong), trace_of(run.cluster())};
}

}  // namespace tetrad::simulation
