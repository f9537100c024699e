// SPDX-License-Identifier: Apache-2.0
// A sweep of a tablet:
//
//   1. One tablet at a time, the one that has waited longest of those where something may be
//      purged.
//   2. What this node has applied is synced first: the horizon that it purges by must survive a
//      restart.
//   3. Pages of keys are swept by the store; between two the tablet must be as it was, else the
//      sweep ends.
//   4. What pages have left, since it was written meanwhile, is swept again by ranges; what is too
//      young says when the tablet is due again (`oldest_left_s`).
//
// Which garbage goes is decided by the bound (rule 18): nothing above the horizon; tombstones that
// are older than gc_grace_seconds where that is set; expired cells when readers' clocks cannot want
// them any more. How it goes is the store's matter (storage/engine/sweep.cc). One sweep at a time
// on a shard.
#include "replication/repair/purge_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "storage/engine/tombstone_filter.h"
#include "storage/row/storage_key.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kSyncUs = 5'000'000;
/// Between two pages when somebody waits for it.
constexpr int64_t kShortPauseUs = 500;
/// How much longer an expired value is kept than it is answered: readers' `now` comes from other
/// clocks.
constexpr int64_t kExpiredExtra_s = kClockSkewMaxUs / kSecondUs * 2;
/// A tablet whose size is what it was is asked for it no more often.
constexpr int64_t kSizeEveryUs = 60 * kSecondUs;
// Bounds of a sweep: lines in the log, refusals of one page, and parts that are remembered for the
// next time.
constexpr uint64_t kLargeLoggedMax = 100;  // in a sweep
constexpr int kRefusalsMax = 60;           // of a page by a store that cannot keep up, one a second
constexpr size_t kPartsLeftMax = 64;

// Ring ranges exclude their start.
RingPosition position_before(RingPosition p) {
  if (p.hash-- == 0 && p.token != std::numeric_limits<int64_t>::min()) --p.token;
  return p;
}

/// What a page that was begun at `from` has looked at of `part`. Where a page has left something,
/// only that range is swept again.
RingRange range_of_page(const RingRange& part, const storage::SweepPlace& from,
                        const storage::SweepPage& page) {
  RingRange range = part;
  const auto first = storage::decode_storage_key(from.after);
  if (first) range.start = from.inside ? position_before(first->position) : first->position;
  const auto last = storage::decode_storage_key(page.next.after);
  if (last && !page.exhausted) range.end = last->position;
  return range;
}

// 0 stands for "no threshold".
uint64_t lower(uint64_t warn, uint64_t fails) {
  return warn == 0 || fails == 0 ? std::max(warn, fails) : std::min(warn, fails);
}

}  // namespace

void PurgeMetrics::register_in(base::MetricsRegistry& registry, const std::string& labels) const {
  registry.add("tetrad_replication_purged_tablets_total",
               "Sweeps of physical partitions for what may be purged.", labels, tablets);
  registry.add("tetrad_replication_purge_keys_total", "Keys that sweeps have looked at.", labels,
               keys);
  registry.add("tetrad_replication_purged_keys_total", "Keys that sweeps have erased.", labels,
               rows_erased);
  registry.add("tetrad_replication_purged_tombstones_total",
               "Tombstones, and expired cells, that sweeps have dropped.", labels, tombstones);
  registry.add("tetrad_replication_purged_bytes_total", "Bytes of keys and values that went.",
               labels, bytes);
  registry.add("tetrad_replication_purge_skipped_keys_total",
               "Keys left for the next sweep, since something was written meanwhile.", labels,
               skipped);
}

storage::PartitionExtent PartitionThresholds::lowest() const {
  return {lower(bytes_warn, bytes_fail), lower(tombstones_warn, tombstones_fail)};
}

