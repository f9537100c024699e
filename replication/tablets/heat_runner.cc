// SPDX-License-Identifier: Apache-2.0
// With each slot of the meters: those of all tablets are settled, of warm ones it is sampled where
// the work goes, and the hottest tablet that has been hot for long enough is cut where its halves
// do the same work.
//
// A slot is a quarter of a second. A tablet is cut when all of this holds (is_hot):
//   1. It was hot in kSlotsHot of the last kSlotsLooked slots: heat_split_ru_per_s or
//      heat_split_mb_per_s.
//   2. It is not a child that was cut out less than three seconds ago.
//   3. The thread of its store is busy, and the tablet does a tenth of its store's work or more; or
//      it uses up its part of its table's throughput.
//   4. Its members do not change, the table has room for two more tablets, and there is another
//      store to go to.
//   5. This store is the acting member; another member only after kSlotsLater more slots, should
//      that one see less.
//
// Each other member measures by itself; the map decides: a proposal names the range, and the second
// one is refused.
// One cut at a time in a shard: what it brings shows in the next seconds.
#include "replication/tablets/heat_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "partitioner/heat_policy.h"
#include "partitioner/placement.h"
#include "partitioner/split_policy.h"
#include "replication/consistency.h"
#include "replication/tablets/split_runner.h"
#include "replication/throughput/throughput_holder.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

using partitioner::HeatMeter;

// Slots of a quarter of a second.
constexpr size_t kSlotsLooked = 10, kSlotsHot = 8;
constexpr size_t kSlotsLater = 4;     // that a member waits for which does not act
constexpr double kWarmShare = 0.25;   // of what is hot
constexpr double kStoreShare = 0.1;   // of its store's work: less of it is moved as a whole
constexpr double kBucketShare = 0.8;  // of what its table's throughput lets in
constexpr size_t kSamplesMax = 256;   // of a shard: 56 KiB each at most
// After a cut; after one that was refused; of a proposal; until a cut is known here; ticks over
// which the thread's work is measured; ticks between reports, of changes and of all.
constexpr int64_t kAfterCutUs = 3'000'000;
constexpr int64_t kTryAgainUs = 10'000'000;
constexpr int64_t kProposeUs = 5'000'000;
constexpr int64_t kKnownWithinUs = 1'000'000;
constexpr size_t kBusyTicks = 4;
constexpr uint64_t kReportTicks = 4, kFullReportTicks = 120;

// Meters count parts of a unit.
double weight_of(uint64_t ru) {
  return static_cast<double>(ru) * static_cast<double>(storage::kWeightOfUnit);
}

partitioner::HeatLimit limit_of(const HeatOptions& options, double share) {
  return {share * weight_of(options.ru_per_s), share * static_cast<double>(options.bytes_per_s)};
}

/// Whether what clients are charged for it comes near to its part of the throughput of its table.
/// Reads cost two units at a quorum, and are metered once.
bool uses_up_bucket(const TableInfo& table, const MeteredTablet& tablet) {
  if (!table.throughput.is_limited() || table.throughput.of_keyspace) return false;
  const partitioner::HeatSum recent = tablet.meter.recent(kSlotsLooked);
  const auto per_s = static_cast<double>(bucket_of(table, tablet.id).per_s);
  return 2 * recent.reads + recent.writes >= kBucketShare * per_s;
}

/// A table's throughput is divided by its tablets: what a part may keep of the work so that it does
/// not get less for it than before.
double largest_allowed(const TableInfo& table) {
  if (!table.throughput.is_limited() || table.throughput.of_keyspace) return 1;
  const auto count = static_cast<double>(table.tablets.tablets().size());
  return count / (count + 2);  // of as many as two more
}

// By a quarter upwards, or a fifth downwards.
bool has_changed(uint64_t before, uint64_t now) {
  return before != now && (4 * now >= 5 * before || 5 * now <= 4 * before);
}

