// SPDX-License-Identifier: Apache-2.0
// Nodes join a cluster that holds data, or one dies for good in a cluster of racks, while rows are
// written. Afterwards the nodes hold equal parts, with hardly more moved than they lacked and no
// tablet moved for nothing; no set has two members on a node or more in a rack than its share;
// nothing moves any more while the sizes stay; and every acknowledged write is on W members.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "partitioner/balance_policy.h"
#include "partitioner/token.h"
#include "replication/tablets/tablet_move.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::Tablet;
using partitioner::TabletStage;
using replication::NodeState;

constexpr int64_t kSecondUs = 1'000'000;
constexpr uint64_t kTabletBytes = 4'000;  // what an empty one weighs
/// Sizes are measured again, and rows written, while a plan is carried out.
constexpr double kBytesMost = 1.1;
constexpr double kRatioMost = 1.1;

Task<void> write_key(SimNode* node, TableIncarnation incarnation, std::string key, size_t bytes,
                     std::vector<std::string>* acknowledged) {
  RowWrite write{.key = key, .value = std::string(bytes, 'v'), .level = ConsistencyLevel::kQuorum};
  auto written = co_await try_write(node, incarnation, std::move(write));
  if (written) acknowledged->push_back(key);
}

/// Every node proposes it: one of them leads.
Task<void> propose_setting(SimNode* node, const char* name, uint64_t value) {
  const base::Deadline deadline{node->reactor().now_us() + kSecondUs};
  replication::MetaCommandBody body(replication::SetSetting{name, std::to_string(value)});
  auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
  (void)proposed;
}

/// What both scenarios share: the cluster, the clients, and the judgment of sets and rows.
class Balancing {
 public:
  Balancing(uint64_t seed, size_t nodes) : random_(seed * 9173 + 11), cluster_(seed, nodes) {
    for (size_t i = 0; i < nodes; ++i) set_up(cluster_[i]);
  }
  uint64_t trace() { return trace_of(cluster_); }

 protected:
  void set_up(SimNode& node) {
    node.options().moves.balance_period_us = kSecondUs / 5;
    node.options().moves.balance.tablet_bytes = kTabletBytes;
  }

  std::string form_with_tablets(uint32_t count) {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    replication::SchemaChange change;
    change.new_tables.push_back(table_t());
    change.new_tables.back().initial_tablets = count;
    bool created = false;
    cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &created));
    if (!cluster_.world().run_until([&] { return created; }, 10 * kSecondUs))
      return "the table is not made";
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    return "";
  }

  void write_some(int count, size_t bytes_most) {
    for (int i = 0; i < count; ++i) {
      SimNode& node = cluster_[random_.below(cluster_.size())];
      if (!node.is_ready()) continue;
      node.spawn(write_key(&node, incarnation_, "key" + std::to_string(number_++),
                           1 + random_.below(bytes_most), &acknowledged_));
    }
  }

  const std::vector<Tablet>& tablets() {
    const auto leader = cluster_.leader();
    if (leader) state_ = cluster_[*leader].state();
    if (!state_) state_ = cluster_[0].state();
    return state_->table(incarnation_)->tablets.tablets();
  }
  bool is_quiet() {
    return cluster_.leader() && std::ranges::all_of(tablets(), [](const Tablet& t) {
             return t.stage == TabletStage::kNormal;
           });
  }
  std::map<TabletId, uint64_t> epochs() {
    std::map<TabletId, uint64_t> found;
    for (const Tablet& tablet : tablets()) found[tablet.id] = tablet.epoch.value;
    return found;
  }

  /// Nothing changes for half a minute after `stays_so` holds, which must be within `at_most_us`.
  std::string await_rest(const std::function<bool()>& stays_so, int64_t at_most_us) {
    constexpr int64_t kLookUs = 50'000;
    bool is_so = false;
    for (int64_t waited_us = 0; !is_so && waited_us < at_most_us; waited_us += kLookUs) {
      cluster_.world().run_for(kLookUs);
      is_so = stays_so() && is_quiet();
    }
    if (!is_so) return "it is not so in time";
    cluster_.world().run_for(15 * kSecondUs);
    const auto before = epochs();
    cluster_.world().run_for(30 * kSecondUs);
    if (!is_quiet() || epochs() != before) return "tablets move although nothing has changed";
    return "";
  }

  std::vector<partitioner::RingNode> ring_nodes() {
    tablets();
    std::vector<partitioner::RingNode> nodes;
    for (const auto& [host, node] : state_->nodes)
      if (node.state == NodeState::kNormal)
        nodes.push_back({host, node.data_center, node.rack, node.tokens, node.store_count});
    return nodes;
  }

  std::string check_sets() {
    const auto nodes = ring_nodes();
    for (const Tablet& tablet : tablets()) {
      std::set<HostId> hosts;
      for (const StoreAddress& member : tablet.replicas) hosts.insert(member.host);
      if (tablet.replicas.size() != 4 || hosts.size() != 4) return "a set does not have four nodes";
      if (partitioner::rack_excess(nodes, tablet.replicas, nodes.front().data_center) != 0)
        return "a set has more members in a rack than its share";
    }
    return "";
  }

  std::string check_rows() {
    for (const std::string& key : acknowledged_) {
      const Tablet& tablet =
          state_->table(incarnation_)->tablets.find(partitioner::position_of(key));
      const size_t copies = copies_of(key, tablet.replicas);
      if (copies < replication::write_quorum(size_t{4}))
        return fmt::format("{} was acknowledged and is on {} of 4 members", key, copies);
    }
    return acknowledged_.size() < 50 ? "hardly anything was acknowledged" : "";
  }

  size_t copies_of(const std::string& key, const std::vector<StoreAddress>& members) {
    size_t copies = 0;
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!cluster_[i].is_up()) continue;
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
  TableIncarnation incarnation_;
  replication::MetaSnapshot state_;
  int number_ = 0;
  std::vector<std::string> acknowledged_;
};

