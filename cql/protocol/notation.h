// SPDX-License-Identifier: Apache-2.0
// The notations of the native protocol (v5, section 3): strings, bytes, lists and maps of them. For
// the sources of this room and for clients; no part of its door.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_io.h"
#include "base/error.h"
#include "cql/protocol/inet.h"

namespace tetrad::cql {

/// Reads a message body. The first failure sticks: later reads return nothing, and the caller asks
/// once at the end (or in each round of a loop) whether all went well.
class WireReader {
 public:
  explicit WireReader(BytesView in) : next_(in.data()), end_(in.data() + in.size()) {}

  bool ok() const { return failed_at_ == nullptr; }
  size_t remaining() const { return static_cast<size_t>(end_ - next_); }
  /// What is not read yet; empty after a failure.
  BytesView rest() const { return {next_, remaining()}; }
  /// kProtocol, naming what could not be read.
  Error error() const;

  // `what` names the thing in errors and outlives the reader.
  // Each returns zero or an empty view once a read has failed, so that loops over counts end by
  // themselves when they also ask ok().
  uint8_t u8(const char* what) { return fixed<uint8_t>(what); }
  uint16_t u16(const char* what) { return fixed<uint16_t>(what); }
  int32_t i32(const char* what) { return fixed<int32_t>(what); }
  int64_t i64(const char* what) { return fixed<int64_t>(what); }
  BytesView raw(size_t size, const char* what) {
    if (size > remaining()) [[unlikely]] {
      fail(what);
      return {};
    }
    const BytesView view(next_, size);
    next_ += size;
    return view;
  }
  /// [string]: u16 length, UTF-8. A wrong encoding is a failure.
  BytesView string(const char* what) { return utf8(raw(u16(what), what), what); }
  /// [long string]: i32 length, UTF-8; a negative length is a failure.
  BytesView long_string(const char* what);
  /// [short bytes]: u16 length.
  BytesView short_bytes(const char* what) { return raw(u16(what), what); }
  /// None for null, that is any negative length.
  std::optional<BytesView> bytes(const char* what) {
    const int32_t size = i32(what);
    if (size < 0 || !ok()) return std::nullopt;
    return raw(static_cast<size_t>(size), what);
  }
  /// [inet]: u8 length (4 or 16), address, i32 port.
  Inet inet(const char* what);
  /// Fails unless `count` things of at least `bytes_min` each can follow: ask before making room.
  bool can_hold(size_t count, size_t bytes_min, const char* what) {
    if (count * bytes_min > remaining()) [[unlikely]]
      fail(what);
    return ok();
  }

 private:
  template <class Int>
  Int fixed(const char* what) {
    if (remaining() < sizeof(Int)) [[unlikely]] {
      fail(what);
      return 0;
    }
    const Int value = base::load_big_endian<Int>(next_);
    next_ += sizeof(Int);
    return value;
  }
  // `text` itself if it is UTF-8, otherwise a failure.
  BytesView utf8(BytesView text, const char* what);
  void fail(const char* what, bool bad_utf8 = false) {
    if (failed_at_ == nullptr) {
      failed_at_ = what;
      bad_utf8_ = bad_utf8;
    }
    next_ = end_;
  }

  const char* next_;
  const char* end_;
  // Null: nothing has failed. The name of the first thing that could not be read.
  const char* failed_at_ = nullptr;
  bool bad_utf8_ = false;
};

/// Big-endian, in the size of `Int`.
template <class Int>
void append_int(Bytes& out, Int value) {
  value = base::to_big_endian(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
/// [string]; what is beyond 65535 bytes is cut, between characters.
void append_string(Bytes& out, std::string_view text);
void append_long_string(Bytes& out, std::string_view text);
void append_short_bytes(Bytes& out, BytesView bytes);
/// [bytes]; null if absent.
void append_bytes(Bytes& out, std::optional<BytesView> bytes);
void append_inet(Bytes& out, const Inet& inet);

/// [string list]: u16 count, then [string]s. At most 65,535 of them.
template <class Strings>
void append_string_list(Bytes& out, const Strings& strings) {
  append_int(out, static_cast<uint16_t>(strings.size()));
  for (const auto& text : strings) append_string(out, text);
}

/// Whether two ASCII texts are equal without regard to case.
/// For names of options and events; other letters than ASCII are compared as they are.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace tetrad::cql
