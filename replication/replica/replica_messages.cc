// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/replica_messages.h"

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kReadVersion = 1;
constexpr uint8_t kMutateVersion = 4;
constexpr uint8_t kMutateVersionFirst = 3;

void put_head(base::ByteWriter& writer, uint8_t version, SetEpoch epoch) {
  writer.u8(version);
  writer.varint(epoch.value);
}

Result<SetEpoch> take_head(base::ByteReader& reader, uint8_t known) {
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version != known)
    return fail(ErrorCode::kCorruption, "a message of version {}, known is {}", version, known);
  TETRAD_TRY(const uint64_t epoch, reader.read_varint());
  return SetEpoch{epoch};
}

Result<void> read_mutate_head(base::ByteReader& reader, MutateRequest& out) {
  TETRAD_TRY(out.epoch.value, reader.read_varint());
  TETRAD_TRY(const int64_t server_timestamp_us, reader.read_zigzag());
  if (server_timestamp_us != 0) out.server_timestamp_us = server_timestamp_us;
  TETRAD_TRY(out.as_of_us, reader.read_zigzag());
  return {};
}

Result<void> read_appended_head(base::ByteReader& reader, MutateRequest& out) {
  TETRAD_TRY_VOID(read_mutate_head(reader, out));
  if (reader.at_end()) return {};
  TETRAD_TRY(const uint8_t flags, reader.read_u8());
  out.synced = (flags & 1) != 0;
  return {};
}

BytesView rest_of(const base::ByteReader& reader) {
  return {reader.position(), reader.remaining()};
}

}  // namespace

Bytes encode_mutate(ClusterFormat format, SetEpoch epoch, const storage::Mutation& mutation,
                    std::optional<int64_t> server_timestamp_us, int64_t as_of_us, bool synced) {
  Bytes out;
  out.reserve(mutation.size_bytes() + 64);
  base::ByteWriter writer(out);
  const bool has_sized_head = format >= kFormatNumbered;
  writer.u8(has_sized_head ? kMutateVersion : kMutateVersionFirst);
  if (has_sized_head) writer.u8(0);
  const size_t head = out.size();
  writer.varint(epoch.value);
  writer.zigzag(server_timestamp_us.value_or(0));
  writer.zigzag(as_of_us);
  if (has_sized_head && synced) writer.u8(1);
  if (has_sized_head) {
    TETRAD_ASSERT(out.size() - head <= 0xff);
    out[head - 1] = static_cast<char>(out.size() - head);
  }
  storage::encode_mutation(mutation, out);
  return out;
}

Result<MutateRequest> decode_mutate(BytesView body) {
  base::ByteReader reader(body);
  MutateRequest out;
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version == kMutateVersionFirst) {
    TETRAD_TRY_VOID(read_mutate_head(reader, out));
  } else if (version == kMutateVersion) {
    TETRAD_TRY(const uint8_t size, reader.read_u8());
    TETRAD_TRY(const BytesView head, reader.read_raw(size));
    base::ByteReader head_reader(head);
    TETRAD_TRY_VOID(read_appended_head(head_reader, out));
  } else {
    return fail(ErrorCode::kCorruption, "a mutation of version {}, known are {} to {}", version,
                kMutateVersionFirst, kMutateVersion);
  }
  TETRAD_TRY(out.mutation, storage::decode_mutation(rest_of(reader)));
  return out;
}

Bytes encode_mutate_answer(std::optional<int64_t> mark_us) {
  Bytes out;
  if (mark_us) base::ByteWriter(out).i64(*mark_us);
  return out;
}

Result<std::optional<int64_t>> decode_mutate_answer(BytesView body) {
  if (body.empty()) return std::nullopt;
  base::ByteReader reader(body);
  TETRAD_TRY(const int64_t mark_us, reader.read_i64());
  return mark_us;
}

Bytes encode_read(SetEpoch epoch, const storage::ReadCommand& command) {
  Bytes out;
  base::ByteWriter writer(out);
  put_head(writer, kReadVersion, epoch);
  storage::encode_read_command(command, out);
  return out;
}

Result<ReadRequest> decode_read(BytesView body, storage::FoldReader read_fold) {
  base::ByteReader reader(body);
  ReadRequest out;
  TETRAD_TRY(out.epoch, take_head(reader, kReadVersion));
  TETRAD_TRY(out.command, storage::decode_read_command(rest_of(reader), read_fold));
  return out;
}

base::Hash128 hash_of_end(const storage::ReadEnd& end) {
  if (end.exhausted) return {};
  const storage::ReadPosition& place = end.complete_up_to;
  Bytes encoded;
  base::ByteWriter writer(encoded);
  writer.i64(place.position.token);
  writer.u64(place.position.hash);
  writer.bytes(place.partition_key);
  writer.u8(place.clustering_key ? 1 : 0);
  if (place.clustering_key) writer.raw(*place.clustering_key);
  return base::xxh3_128(encoded);
}

DigestReply digest_reply_of(const storage::ReadResult& result) {
  return {storage::digest_of(result), result.settled, result.exhausted, hash_of_end(result)};
}

Bytes encode_digest_reply(const DigestReply& reply) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(static_cast<uint8_t>((reply.settled ? 1 : 0) | (reply.exhausted ? 2 : 0)));
  writer.u64(reply.digest.high);
  writer.u64(reply.digest.low);
  writer.u64(reply.end.high);
  writer.u64(reply.end.low);
  return out;
}

Result<DigestReply> decode_digest_reply(BytesView body) {
  base::ByteReader reader(body);
  DigestReply out;
  TETRAD_TRY(const uint8_t flags, reader.read_u8());
  if ((flags & ~3) != 0)
    return fail(ErrorCode::kCorruption, "a digest with flags {} of a later format", flags);
  out.settled = (flags & 1) != 0;
  out.exhausted = (flags & 2) != 0;
  TETRAD_TRY(out.digest.high, reader.read_u64());
  TETRAD_TRY(out.digest.low, reader.read_u64());
  TETRAD_TRY(out.end.high, reader.read_u64());
  TETRAD_TRY(out.end.low, reader.read_u64());
  if (reader.remaining() != 0)
    return fail(ErrorCode::kCorruption, "a digest with {} bytes too many", reader.remaining());
  return out;
}

}  // namespace tetrad::replication
