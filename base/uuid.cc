// SPDX-License-Identifier: Apache-2.0
// UUIDs from and to text, random ones, and those of a time.
#include "base/uuid.h"

#include "base/assert.h"
#include "base/random.h"

namespace tetrad::base {

// As they are in values and messages.
Uuid Uuid::from_bytes(BytesView bytes) {
  TETRAD_ASSERT(bytes.size() == 16);
  Uuid u;
  std::memcpy(u.octets.data(), bytes.data(), 16);
  return u;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
  // 32 digits and four dashes at fixed places.
  if (text.size() != 36) return std::nullopt;
  Uuid u;
  size_t digit = 0;
  for (size_t i = 0; i < 36; ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return std::nullopt;
      continue;
    }
    int v;
    if (c >= '0' && c <= '9') {
      v = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      v = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      v = c - 'A' + 10;
    } else {
      return std::nullopt;
    }
    TETRAD_ASSERT(digit < 32);
    u.octets[digit / 2] = static_cast<uint8_t>(u.octets[digit / 2] << 4 | v);
    ++digit;
  }
  return u;
}

std::string Uuid::to_string() const {
  const std::string hex = to_hex(view());
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

Uuid make_random_uuid(Random& random) {
  Uuid u;
  const uint64_t a = random.next(), b = random.next();
  std::memcpy(u.octets.data(), &a, 8);
  std::memcpy(u.octets.data() + 8, &b, 8);
  // Version 4, and the variant of RFC 4122.
  u.octets[6] = static_cast<uint8_t>((u.octets[6] & 0x0f) | 0x40);
  u.octets[8] = static_cast<uint8_t>((u.octets[8] & 0x3f) | 0x80);
  return u;
}

// time_low, time_mid, time_hi with the version, clock sequence with the variant, node (RFC 4122,
// 4.1.2).
Uuid make_time_uuid(uint64_t ticks, uint16_t clock_sequence, uint64_t node) {
  Uuid u;
  // `count` bytes of `value` at byte `at`, big-endian.
  const auto put = [&u](int at, uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      u.octets[at + i] = static_cast<uint8_t>(value >> (8 * (count - 1 - i)));
  };
  put(0, ticks & 0xffffffff, 4);
  put(4, (ticks >> 32) & 0xffff, 2);
  put(6, ((ticks >> 48) & 0x0fff) | 0x1000, 2);
  put(8, (clock_sequence & 0x3fff) | 0x8000, 2);
  put(10, node & 0xffffffffffffULL, 6);
  return u;
}

uint64_t uuid_ticks(const Uuid& uuid) {
  const auto get = [&uuid](int at, int count) {
    uint64_t v = 0;
    for (int i = 0; i < count; ++i) v = v << 8 | uuid.octets[at + i];
    return v;
  };
  return get(0, 4) | get(4, 2) << 32 | (get(6, 2) & 0x0fff) << 48;
}

}  // namespace tetrad::base
