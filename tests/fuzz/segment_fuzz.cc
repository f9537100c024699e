// SPDX-License-Identifier: Apache-2.0
// Segments with good checksums around any payload, in any order, and now and then damaged: what a
// fuzzer that has to guess a CRC never reaches. Then: what the encoder makes, the decoder reads.
//
//   input := lz4 u8 | pieces: length u8, settings u8, that many times 8 bytes of payload
#include "base/assert.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "cql/protocol/request.h"
#include "cql/protocol/segment.h"
#include "tests/fuzz/seeds.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

constexpr FrameLimits kLimits = {
    .body_bytes_max = 20'000, .read_bytes_min = 256, .read_bytes_max = 4096};

Bytes segments_of(BytesView pieces, bool lz4) {
  Bytes wire;
  while (pieces.size() >= 2) {
    const auto settings = static_cast<uint8_t>(pieces[1]);
    const size_t size = std::min<size_t>(static_cast<uint8_t>(pieces[0]) * 8, pieces.size() - 2);
    const size_t start = wire.size();
    append_segment(wire, pieces.substr(2, size), (settings & 1) != 0, lz4);
    if (settings >= 0xF0) {
      const size_t at = start + settings % (wire.size() - start);
      wire[at] = static_cast<char>(wire[at] ^ 0x40);
    }
    pieces.remove_prefix(2 + size);
  }
  return wire;
}

void read_hostile(BytesView pieces, bool lz4) {
  FrameDecoder decoder(FrameDecoder::Role::kServer, kLimits);
  decoder.start(5, lz4 ? Compression::kLz4 : Compression::kNone);
  decoder.set_authenticated();
  decoder.feed(segments_of(pieces, lz4));
  for (;;) {
    const Incoming incoming = decoder.next();
    if (incoming.kind == Incoming::Kind::kNeedMore) break;
    if (incoming.kind == Incoming::Kind::kEnvelope) {
      TETRAD_ASSERT(incoming.envelope.body.size() <= kLimits.body_bytes_max);
      (void)decode_request(incoming.envelope);
    }
  }
}

/// Cuts the bytes into bodies and sends them through.
void round_trip(BytesView bytes, bool lz4) {
  FrameEncoder encoder;
  encoder.start(5, lz4 ? Compression::kLz4 : Compression::kNone);
  std::vector<Bytes> bodies;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(static_cast<uint8_t>(bytes[0]) * 3, bytes.size() - 1);
    Bytes body(bytes.substr(1, size));
    // One in 64 is larger than a segment.
    if (static_cast<uint8_t>(bytes[0]) % 64 == 63 && bodies.size() < 4) body.resize(140'000, 'z');
    EnvelopeHeader header;
    header.version = 5;
    header.opcode = Opcode::kQuery;
    header.body_bytes = static_cast<int32_t>(body.size());
    char head[kEnvelopeHeaderBytes];
    encode_envelope_header(head, header);
    encoder.out().append(head, sizeof(head)).append(body);
    bodies.push_back(std::move(body));
    bytes.remove_prefix(1 + size);
  }
  Bytes wire;
  encoder.finish_turn(wire);
  FrameDecoder decoder(FrameDecoder::Role::kServer);
  decoder.start(5, lz4 ? Compression::kLz4 : Compression::kNone);
  decoder.set_authenticated();
  decoder.feed(wire);
  for (const Bytes& body : bodies) {
    const Incoming incoming = decoder.next();
    TETRAD_ASSERT(incoming.kind == Incoming::Kind::kEnvelope);
    TETRAD_ASSERT(incoming.envelope.body == body);
  }
  TETRAD_ASSERT(decoder.next().kind == Incoming::Kind::kNeedMore);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool lz4 = (data[0] & 1) != 0;
  const BytesView rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  read_hostile(rest, lz4);
  round_trip(rest, lz4);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const Bytes options("\x05\0\0\1\5\0\0\0\0", 9);
  const Bytes query("\x05\0\0\2\7\0\0\0\x0f\0\0\0\5hello\0\1\0\0\0\0", 24);
  for (const char lz4 : {'\0', '\1'}) {
    // Two envelopes in one segment; one envelope in three parts.
    seeds.push_back(std::string(1, lz4) + "\x06\1" + query + query);
    seeds.push_back(std::string(1, lz4) + Bytes("\1\0", 2) + query.substr(0, 8));
    seeds.push_back(std::string(1, lz4) + Bytes("\2\0", 2) + query.substr(0, 16) +
                    Bytes("\1\0", 2) + query.substr(16) + "\2\1" + options + "1234567");
  }
  return seeds;
}
