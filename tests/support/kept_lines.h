// SPDX-License-Identifier: Apache-2.0
// A log whose lines a test looks at.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"

namespace tetrad::tests {

/// Keeps its lines, from `level` on. One thread.
class KeptLines final : public base::LogSink {
 public:
  explicit KeptLines(base::LogLevel level = base::LogLevel::kWarn) : level_(level) {}
  void write(base::LogLevel, std::string_view, std::string_view line) override {
    lines.emplace_back(line);
  }
  base::LogLevel level() const override { return level_; }
  void set_level(base::LogLevel level) override { level_ = level; }

  std::vector<std::string> lines;

 private:
  base::LogLevel level_;
};

}  // namespace tetrad::tests
