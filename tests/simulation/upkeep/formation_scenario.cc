// SPDX-License-Identifier: Apache-2.0
// There is one cluster, and no node ends (replication/membership/formation.h): whatever is killed
// while it founds or joins, whichever seed is silent, wiped or answered for by another cluster. And
// who has the address of a node is not that node: an acknowledged write is on W members.
#include <set>

#include "partitioner/token.h"
#include "replication/consistency.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

class Forming {
 public:
  explicit Forming(uint64_t seed) : random_(seed * 4'409 + 1), cluster_(seed, 4), kind_(seed % 5) {}

  std::string run() {
    switch (kind_) {
      case 0:
        return killed_while_it_forms();
      case 1:
        return wiped_seed_alone();
      case 2:
        return wiped_seed_then_leader();
      case 3:
        return clusters_meet();
      default:
        return address_of_another();
    }
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  void run_for_up_to(int64_t us) {
    cluster_.world().run_for(static_cast<int64_t>(random_.below(static_cast<uint64_t>(us))));
  }

  std::string ended() {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].fatal()) return fmt::format("node {}: {}", i, cluster_[i].fatal()->message);
    return "";
  }

  /// Of the nodes `first` to `last`.
  std::string one_cluster(size_t first, size_t last) {
    std::set<Uuid> ids;
    for (size_t i = first; i <= last; ++i)
      if (cluster_[i].is_up()) ids.insert(cluster_[i].state()->cluster_id);
    return ids.size() == 1 ? "" : fmt::format("there are {} clusters", ids.size());
  }

  std::string formed_as_one() {
    const bool formed =
        cluster_.world().run_until([this] { return cluster_.is_formed(); }, 40'000'000);
    if (auto wrong = ended(); !wrong.empty()) return wrong;
    if (auto wrong = one_cluster(0, cluster_.size() - 1); !wrong.empty()) return wrong;
    return formed ? "" : "the cluster does not form";
  }

