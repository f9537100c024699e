// SPDX-License-Identifier: Apache-2.0
// A node dies for good and is taken out, by order or by itself, or a live one is told to leave,
// while writes and lesser faults go on; in some seeds while another node is dead for good. Afterwards
// every acknowledged write is on W members of its new set, the node is out of the group, and it is
// refused when it comes back.
#include <map>

#include "partitioner/token.h"
#include "replication/membership/leaving.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::TabletStage;
using replication::NodeState;

Task<void> write_key(SimNode* node, TableIncarnation incarnation, std::string key,
                     std::vector<std::string>* acknowledged) {
  RowWrite write{.key = key, .value = key, .level = ConsistencyLevel::kOne};
  auto written = co_await try_write(node, incarnation, std::move(write));
  if (written) acknowledged->push_back(key);
}

class Leaving {
 public:
  explicit Leaving(uint64_t seed)
      : random_(seed * 7907 + 5), cluster_(seed, 4 + seed % 3), kind_(seed % 4) {
    set_up();
  }
  /// A live node leaves while another one is dead for good: of six nodes others take its replicas
  /// at once, of five its sets shrink when the dead one has been away for long enough.
  struct BesideDead {};
  Leaving(uint64_t seed, BesideDead)
      : random_(seed * 7907 + 5), cluster_(seed, 5 + seed % 2), kind_(0) {
    set_up();
    dead_ = (victim_ + 1 + random_.below(cluster_.size() - 1)) % cluster_.size();
    for (size_t i = 0; i < cluster_.size() && cluster_.size() == 5; ++i)
      cluster_[i].options().moves.stalled_us = 10'000'000;
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    host_ = cluster_[victim_].node().self();
    cluster_[victim_].options().removed = [this] { has_left_ = true; };
    if (kind_ == 0) {  // its next life knows the callback
      cluster_[victim_].start();
      cluster_.world().run_for(3'000'000);
    }
    write_under_faults(40);
    if (const auto wrong = refusals(); !wrong.empty()) return wrong;

    if (kind_ != 0) cluster_[victim_].kill();
    if (dead_) {
      dead_host_ = cluster_[*dead_].node().self();
      cluster_[*dead_].kill();
      cluster_.world().run_for(8'000'000);
    }
    if (kind_ != 3 && !order(host_, kind_ != 0)) return "the order to leave is not taken";
    for (int step = 0; step < 400 && !is_out(host_); ++step) {
      write_some(2);
      if (step % 40 == 13) lesser_fault();
      if (step % 40 == 23) mend();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(200'000)));
    }
    mend();
    if (!cluster_.world().run_until([this] { return is_out(host_); }, 60'000'000))
      return "the node is not out after a minute";
    if (dead_) {
      if (!order(dead_host_, true)) return "the order to take the dead node out is not taken";
      if (!cluster_.world().run_until([this] { return is_out(dead_host_); }, 60'000'000))
        return "the dead node is not out after a minute";
    }
    cluster_.world().run_for(5'000'000);
    return check();
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  void set_up() {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      // What a replica misses it gets from nobody but a rebuild.
      cluster_[i].data_options.hints.bytes_per_replica_max = 0;
      if (kind_ == 3) cluster_[i].options().leaving.replace_after_us = 8'000'000;
    }
    victim_ = random_.below(cluster_.size());
    if (kind_ == 3 && cluster_.size() < 5) kind_ = 0;
  }

  SimNode* other_ready() {
    const size_t from = random_.below(cluster_.size());
    for (size_t i = 0; i < cluster_.size(); ++i) {
      const size_t index = (from + i) % cluster_.size();
      if (index != victim_ && cluster_[index].is_ready()) return &cluster_[index];
    }
    return nullptr;
  }

  void write_some(int count) {
    for (int i = 0; i < count; ++i) {
      SimNode* node = other_ready();
      if (node == nullptr) return;
      node->spawn(write_key(node, incarnation_, "key" + std::to_string(number_++), &acknowledged_));
    }
  }

  /// One node at a time misses some writes.
  void write_under_faults(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (round % 8 == 2) cluster_.isolate(random_.below(cluster_.size()));
      if (round % 8 == 6) cluster_.network().mend_all();
      write_some(3);
      cluster_.world().run_for(static_cast<int64_t>(random_.below(300'000)));
    }
    cluster_.network().mend_all();
    cluster_.world().run_for(6'000'000);
  }

  void lesser_fault() {
    if (random_.one_in(2)) {
      cluster_.network().options.slow_one_in = static_cast<uint32_t>(3 + random_.below(20));
      return;
    }
    const size_t index = random_.below(cluster_.size());
    if (index != victim_ && !dead_ && cluster_[index].is_up()) cluster_[index].kill();
  }
  void mend() {
    cluster_.network().options.slow_one_in = 0;
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (i != victim_ && i != dead_ && !cluster_[i].is_up()) cluster_[i].start();
  }

  /// What must not be begun.
  std::string refusals() {
    SimNode* node = other_ready();
    const auto state = node->state();
    const auto live = [&](HostId host) { return node->node().meta().is_live(host); };
    if (replication::check_leaving(*state, host_, true, live))
      return "a node that is alive may be removed as a dead one";
    size_t dead = 0;
    const auto most_dead = [&](HostId host) {
      return host == node->node().self() || (host != host_ && dead++ > 2);
    };
    if (replication::check_leaving(*state, host_, true, most_dead))
      return "a node may be removed although too few members of its sets are alive";
    return "";
  }

  bool order(HostId host, bool dead) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      SimNode* node = other_ready();
      if (node == nullptr) return false;
      bool ordered = false;
      const auto live = [&](HostId other) { return node->node().meta().is_live(other); };
      if (replication::check_leaving(*node->state(), host, dead, live))
        node->spawn(order_leaving(node, host, &ordered));
      if (cluster_.world().run_until([&] { return ordered; }, 2'000'000)) return true;
    }
    return false;
  }

  bool is_out(HostId host) {
    const auto leader = cluster_.leader();
    if (!leader) return false;
    const auto state = cluster_[*leader].state();
    for (const auto& tablet : state->table(incarnation_)->tablets.tablets())
      if (tablet.stage != TabletStage::kNormal) return false;
    return state->node(host)->state == NodeState::kRemoved;
  }

  std::string check() {
    const auto leader = cluster_.leader();
    if (!leader) return "no leader";
    const auto& group = cluster_[*leader].node().meta_group().driver()->core().configuration();
    if (group.contains(host_)) return "the node is still in the metadata group";
    const auto state = cluster_[*leader].state();
    const size_t members = std::min<size_t>(4, cluster_.size() - (dead_ ? 2 : 1));
    for (const auto& tablet : state->table(incarnation_)->tablets.tablets())
      if (tablet.replicas.size() != members) return "a set does not have its members";
    for (const std::string& key : acknowledged_) {
      const auto& tablet = state->table(incarnation_)->tablets.find(partitioner::position_of(key));
      const size_t copies = copies_of(key, tablet.replicas);
      if (copies < replication::write_quorum(members))
        return fmt::format("{} was acknowledged and is on {} of {} members", key, copies, members);
    }
    if (kind_ == 0) {
      if (!has_left_) return "the node was not told that it is out";
      cluster_[victim_].kill();
    }
    // Back from the dead.
    has_left_ = false;
    cluster_[victim_].start();
    bool served = false;
    cluster_.world().run_until(
        [this, &served] {
          served |= cluster_[victim_].is_ready();
          return has_left_ || cluster_[victim_].fatal().has_value();
        },
        10'000'000);
    if (served) return "a removed node that came back served clients before it was refused";
    if (!has_left_ && !cluster_[victim_].fatal())
      return "a removed node that came back is not refused";
    if (cluster_[victim_].fatal() && cluster_[victim_].fatal()->message.find(
                                         "was removed from the cluster") == std::string::npos)
      return "a removed node hears: " + cluster_[victim_].fatal()->message;
    return "";
  }

  size_t copies_of(const std::string& key, const std::vector<StoreAddress>& members) {
    size_t copies = 0;
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (i == victim_ || !cluster_[i].is_up()) continue;
      for (const StoreAddress& member : members) {
        if (member.host != cluster_[i].node().self()) continue;
        cluster_[i]
            .store(member.store)
            .read(row_read(incarnation_, key, 1), base::kNoDeadline,
                  [&](Result<storage::ReadResult> result) {
                    copies += result && result->live_row_count == 1 ? 1 : 0;
                  });
      }
    }
    return copies;
  }

  base::Random random_;
  SimCluster cluster_;
  uint64_t kind_;  // 0: a live node leaves; 1, 2: a dead one by order; 3: a dead one by itself
  size_t victim_ = 0;
  HostId host_;
  std::optional<size_t> dead_;  // another one
  HostId dead_host_;
  TableIncarnation incarnation_;
  bool has_left_ = false;
  int number_ = 0;
  std::vector<std::string> acknowledged_;
};

}  // namespace

ScenarioResult run_leaving(uint64_t seed) {
  Leaving leaving(seed);
  return {leaving.run(), leaving.trace()};
}

ScenarioResult run_leaving_beside_dead(uint64_t seed) {
  Leaving leaving(seed, Leaving::BesideDead());
  return {leaving.run(), leaving.trace()};
}

}  // namespace tetrad::simulation