bool has_changed(const TabletHeat& before, const TabletHeat& now) {
  return has_changed(before.read_ru_per_s, now.read_ru_per_s) ||
         has_changed(before.write_ru_per_s, now.write_ru_per_s) ||
         has_changed(before.bytes_per_s, now.bytes_per_s) ||
         has_changed(before.ru_per_s_most, now.ru_per_s_most) ||
         has_changed(before.bytes_per_s_most, now.bytes_per_s_most);
}

/// With one store nobody could take a part.
bool has_other_stores(const MetaState& state) {
  uint64_t stores = 0;
  for (const auto& [host, node] : state.nodes)
    if (node.state != NodeState::kRemoved) stores += node.store_count;
  return stores > 1;
}

/// The tablet of the table that is still what was measured; null: it has changed.
const partitioner::Tablet* unchanged(const TableInfo& table, const MeteredTablet& tablet) {
  const partitioner::Tablet& now = table.tablets.find(tablet.range.end);
  return now.id == tablet.id && now.range == tablet.range ? &now : nullptr;
}

}  // namespace

HeatRunner::HeatRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                       MetaService& meta, const Fences& fences, HeatOptions options, BusyUs busy_us,
                       Logger logger)
    : reactor_(reactor),
      random_(random),
      rpc_(rpc),
      meta_(meta),
      fences_(fences),
      options_(options),
      busy_us_(std::move(busy_us)),
      logger_(std::move(logger)) {}

HeatRunner::~HeatRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

/// At the end of a slot.
void HeatRunner::arm() {
  const int64_t next = reactor_.now_us() / HeatMeter::kSlotUs + 1;
  timer_ = reactor_.call_at(next * HeatMeter::kSlotUs, [this] {
    arm();
    tick();
  });
}

// Mean of the last second.
void HeatRunner::measure_busy() {
  if (!busy_us_) return;
  const base::MonotonicUs now_us = reactor_.now_us();
  busy_then_.emplace_back(now_us, busy_us_());
  if (busy_then_.size() > kBusyTicks + 1) busy_then_.erase(busy_then_.begin());
  const auto& [then_us, worked_us] = busy_then_.front();
  const int64_t passed_us = std::max<int64_t>(now_us - then_us, 1);
  busy_ =
      static_cast<double>(busy_then_.back().second - worked_us) / static_cast<double>(passed_us);
}

void HeatRunner::tick() {
  ++ticks_;
  measure_busy();
  const base::MonotonicUs now_us = reactor_.now_us();
  const MetaSnapshot state = meta_.snapshot();
  std::erase_if(not_before_us_, [&](const auto& entry) { return entry.second <= now_us; });
  std::optional<Candidate> hottest;
  size_t samples = 0;
  for (uint32_t store = 0; store < fences_.size(); ++store) {
    if (fences_[store] == nullptr) continue;
    HeatMeters& meters = fences_[store]->heat();
    // Meters of tablets that moved away or were cut are replaced.
    meters.follow(*state, now_us);
    const auto tablets = meters.tablets(*state);
    double store_work = 0;
    for (const auto& [table, tablet] : tablets)
      store_work += tablet->meter.recent(kSlotsLooked).work();
    for (const auto& [table, tablet] : tablets) {
      keep_sample(*tablet, samples);
      if (!is_hot(state, *table, *tablet, store, store_work)) continue;
      const double work = tablet->meter.recent(kSlotsLooked).work();
      if (!hottest || work > hottest->work) hottest = Candidate{table, tablet, work};
    }
  }
  // The hottest only: what the cut brings is seen before another one.
  if (hottest) split(*hottest);
  if (ticks_ % kReportTicks == 0) report(state);
}