// As Cassandra's guardrails say it: one line for each threshold that is passed, the failing one if
// both are.
std::vector<PartitionThresholds::Line> PartitionThresholds::lines(
    std::string_view partition, const storage::PartitionExtent& extent) const {
  std::vector<Line> out;
  const auto look = [&](uint64_t value, uint64_t warn, uint64_t fails, const char* guardrail,
                        const std::string& has, const char* reason) {
    const bool is_failure = fails != 0 && value > fails;
    if (!is_failure && (warn == 0 || value <= warn)) return;
    out.push_back(
        {is_failure, fmt::format("Guardrail {} violated: Partition {} has {}, this exceeds the {} "
                                 "threshold of {}. {}",
                                 guardrail, partition, has, is_failure ? "failure" : "warning",
                                 is_failure ? fails : warn, reason)});
  };
  look(extent.bytes, bytes_warn, bytes_fail, "partition_size", fmt::format("size {}", extent.bytes),
       "Too large partitions can cause performance problems.");
  look(extent.tombstones, tombstones_warn, tombstones_fail, "partition_tombstones",
       fmt::format("{} tombstones", extent.tombstones),
       "Partitions with too many tombstones can cause performance problems.");
  return out;
}

PurgeRunner::PurgeRunner(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                         const HybridClock& clock, std::vector<storage::Store*> stores,
                         HorizonSlack slack, PurgeOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      stores_(std::move(stores)),
      slack_(slack),
      options_(std::move(options)),
      logger_(std::move(logger)) {}

PurgeRunner::~PurgeRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void PurgeRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

/// Those whose members do not change just now.
std::vector<PurgeRunner::Target> PurgeRunner::own_tablets() const {
  const MetaSnapshot state = meta_.snapshot();
  std::vector<Target> targets;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      // While members change nothing is purged: the horizon is of the members as they were.
      if (tablet.stage != TabletStage::kNormal) continue;
      for (const StoreAddress& member : tablet.replicas) {
        if (member.host != meta_.self() || member.store >= stores_.size() ||
            stores_[member.store] == nullptr)
          continue;
        targets.push_back({table, tablet, member.store});
      }
    }
  }
  return targets;
}

storage::PurgeBound PurgeRunner::bound_of(const Target& target) const {
  const int64_t now_s = clock_.now_us(reactor_) / kSecondUs;
  storage::PurgeBound bound;
  bound.horizon_s = purge_horizon_s(target.tablet, slack_);
  if (TETRAD_MUTANT(purge_over_horizon)) bound.horizon_s = now_s + 1;
  std::optional<int64_t> grace_s;
  if (options_.gc_grace_s) grace_s = options_.gc_grace_s(*target.table);
  // Tombstones: the earlier of horizon and grace. Expired values: readers' `now` may be behind by
  // the bound of the clocks.
  bound.deleted_before_s = std::min(bound.horizon_s, now_s - grace_s.value_or(0));
  bound.expired_before_s =
      now_s - std::max(grace_s.value_or(0), storage::kExpiredValueMargin_s + kExpiredExtra_s);
  return bound;
}

bool PurgeRunner::is_due(Target& target) {
  // Tombstones that the store has seen of the table, as a cheap sign that there is something to do.
  const uint64_t dead_seen = stores_[target.store]->dead_seen(target.table->incarnation);
  const Place place{target.tablet.id, target.store};
  auto known = known_.find(place);
  // A split or move makes it another tablet.
  const bool is_new = known == known_.end() || known->second.epoch != target.tablet.epoch ||
                      known->second.range != target.tablet.range;
  if (is_new) {
    Known fresh;
    fresh.epoch = target.tablet.epoch;
    fresh.range = target.tablet.range;
    fresh.oldest_left_s =
        dead_seen == 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    known = known_.insert_or_assign(place, fresh).first;
  }
  // What is not seen in a look is forgotten at its end.
  Known& now = known->second;
  now.seen = true;
  if (reactor_.now_us() < now.not_before_us) return false;
  int64_t oldest_s = now.oldest_left_s;
  // Deleted since the last sweep began: not older than that, less what clocks may differ.
  // Later tombstones are younger, except those that a repair has brought: another sweep finds them.
  if (dead_seen != now.dead_seen)
    oldest_s = std::min(oldest_s, now.began_s - slack_.clock_skew_us / kSecondUs);
  const storage::PurgeBound bound = bound_of(target);
  if (bound.horizon_s != storage::PurgeBound::kNothing && oldest_s < bound.deleted_before_s)
    return true;
  if (has_changed_size(target, now)) return true;
  // Only what the last sweep had to leave.
  target.parts = now.left;
  return !target.parts.empty();
}

