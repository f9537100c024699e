// SPDX-License-Identifier: Apache-2.0
// Texts code point by code point. A byte that belongs to no character is carried as it is, and comes
// out unchanged.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tetrad::cql {

using CodePoints = std::u32string;

/// Of what is no UTF-8: with the byte itself.
inline constexpr char32_t kRawByte = 0x80000000;

/// Takes a code point off the front of `text`, which is not empty.
inline char32_t take_code_point(BytesView& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  // By the first byte; 0 for one that may only follow.
  const size_t size = head < 0x80 ? 1 : head < 0xC0 ? 0 : head < 0xE0 ? 2 : head < 0xF0 ? 3 : 4;
  bool is_whole = size != 0 && size <= text.size() && head < 0xF8;
  for (size_t i = 1; is_whole && i < size; ++i) is_whole = (byte(i) & 0xC0) == 0x80;
  if (!is_whole) {
    text.remove_prefix(1);
    return kRawByte | head;
  }
  char32_t code_point = size == 1 ? head : head & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) code_point = code_point << 6 | (byte(i) & 0x3F);
  text.remove_prefix(size);
  return code_point;
}

inline void append_code_point(Bytes& out, char32_t c) {
  if (c >= kRawByte || c < 0x80) {
    out += static_cast<char>(c & 0xFF);
    return;
  }
  const int size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  out += static_cast<char>((0xF00 >> size & 0xFF) | c >> (6 * (size - 1)));
  for (int i = size - 2; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

inline CodePoints code_points_of(BytesView text) {
  CodePoints out;
  out.reserve(text.size());
  while (!text.empty()) out += take_code_point(text);
  return out;
}

inline Bytes utf8_of(const CodePoints& text) {
  Bytes out;
  out.reserve(text.size());
  for (const char32_t c : text) append_code_point(out, c);
  return out;
}

}  // namespace tetrad::cql