/// Kept while it is warm in the last ten seconds.
void HeatRunner::keep_sample(MeteredTablet& tablet, size_t& samples) {
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto warm = limit_of(options_, kWarmShare);
  TETRAD_ASSERT((tablet.sample == nullptr) == (tablet.keys == nullptr));
  if (tablet.sample == nullptr) {
    // Samples cost memory: only warm tablets have one, up to kSamplesMax of a shard.
    if (tablet.meter.hot_slots(1, warm) == 0 || samples >= kSamplesMax) return;
    tablet.sample = std::make_unique<partitioner::PositionSample>(random_, now_us);
    tablet.keys = std::make_unique<partitioner::HeavyKeys>(now_us);
  } else if (tablet.meter.hot_slots(HeatMeter::kSlots, warm) == 0) {
    tablet.sample.reset();
    tablet.keys.reset();
    return;
  }
  ++samples;
  tablet.sample->advance(now_us);
  tablet.keys->advance(now_us);
}

bool HeatRunner::is_hot(const MetaSnapshot& state, const TableInfo& table,
                        const MeteredTablet& tablet, uint32_t store, double store_work) const {
  // A cut by few samples would be a guess.
  if (!options_.split || is_splitting_ || not_before_us_.contains(tablet.id) ||
      tablet.sample == nullptr || tablet.sample->size() < partitioner::kHeatSamplesLeast)
    return false;
  const auto hot = limit_of(options_, 1);
  const size_t needed = TETRAD_MUTANT(heat_at_once) ? 1 : kSlotsHot;
  if (tablet.meter.hot_slots(kSlotsLooked, hot) < needed) return false;
  if (tablet.cut_at_us != 0 && reactor_.now_us() - tablet.cut_at_us < kAfterCutUs &&
      !TETRAD_MUTANT(heat_of_child_at_once))
    return false;
  const bool is_busy = 100 * busy_ >= static_cast<double>(options_.busy_percent) ||
                       TETRAD_MUTANT(heat_of_idle_store);
  const bool is_much = tablet.meter.recent(kSlotsLooked).work() >= kStoreShare * store_work;
  if (!(is_busy && is_much) && !uses_up_bucket(table, tablet)) return false;
  const partitioner::Tablet* now = unchanged(table, tablet);
  if (now == nullptr || now->stage != partitioner::TabletStage::kNormal ||
      table.tablets.tablets().size() + 2 > partitioner::kTabletsPerTableMax ||
      !has_other_stores(*state))
    return false;
  const StoreAddress acting = acting_member(*now, meta_);
  if (acting == StoreAddress{meta_.self(), store}) return true;
  return std::ranges::find(now->replicas, StoreAddress{meta_.self(), store}) !=
             now->replicas.end() &&
         tablet.meter.hot_slots(kSlotsLooked + kSlotsLater, hot) >= kSlotsHot + kSlotsLater;
}

void HeatRunner::split(const Candidate& candidate) {
  const TableInfo& table = *candidate.table;
  const partitioner::Tablet* tablet = unchanged(table, *candidate.tablet);
  // is_hot() has said so in this look.
  TETRAD_ASSERT(!is_splitting_);
  TETRAD_ASSERT(tablet != nullptr);
  TETRAD_ASSERT(candidate.tablet->sample != nullptr);
  const auto samples = candidate.tablet->sample->positions();
  auto cuts = partitioner::choose_heat_cuts(*tablet, samples, largest_allowed(table));
  // Whatever comes of it.
  not_before_us_[tablet->id] = reactor_.now_us() + kTryAgainUs;
  if (!cuts) {
    metrics_.not_cut.add();
    // Said once for each reason.
    if (said_.size() >= kSamplesMax) said_.clear();
    std::string& said = said_[tablet->id];
    if (said == cuts.error().message) return;
    said = cuts.error().message;
    logger_.info("a hot tablet is not split table={}.{} tablet={} reason=\"{}\"", table.keyspace,
                 table.name, tablet->id.value, said);
    return;
  }
  if (cuts->sets_apart) metrics_.set_apart.add();
  if (TETRAD_MUTANT(heat_cut_in_middle))
    cuts->cuts.assign(1, partitioner::choose_middle(*tablet).value_or(cuts->cuts.front()));
  if (TETRAD_MUTANT(heat_one_cut)) cuts->cuts.resize(1);
  const TabletHeat heat = candidate.tablet->heat();
  logger_.info(
      "a hot tablet is split table={}.{} tablet={} read_ru_per_s={} write_ru_per_s={} "
      "bytes_per_s={} "
      "busy={:.2f} parts={} largest={:.2f}",
      table.keyspace, table.name, tablet->id.value, heat.read_ru_per_s, heat.write_ru_per_s,
      heat.bytes_per_s, busy_, cuts->cuts.size() + 1, cuts->largest);
  is_splitting_ = true;
  tasks_.spawn(propose(fmt::format("{}.{}", table.keyspace, table.name), table.incarnation, *tablet,
                       std::move(cuts->cuts)));
}

