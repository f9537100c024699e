// SPDX-License-Identifier: Apache-2.0
// What all coordinators let in of a table's throughput, over ten minutes of some seeds and one of the
// others. Each tablet wants twice its part, while tablets are split, and merged when both halves are in
// debt, and a node that lends is killed and comes back; or one tablet wants nearly everything, and gets
// what the others leave. What is let in is the throughput: never more in ten seconds but for a moment's
// worth, and no less in the end (rule 31). A coordinator that has not heard of a merge is lent nothing for
// what is no more. Beside that table one that uses half of its own throughput is refused nothing. A load of
// 0.9 of the throughput is hardly refused, however unevenly it falls on the tablets.
#include <algorithm>
#include <cmath>
#include <optional>

#include "partitioner/token.h"
#include "storage/row/row_weight.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using partitioner::Tablet;
using replication::TableInfo;
using storage::kWeightOfUnit;

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kStepUs = 5'000;
constexpr uint32_t kUnitsPerS = 1'200;
constexpr uint32_t kOtherUnitsPerS = 400;
constexpr uint64_t kUnits = 5;  // of a request
constexpr size_t kKeys = 2'000;
constexpr size_t kWindow = 10;   // seconds
constexpr double kMoment = 0.3;  // of a second: more than the throughput by so much
/// The same where a holder has died or returned: who lends from then on begins with a full bucket, which
/// is a second's worth. (While nobody lent, less than the throughput was let in.)
constexpr double kFaultMoment = 1 + kMoment;
/// Until all know of a death: 18 heartbeats of 200 ms are missed, each node looks once in another 200 ms,
/// and has sent a request to the dead one before, which it gives up after 200 ms.
constexpr double kNoticed_s = 4.2;
constexpr double kFullBucket_s = 2;  // then it is used up, and what is counted ends with a second
constexpr uint64_t kOwed_s = 6;
constexpr double kShareOfFirst = 0.8;
constexpr uint64_t kTenMinutesEvery = 13;

enum class Kind { kEven, kUneven, kBelow };
constexpr uint64_t kKinds = 3;

/// What clients of a table have met.
struct Counts {
  uint64_t admitted = 0, refused = 0;
  double units = 0;
  std::vector<double> by_second;
};

Task<void> propose(SimNode* node, replication::MetaCommandBody body, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 5 * kSecondUs};
  auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
  *done = proposed.has_value();
}

class Metering {
 public:
  explicit Metering(uint64_t seed)
      : kind_(static_cast<Kind>(seed % kKinds)),
        seconds_(seed % kTenMinutesEvery == 1 ? 600 : 60),
        random_(seed * 6151 + 3),
        cluster_(seed, 4, shards_of(seed), shards_of(seed)) {
    for (size_t i = 0; i < 4; ++i) cluster_[i].options().moves.balance_period_us = 0;
    for (size_t i = 0; i < kKeys; ++i) {
      names_.push_back(fmt::format("key{}-{}", random_.below(1'000'000), i));
      shares_.push_back(std::pow(static_cast<double>(i + 1), -1.1));
    }
    for (size_t i = 1; i < kKeys; ++i) shares_[i] += shares_[i - 1];
    for (double& share : shares_) share /= shares_.back();
  }

