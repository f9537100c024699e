// SPDX-License-Identifier: Apache-2.0
// How much work a tablet gets: in slots of a quarter of a second, of the last ten seconds, and the
// busiest second of each of the last minutes. Pure: time is handed in. Adding costs a few
// nanoseconds, since it is done for every request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tetrad::partitioner {

/// Work, in the caller's unit, and bytes: of a slot, or per second.
struct HeatSum {
  double reads = 0, writes = 0, bytes = 0;

  double work() const { return reads + writes; }
};

/// From where on a slot is hot; 0: never by this. Per second.
struct HeatLimit {
  double work = 0, bytes = 0;
};

/// The work of one tablet at one store over the last ten seconds. Owned by the store's thread. Time
/// never goes back.
class HeatMeter {
 public:
  static constexpr int64_t kSlotUs = 250'000;
  static constexpr size_t kSlots = 40, kMinutes = 5;
  static constexpr size_t kSlotsPerSecond = 4, kSlotsPerMinute = 240;

  explicit HeatMeter(int64_t now_us) : slot_(now_us / kSlotUs), ends_us_((slot_ + 1) * kSlotUs) {}

  void add_read(int64_t now_us, uint64_t work, uint64_t bytes) {
    if (now_us >= ends_us_) settle(now_us);
    reads_ += work;
    bytes_ += bytes;
  }
  void add_write(int64_t now_us, uint64_t work, uint64_t bytes) {
    if (now_us >= ends_us_) settle(now_us);
    writes_ += work;
    bytes_ += bytes;
  }

  /// Closes the slots that are over.
  void settle(int64_t now_us);

  /// Mean per second of the last `slots` slots that are closed, 40 at most.
  HeatSum recent(size_t slots) const;
  /// How many of them were hot.
  size_t hot_slots(size_t slots, const HeatLimit& limit) const;
  /// The most in one second (work, then bytes), of this minute and the one before: of one to two
  /// minutes. `reads` is 0: that second's reads and writes are counted together.
  HeatSum busiest_second() const;
  /// The same of a minute; 0: the present one, at most kMinutes - 1.
  HeatSum busiest_second_of_minute(size_t minutes_ago) const;

 private:
  /// What came in one slot of time: weights of reads and writes, and bytes.
  struct Slot {
    float reads = 0, writes = 0, bytes = 0;
  };
  /// The busiest second of a minute: its work, and its bytes, which need not be of the same second.
  struct Minute {
    float work = 0, bytes = 0;
  };
  void close(const Slot& slot);
  const Slot& closed(size_t slots_ago) const {
    return slots_[(next_ + kSlots - 1 - slots_ago) % kSlots];
  }

  uint64_t reads_ = 0, writes_ = 0, bytes_ = 0;  // of the slot that is open
  int64_t slot_;                                 // its number since the clock's beginning
  int64_t ends_us_;
  size_t next_ = 0;  // where the next one that closes goes
  std::array<Slot, kSlots> slots_{};
  std::array<Minute, kMinutes> minutes_{};  // the present one first
};

}  // namespace tetrad::partitioner