/// For partitions that grow in tables where nothing is deleted.
bool PurgeRunner::has_changed_size(const Target& target, Known& known) {
  const storage::PartitionExtent lowest = options_.partitions.lowest();
  if (lowest.bytes == 0 && lowest.tombstones == 0) return false;
  if (reactor_.now_us() < known.size_not_before_us) return false;
  known.size_not_before_us = reactor_.now_us() + kSizeEveryUs;
  return known.bytes !=
         stores_[target.store]->approximate_bytes(target.table->incarnation, target.tablet.range);
}

void PurgeRunner::log_large(const TableInfo& table, const storage::SweepPage& page,
                            uint64_t& logged) const {
  for (const storage::LargePartition& large : page.large) {
    if (logged++ >= kLargeLoggedMax) continue;
    const std::string name =
        fmt::format("{}.{}:{}", table.keyspace, table.name, base::to_hex(large.key));
    for (const auto& line : options_.partitions.lines(name, large.extent)) {
      if (line.fails)
        logger_.error("{}", line.text);
      else
        logger_.warn("{}", line.text);
    }
  }
  logged += page.large_left_out;
}

void PurgeRunner::look() {
  start();
  // What has expired, and what is old, a clock that is off does not decide.
  if (!clock_.is_good() && !TETRAD_MUTANT(quarantine_off)) return;
  // The compaction filter drops the bytes of expired values by this time.
  for (storage::Store* store : stores_)
    if (store != nullptr) store->note_time(clock_.now_us(reactor_) / kSecondUs);
  if (busy_) return;
  for (auto& [place, known] : known_) known.seen = false;
  std::optional<Target> due;
  for (Target& target : own_tablets()) {
    // The one that may be swept for the longest time.
    if (!is_due(target)) continue;
    const auto waits_since = [&](const Target& t) {
      return known_[{t.tablet.id, t.store}].not_before_us;
    };
    if (!due || waits_since(target) < waits_since(*due)) due = std::move(target);
  }
  std::erase_if(known_, [](const auto& entry) { return !entry.second.seen; });
  if (!due) return;
  busy_ = true;
  tasks_.spawn(run_due(std::move(*due)));
}

Task<void> PurgeRunner::run_due(Target target) {
  const TabletId id = target.tablet.id;
  Result<void> swept = co_await sweep(std::move(target), options_.pause_us);
  if (!swept)
    logger_.debug("tablet not swept tablet={} reason={}", id.value, swept.error().message);
  TETRAD_ASSERT(busy_);
  busy_ = false;
}

void PurgeRunner::purge_now(std::function<void()> done) {
  tasks_.spawn(run_all(own_tablets(), std::move(done)));
}

Task<void> PurgeRunner::run_all(std::vector<Target> targets, std::function<void()> done) {
  for (size_t i = 0; i < targets.size(); ++i) {
    Target target = targets[i];
    // Nothing was ever deleted there.
    if (stores_[target.store]->dead_seen(target.table->incarnation) == 0) continue;
    Result<void> swept = co_await sweep(std::move(target), kShortPauseUs);
    (void)swept;  // the tablet has changed: its next sweep is another
  }
  done();
}

/// A sweep is of one epoch and one range (rule 12).
bool PurgeRunner::is_as_it_was(const Target& target) const {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(target.table->incarnation);
  if (table == nullptr) return false;
  const Tablet& now = table->tablets.find(target.tablet.range.end);
  return now.id == target.tablet.id && now.range == target.tablet.range &&
         now.epoch == target.tablet.epoch;
}

