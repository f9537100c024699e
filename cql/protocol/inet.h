// SPDX-License-Identifier: Apache-2.0
// [inet] of the native protocol: an address of 4 or 16 bytes and a port.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tetrad::cql {

/// An address and a port as values; octets beyond `size` are zero, so that equality is that of the
/// members.
struct Inet {
  std::array<uint8_t, 16> octets{};
  // As in [inet] of the protocol: u8 size, the octets, i32 port.
  uint8_t size = 4;  // 4 or 16
  int32_t port = 0;

  BytesView address() const { return {reinterpret_cast<const char*>(octets.data()), size}; }
  /// Of an address in numbers ("127.0.0.1", "::1", with or without "[]"); nothing else.
  /// Names are not looked up.
  static std::optional<Inet> parse(std::string_view address, int32_t port);
  /// "127.0.0.1", without the port.
  std::string address_text() const;
  friend bool operator==(const Inet&, const Inet&) = default;
};

}  // namespace tetrad::cql
