// SPDX-License-Identifier: Apache-2.0
// Splitting tablets.
#include "replication/tablets/split_runner.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "base/sleep.h"
#include "partitioner/placement.h"
#include "partitioner/split_policy.h"

namespace tetrad::replication {

namespace {

constexpr size_t kSplitsAtOnce = 4;
constexpr size_t kSamples = 256;
constexpr int64_t kProposeUs = 5'000'000;
constexpr int64_t kTryAgainUs = 10'000'000;
constexpr int64_t kTrySmallAgainUs = 60'000'000;  // it holds a single logical partition
constexpr int64_t kRefusedPauseUs = 500'000;
constexpr int64_t kAwaitSplitUs = 5'000;
constexpr int kAwaitSplitTimes = 200;
constexpr uint64_t kMiB = 1024 * 1024;
constexpr int64_t kWeighPauseUs = 5'000;  // after each page of a MiB
constexpr int64_t kWeighedShare = 20;     // at most one part in this many of the time
constexpr int64_t kWeighForExpiryUs = int64_t{3'600'000'000};  // where nothing was deleted since

using Samples = Result<std::vector<storage::SizeSample>>;

Task<Samples> sample(MeasuredTablet measured) {
  base::OneShot<Samples> sampled;
  const auto setter = sampled.setter();
  std::move_only_function<void(Samples)> done = [setter](Samples samples) {
    setter.set(std::move(samples));
  };
  measured.store->sample_sizes(measured.table->incarnation, measured.tablet.range, kSamples,
                               std::move(done));
  Samples samples = co_await sampled;
  co_return samples;
}

std::vector<partitioner::SplitSample> places_of(const std::vector<storage::SizeSample>& samples) {
  std::vector<partitioner::SplitSample> places;
  for (const storage::SizeSample& one : samples) places.push_back({one.position, one.bytes});
  return places;
}

}  // namespace

uint64_t setting_or(const MetaState& state, const std::string& name, uint64_t otherwise) {
  const auto found = state.settings.find(name);
  if (found == state.settings.end()) return otherwise;
  uint64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, status] = std::from_chars(found->second.data(), end, value);
  // Settings are text; one that this program cannot read counts as unset.
  return status == std::errc() && stop == end && value > 0 ? value : otherwise;
}

uint64_t physical_partition_bytes_max(const MetaState& state, const TableInfo& table) {
  if (table.max_partition_mb != 0) return uint64_t{table.max_partition_mb} * kMiB;
  return setting_or(state, kSettingPhysicalPartitionMb, kPhysicalPartitionMbDefault) * kMiB;
}

uint64_t logical_partition_bytes_max(const MetaState& state) {
  return setting_or(state, kSettingLogicalPartitionMb, kLogicalPartitionMbDefault) * kMiB;
}

uint64_t logical_partition_bytes_warned(const MetaState& state) {
  return logical_partition_bytes_max(state) / 5 * 4;
}

uint32_t tablets_wanted(const MetaState& state, const Throughput& throughput) {
  if (!throughput.is_limited() || throughput.of_keyspace) return 0;
  const uint64_t each =
      setting_or(state, kSettingPhysicalPartitionRuPerS, kPhysicalPartitionRuPerSDefault);
  const uint64_t count = (throughput.ru_per_s + each - 1) / each;
  return static_cast<uint32_t>(std::min<uint64_t>(count, partitioner::kTabletsPerTableMax));
}

std::string size_text(uint64_t bytes) {
  // Rounded to the nearest GB; under half a GB in MB.
  const uint64_t gib = (bytes + (1u << 29)) >> 30;
  return gib != 0 ? fmt::format("{} GB", gib) : fmt::format("{} MB", bytes >> 20);
}

Task<Result<void>> propose_through_main(RpcNode& rpc, MetaService& meta, base::Random& random,
                                        MetaCommandBody body, base::Deadline deadline) {
  MetaCommand command;
  command.id = base::make_random_uuid(random);
  command.origin = rpc.self();
  command.body = std::move(body);
  Bytes request;
  request.push_back(0);
  request.append(encode_meta_command(command, meta.snapshot()->format));
  Result<Bytes> reply =
      co_await rpc.ask(rpc.self(), 0, Verb::kPropose, std::move(request), deadline);
  if (!reply) co_return std::unexpected<Error>(reply.error());
  base::ByteReader in(*reply);
  TETRAD_CO_TRY_VOID(in.read_u64());
  TETRAD_CO_TRY(const uint8_t refused, in.read_u8());
  if (refused != 0)
    co_return std::unexpected<Error>(
        decode_error(BytesView(*reply).substr(reply->size() - in.remaining())));
  co_return Result<void>();
}

SplitRunner::SplitRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                         MetaService& meta, std::vector<storage::Store*> stores, Logger logger)
    : reactor_(reactor),
      random_(random),
      rpc_(rpc),
      meta_(meta),
      stores_(std::move(stores)),
      logger_(std::move(logger)) {}

