// SPDX-License-Identifier: Apache-2.0
// Which bytes are ASCII and which are UTF-8: of values (as Java decodes) and of all other text (as
// the Unicode standard says). Every text that a client sends passes here, so both tests look at
// eight bytes at a time as long as all of them are ASCII.
#include <cstring>

#include "cql/types/strict_utf8.h"
#include "cql/types/value.h"

namespace tetrad::cql {

bool is_valid_ascii(BytesView bytes) {
  const char* next = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; next += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, next, 8);
    if (word & 0x8080808080808080ULL) return false;
  }
  for (; left > 0; ++next, --left) {
    if (*next & 0x80) return false;
  }
  return true;
}

namespace {

// Not strict: as Java's decoder in Cassandra takes it, with surrogates and C0 80 for the character
// 0. Strict: as the standard says, for what goes to drivers.
template <bool strict>
bool is_utf8(BytesView bytes) {
  const auto* next = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = next + bytes.size();
  // Takes `count` bytes that go on with a character.
  const auto continues = [&](int count) {
    if (end - next < count) return false;
    for (int i = 0; i < count; ++i) {
      if ((next[i] & 0xC0) != 0x80) return false;
    }
    next += count;
    return true;
  };
  // Eight bytes of ASCII at a time, since most texts are.
  while (next < end) {
    if (end - next >= 8) {
      uint64_t word;
      std::memcpy(&word, next, 8);
      if ((word & 0x8080808080808080ULL) == 0) {
        next += 8;
        continue;
      }
    }
    const uint8_t lead = *next++;
    if (lead < 0x80) continue;
    // 0 fits no continuation, so an end in the middle is refused.
    const uint8_t second = next < end ? *next : 0;
    if (lead == 0xC0) {  // Java's own spelling of the character 0
      if (strict || second != 0x80) return false;
      ++next;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (!continues(1)) return false;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      if (lead == 0xE0 && second < 0xA0) return false;
      if (strict && lead == 0xED && second > 0x9F) return false;  // half of a surrogate pair
      if (!continues(2)) return false;
    } else if (lead >= 0xF0 && lead <= (strict ? 0xF4 : 0xF7)) {
      if (lead == 0xF0 && second < 0x90) return false;
      if (strict && lead == 0xF4 && second > 0x8F) return false;  // past U+10FFFF
      if (!continues(3)) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_valid_utf8(BytesView bytes) { return is_utf8<false>(bytes); }
bool is_strict_utf8(BytesView bytes) { return is_utf8<true>(bytes); }

}  // namespace tetrad::cql
