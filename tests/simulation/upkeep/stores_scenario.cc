// SPDX-License-Identifier: Apache-2.0
// The disk under one store of a node hangs. The other stores of the node go on as members; those
// who coordinate count the store as absent, at once and with the right error, and when it has hung
// for long its tablets are on other stores, with all that was acknowledged. When it answers again
// it serves. Or its data rots: its tablets leave at once, it is erased as a whole, and gets them
// again, with all that was acknowledged; it gives nobody what is left of it.
#include "partitioner/token.h"
#include "replication/tablets/tablet_move.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using storage::StoreState;

constexpr int64_t kSecondUs = 1'000'000;
constexpr int kKeys = 40;

/// A write, how it ended and how long that took.
struct Tried {
  bool done = false;
  std::optional<ErrorCode> error;
  int64_t took_us = 0;
};
Task<void> try_key(SimNode* node, TableIncarnation incarnation, std::string key, Tried* tried) {
  const base::MonotonicUs began_us = node->reactor().now_us();
  RowWrite write{.key = key, .value = key};
  auto written = co_await try_write(node, incarnation, std::move(write));
  if (!written) tried->error = written.error().code;
  tried->took_us = node->reactor().now_us() - began_us;
  tried->done = true;
}

class HungStore {
 public:
  explicit HungStore(uint64_t seed)
      : random_(seed * 6'007 + 3),
        cluster_(seed, 4 + seed % 3, 1 + seed % 2, 1 + seed % 2),
        has_two_(seed % 2 == 1) {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      cluster_[i].options().moves.store_replace_after_us = 15 * kSecondUs;
      cluster_[i].options().leaving.replace_after_us = 0;
    }
  }

  std::string run() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(10 * kSecondUs);
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    if (auto wrong = write_all(0, false); !wrong.empty()) return "before: " + wrong;
    do {  // any that has tablets
      victim_ = random_.below(cluster_.size());
      bad_ = {cluster_[victim_].node().self(),
              static_cast<uint32_t>(random_.below(has_two_ ? 2 : 1))};
    } while (tablets_on(bad_) == 0);
    StoreFaults& faults = cluster_[victim_].faults(bad_.store);
    faults.hangs = true;
    faults.state = random_.one_in(3) ? StoreState::kFailed : StoreState::kHung;
    if (!cluster_.world().run_until([this] { return all_know(false); }, 5 * kSecondUs))
      return "the others do not hear of it";
    // Another one away: what is left of the sets decides, store by store.
    const size_t away = (victim_ + 1 + random_.below(cluster_.size() - 1)) % cluster_.size();
    cluster_.isolate(away);
    cluster_.world().run_for(6 * kSecondUs);
    if (auto wrong = write_all(away, true); !wrong.empty()) return "one away: " + wrong;
    cluster_.network().mend_all();
    const bool has_place = has_two_ || cluster_.size() > 4;
    if (!cluster_.world().run_until([&] { return tablets_on(bad_) == 0; }, 90 * kSecondUs)) {
      if (has_place) return "its tablets stay on it";
    } else if (!has_place) {
      return "its tablets left though nobody could take them";
    }
    cluster_.world().run_for(5 * kSecondUs);
    if (auto wrong = write_all(cluster_.size(), false); !wrong.empty()) return "vacated: " + wrong;
    if (auto wrong = lost(); !wrong.empty()) return wrong;
    faults.heal();
    if (!cluster_.world().run_until([this] { return all_know(true); }, 5 * kSecondUs))
      return "the others do not hear that it answers again";
    cluster_.world().run_for(20 * kSecondUs);
    if (auto wrong = write_all(cluster_.size(), false); !wrong.empty()) return "after: " + wrong;
    return lost();
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  size_t tablets_on(const StoreAddress& store) {
    size_t count = 0;
    for (const auto& tablet : cluster_[reader()].state()->table(incarnation_)->tablets.tablets()) {
      const auto members = replication::all_members(tablet);
      count += std::ranges::count(members, store);
    }
    return count;
  }
  size_t reader() const { return victim_ == 0 ? 1 : 0; }

