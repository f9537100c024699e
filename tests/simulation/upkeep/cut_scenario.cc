// SPDX-License-Identifier: Apache-2.0
// A tablet is split, and one half moves to other members while the other stays. A coordinator that
// has heard of nothing reads a range over both: it must not get the moving half from members that
// have left it, or that a quorum of the old set is none of any more.
#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 6;
constexpr size_t kKeys = 40;

/// All in the range.
std::vector<std::string> keys_in(const RingRange& range) {
  std::vector<std::string> keys;
  for (int i = 0; keys.size() < kKeys; ++i) {
    std::string key = "key" + std::to_string(i);
    const RingPosition position = partitioner::position_of(key);
    if (range.start < position && position <= range.end) keys.push_back(std::move(key));
  }
  return keys;
}

Task<void> propose(SimNode* node, replication::MetaCommandBody body, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto result = co_await node->node().meta_group().propose(std::move(body), deadline);
  *done = result.has_value();
}

struct Scan {
  bool ended = false, answered = false;
  std::vector<Bytes> keys;
};

Task<void> scan(SimNode* node, TableIncarnation incarnation, RingRange range, Scan* seen) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.is_range = true;
  command.range = range;
  command.now_s = node->reactor().wall_time_us() / 1'000'000;
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 1'000'000};
  auto read = co_await node->data().coordinator().read(std::move(command), options);
  seen->ended = true;
  seen->answered = read.has_value() && read->exhausted;
  if (!read) co_return;
  for (const auto& partition : read->partitions) seen->keys.emplace_back(partition.partition_key);
}

class Cut {
 public:
  explicit Cut(uint64_t seed) : random_(seed * 6143 + 9), cluster_(seed, kNodes) {}