class Joining : public Balancing {
 public:
  explicit Joining(uint64_t seed)
      : Balancing(seed, 4), kind_(seed % 4), is_ordered_(seed % 8 == 4), joins_(1 + seed / 4 % 3) {}

  std::string run() {
    if (const auto wrong = form_with_tablets(20 + static_cast<uint32_t>(random_.below(20)));
        !wrong.empty())
      return wrong;
    for (int i = 0; i < 30; ++i) {
      write_some(10, 4'000);
      cluster_.world().run_for(100'000);
    }
    cluster_.world().run_for(5 * kSecondUs);
    for (const Tablet& tablet : tablets())
      if (target_of(tablet).size() != 4) return "a set does not have four members";
    watch();
    if (is_ordered_) set(replication::kSettingBalanceStartPercent, replication::kBalanceOffPercent);
    for (uint64_t i = 0; i < joins_; ++i) {
      SimNode& node = cluster_.add();
      set_up(node);
      node.start();
    }
    if (!cluster_.world().run_until([this] { return ring_nodes().size() == 4 + joins_; },
                                    20 * kSecondUs))
      return "the nodes do not join";
    least_ = plan_least();
    for (int step = 0; step < 200; ++step) {
      fault(step);
      write_some(1, 100);
      watch();
      cluster_.world().run_for(50'000 + static_cast<int64_t>(random_.below(200'000)));
    }
    mend();
    if (is_ordered_) {
      if (moved_ != 0) return "tablets move although balance is off";
      set(replication::kSettingBalanceOrders, 1);
    }
    const auto is_level = [this] {
      watch();
      return ratio() <= kRatioMost;
    };
    if (const auto wrong = await_rest(is_level, 300 * kSecondUs); !wrong.empty())
      return fmt::format("{}: the fullest node holds {:.2f} of the mean", wrong, ratio());
    if (ratio() > kRatioMost) return fmt::format("the fullest holds {:.2f} of the mean", ratio());
    if (const auto wrong = check_sets(); !wrong.empty()) return wrong;
    if (const auto wrong = check_moves(); !wrong.empty()) return wrong;
    return check_rows();
  }

