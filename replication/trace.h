// SPDX-License-Identifier: Apache-2.0
// What happened to one request whose client asked for a trace: activities with their times. Code
// that works on the request holds a TracePtr and adds to it; it is null for requests that are not
// traced.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
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
    HostId source = {};  // nil: the coordinator
  };

  explicit Trace(const base::Reactor& reactor)
      : reactor_(reactor), started_us_(reactor.wall_time_us()) {}

  void add(std::string activity) {
    if (closed_ || events_.size() >= kEventsMax) return;
    cut_text(activity, kActivityBytesMax);
    events_.push_back({reactor_.wall_time_us(), std::move(activity)});
  }
  /// Of another node, whose answer has come now and says how long it has worked.
  void add_of(HostId source, uint32_t worked_us, std::string received, std::string answered) {
    if (closed_ || events_.size() + 2 > kEventsMax) return;
    const int64_t now_us = reactor_.wall_time_us();
    events_.push_back({std::max(started_us_, now_us - worked_us), std::move(received), source});
    events_.push_back({now_us, std::move(answered), source});
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
