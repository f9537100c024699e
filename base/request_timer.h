// SPDX-License-Identifier: Apache-2.0
// Latencies of requests of which many begin and end within one turn of the loop, where the loop's own
// clock stands still.
//
//   One is timed by the clock of the moment when a millisecond has passed since the last one that
//   was, or sixteen have come. So a request costs some nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/reactor.h"

namespace tetrad::base {

/// A request that has begun.
struct TimedRequest {
  static constexpr int64_t kNotTimed = INT64_MIN;
  int64_t started_us = kNotTimed;
  uint32_t weight = 0;  // how many requests it stands for: those since the last that was timed
  int64_t last_timed_us = 0;  // before it
  bool is_timed() const { return started_us != kNotTimed; }
  /// By the clock of the moment; nothing where it is not timed.
  std::optional<int64_t> took_us(const Reactor& reactor) const {
    if (!is_timed()) return std::nullopt;
    return std::max<int64_t>(reactor.boot_time_us() - started_us, 0);
  }
};

/// Says which requests of one kind are timed. One thread's.
class RequestTimer {
 public:
  TimedRequest begin(const Reactor& reactor) {
    const int64_t now_us = reactor.now_us();
    if (++since_ < kTimedOfRequests && now_us - timed_us_ < kTimedEveryUs) return {};
    return start(reactor, now_us);
  }
  /// It is begun anew in another way, with nothing in between.
  void take_back(const TimedRequest& request) {
    if (request.is_timed()) {
      since_ = request.weight;
      timed_us_ = request.last_timed_us;
    }
    --since_;
  }

 private:
  static constexpr uint32_t kTimedOfRequests = 16;
  static constexpr int64_t kTimedEveryUs = 1'000;

  TimedRequest start(const Reactor& reactor, int64_t now_us) {
    const TimedRequest request{reactor.boot_time_us(), since_, timed_us_};
    since_ = 0;
    timed_us_ = now_us;
    return request;
  }

  int64_t timed_us_ = INT64_MIN / 2;  // when one began last that was timed; long ago: none was
  uint32_t since_ = 0;                // requests since then
};

/// The latency of each request of one kind. One thread's.
class RequestLatencies {
 public:
  /// `timed_us`: by the clock of the moment, where it was timed; `turns_us`: by the loop's. For one
  /// that was not timed and ended within its turn the last such one stands that was.
  int64_t of(std::optional<int64_t> timed_us, int64_t turns_us) {
    if (turns_us > 0) return timed_us.value_or(turns_us);
    if (timed_us) in_turn_us_ = *timed_us;
    return in_turn_us_;
  }

 private:
  int64_t in_turn_us_ = 0;
};

}  // namespace tetrad::base