/// The last cut first: the left part keeps the tablet's number, and the next cut is of that part.
Task<void> HeatRunner::propose(std::string name, TableIncarnation incarnation,
                               partitioner::Tablet tablet, std::vector<RingPosition> cuts) {
  const TabletId id = tablet.id;
  while (!cuts.empty()) {
    const RingPosition at = cuts.back();
    cuts.pop_back();
    MetaCommandBody body(SplitTablet{incarnation, tablet.id, tablet.range, at});
    const base::Deadline deadline{reactor_.now_us() + kProposeUs};
    Result<void> proposed =
        co_await propose_through_main(rpc_, meta_, random_, std::move(body), deadline);
    if (!proposed) {
      metrics_.refused.add();
      logger_.info("a hot tablet is not split table={} tablet={} reason=\"{}\"", name,
                   tablet.id.value, proposed.error().message);
      break;
    }
    metrics_.splits.add();
    tablet.range.end = at;
    // What is left of it rests as the other part does, once this shard knows of the cut.
    if (cuts.empty()) not_before_us_[id] = reactor_.now_us() + kKnownWithinUs;
  }
  TETRAD_ASSERT(is_splitting_);
  is_splitting_ = false;
}

void HeatRunner::report(const MetaSnapshot& state) {
  const bool is_full = ticks_ % kFullReportTicks == 0;
  std::map<TabletId, ToldHeat> before = std::exchange(told_, {});
  HeatReport out;
  for (uint32_t store = 0; store < fences_.size(); ++store) {
    if (fences_[store] == nullptr) continue;
    // Each tablet's heat as this store sees it; the board adds up (heat_board.h).
    for (const auto& [table, tablet] : fences_[store]->heat().tablets(*state)) {
      const size_t members = table->tablets.find(tablet->range.end).replicas.size();
      const int quorum = write_quorum(static_cast<int>(std::max<size_t>(members, 1)));
      const ToldHeat now{store, tablet->id, static_cast<uint32_t>(quorum), tablet->heat()};
      const auto known = before.extract(tablet->id);
      const TabletHeat then = known.empty() ? TabletHeat() : known.mapped().heat;
      const bool is_told = (is_full ? !now.heat.is_nothing() : has_changed(then, now.heat)) &&
                           out.size() < kHeatReportEntriesMax;
      if (is_told) out.push_back(now);
      if (is_told && !now.heat.is_nothing()) told_[tablet->id] = now;
      if (!is_told && !known.empty()) told_[tablet->id] = known.mapped();
    }
  }
  for (auto& [id, gone] : before) {  // they have had no work for minutes, or are no more
    if (out.size() >= kHeatReportEntriesMax) break;
    gone.heat = {};
    out.push_back(gone);
  }
  TETRAD_ASSERT(out.size() <= kHeatReportEntriesMax);
  if (!out.empty()) rpc_.one_way(meta_.self(), 0, Verb::kHeat, encode_heat(out));
}

}  // namespace tetrad::replication