  bool all_know(bool serves) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
        if (replication::is_absent(cluster_[i].meta(shard).state_of(bad_)) == serves) return false;
    return true;
  }

  /// Each key through a node that is not `away`. `expects_refusals`: where too few of a set are
  /// left it is said at once; else all succeed.
  std::string write_all(size_t away, bool expects_refusals) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = fmt::format("k{}-{}", round_, i);
      size_t through = random_.below(cluster_.size());
      if (expects_refusals && through == away) through = (through + 1) % cluster_.size();
      SimNode& node = cluster_[through];
      const auto& tablet =
          node.state()->table(incarnation_)->tablets.find(partitioner::position_of(key));
      size_t live = 0;
      for (const StoreAddress& member : tablet.replicas) {
        const bool is_away = expects_refusals && member.host == cluster_[away].node().self();
        live += member != bad_ && !is_away ? 1 : 0;
      }
      const bool enough = live >= replication::write_quorum(tablet.replicas.size());
      const bool moves = tablet.stage != partitioner::TabletStage::kNormal;
      Tried tried;
      node.spawn(try_key(&node, incarnation_, key, &tried));
      if (!cluster_.world().run_until([&] { return tried.done; }, 5 * kSecondUs))
        return "a write without an answer";
      if (!tried.error) acknowledged_.push_back(key);
      if (moves) continue;
      if (enough && tried.error)
        return fmt::format("a write of {} failed with {} of {} live: error {}", key, live,
                           tablet.replicas.size(), static_cast<int>(*tried.error));
      if (!enough && tried.error != ErrorCode::kUnavailable)
        return fmt::format("a write of {} with {} of {} live is not refused at once", key, live,
                           tablet.replicas.size());
    }
    ++round_;
    return "";
  }

  std::string lost() {
    for (const std::string& key : acknowledged_) {
      RowSeen seen;
      SimNode& node = cluster_[reader()];
      for (int attempt = 0; attempt < 3 && !seen.answered; ++attempt) {
        node.spawn(read_row(&node, incarnation_, key, ConsistencyLevel::kQuorum, &seen));
        cluster_.world().run_until([&] { return seen.answered; }, 3 * kSecondUs);
      }
      if (!seen.answered) return "a read of " + key + " without an answer";
      if (seen.value != key) return key + " was acknowledged and is lost";
    }
    return "";
  }

  base::Random random_;
  SimCluster cluster_;
  const bool has_two_;
  size_t victim_ = 0;
  StoreAddress bad_;
  TableIncarnation incarnation_;
  int round_ = 0;
  std::vector<std::string> acknowledged_;
};

class RottenStore {
 public:
  explicit RottenStore(uint64_t seed)
      : random_(seed * 4'003 + 1), cluster_(seed, 2 + seed % 4, 1 + (seed / 4) % 2) {
    // What a member misses it gets from nobody but a change of members.
    for (size_t i = 0; i < cluster_.size(); ++i)
      cluster_[i].data_options.hints.bytes_per_replica_max = 0;
  }

  std::string run() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(10 * kSecondUs);
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    for (int round = 0; round < 12; ++round) {  // each time another one misses some
      const bool one_misses = cluster_.size() > 2 && round % 2 == 1;
      if (one_misses) cluster_.isolate(random_.below(cluster_.size()));
      write_some(8, 2 * kSecondUs);
      cluster_.network().mend_all();
      if (one_misses) cluster_.world().run_for(5 * kSecondUs);
    }
    const size_t victim = random_.below(cluster_.size());
    const auto bad = static_cast<uint32_t>(random_.below(cluster_[victim].options().store_count));
    cluster_[victim].rot(bad);
    const bool reads = random_.one_in(2);  // which repairs
    for (int round = 0; round < 10; ++round) {
      write_some(3, kSecondUs / 2);
      if (!reads) continue;
      // A quorum of two has the one that rots.
      if (auto wrong = lost("while it rots", cluster_.size() == 2); !wrong.empty()) return wrong;
    }
    const auto is_back = [&] {
      return cluster_[victim].stores_renewed() != 0 && cluster_[victim].is_ready() && is_whole();
    };
    if (!cluster_.world().run_until(is_back, 120 * kSecondUs)) return "the store is not renewed";
    if (cluster_[victim].stores_renewed() != 1) return "it was renewed more than once";
    cluster_.world().run_for(3 * kSecondUs);
    if (auto wrong = on_w_members(); !wrong.empty()) return wrong;
    return lost("after it was renewed");
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  const partitioner::TabletMap& tablets() {
    return ready_node(cluster_, 0)->state()->table(incarnation_)->tablets;
  }
  bool is_whole() {
    for (const auto& tablet : tablets().tablets()) {
      if (tablet.stage != partitioner::TabletStage::kNormal ||
          tablet.replicas.size() != std::min<size_t>(4, cluster_.size()))
        return false;
    }
    return true;
  }

