// SPDX-License-Identifier: Apache-2.0
// The use of a node's disk: percentages, states and lines of the log as Cassandra 5.0's.
#include "replication/membership/disk_usage.h"

#include <catch2/catch.hpp>

#include "tests/support/manual_reactor.h"

namespace tetrad::replication {
namespace {

struct Lines final : base::LogSink {
  void write(base::LogLevel, std::string_view, std::string_view line) override {
    text += std::string(line) + "\n";
  }
  base::LogLevel level() const override { return base::LogLevel::kInfo; }
  void set_level(base::LogLevel) override {}
  std::string text;
};

/// Of a thousand bytes.
struct Disk final : DiskGauge {
  Result<DiskSpace> measure() override {
    if (broken) return fail(ErrorCode::kIo, "it is broken");
    return DiskSpace{used_bytes, 1000 - used_bytes};
  }
  Result<uint64_t> measure_usable() override {
    const auto space = measure();
    if (!space) return std::unexpected(space.error());
    return space->usable_bytes;
  }
  uint64_t used_bytes = 100;
  bool broken = false;
};

struct Fixture {
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  Disk disk;
  std::shared_ptr<Lines> lines = std::make_shared<Lines>();
  std::vector<DiskUsage> told;

  std::unique_ptr<DiskUsageMonitor> monitor(DiskUsageLimits limits, uint64_t room_bytes = 0) {
    DiskUsageOptions options;
    options.limits = limits;
    options.room_bytes = room_bytes;
    return std::make_unique<DiskUsageMonitor>(
        reactor, pool, &disk, options, [this](DiskUsage now) { told.push_back(now); },
        Logger(lines, ""));
  }
  std::string after_period() {
    lines->text.clear();
    reactor.advance_us(DiskUsageOptions().period_us);
    return lines->text;
  }
};

}  // namespace

TEST_CASE("the percentage used is of what a node has and might have, rounded up") {
  CHECK(used_percent({0, 1000}, 0) == 0);
  CHECK(used_percent({1, 999}, 0) == 1);
  CHECK(used_percent({700, 300}, 0) == 70);
  CHECK(used_percent({701, 299}, 0) == 71);
  CHECK(used_percent({100, 0}, 0) == 100);
  CHECK(used_percent({0, 0}, 0) == 100);
  // No more than that counts as the disk; less than that may be there.
  CHECK(used_percent({50, 950}, 200) == 25);
  CHECK(used_percent({500, 500}, 200) == 250);
  CHECK(used_percent({50, 50}, 200) == 50);
  CHECK(used_percent({uint64_t{1} << 59, uint64_t{1} << 59}, 0) == 50);
}

TEST_CASE("states of a disk") {
  const DiskUsageLimits both{70, 90, 0};
  CHECK(disk_usage_of(70, both) == DiskUsage::kSpacious);
  CHECK(disk_usage_of(71, both) == DiskUsage::kStuffed);
  CHECK(disk_usage_of(90, both) == DiskUsage::kStuffed);
  CHECK(disk_usage_of(91, both) == DiskUsage::kFull);
  CHECK(disk_usage_of(100, {70, 0, 0}) == DiskUsage::kStuffed);
  CHECK(disk_usage_of(100, {0, 90, 0}) == DiskUsage::kFull);
  CHECK(disk_usage_of(90, {0, 90, 0}) == DiskUsage::kSpacious);
  CHECK(disk_usage_of(100, {0, 0, 5}) == DiskUsage::kNotAvailable);
  for (const auto usage :
       {DiskUsage::kNotAvailable, DiskUsage::kSpacious, DiskUsage::kStuffed, DiskUsage::kFull})
    CHECK(disk_usage_numbered(static_cast<uint8_t>(usage)) == usage);
  CHECK(disk_usage_numbered(4) == DiskUsage::kNoRoom);
  CHECK(disk_usage_numbered(5) == DiskUsage::kNotAvailable);
  CHECK(disk_usage_numbered(255) == DiskUsage::kNotAvailable);
}

TEST_CASE_METHOD(Fixture, "a monitor tells and logs changes, and nothing else") {
  const auto monitor = this->monitor({70, 90, 0});
  monitor->start();
  reactor.run_until_idle();
  CHECK(told == std::vector{DiskUsage::kSpacious});
  CHECK(lines->text.empty());
  CHECK(after_period().empty());
  disk.used_bytes = 701;
  CHECK(after_period() ==
        "Guardrail local_data_disk_usage violated: Local data disk usage 71%(Stuffed) exceeds "
        "warning threshold of 70%\n");
  disk.used_bytes = 805;
  CHECK(after_period().empty());
  CHECK(monitor->percent() == 81);
  disk.used_bytes = 950;
  CHECK(after_period() ==
        "Guardrail local_data_disk_usage violated: Local data disk usage 95%(Full) exceeds failure "
        "threshold of 90%, will stop accepting writes\n");
  CHECK(after_period().empty());
  disk.broken = true;  // what is known holds
  CHECK(after_period() == "the use of the disk cannot be measured error=it is broken\n");
  CHECK(after_period().empty());
  CHECK(monitor->usage() == DiskUsage::kFull);
  disk.broken = false;
  disk.used_bytes = 900;
  CHECK(after_period().find("90%(Stuffed) exceeds warning") != std::string::npos);
  disk.used_bytes = 700;
  CHECK(after_period() == "Local data disk usage 70%(Spacious) exceeds no threshold any more\n");
  CHECK(told == std::vector{DiskUsage::kSpacious, DiskUsage::kStuffed, DiskUsage::kFull,
                            DiskUsage::kStuffed, DiskUsage::kSpacious});
}

TEST_CASE_METHOD(Fixture,
                 "without thresholds nothing is measured, and a monitor may go meanwhile") {
  auto off = monitor({0, 0, 500});
  off->start();
  reactor.advance_us(60'000'000);
  CHECK(pool.run_count() == 0);
  auto on = monitor({50, 0, 0});
  pool.hold();
  on->start();
  CHECK(pool.run_count() == 1);
  on.reset();
  pool.release();
  reactor.advance_us(60'000'000);
  CHECK(pool.run_count() == 1);
  CHECK(told.empty());
}

TEST_CASE("a disk has no room below so many bytes, whatever the percentages") {
  for (const DiskUsageLimits limits : {DiskUsageLimits{}, DiskUsageLimits{70, 90, 0}}) {
    Fixture fixture;
    const auto monitor = fixture.monitor(limits, 60);
    monitor->start();
    fixture.disk.used_bytes = 940;
    CHECK(fixture.after_period().find("no inserts") == std::string::npos);
    fixture.disk.used_bytes = 941;
    CHECK(fixture.after_period().find("the disk is full: no inserts are taken") !=
          std::string::npos);
    CHECK(monitor->usage() == DiskUsage::kNoRoom);
    fixture.disk.broken = true;
    fixture.after_period();
    CHECK(monitor->usage() == DiskUsage::kNoRoom);
    fixture.disk.broken = false;
    fixture.disk.used_bytes = 100;
    CHECK(fixture.after_period().find("the disk has room again") != std::string::npos);
    CHECK(monitor->usage() == (limits.is_on() ? DiskUsage::kSpacious : DiskUsage::kNotAvailable));
  }
}

TEST_CASE_METHOD(Fixture, "a disk that is nearly full is looked at ten times as often") {
  const auto monitor = this->monitor({}, 60);
  monitor->start();
  const auto looks_in_period = [&] {
    const size_t before = pool.run_count();
    after_period();
    return pool.run_count() - before;
  };
  disk.used_bytes = 700;
  CHECK(looks_in_period() == 1);
  CHECK(looks_in_period() == 1);
  disk.used_bytes = 800;  // less than four times its room is left
  CHECK(looks_in_period() == 1);
  CHECK(looks_in_period() == 10);
  // What comes within a period is noticed within half a second.
  disk.used_bytes = 941;
  reactor.advance_us(500'000);
  CHECK(monitor->usage() == DiskUsage::kNoRoom);
}

}  // namespace tetrad::replication
