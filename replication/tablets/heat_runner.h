// SPDX-License-Identifier: Apache-2.0
// Splits tablets that are hot. Each quarter of a second a shard looks at what its stores have
// measured (heat_meters.h). A tablet that has been hot in 8 of the last 10 slots, at a store that
// is busy and does much of its work for it, or in a table whose throughput it uses up, is cut where
// its work halves (partitioner/heat_policy.h): the acting member proposes it, another member that
// is hot alone a second later. No data moves. The metadata group takes a split only of the range
// that it names, so two proposals never cut one tablet twice.
//
// The sample that says where the work goes is kept of tablets that are warm only. A tablet that
// came out of a cut is left alone for a while; one that cannot be cut is tried again after ten
// seconds.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/task_group.h"
#include "replication/replica/fence.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/heat_board.h"

namespace tetrad::replication {

/// From when on a tablet is split for the work that it gets.
struct HeatOptions {
  bool split = true;
  uint64_t ru_per_s = 8'000;                  // at one member; 0: never by this
  uint64_t bytes_per_s = uint64_t{64} << 20;  // the same
  /// The part of the last second that the store's loop must have worked for.
  uint64_t busy_percent = 60;
};

/// Looks after the heat of one shard's stores. Belongs to the shard and its thread.
class HeatRunner {
 public:
  /// Counters of one shard.
  struct Metrics {
    base::Counter splits, set_apart, refused, not_cut;
  };
  /// Microseconds that this shard's loop has worked since it began; null: it always does.
  using BusyUs = std::function<int64_t()>;

  /// Everything outlives it. `fences` by store number; null: another shard's.
  HeatRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
             const Fences& fences, HeatOptions options, BusyUs busy_us, Logger logger);
  ~HeatRunner();
  HeatRunner(const HeatRunner&) = delete;
  HeatRunner& operator=(const HeatRunner&) = delete;
  void start() { arm(); }

  const Metrics& metrics() const { return metrics_; }
  /// Of the last second; 1: all of it.
  double busy() const { return busy_; }

 private:
  /// A tablet that is to be cut, and what for.
  struct Candidate {
    const TableInfo* table = nullptr;  // of the tick's snapshot
    HeatMeters::TabletPtr tablet;
    double work = 0;
  };

  void arm();
  void tick();
  /// How much of the last second this shard's loop has worked.
  void measure_busy();
  /// A warm tablet gets a sample, one that is warm no more loses it; `samples` counts them.
  void keep_sample(MeteredTablet& tablet, size_t& samples);
  /// `store_work`: of all tablets of the store, to see what part this one has.
  bool is_hot(const MetaSnapshot& state, const TableInfo& table, const MeteredTablet& tablet,
              uint32_t store, double store_work) const;
  /// Chooses the cuts by the sample. Where none would help it says so once, and tries again later.
  void split(const Candidate& candidate);
  Task<void> propose(std::string name, TableIncarnation incarnation, partitioner::Tablet tablet,
                     std::vector<RingPosition> cuts);
  /// What has changed by a quarter, to the first shard (heat_board.h).
  void report(const MetaSnapshot& state);

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const Fences& fences_;
  const HeatOptions options_;
  const BusyUs busy_us_;
  const Logger logger_;
  Metrics metrics_;
  uint64_t ticks_ = 0;
  double busy_ = 1;
  std::vector<std::pair<base::MonotonicUs, int64_t>> busy_then_;  // of the last ticks
  bool is_splitting_ = false;  // one at a time: four shards begin four at once
  std::unordered_map<TabletId, base::MonotonicUs> not_before_us_;
  std::unordered_map<TabletId, std::string> said_;  // why a tablet is not cut
  std::map<TabletId, ToldHeat> told_;               // what others have heard, but nothing
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
