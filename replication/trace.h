// SPDX-License-Identifier: Apache-2.0
// What happened to one request whose client asked for a trace: activities with their times. Code
// that works on the request holds a TracePtr and adds to it; it is null for requests that are not
// traced.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/reactor.h"

namespace tetrad::replication {

/// Shortens a text to about `size` bytes and leaves it valid UTF-8.
inline void cut_text(std::string& text, size_t size) {
  if (text.size() <= size) return;
  while (size != 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  text.resize(size);
  text += "...";
}

/// Belongs to one shard. Bounded; what comes after close() (late answers of replicas) is left out.
class Trace {
 public:
  static constexpr size_t kEventsMax = 500, kActivityBytesMax = 1'000;
  /// One line of a trace.
  struct Event {
    int64_t at_us;  // wall clock
    std::string activity;
  };

  explicit Trace(const base::Reactor& reactor)
      : reactor_(reactor), started_us_(reactor.wall_time_us()) {}

  void add(std::string activity) {
    if (closed_ || events_.size() >= kEventsMax) return;
    cut_text(activity, kActivityBytesMax);
    events_.push_back({reactor_.wall_time_us(), std::move(activity)});
  }
  void close() { closed_ = true; }

  int64_t started_us() const { return started_us_; }
  const std::vector<Event>& events() const { return events_; }

 private:
  const base::Reactor& reactor_;
  const int64_t started_us_;
  std::vector<Event> events_;
  bool closed_ = false;
};
using TracePtr = std::shared_ptr<Trace>;

}  // namespace tetrad::replication
