// SPDX-License-Identifier: Apache-2.0
// Encoding of mutations between nodes, in hints and in the batch log.
//
//   mutation  := u8 version (1), u32 incarnation, u64 schema version, i64 token, u64 hash,
//                bytes partition key, bytes header,
//                varint count, (bytes start, bytes end, zigzag timestamp, zigzag deletion time)*,
//                varint count, (bytes clustering key, u8 complete, bytes record)*
//   streamed  := mutation | mutation of version 2, bytes registers     the registers are not ""
//   example: 01 00000007 0000000000000001 0000000000000005 000000000000000f 01 6b 00
//            01 01 61 01 62 14 06 01 01 63 01 08 01 14 00 01 10 01 01 76
//            table 7, schema version 1, token 5, hash 15, partition key "k", no header; a range
//            tombstone ["a", "b") at 10 us, made at 3 s; a complete row "c", column 1 = "v" at 10 us
//
// "header" and "record" are row records (row_record.h), "registers" see paxos_registers.h.
#include "storage/row/mutation.h"

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kVersion = 1, kVersionWithRegisters = 2;
constexpr size_t kPartitionKeyBytesMax = 65535;
constexpr size_t kRangeTombstoneBytesMin = 4;
constexpr size_t kRowBytesMin = 3;

Result<RangeTombstone> decode_range_tombstone(base::ByteReader& r) {
  RangeTombstone tombstone;
  TETRAD_TRY(tombstone.range.start, r.read_bytes());
  TETRAD_TRY(tombstone.range.end, r.read_bytes());
  TETRAD_TRY(tombstone.deletion.timestamp_us, r.read_zigzag());
  TETRAD_TRY(tombstone.deletion.deletion_time_s, r.read_zigzag());
  if (!tombstone.deletion.present())
    return fail(ErrorCode::kCorruption, "range tombstone without a timestamp");
  return tombstone;
}

Result<RowChange> decode_row_change(base::ByteReader& r) {
  RowChange row;
  TETRAD_TRY(row.clustering_key, r.read_bytes());
  TETRAD_TRY(const uint8_t complete, r.read_u8());
  if (complete > 1) return fail(ErrorCode::kCorruption, "row with the flag {}", complete);
  row.complete = complete == 1;
  TETRAD_TRY(row.record, r.read_bytes());
  TETRAD_TRY_VOID(check_row_record(row.record));
  return row;
}

void encode(const Mutation& mutation, uint8_t version, Bytes& out) {
  TETRAD_ASSERT(mutation.partition_key.size() <= kPartitionKeyBytesMax);
  base::ByteWriter w(out);
  w.u8(version);
  w.u32(mutation.incarnation.value);
  w.u64(mutation.schema_version.value);
  w.i64(mutation.position.token);
  w.u64(mutation.position.hash);
  w.bytes(mutation.partition_key);
  w.bytes(mutation.header);
  w.varint(mutation.range_tombstones.size());
  for (const RangeTombstone& tombstone : mutation.range_tombstones) {
    TETRAD_ASSERT(tombstone.deletion.present());
    w.bytes(tombstone.range.start);
    w.bytes(tombstone.range.end);
    w.zigzag(tombstone.deletion.timestamp_us);
    w.zigzag(tombstone.deletion.deletion_time_s);
  }
  w.varint(mutation.rows.size());
  for (const RowChange& row : mutation.rows) {
    w.bytes(row.clustering_key);
    w.u8(row.complete ? 1 : 0);
    w.bytes(row.record);
  }
}

Result<Mutation> decode(BytesView encoded, uint8_t version_max) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version < kVersion || version > version_max)
    return fail(ErrorCode::kCorruption, "mutation of format {}, this program reads {} here",
                version, version_max);
  Mutation mutation;
  TETRAD_TRY(mutation.incarnation.value, r.read_u32());
  TETRAD_TRY(mutation.schema_version.value, r.read_u64());
  TETRAD_TRY(mutation.position.token, r.read_i64());
  TETRAD_TRY(mutation.position.hash, r.read_u64());
  TETRAD_TRY(mutation.partition_key, r.read_bytes());
  if (mutation.partition_key.size() > kPartitionKeyBytesMax)
    return fail(ErrorCode::kCorruption, "partition key of {} bytes, at most {}",
                mutation.partition_key.size(), kPartitionKeyBytesMax);
  TETRAD_TRY(mutation.header, r.read_bytes());
  if (!mutation.header.empty()) TETRAD_TRY_VOID(check_row_record(mutation.header));

  TETRAD_TRY(const uint64_t tombstone_count, r.read_varint());
  if (tombstone_count > r.remaining() / kRangeTombstoneBytesMin)
    return fail(ErrorCode::kCorruption, "mutation says {} range tombstones", tombstone_count);
  mutation.range_tombstones.reserve(tombstone_count);
  for (uint64_t i = 0; i < tombstone_count; ++i) {
    TETRAD_TRY(RangeTombstone tombstone, decode_range_tombstone(r));
    mutation.range_tombstones.push_back(std::move(tombstone));
  }

  TETRAD_TRY(const uint64_t row_count, r.read_varint());
  if (row_count > r.remaining() / kRowBytesMin)
    return fail(ErrorCode::kCorruption, "mutation says {} rows", row_count);
  mutation.rows.reserve(row_count);
  for (uint64_t i = 0; i < row_count; ++i) {
    TETRAD_TRY(RowChange row, decode_row_change(r));
    mutation.rows.push_back(std::move(row));
  }
  if (version == kVersionWithRegisters) {
    TETRAD_TRY(mutation.registers, r.read_bytes());
    if (mutation.registers.empty())
      return fail(ErrorCode::kCorruption, "mutation with registers of no bytes");
  }
  if (!r.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the mutation", r.remaining());
  return mutation;
}

}  // namespace

size_t Mutation::size_bytes() const {
  size_t size = partition_key.size() + header.size() + registers.size();
  for (const RangeTombstone& tombstone : range_tombstones)
    size += tombstone.range.start.size() + tombstone.range.end.size() + sizeof(Deletion);
  for (const RowChange& row : rows) size += row.clustering_key.size() + row.record.size();
  return size;
}

void encode_mutation(const Mutation& mutation, Bytes& out) {
  TETRAD_ASSERT(mutation.registers.empty());
  encode(mutation, kVersion, out);
}

Result<Mutation> decode_mutation(BytesView encoded) { return decode(encoded, kVersion); }

void encode_streamed_mutation(const Mutation& mutation, Bytes& out) {
  if (mutation.registers.empty()) return encode(mutation, kVersion, out);
  encode(mutation, kVersionWithRegisters, out);
  base::ByteWriter(out).bytes(mutation.registers);
}

Result<Mutation> decode_streamed_mutation(BytesView encoded) {
  return decode(encoded, kVersionWithRegisters);
}

}  // namespace tetrad::storage
