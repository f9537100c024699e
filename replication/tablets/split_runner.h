// SPDX-License-Identifier: Apache-2.0
// Splits tablets that have grown past the limit. The shard whose store holds the acting member
// takes samples, chooses the cut and proposes the split; the metadata group decides. No data moves.
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
  Task<void> split(MeasuredTablet measured);
  Task<void> set_full(MeasuredTablet measured, bool full);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const Logger logger_;
  Metrics metrics_;
  std::unordered_set<TabletId> under_way_;
  std::unordered_map<TabletId, base::MonotonicUs> not_before_us_;  // those that cannot be split
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
