// SPDX-License-Identifier: Apache-2.0
// Encoding of envelopes and of errors that travel.
#include "replication/rpc/envelope.h"

#include "base/byte_io.h"

namespace tetrad::replication {

namespace {
constexpr size_t kErrorTextBytesMax = 4096;
constexpr uint8_t kWantsTime = 1;  // of the flags

Result<Uuid> read_uuid(base::ByteReader& in) {
  TETRAD_TRY(const BytesView bytes, in.read_raw(16));
  return Uuid::from_bytes(bytes);
}
}  // namespace

void encode_envelope(const Envelope& envelope, Bytes& out) {
  base::ByteWriter writer(out);
  writer.u8(kEnvelopeVersion);
  writer.u8(static_cast<uint8_t>(envelope.kind));
  writer.u8(static_cast<uint8_t>(envelope.verb));
  writer.u8(envelope.wants_time ? kWantsTime : 0);
  writer.raw(envelope.cluster_id.view());
  writer.raw(envelope.sender.value.view());
  writer.raw(envelope.target.value.view());
  writer.u32(envelope.sender_shard);
  writer.u32(envelope.target_store);
  writer.u64(envelope.request_id);
  writer.u32(envelope.time_left_us);
  const BytesView endpoint = BytesView(envelope.sender_endpoint).substr(0, 255);
  writer.u8(static_cast<uint8_t>(endpoint.size()));
  writer.raw(endpoint);
}

Result<DecodedEnvelope> decode_envelope(BytesView message) {
  base::ByteReader in(message);
  DecodedEnvelope decoded;
  Envelope& envelope = decoded.envelope;
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kEnvelopeVersion) {
    return fail(ErrorCode::kProtocol, "internode protocol version {}, this program speaks {}",
                version, kEnvelopeVersion);
  }
  TETRAD_TRY(const uint8_t kind, in.read_u8());
  if (kind > static_cast<uint8_t>(MessageKind::kErrorReply))
    return fail(ErrorCode::kCorruption, "message kind {}", kind);
  envelope.kind = static_cast<MessageKind>(kind);
  TETRAD_TRY(const uint8_t verb, in.read_u8());
  envelope.verb = static_cast<Verb>(verb);
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  envelope.wants_time = (flags & kWantsTime) != 0;
  TETRAD_TRY(envelope.cluster_id, read_uuid(in));
  TETRAD_TRY(envelope.sender.value, read_uuid(in));
  TETRAD_TRY(envelope.target.value, read_uuid(in));
  TETRAD_TRY(envelope.sender_shard, in.read_u32());
  TETRAD_TRY(envelope.target_store, in.read_u32());
  TETRAD_TRY(envelope.request_id, in.read_u64());
  TETRAD_TRY(envelope.time_left_us, in.read_u32());
  TETRAD_TRY(const uint8_t endpoint_size, in.read_u8());
  TETRAD_TRY(const BytesView endpoint, in.read_raw(endpoint_size));
  envelope.sender_endpoint = Endpoint(endpoint);
  decoded.body_offset = message.size() - in.remaining();
  return decoded;
}

void encode_error(const Error& error, Bytes& out) {
  base::ByteWriter writer(out);
  writer.u8(static_cast<uint8_t>(error.code));
  writer.raw(BytesView(error.message).substr(0, kErrorTextBytesMax));
}

Error decode_error(BytesView body) {
  if (body.empty() || static_cast<uint8_t>(body[0]) > static_cast<uint8_t>(base::kErrorCodeLast))
    return Error(ErrorCode::kServerError, "an error reply that cannot be read");
  return Error(static_cast<ErrorCode>(body[0]), std::string(body.substr(1, kErrorTextBytesMax)));
}

}  // namespace tetrad::replication
