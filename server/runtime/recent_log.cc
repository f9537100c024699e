// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/recent_log.h"

#include <algorithm>

namespace tetrad::server {

// Time and order are the table's key, so a clock that is set back must not give one twice.
void RecentLog::write(base::LogLevel level, std::string_view component, std::string_view line) {
  to_->write(level, component, line);
  if (level < base::LogLevel::kWarn) return;
  const std::lock_guard lock(mutex_);
  Line kept{wall_ms_(), 0, level, std::string(component),
            std::string(line.substr(0, kLineBytesMax))};
  if (!lines_.empty() && kept.wall_ms <= lines_.back().wall_ms) {
    kept.wall_ms = lines_.back().wall_ms;
    kept.order = lines_.back().order + 1;
  }
  bytes_ += kept.text.size();
  lines_.push_back(std::move(kept));
  while (lines_.size() > kLinesMax || bytes_ > kBytesMax) {
    bytes_ -= lines_.front().text.size();
    lines_.pop_front();
  }
}

std::vector<RecentLog::Line> RecentLog::lines() const {
  const std::lock_guard lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

}  // namespace tetrad::server
