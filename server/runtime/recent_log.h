// SPDX-License-Identifier: Apache-2.0
// The last warnings and errors of the node, for system_views.system_logs: a sink in front of that which
// writes the log.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace tetrad::server {

/// Passes all lines on, and keeps the last ones. Thread-safe. Below a warning nothing is kept, so who
/// logs no trouble takes no lock.
class RecentLog final : public base::LogSink {
 public:
  static constexpr size_t kLinesMax = 1'000, kBytesMax = 512 << 10, kLineBytesMax = 4 << 10;

  struct Line {
    int64_t wall_ms;  // never before the line ahead of it
    int32_t order;    // among those of one millisecond
    base::LogLevel level;
    std::string component, text;  // cut to kLineBytesMax
  };

  /// `wall_ms` is asked on any thread.
  RecentLog(std::shared_ptr<base::LogSink> to, std::function<int64_t()> wall_ms)
      : to_(std::move(to)), wall_ms_(std::move(wall_ms)) {}

  void write(base::LogLevel level, std::string_view component, std::string_view line) override;
  base::LogLevel level() const override { return to_->level(); }
  void set_level(base::LogLevel level) override { to_->set_level(level); }

  /// Oldest first.
  std::vector<Line> lines() const;

 private:
  const std::shared_ptr<base::LogSink> to_;
  const std::function<int64_t()> wall_ms_;
  mutable std::mutex mutex_;
  std::deque<Line> lines_;
  size_t bytes_ = 0;  // of their texts
};

}  // namespace tetrad::server
