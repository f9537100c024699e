// SPDX-License-Identifier: Apache-2.0
// Encodings of increments, answers and names of shards; the grammar is in the header.
#include "replication/counters/counter_messages.h"

#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kVersion = 1;

void put_deltas(base::ByteWriter& writer, const std::vector<CounterDelta>& deltas) {
  writer.varint(deltas.size());
  for (const CounterDelta& delta : deltas) {
    writer.varint(delta.column_id);
    writer.zigzag(delta.delta);
  }
}

Result<uint64_t> read_count(base::ByteReader& reader) {
  TETRAD_TRY(const uint64_t count, reader.read_varint());
  // Each part has a byte at least: a larger count is garbage, and nothing is allocated for it.
  if (count > reader.remaining())
    return fail(ErrorCode::kCorruption, "{} parts in {} bytes", count, reader.remaining());
  return count;
}

Result<std::vector<CounterDelta>> read_deltas(base::ByteReader& reader) {
  TETRAD_TRY(const uint64_t count, read_count(reader));
  std::vector<CounterDelta> deltas(count);
  for (CounterDelta& delta : deltas) {
    TETRAD_TRY(const uint64_t id, reader.read_varint());
    // Column 0 is the cell that keeps a lossy clustering key; no counter has that number.
    if (id == 0 || id > 0xffffffff) return fail(ErrorCode::kCorruption, "a column of id {}", id);
    delta.column_id = static_cast<uint32_t>(id);
    TETRAD_TRY(delta.delta, reader.read_zigzag());
  }
  return deltas;
}

Result<Bytes> read_copy(base::ByteReader& reader) {
  TETRAD_TRY(const BytesView bytes, reader.read_bytes());
  return Bytes(bytes);
}

Result<CounterIncrement> read_increment(base::ByteReader& reader) {
  CounterIncrement out;
  TETRAD_TRY(const uint64_t incarnation, reader.read_varint());
  if (incarnation > 0xffffffff)
    return fail(ErrorCode::kCorruption, "an incarnation of number {}", incarnation);
  out.incarnation.value = static_cast<uint32_t>(incarnation);
  TETRAD_TRY(out.schema_version.value, reader.read_varint());
  TETRAD_TRY(out.position.token, reader.read_i64());
  TETRAD_TRY(out.position.hash, reader.read_u64());
  TETRAD_TRY(out.partition_key, read_copy(reader));
  TETRAD_TRY(out.statics, read_deltas(reader));
  TETRAD_TRY(const uint64_t rows, read_count(reader));
  for (uint64_t i = 0; i < rows; ++i) {
    CounterRow& row = out.rows.emplace_back();
    TETRAD_TRY(row.clustering_key, read_copy(reader));
    TETRAD_TRY(row.key_cell, read_copy(reader));
    TETRAD_TRY(row.deltas, read_deltas(reader));
  }
  return out;
}

}  // namespace

size_t CounterIncrement::size_bytes() const {
  // An estimate for limits and prices: each delta becomes a total of 8 bytes.
  size_t size = partition_key.size() + 8 * statics.size();
  for (const CounterRow& row : rows)
    size += row.clustering_key.size() + row.key_cell.size() + 8 * row.deltas.size();
  return size;
}

Bytes encode_shard_name(const CounterShardName& name) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.raw(name.store.host.value.view());
  writer.u32(name.store.store);
  writer.u64(name.life);
  writer.varint(name.epoch.value);
  writer.varint(name.sequence);
  return out;
}

Bytes encode_total(int64_t total) {
  Bytes out;
  base::ByteWriter(out).i64(total);
  return out;
}

std::optional<int64_t> decode_total(BytesView value) {
  // From a cell that anybody may have written: never an assertion.
  if (value.size() != sizeof(int64_t)) return std::nullopt;
  return base::load_big_endian<int64_t>(value.data());
}

Bytes encode_counter_request(const CounterRequest& request) {
  const CounterIncrement& of = request.increment;
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.varint(request.epoch.value);
  writer.u8(static_cast<uint8_t>(request.level));
  writer.varint(of.incarnation.value);
  writer.varint(of.schema_version.value);
  writer.i64(of.position.token);
  writer.u64(of.position.hash);
  writer.bytes(of.partition_key);
  put_deltas(writer, of.statics);
  writer.varint(of.rows.size());
  for (const CounterRow& row : of.rows) {
    writer.bytes(row.clustering_key);
    writer.bytes(row.key_cell);
    put_deltas(writer, row.deltas);
  }
  return out;
}

Result<CounterRequest> decode_counter_request(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "a message of version {}, known is {}", version, kVersion);
  CounterRequest out;
  TETRAD_TRY(out.epoch.value, reader.read_varint());
  TETRAD_TRY(const uint8_t level, reader.read_u8());
  // The last number of the enumeration, which is the native protocol's.
  if (level > static_cast<uint8_t>(ConsistencyLevel::kLocalOne))
    return fail(ErrorCode::kCorruption, "a consistency level of number {}", level);
  out.level = static_cast<ConsistencyLevel>(level);
  TETRAD_TRY(out.increment, read_increment(reader));
  if (!reader.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes behind an increment", reader.remaining());
  return out;
}

Bytes encode_counter_answer(const CounterAnswer& answer) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(answer.is_applied ? 1 : 0);
  writer.varint(static_cast<uint64_t>(answer.acks));
  writer.varint(static_cast<uint64_t>(answer.required));
  return out;
}

Result<CounterAnswer> decode_counter_answer(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY(const uint8_t applied, reader.read_u8());
  TETRAD_TRY(const uint64_t acks, reader.read_varint());
  TETRAD_TRY(const uint64_t required, reader.read_varint());
  if (applied > 1 || acks > 0xffff || required > 0xffff)
    return fail(ErrorCode::kCorruption, "an answer to an increment of {} bytes", body.size());
  return CounterAnswer{applied == 1, static_cast<int>(acks), static_cast<int>(required)};
}

}  // namespace tetrad::replication
