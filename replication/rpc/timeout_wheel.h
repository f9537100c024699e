// SPDX-License-Identifier: Apache-2.0
// Deadlines of many requests under one timer: a wheel of slots of 4 ms. Adding is O(1); what was
// answered before its deadline is only skipped when its slot comes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/reactor.h"

namespace tetrad::replication {

/// Pure: time is handed in.
class TimeoutWheel {
 public:
  /// 4.096 ms: deadlines are met a little late, never early. 1024 slots reach 4.2 s; later ones go
  /// round again.
  static constexpr int64_t kTickUs = 4096;
  static constexpr size_t kSlots = 1024;

  TimeoutWheel() : slots_(kSlots) {}

  /// `id` is given back once by advance(), in the first tick at or after `at_us`, whether it is
  /// still waited for or not.
  void add(uint64_t id, base::MonotonicUs at_us, base::MonotonicUs now_us) {
    // Nothing waits: the wheel may jump to the present.
    if (count_ == 0) tick_ = now_us / kTickUs;
    int64_t tick = (at_us + kTickUs - 1) / kTickUs;
    if (tick <= tick_) tick = tick_ + 1;
    slots_[static_cast<size_t>(tick) % kSlots].push_back({id, tick});
    ++count_;
  }

  /// Moves every id that is due to `due`.
  void advance(base::MonotonicUs now_us, std::vector<uint64_t>& due) {
    const int64_t now_tick = now_us / kTickUs;
    if (now_tick - tick_ > static_cast<int64_t>(kSlots))
      tick_ = now_tick - static_cast<int64_t>(kSlots);
    while (tick_ < now_tick) {
      ++tick_;
      auto& slot = slots_[static_cast<size_t>(tick_) % kSlots];
      size_t kept = 0;
      for (const Entry& entry : slot) {
        if (entry.tick <= tick_) {
          TETRAD_ASSERT(count_ > 0);
          due.push_back(entry.id);
          --count_;
        } else {
          slot[kept++] = entry;  // a later round of the wheel
        }
      }
      slot.resize(kept);
    }
  }

  /// When advance() should run next; unset: nothing is waiting.
  std::optional<base::MonotonicUs> next_us() const {
    if (count_ == 0) return std::nullopt;
    for (size_t i = 1; i <= kSlots; ++i) {
      const int64_t tick = tick_ + static_cast<int64_t>(i);
      if (!slots_[static_cast<size_t>(tick) % kSlots].empty()) return tick * kTickUs;
    }
    return std::nullopt;
  }

 private:
  /// A call and the tick at which its time is up.
  struct Entry {
    uint64_t id;
    int64_t tick;
  };
  std::vector<std::vector<Entry>> slots_;
  int64_t tick_ = 0;  // slots up to here are done
  size_t count_ = 0;
};

}  // namespace tetrad::replication
