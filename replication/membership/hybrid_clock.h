// SPDX-License-Identifier: Apache-2.0
// The hybrid clock of a node (design, rule 28): its own time, but never behind the times in other
// nodes' messages. Clients' timestamps never move it. Also whether that time may be trusted: a node
// whose clock is off coordinates nothing. One per node; for any thread, except where a method says
// otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/node_clock.h"
#include "base/reactor.h"

namespace tetrad::replication {

/// How far ahead of its own time a node follows that of another, and how far clocks may be apart.
inline constexpr int64_t kClockSkewMaxUs = 10'000'000;

/// What a node thinks of its own clock.
enum class ClockStanding : uint8_t {
  kSuspect,     // just started, or it may have jumped: the others are asked
  kGood,        // the majority's clocks are near it
  kQuarantine,  // they are not
};

/// The node's clock for timestamps: its own time, or the highest that it has observed in messages
/// if that is higher. One per node; any thread may ask and observe. now_us() never falls by an
/// observation.
class HybridClock {
 public:
  explicit HybridClock(int64_t skew_max_us = kClockSkewMaxUs) : skew_max_us_(skew_max_us) {}

  /// The node's own time, microseconds since 1970.
  int64_t own_us(const base::Reactor& reactor) const { return own_.at(reactor.boot_time_us()); }
  /// Not below any timestamp that was observed.
  int64_t now_us(const base::Reactor& reactor) const {
    return std::max(own_us(reactor), observed_us_.load(std::memory_order_relaxed));
  }
  /// False: too far ahead of the own time, not followed.
  bool observe(int64_t told_us, const base::Reactor& reactor) {
    if (!is_within_bound(told_us, reactor)) return false;
    int64_t known = observed_us_.load(std::memory_order_relaxed);
    while (told_us > known &&
           !observed_us_.compare_exchange_weak(known, told_us, std::memory_order_relaxed)) {
    }
    return true;
  }
  bool is_within_bound(int64_t told_us, const base::Reactor& reactor) const {
    const int64_t own = own_us(reactor);
    return told_us <= own || told_us - skew_max_us_ <= own;
  }
  int64_t skew_max_us() const { return skew_max_us_; }

  /// Set by one thread, see base::NodeClock.
  void begin(int64_t time_us, const base::Reactor& reactor) {
    own_.begin(time_us, reactor.boot_time_us());
  }
  void correct(int64_t time_us, const base::Reactor& reactor) {
    own_.correct(time_us, reactor.boot_time_us());
  }

  ClockStanding standing() const { return standing_.load(std::memory_order_relaxed); }
  /// Whether requests of clients may be coordinated, and repairs and sweeps begun.
  bool is_good() const { return standing() == ClockStanding::kGood; }
  /// `off_us`: how far the wall clock is ahead of the others'; 0: not known.
  void set_standing(ClockStanding standing, int64_t off_us) {
    off_us_.store(off_us, std::memory_order_relaxed);
    standing_.store(standing, std::memory_order_relaxed);
  }
  int64_t off_us() const { return off_us_.load(std::memory_order_relaxed); }
  /// The client's error while the clock is not good.
  base::Error refusal() const;

 private:
  const int64_t skew_max_us_;
  base::NodeClock own_;
  std::atomic<int64_t> observed_us_{std::numeric_limits<int64_t>::min()};
  // Good until somebody watches it.
  std::atomic<ClockStanding> standing_{ClockStanding::kGood};
  std::atomic<int64_t> off_us_{0};
};

}  // namespace tetrad::replication
