// SPDX-License-Identifier: Apache-2.0
// Splits tablets that have grown past the limit. The shard whose store holds the acting member
// takes samples, chooses the cut and proposes the split; the metadata group decides. No data moves.
// A logical partition comes to be alone in its tablet before it reaches its own limit. It is full,
// and later no longer full, by its live rows: what was deleted is there until it is purged, but
// counts for nothing.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/meta/meta_command.h"
#include "replication/tablets/load_report.h"

namespace tetrad::replication {

/// Cluster settings with their defaults.
inline constexpr const char* kSettingPhysicalPartitionMb = "max_physical_partition_mb";
inline constexpr uint64_t kPhysicalPartitionMbDefault = 10 * 1024;
inline constexpr const char* kSettingLogicalPartitionMb = "max_logical_partition_mb";
inline constexpr uint64_t kLogicalPartitionMbDefault = 20 * 1024;

/// A whole number from the settings, or the default.
uint64_t setting_or(const MetaState& state, const std::string& name, uint64_t otherwise);
/// Past this many bytes a tablet of the table is split.
uint64_t physical_partition_bytes_max(const MetaState& state, const TableInfo& table);
/// Past this many bytes a logical partition takes no more inserts.
uint64_t logical_partition_bytes_max(const MetaState& state);
/// From this many bytes on clients are warned.
uint64_t logical_partition_bytes_warned(const MetaState& state);
/// A limit in words, in GB or MB.
std::string size_text(uint64_t bytes);

/// Proposes through shard 0 of this node; from any shard.
Task<Result<void>> propose_through_main(RpcNode& rpc, base::Random& random, MetaCommandBody body,
                                        base::Deadline deadline);

class SplitRunner {
 public:
  struct Metrics {
    base::Counter splits, refused;
  };

  SplitRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
              Logger logger);
  /// From LoadReporter.
  void on_measured(const std::vector<MeasuredTablet>& tablets);
  const Metrics& metrics() const { return metrics_; }

 private:
  struct Weighed {
    base::MonotonicUs begun_us = 0;
    int64_t took_us = 0;
    uint64_t dead_seen = 0;  // by the store when it began
  };

  Task<void> split(MeasuredTablet measured);
  Task<void> set_full(MeasuredTablet measured, bool full);
  Task<void> look_at_full(MeasuredTablet measured, uint64_t enough);
  /// Bytes of live rows, as far as `enough`. Unset: they could not be read.
  Task<std::optional<uint64_t>> weigh(MeasuredTablet measured, uint64_t enough);
  bool may_weigh(const MeasuredTablet& measured) const;
  void warn_once(const MeasuredTablet& measured, const MetaState& state);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const Logger logger_;
  Metrics metrics_;
  std::unordered_set<TabletId> under_way_;
  std::unordered_map<TabletId, base::MonotonicUs> not_before_us_;  // those that cannot be split
  std::unordered_map<TabletId, Weighed> weighed_;
  std::unordered_set<TabletId> warned_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
