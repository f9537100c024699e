// SPDX-License-Identifier: Apache-2.0
// Sinks of log lines: standard error through spdlog, and none.
#include "base/log.h"

#include <atomic>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace tetrad::base {
namespace {

/// Control bytes of client data must not reach a terminal.
std::string printable(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// A line is `2026-01-31T12:00:00.000+01:00 I component text`, in local time with its offset, so that
/// nodes of two zones can be compared and no hour of autumn comes twice. It is flushed at once: the last line
/// before a crash is the one that is wanted. The level stands here and not in spdlog, since Logger
/// asks for it before it formats.
class StderrSink final : public LogSink {
 public:
  explicit StderrSink(LogLevel level)
      : level_(level), logger_("tetrad", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_level(spdlog::level::trace);
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %L %v");
    logger_.flush_on(spdlog::level::trace);
  }
  void write(LogLevel level, std::string_view component, std::string_view line) override {
    constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                                    spdlog::level::warn, spdlog::level::err,
                                                    spdlog::level::off};
    logger_.log(levels[static_cast<int>(level)], fmt::format("{} {}", component, printable(line)));
  }
  LogLevel level() const override { return level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) override { level_.store(level, std::memory_order_relaxed); }

 private:
  std::atomic<LogLevel> level_;
  spdlog::logger logger_;
};

/// For tests, and for what has no logger yet.
class NullSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view) override {}
  LogLevel level() const override { return LogLevel::kOff; }
  void set_level(LogLevel) override {}
};

}  // namespace

std::shared_ptr<LogSink> make_stderr_sink(LogLevel level) {
  return std::make_shared<StderrSink>(level);
}
std::shared_ptr<LogSink> make_null_sink() { return std::make_shared<NullSink>(); }

}  // namespace tetrad::base
