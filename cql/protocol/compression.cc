// SPDX-License-Identifier: Apache-2.0
// Bodies of v3 and v4 (each envelope by itself) and payloads of v5 segments (LZ4 blocks). LZ4
// bodies of v3 and v4 begin with their plain length in 4 bytes, big-endian; snappy has it inside.
// Nothing a peer declares is believed before it is checked against what its bytes could hold.
#include "cql/protocol/compression.h"

#include <lz4.h>
#include <snappy.h>

#include "base/byte_io.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql {
namespace {

constexpr size_t kLengthBytes = 4;
// What one compressed byte can become at most: LZ4 length bytes add 255 each; a copy of snappy
// makes 64 bytes of 3. A body that declares more lies, so no memory is taken for it.
constexpr uint64_t kLz4RatioMax = 255;
constexpr uint64_t kSnappyRatioMax = 32;

// What is wrong with a body is of no use to a client whose compressor is broken: one text for all.
std::unexpected<Error> broken(Compression compression) {
  return fail(ErrorCode::kProtocol, "Malformed {} body", name_of(compression));
}

}  // namespace

std::optional<Compression> parse_compression(std::string_view name) {
  if (equal_ignoring_case(name, "lz4")) return Compression::kLz4;
  if (equal_ignoring_case(name, "snappy")) return Compression::kSnappy;
  return std::nullopt;
}

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::kLz4:
      return "lz4";
    case Compression::kSnappy:
      return "snappy";
    case Compression::kNone:
      break;
  }
  return "none";
}

Result<uint64_t> declared_body_bytes(Compression compression, BytesView body) {
  uint64_t declared = 0, possible = 0;
  if (compression == Compression::kLz4) {
    if (body.size() < kLengthBytes) return broken(compression);
    declared = base::load_big_endian<uint32_t>(body.data());
    possible = (body.size() - kLengthBytes) * kLz4RatioMax;
  } else {
    size_t length = 0;
    if (!snappy::GetUncompressedLength(body.data(), body.size(), &length)) {
      return broken(compression);
    }
    declared = length;
    possible = body.size() * kSnappyRatioMax;
  }
  if (declared > possible) {
    return fail(ErrorCode::kProtocol, "Malformed {} body: {} bytes cannot hold {} bytes",
                name_of(compression), body.size(), declared);
  }
  return declared;
}

// `size` is what declared_body_bytes() has answered; the result must fill it exactly.
Result<void> decompress_body(Compression compression, BytesView body, char* to, size_t size) {
  if (compression == Compression::kLz4) {
    if (body.size() < kLengthBytes) return broken(compression);
    return decompress_lz4_block(body.substr(kLengthBytes), to, size);
  }
  size_t length = 0;
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &length) || length != size ||
      !snappy::RawUncompress(body.data(), body.size(), to)) {
    return broken(compression);
  }
  return {};
}

bool append_compressed_body(Compression compression, BytesView body, Bytes& out) {
  const size_t start = out.size();
  if (compression == Compression::kLz4) {
    append_int(out, static_cast<uint32_t>(body.size()));
    if (append_lz4_block(body, out) && out.size() - start < body.size()) return true;
  } else {
    const size_t room = snappy::MaxCompressedLength(body.size());
    out.resize_and_overwrite(start + room, [&](char* buffer, size_t) {
      size_t size = 0;
      snappy::RawCompress(body.data(), body.size(), buffer + start, &size);
      return start + size;
    });
    if (out.size() - start < body.size()) return true;
  }
  // Not smaller: the caller sends the body as it is.
  out.resize(start);
  return false;
}

Result<void> decompress_lz4_block(BytesView block, char* to, size_t size) {
  if (block.size() > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE) {
    return broken(Compression::kLz4);
  }
  const int made =
      LZ4_decompress_safe(block.data(), to, static_cast<int>(block.size()), static_cast<int>(size));
  // A block that gives fewer bytes than declared is refused as well: the rest of the buffer would
  // be old memory.
  if (made < 0 || static_cast<size_t>(made) != size) return broken(Compression::kLz4);
  return {};
}

// False: it would not be smaller, and `out` is as it was.
bool append_lz4_block(BytesView bytes, Bytes& out) {
  if (bytes.size() < 2) return false;
  // Room for one byte less than the input: LZ4 gives up when it cannot win.
  const size_t start = out.size();
  const size_t room = bytes.size() - 1;
  out.resize_and_overwrite(start + room, [&](char* buffer, size_t) {
    const int made = LZ4_compress_default(bytes.data(), buffer + start,
                                          static_cast<int>(bytes.size()), static_cast<int>(room));
    return start + static_cast<size_t>(made > 0 ? made : 0);
  });
  return out.size() > start;
}

}  // namespace tetrad::cql
