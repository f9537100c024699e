// SPDX-License-Identifier: Apache-2.0
// Two or three data centres, cut off from each other for seconds, with nodes that die and come back
// and a data centre that joins while rows are read and written. A read finds what was acknowledged
// before it began, as far as the two levels meet; LOCAL_QUORUM is served in each data centre while
// its own nodes live, whatever the others do; and in the end all members have everything (rules 1,
// 8, 9, 10).
#include <algorithm>
#include <set>
#include <vector>

#include "replication/consistency.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr size_t kKeys = 8;
constexpr int kSteps = 600;
constexpr int64_t kStepUs = 50'000;
/// So long after the last fault in its own data centre a request at LOCAL_QUORUM must succeed.
constexpr int64_t kSettledUs = 5 * kSecondUs;

struct Acknowledged {
  int64_t number = 0;
  size_t center = 0;
  ConsistencyLevel level = ConsistencyLevel::kQuorum;
};

/// Whether each quorum of the read meets each of the write.
bool meet(const Acknowledged& write, size_t center, ConsistencyLevel level) {
  const bool is_here = write.center == center;
  switch (write.level) {
    case ConsistencyLevel::kLocalQuorum:
    case ConsistencyLevel::kOne:
      return is_here || level == ConsistencyLevel::kEachQuorum;
    case ConsistencyLevel::kQuorum:
      return is_here || level != ConsistencyLevel::kLocalQuorum;
    default:
      return true;  // EACH_QUORUM
  }
}

/// One row. One write of it at a time, each with the next number as its value and its timestamp.
struct Key {
  std::string name;
  bool is_written = false;
  int64_t last = 0;
  std::vector<Acknowledged> acknowledged;
};

struct Outcome {
  uint64_t writes = 0, reads = 0;
  std::string wrong;
};

class Centers {
 public:
  explicit Centers(uint64_t seed)
      : random_(seed * 7919 + 5),
        sizes_(sizes_of(seed)),
        joins_(seed % 3 == 0),
        kills_(seed % 2 == 0),
        cluster_(seed) {
    for (size_t center = 0; center < sizes_.size(); ++center)
      if (center == 0 || !joins_) add(center);
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back({"key" + std::to_string(i), false, 0, {}});
  }

  std::string run() {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    bool created = false;
    cluster_[0].spawn(create_table(&cluster_[0], 0, &created));
    if (!cluster_.world().run_until([&] { return created; }, 10 * kSecondUs))
      return "the table is not made";
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    if (!cluster_.world().run_until([this] { return is_grown(); }, 30 * kSecondUs))
      return "the set does not get all members";
    cluster_.world().run_for(kSettledUs);  // all have heard of each other
    for (int step = 0; step < kSteps; ++step) {
      if (joins_ && step == kSteps / 8) join();
      if (step % 20 == 0) fault();
      request();
      cluster_.world().run_for(kStepUs);
      if (!outcome_.wrong.empty()) return outcome_.wrong;
    }
    cluster_.network().mend_all();
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (!cluster_[i].is_up()) cluster_[i].start();
    if (!cluster_.world().run_until([this] { return is_grown(); }, 60 * kSecondUs))
      return "the set does not get members in each data center";
    cluster_.world().run_for(30 * kSecondUs);
    return check();
  }

  uint64_t trace() { return trace_of(cluster_); }

 private:
  static std::vector<size_t> sizes_of(uint64_t seed) {
    switch (seed / 3 % 4) {
      case 0:
        return {4, 4};
      case 1:
        return {3, 3};
      case 2:
        return {4, 2};
      default:
        return {3, 3, 3};
    }
  }
  void add(size_t center) {
    for (size_t i = 0; i < sizes_[center]; ++i) {
      SimNode& node = cluster_.add();
      node.options().data_center = "dc" + std::to_string(center + 1);
      purge_often(node);
      center_of_.push_back(center);
    }
  }
  void join() {
    const size_t before = cluster_.size();
    for (size_t center = 1; center < sizes_.size(); ++center) add(center);
    for (size_t i = before; i < cluster_.size(); ++i) cluster_[i].start();
  }

  void fault() {
    const int64_t now_us = cluster_.world().now_us();
    switch (random_.below(5)) {
      case 0: {
        cluster_.network().mend_all();
        const size_t cut = random_.below(sizes_.size());
        for (size_t i = 0; i < cluster_.size(); ++i)
          for (size_t j = 0; j < cluster_.size(); ++j)
            if ((center_of_[i] == cut) != (center_of_[j] == cut))
              cluster_.network().cut(cluster_[i].endpoint(), cluster_[j].endpoint());
        return;
      }
      case 1:
        return cluster_.network().mend_all();
      case 2: {
        const size_t victim = random_.below(cluster_.size());
        if (!kills_ || down_.size() == 2 || !cluster_[victim].is_up()) return;
        cluster_[victim].kill();
        down_.push_back(victim);
        troubled_us_[center_of_[victim]] = now_us;
        return;
      }
      default:
        if (down_.empty()) return;
        cluster_[down_.front()].start();
        troubled_us_[center_of_[down_.front()]] = now_us;
        down_.erase(down_.begin());
    }
  }

