// SPDX-License-Identifier: Apache-2.0
#include "replication/batches/batch_entry.h"

#include <limits>

#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kRankMax = 1;
constexpr size_t kUuidBytes = 16;

Result<void> read_format(base::ByteReader& in) {
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kBatchEntryFormat)
    return fail(ErrorCode::kCorruption, "a batch of format {}", format);
  return {};
}

Result<Uuid> read_uuid(base::ByteReader& in) {
  TETRAD_TRY(const BytesView raw, in.read_raw(kUuidBytes));
  return Uuid::from_bytes(raw);
}

Result<BatchHead> read_head(base::ByteReader& in) {
  BatchHead head;
  TETRAD_TRY_VOID(read_format(in));
  TETRAD_TRY(head.id, read_uuid(in));
  TETRAD_TRY(const uint64_t version, in.read_varint());
  if (version == 0 || version > std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::kCorruption, "a batch of version {}", version);
  head.version = static_cast<uint32_t>(version);
  TETRAD_TRY(head.stamp_us, in.read_zigzag());
  TETRAD_TRY(head.created_us, in.read_i64());
  TETRAD_TRY(head.applied.value, in.read_varint());
  TETRAD_TRY(head.rank, in.read_u8());
  if (head.rank > kRankMax) return fail(ErrorCode::kCorruption, "a batch of rank {}", head.rank);
  TETRAD_TRY(head.other.value, read_uuid(in));
  return head;
}

}  // namespace

Bytes encode_batch_entry(const BatchHead& head, const std::vector<storage::Mutation>& parts) {
  Bytes encoded;
  base::ByteWriter out(encoded);
  out.u8(kBatchEntryFormat);
  out.raw(head.id.view());
  out.varint(head.version);
  out.zigzag(head.stamp_us);
  out.i64(head.created_us);
  out.varint(head.applied.value);
  out.u8(head.rank);
  out.raw(head.other.value.view());
  out.varint(parts.size());
  Bytes part;
  for (const storage::Mutation& mutation : parts) {
    part.clear();
    storage::encode_mutation(mutation, part);
    out.bytes(part);
  }
  return encoded;
}

Result<BatchHead> decode_batch_head(BytesView encoded) {
  base::ByteReader in(encoded);
  return read_head(in);
}

Result<BatchEntry> decode_batch_entry(BytesView encoded) {
  base::ByteReader in(encoded);
  BatchEntry entry;
  TETRAD_TRY(entry.head, read_head(in));
  TETRAD_TRY(const uint64_t count, in.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint64_t size, in.read_varint());
    TETRAD_TRY(const BytesView part, in.read_raw(size));
    TETRAD_TRY(storage::Mutation mutation, storage::decode_mutation(part));
    entry.parts.push_back(std::move(mutation));
  }
  if (!in.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the parts of a batch", in.remaining());
  return entry;
}

Bytes encode_batch_id(const Uuid& id) {
  Bytes encoded;
  base::ByteWriter out(encoded);
  out.u8(kBatchEntryFormat);
  out.raw(id.view());
  return encoded;
}

Result<Uuid> decode_batch_id(BytesView encoded) {
  base::ByteReader in(encoded);
  TETRAD_TRY_VOID(read_format(in));
  return read_uuid(in);
}

}  // namespace tetrad::replication
