// SPDX-License-Identifier: Apache-2.0
// Purging (design, rules 17 and 18): each shard sweeps the tablets of its stores, one at a time and
// paced, when there is something in them that may be dropped by now. What that is: the purge
// horizon of the tablet, which repair moves, and the table's gc_grace_seconds where it was set.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Logical partitions with more are logged, in the words of Cassandra 5.0's guardrails. 0: no
/// limit.
struct PartitionThresholds {
  uint64_t bytes_warn = 0, bytes_fail = 0;
  uint64_t tombstones_warn = 0, tombstones_fail = 0;
  /// The least that anything is said about.
  storage::PartitionExtent lowest() const;
  /// Of a partition "ks.table:key": no line, one or two; `fails` says which threshold was passed.
  struct Line {
    bool fails = false;
    std::string text;
  };
  std::vector<Line> lines(std::string_view partition, const storage::PartitionExtent& extent) const;
};

/// When and how fast tablets are swept.
struct PurgeOptions {
  int64_t look_every_us = 5'000'000;
  /// A tablet is swept no more often.
  int64_t period_us = int64_t{1800} * 1'000'000;
  /// Between two pages.
  int64_t pause_us = 10'000;
  uint64_t keys_max = 4096;  // a page looks at no more
  /// gc_grace_seconds of a table where the user set it.
  std::function<std::optional<int64_t>(const TableInfo&)> gc_grace_s;
  /// When set, tablets whose size has changed are swept too.
  PartitionThresholds partitions;
};

/// Counters of one shard's sweeps, changed by its thread only.
struct PurgeMetrics {
  base::Counter tablets, keys, rows_erased, tombstones, bytes, skipped;
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;
};

/// Sweeps the tablets of a shard's stores for what may be purged. Owned by the shard, on its
/// thread. Always: nothing is purged that was deleted after the tablet's horizon (rule 18), and a
/// sweep that its tablet has left behind ends.
class PurgeRunner {
 public:
  /// `stores` by number; null: another shard's. Everything outlives it.
  PurgeRunner(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
              std::vector<storage::Store*> stores, HorizonSlack slack, PurgeOptions options,
              Logger logger);
  ~PurgeRunner();
  PurgeRunner(const PurgeRunner&) = delete;
  PurgeRunner& operator=(const PurgeRunner&) = delete;
  void start();

  /// Sweeps everything of this shard's stores at once, due or not.
  void purge_now(std::function<void()> done);

  const PurgeMetrics& metrics() const { return metrics_; }

 private:
  /// A tablet in one store.
  struct Place {
    TabletId tablet;
    uint32_t store;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// A tablet that is to be swept, as it was when it was chosen; if its epoch or range changes the
  /// sweep ends.
  struct Target {
    std::shared_ptr<const TableInfo> table;
    partitioner::Tablet tablet;
    uint32_t store = 0;
    std::vector<RingRange> parts = {};  // of it that are to be swept; none: all of it
  };
  /// What the last sweep of a tablet has left.
  struct Known {
    SetEpoch epoch;
    RingRange range;
    int64_t oldest_left_s = 0;
    uint64_t dead_seen = 0;  // by the store when it began
    int64_t began_s = 0;
    /// Of pages in which something had to stay that could have gone: they are read again, not the
    /// whole tablet.
    std::vector<RingRange> left;
    uint64_t bytes = 0;  // of the tablet when it began; where partitions are measured
    base::MonotonicUs not_before_us = 0, size_not_before_us = 0;
    bool seen = true;  // in this look
  };

  void look();
  std::vector<Target> own_tablets() const;
  storage::PurgeBound bound_of(const Target& target) const;
  /// Says which parts are.
  bool is_due(Target& target);
  bool has_changed_size(const Target& target, Known& known);
  /// The number of partitions that were logged before in this sweep: it rises.
  void log_large(const TableInfo& table, const storage::SweepPage& page, uint64_t& logged) const;
  bool is_as_it_was(const Target& target) const;
  Task<void> run_due(Target target);
  Task<void> run_all(std::vector<Target> targets, std::function<void()> done);
  Task<Result<void>> sweep(Target target, int64_t pause_us);
  /// Sweeps one range of it; what it finds is added to `known`.
  Task<Result<void>> sweep_part(const Target& target, RingRange part, int64_t pause_us,
                                Known& known);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const std::vector<storage::Store*> stores_;
  const HorizonSlack slack_;
  const PurgeOptions options_;
  const Logger logger_;
  PurgeMetrics metrics_;
  std::map<Place, Known> known_;
  bool busy_ = false;
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