  /// A node that comes back while it is cut off from the metadata's leader does not.
  bool knows_table(SimNode& node) {
    return node.is_ready() && node.state()->table(incarnation_) != nullptr;
  }
  /// All of its nodes are up since a while, and members of the set.
  bool must_serve(size_t center) {
    const auto trouble = troubled_us_.find(center);
    if (trouble != troubled_us_.end() && cluster_.world().now_us() - trouble->second < kSettledUs)
      return false;
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (center_of_[i] == center && !knows_table(cluster_[i])) return false;
    return !joins_;
  }

  void request() {
    for (int i = 0; i < 3; ++i) {
      const size_t at = random_.below(cluster_.size());
      SimNode& node = cluster_[at];
      Key& key = keys_[random_.below(kKeys)];
      const bool writes = random_.one_in(2);
      const ConsistencyLevel level = level_of(random_.below(6));
      if (!knows_table(node) || (writes && key.is_written)) continue;
      if (writes) {
        key.is_written = true;
        node.spawn(write(this, &node, center_of_[at], &key, level));
      } else {
        node.spawn(read(this, &node, center_of_[at], &key, level));
      }
    }
  }
  static ConsistencyLevel level_of(uint64_t drawn) {
    switch (drawn) {
      case 0:
        return ConsistencyLevel::kQuorum;
      case 1:
        return ConsistencyLevel::kEachQuorum;
      case 2:
        return ConsistencyLevel::kOne;
      default:
        return ConsistencyLevel::kLocalQuorum;
    }
  }

  static Task<void> write(Centers* self, SimNode* node, size_t center, Key* key,
                          ConsistencyLevel level) {
    const int64_t number = ++key->last;
    std::vector<storage::Mutation> mutations;
    mutations.push_back(
        row_change(self->incarnation_, key->name, number, std::to_string(number), 0));
    replication::WriteOptions options;
    options.level = level;
    options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
    const bool must_succeed = self->must_serve(center);
    auto written = co_await node->data().coordinator().write(std::move(mutations), options);
    key->is_written = false;
    if (written) {
      ++self->outcome_.writes;
      key->acknowledged.push_back({number, center, level});
    } else if (must_succeed && self->must_serve(center) && is_local(level)) {
      self->outcome_.wrong =
          fmt::format("a write at {} failed in a data center whose nodes live: {}",
                      base::name_of(level), written.error().message);
    }
  }

  static Task<void> read(Centers* self, SimNode* node, size_t center, Key* key,
                         ConsistencyLevel level) {
    int64_t floor = 0;
    for (const Acknowledged& write : key->acknowledged)
      if (level != ConsistencyLevel::kOne && meet(write, center, level))
        floor = std::max(floor, write.number);
    const bool must_succeed = self->must_serve(center);
    RowSeen row;
    co_await read_row(node, self->incarnation_, key->name, level, &row);
    if (!row.answered) {
      if (must_succeed && self->must_serve(center) && is_local(level))
        self->outcome_.wrong = fmt::format("a read at {} failed in a data center whose nodes live",
                                           base::name_of(level));
      co_return;
    }
    ++self->outcome_.reads;
    const int64_t number = row.value ? std::stoll(*row.value) : 0;
    if (number < floor)
      self->outcome_.wrong = fmt::format(
          "a read of {} at {} in dc{} saw {} although {} was "
          "acknowledged before it",
          key->name, base::name_of(level), center + 1, number, floor);
  }
  static bool is_local(ConsistencyLevel level) {
    return level == ConsistencyLevel::kLocalQuorum || level == ConsistencyLevel::kOne;
  }

  bool is_grown() {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!knows_table(cluster_[i])) return false;
      const auto state = cluster_[i].state();
      for (const auto& tablet : state->table(incarnation_)->tablets.tablets())
        if (tablet.replicas.size() != cluster_.size() ||
            tablet.stage != partitioner::TabletStage::kNormal)
          return false;
    }
    return true;
  }

  /// Each member by itself has the newest of what was acknowledged.
  std::string check() {
    if (outcome_.writes < 50 || outcome_.reads < 50) return "hardly anything was answered";
    const auto state = cluster_[0].state();
    for (const Key& key : keys_) {
      int64_t floor = 0;
      for (const Acknowledged& write : key.acknowledged) floor = std::max(floor, write.number);
      for (size_t i = 0; i < cluster_.size(); ++i) {
        const auto found = cluster_[i].peek(0, row_read(incarnation_, key.name, 1));
        if (!found) return "a store cannot be read: " + found.error().message;
        const auto value = value_of(*found);
        if ((value ? std::stoll(*value) : 0) < floor)
          return fmt::format("node {} has {} of {}, and {} was acknowledged", i + 1,
                             value.value_or("nothing"), key.name, floor);
      }
    }
    return "";
  }

  base::Random random_;
  const std::vector<size_t> sizes_;
  const bool joins_;  // all data centres but the first, later
  const bool kills_;
  SimCluster cluster_;
  std::vector<size_t> center_of_;  // of each node
  std::map<size_t, int64_t> troubled_us_;
  std::vector<size_t> down_;
  TableIncarnation incarnation_;
  std::vector<Key> keys_;
  Outcome outcome_;
};

}  // namespace

ScenarioResult run_centers(uint64_t seed) {
  Centers centers(seed);
  ScenarioResult result;
  result.wrong = centers.run();
  result.trace = centers.trace();
  return result;
}

}  // namespace tetrad::simulation
