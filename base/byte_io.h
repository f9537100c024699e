// SPDX-License-Identifier: Apache-2.0
// Writing and reading of fixed and variable integers and length-prefixed bytes. Fixed integers are
// big-endian.
//
// These words mean the same in every grammar of the project:
//   u8 u16 u32 u64 i32 i64 := fixed, big-endian, signed ones in two's complement
//   varint := LEB128: seven bits a byte, least significant first, bit 7 set in all but the last byte;
//             at most 10 bytes
//   zigzag := varint of (n << 1) ^ (n >> 63), so that small negative numbers are short
//   bytes  := varint size, that many bytes
//   x*     := any number of x;  [x] := x or nothing, as flags before it say;  x | y := either
//   example: ac02 03 02 6869   varint 300, zigzag -2, bytes "hi"
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::base {

/// Its own inverse.
/// The integer whose bytes in memory are those of `value` in big-endian order.
template <class Int>
constexpr Int to_big_endian(Int value) {
  if constexpr (std::endian::native == std::endian::little && sizeof(Int) > 1) {
    if constexpr (sizeof(Int) == 2)
      return static_cast<Int>(__builtin_bswap16(static_cast<uint16_t>(value)));
    if constexpr (sizeof(Int) == 4)
      return static_cast<Int>(__builtin_bswap32(static_cast<uint32_t>(value)));
    if constexpr (sizeof(Int) == 8)
      return static_cast<Int>(__builtin_bswap64(static_cast<uint64_t>(value)));
  }
  return value;
}

/// Reads a big-endian integer at `from`, which must hold sizeof(Int) bytes.
/// By memcpy, so that `from` needs no alignment.
template <class Int>
Int load_big_endian(const char* from) {
  Int value;
  std::memcpy(&value, from, sizeof(Int));
  return to_big_endian(value);
}

/// Writes sizeof(Int) bytes.
template <class Int>
void store_big_endian(char* to, Int value) {
  value = to_big_endian(value);
  std::memcpy(to, &value, sizeof(Int));
}

/// Appends to a buffer that outlives it.
/// Never fails: sizes are checked by who writes.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  /// Integers as in the grammar above: fixed, big-endian.
  void u8(uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u16(uint16_t v) { fixed(v); }
  void u32(uint32_t v) { fixed(v); }
  void i32(int32_t v) { fixed(v); }
  void u64(uint64_t v) { fixed(v); }
  void i64(int64_t v) { fixed(v); }
  /// The bytes alone, without a length.
  void raw(BytesView v) { out_.append(v); }
  /// 1 to 10 bytes.
  void varint(uint64_t v) {
    char buffer[10];
    size_t n = 0;
    while (v >= 0x80) {
      buffer[n++] = static_cast<char>(v | 0x80);
      v >>= 7;
    }
    buffer[n++] = static_cast<char>(v);
    out_.append(buffer, n);
  }
  // 1 to 10 bytes; numbers from -64 to 63 have one.
  void zigzag(int64_t v) {
    varint((static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63));
  }
  /// varint length, then the bytes
  void bytes(BytesView v) {
    varint(v.size());
    raw(v);
  }
  /// The buffer that it appends to, for appending by other means in between.
  Bytes& out() { return out_; }

 private:
  // Eight bytes at most, appended in one piece.
  template <class Int>
  void fixed(Int v) {
    v = to_big_endian(v);
    out_.append(reinterpret_cast<const char*>(&v), sizeof(v));
  }
  // Not owned.
  Bytes& out_;
};

/// Reads from a view that outlives it and what it returns. Every method fails with kCorruption past
/// the end.
/// Views that it gives point into the input. Sizes are compared with what is left before anything
/// is allocated for them.
class ByteReader {
 public:
  explicit ByteReader(BytesView in) : next_(in.data()), end_(in.data() + in.size()) {}

  /// Bytes that were not read yet.
  /// Bounds a count that was read: a list of n things has n bytes at least.
  size_t remaining() const { return static_cast<size_t>(end_ - next_); }
  // Whoever reads a whole message asks this at the end: bytes too many are an error as well.
  bool at_end() const { return next_ == end_; }
  /// Where the next byte is; good as long as the input.
  const char* position() const { return next_; }

  // Each takes its bytes off the front, and fails without taking any.
  Result<uint8_t> read_u8() { return fixed<uint8_t>(); }
  Result<uint16_t> read_u16() { return fixed<uint16_t>(); }
  Result<uint32_t> read_u32() { return fixed<uint32_t>(); }
  Result<int32_t> read_i32() { return fixed<int32_t>(); }
  Result<uint64_t> read_u64() { return fixed<uint64_t>(); }
  Result<int64_t> read_i64() { return fixed<int64_t>(); }
  /// A view into the input, of exactly `size` bytes.
  /// For bytes whose number is known from elsewhere.
  Result<BytesView> read_raw(size_t size) {
    if (size > remaining()) return short_read(size);
    const BytesView view(next_, size);
    next_ += size;
    return view;
  }
  /// Also fails for a number of more than 64 bits; a longer form of a number is taken.
  Result<uint64_t> read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (next_ == end_) return short_read(1);
      const auto b = static_cast<uint8_t>(*next_++);
      // The tenth byte has one bit of the number: anything more would be lost.
      if (shift == 63 && b > 1) break;
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
    return fail(ErrorCode::kCorruption, "varint of more than 64 bits");
  }
  // The inverse of ByteWriter::zigzag().
  Result<int64_t> read_zigzag() {
    TETRAD_TRY(const uint64_t v, read_varint());
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  /// A view into the input. The size is compared with what is left before it is used.
  Result<BytesView> read_bytes() {
    TETRAD_TRY(const uint64_t size, read_varint());
    if (size > remaining()) return short_read(size);
    return read_raw(static_cast<size_t>(size));
  }

 private:
  template <class Int>
  Result<Int> fixed() {
    if (remaining() < sizeof(Int)) return short_read(sizeof(Int));
    const Int value = load_big_endian<Int>(next_);
    next_ += sizeof(Int);
    return value;
  }
  // Nothing is consumed by a read that fails.
  std::unexpected<Error> short_read(uint64_t wanted) const {
    return fail(ErrorCode::kCorruption, "{} bytes wanted, {} left", wanted, remaining());
  }
  // next_ <= end_ always; no pointer past the end is made.
  const char* next_;
  const char* end_;
};

}  // namespace tetrad::base
