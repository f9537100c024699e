// SPDX-License-Identifier: Apache-2.0
// A Logger is passed in and carries the node's and the component's name. Values as key=value; no
// row contents.
//
// A line in the log, as the sink of standard error writes it:
//   2026-01-31T12:00:00.000 I node serving address=127.0.0.1 native_port=9042
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tetrad::base {

/// What a line is for: Info for an operator's diary, Warn for what they may act on; kOff is the
/// level of a sink that writes none.
enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kOff };

/// Where lines go. Thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// One line, without its end. May be called by any thread.
  virtual void write(LogLevel level, std::string_view component, std::string_view line) = 0;
  /// Lines below it are not even formatted.
  virtual LogLevel level() const = 0;
  /// From any thread, at any time: tetractl changes it while the node runs.
  virtual void set_level(LogLevel level) = 0;
};

/// Standard error through spdlog, asynchronous to nothing: a line is out when the call returns.
std::shared_ptr<LogSink> make_stderr_sink(LogLevel level);
/// Drops everything.
std::shared_ptr<LogSink> make_null_sink();

/// Cheap to copy.
/// May be used by any thread, since the sink may.
class Logger {
 public:
  Logger(std::shared_ptr<LogSink> sink, std::string component)
      : sink_(std::move(sink)), component_(std::move(component)) {}
  Logger() : Logger(make_null_sink(), "") {}

  /// The same sink under another component's name.
  Logger named(std::string component) const { return Logger(sink_, std::move(component)); }
  /// For what is costly to put together before the call.
  bool enabled(LogLevel level) const { return level >= sink_->level(); }
  /// For changing its level. Shared by all loggers of the node.
  LogSink& sink() const { return *sink_; }

  /// The text is checked against its arguments when it is compiled.
  /// debug: for whoever works on Tetrad; info: what an operator notes; warn: what they may act on;
  /// error: something is lost or stops.
  template <class... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) const {
    log(LogLevel::kDebug, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    log(LogLevel::kInfo, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) const {
    log(LogLevel::kWarn, text, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    log(LogLevel::kError, text, std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  void log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) const {
    // The text is put together only for a line that is written.
    if (enabled(level))
      sink_->write(level, component_, fmt::format(text, std::forward<Args>(args)...));
  }
  std::shared_ptr<LogSink> sink_;
  std::string component_;
};

}  // namespace tetrad::base

namespace tetrad {
using base::Logger;
}