Task<Result<void>> PurgeRunner::sweep(Target target, int64_t pause_us) {
  const Place where{target.tablet.id, target.store};
  const TableIncarnation incarnation = target.table->incarnation;
  Known known;
  known.epoch = target.tablet.epoch;
  known.range = target.tablet.range;
  // A whole sweep begins its record anew; one of parts goes on with it.
  if (target.parts.empty()) {
    known.oldest_left_s = std::numeric_limits<int64_t>::max();
    known.dead_seen = stores_[target.store]->dead_seen(incarnation);
    known.began_s = clock_.now_us(reactor_) / kSecondUs;
    const storage::PartitionExtent told_beyond = options_.partitions.lowest();
    if (told_beyond.bytes != 0 || told_beyond.tombstones != 0)
      known.bytes = stores_[target.store]->approximate_bytes(incarnation, target.tablet.range);
  } else if (const auto before = known_.find(where); before != known_.end()) {
    known = before->second;
    known.left.clear();
  }
  // Whatever the outcome, not sooner again.
  known.not_before_us = reactor_.now_us() + options_.period_us;
  // The horizon must survive a restart: what is older comes too late and is refused.
  const base::Deadline deadline{reactor_.now_us() + kSyncUs};
  Result<Bytes> synced = co_await rpc_.ask(rpc_.self(), 0, Verb::kSyncApplied, "", deadline);
  if (!synced) co_return std::unexpected<Error>(synced.error());
  std::vector<RingRange> parts = target.parts;
  if (parts.empty()) parts.push_back(target.tablet.range);
  for (size_t i = 0; i < parts.size(); ++i) {
    Result<void> swept = co_await sweep_part(target, parts[i], pause_us, known);
    if (!swept) {
      // Unless the tablet has changed it is due again at once.
      if (swept.error().code != ErrorCode::kStaleEpoch) {
        known.oldest_left_s = std::numeric_limits<int64_t>::min();
        known_[where] = known;
      }
      co_return std::unexpected<Error>(swept.error());
    }
  }
  known_[where] = known;
  metrics_.tablets.add();
  co_return Result<void>();
}

Task<Result<void>> PurgeRunner::sweep_part(const Target& target, RingRange part, int64_t pause_us,
                                           Known& known) {
  storage::SweepCommand command;
  command.incarnation = target.table->incarnation;
  command.range = part;
  command.bound = bound_of(target);
  // Above the horizon a member may lack what another purges (rule 18).
  TETRAD_ASSERT(command.bound.deleted_before_s <= command.bound.horizon_s);
  // Registers go below the floor of ballots, once there is one.
  if (target.tablet.repaired_us != 0)
    command.registers_floor.us = paxos_floor_us(target.tablet, slack_);
  command.keys_max = options_.keys_max;
  command.told_beyond = options_.partitions.lowest();
  storage::SweepPlace place;
  uint64_t erased = 0, tombstones = 0, large = 0;
  int refusals = 0;
  while (true) {
    if (!is_as_it_was(target))
      co_return fail(ErrorCode::kStaleEpoch, "physical partition {} has changed",
                     target.tablet.id.value);
    base::OneShot<Result<storage::SweepPage>> swept;
    const auto setter = swept.setter();
    std::move_only_function<void(Result<storage::SweepPage>)> done =
        [setter](Result<storage::SweepPage> page) { setter.set(std::move(page)); };
    TETRAD_ASSERT(stores_[target.store] != nullptr);
    stores_[target.store]->sweep(command, place, std::move(done));
    Result<storage::SweepPage> page = co_await swept;
    // The store is busy: the same page again, a second later.
    if (!page && page.error().code == ErrorCode::kOverloaded && ++refusals <= kRefusalsMax) {
      co_await base::sleep_for(reactor_, kSecondUs);
      continue;  // what has been read is not read again
    }
    if (!page) co_return std::unexpected<Error>(page.error());
    metrics_.keys.add(page->keys);
    metrics_.skipped.add(page->skipped);
    metrics_.rows_erased.add(page->erased);
    metrics_.tombstones.add(page->tombstones);
    metrics_.bytes.add(page->bytes);
    erased += page->erased;
    tombstones += page->tombstones;
    // What the page left because it was written meanwhile is swept again by its range; too many
    // such ranges make the whole tablet due.
    if (page->skipped == 0) {
      known.oldest_left_s = std::min(known.oldest_left_s, page->oldest_left_s);
    } else if (known.left.size() < kPartsLeftMax) {
      known.left.push_back(range_of_page(part, place, *page));
    } else {
      known.oldest_left_s = std::numeric_limits<int64_t>::min();
    }
    TETRAD_ASSERT(known.left.size() <= kPartsLeftMax);
    log_large(*target.table, *page, large);
    if (page->exhausted) break;
    place = std::move(page->next);
    co_await base::sleep_for(reactor_, pause_us);
  }
  if (large > kLargeLoggedMax)
    logger_.warn("partitions beyond the thresholds are not all logged table={}.{} tablet={} of={}",
                 target.table->keyspace, target.table->name, target.tablet.id.value, large);
  logger_.debug("tablet swept tablet={} horizon_s={} keys_erased={} tombstones={}",
                target.tablet.id.value, command.bound.horizon_s, erased, tombstones);
  co_return Result<void>();
}

}  // namespace tetrad::replication
