// SPDX-License-Identifier: Apache-2.0
// The outer frame of protocol v5; segment.h has its grammar. Its fields are little-endian, unlike
// everything else in the protocol.
#include "cql/protocol/segment.h"

#include <array>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/protocol/compression.h"
#include "cql/protocol/crc32.h"

namespace tetrad::cql {
namespace {

// Both constants are the protocol's (native protocol v5, section 2).
constexpr uint32_t kCrc24Initial = 0x875060;
constexpr uint32_t kCrc24Polynomial = 0x1974F0B;
constexpr uint32_t kLengthMask = 0x1FFFF;

// Byte by byte with a table, from the highest bit on: headers have three or five bytes only.
constexpr std::array<uint32_t, 256> make_crc24_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i << 16;
    for (int bit = 0; bit < 8; ++bit) {
      crc <<= 1;
      if ((crc & 0x1000000) != 0) crc ^= kCrc24Polynomial;
    }
    table[i] = crc;
  }
  return table;
}
constexpr auto kCrc24Table = make_crc24_table();

uint64_t load_little_endian(const char* from, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(from[i]);
  return value;
}

void store_little_endian(char* to, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

uint32_t crc24(BytesView bytes) {
  uint32_t crc = kCrc24Initial;
  for (const char c : bytes)
    crc = ((crc << 8) & 0xFFFFFF) ^ kCrc24Table[(crc >> 16) ^ static_cast<uint8_t>(c)];
  return crc;
}

uint32_t segment_crc32(BytesView bytes) {
  // The protocol begins each CRC32 with these four bytes, so that a payload of zeros has no CRC of
  // zero.
  constexpr uint32_t kCrcOfSeed = 0x44777ED3;  // crc32(0, FA 2D 55 CA)
  return crc32(kCrcOfSeed, bytes);
}

Result<SegmentHeader> decode_segment_header(const char* bytes, bool lz4) {
  // 3 bytes: 17 bits of length, one flag. 5 bytes: 17 bits before and 17 bits after compression,
  // one flag.
  const size_t fields = lz4 ? 5 : 3;
  const auto sent = static_cast<uint32_t>(load_little_endian(bytes + fields, 3));
  const uint32_t computed = crc24({bytes, fields});
  if (sent != computed) {
    return fail(ErrorCode::kProtocol,
                "Unrecoverable CRC mismatch detected in frame header. Read {}, Computed {}", sent,
                computed);
  }
  const uint64_t bits = load_little_endian(bytes, fields);
  SegmentHeader header;
  header.payload_bytes = static_cast<uint32_t>(bits & kLengthMask);
  if (lz4) {
    header.uncompressed_bytes = static_cast<uint32_t>((bits >> 17) & kLengthMask);
    header.self_contained = ((bits >> 34) & 1) != 0;
  } else {
    header.self_contained = ((bits >> 17) & 1) != 0;
  }
  return header;
}

Result<void> check_segment_payload(BytesView payload, const char* trailer) {
  const auto sent = static_cast<uint32_t>(load_little_endian(trailer, kSegmentTrailerBytes));
  const uint32_t computed = segment_crc32(payload);
  if (sent != computed) {
    return fail(ErrorCode::kProtocol,
                "Unrecoverable CRC mismatch detected in frame body. Read {}, Computed {}", sent,
                computed);
  }
  return {};
}

void append_segment(Bytes& out, BytesView payload, bool self_contained, bool lz4) {
  TETRAD_ASSERT(payload.size() <= kSegmentPayloadBytesMax);
  const size_t header_size = segment_header_bytes(lz4);
  const size_t fields = header_size - 3;
  const size_t start = out.size();
  out.append(header_size, '\0');
  uint64_t bits = 0;
  if (lz4) {
    uint64_t uncompressed = payload.size();
    // Compression would not make it smaller: it goes as it is, with 0 for the length before
    // compression.
    if (!append_lz4_block(payload, out)) {
      out.append(payload);
      uncompressed = 0;
    }
    const uint64_t transmitted = out.size() - start - header_size;
    bits = transmitted | uncompressed << 17 | static_cast<uint64_t>(self_contained) << 34;
  } else {
    out.append(payload);
    bits = payload.size() | static_cast<uint64_t>(self_contained) << 17;
  }
  // Written last: the length is known after compression.
  char* header = out.data() + start;
  store_little_endian(header, bits, fields);
  store_little_endian(header + fields, crc24({header, fields}), 3);
  char trailer[kSegmentTrailerBytes];
  const uint32_t crc = segment_crc32(BytesView(out).substr(start + header_size));
  store_little_endian(trailer, crc, kSegmentTrailerBytes);
  out.append(trailer, kSegmentTrailerBytes);
}

// Packs as many whole envelopes into a segment as fit; one that is larger than a segment is cut
// into segments of its own.
void append_segments(Bytes& out, BytesView envelopes, bool lz4) {
  size_t start = 0;  // of what is not in a segment yet
  size_t next = 0;   // behind the last envelope that still fits into it
  const auto flush = [&] {
    if (next > start) append_segment(out, envelopes.substr(start, next - start), true, lz4);
    start = next;
  };
  while (next < envelopes.size()) {
    TETRAD_ASSERT(envelopes.size() - next >= kEnvelopeHeaderBytes);
    const auto body = base::load_big_endian<uint32_t>(envelopes.data() + next + 5);
    const size_t size = kEnvelopeHeaderBytes + body;
    TETRAD_ASSERT(size <= envelopes.size() - next);
    // It does not fit behind the others: they leave first, and it begins a segment of its own.
    if (next - start + size > kSegmentPayloadBytesMax) flush();
    if (size <= kSegmentPayloadBytesMax) {
      next += size;
      continue;
    }
    const size_t end = next + size;
    while (next < end) {
      const size_t part = std::min<size_t>(kSegmentPayloadBytesMax, end - next);
      append_segment(out, envelopes.substr(next, part), false, lz4);
      next += part;
    }
    start = next;
  }
  flush();
}

}  // namespace tetrad::cql
