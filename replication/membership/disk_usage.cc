// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/disk_usage.h"

#include <algorithm>
#include <cmath>

#include "base/guarded.h"

namespace tetrad::replication {

namespace {
// From so many times its room on, a disk is looked at so much more often.
constexpr uint64_t kNearTimes = 4;
constexpr int64_t kNearTimesMoreOften = 10;
}  // namespace

std::string_view name_of(DiskUsage usage) {
  switch (usage) {
    case DiskUsage::kNotAvailable:
      break;
    case DiskUsage::kSpacious:
      return "Spacious";
    case DiskUsage::kStuffed:
      return "Stuffed";
    case DiskUsage::kFull:
      return "Full";
    case DiskUsage::kNoRoom:
      return "No Room";
  }
  return "Not Available";
}

DiskUsage disk_usage_numbered(uint8_t number) {
  return number <= static_cast<uint8_t>(DiskUsage::kNoRoom) ? static_cast<DiskUsage>(number)
                                                            : DiskUsage::kNotAvailable;
}

uint64_t used_percent(const DiskSpace& space, uint64_t max_disk_bytes) {
  uint64_t total_bytes = space.used_bytes + space.usable_bytes;
  if (max_disk_bytes != 0) total_bytes = std::min(total_bytes, max_disk_bytes);
  if (total_bytes == 0) return 100;
  return static_cast<uint64_t>(
      std::ceil(static_cast<double>(space.used_bytes) * 100.0 / static_cast<double>(total_bytes)));
}

DiskUsage disk_usage_of(uint64_t percent, const DiskUsageLimits& limits) {
  if (!limits.is_on()) return DiskUsage::kNotAvailable;
  if (limits.fail_percent != 0 && percent > limits.fail_percent) return DiskUsage::kFull;
  if (limits.warn_percent != 0 && percent > limits.warn_percent) return DiskUsage::kStuffed;
  return DiskUsage::kSpacious;
}

std::string disk_usage_text(uint64_t percent, const DiskUsageLimits& limits) {
  const DiskUsage usage = disk_usage_of(percent, limits);
  const bool is_full = usage == DiskUsage::kFull;
  return fmt::format(
      "Guardrail local_data_disk_usage violated: Local data disk usage {}%({}) exceeds {} "
      "threshold of {}%{}",
      percent, name_of(usage), is_full ? "failure" : "warning",
      is_full ? limits.fail_percent : limits.warn_percent,
      is_full ? ", will stop accepting writes" : "");
}

DiskUsageMonitor::DiskUsageMonitor(base::Reactor& reactor, base::IoPool& pool, DiskGauge* gauge,
                                   DiskUsageOptions options, Listener listener, Logger logger)
    : reactor_(reactor),
      pool_(pool),
      gauge_(gauge),
      options_(options),
      listener_(std::move(listener)),
      logger_(std::move(logger)) {}

DiskUsageMonitor::~DiskUsageMonitor() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void DiskUsageMonitor::start() {
  if (gauge_ != nullptr && (options_.limits.is_on() || options_.room_bytes != 0)) measure();
}

void DiskUsageMonitor::measure() {
  timer_ = 0;
  const auto space = std::make_shared<Result<DiskSpace>>();
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, 0,
      [gauge = gauge_, space, all = options_.limits.is_on()] {
        *space = base::guarded("measuring the disk", [&]() -> Result<DiskSpace> {
          if (all) return gauge->measure();
          TETRAD_TRY(const uint64_t usable_bytes, gauge->measure_usable());
          return DiskSpace{0, usable_bytes};
        });
      },
      [this, alive = std::weak_ptr<char>(alive_), space] {
        if (alive.expired()) return;
        // Near the end a period of writes must not use up the room that is to be kept.
        const bool is_near = *space && (*space)->usable_bytes / kNearTimes < options_.room_bytes;
        const int64_t wait_us =
            is_near ? options_.period_us / kNearTimesMoreOften : options_.period_us;
        timer_ = reactor_.call_at(reactor_.now_us() + wait_us, [this] { measure(); });
        take(*space);
      });
}

DiskUsage DiskUsageMonitor::usage_of(const DiskSpace& space) const {
  if (space.usable_bytes < options_.room_bytes) return DiskUsage::kNoRoom;
  return disk_usage_of(percent_, options_.limits);
}

void DiskUsageMonitor::take(const Result<DiskSpace>& space) {
  if (!space) {  // what was known holds until it is known better
    if (!std::exchange(failed_, true))
      logger_.warn("the use of the disk cannot be measured error={}", space.error().message);
    return;
  }
  failed_ = false;
  percent_ = used_percent(*space, options_.limits.max_disk_bytes);
  const DiskUsage before = std::exchange(usage_, usage_of(*space));
  if (usage_ == before) return;
  if (usage_ == DiskUsage::kNoRoom)
    logger_.error("the disk is full: no inserts are taken usable_mb={} needed_mb={}",
                  space->usable_bytes >> 20, options_.room_bytes >> 20);
  else if (before == DiskUsage::kNoRoom)
    logger_.info("the disk has room again usable_mb={}", space->usable_bytes >> 20);
  else if (usage_ == DiskUsage::kFull)
    logger_.error("{}", disk_usage_text(percent_, options_.limits));
  else if (usage_ == DiskUsage::kStuffed)
    logger_.warn("{}", disk_usage_text(percent_, options_.limits));
  else if (before != DiskUsage::kNotAvailable)
    logger_.info("Local data disk usage {}%({}) exceeds no threshold any more", percent_,
                 name_of(usage_));
  listener_(usage_);
}

}  // namespace tetrad::replication
