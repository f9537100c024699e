// SPDX-License-Identifier: Apache-2.0
// Splits tablets that have grown past the limit. The shard whose store holds the acting member
// takes samples, chooses the cut and proposes the split; the metadata group decides. No data moves.
// A logical partition comes to be alone in its tablet before it reaches its own limit. It is full,
// and later no longer full, by its live rows: what was deleted is there until it is purged, but
// counts for nothing.
// A table with a throughput of its own that asks for more tablets than there are is split, small as
// they may be, the widest first; where rows are in the middle of those, else of the tokens.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/meta/meta_command.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/tablet_notes.h"

namespace tetrad::replication {

/// Cluster settings with their defaults.
inline constexpr const char* kSettingPhysicalPartitionMb = "max_physical_partition_mb";
inline constexpr uint64_t kPhysicalPartitionMbDefault = 10 * 1024;
inline constexpr const char* kSettingLogicalPartitionMb = "max_logical_partition_mb";
inline constexpr uint64_t kLogicalPartitionMbDefault = 20 * 1024;
inline constexpr const char* kSettingPhysicalPartitionRuPerS = "physical_partition_ru_per_s";
inline constexpr uint64_t kPhysicalPartitionRuPerSDefault = 10'000;

/// A whole number from the settings, or the default.
uint64_t setting_or(const MetaState& state, const std::string& name, uint64_t otherwise);
/// Past this many bytes a tablet of the table is split.
uint64_t physical_partition_bytes_max(const MetaState& state, const TableInfo& table);
/// Past this many bytes a logical partition takes no more inserts.
uint64_t logical_partition_bytes_max(const MetaState& state);
/// From this many bytes on clients are warned.
uint64_t logical_partition_bytes_warned(const MetaState& state);
/// How many tablets a table with this throughput is to have at least; 0 where it does not matter.
uint32_t tablets_wanted(const MetaState& state, const Throughput& throughput);
/// A limit in words, in GB or MB.
std::string size_text(uint64_t bytes);

/// Proposes through shard 0 of this node; from any shard.
Task<Result<void>> propose_through_main(RpcNode& rpc, MetaService& meta, base::Random& random,
                                        MetaCommandBody body, base::Deadline deadline);

/// Splits tablets that have grown or whose table has more throughput, and marks those full that
/// cannot be split. Owned by the shard, on its thread. Always: one task at a time has a tablet.
class SplitRunner {
 public:
  /// Counters of the splits that this shard has proposed.
  struct Metrics {
    base::Counter splits, refused;
  };

  /// `stores` by number; null: another shard's.
  SplitRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
              std::vector<storage::Store*> stores, Logger logger);
  /// From LoadReporter.
  void on_measured(const std::vector<MeasuredTablet>& tablets);
  const Metrics& metrics() const { return metrics_; }

 private:
  /// When the live bytes of a full tablet were counted last, and what that cost.
  struct Weighed {
    base::MonotonicUs begun_us = 0;
    int64_t took_us = 0;
    uint64_t dead_seen = 0;  // by the store when it began
  };

  /// Of a table that has fewer tablets than it wants.
  struct Short {
    uint64_t version = 0;  // of its map when it was last measured
    size_t more = 0;       // tablets to look at beside those that are missing
  };

  /// Cuts a tablet that is too large, sets its one logical partition apart, or marks it full.
  Task<void> split(MeasuredTablet measured);
  /// Of tables with a throughput of their own: more tablets, until each has no more than one may
  /// give.
  void look_at_throughputs(const MetaState& state, const std::vector<MeasuredTablet>& tablets);
  void split_for_throughput(const MetaState& state, const std::shared_ptr<const TableInfo>& table);
  Task<void> split_small(MeasuredTablet measured, uint32_t wanted);
  /// Until this shard knows of the split.
  Task<void> await_split(MeasuredTablet measured);
  /// Proposes the mark by which writes to the tablet are refused, or its end.
  Task<void> set_full(MeasuredTablet measured, bool full);
  /// Whether a full tablet has room again, since rows were deleted or have expired.
  Task<void> look_at_full(MeasuredTablet measured, uint64_t enough);
  /// Bytes of live rows, as far as `enough`. Unset: they could not be read.
  Task<std::optional<uint64_t>> weigh(MeasuredTablet measured, uint64_t enough);
  bool may_weigh(const MeasuredTablet& measured) const;
  void warn_once(const MeasuredTablet& measured, const MetaState& state);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const std::vector<storage::Store*> stores_;
  const Logger logger_;
  Metrics metrics_;
  /// Tablets that a task works on; no second one is begun for them.
  std::unordered_set<TabletId> under_way_;
  std::unordered_map<TabletId, base::MonotonicUs> not_before_us_;  // those that cannot be split
  std::unordered_map<TabletId, base::MonotonicUs> not_small_before_us_;  // nor for a throughput
  std::unordered_map<TableId, Short> short_;
  TabletNotes<Weighed> weighed_;
  TabletNotes<std::monostate> warned_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
