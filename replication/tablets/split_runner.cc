// SPDX-License-Identifier: Apache-2.0
// Splitting tablets.
#include "replication/tablets/split_runner.h"

#include <charconv>

#include "partitioner/split_policy.h"

namespace tetrad::replication {

namespace {

constexpr size_t kSplitsAtOnce = 4;
constexpr size_t kSamples = 256;
constexpr int64_t kProposeUs = 5'000'000;
constexpr int64_t kTryAgainUs = 10'000'000;
constexpr uint64_t kMiB = 1024 * 1024;

}  // namespace

uint64_t setting_or(const MetaState& state, const std::string& name, uint64_t otherwise) {
  const auto found = state.settings.find(name);
  if (found == state.settings.end()) return otherwise;
  uint64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, status] = std::from_chars(found->second.data(), end, value);
  return status == std::errc() && stop == end && value > 0 ? value : otherwise;
}

uint64_t physical_partition_bytes_max(const MetaState& state, const TableInfo& table) {
  if (table.max_partition_mb != 0) return uint64_t{table.max_partition_mb} * kMiB;
  return setting_or(state, kSettingPhysicalPartitionMb, kPhysicalPartitionMbDefault) * kMiB;
}

uint64_t logical_partition_bytes_max(const MetaState& state) {
  return setting_or(state, kSettingLogicalPartitionMb, kLogicalPartitionMbDefault) * kMiB;
}

Task<Result<void>> propose_through_main(RpcNode& rpc, base::Random& random, MetaCommandBody body,
                                        base::Deadline deadline) {
  MetaCommand command;
  command.id = base::make_random_uuid(random);
  command.origin = rpc.self();
  command.body = std::move(body);
  Bytes request;
  request.push_back(0);
  request.append(encode_meta_command(command));
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
                         MetaService& meta, Logger logger)
    : reactor_(reactor), random_(random), rpc_(rpc), meta_(meta), logger_(std::move(logger)) {}

void SplitRunner::on_measured(const std::vector<MeasuredTablet>& tablets) {
  const MetaSnapshot state = meta_.snapshot();
  const base::MonotonicUs now_us = reactor_.now_us();
  std::erase_if(not_before_us_, [&](const auto& entry) { return entry.second <= now_us; });
  for (const MeasuredTablet& measured : tablets) {
    if (under_way_.size() >= kSplitsAtOnce) return;
    const TabletId id = measured.tablet.id;
    if (measured.tablet.stage != partitioner::TabletStage::kNormal || under_way_.contains(id) ||
        not_before_us_.contains(id))
      continue;
    const uint64_t logical_max = logical_partition_bytes_max(*state);
    if (measured.tablet.full) {
      // A tenth of slack, so that it does not flap.
      if (measured.bytes >= logical_max - logical_max / 10) continue;
      under_way_.insert(id);
      tasks_.spawn(set_full(measured, false));
    } else if (measured.bytes > physical_partition_bytes_max(*state, *measured.table) ||
               measured.bytes >= logical_max) {
      under_way_.insert(id);
      tasks_.spawn(split(measured));
    }
  }
}

Task<void> SplitRunner::split(MeasuredTablet measured) {
  using Samples = Result<std::vector<storage::SizeSample>>;
  base::OneShot<Samples> sampled;
  const auto setter = sampled.setter();
  std::move_only_function<void(Samples)> done = [setter](Samples samples) {
    setter.set(std::move(samples));
  };
  measured.store->sample_sizes(measured.table->incarnation, measured.tablet.range, kSamples,
                               std::move(done));
  Samples samples = co_await sampled;
  const TabletId id = measured.tablet.id;
  under_way_.erase(id);
  not_before_us_[id] = reactor_.now_us() + kTryAgainUs;
  if (!samples || samples->empty()) co_return;
  std::vector<partitioner::SplitSample> places;
  uint64_t total = 0;
  for (const storage::SizeSample& sample : *samples) {
    places.push_back({sample.position, sample.bytes});
    total += sample.bytes;
  }
  // What was measured is coarse where much is in memory: it made pieces of tablets that were small.
  const MetaSnapshot state = meta_.snapshot();
  const uint64_t logical_max = logical_partition_bytes_max(*state);
  if (total <= physical_partition_bytes_max(*state, *measured.table) && total < logical_max)
    co_return;
  std::optional<RingPosition> at;
  if (const auto half = partitioner::choose_split_point(measured.tablet, places)) at = *half;
  // A single logical partition: it is set apart, then its own limit counts.
  if (!at) at = partitioner::choose_isolating_cut(measured.tablet, places.back().position);
  if (!at) {
    if (total < logical_max) co_return;
    measured.bytes = total;
    Task<void> marked = set_full(std::move(measured), true);
    co_await std::move(marked);
    co_return;
  }
  under_way_.insert(id);
  MetaCommandBody body(SplitTablet{measured.table->incarnation, id, measured.tablet.range, *at});
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> proposed = co_await propose_through_main(rpc_, random_, std::move(body), deadline);
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
  Result<void> proposed = co_await propose_through_main(rpc_, random_, std::move(body), deadline);
  under_way_.erase(id);
  if (proposed)
    logger_.info("tablet {} table={}.{} tablet={} bytes={}", full ? "full" : "no longer full",
                 measured.table->keyspace, measured.table->name, id.value, measured.bytes);
}

}  // namespace tetrad::replication
