// SPDX-License-Identifier: Apache-2.0
// Encodings of what executors of views ask and answer; the grammar is in the header.
#include "replication/views/view_messages.h"

#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr uint8_t kVersion = 1;
// The first byte of an answer: a later stamp was seen, or the row as it was found.
constexpr uint8_t kSeen = 0, kFound = 1;

void put_row(ByteWriter& out, const storage::ViewRow& row) {
  out.varint(row.base.value);
  out.i64(row.position.token);
  out.u64(row.position.hash);
  out.bytes(row.partition_key);
  out.bytes(row.clustering_key);
}

Result<storage::ViewRow> read_row(ByteReader& in) {
  storage::ViewRow row;
  TETRAD_TRY(const uint64_t base, in.read_varint());
  if (base > std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::kCorruption, "table incarnation {}", base);
  row.base.value = static_cast<uint32_t>(base);
  TETRAD_TRY(row.position.token, in.read_i64());
  TETRAD_TRY(row.position.hash, in.read_u64());
  TETRAD_TRY(row.partition_key, in.read_bytes());
  TETRAD_TRY(row.clustering_key, in.read_bytes());
  return row;
}

void put_names(ByteWriter& out, const storage::ViewNamesByView& names) {
  out.varint(names.size());
  for (const auto& [view, of_view] : names) {
    out.u32(view.value);
    out.varint(of_view.size());
    for (const storage::ViewName& name : of_view) {
      out.bytes(name.key_value);
      out.bytes(name.key_cell);
    }
  }
}

// Counts are believed as far as there are bytes for them.
Result<storage::ViewNamesByView> read_names(ByteReader& in) {
  storage::ViewNamesByView names;
  TETRAD_TRY(const uint64_t views, in.read_varint());
  for (uint64_t i = 0; i < views; ++i) {
    TETRAD_TRY(const uint32_t view, in.read_u32());
    TETRAD_TRY(const uint64_t count, in.read_varint());
    storage::ViewNames& of_view = names[{view}];
    for (uint64_t k = 0; k < count; ++k) {
      storage::ViewName name;
      TETRAD_TRY(name.key_value, in.read_bytes());
      TETRAD_TRY(name.key_cell, in.read_bytes());
      of_view.insert(std::move(name));
    }
  }
  return names;
}

void put_sequences(ByteWriter& out, const std::vector<uint64_t>& sequences) {
  out.varint(sequences.size());
  for (const uint64_t sequence : sequences) out.u64(sequence);
}

Result<std::vector<uint64_t>> read_sequences(ByteReader& in) {
  std::vector<uint64_t> sequences;
  TETRAD_TRY(const uint64_t count, in.read_varint());
  // Checked before the loop: the count comes from the network.
  if (count > in.remaining() / sizeof(uint64_t))
    return fail(ErrorCode::kCorruption, "{} sequences in {} bytes", count, in.remaining());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint64_t sequence, in.read_u64());
    sequences.push_back(sequence);
  }
  return sequences;
}

Result<void> check_version(ByteReader& in) {
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "a message of version {}, known is {}", version, kVersion);
  return {};
}

Result<void> check_end(const ByteReader& in) {
  if (in.at_end()) return {};
  return fail(ErrorCode::kCorruption, "{} bytes behind a message of views", in.remaining());
}

}  // namespace

Bytes encode_view_read(const ViewReadRequest& request) {
  Bytes body;
  ByteWriter out(body);
  out.u8(kVersion);
  out.varint(request.epoch.value);
  out.varint(request.schema_version.value);
  put_row(out, request.row);
  out.zigzag(request.stamp.us);
  return body;
}

Result<ViewReadRequest> decode_view_read(BytesView body) {
  ByteReader in(body);
  ViewReadRequest request;
  TETRAD_TRY_VOID(check_version(in));
  TETRAD_TRY(request.epoch.value, in.read_varint());
  TETRAD_TRY(request.schema_version.value, in.read_varint());
  TETRAD_TRY(request.row, read_row(in));
  TETRAD_TRY(request.stamp.us, in.read_zigzag());
  TETRAD_TRY_VOID(check_end(in));
  return request;
}

Bytes encode_view_answer(const storage::ViewRowAnswer& answer) {
  Bytes body;
  ByteWriter out(body);
  out.u8(answer.seen ? kSeen : kFound);
  if (answer.seen) {
    out.zigzag(answer.seen->us);
    return body;
  }
  out.bytes(answer.record);
  put_names(out, answer.names);
  put_sequences(out, answer.sequences);
  return body;
}

Result<storage::ViewRowAnswer> decode_view_answer(BytesView body) {
  ByteReader in(body);
  storage::ViewRowAnswer answer;
  TETRAD_TRY(const uint8_t kind, in.read_u8());
  if (kind == kSeen) {
    answer.seen.emplace();
    TETRAD_TRY(answer.seen->us, in.read_zigzag());
  } else {
    TETRAD_TRY(answer.record, in.read_bytes());
    TETRAD_TRY(answer.names, read_names(in));
    TETRAD_TRY(answer.sequences, read_sequences(in));
  }
  TETRAD_TRY_VOID(check_end(in));
  return answer;
}

Bytes encode_view_settlement(const storage::ViewSettlement& settlement) {
  Bytes body;
  ByteWriter out(body);
  out.u8(kVersion);
  put_row(out, settlement.row);
  put_sequences(out, settlement.sequences);
  put_names(out, settlement.names);
  out.zigzag(settlement.stamp.us);
  return body;
}

Result<storage::ViewSettlement> decode_view_settlement(BytesView body) {
  ByteReader in(body);
  storage::ViewSettlement settlement;
  TETRAD_TRY_VOID(check_version(in));
  TETRAD_TRY(settlement.row, read_row(in));
  TETRAD_TRY(settlement.sequences, read_sequences(in));
  TETRAD_TRY(settlement.names, read_names(in));
  TETRAD_TRY(settlement.stamp.us, in.read_zigzag());
  TETRAD_TRY_VOID(check_end(in));
  return settlement;
}

Bytes encode_view_await(const ViewAwaitRequest& request) {
  Bytes body;
  ByteWriter out(body);
  out.u8(kVersion);
  put_row(out, request.partition);
  out.u8(request.ranges ? 1 : 0);
  out.varint(request.clustering_keys.size());
  for (const Bytes& key : request.clustering_keys) out.bytes(key);
  return body;
}

Result<ViewAwaitRequest> decode_view_await(BytesView body) {
  ByteReader in(body);
  ViewAwaitRequest request;
  TETRAD_TRY_VOID(check_version(in));
  TETRAD_TRY(request.partition, read_row(in));
  TETRAD_TRY(const uint8_t ranges, in.read_u8());
  if (ranges > 1) return fail(ErrorCode::kCorruption, "a flag of {}", ranges);
  request.ranges = ranges == 1;
  TETRAD_TRY(const uint64_t count, in.read_varint());
  // A key takes at least the byte of its size.
  if (count > in.remaining())
    return fail(ErrorCode::kCorruption, "{} keys in {} bytes", count, in.remaining());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const BytesView key, in.read_bytes());
    request.clustering_keys.emplace_back(key);
  }
  TETRAD_TRY_VOID(check_end(in));
  return request;
}

}  // namespace tetrad::replication
