// SPDX-License-Identifier: Apache-2.0
// Compression of envelope bodies in v3 and v4, and raw LZ4 blocks for the segments of v5.
//
//   lz4 body    := u32 uncompressed length (big-endian) | one raw LZ4 block
//   snappy body := plain snappy (its own length first)
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/frame.h"

namespace tetrad::cql {

/// "lz4" and "snappy" in any case.
std::optional<Compression> parse_compression(std::string_view name);
std::string_view name_of(Compression compression);

/// The length that a compressed body declares. Nothing is allocated and nothing else is checked.
/// Fails with kProtocol when the body is too short to say, or says what cannot be.
Result<uint64_t> declared_body_bytes(Compression compression, BytesView body);
/// Decompresses `body` into `to`, which has room for exactly `size` bytes, the declared length.
Result<void> decompress_body(Compression compression, BytesView body, char* to, size_t size);
/// Appends the compressed body to `out`, unless it is no smaller: then appends nothing and returns
/// false.
bool append_compressed_body(Compression compression, BytesView body, Bytes& out);

/// One raw LZ4 block of exactly `size` bytes, into `to`.
Result<void> decompress_lz4_block(BytesView block, char* to, size_t size);
/// Appends a raw LZ4 block to `out` if it is smaller than `bytes`; otherwise appends nothing.
bool append_lz4_block(BytesView bytes, Bytes& out);

}  // namespace tetrad::cql
