// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/recent_log.h"

#include <set>
#include <thread>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

using base::LogLevel;

/// Counts what is passed on.
class CountingSink final : public base::LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view) override { ++written; }
  LogLevel level() const override { return least; }
  void set_level(LogLevel level) override { least = level; }

  std::atomic<int> written = 0;
  LogLevel least = LogLevel::kInfo;
};

struct Fixture {
  std::shared_ptr<CountingSink> below = std::make_shared<CountingSink>();
  std::atomic<int64_t> wall_ms = 1'000;
  std::shared_ptr<RecentLog> log =
      std::make_shared<RecentLog>(below, [this] { return wall_ms.load(); });
  Logger logger{log, "here"};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "warnings and errors are kept, and all lines are passed on") {
  logger.info("a");
  logger.warn("b={}", 1);
  wall_ms = 2'000;
  logger.named("there").error("c");
  logger.debug("not written at this level");
  CHECK(below->written == 3);
  const auto lines = log->lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text == "b=1");
  CHECK(lines[0].component == "here");
  CHECK(lines[0].level == LogLevel::kWarn);
  CHECK(lines[0].wall_ms == 1'000);
  CHECK(lines[1].component == "there");
  CHECK(lines[1].level == LogLevel::kError);
  CHECK(lines[1].wall_ms == 2'000);
  logger.sink().set_level(LogLevel::kError);
  logger.warn("d");
  CHECK(log->lines().size() == 2);
}

TEST_CASE_METHOD(Fixture,
                 "lines of one millisecond have an order, even where the clock is set back") {
  logger.warn("a");
  logger.warn("b");
  wall_ms = 500;
  logger.warn("c");
  wall_ms = 1'001;
  logger.warn("d");
  std::set<std::pair<int64_t, int32_t>> keys;
  for (const auto& line : log->lines()) keys.emplace(line.wall_ms, line.order);
  CHECK(keys ==
        std::set<std::pair<int64_t, int32_t>>{{1'000, 0}, {1'000, 1}, {1'000, 2}, {1'001, 0}});
}

TEST_CASE_METHOD(Fixture, "the oldest lines go when there are too many, or too many bytes") {
  for (size_t i = 0; i < RecentLog::kLinesMax + 10; ++i) logger.warn("{}", i);
  auto lines = log->lines();
  CHECK(lines.size() == RecentLog::kLinesMax);
  CHECK(lines.front().text == "10");
  for (int i = 0; i < 1'000; ++i) logger.warn("{}", std::string(100'000, 'x'));
  lines = log->lines();
  CHECK(lines.size() == RecentLog::kBytesMax / RecentLog::kLineBytesMax);
  for (const auto& line : lines) CHECK(line.text.size() == RecentLog::kLineBytesMax);
}

TEST_CASE_METHOD(Fixture, "threads may log at once while it is read") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this] {
      for (int i = 0; i < 500; ++i) {
        logger.warn("{}", i);
        if (i % 50 == 0) log->lines();
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(below->written == 2'000);
  std::set<int32_t> orders;
  for (const auto& line : log->lines()) orders.insert(line.order);
  CHECK(orders.size() == RecentLog::kLinesMax);
}

}  // namespace tetrad::server
