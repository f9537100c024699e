// SPDX-License-Identifier: Apache-2.0
// A table of one tablet gets load. Where the load stays, the tablet is split within three seconds, so
// that the work halves, and a key with most of it comes to be alone in one step; the halves rest before
// they are split again, and none is split in the end that is not hot. A load that passes, a store that is
// not busy and a single key split nothing. Where the acting member is dead, or gets none of the load,
// another member does it. A table's throughput that is used up counts as much as a busy store, but a
// table of one tablet has nothing from a cut of it. No request fails of it, and all nodes hear of the heat.
#include <algorithm>
#include <cmath>

#include "partitioner/split_policy.h"
#include "partitioner/token.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::Tablet;

constexpr int64_t kSecondUs = 1'000'000;
constexpr uint64_t kHotRuPerS = 200;
constexpr int64_t kStepUs = 5'000;
constexpr size_t kKeys = 2'000;

enum class Kind { kZipf, kHotKey, kOneKey, kSpike, kIdle, kChildren, kDead, kElsewhere, kBucket };
constexpr uint64_t kKinds = 9;

class Heating {
 public:
  explicit Heating(uint64_t seed)
      : kind_(static_cast<Kind>(seed % kKinds)),
        writes_(seed / kKinds % 2 == 1 && kind_ != Kind::kElsewhere),
        random_(seed * 4057 + 5),
        cluster_(seed, 4, shards_of(seed), shards_of(seed)) {
    for (size_t i = 0; i < 4; ++i) {
      cluster_[i].options().heat.ru_per_s = kHotRuPerS;
      if (kind_ == Kind::kIdle || kind_ == Kind::kBucket)
        cluster_[i].busy_us = [this] { return cluster_.world().now_us() / 2; };
    }
    make_keys();
  }

