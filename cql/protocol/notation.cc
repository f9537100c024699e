// SPDX-License-Identifier: Apache-2.0
// The notations of native protocol v5, section 3: strings with 16 or 32 bits of length, [bytes]
// with -1 for null, [inet].
#include "cql/protocol/notation.h"

#include <algorithm>

#include "base/result.h"
#include "cql/types/strict_utf8.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

// Eight bytes at a time: most texts are ASCII, and statements may be long.
bool is_ascii(BytesView text) {
  constexpr uint64_t kHighBits = 0x8080808080808080ULL;
  const char* p = text.data();
  size_t left = text.size();
  uint64_t seen = 0;
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    seen |= word;
  }
  for (; left > 0; ++p, --left) seen |= static_cast<uint64_t>(static_cast<uint8_t>(*p));
  return (seen & kHighBits) == 0;
}

}  // namespace

Error WireReader::error() const {
  if (bad_utf8_) {
    return {ErrorCode::kProtocol, fmt::format("Cannot decode string as UTF8: {}", failed_at_)};
  }
  return {ErrorCode::kProtocol,
          fmt::format("Malformed message: it ends before the end of its {}", failed_at_)};
}

BytesView WireReader::utf8(BytesView text, const char* what) {
  if (is_ascii(text) || is_strict_utf8(text)) [[likely]]
    return text;
  fail(what, true);
  return {};
}

// A negative length is no null here: statements always have a text.
BytesView WireReader::long_string(const char* what) {
  const int32_t size = i32(what);
  if (size < 0) fail(what);
  return utf8(raw(ok() ? static_cast<size_t>(size) : 0, what), what);
}

Inet WireReader::inet(const char* what) {
  Inet inet;
  inet.size = u8(what);
  if (inet.size != 4 && inet.size != 16) {
    fail(what);
    return {};
  }
  const BytesView address = raw(inet.size, what);
  std::copy(address.begin(), address.end(), inet.octets.begin());
  inet.port = i32(what);
  return inet;
}

// Cuts at 65,535 bytes, at the beginning of a UTF-8 character: error texts may quote what is too
// long.
void append_string(Bytes& out, std::string_view text) {
  constexpr size_t kStringBytesMax = 65535;
  size_t size = text.size();
  if (size > kStringBytesMax) {
    size = kStringBytesMax;
    while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  }
  append_int(out, static_cast<uint16_t>(size));
  out.append(text.data(), size);
}

void append_long_string(Bytes& out, std::string_view text) {
  append_int(out, static_cast<int32_t>(text.size()));
  out.append(text);
}

// The caller keeps them below 64 KiB: ids and tokens.
void append_short_bytes(Bytes& out, BytesView bytes) {
  append_int(out, static_cast<uint16_t>(bytes.size()));
  out.append(bytes);
}

void append_bytes(Bytes& out, std::optional<BytesView> bytes) {
  append_int(out, bytes ? static_cast<int32_t>(bytes->size()) : -1);
  if (bytes) out.append(*bytes);
}

// One byte of length, the address, four bytes of port.
void append_inet(Bytes& out, const Inet& inet) {
  append_int(out, inet.size);
  out.append(inet.address());
  append_int(out, inet.port);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace tetrad::cql
