// SPDX-License-Identifier: Apache-2.0
// The heat of a tablet: the work that its members do for it, in request units. Each member measures
// its own (heat_meters.h) and tells all nodes of what is more than nothing;
// MetaService::tablet_heat() has what they said. A read counts where it is done, a write at every
// member.
#pragma once

#include <cstdint>

namespace tetrad::replication {

/// What a tablet carries: of one member, or of all together: then reads are the sum over the
/// members by W of them, writes and bytes those of the member that has most.
struct TabletHeat {
  /// Means of the last two and a half seconds.
  uint64_t read_ru_per_s = 0, write_ru_per_s = 0, bytes_per_s = 0;
  /// Of the busiest second of the last minute at least, and of two minutes at most. What was
  /// refused or timed out after it had come to a member counts: a stall does not look cold.
  uint64_t ru_per_s_most = 0, bytes_per_s_most = 0;

  uint64_t ru_per_s() const { return read_ru_per_s + write_ru_per_s; }
  bool is_nothing() const { return ru_per_s_most == 0 && bytes_per_s_most == 0 && ru_per_s() == 0; }
  friend bool operator==(const TabletHeat&, const TabletHeat&) = default;
};

/// A node that has just begun has heard of nobody's heat: until this time has passed "nothing" does
/// not mean that a tablet is cold.
inline constexpr int64_t kHeatHeardWithinUs = 60'000'000;

}  // namespace tetrad::replication
