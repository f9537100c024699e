// SPDX-License-Identifier: Apache-2.0
// Slots are closed by the work that comes after them, or by settle(); between the two a meter costs
// nothing.
#include "partitioner/heat_meter.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::partitioner {

void HeatMeter::close(const Slot& slot) {
  slots_[next_] = slot;
  next_ = (next_ + 1) % kSlots;
  float work = 0, bytes = 0;  // of the second that ends with it
  for (size_t i = 0; i < kSlotsPerSecond; ++i) {
    work += closed(i).reads + closed(i).writes;
    bytes += closed(i).bytes;
  }
  minutes_[0].work = std::max(minutes_[0].work, work);
  minutes_[0].bytes = std::max(minutes_[0].bytes, bytes);
  if (++slot_ % static_cast<int64_t>(kSlotsPerMinute) != 0) return;
  // The minute that is open is always the first.
  std::shift_right(minutes_.begin(), minutes_.end(), 1);
  minutes_[0] = {};
}

void HeatMeter::settle(int64_t now_us) {
  if (now_us < ends_us_) return;
  close({static_cast<float>(reads_), static_cast<float>(writes_), static_cast<float>(bytes_)});
  reads_ = writes_ = bytes_ = 0;
  const int64_t now = now_us / kSlotUs;
  // Past this many empty slots each further one changes nothing.
  constexpr int64_t kAll = static_cast<int64_t>(kSlotsPerMinute * kMinutes + kSlots);
  if (now - slot_ > kAll) slot_ = now - kAll;
  while (slot_ < now) close({});
  ends_us_ = (slot_ + 1) * kSlotUs;
  TETRAD_ASSERT(now_us < ends_us_);
}

HeatSum HeatMeter::recent(size_t slots) const {
  TETRAD_ASSERT(slots > 0 && slots <= kSlots);
  HeatSum sum;
  for (size_t i = 0; i < slots; ++i) {
    sum.reads += closed(i).reads;
    sum.writes += closed(i).writes;
    sum.bytes += closed(i).bytes;
  }
  const double seconds = static_cast<double>(slots) / kSlotsPerSecond;
  return {sum.reads / seconds, sum.writes / seconds, sum.bytes / seconds};
}

size_t HeatMeter::hot_slots(size_t slots, const HeatLimit& limit) const {
  TETRAD_ASSERT(slots <= kSlots);
  size_t hot = 0;
  for (size_t i = 0; i < slots; ++i) {
    const Slot& slot = closed(i);
    const double work = double{slot.reads} + slot.writes;
    hot += (limit.work > 0 && work * kSlotsPerSecond >= limit.work) ||
                   (limit.bytes > 0 && double{slot.bytes} * kSlotsPerSecond >= limit.bytes)
               ? 1
               : 0;
  }
  return hot;
}

HeatSum HeatMeter::busiest_second_of_minute(size_t minutes_ago) const {
  const Minute& minute = minutes_.at(minutes_ago);
  return {0, minute.work, minute.bytes};
}

HeatSum HeatMeter::busiest_second() const {
  return {0, std::max(minutes_[0].work, minutes_[1].work),
          std::max(minutes_[0].bytes, minutes_[1].bytes)};
}

}  // namespace tetrad::partitioner
