// SPDX-License-Identifier: Apache-2.0
// Estimates are made by reading the first partitions of this node's part of a tablet, with one row
// each, at ONE: 500 partitions or 1 MiB. An estimate is good for 10 s, as long as the reported
// bytes of the tablet stay the same; a refresh begins no read after 4 s, and the next one
// goes on with what is left.
#include "cql/system/size_estimates.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace tetrad::cql {
namespace {

// Bounds of one read of a sample.
constexpr uint32_t kSampledPartitions = 500;
constexpr uint64_t kSampledBytesMax = 1u << 20;
// How long an estimate is good; how long one refresh may go on.
constexpr int64_t kFreshUs = 10'000'000, kRefreshUs = 4'000'000;

/// As a part of the whole ring.
double width_of(RingPosition start, RingPosition end) {
  const auto place = [](RingPosition p) {
    // The sign bit turned over, so that the lowest token becomes 0.
    const auto token = static_cast<uint64_t>(p.token) ^ (uint64_t{1} << 63);
    return std::ldexp(static_cast<double>(token), -64) +
           std::ldexp(static_cast<double>(p.hash), -128);
  };
  return std::max(0.0, place(end) - place(start));
}

}  // namespace

std::optional<RingRange> primary_part(const partitioner::Tablet& tablet, HostId host) {
  const auto self = std::ranges::find(tablet.replicas, host, &StoreAddress::host);
  if (self == tablet.replicas.end()) return std::nullopt;
  const auto index = static_cast<uint64_t>(self - tablet.replicas.begin());
  const uint64_t count = tablet.replicas.size();
  const auto first = static_cast<uint64_t>(tablet.range.start.token);
  const uint64_t width = (static_cast<uint64_t>(tablet.range.end.token) - first) / count;
  // Too narrow to cut: the first replica answers for all of it.
  if (width == 0) return index == 0 ? std::optional(tablet.range) : std::nullopt;
  const auto cut = [&](uint64_t at) {
    return RingPosition{static_cast<int64_t>(first + at * width), RingPosition::highest().hash};
  };
  return RingRange{index == 0 ? tablet.range.start : cut(index),
                   index + 1 == count ? tablet.range.end : cut(index + 1)};
}

TabletEstimate estimate_tablet(const RingRange& range, const storage::ReadResult& first,
                               uint64_t bytes) {
  TabletEstimate out;
  const size_t seen = first.partitions.size();
  if (seen == 0) return out;
  out.partitions = static_cast<int64_t>(seen);
  if (!first.exhausted) {
    const double sampled = width_of(range.start, first.partitions.back().position);
    const double whole = width_of(range.start, range.end);
    if (sampled > 0 && whole > sampled) {
      out.partitions = std::llround(static_cast<double>(seen) * (whole / sampled));
    }
  }
  if (bytes == 0) {  // not measured yet: what was read is something
    for (const auto& partition : first.partitions) {
      bytes += partition.partition_key.size() + partition.header.size();
      for (const auto& row : partition.rows) bytes += row.clustering_key.size() + row.record.size();
    }
    out.mean_bytes = static_cast<int64_t>(bytes / seen);
  } else {
    out.mean_bytes = static_cast<int64_t>(bytes) / out.partitions;
  }
  out.mean_bytes = std::max<int64_t>(1, out.mean_bytes);
  return out;
}

Task<void> SizeEstimates::refresh(std::optional<std::string> keyspace, base::Reactor& reactor,
                                  replication::Coordinator& coordinator) {
  const replication::MetaSnapshot state = meta_.snapshot();
  const base::Deadline deadline{reactor.now_us() + kRefreshUs};
  std::unordered_set<TabletId> known;
  for (const auto& [id, table] : state->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      const std::optional<RingRange> part = primary_part(tablet, meta_.self());
      if (!part) continue;
      known.insert(tablet.id);
      if (keyspace && table->keyspace != *keyspace) continue;
      if (reactor.now_us() >= deadline.at_us) co_return;
      const uint64_t bytes = meta_.tablet_bytes(tablet.id) / tablet.replicas.size();
      const auto found = entries_.find(tablet.id);
      if (found != entries_.end() && (reactor.now_us() < found->second.made_us + kFreshUs) &&
          found->second.bytes == bytes) {
        continue;
      }
      storage::ReadCommand command;
      command.incarnation = table->incarnation;
      command.is_range = true;
      command.range = *part;
      command.distinct_partitions = true;
      command.per_partition_limit = 1;
      command.row_limit = kSampledPartitions;
      command.bytes_limit = kSampledBytesMax;
      command.now_s = reactor.wall_time_us() / 1'000'000;
      const replication::ReadOptions options{
          .level = ConsistencyLevel::kOne, .deadline = deadline, .background = true};
      const auto read = co_await coordinator.read(std::move(command), options);
      if (!read) continue;
      entries_[tablet.id] = {estimate_tablet(*part, *read, bytes), reactor.now_us(), bytes};
    }
  }
  // Of tablets that were split, merged, moved or dropped.
  std::erase_if(entries_, [&](const auto& entry) { return !known.contains(entry.first); });
}

TabletEstimate SizeEstimates::of(TabletId tablet) const {
  const auto found = entries_.find(tablet);
  return found == entries_.end() ? TabletEstimate() : found->second.estimate;
}

}  // namespace tetrad::cql