  /// Killed at any event, that is also between any two writes of its disk; powers fail, too.
  std::string killed_while_it_forms() {
    cluster_.network().options.lost_in_million = static_cast<uint32_t>(random_.below(50'000));
    for (size_t i = 0; i < cluster_.size(); ++i) {
      cluster_[i].start();
      if (random_.one_in(3)) run_for_up_to(3'000'000);
    }
    for (uint64_t kills = random_.below(12); kills > 0; --kills) {
      for (uint64_t events = random_.below(1 + random_.below(600)); events > 0; --events)
        cluster_.world().step();
      SimNode& victim = cluster_[random_.below(cluster_.size())];
      random_.one_in(2) ? victim.kill() : victim.power_cut();
      run_for_up_to(random_.one_in(2) ? 1'000 : 2'000'000);
      victim.start();
    }
    return formed_as_one();
  }

  /// With the voters it is to have.
  bool form() {
    if (!cluster_.form()) return false;
    cluster_.world().run_for(5'000'000);
    return true;
  }

  /// The seeds are down, one of them is wiped and started alone: it has no say.
  std::string wiped_seed_alone() {
    if (!form()) return "the cluster does not form";
    const Uuid id = cluster_[0].state()->cluster_id;
    for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].kill();
    const size_t wiped = random_.below(cluster_.size());
    cluster_[wiped].wipe();
    cluster_[wiped].start();
    run_for_up_to(15'000'000);
    if (cluster_[wiped].is_ready()) return "a wiped seed serves alone";
    cluster_.world().run_for(1);
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (i != wiped) cluster_[i].start();
    if (auto wrong = formed_as_one(); !wrong.empty()) return wrong;
    return cluster_[wiped].state()->cluster_id == id ? "" : "the cluster became another";
  }

  std::string wiped_seed_then_leader() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    const TableIncarnation table = cluster_[0].state()->tables.begin()->second->incarnation;
    int acknowledged = 0;
    for (int row = 0; row < 10; ++row) {
      cluster_[1].spawn(
          write_row(&cluster_[1], table, {.key = std::to_string(row)}, &acknowledged));
    }
    cluster_.world().run_for(3'000'000);
    const size_t wiped = random_.below(cluster_.size());
    cluster_[wiped].kill();
    run_for_up_to(6'000'000);
    cluster_[wiped].wipe();
    cluster_[wiped].start();
    if (!cluster_.world().run_until([&] { return cluster_[wiped].is_ready(); }, 20'000'000))
      return "a wiped seed does not join again";
    cluster_.world().run_for(10'000'000);
    const auto leader = cluster_.leader();
    if (!leader) return "no leader";
    cluster_[*leader].kill();
    const auto led = [&] { return cluster_.leader().has_value(); };
    if (!cluster_.world().run_until(led, 30'000'000)) return "no leader after the last one died";
    cluster_.world().run_for(10'000'000);
    if (auto wrong = ended(); !wrong.empty()) return wrong;
    cluster_[*leader].start();
    if (auto wrong = formed_as_one(); !wrong.empty()) return wrong;
    for (int row = 0; row < acknowledged; ++row) {
      RowSeen seen;
      const auto look = [&] {
        if (seen.answered) return true;
        cluster_[wiped].spawn(read_row(&cluster_[wiped], table, std::to_string(row),
                                       ConsistencyLevel::kQuorum, &seen));
        cluster_.world().run_for(100'000);
        return seen.answered;
      };
      for (int attempt = 0; attempt < 100 && !look(); ++attempt) {
      }
      if (seen.value != "value") return "an acknowledged row is not read";
    }
    return "";
  }

  /// Two clusters of one name. A node of the first is given seeds of the second, and one of the
  /// second the address of a dead one of the first.
  std::string clusters_meet() {
    if (!form()) return "the cluster does not form";
    const Uuid first_id = cluster_[0].state()->cluster_id;
    std::vector<replication::Endpoint> others;
    for (size_t i = 4; i < 6; ++i) {
      cluster_.add();
      others.push_back(cluster_[i].endpoint());
    }
    for (size_t i = 4; i < 6; ++i) {
      cluster_[i].options().seeds = others;
      cluster_[i].start();
    }
    const auto serve = [this] { return cluster_[4].is_ready() && cluster_[5].is_ready(); };
    if (!cluster_.world().run_until(serve, 10'000'000)) return "the second does not form";
    if (cluster_[4].state()->cluster_id == first_id) return "the second joined the first";
    // Alone with the other cluster's seeds, and without a leader of its own.
    for (size_t i = 0; i < 4; ++i) cluster_[i].kill();
    const size_t lost = random_.below(4);
    cluster_[lost].options().seeds = others;
    cluster_[lost].start();
    run_for_up_to(20'000'000);
    if (auto wrong = ended(); !wrong.empty()) return "alone, " + wrong;
    const size_t dead = (lost + 1) % 4;
    cluster_[5].kill();
    cluster_[5].options().address = cluster_[dead].options().address;
    cluster_[5].start();
    for (size_t i = 0; i < 4; ++i)
      if (i != lost && i != dead) cluster_[i].start();
    const auto again = [&] {
      for (size_t i = 0; i < 6; ++i)
        if (i != dead && !cluster_[i].is_ready()) return false;
      return cluster_[4].node().membership().is_live(cluster_[5].node().self());
    };
    const bool well = cluster_.world().run_until(again, 40'000'000);
    if (auto wrong = ended(); !wrong.empty()) return wrong;
    if (auto wrong = one_cluster(0, 3); !wrong.empty()) return wrong;
    if (cluster_[lost].state()->cluster_id != first_id) return "the first became another";
    if (auto wrong = one_cluster(4, 5); !wrong.empty()) return wrong;
    if (cluster_[4].state()->nodes.size() != 2 || cluster_[lost].state()->nodes.size() != 4)
      return "a cluster knows nodes of the other";
    return well ? "" : "they do not serve again";
  }

  /// A wiped node comes back at once, and one of the others cannot be reached by who writes: what
  /// the new node answers is not the old one's word.
  std::string address_of_another() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(2'000'000);
    const TableIncarnation table = cluster_[0].state()->tables.begin()->second->incarnation;
    const size_t wiped = random_.below(4), writer = (wiped + 1) % 4, away = (wiped + 2) % 4;
    for (size_t i = 0; i < 4; ++i) cluster_[i].data_options.hints.bytes_per_replica_max = 0;
    cluster_[writer].kill();
    cluster_[writer].start();  // without hints
    if (!cluster_.world().run_until([&] { return cluster_[writer].is_ready(); }, 10'000'000))
      return "a node does not come back";
    cluster_.world().run_for(2'000'000);
    cluster_.cut(writer, away);
    cluster_[wiped].wipe();
    cluster_[wiped].start();
    int acknowledged = 0;
    std::vector<std::pair<std::string, int>> rows;
    for (int row = 0; row < 60; ++row) {
      const int before = acknowledged;
      const std::string key = fmt::format("key{}", row);
      cluster_[writer].spawn(write_row(&cluster_[writer], table, {.key = key}, &acknowledged));
      cluster_.world().run_for(100'000);
      if (acknowledged != before) rows.emplace_back(key, row);
    }
    cluster_.network().mend_all();
    const auto state = cluster_[writer].state();
    for (const auto& [key, row] : rows) {
      const auto& tablet = state->table(table)->tablets.find(partitioner::position_of(key));
      size_t copies = 0;
      for (const StoreAddress& member : tablet.replicas) {
        for (size_t i = 0; i < 4; ++i) {
          if (cluster_[i].node().self() != member.host) continue;
          const auto found = cluster_[i].peek(member.store, row_read(table, key, 1));
          copies += found && found->live_row_count == 1 ? 1 : 0;
        }
      }
      if (copies < replication::write_quorum(tablet.replicas.size()))
        return fmt::format("{} was acknowledged and is on {} of {} members", key, copies,
                           tablet.replicas.size());
    }
    return formed_as_one();
  }

  base::Random random_;
  SimCluster cluster_;
  const uint64_t kind_;
};

}  // namespace

ScenarioResult run_formation(uint64_t seed) {
  Forming forming(seed);
  return {forming.run(), forming.trace()};
}

}  // namespace tetrad::simulation