  std::string run() {
    for (size_t i = 0; i < kNodes; ++i) {
      cluster_[i].data_options.repair.period_us = 3'600'000'000;
      cluster_[i].options().moves.balance_period_us = 0;  // what changes here is said below
    }
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    const auto grown = [&] {
      const partitioner::Tablet& now = tablets(0).front();
      return now.replicas.size() == 4 && now.stage == partitioner::TabletStage::kNormal;
    };
    if (!cluster_.world().run_until(grown, 60'000'000)) return "not a tablet of four";
    cluster_.world().run_for(2'000'000);
    const partitioner::Tablet whole = tablets(0).front();
    const std::vector<std::string> keys = keys_in(whole.range);
    const auto leader = cluster_.leader();
    if (!leader) return "";
    // One of the members knows nothing of what follows.
    for (const StoreAddress& member : whole.replicas)
      if (index_of(member.host) != *leader) deaf_ = index_of(member.host);
    cluster_.network().set_deaf(cluster_[deaf_].endpoint(), true);
    via_ = *leader;

    const RingPosition at = partitioner::position_of(keys[kKeys / 2]);
    if (!order(replication::SplitTablet{incarnation_, whole.id, whole.range, at}))
      return "the tablet is not split";
    std::vector<StoreAddress> members = whole.replicas;
    std::vector<size_t> others;
    for (const StoreAddress& member : whole.replicas) {
      const size_t index = index_of(member.host);
      if (index != deaf_ && index != via_) others.push_back(index);
    }
    for (const size_t leaves : {deaf_, others[random_.below(others.size())]})
      if (auto wrong = move_from(members, leaves); !wrong.empty()) return wrong;
    // A member of both sets misses what is written now.
    for (const StoreAddress& member : members) {
      if (!is_member(whole.replicas, member.host)) continue;
      cluster_[index_of(member.host)].faults(member.store).refusal =
          Error(ErrorCode::kIo, "the disk is full");
      break;
    }
    std::vector<std::string> written;
    for (const std::string& key : keys) {
      int acknowledged = 0;
      SimNode& node = cluster_[via_];
      node.spawn(write_row(&node, incarnation_, {.key = key}, &acknowledged));
      cluster_.world().run_until([&] { return acknowledged > 0; }, 2'100'000);
      if (acknowledged > 0) written.push_back(key);
    }
    if (written.size() < kKeys / 4) return "too few writes succeed";
    if (auto wrong = read_stale(whole.range, written); !wrong.empty()) return wrong;
    SimNode& stale = cluster_[deaf_];
    // When it hears again it reads all.
    for (size_t i = 0; i < kNodes; ++i) cluster_[i].faults(0).heal();
    cluster_.network().hear_all();
    cluster_.world().run_for(3'000'000);
    Scan later;
    stale.spawn(scan(&stale, incarnation_, whole.range, &later));
    cluster_.world().run_until([&] { return later.ended; }, 5'000'000);
    return later.answered ? "" : "a scan fails after all have heard of the change";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  /// By the node that has heard of nothing: an error or all that was acknowledged, scanned and row
  /// by row.
  std::string read_stale(const RingRange& range, const std::vector<std::string>& written) {
    SimNode& stale = cluster_[deaf_];
    for (int i = 0; i < 5; ++i) {
      Scan seen;
      stale.spawn(scan(&stale, incarnation_, range, &seen));
      if (!cluster_.world().run_until([&] { return seen.ended; }, 5'000'000))
        return "a scan does not end";
      if (!seen.answered) continue;
      for (const std::string& key : written)
        if (std::ranges::find(seen.keys, key) == seen.keys.end())
          return key + " was acknowledged, and a scan at QUORUM does not see it";
    }
    std::vector<RowSeen> rows(written.size());
    for (size_t i = 0; i < written.size(); ++i)
      stale.spawn(read_row(&stale, incarnation_, written[i], ConsistencyLevel::kQuorum, &rows[i]));
    cluster_.world().run_for(3'000'000);
    for (size_t i = 0; i < written.size(); ++i)
      if (rows[i].answered && !rows[i].value)
        return written[i] + " was acknowledged, and a read at QUORUM does not see it";
    return "";
  }
  const std::vector<partitioner::Tablet>& tablets(size_t node) {
    state_ = cluster_[node].state();
    return state_->table(incarnation_)->tablets.tablets();
  }
  size_t index_of(HostId host) {
    for (size_t i = 0; i < kNodes; ++i)
      if (cluster_[i].node().self() == host) return i;
    return kNodes;
  }
  static bool is_member(const std::vector<StoreAddress>& set, HostId host) {
    return std::ranges::any_of(set, [&](const auto& member) { return member.host == host; });
  }
  bool order(replication::MetaCommandBody body) {
    bool done = false;
    cluster_[via_].spawn(propose(&cluster_[via_], std::move(body), &done));
    return cluster_.world().run_until([&] { return done; }, 10'000'000);
  }
  /// The first half leaves a member for a node that has none of it.
  std::string move_from(std::vector<StoreAddress>& members, size_t node) {
    const auto leaves = std::ranges::find_if(
        members, [&](const StoreAddress& member) { return index_of(member.host) == node; });
    for (size_t i = 0; i < kNodes; ++i) {
      const HostId host = cluster_[i].node().self();
      if (i == deaf_ || is_member(tablets(via_).front().replicas, host) || is_member(members, host))
        continue;
      *leaves = {host, 0};
      break;
    }
    const partitioner::Tablet half = tablets(via_).front();
    if (!order(replication::ChangeTabletStage{incarnation_, half.id, half.epoch,
                                              partitioner::TabletStage::kWriteBoth, members}))
      return "no change of members begins";
    const auto moved = [&] {
      const partitioner::Tablet& now = tablets(via_).front();
      return now.stage == partitioner::TabletStage::kNormal && now.replicas == members;
    };
    return cluster_.world().run_until(moved, 60'000'000) ? "" : "the half does not move";
  }

  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  replication::MetaSnapshot state_;
  size_t via_ = 0, deaf_ = kNodes;
};

}  // namespace

ScenarioResult run_cut(uint64_t seed) {
  Cut scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
