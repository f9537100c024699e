// SPDX-License-Identifier: Apache-2.0
// Any bytes in any pieces on either end of a connection, in any state.
//
//   input := settings u8 | seed of the pieces u8 | the bytes of the connection
#include <variant>

#include "base/assert.h"
#include "base/random.h"
#include "cql/protocol/client.h"
#include "cql/protocol/compression.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "cql/protocol/response.h"
#include "tests/fuzz/seeds.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

constexpr uint32_t kBodyBytesMax = 40'000;
constexpr FrameLimits kLimits = {.body_bytes_max = kBodyBytesMax,
                                 .unauthenticated_body_bytes_max = 1000,
                                 .read_bytes_min = 64,
                                 .read_bytes_max = 1024};

struct Settings {
  int version;  // 0: not started
  Compression compression;
  FrameDecoder::Role role;
  bool authenticated;
};

Settings settings_of(uint8_t byte) {
  constexpr int versions[] = {0, 3, 4, 5};
  Settings settings{versions[byte & 3], static_cast<Compression>((byte >> 2) % 3),
                    (byte & 0x10) != 0 ? FrameDecoder::Role::kClient : FrameDecoder::Role::kServer,
                    (byte & 0x20) != 0};
  if (settings.version == 5 && settings.compression == Compression::kSnappy) {
    settings.compression = Compression::kNone;
  }
  return settings;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Settings settings = settings_of(data[0]);
  base::Random random(data[1]);
  FrameDecoder decoder(settings.role, kLimits);
  if (settings.version != 0) decoder.start(settings.version, settings.compression);
  if (settings.authenticated) decoder.set_authenticated();
  BytesView rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  Bytes answers;
  bool dead = false;
  while (!rest.empty()) {
    const size_t part =
        std::min<size_t>(rest.size(), 1 + random.below(random.one_in(2) ? 16 : 3000));
    decoder.feed(rest.substr(0, part));
    rest.remove_prefix(part);
    for (;;) {
      const Incoming incoming = decoder.next();
      if (incoming.kind == Incoming::Kind::kNeedMore) break;
      TETRAD_ASSERT(!dead);
      const Envelope& envelope = incoming.envelope;
      if (incoming.kind == Incoming::Kind::kEnvelope) {
        TETRAD_ASSERT(envelope.body.size() <= kBodyBytesMax);
        if (settings.role == FrameDecoder::Role::kServer) {
          (void)decode_request(envelope);
        } else {
          (void)client::decode_response(envelope);
        }
        continue;
      }
      TETRAD_ASSERT(!incoming.error.message.empty());
      dead = incoming.kind == Incoming::Kind::kFatal;
      answers.clear();
      if (incoming.version_refused) {
        append_version_refusal(answers, envelope.version(), envelope.stream());
      } else {
        append_error(answers, {.version = 4, .stream = envelope.stream()}, incoming.error);
      }
    }
    TETRAD_ASSERT(decoder.held_bytes() <= 6u * kBodyBytesMax + 2 * kSegmentPayloadBytesMax);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const std::string text(300, 'q');
  for (int byte = 0; byte < 64; ++byte) {
    const Settings settings = settings_of(static_cast<uint8_t>(byte));
    const int version = settings.version == 0 ? 4 : settings.version;
    FrameEncoder encoder;
    encoder.start(version, settings.version == 0 ? Compression::kNone : settings.compression);
    if (settings.role == FrameDecoder::Role::kServer) {
      client::append_options(encoder.out(), {.version = version});
      client::append_query(encoder.out(), {.version = version, .stream = 1}, text, {});
      client::append_prepare(encoder.out(), {.version = version, .stream = 2}, "x", "ks");
    } else {
      append_void(encoder.out(), {.version = version});
      append_set_keyspace(encoder.out(), {.version = version}, text);
      append_error(encoder.out(), {.version = version}, Error(ErrorCode::kUnavailable, text));
      const EncodedMetadata none;
      append_rows(encoder.out(), {.version = version}, none, {}, 0, "");
    }
    Bytes wire;
    encoder.finish_turn(wire);
    seeds.push_back(std::string{static_cast<char>(byte), '\1'} + wire);
  }
  return seeds;
}