void SplitRunner::on_measured(const std::vector<MeasuredTablet>& tablets) {
  const MetaSnapshot state = meta_.snapshot();
  const base::MonotonicUs now_us = reactor_.now_us();
  // Pauses that are over go, so that the maps are as large as what waits.
  for (auto* const pauses : {&not_before_us_, &not_small_before_us_})
    std::erase_if(*pauses, [&](const auto& entry) { return entry.second <= now_us; });
  weighed_.forget_gone(*state);
  warned_.forget_gone(*state);
  for (const MeasuredTablet& measured : tablets) {
    if (under_way_.size() >= kSplitsAtOnce) return;
    const TabletId id = measured.tablet.id;
    if (measured.tablet.stage != partitioner::TabletStage::kNormal || under_way_.contains(id) ||
        not_before_us_.contains(id))
      continue;
    // Before the decisions: a full tablet is warned of as well.
    warn_once(measured, *state);
    if (measured.tablet.full) {
      const uint64_t logical_max = logical_partition_bytes_max(*state);
      const uint64_t enough = logical_max - logical_max / 10;  // so that it does not flap
      // What is on disk may be mostly deleted rows; counting the live ones is a read of the whole
      // tablet.
      if (measured.bytes >= enough && !may_weigh(measured)) continue;
      under_way_.insert(id);
      tasks_.spawn(look_at_full(measured, enough));
    } else if (measured.bytes > physical_partition_bytes_max(*state, *measured.table) ||
               measured.bytes >= logical_partition_bytes_warned(*state)) {
      under_way_.insert(id);
      tasks_.spawn(split(measured));
    }
  }
  if (state->limited_tables != 0) look_at_throughputs(*state, tablets);
}

/// Where nothing has become of the tablets that were chosen, since each holds a single logical
/// partition or nobody is there to split it, others have their turn.
void SplitRunner::look_at_throughputs(const MetaState& state,
                                      const std::vector<MeasuredTablet>& tablets) {
  std::erase_if(short_, [&](const auto& entry) { return state.table(entry.first) == nullptr; });
  const TableInfo* last = nullptr;
  for (const MeasuredTablet& measured : tablets) {
    const TableInfo* const table = measured.table.get();
    // Tablets come table by table: each table is looked at once.
    if (table == std::exchange(last, table)) continue;
    const uint32_t wanted = tablets_wanted(state, table->throughput);
    const size_t count = table->tablets.tablets().size();
    if (count >= wanted) {
      short_.erase(table->id);
      continue;
    }
    Short& here = short_[table->id];
    // The same map as the last time: none of the chosen ones was split. Each time more are looked
    // at.
    const uint64_t before = std::exchange(here.version, table->tablets.version());
    here.more = before == here.version ? std::min(count, 2 * here.more + wanted - count) : 0;
    split_for_throughput(state, measured.table);
  }
}

/// All nodes choose the same tablets of the same map; each splits those that are its own. What is
/// proposed says how many are wanted: there come to be no more.
void SplitRunner::split_for_throughput(const MetaState& state,
                                       const std::shared_ptr<const TableInfo>& table) {
  const uint32_t wanted = tablets_wanted(state, table->throughput);
  const std::vector<partitioner::Tablet>& tablets = table->tablets.tablets();
  if (tablets.size() >= wanted) return;
  const auto known = short_.find(table->id);
  // To look at, not to cut: SplitTablet carries `wanted`, and the group refuses what is beyond it.
  const size_t more = known == short_.end() ? 0 : known->second.more;
  for (const size_t place : partitioner::choose_tablets_to_split(table->tablets, wanted + more)) {
    if (under_way_.size() >= kSplitsAtOnce) return;
    TETRAD_ASSERT(place < tablets.size());
    const partitioner::Tablet& tablet = tablets[place];
    if (under_way_.contains(tablet.id) || not_small_before_us_.contains(tablet.id)) continue;
    storage::Store* const store = acting_store(tablet, meta_, stores_);
    if (store == nullptr) continue;
    under_way_.insert(tablet.id);
    tasks_.spawn(split_small({table, tablet, store, 0}, wanted));
  }
}

