// SPDX-License-Identifier: Apache-2.0
// Reading of ordered keys byte by byte, in either direction (grammar: ordered_encoding.h). For
// ordered_encoding.cc alone: the readers of the types stand there, beside their writers.
#pragma once

#include <cstring>

#include "base/byte_io.h"
#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

/// Inverts every byte of `out` from `start` on: a component of a DESC column, or the digits of a
/// negative decimal.
inline void invert_from(Bytes& out, size_t start) {
  for (size_t i = start; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
}

/// Reads encoded bytes, turning inverted ones back.
class OrderedCursor {
 public:
  OrderedCursor(BytesView in, bool inverted) : in_(in), mask_(inverted ? 0xFF : 0) {}

  BytesView rest() const { return in_; }
  void toggle_inversion() { mask_ = static_cast<uint8_t>(~mask_); }

  Result<uint8_t> read_u8() {
    if (in_.empty()) return cut_short();
    const auto byte = static_cast<uint8_t>(static_cast<uint8_t>(in_[0]) ^ mask_);
    in_.remove_prefix(1);
    return byte;
  }
  Result<uint8_t> peek() const {
    if (in_.empty()) return cut_short();
    return static_cast<uint8_t>(static_cast<uint8_t>(in_[0]) ^ mask_);
  }
  template <class UInt>
  Result<UInt> read_fixed() {
    if (in_.size() < sizeof(UInt)) return cut_short();
    auto value = base::load_big_endian<UInt>(in_.data());
    if (mask_ != 0) value = static_cast<UInt>(~value);
    in_.remove_prefix(sizeof(UInt));
    return value;
  }
  Result<void> read_raw(Bytes& out, size_t size) {
    if (in_.size() < size) return cut_short();
    append(out, in_.substr(0, size));
    in_.remove_prefix(size);
    return {};
  }
  Result<void> read_escaped(Bytes& out) {
    const char zero = static_cast<char>(mask_);
    for (;;) {
      const void* const at = in_.empty() ? nullptr : std::memchr(in_.data(), zero, in_.size());
      if (at == nullptr) return cut_short();
      const auto run = static_cast<size_t>(static_cast<const char*>(at) - in_.data());
      append(out, in_.substr(0, run));
      in_.remove_prefix(run + 1);
      TETRAD_TRY(const uint8_t next, read_u8());
      if (next == 0x01) return {};
      if (next != 0xFF) return fail(ErrorCode::kCorruption, "escape byte {:#x} in a key", next);
      out.push_back('\0');
    }
  }

  static std::unexpected<Error> cut_short() {
    return fail(ErrorCode::kCorruption, "an encoded value is cut short");
  }

 private:
  void append(Bytes& out, BytesView bytes) {
    const size_t start = out.size();
    out.append(bytes);
    if (mask_ != 0) invert_from(out, start);
  }
  BytesView in_;
  uint8_t mask_;
};

}  // namespace tetrad::cql
