// SPDX-License-Identifier: Apache-2.0
// The time of a node: where it was set, and what the machine has counted since, also while it was
// suspended. A step of the wall clock does not move it. It is corrected forward at once and
// backward by running at half speed, so it never goes back. One thread sets it, any may read.
//
// Why not the wall clock: timestamps of writes and the times of tombstones must rise, and an
// operator or NTP may set the wall clock back. replication/membership decides when and to what it
// is set.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tetrad::base {

/// One per node. Between two calls of begin(), at() never goes back. A version counter keeps a reader
/// from mixing two settings.
class NodeClock {
 public:
  /// Starts at `time_us` anew, whatever it was.
  /// Sets it outright: the only call that may make the time go back.
  void begin(int64_t time_us, int64_t boot_us) { set(time_us, boot_us, 0); }

  /// Microseconds since 1970. `boot_us`: Reactor::boot_time_us() of the reader.
  int64_t at(int64_t boot_us) const {
    // A sequence lock: a reader that meets a change, or half of one, reads again. Writers never
    // wait.
    for (;;) {
      const uint64_t version = version_.load(std::memory_order_acquire);
      const int64_t set_at = set_at_us_.load(std::memory_order_acquire);
      const int64_t time = time_us_.load(std::memory_order_acquire);
      const int64_t ahead = ahead_us_.load(std::memory_order_acquire);
      if (version % 2 != 0 || version != version_.load(std::memory_order_relaxed)) continue;
      // A reader's turn may have begun before the clock was set.
      const int64_t passed = std::max<int64_t>(0, boot_us - set_at);
      // At half speed until ahead_us is lost: of `passed` one half counts.
      return time + passed - std::min(passed / 2, ahead);
    }
  }

  /// Towards `time_us`, which is right now.
  /// Behind: the clock jumps forward. Ahead: it keeps what it shows and slows down.
  void correct(int64_t time_us, int64_t boot_us) {
    const int64_t now_us = at(boot_us);
    set(std::max(now_us, time_us), boot_us, std::max<int64_t>(0, now_us - time_us));
  }

 private:
  void set(int64_t time_us, int64_t boot_us, int64_t ahead_us) {
    const uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    set_at_us_.store(boot_us, std::memory_order_release);
    time_us_.store(time_us, std::memory_order_release);
    ahead_us_.store(ahead_us, std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  std::atomic<uint64_t> version_{0};  // odd while it is being set
  std::atomic<int64_t> set_at_us_{0}, time_us_{0};
  std::atomic<int64_t> ahead_us_{0};  // to be lost by running at half speed
};

}  // namespace tetrad::base
