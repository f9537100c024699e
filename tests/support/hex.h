// SPDX-License-Identifier: Apache-2.0
// Bytes from hex digits, for expectations that stand in a test.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tetrad::tests {

/// Two digits make a byte; spaces between digits are for the reader.
inline Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  std::string digits;
  for (const char c : hex)
    if (c != ' ') digits.push_back(c);
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace tetrad::tests
