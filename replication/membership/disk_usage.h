// SPDX-License-Identifier: Apache-2.0
// The use of the disk under a node's data, with the states, percentages and texts of Cassandra
// 5.0's guardrail. Heartbeats carry the state to the other nodes; coordinators refuse writes of
// clients to replicas that are full, and warn of those that are stuffed. There is no hysteresis. A
// disk on which hardly anything is left, whatever the percentages, takes no inserts, streams or
// fills any more, but deletions, DROP and TRUNCATE, which make room.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/io_pool.h"
#include "base/log.h"
#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::replication {

/// The numbers are in heartbeats: never renumber.
enum class DiskUsage : uint8_t {
  kNotAvailable = 0,  // nobody asked, or it is not measured yet
  kSpacious = 1,
  kStuffed = 2,  // above the warning threshold
  kFull = 3,     // above the failure threshold
  kNoRoom = 4,   // hardly anything is left
};
std::string_view name_of(DiskUsage usage);
/// Of a number that a newer node may have sent.
DiskUsage disk_usage_numbered(uint8_t number);

/// The nodes that are stuffed or full. Empty almost always.
using FillingDisks = std::map<HostId, DiskUsage>;

/// A measurement of the disk with the node's data.
struct DiskSpace {
  uint64_t used_bytes = 0;    // by the node's own data
  uint64_t usable_bytes = 0;  // by whoever comes
};

/// Where the figures come from.
class DiskGauge {
 public:
  virtual ~DiskGauge() = default;
  /// Blocks: on the IO pool. One call at a time. Errors: kIo.
  virtual Result<DiskSpace> measure() = 0;
  /// As measure() of usable_bytes alone, and cheap.
  virtual Result<uint64_t> measure_usable() = 0;
};

/// 0: no limit.
struct DiskUsageLimits {
  uint64_t warn_percent = 0, fail_percent = 0;
  uint64_t max_disk_bytes = 0;  // the disk counts as no larger
  bool is_on() const { return warn_percent != 0 || fail_percent != 0; }
};

/// Of what the node's data has and might have, rounded up. May be above 100 with a
/// `max_disk_bytes`.
uint64_t used_percent(const DiskSpace& space, uint64_t max_disk_bytes);
DiskUsage disk_usage_of(uint64_t percent, const DiskUsageLimits& limits);
/// For the log, of a node that is stuffed or full.
std::string disk_usage_text(uint64_t percent, const DiskUsageLimits& limits);

/// From when on a disk counts as filling or full, and how often it is measured.
struct DiskUsageOptions {
  DiskUsageLimits limits;
  uint64_t room_bytes = 0;  // below it a disk has no room: what is in memory must find its place
  int64_t period_us = 5'000'000;
};

/// Measures periodically and reports changes. On shard 0.
class DiskUsageMonitor {
 public:
  using Listener = std::function<void(DiskUsage now)>;

  /// `gauge` may be null: nothing is measured. It outlives what runs on the pool, the others this.
  DiskUsageMonitor(base::Reactor& reactor, base::IoPool& pool, DiskGauge* gauge,
                   DiskUsageOptions options, Listener listener, Logger logger);
  ~DiskUsageMonitor();
  DiskUsageMonitor(const DiskUsageMonitor&) = delete;
  DiskUsageMonitor& operator=(const DiskUsageMonitor&) = delete;
  void start();

  /// As last measured.
  uint64_t percent() const { return percent_; }
  DiskUsage usage() const { return usage_; }

 private:
  void measure();
  void take(const Result<DiskSpace>& space);

  base::Reactor& reactor_;
  base::IoPool& pool_;
  DiskGauge* const gauge_;
  DiskUsage usage_of(const DiskSpace& space) const;

  const DiskUsageOptions options_;
  const Listener listener_;
  const Logger logger_;
  uint64_t percent_ = 0;
  DiskUsage usage_ = DiskUsage::kNotAvailable;
  bool failed_ = false;  // said so once
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::replication