 private:
  void set(const char* name, uint64_t value) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      cluster_[i].spawn(propose_setting(&cluster_[i], name, value));
    cluster_.world().run_for(kSecondUs);
  }
  /// Tablets of all nodes as they are held when what is under way has ended.
  std::vector<partitioner::BalanceTablet> weighed() {
    std::vector<partitioner::BalanceTablet> all;
    for (const Tablet& tablet : tablets())
      all.push_back({target_of(tablet), bytes_of(tablet.id), true});
    return all;
  }
  static const std::vector<StoreAddress>& target_of(const Tablet& tablet) {
    return tablet.stage == TabletStage::kNormal ? tablet.replicas : tablet.new_replicas;
  }
  uint64_t bytes_of(TabletId id) {
    if (const auto leader = cluster_.leader())
      sizes_[id] = cluster_[*leader].node().meta().tablet_bytes(id);
    return sizes_[id];
  }
  partitioner::BalanceOptions options() const {
    partitioner::BalanceOptions options;
    options.tablet_bytes = kTabletBytes;
    return options;
  }
  uint64_t plan_least() {
    const auto all = weighed();
    return partitioner::least_balance_bytes(ring_nodes(), all, options());
  }
  double ratio() {
    std::map<HostId, double> held;
    double total = 0;
    for (const auto& node : ring_nodes()) held[node.host] = 0;
    for (const auto& tablet : weighed()) {
      const auto bytes = static_cast<double>(tablet.bytes + kTabletBytes);
      for (const StoreAddress& member : tablet.members) held[member.host] += bytes;
      total += bytes * static_cast<double>(tablet.members.size());
    }
    double most = 0;
    for (const auto& [host, bytes] : held) most = std::max(most, bytes);
    return most * static_cast<double>(held.size()) / total;
  }

  /// Counts what has begun to move since the last look.
  void watch() {
    for (const Tablet& tablet : tablets()) {
      const auto& members = target_of(tablet);
      auto& last = seen_[tablet.id];
      for (const StoreAddress& member : members) {
        if (last.empty() || std::ranges::find(last, member) != last.end()) continue;
        ++gained_[{tablet.id, member}];
        moved_ += kTabletBytes + bytes_of(tablet.id);
      }
      last = members;
    }
  }

  void fault(int step) {
    const auto leader = cluster_.leader();
    if (kind_ == 1 && step % 60 == 30 && leader) cluster_[*leader].kill();
    if (kind_ == 2 && step == 20) cluster_[random_.below(4)].kill();
    if (kind_ == 3 && step % 50 == 20) cluster_.isolate(random_.below(cluster_.size()));
    if (step % 50 == 45) mend();
  }
  void mend() {
    cluster_.network().mend_all();
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (!cluster_[i].is_up()) cluster_[i].start();
  }

  std::string check_moves() {
    for (const auto& [what, times] : gained_)
      if (times > 1 && kind_ == 0) return "a tablet was moved to a store twice";
    // What was begun and given up is begun again.
    if (kind_ == 0 &&
        static_cast<double>(moved_) > kBytesMost * static_cast<double>(least_) + 2 * kTabletBytes)
      return fmt::format("{} bytes were moved where {} were lacking", moved_, least_);
    return "";
  }

  const uint64_t kind_;    // 0: nothing fails; 1: leaders end; 2: a node ends; 3: nodes are cut off
  const bool is_ordered_;  // it is off, until an operator asks for it
  const uint64_t joins_;
  uint64_t least_ = 0, moved_ = 0;
  std::map<TabletId, std::vector<StoreAddress>> seen_;
  std::map<TabletId, uint64_t> sizes_;  // as the last leader knew them
  std::map<std::pair<TabletId, StoreAddress>, int> gained_;
};

/// A node dies for good, and what it held comes back in its rack.
class Racks : public Balancing {
 public:
  explicit Racks(uint64_t seed) : Balancing(seed, 6 + seed % 2 * 2) {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      // Two racks of three, two members of a set in each; or four racks of two, one in each.
      cluster_[i].options().rack = "rack" + std::to_string(i % (cluster_.size() == 6 ? 2 : 4));
      cluster_[i].options().leaving.replace_after_us = 8 * kSecondUs;
      cluster_[i].options().moves.balance_period_us = seed % 3 == 0 ? kSecondUs / 5 : 0;
    }
  }

  std::string run() {
    if (const auto wrong = form_with_tablets(16); !wrong.empty()) return wrong;
    const auto spread = [this] { return check_sets().empty(); };
    if (const auto wrong = await_rest(spread, 60 * kSecondUs); !wrong.empty())
      return wrong + " at first: " + check_sets();
    const size_t victim = random_.below(cluster_.size());
    const HostId host = cluster_[victim].node().self();
    for (int i = 0; i < 20; ++i) {
      write_some(5, 100);
      cluster_.world().run_for(100'000);
    }
    cluster_[victim].kill();
    for (int step = 0; step < 60; ++step) {
      write_some(2, 100);
      cluster_.world().run_for(200'000);
    }
    const auto is_replaced = [&] {
      tablets();
      return state_->node(host)->state == NodeState::kRemoved && check_sets().empty();
    };
    if (const auto wrong = await_rest(is_replaced, 120 * kSecondUs); !wrong.empty())
      return wrong + " after a node died: " + check_sets();
    return check_rows();
  }
};

}  // namespace

ScenarioResult run_balance(uint64_t seed) {
  Joining joining(seed);
  return {joining.run(), joining.trace()};
}

ScenarioResult run_racks(uint64_t seed) {
  Racks racks(seed);
  return {racks.run(), racks.trace()};
}

}  // namespace tetrad::simulation
