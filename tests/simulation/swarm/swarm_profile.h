// SPDX-License-Identifier: Apache-2.0
// Which kinds of trouble a seed of the swarm has: a random subset of all, so that each two of them
// meet in some seeds and each is away from the others in some (swarm testing). Printed by name; a
// kind can be taken out of a seed that fails, until what is left is needed for the failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"

namespace tetrad::simulation {

enum class Trouble : uint8_t {
  kLoss,        // messages are lost
  kDelays,      // some are late
  kDuplicates,  // some come twice
  kPartitions,  // one node is cut off
  kOneWay,      // messages pass in one direction only
  kDeaf,        // a node hears nothing of the metadata group
  kDisks,       // disk_nemesis.h
  kClocks,      // clock_nemesis.h
  kKills,       // processes end, two at a time at most
  kPower,       // one machine at a time loses power, writes are synced now and then
  kSyncs,       // every write is synced before it is acknowledged
  kJoins,
  kLeaves,  // nodes are decommissioned
  kLosses,  // a node dies for good and is taken out
  kWipes,   // a node comes back at its address without its disk
  kSplits,
  kMerges,
  kHeat,     // tablets are split by heat, and merged when they are cold
  kBalance,  // tablets are moved as soon as nodes are not equal
  kTruncates,
  kPurges,   // repairs and sweeps every second
  kCenters,  // two data centres
  kRacks,    // several nodes share one
  kTiny,     // pages and queues of a few keys
  kShort,    // requests have a tenth of the time
};
inline constexpr size_t kTroubles = static_cast<size_t>(Trouble::kShort) + 1;

std::string_view name_of(Trouble trouble);

class SwarmProfile {
 public:
  /// A quarter, a half or three quarters of all.
  static SwarmProfile of_seed(uint64_t seed);
  /// Names with commas between them. Unset: one of them is none.
  static std::optional<SwarmProfile> parse(std::string_view names);

  bool has(Trouble trouble) const { return (bits_ >> static_cast<int>(trouble) & 1) != 0; }
  void add(Trouble trouble) { bits_ |= uint32_t{1} << static_cast<int>(trouble); }
  SwarmProfile without(SwarmProfile others) const { return SwarmProfile(bits_ & ~others.bits_); }
  /// As parse() takes it.
  std::string text() const;

  SwarmProfile() = default;

 private:
  explicit SwarmProfile(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

}  // namespace tetrad::simulation
