// SPDX-License-Identifier: Apache-2.0
// A 128 bit UUID (RFC 4122), kept in wire order.
//
//   xxxxxxxx-xxxx-Vxxx-Nxxx-xxxxxxxxxxxx    V: the version; the upper bits of N: the variant, 10
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace tetrad::base {

class Random;

/// A value; compares byte by byte, not as CQL sorts timeuuids.
struct Uuid {
  // In the order in which the text has them.
  std::array<uint8_t, 16> octets{};

  friend auto operator<=>(const Uuid&, const Uuid&) = default;
  /// All zero: "no id".
  bool is_nil() const { return *this == Uuid{}; }
  /// 1 for a timeuuid, 4 for a random one.
  int version() const { return octets[6] >> 4; }
  BytesView view() const { return {reinterpret_cast<const char*>(octets.data()), 16}; }
  /// `bytes` must hold 16.
  static Uuid from_bytes(BytesView bytes);
  /// "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", any case; nothing else.
  /// No braces, no "urn:uuid:", as Cassandra's CQL has no such literals.
  static std::optional<Uuid> parse(std::string_view text);
  std::string to_string() const;
};

/// Version 4, from the given source.
/// 122 random bits.
Uuid make_random_uuid(Random& random);

/// 100 ns intervals since 1582-10-15 for a Unix time in microseconds, as version 1 UUIDs count.
/// Version 1 counts from the beginning of the Gregorian calendar (RFC 4122, 4.1.4).
constexpr uint64_t uuid_ticks_of_unix_us(int64_t unix_us) {
  return static_cast<uint64_t>(unix_us * 10 + 0x01B21DD213814000LL);
}

/// Version 1 UUID of the given ticks (60 bit), clock sequence (14 bit) and node (48 bit).
/// The low 32 bits of the ticks come first, so bytes do not sort by time (cql/types/compare.cc has
/// the order).
Uuid make_time_uuid(uint64_t ticks, uint16_t clock_sequence, uint64_t node);
/// The ticks of a version 1 UUID.
uint64_t uuid_ticks(const Uuid& uuid);

/// For hash tables only: never where an order may reach an output.
/// Mixes both halves: version 1 UUIDs of one node differ in the first only.
struct UuidHash {
  size_t operator()(const Uuid& u) const {
    uint64_t a, b;
    std::memcpy(&a, u.octets.data(), 8);
    std::memcpy(&b, u.octets.data() + 8, 8);
    return static_cast<size_t>(a ^ (b * 0x9E3779B97F4A7C15ULL));
  }
};

}  // namespace tetrad::base

namespace tetrad {
using base::Uuid;
}