Task<void> SplitRunner::split_small(MeasuredTablet measured, uint32_t wanted) {
  const TabletId id = measured.tablet.id;
  Samples samples = co_await sample(measured);
  // One task at a time has a tablet, and gives it back itself.
  TETRAD_ASSERT(under_way_.contains(id));
  std::optional<RingPosition> at;
  // Nothing to sample: an empty tablet is cut in the middle of its range.
  if (samples && samples->empty()) {
    at = partitioner::choose_middle(measured.tablet);
  } else if (samples) {
    if (const auto half = partitioner::choose_split_point(measured.tablet, places_of(*samples)))
      at = *half;
  }
  if (!at) {
    under_way_.erase(id);
    not_small_before_us_[id] = reactor_.now_us() + kTrySmallAgainUs;
    co_return;
  }
  MetaCommandBody body(
      SplitTablet{measured.table->incarnation, id, measured.tablet.range, *at, wanted});
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> proposed =
      co_await propose_through_main(rpc_, meta_, random_, std::move(body), deadline);
  if (proposed) {
    metrics_.splits.add();
    logger_.info("tablet split for its table's throughput table={}.{} tablet={} at_token={}",
                 measured.table->keyspace, measured.table->name, id.value, at->token);
    // Otherwise the old map would have the same tablet proposed once more.
    Task<void> awaited = await_split(measured);
    co_await std::move(awaited);
  } else {
    metrics_.refused.add();
    logger_.debug("tablet not split tablet={} reason={}", id.value, proposed.error().message);
    not_small_before_us_[id] = reactor_.now_us() + kRefusedPauseUs;
  }
  TETRAD_ASSERT(under_way_.contains(id));
  under_way_.erase(id);
  const MetaSnapshot state = meta_.snapshot();
  // At once, while the table has fewer than it wants: not with the next measuring.
  const auto now = state->tables.find(measured.table->id);
  if (now != state->tables.end()) split_for_throughput(*state, now->second);
}

Task<void> SplitRunner::await_split(MeasuredTablet measured) {
  for (int i = 0; i < kAwaitSplitTimes; ++i) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(measured.table->incarnation);
    if (table == nullptr ||
        table->tablets.find(measured.tablet.range.end).range != measured.tablet.range)
      co_return;
    co_await base::sleep_for(reactor_, kAwaitSplitUs);
  }
}

void SplitRunner::warn_once(const MeasuredTablet& measured, const MetaState& state) {
  const TabletId id = measured.tablet.id;
  const uint64_t warned = logical_partition_bytes_warned(state);
  // Half: a size that swings around the limit warns once.
  if (measured.bytes < warned / 2) warned_.erase(id);
  if (measured.bytes < warned || !partitioner::is_set_apart(measured.tablet) ||
      warned_.find(id) != nullptr)
    return;
  warned_.put(measured.table->id, measured.tablet, {});
  logger_.warn("a logical partition nears its maximum size table={}.{} tablet={} bytes={} max={}",
               measured.table->keyspace, measured.table->name, id.value, measured.bytes,
               logical_partition_bytes_max(state));
}

/// After deletions, or where something may have expired meanwhile; seldom enough.
bool SplitRunner::may_weigh(const MeasuredTablet& measured) const {
  const uint64_t dead_seen = measured.store->dead_seen(measured.table->incarnation);
  // Nothing of its table was ever deleted or has a TTL: what is measured lives.
  if (dead_seen == 0) return false;
  const Weighed* const last = weighed_.find(measured.tablet.id);
  if (last == nullptr) return true;
  const int64_t pause_us = last->dead_seen == dead_seen
                               ? kWeighForExpiryUs
                               : std::max(kTryAgainUs, kWeighedShare * last->took_us);
  return reactor_.now_us() >= last->begun_us + pause_us;
}

Task<std::optional<uint64_t>> SplitRunner::weigh(MeasuredTablet measured, uint64_t enough) {
  using Page = Result<storage::ReadResult>;
  Weighed weighed;
  weighed.begun_us = reactor_.now_us();
  weighed.dead_seen = measured.store->dead_seen(measured.table->incarnation);
  storage::ReadCommand command;
  command.incarnation = measured.table->incarnation;
  command.is_range = true;
  command.range = measured.tablet.range;
  command.bytes_limit = kMiB;
  command.now_s = reactor_.wall_time_us() / 1'000'000;
  std::optional<uint64_t> bytes = 0;
  // Page by page with pauses: this is no client's read, and the tablet may have gigabytes.
  while (*bytes < enough) {
    base::OneShot<Page> read;
    const auto setter = read.setter();
    storage::Store::ReadCallback done = [setter](Page answer) { setter.set(std::move(answer)); };
    measured.store->read(command, base::kNoDeadline, std::move(done));
    Page page = co_await read;
    if (!page) {
      bytes.reset();
      break;
    }
    for (const storage::PartitionData& partition : page->partitions) {
      *bytes += partition.header.size();
      for (const storage::RowData& row : partition.rows)
        *bytes += partition.partition_key.size() + row.clustering_key.size() + row.record.size();
    }
    if (page->exhausted) break;
    command.resume_after = page->complete_up_to;
    co_await base::sleep_for(reactor_, kWeighPauseUs);
  }
  weighed.took_us = reactor_.now_us() - weighed.begun_us;
  weighed_.put(measured.table->id, measured.tablet, weighed);
  co_return bytes;
}

