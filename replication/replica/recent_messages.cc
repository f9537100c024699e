// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/recent_messages.h"

#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kSinceKnown = 1, kEverything = 2, kExhausted = 1;
constexpr size_t kTabletBytes = 4 + 8 + 4 * 8;

void put_indexes(base::ByteWriter& writer, const std::vector<uint32_t>& indexes) {
  writer.varint(indexes.size());
  for (const uint32_t index : indexes) writer.varint(index);
}

Result<std::vector<uint32_t>> read_indexes(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining()) return fail(ErrorCode::kCorruption, "{} indexes do not fit", count);
  std::vector<uint32_t> out;
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint64_t index, in.read_varint());
    out.push_back(static_cast<uint32_t>(index));
  }
  return out;
}

Result<RecentTablet> read_tablet(base::ByteReader& in) {
  RecentTablet tablet;
  TETRAD_TRY(tablet.incarnation.value, in.read_u32());
  TETRAD_TRY(tablet.epoch.value, in.read_u64());
  for (RingPosition* position : {&tablet.range.start, &tablet.range.end}) {
    TETRAD_TRY(position->token, in.read_i64());
    TETRAD_TRY(position->hash, in.read_u64());
  }
  return tablet;
}

}  // namespace

Bytes encode_recent_request(const RecentRequest& request) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u8(static_cast<uint8_t>((request.since_us ? kSinceKnown : 0) |
                                 (request.everything ? kEverything : 0)));
  writer.i64(request.since_us.value_or(0));
  writer.i64(request.ended_ago_us);
  writer.varint(request.tablets.size());
  for (const RecentTablet& tablet : request.tablets) {
    writer.u32(tablet.incarnation.value);
    writer.u64(tablet.epoch.value);
    for (const RingPosition& position : {tablet.range.start, tablet.range.end}) {
      writer.i64(position.token);
      writer.u64(position.hash);
    }
  }
  writer.bytes(request.after);
  writer.varint(request.bytes_max);
  return out;
}

Result<RecentRequest> decode_recent_request(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "a message of version {}, known is {}", version, kVersion);
  RecentRequest out;
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  TETRAD_TRY(const int64_t since_us, in.read_i64());
  if ((flags & kSinceKnown) != 0) out.since_us = since_us;
  out.everything = (flags & kEverything) != 0;
  TETRAD_TRY(out.ended_ago_us, in.read_i64());
  if (out.ended_ago_us < 0)
    return fail(ErrorCode::kCorruption, "what is asked for ended {} us ago", out.ended_ago_us);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining() / kTabletBytes)
    return fail(ErrorCode::kCorruption, "{} tablets do not fit", count);
  out.tablets.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const RecentTablet tablet, read_tablet(in));
    out.tablets.push_back(tablet);
  }
  TETRAD_TRY(const BytesView after, in.read_bytes());
  out.after = Bytes(after);
  TETRAD_TRY(out.bytes_max, in.read_varint());
  return out;
}

Bytes encode_recent_answer(const RecentAnswer& answer) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(answer.exhausted ? kExhausted : 0);
  writer.u64(answer.applied.value);
  put_indexes(writer, answer.refused);
  put_indexes(writer, answer.behind);
  writer.bytes(answer.next);
  writer.varint(answer.mutations.size());
  Bytes encoded;
  for (const storage::Mutation& mutation : answer.mutations) {
    encoded.clear();
    storage::encode_mutation(mutation, encoded);
    writer.bytes(encoded);
  }
  return out;
}

Result<RecentAnswer> decode_recent_answer(BytesView body) {
  base::ByteReader in(body);
  RecentAnswer out;
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  out.exhausted = (flags & kExhausted) != 0;
  TETRAD_TRY(out.applied.value, in.read_u64());
  TETRAD_TRY(out.refused, read_indexes(in));
  TETRAD_TRY(out.behind, read_indexes(in));
  TETRAD_TRY(const BytesView next, in.read_bytes());
  out.next = Bytes(next);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining()) return fail(ErrorCode::kCorruption, "{} rows do not fit", count);
  out.mutations.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const BytesView encoded, in.read_bytes());
    TETRAD_TRY(storage::Mutation mutation, storage::decode_mutation(encoded));
    out.mutations.push_back(std::move(mutation));
  }
  return out;
}

}  // namespace tetrad::replication
