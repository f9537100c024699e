// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/replica_messages.h"

#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kVersion = 1;

void put_head(base::ByteWriter& writer, SetEpoch epoch) {
  writer.u8(kVersion);
  writer.varint(epoch.value);
}

Result<SetEpoch> take_head(base::ByteReader& reader) {
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "a message of version {}, known is {}", version, kVersion);
  TETRAD_TRY(const uint64_t epoch, reader.read_varint());
  return SetEpoch{epoch};
}

BytesView rest_of(const base::ByteReader& reader) {
  return {reader.position(), reader.remaining()};
}

}  // namespace

Bytes encode_mutate(SetEpoch epoch, const storage::Mutation& mutation) {
  Bytes out;
  out.reserve(mutation.size_bytes() + 64);
  base::ByteWriter writer(out);
  put_head(writer, epoch);
  storage::encode_mutation(mutation, out);
  return out;
}

Result<MutateRequest> decode_mutate(BytesView body) {
  base::ByteReader reader(body);
  MutateRequest out;
  TETRAD_TRY(out.epoch, take_head(reader));
  TETRAD_TRY(out.mutation, storage::decode_mutation(rest_of(reader)));
  return out;
}

Bytes encode_read(SetEpoch epoch, const storage::ReadCommand& command) {
  Bytes out;
  base::ByteWriter writer(out);
  put_head(writer, epoch);
  storage::encode_read_command(command, out);
  return out;
}

Result<ReadRequest> decode_read(BytesView body) {
  base::ByteReader reader(body);
  ReadRequest out;
  TETRAD_TRY(out.epoch, take_head(reader));
  TETRAD_TRY(out.command, storage::decode_read_command(rest_of(reader)));
  return out;
}

Bytes encode_digest_reply(const DigestReply& reply) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(static_cast<uint8_t>((reply.settled ? 1 : 0) | (reply.exhausted ? 2 : 0)));
  writer.u64(reply.digest.high);
  writer.u64(reply.digest.low);
  return out;
}

Result<DigestReply> decode_digest_reply(BytesView body) {
  base::ByteReader reader(body);
  DigestReply out;
  TETRAD_TRY(const uint8_t flags, reader.read_u8());
  out.settled = (flags & 1) != 0;
  out.exhausted = (flags & 2) != 0;
  TETRAD_TRY(out.digest.high, reader.read_u64());
  TETRAD_TRY(out.digest.low, reader.read_u64());
  return out;
}

}  // namespace tetrad::replication