  void write_some(int count, int64_t for_us) {
    std::vector<std::pair<std::string, std::unique_ptr<Tried>>> writes;
    for (int i = 0; i < count; ++i) {
      SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
      if (node == nullptr) return;
      writes.emplace_back(fmt::format("key{}", number_++), std::make_unique<Tried>());
      node->spawn(try_key(node, incarnation_, writes.back().first, writes.back().second.get()));
    }
    const auto all_done = [&] {
      return std::ranges::all_of(writes, [](const auto& write) { return write.second->done; });
    };
    cluster_.world().run_until(all_done, 5 * kSecondUs);
    for (const auto& [key, tried] : writes)
      if (tried->done && !tried->error) acknowledged_.push_back(key);
    unfinished_.insert(unfinished_.end(), std::make_move_iterator(writes.begin()),
                       std::make_move_iterator(writes.end()));
    cluster_.world().run_for(for_us);
  }

  /// Reads may fail while sets change; what they answer is right.
  std::string lost(const char* when, bool may_fail = false) {
    size_t unanswered = 0;
    for (const std::string& key : acknowledged_) {
      RowSeen seen;
      for (int attempt = 0; attempt < (may_fail ? 1 : 4) && !seen.answered; ++attempt) {
        SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
        const auto answer = std::make_shared<RowSeen>();
        kept_.push_back(answer);
        node->spawn(read_row(node, incarnation_, key, ConsistencyLevel::kQuorum, answer.get()));
        const int64_t wait_us = may_fail ? kSecondUs / 20 : 3 * kSecondUs;
        cluster_.world().run_until([&] { return answer->answered; }, wait_us);
        seen = *answer;
      }
      unanswered += seen.answered ? 0 : 1;
      if (seen.answered && seen.value != key) return key + " is lost " + when;
    }
    if (unanswered != 0 && !may_fail)
      return fmt::format("{} reads without an answer {}", unanswered, when);
    return "";
  }

  std::string on_w_members() {
    for (const std::string& key : acknowledged_) {
      const auto& set = tablets().find(partitioner::position_of(key)).replicas;
      size_t copies = 0;
      for (const StoreAddress& member : set) {
        for (size_t i = 0; i < cluster_.size(); ++i) {
          if (cluster_[i].node().self() != member.host) continue;
          const auto read = cluster_[i].peek(member.store, row_read(incarnation_, key, 1));
          copies += read && read->live_row_count == 1 ? 1 : 0;
        }
      }
      if (copies < replication::write_quorum(set.size()))
        return fmt::format("{} was acknowledged and is on {} of {} members", key, copies,
                           set.size());
    }
    return "";
  }

  base::Random random_;
  std::vector<std::pair<std::string, std::unique_ptr<Tried>>> unfinished_;  // of tasks that may run
  std::vector<std::shared_ptr<RowSeen>> kept_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int number_ = 0;
  std::vector<std::string> acknowledged_;
};

}  // namespace

ScenarioResult run_hung_store(uint64_t seed) {
  HungStore hung(seed);
  return {hung.run(), hung.trace()};
}

ScenarioResult run_rotten_store(uint64_t seed) {
  RottenStore rotten(seed);
  return {rotten.run(), rotten.trace()};
}

}  // namespace tetrad::simulation