Task<void> SplitRunner::look_at_full(MeasuredTablet measured, uint64_t enough) {
  TETRAD_ASSERT(measured.tablet.full);
  TETRAD_ASSERT(under_way_.contains(measured.tablet.id));
  if (measured.bytes >= enough) {
    const std::optional<uint64_t> live = co_await weigh(measured, enough);
    // It stays full. may_weigh() says when it is counted again.
    if (!live || *live >= enough) {
      under_way_.erase(measured.tablet.id);
      co_return;
    }
    measured.bytes = *live;
  }
  not_before_us_.erase(measured.tablet.id);
  Task<void> marked = set_full(std::move(measured), false);
  co_await std::move(marked);
}

Task<void> SplitRunner::split(MeasuredTablet measured) {
  Samples samples = co_await sample(measured);
  const TabletId id = measured.tablet.id;
  TETRAD_ASSERT(under_way_.contains(id));
  under_way_.erase(id);
  not_before_us_[id] = reactor_.now_us() + kTryAgainUs;
  // Nothing is known of its inside: when the pause set above is over it is looked at again.
  if (!samples || samples->empty()) co_return;
  const std::vector<partitioner::SplitSample> places = places_of(*samples);
  uint64_t total = 0;
  for (const partitioner::SplitSample& place : places) total += place.bytes;
  // What was measured is coarse where much is in memory: it made pieces of tablets that were small.
  const MetaSnapshot state = meta_.snapshot();
  const uint64_t logical_max = logical_partition_bytes_max(*state);
  if (total <= physical_partition_bytes_max(*state, *measured.table) &&
      total < logical_partition_bytes_warned(*state))
    co_return;
  std::optional<RingPosition> at;
  if (const auto half = partitioner::choose_split_point(measured.tablet, places)) at = *half;
  // A single logical partition: it is set apart, then its own limit counts.
  if (!at) at = partitioner::choose_isolating_cut(measured.tablet, places.back().position);
  if (!at) {
    if (total < logical_max) co_return;
    if (measured.store->dead_seen(measured.table->incarnation) != 0) {
      under_way_.insert(id);
      const std::optional<uint64_t> live = co_await weigh(measured, logical_max);
      under_way_.erase(id);
      if (!live || *live < logical_max) {
        const Weighed* const weighed = weighed_.find(id);
        const int64_t took_us = weighed == nullptr ? 0 : weighed->took_us;
        not_before_us_[id] = reactor_.now_us() + std::max(kTryAgainUs, kWeighedShare * took_us);
        co_return;
      }
      total = *live;
    }
    measured.bytes = total;
    Task<void> marked = set_full(std::move(measured), true);
    co_await std::move(marked);
    co_return;
  }
  TETRAD_ASSERT(!under_way_.contains(id));
  under_way_.insert(id);
  MetaCommandBody body(SplitTablet{measured.table->incarnation, id, measured.tablet.range, *at});
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> proposed =
      co_await propose_through_main(rpc_, meta_, random_, std::move(body), deadline);
  TETRAD_ASSERT(under_way_.contains(id));
  under_way_.erase(id);
  if (!proposed) {
    metrics_.refused.add();
    logger_.debug("tablet not split tablet={} reason={}", id.value, proposed.error().message);
    co_return;
  }
  not_before_us_.erase(id);
  metrics_.splits.add();
  logger_.info("tablet split table={}.{} tablet={} bytes={} at_token={}", measured.table->keyspace,
               measured.table->name, id.value, total, at->token);
}

Task<void> SplitRunner::set_full(MeasuredTablet measured, bool full) {
  const TabletId id = measured.tablet.id;
  under_way_.insert(id);
  MetaCommandBody body(SetTabletFull{measured.table->incarnation, id, full});
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> proposed =
      co_await propose_through_main(rpc_, meta_, random_, std::move(body), deadline);
  TETRAD_ASSERT(under_way_.contains(id));
  under_way_.erase(id);
  if (proposed)
    logger_.info("tablet {} table={}.{} tablet={} bytes={}", full ? "full" : "no longer full",
                 measured.table->keyspace, measured.table->name, id.value, measured.bytes);
}

}  // namespace tetrad::replication
