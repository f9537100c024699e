// SPDX-License-Identifier: Apache-2.0
// Small words for tests of the protocol: bytes from hex, everything a decoder finds, both ends of a
// connection after STARTUP.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "cql/protocol/client.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "tests/support/hex.h"

namespace tetrad::cql {

using Kind = Incoming::Kind;

using tests::from_hex;

/// One byte of the flags, version, ... of an envelope with a body.
inline Bytes envelope(uint8_t version, uint8_t flags, int16_t stream, Opcode opcode,
                      BytesView body) {
  EnvelopeHeader header;
  header.version = version & 0x7F;
  header.response = (version & kResponseBit) != 0;
  header.flags = flags;
  header.stream = stream;
  header.opcode = opcode;
  header.body_bytes = static_cast<int32_t>(body.size());
  Bytes bytes(kEnvelopeHeaderBytes, '\0');
  encode_envelope_header(bytes.data(), header);
  return bytes.append(body);
}

/// All that next() gives until it needs more.
inline std::vector<Incoming> drain(FrameDecoder& decoder) {
  std::vector<Incoming> all;
  for (;;) {
    Incoming incoming = decoder.next();
    if (incoming.kind == Kind::kNeedMore) return all;
    all.push_back(std::move(incoming));
  }
}

inline FrameDecoder server_decoder(int version, Compression compression, FrameLimits limits = {},
                                   bool authenticated = true) {
  FrameDecoder decoder(FrameDecoder::Role::kServer, limits);
  if (version != 0) decoder.start(version, compression);
  if (authenticated) decoder.set_authenticated();
  return decoder;
}

inline FrameDecoder client_decoder(int version, Compression compression) {
  FrameDecoder decoder(FrameDecoder::Role::kClient, {.body_bytes_max = 256u << 20});
  decoder.start(version, compression);
  return decoder;
}

inline Bytes on_wire(int version, Compression compression, BytesView envelopes) {
  FrameEncoder encoder;
  encoder.start(version, compression);
  encoder.out().append(envelopes);
  Bytes wire;
  encoder.finish_turn(wire);
  return wire;
}

/// The one envelope of v3 or v4 bytes, or of the body of v5.
inline Envelope only_envelope(BytesView bytes, FrameDecoder::Role role) {
  FrameDecoder decoder(role, {.body_bytes_max = 256u << 20});
  decoder.set_authenticated();
  decoder.feed(bytes);
  auto all = drain(decoder);
  if (all.size() != 1 || all[0].kind != Kind::kEnvelope) throw std::runtime_error("no envelope");
  return all[0].envelope;
}

inline Result<Request> request_of(BytesView bytes) {
  static std::vector<FramePin> pins;  // views of the request live as long as the test
  const Envelope e = only_envelope(bytes, FrameDecoder::Role::kServer);
  pins.push_back(e.pin);
  return decode_request(e);
}

template <class Message>
Message message_of(BytesView bytes) {
  auto request = request_of(bytes);
  if (!request) throw std::runtime_error(request.error().message);
  return std::get<Message>(std::move(request->message));
}

inline client::Response response_of(BytesView bytes) {
  static std::vector<FramePin> pins;
  const Envelope e = only_envelope(bytes, FrameDecoder::Role::kClient);
  pins.push_back(e.pin);
  auto response = client::decode_response(e);
  if (!response) throw std::runtime_error(response.error().message);
  return std::move(*response);
}

template <class Reply>
Reply reply_of(BytesView bytes) {
  return std::get<Reply>(response_of(bytes).reply);
}

}  // namespace tetrad::cql
