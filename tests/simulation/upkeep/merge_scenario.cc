// SPDX-License-Identifier: Apache-2.0
// Tablets are merged while they are written and read: cold ones by themselves, down to as many as the
// table keeps, and not for long where a merge was undone; by order, also such as are on different nodes,
// while nodes die. What was acknowledged is there, at no place of the ring an epoch falls, and no deletion
// is forgotten since the halves were repaired at different times.
#include <algorithm>
#include <map>

#include "partitioner/split_policy.h"
#include "partitioner/token.h"
#include "replication/changes/change_log.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::Tablet;
using replication::TableInfo;

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kAgeUs = 5 * kSecondUs;
constexpr uint32_t kTabletsAtFirst = 6;
constexpr size_t kKeys = 60;
constexpr const char* kStaleKey = "stale";

enum class Kind { kCold, kUndone, kLate, kUnseen, kApart, kKilled };
constexpr uint64_t kKinds = 6;

Task<void> propose(SimNode* node, replication::MetaCommandBody body, std::optional<bool>* done) {
  const base::Deadline deadline{node->reactor().now_us() + 5 * kSecondUs};
  auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
  *done = proposed.has_value();
}

bool same_set(std::vector<StoreAddress> a, std::vector<StoreAddress> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

/// What a step of the map broke; "" is nothing.
std::string broken_by(const TableInfo& before, const TableInfo& now) {
  std::vector<RingPosition> places;
  for (const TableInfo* table : {&before, &now})
    for (const Tablet& tablet : table->tablets.tablets()) places.push_back(tablet.range.end);
  bool same = before.tablets.tablets().size() == now.tablets.tablets().size();
  for (const RingPosition place : places) {
    const Tablet& was = before.tablets.find(place);
    const Tablet& is = now.tablets.find(place);
    if (is.epoch < was.epoch)
      return fmt::format("an epoch falls from {} to {}", was.epoch.value, is.epoch.value);
    const bool members_stay =
        same_set(was.replicas, is.replicas) && same_set(was.new_replicas, is.new_replicas);
    if (is.epoch == was.epoch && !members_stay) return "one epoch means two sets of members";
    if (is.repaired_us < was.repaired_us && is.epoch == was.epoch) return "a horizon falls";
    same &= members_stay && is.range == was.range && is.stage == was.stage;
  }
  const uint64_t layout_was = replication::layout_of(before),
                 layout_is = replication::layout_of(now);
  if (layout_is < layout_was || (!same && layout_is == layout_was))
    return fmt::format("the layout goes from {} to {}", layout_was, layout_is);
  return "";
}

class Merging {
 public:
  explicit Merging(uint64_t seed)
      : kind_(static_cast<Kind>(seed % kKinds)),
        random_(seed * 7907 + 11),
        cluster_(seed, kind_ == Kind::kApart || kind_ == Kind::kKilled ? 6 : 4, shards_of(seed),
                 shards_of(seed)) {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      SimNode& node = cluster_[i];
      node.options().merges.merge = kind_ == Kind::kCold || kind_ == Kind::kUndone;
      node.options().merges.age_us = kAgeUs;
      node.options().moves.balance_period_us = 0;
      if (kind_ == Kind::kLate || kind_ == Kind::kUnseen) {
        purge_often(node);
        node.data_options.repair.period_us = 3600 * kSecondUs;  // what is repaired is told below
        if (kind_ == Kind::kUnseen) node.data_options.hints.bytes_per_replica_max = 0;
      }
    }
  }

  std::string run() {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    replication::SchemaChange change;
    change.new_tables.push_back(table_t());
    change.new_tables.back().initial_tablets = kTabletsAtFirst;
    bool created = false;
    cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &created));
    if (!cluster_.world().run_until([&] { return created; }, 10 * kSecondUs))
      return "the table is not made";
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(5 * kSecondUs);
    subscription_ = cluster_[0].node().meta().subscribe(
        [this](const replication::MetaSnapshot& before, const replication::MetaSnapshot& now) {
          const TableInfo* was = before->table(incarnation_);
          const TableInfo* is = now->table(incarnation_);
          if (was != nullptr && is != nullptr && was != is && broken_.empty())
            broken_ = broken_by(*was, *is);
        });
    std::string wrong = run_kind();
    if (wrong.empty()) wrong = check_values();
    subscription_.reset();
    return wrong.empty() ? broken_ : wrong;
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  /// What was written to a key.
  struct Written {
    int acknowledged = 0, tried = 0;
    bool busy = false;
  };

  static uint32_t shards_of(uint64_t seed) { return 1 + static_cast<uint32_t>(seed / kKinds % 2); }

  const TableInfo& table() { return *cluster_[0].state()->table(incarnation_); }
  size_t count() { return table().tablets.tablets().size(); }

  Task<void> write(SimNode* node, std::string key) {
    Written& written = written_[key];
    written.busy = true;
    const int number = ++written.tried;
    RowWrite write{.key = std::move(key), .value = std::to_string(number), .is_restamped = true};
    auto result = co_await try_write(node, incarnation_, std::move(write));
    if (result)
      written.acknowledged = number;
    else
      ++failed_;
    written.busy = false;
  }
  /// A write now and then, as long as `goes_on`.
  template <class GoesOn>
  void load(GoesOn goes_on) {
    while (goes_on()) {
      std::string key = fmt::format("key{}", random_.below(kKeys));
      SimNode* node = ready_node(cluster_, random_.below(cluster_.size()));
      if (node != nullptr && !written_[key].busy) node->spawn(write(node, std::move(key)));
      cluster_.world().run_for(20'000);
    }
  }
  void load_for(int64_t time_us) {
    const int64_t until_us = cluster_.world().now_us() + time_us;
    load([&] { return cluster_.world().now_us() < until_us; });
  }
  template <class Condition>
  bool load_until(Condition condition, int64_t within_us) {
    const int64_t until_us = cluster_.world().now_us() + within_us;
    load([&] { return cluster_.world().now_us() < until_us && !condition(); });
    return condition();
  }

  std::string check_values() {
    cluster_.world().run_for(5 * kSecondUs);
    for (const auto& [key, written] : written_) {
      RowSeen seen;
      SimNode* node = ready_node(cluster_, random_.below(cluster_.size()));
      node->spawn(read_row(node, incarnation_, key, ConsistencyLevel::kQuorum, &seen));
      cluster_.world().run_until([&] { return seen.answered; }, 3 * kSecondUs);
      if (!seen.answered) return "a read fails";
      const int value = seen.value ? std::stoi(*seen.value) : 0;
      if (value < written.acknowledged)
        return fmt::format("{} is {}, {} was acknowledged", key, value, written.acknowledged);
    }
    return "";
  }

  bool do_propose(replication::MetaCommandBody body) {
    std::optional<bool> done;
    cluster_[0].spawn(propose(&cluster_[0], std::move(body), &done));
    cluster_.world().run_until([&] { return done.has_value(); }, 10 * kSecondUs);
    cluster_.world().run_for(200'000);
    return done.value_or(false);
  }
  /// Of the tablet at `index` and the next one, as they are, whatever their members and horizons.
  bool merge_as_it_is(size_t index) {
    const auto& tablets = table().tablets.tablets();
    replication::MergeTablets command;
    command.incarnation = incarnation_;
    command.left = tablets[index].id;
    command.right = tablets[index + 1].id;
    command.left_epoch = tablets[index].epoch;
    command.right_epoch = tablets[index + 1].epoch;
    command.range = {tablets[index].range.start, tablets[index + 1].range.end};
    command.cut = tablets[index].range.end;
    return do_propose(command);
  }
  /// True: they are one within the time.
  bool order(SimNode& node, size_t index, int64_t within_us) {
    const auto outcome = std::make_shared<std::optional<bool>>();
    node.node().merges().order(table().tablets.tablets()[index].id,
                               [outcome](Result<void> merged) { *outcome = merged.has_value(); });
    return load_until([&] { return outcome->has_value(); }, within_us) && outcome->value_or(false);
  }

  std::string run_kind() {
    switch (kind_) {
      case Kind::kCold:
      case Kind::kUndone:
        return run_cold();
      case Kind::kLate:
      case Kind::kUnseen:
        return run_horizons();
      case Kind::kApart:
        return run_apart();
      case Kind::kKilled:
        return run_killed();
    }
    return "";
  }

  std::string run_cold() {
    const size_t least = cluster_[0].options().store_count;
    load_for(25 * kSecondUs);
    if (count() != kTabletsAtFirst) return "tablets are merged before they are cold for long";
    if (!load_until([&] { return count() == least; }, 120 * kSecondUs))
      return fmt::format("{} tablets are left", count());
    load_for(10 * kSecondUs);
    if (count() != least) return "more were merged than may be";
    if (failed_ != 0) return fmt::format("{} writes failed", failed_);
    if (kind_ == Kind::kCold) return "";
    const Tablet whole = table().tablets.tablets().front();
    const RingPosition at =
        partitioner::choose_middle(whole).value_or(RingPosition{whole.range.end.token - 1, 0});
    if (!do_propose(replication::SplitTablet{incarnation_, whole.id, whole.range, at}))
      return "the tablet is not split";
    load_for(8 * kAgeUs);
    if (count() == least) return "what was split again is merged at once";
    if (!load_until([&] { return count() == least; }, 10 * kAgeUs)) return "it is never merged";
    return "";
  }

  /// kLate: a hint of a row comes to a member after the row was deleted, and purged in the half that
  /// was repaired. kUnseen: a member has not seen the deletion, in the half that was not
  /// repaired.
  std::string run_horizons() {
    const auto& tablets = table().tablets.tablets();
    const RingPosition place = partitioner::position_of(kStaleKey);
    const auto own = static_cast<size_t>(&table().tablets.find(place) - tablets.data());
    const size_t left = own == 0 || (own + 1 < tablets.size() && random_.one_in(2)) ? own : own - 1;
    const size_t other = left == own ? own + 1 : left;
    const size_t lacking = 1 + random_.below(cluster_.size() - 1);
    const bool is_late = kind_ == Kind::kLate;
    int acknowledged = 0;
    const auto change = [&](SimNode& via, RowWrite row) {
      via.spawn(write_row(&via, incarnation_, std::move(row), &acknowledged));
      cluster_.world().run_for(2'500'000);
    };
    RowWrite deletion{.key = kStaleKey};
    deletion.value.reset();
    if (is_late) {
      const size_t hinting = lacking % 3 + 1;
      cluster_.isolate(lacking);
      change(cluster_[hinting], {.key = kStaleKey});
      cluster_.network().mend_all();
      cluster_.cut(hinting, lacking);
      cluster_.world().run_for(kSecondUs);
      deletion.level = ConsistencyLevel::kAll;
      change(cluster_[0], deletion);
    } else {
      change(cluster_[0], {.key = kStaleKey, .level = ConsistencyLevel::kAll});
      cluster_.isolate(lacking);
      change(cluster_[0], deletion);
      cluster_.network().mend_all();
    }
    if (acknowledged != 2) return "a write fails";
    cluster_.world().run_for(10 * kSecondUs);
    const Tablet repaired = table().tablets.tablets()[is_late ? own : other];
    if (!do_propose(replication::SetTabletRepaired{incarnation_, repaired.id, repaired.epoch,
                                                   repaired.range,
                                                   cluster_[0].reactor().wall_time_us()}))
      return "the repair is not noted";
    cluster_.world().run_for(20 * kSecondUs);  // swept
    const bool merged = merge_as_it_is(left);
    cluster_.network().mend_all();
    if (!merged && !order(cluster_[0], left, 60 * kSecondUs)) return "they are not merged";
    cluster_.world().run_for(30 * kSecondUs);
    RowSeen seen;
    cluster_[0].spawn(
        read_row(&cluster_[0], incarnation_, kStaleKey, ConsistencyLevel::kAll, &seen));
    cluster_.world().run_for(3 * kSecondUs);
    if (!seen.answered) return "a read fails";
    return seen.value ? "a deleted row is back" : "";
  }

  std::string run_apart() {
    load_for(5 * kSecondUs);
    const auto& tablets = table().tablets.tablets();
    size_t left = random_.below(tablets.size() - 1);
    for (size_t i = 0; i + 1 < tablets.size(); ++i) {
      if (!same_set(tablets[left].replicas, tablets[left + 1].replicas)) break;
      left = (left + 1) % (tablets.size() - 1);
    }
    const bool are_apart = !same_set(tablets[left].replicas, tablets[left + 1].replicas);
    const size_t before = count();
    const bool merged = merge_as_it_is(left);
    if (merged && are_apart) return check_values();  // what was written to one half
    if (!merged && !order(cluster_[0], left, 120 * kSecondUs)) return "they are not merged";
    if (count() + 1 != before) return "not two have become one";
    if (failed_ != 0) return fmt::format("{} writes failed", failed_);
    load_for(2 * kSecondUs);
    return "";
  }

  /// Where a pair was given up, since a node died, it is ordered again.
  std::string run_killed() {
    load_for(2 * kSecondUs);
    for (int round = 0; round < 4; ++round) {
      const size_t victim = 1 + random_.below(cluster_.size() - 1);
      const size_t left = random_.below(count() - 1);
      SimNode* via = ready_node(cluster_, random_.below(cluster_.size()));
      if (via == nullptr) return "no node is ready";
      via->node().merges().order(table().tablets.tablets()[left].id, [](Result<void>) {});
      load_for(static_cast<int64_t>(random_.below(3 * kSecondUs)));
      cluster_[victim].kill();
      load_for(static_cast<int64_t>(random_.below(2 * kSecondUs)));
      cluster_[victim].start();
      load_for(4 * kSecondUs);
    }
    const auto is_ready = [&] {
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_ready()) return false;
      return true;
    };
    if (!load_until(is_ready, 60 * kSecondUs)) return "a node does not come back";
    if (count() < 2) return "";
    const size_t before = count();
    for (int tries = 0; tries < 5; ++tries)
      if (order(cluster_[0], 0, 120 * kSecondUs) || count() < before) return "";
    return "they are not merged once all nodes are there";
  }

  const Kind kind_;
  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  std::map<std::string, Written> written_;
  int failed_ = 0;
  std::string broken_;
  std::shared_ptr<void> subscription_;
};

}  // namespace

ScenarioResult run_merge(uint64_t seed) {
  Merging merging(seed);
  std::string wrong = merging.run();
  return {std::move(wrong), merging.trace()};
}

}  // namespace tetrad::simulation
