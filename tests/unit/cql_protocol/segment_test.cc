// SPDX-License-Identifier: Apache-2.0
#include "cql/protocol/segment.h"

#include <catch2/catch.hpp>
#include <zlib.h>

#include "base/random.h"
#include "cql/protocol/compression.h"
#include "cql/protocol/crc32.h"
#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

Bytes random_bytes(base::Random& random, size_t size) {
  Bytes bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random.next());
  return bytes;
}

}  // namespace

TEST_CASE("the segment of hello has the bytes of the specification") {
  Bytes out;
  append_segment(out, "hello", true, false);
  CHECK(base::to_hex(out) == "05000219999a68656c6c6f74800eb6");
}

TEST_CASE("crc32 equals zlib's for every length and start") {
  base::Random random(7);
  for (size_t size = 0; size < 300; ++size) {
    const Bytes bytes = random_bytes(random, size);
    const auto start = static_cast<uint32_t>(random.next());
    REQUIRE(cql::crc32(start, bytes) == ::crc32(start, reinterpret_cast<const Bytef*>(bytes.data()),
                                                static_cast<uInt>(bytes.size())));
  }
}

TEST_CASE("a header of a segment is read back") {
  for (const bool lz4 : {false, true}) {
    Bytes out;
    const Bytes payload(5000, 'a');
    append_segment(out, payload, false, lz4);
    const auto header = decode_segment_header(out.data(), lz4);
    REQUIRE(header);
    CHECK_FALSE(header->self_contained);
    CHECK(header->uncompressed_bytes == (lz4 ? 5000u : 0u));
    CHECK(out.size() == segment_header_bytes(lz4) + header->payload_bytes + kSegmentTrailerBytes);
    CHECK(check_segment_payload(
        BytesView(out).substr(segment_header_bytes(lz4), header->payload_bytes),
        out.data() + out.size() - kSegmentTrailerBytes));
  }
}

TEST_CASE("a payload that LZ4 does not shrink is stored as it is") {
  base::Random random(3);
  Bytes out;
  const Bytes payload = random_bytes(random, 1000);
  append_segment(out, payload, true, true);
  const auto header = decode_segment_header(out.data(), true);
  REQUIRE(header);
  CHECK(header->uncompressed_bytes == 0);
  CHECK(header->payload_bytes == 1000);
  CHECK(BytesView(out).substr(8, 1000) == payload);
}

TEST_CASE("a damaged bit of the header is found") {
  for (const bool lz4 : {false, true}) {
    Bytes out;
    append_segment(out, Bytes(100, 'x'), true, lz4);
    for (size_t bit = 0; bit < segment_header_bytes(lz4) * 8; ++bit) {
      Bytes damaged = out;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      REQUIRE_FALSE(decode_segment_header(damaged.data(), lz4));
    }
  }
}

TEST_CASE("envelopes of a turn are packed into few segments") {
  Bytes envelopes;
  const Bytes small = envelope(0x85, 0, 1, Opcode::kResult, Bytes(100, 'r'));
  for (int i = 0; i < 2000; ++i) envelopes += small;
  Bytes out;
  append_segments(out, envelopes, false);
  const size_t segments =
      (envelopes.size() + kSegmentPayloadBytesMax - 1) / kSegmentPayloadBytesMax;
  CHECK(out.size() == envelopes.size() + segments * 10);
}

TEST_CASE("an envelope at the limit is self-contained, one byte more is not") {
  for (const size_t extra : {size_t{0}, size_t{1}}) {
    const size_t body = kSegmentPayloadBytesMax - kEnvelopeHeaderBytes + extra;
    Bytes out;
    append_segments(out, envelope(0x85, 0, 1, Opcode::kResult, Bytes(body, 'r')), false);
    const auto header = decode_segment_header(out.data(), false);
    REQUIRE(header);
    CHECK(header->self_contained == (extra == 0));
    CHECK(header->payload_bytes == kSegmentPayloadBytesMax);
  }
}

TEST_CASE("bodies of v3 and v4 are compressed and read back") {
  for (const auto compression : {Compression::kLz4, Compression::kSnappy}) {
    const Bytes body(10000, 'b');
    Bytes out = "before";
    REQUIRE(append_compressed_body(compression, body, out));
    const BytesView compressed = BytesView(out).substr(6);
    CHECK(compressed.size() < 1000);
    const auto declared = declared_body_bytes(compression, compressed);
    REQUIRE(declared);
    REQUIRE(*declared == body.size());
    Bytes back(body.size(), '\0');
    REQUIRE(decompress_body(compression, compressed, back.data(), back.size()));
    CHECK(back == body);
    base::Random random(11);
    Bytes nothing;
    CHECK_FALSE(append_compressed_body(compression, random_bytes(random, 500), nothing));
    CHECK(nothing.empty());
  }
}

TEST_CASE(
    "a compressed body that declares more than it can hold is refused before memory is taken") {
  CHECK_FALSE(declared_body_bytes(Compression::kLz4, from_hex("7fffffff 00")));
  CHECK_FALSE(declared_body_bytes(Compression::kLz4, from_hex("ffffffff 00000000")));
  CHECK_FALSE(declared_body_bytes(Compression::kLz4, from_hex("0000")));
  CHECK_FALSE(declared_body_bytes(Compression::kSnappy, from_hex("ffffffff0f 00")));
  CHECK_FALSE(declared_body_bytes(Compression::kSnappy, ""));
}

TEST_CASE("names of compressions are read without regard to case") {
  CHECK(parse_compression("LZ4") == Compression::kLz4);
  CHECK(parse_compression("Snappy") == Compression::kSnappy);
  CHECK_FALSE(parse_compression("zstd"));
}
