// SPDX-License-Identifier: Apache-2.0
// Counts by the wall clock, since an autoscaled throughput is booked for hours of the day.
#include "replication/throughput/use_meter.h"

#include <algorithm>
#include <utility>

#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSecondUs = 1'000'000, kHour_s = 3600;

uint32_t units_of(int64_t weight) {
  constexpr auto kUnit = static_cast<int64_t>(storage::kWeightOfUnit);
  return static_cast<uint32_t>(std::min<int64_t>((weight + kUnit - 1) / kUnit, UINT32_MAX));
}

}  // namespace

/// What was given back of more than came in the same second had come before.
void UseMeter::close_second() {
  used_.used_ru_per_s = units_of(std::max<int64_t>(std::exchange(weight_, 0), 0));
  used_.busiest_ru_per_s = std::max(used_.busiest_ru_per_s, used_.used_ru_per_s);
}

void UseMeter::advance(int64_t wall_us) {
  const int64_t second = std::max<int64_t>(wall_us / kSecondUs, 0);
  if (second == second_) return;
  close_second();
  // Nothing came in the second before this one.
  if (second > second_ + 1) used_.used_ru_per_s = 0;
  second_ = second;
  const auto hour = static_cast<uint32_t>(std::min<int64_t>(second / kHour_s, UINT32_MAX));
  if (hour == used_.hour || hour + 1 == used_.hour) return;
  // The clock was set back by more than an hour: the busiest second stays, under the new hour.
  if (hour < used_.hour) {
    used_.hour = hour;
    return;
  }
  used_.busiest_before_ru_per_s = hour == used_.hour + 1 ? used_.busiest_ru_per_s : 0;
  used_.busiest_ru_per_s = 0;
  used_.hour = hour;
}

void UseMeter::add(uint64_t weight, int64_t wall_us) {
  advance(wall_us);
  weight_ += static_cast<int64_t>(std::min<uint64_t>(weight, INT64_MAX / 2));
  // Bounds on both sides, so that no sum of absurd weights overflows.
  weight_ = std::min<int64_t>(weight_, INT64_MAX / 2);
}

void UseMeter::give_back(uint64_t weight, int64_t wall_us) {
  advance(wall_us);
  weight_ -= static_cast<int64_t>(std::min<uint64_t>(weight, INT64_MAX / 2));
  weight_ = std::max<int64_t>(weight_, -INT64_MAX / 4);
}

void UseMeter::go_on(const UsedThroughput& before, int64_t wall_us) {
  advance(wall_us);
  // The holder before has counted part of this hour: the busiest second of the hour is that of
  // either.
  if (before.hour == used_.hour) {
    used_.busiest_ru_per_s = std::max(used_.busiest_ru_per_s, before.busiest_ru_per_s);
    used_.busiest_before_ru_per_s = before.busiest_before_ru_per_s;
  } else if (before.hour + 1 == used_.hour) {
    used_.busiest_before_ru_per_s = before.busiest_ru_per_s;
  }
}

UsedThroughput UseMeter::used(int64_t wall_us) {
  advance(wall_us);
  return used_;
}

}  // namespace tetrad::replication