  std::string run() {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    cluster_.world().run_for(2 * kSecondUs);  // all hear of each other
    if (std::string wrong = make_tables(); !wrong.empty()) return wrong;
    cluster_.world().run_for(kSecondUs);
    begun_us_ = cluster_.world().now_us();
    std::string wrong = kind_ == Kind::kEven ? run_even() : run_uneven();
    return wrong.empty() ? check() : wrong;
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  static uint32_t shards_of(uint64_t seed) { return 1 + static_cast<uint32_t>(seed / kKinds % 2); }

  std::string make_tables() {
    replication::SchemaChange change;
    for (const uint32_t units : {kUnitsPerS, kOtherUnitsPerS}) {
      change.new_tables.push_back(table_t());
      auto& table = change.new_tables.back();
      table.id.value.octets[0] = static_cast<uint8_t>(change.new_tables.size());
      table.name += std::to_string(change.new_tables.size());
      table.initial_tablets = units == kOtherUnitsPerS ? 1 : kind_ == Kind::kEven ? 2 : 4;
      table.throughput = {units, false};
    }
    bool created = false;
    cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &created));
    if (!cluster_.world().run_until([&] { return created; }, 10 * kSecondUs))
      return "the tables are not made";
    for (const auto& [id, table] : state()->tables)
      (table->throughput.ru_per_s == kUnitsPerS ? table_ : other_) = table->incarnation;
    return "";
  }

  const replication::MetaSnapshot& state() {
    SimNode* node = ready_node(cluster_, 0);
    if (node != nullptr) state_ = node->state();
    return state_;
  }
  const TableInfo& table() { return *state()->table(table_); }
  const std::vector<Tablet>& tablets() { return table().tablets.tablets(); }
  double now_s() {
    return static_cast<double>(cluster_.world().now_us() - begun_us_) /
           static_cast<double>(kSecondUs);
  }
  size_t holder_of(const Tablet& tablet) {
    const HostId host =
        replication::holder_of(*state(), ready_node(cluster_, 0)->node().meta(), table(), tablet);
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].is_up() && cluster_[i].node().self() == host) return i;
    return 0;
  }

  void count(Counts& counts, double units) {
    counts.units += units;
    const auto second = static_cast<size_t>(now_s());
    if (counts.by_second.size() <= second) counts.by_second.resize(second + 1);
    counts.by_second[second] += units;
  }

  Task<void> request(SimNode* node, TableIncarnation table, RingPosition position, uint64_t after,
                     Counts* counts) {
    std::vector<replication::ThroughputUse> uses;
    uses.push_back({table, position, kUnits * kWeightOfUnit});
    const base::Deadline deadline{node->reactor().now_us() + 2 * kSecondUs};
    auto& gate = node->data().throughput();
    Result<void> in = co_await gate.admit(std::move(uses), deadline);
    ++(in ? counts->admitted : counts->refused);
    if (!in) co_return;
    count(*counts, static_cast<double>(kUnits + after));
    if (after == 0 && table == table_ && watched_ && watched_->contains(position))
      ++let_in_watched_;
    if (after != 0) gate.settle(table, position, static_cast<int64_t>(after * kWeightOfUnit));
  }

  /// Each tablet as often as the others, or the first one nearly always, or each key by its share.
  RingPosition draw() {
    if (kind_ == Kind::kBelow) {
      const auto found = std::ranges::upper_bound(shares_, random_.unit());
      const auto key = std::min<ptrdiff_t>(found - shares_.begin(), kKeys - 1);
      return partitioner::position_of(names_[static_cast<size_t>(key)]);
    }
    if (drawn_version_ != table().tablets.version()) {
      drawn_version_ = table().tablets.version();
      by_tablet_.assign(tablets().size(), {});
      for (const std::string& name : names_) {
        const RingPosition position = partitioner::position_of(name);
        by_tablet_[static_cast<size_t>(&table().tablets.find(position) - tablets().data())]
            .push_back(position);
      }
    }
    const bool is_first = kind_ == Kind::kUneven && random_.unit() < kShareOfFirst;
    const auto& positions = by_tablet_[is_first ? 0 : random_.below(by_tablet_.size())];
    return positions[random_.below(positions.size())];
  }

  /// `times` the throughput is asked for, until `until_s`; of the other table half of its own.
  template <class Stop>
  void load(double times, double until_s, Stop stop) {
    const double per_step = kStepUs / (static_cast<double>(kUnits) * kSecondUs);
    while (now_s() < until_s && !stop()) {
      for (owed_ += times * kUnitsPerS * per_step; owed_ >= 1; owed_ -= 1)
        ask(table_, draw(), counts_);
      for (other_owed_ += 0.5 * kOtherUnitsPerS * per_step; other_owed_ >= 1; other_owed_ -= 1)
        ask(other_, partitioner::position_of(names_[random_.below(kKeys)]), other_counts_);
      cluster_.world().run_for(kStepUs);
    }
  }
  void load(double times, double until_s) {
    load(times, until_s, [] { return false; });
  }
  void ask(TableIncarnation table, RingPosition position, Counts& counts, uint64_t after = 0) {
    SimNode* node = ready_node(cluster_, random_.below(cluster_.size()));
    if (node != nullptr) node->spawn(request(node, table, position, after, &counts));
  }

  std::string split() {
    const Tablet tablet = tablets()[random_.below(tablets().size())];
    std::vector<RingPosition> inside;
    for (const std::string& name : names_)
      if (tablet.range.contains(partitioner::position_of(name)))
        inside.push_back(partitioner::position_of(name));
    std::ranges::sort(inside);
    replication::SplitTablet body{table_, tablet.id, tablet.range, inside[inside.size() / 2]};
    SimNode* node = ready_node(cluster_, 0);
    bool done = false;
    node->spawn(propose(node, replication::MetaCommandBody(body), &done));
    load(2, now_s() + 10, [&] { return done; });
    return done ? "" : "a tablet is not split";
  }

  /// Stores that have one half but not the other are exchanged before, one by one: each begins at a look of
  /// the runner of moves, of which there is one each second, is filled and closed, and the next one is begun
  /// at a look after that: two seconds and a part. Then the merge is proposed.
  static double merged_within_s(const Tablet& left, const Tablet& right) {
    const auto exchanges = std::ranges::count_if(left.replicas, [&](const auto& member) {
      return std::ranges::find(right.replicas, member) == right.replicas.end();
    });
    return 2 + 2.5 * static_cast<double>(exchanges);
  }

  /// Of two neighbours that both owe six seconds' worth.
  std::string merge() {
    const size_t left = random_.below(tablets().size() - 1);
    const std::vector<TabletId> halves = {tablets()[left].id, tablets()[left + 1].id};
    const uint64_t owed = kOwed_s * kUnitsPerS / tablets().size();
    const double within_s = merged_within_s(tablets()[left], tablets()[left + 1]);
    double owed_since_s = 0;  // the mean
    for (const size_t half : {left, left + 1}) {
      const uint64_t before = debts_.admitted;
      for (int tries = 0; debts_.admitted == before; ++tries) {
        if (tries == 1000) return "nothing is let in";
        ask(table_, tablets()[half].range.end, debts_, owed);
        cluster_.world().run_for(40 * kStepUs);
      }
      owed_since_s += now_s() / 2;
    }
    std::optional<Result<void>> merged;
    SimNode* node = ready_node(cluster_, 0);
    node->node().merges().order(halves[0],
                                [&merged](Result<void> result) { merged = std::move(result); });
    load(2, now_s() + within_s, [&] { return merged.has_value(); });
    if (!merged || !*merged)
      return "tablets are not merged: " + (merged ? merged->error().message : "it takes too long");
    const RingRange whole = tablets()[left].range;
    retired_ = halves;
    load(2, now_s() + 0.5);
    // Two debts that began at different times are paid when they would be on the average, but for what
    // the buckets held.
    if (now_s() + 1 > owed_since_s + kOwed_s - 1) return "";
    watched_ = whole;
    let_in_watched_ = 0;
    load(2, now_s() + 1);
    watched_.reset();
    if (let_in_watched_ != 0) return "a tablet in debt lets requests in after a merge";
    return "";
  }

  /// As one that has not heard of a merge.
  Task<void> ask_for_retired(SimNode* node, HostId holder, TabletId tablet) {
    Bytes body = replication::encode_borrow_request({table_, tablet, 0});
    const base::Deadline deadline{node->reactor().now_us() + kSecondUs};
    auto reply = co_await node->node().rpc().ask(holder, 0, replication::Verb::kBorrowThroughput,
                                                 std::move(body), deadline);
    if (!reply) co_return;
    const auto loan = replication::decode_loan(*reply);
    if (loan) count(counts_, static_cast<double>(loan->granted) / kWeightOfUnit);
  }
  void ask_for_retired() {
    SimNode* node = ready_node(cluster_, random_.below(cluster_.size()));
    const size_t holder = holder_of(tablets()[random_.below(tablets().size())]);
    for (const TabletId tablet : retired_)
      if (node != nullptr && cluster_[holder].is_up())
        node->spawn(ask_for_retired(node, cluster_[holder].node().self(), tablet));
  }

  std::string run_even() {
    load(2, 3);
    const double step_s = seconds_ / 10.0;
    for (int step = 0; step < 5; ++step) {
      std::string wrong = step % 2 == 0 ? split() : merge();
      if (!wrong.empty()) return wrong;
      const double until_s = 3 + step_s * (step + 1);
      while (now_s() < until_s) {
        ask_for_retired();
        load(2, std::min(until_s, now_s() + 0.1));
      }
    }
    if (std::string wrong = kill(holder_of(tablets()[random_.below(tablets().size())]), 2);
        !wrong.empty())
      return wrong;
    load(2, std::max<double>(seconds_, now_s() + kWindow + 2));
    return "";
  }

  std::string kill(size_t node, double times) {
    faults_s_.push_back(now_s());
    cluster_[node].kill();
    load(times, now_s() + 15);
    faults_s_.push_back(now_s());
    cluster_[node].start();
    load(times, now_s() + 20, [&] { return cluster_[node].is_ready(); });
    return cluster_[node].is_ready() ? "" : "a node does not come back";
  }

  std::string run_uneven() {
    const double times = kind_ == Kind::kBelow ? 0.9 : 1.8;
    load(times, seconds_ / 2.0);
    if (kind_ == Kind::kUneven) {
      // One that does not lend for the tablet that wants nearly everything.
      const size_t busiest = holder_of(tablets()[0]);
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (i != busiest && holds_any(i)) return kill_and_go_on(i, times);
    }
    load(times, seconds_);
    return "";
  }
  bool holds_any(size_t node) {
    return std::ranges::any_of(tablets(),
                               [&](const Tablet& tablet) { return holder_of(tablet) == node; });
  }
  std::string kill_and_go_on(size_t node, double times) {
    std::string wrong = kill(node, times);
    load(times, std::max<double>(seconds_, now_s() + kWindow + 2));
    return wrong;
  }

  static bool is_near(const std::vector<double>& moments, double from_s, double to_s) {
    return std::ranges::any_of(moments, [&](double at) { return at > from_s && at < to_s; });
  }

  /// Of the table at half of its throughput. Until a death is noticed the others go on at their last rates,
  /// or even parts; one of them gets the dead one's requests beside its own, and may refuse as many. By
  /// chance these are more than usual: three standard deviations.
  double refused_at_death() const {
    if (faults_s_.empty()) return 0;
    const double each_s = 0.5 * kOtherUnitsPerS / kUnits / static_cast<double>(cluster_.size());
    const double diverted = each_s * kNoticed_s;
    return diverted + 3 * std::sqrt(diverted);
  }

  std::string check() {
    const double passed_s = now_s();
    const double expected = kUnitsPerS * passed_s;
    const uint64_t others = other_counts_.refused + other_counts_.admitted;
    if (static_cast<double>(other_counts_.refused) > refused_at_death())
      return fmt::format("a table at half of its throughput was refused {} of {}",
                         other_counts_.refused, others);
    if (kind_ == Kind::kBelow) {
      const uint64_t all = counts_.admitted + counts_.refused;
      if (counts_.refused * 100 > all)
        return fmt::format("below the throughput {} of {} were refused", counts_.refused, all);
      return "";
    }
    const double units_in_all = counts_.units + debts_.units;
    // What the buckets held at first; and where a holder dies, what it held, until another one is known.
    const double more = kUnitsPerS, less = faults_s_.empty() ? kUnitsPerS : 3 * kUnitsPerS;
    if (units_in_all < 0.99 * expected - less || units_in_all > 1.01 * expected + more)
      return fmt::format("{:.0f} units in {:.1f} s, which is {:.4f} of the throughput",
                         units_in_all, passed_s, units_in_all / expected);
    const auto& seconds = counts_.by_second;
    // The first seconds use what the buckets held.
    for (size_t i = 2; i + kWindow <= seconds.size(); ++i) {
      const auto from_s = static_cast<double>(i);
      const bool is_faulty =
          is_near(faults_s_, from_s - kNoticed_s - kFullBucket_s, from_s + kWindow);
      double units = 0;
      for (size_t second = i; second < i + kWindow; ++second) units += seconds[second];
      if (units > kUnitsPerS * (kWindow + (is_faulty ? kFaultMoment : kMoment)))
        return fmt::format("{:.0f} units in ten seconds from {} on", units, i);
    }
    return "";
  }

  const Kind kind_;
  const int seconds_;
  base::Random random_;
  SimCluster cluster_;
  TableIncarnation table_, other_;
  replication::MetaSnapshot state_;
  std::vector<std::string> names_;
  std::vector<double> shares_;  // of this key and those before
  uint64_t drawn_version_ = 0;
  std::vector<std::vector<RingPosition>> by_tablet_;
  int64_t begun_us_ = 0;
  double owed_ = 0, other_owed_ = 0;
  Counts counts_, debts_, other_counts_;
  std::optional<RingRange> watched_;
  uint64_t let_in_watched_ = 0;
  std::vector<TabletId> retired_;
  std::vector<double> faults_s_;
};

}  // namespace

ScenarioResult run_throughput(uint64_t seed) {
  Metering metering(seed);
  std::string wrong = metering.run();
  return {std::move(wrong), metering.trace()};
}

}  // namespace tetrad::simulation