  std::string run() {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    replication::SchemaChange change;
    change.new_tables.push_back(table_t());
    const uint32_t tablets_wanted = kind_ == Kind::kBucket && random_.one_in(2) ? 4 : 1;
    change.new_tables.back().initial_tablets = tablets_wanted;
    if (kind_ == Kind::kBucket)
      change.new_tables.back().throughput = {tablets_wanted * static_cast<uint32_t>(kHotRuPerS) * 2,
                                             false};
    bool created = false;
    cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &created));
    if (!cluster_.world().run_until([&] { return created; }, 10 * kSecondUs))
      return "the table is not made";
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(kSecondUs + static_cast<int64_t>(random_.below(kSecondUs)));
    if (tablets().size() != tablets_wanted) return "the table does not begin as it should";
    std::string wrong = run_kind();
    if (!wrong.empty()) return wrong;
    cluster_.world().run_for(3 * kSecondUs);
    if (failed_ != 0 && kind_ != Kind::kDead) return fmt::format("{} requests failed", failed_);
    return done_ < 100 ? "hardly anything was done" : "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  static uint32_t shards_of(uint64_t seed) { return 1 + static_cast<uint32_t>(seed / 16 % 2); }

  void make_keys() {
    const double exponents[] = {0.99, 1.1, 1.2};
    const double exponent = exponents[random_.below(3)];
    double sum = 0;
    for (size_t i = 0; i < kKeys; ++i) {
      double share = std::pow(static_cast<double>(i + 1), -exponent);
      if (kind_ == Kind::kHotKey) share = i == 0 ? 0.7 : 0.3 / (kKeys - 1);
      if (kind_ == Kind::kOneKey) share = i == 0 ? 1 : 0;
      if (kind_ == Kind::kChildren) share = 1;
      shares_.push_back(sum += share);
      names_.push_back(fmt::format("key{}-{}", random_.below(1'000'000), i));
    }
    for (double& share : shares_) share /= sum;
  }
  const std::string& draw() {
    const auto found = std::ranges::upper_bound(shares_, random_.unit());
    return names_[static_cast<size_t>(std::min<ptrdiff_t>(found - shares_.begin(), kKeys - 1))];
  }
  double share_of(const Tablet& tablet) const {
    double sum = 0;
    for (size_t i = 0; i < kKeys; ++i)
      if (tablet.range.contains(partitioner::position_of(names_[i])))
        sum += shares_[i] - (i == 0 ? 0 : shares_[i - 1]);
    return sum;
  }

  const std::vector<Tablet>& tablets() {
    SimNode* node = ready_node(cluster_, 0);
    if (node != nullptr) state_ = node->state();
    return state_->table(incarnation_)->tablets.tablets();
  }

  Task<void> request(SimNode* node, std::string key, bool is_write, ConsistencyLevel level) {
    if (is_write) {
      RowWrite write{.key = std::move(key), .value = "v", .level = level};
      auto written = co_await try_write(node, incarnation_, std::move(write));
      (written ? done_ : failed_) += 1;
      co_return;
    }
    replication::ReadOptions options;
    options.level = level;
    options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
    auto command = row_read(incarnation_, key, node->reactor().wall_time_us() / kSecondUs);
    auto read = co_await node->data().coordinator().read(std::move(command), options);
    (read ? done_ : failed_) += 1;
  }

  /// `times` the work that makes a tablet hot, of each member, until `until_us` or `stop` holds.
  template <class Stop>
  void load(double times, int64_t until_us, Stop stop) {
    const double ru = times * static_cast<double>(kHotRuPerS);
    // A read counts at three of four members, a write five times at all.
    const double per_step = (writes_ ? ru / 5 : ru * 4 / 3) * kStepUs / kSecondUs;
    for (double owed = 0; cluster_.world().now_us() < until_us && !stop();) {
      for (owed += per_step; owed >= 1; owed -= 1) {
        SimNode* node =
            kind_ == Kind::kElsewhere ? &cluster_[reader_] : ready_node(cluster_, random_.below(4));
        const auto level =
            kind_ == Kind::kElsewhere ? ConsistencyLevel::kOne : ConsistencyLevel::kQuorum;
        if (node != nullptr) node->spawn(request(node, draw(), writes_, level));
      }
      cluster_.world().run_for(kStepUs);
    }
  }
  void load(double times, int64_t for_us) {
    load(times, cluster_.world().now_us() + for_us, [] { return false; });
  }
  /// When the first split is seen, after the load began; unset: not within `within_us`.
  std::optional<int64_t> load_until_split(double times, int64_t within_us) {
    const int64_t begun_us = cluster_.world().now_us();
    load(times, begun_us + within_us, [this] { return tablets().size() > 1; });
    if (tablets().size() == 1) return std::nullopt;
    return cluster_.world().now_us() - begun_us;
  }

  std::string run_kind() {
    // As much as gives samples enough: a write counts five.
    const double times = writes_ ? 4 : 2;
    const size_t first = index_of(tablets().front().replicas.front().host);
    switch (kind_) {
      case Kind::kOneKey:
      case Kind::kIdle:
        load(times, 15 * kSecondUs);
        return tablets().size() == 1 ? "" : "it was split";
      case Kind::kSpike:
        load(3 * times, kSecondUs);
        load(times / 8, 8 * kSecondUs);
        return tablets().size() == 1 ? "" : "it was split for a load of one second";
      case Kind::kChildren:
        return run_children();
      case Kind::kBucket:
        return run_bucket();
      case Kind::kDead:
        load(times, 1'200'000);
        cluster_[first].kill();
        if (!load_until_split(times, 8 * kSecondUs)) return "nobody splits it";
        return "";
      case Kind::kElsewhere:
        reader_ = (first + 1) % 4;
        if (!load_until_split(1.5, 4'500'000)) return "who gets all reads does not split it";
        return check_halves();
      case Kind::kHotKey:
      case Kind::kZipf:
        break;
    }
    const auto took_us = load_until_split(times, 4 * kSecondUs);
    if (!took_us) return "it is not split";
    if (*took_us > 3 * kSecondUs) return fmt::format("it was split after {} ms", *took_us / 1000);
    load(times, kSecondUs);
    if (kind_ == Kind::kHotKey) {
      const RingPosition hot = partitioner::position_of(names_[0]);
      const auto is_alone = [&](const Tablet& tablet) {
        return tablet.range.contains(hot) && partitioner::is_set_apart(tablet);
      };
      return std::ranges::any_of(tablets(), is_alone) ? "" : "the hot key is not alone";
    }
    load(times, 2 * kSecondUs);
    for (size_t i = 0; i < cluster_.size(); ++i) {
      uint64_t ru_per_s = 0;
      for (const Tablet& tablet : tablets())
        ru_per_s += cluster_[i].node().meta().tablet_heat(tablet.id).ru_per_s();
      if (ru_per_s < kHotRuPerS) return fmt::format("a node has heard of {} RU/s", ru_per_s);
    }
    return check_halves();
  }

  std::string check_halves() {
    double largest = 0;
    for (const Tablet& tablet : tablets()) {
      const double share = share_of(tablet);
      // A key that carries much may be alone with it.
      if (!partitioner::is_set_apart(tablet)) largest = std::max(largest, share);
    }
    return largest <= 0.6 ? "" : fmt::format("a part keeps {:.2f} of the work", largest);
  }

  std::string run_children() {
    constexpr double kTimes = 5;
    if (!load_until_split(kTimes, 4 * kSecondUs)) return "it is not split";
    const int64_t first_us = cluster_.world().now_us();
    load(kTimes, first_us + 5 * kSecondUs, [this] { return tablets().size() > 2; });
    const int64_t rested_us = cluster_.world().now_us() - first_us;
    if (tablets().size() == 2) return "the halves are not split again";
    if (rested_us < 2'900'000) return fmt::format("a half was split after {} ms", rested_us / 1000);
    load(kTimes, 20 * kSecondUs);
    // One is cut when it has the threshold, not before.
    for (const Tablet& tablet : tablets())
      if (kTimes * share_of(tablet) < 0.3) return "a tablet was split that was not hot";
    return "";
  }

  /// All of the work goes to the first tablet, as much as its part of the throughput is.
  std::string run_bucket() {
    const RingRange hot = tablets().front().range;
    const size_t before = tablets().size();
    double sum = 0, last = 0;
    for (size_t i = 0; i < kKeys; ++i) {
      const double share = shares_[i] - std::exchange(last, shares_[i]);
      if (hot.contains(partitioner::position_of(names_[i]))) sum += share;
      shares_[i] = sum;
    }
    for (double& share : shares_) share /= sum;
    load(writes_ ? 2 : 1.5, 8 * kSecondUs);
    if (before == 1) return tablets().size() == 1 ? "" : "a table of one tablet was split";
    return tablets().size() > before ? "" : "it is not split";
  }

  size_t index_of(HostId host) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].node().self() == host) return i;
    return 0;
  }

  const Kind kind_;
  const bool writes_;
  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  replication::MetaSnapshot state_;
  std::vector<double> shares_;  // of this key and those before
  std::vector<std::string> names_;
  size_t reader_ = 0;
  uint64_t done_ = 0, failed_ = 0;
};

}  // namespace

ScenarioResult run_heat(uint64_t seed) {
  Heating heating(seed);
  std::string wrong = heating.run();
  return {std::move(wrong), heating.trace()};
}

}  // namespace tetrad::simulation
