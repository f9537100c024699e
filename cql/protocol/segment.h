// SPDX-License-Identifier: Apache-2.0
// Segments of protocol v5 (native protocol v5, section 2): the frame around one or more envelopes,
// or around a part of a large one. Integers of header and trailer are little-endian.
//
//   plain   := u24 { length 17 bits | self-contained bit 17 } crc24 | payload | crc32
//   lz4     := u40 { compressed 17 | uncompressed 17 | self-contained bit 34 } crc24 | payload | crc32
//
// uncompressed = 0 in an lz4 header: the payload is stored as it is, being no smaller compressed.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/frame.h"

namespace tetrad::cql {

inline constexpr uint32_t kSegmentPayloadBytesMax = 131071;
inline constexpr size_t kSegmentTrailerBytes = 4;
inline constexpr size_t kSegmentHeaderBytesMax = 8;

/// 6 plain, 8 with LZ4.
constexpr size_t segment_header_bytes(bool lz4) { return lz4 ? 8 : 6; }

uint32_t crc24(BytesView bytes);
/// CRC-32 of zlib over FA 2D 55 CA and then `bytes`.
uint32_t segment_crc32(BytesView bytes);

/// A decoded header whose CRC was right. Both lengths are at most kSegmentPayloadBytesMax, being 17
/// bits.
struct SegmentHeader {
  uint32_t payload_bytes = 0;       // on the wire
  uint32_t uncompressed_bytes = 0;  // 0: the payload is not compressed
  bool self_contained = false;
};

/// `bytes` must hold segment_header_bytes(lz4). Fails with kProtocol on a CRC mismatch.
Result<SegmentHeader> decode_segment_header(const char* bytes, bool lz4);
/// Checks the CRC of a payload as transmitted. Fails with kProtocol.
Result<void> check_segment_payload(BytesView payload, const char* trailer);

/// Appends one segment around `payload` (at most kSegmentPayloadBytesMax).
void append_segment(Bytes& out, BytesView payload, bool self_contained, bool lz4);
/// Appends the whole `envelopes` (each whole, one after another) in as few segments as they fit in;
/// an envelope larger than a segment gets its own run of parts.
void append_segments(Bytes& out, BytesView envelopes, bool lz4);

}  // namespace tetrad::cql
