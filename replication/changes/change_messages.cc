// SPDX-License-Identifier: Apache-2.0
#include "replication/changes/change_messages.h"

#include "base/ring_position_io.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kStaticKind = 0, kRowKind = 1;
constexpr size_t kChangeBytesMin = 20;  // in an answer
constexpr size_t kPlaceBytesMin = 18;

Result<ChangeSequence> checked(ChangeSequence sequence) {
  if (sequence > kChangeSequenceMax)
    return fail(ErrorCode::kCorruption, "{} is no place in a change log", sequence);
  return sequence;
}

Result<ChangeSequence> read_sequence(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t sequence, in.read_varint());
  return checked(sequence);
}

/// All but the clustering key; says whether there is one.
Result<bool> read_change_head(base::ByteReader& in, Change& change) {
  TETRAD_TRY(change.position, read_position(in));
  TETRAD_TRY(const BytesView partition_key, in.read_bytes());
  change.partition_key = Bytes(partition_key);
  TETRAD_TRY(const uint8_t kind, in.read_u8());
  if (kind > kRowKind) return fail(ErrorCode::kCorruption, "a change of kind {}", kind);
  return kind == kRowKind;
}

Result<void> check_version(base::ByteReader& in) {
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "changes of version {}, known is {}", version, kVersion);
  return {};
}

Result<ChangePlaces> read_places(BytesView encoded) {
  base::ByteReader in(encoded);
  TETRAD_TRY_VOID(check_version(in));
  ChangePlaces out;
  TETRAD_TRY(out.table.value, in.read_u32());
  TETRAD_TRY(out.log.value, in.read_u32());
  TETRAD_TRY(out.since_us, in.read_zigzag());
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining() / kPlaceBytesMin)
    return fail(ErrorCode::kCorruption, "{} places in {} bytes", count, in.remaining());
  for (uint64_t i = 0; i < count; ++i) {
    StoreAddress store;
    TETRAD_TRY(const BytesView host, in.read_raw(16));
    store.host.value = Uuid::from_bytes(host);
    TETRAD_TRY(const uint64_t number, in.read_varint());
    if (number > 0xffffffff) return fail(ErrorCode::kCorruption, "{} is no store", number);
    store.store = static_cast<uint32_t>(number);
    TETRAD_TRY(const ChangeSequence place, read_sequence(in));
    if (!out.places.empty() && store <= out.places.rbegin()->first)
      return fail(ErrorCode::kCorruption, "places out of order");
    out.places.emplace_hint(out.places.end(), store, place);
  }
  if (!in.at_end()) return fail(ErrorCode::kCorruption, "{} bytes too many", in.remaining());
  return out;
}

}  // namespace

void append_log_entry(Bytes& out, ChangeSequence sequence, RingPosition position,
                      BytesView partition_key, std::optional<BytesView> clustering_key) {
  base::ByteWriter writer(out);
  writer.u64(sequence);
  write_position(position, writer);
  writer.bytes(partition_key);
  writer.u8(clustering_key ? kRowKind : kStaticKind);
  if (clustering_key) writer.raw(*clustering_key);
}

Result<LoggedChange> decode_log_entry(BytesView encoded) {
  base::ByteReader in(encoded);
  LoggedChange out;
  TETRAD_TRY(const uint64_t sequence, in.read_u64());
  TETRAD_TRY(out.sequence, checked(sequence));
  TETRAD_TRY(const bool is_row, read_change_head(in, out.change));
  if (is_row) {
    out.change.clustering_key.emplace(in.position(), in.remaining());
  } else if (!in.at_end()) {
    return fail(ErrorCode::kCorruption, "{} bytes after a change", in.remaining());
  }
  return out;
}

Bytes encode_changes_request(const ChangesRequest& request) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u32(request.table.value);
  writer.u32(request.log.value);
  writer.varint(request.layout);
  writer.varint(request.after);
  writer.varint(request.changes_max);
  writer.varint(request.bytes_max);
  writer.u8(request.partition ? 1 : 0);
  if (request.partition) {
    write_position(request.partition->position, writer);
    writer.bytes(request.partition->partition_key);
  }
  return out;
}

Result<ChangesRequest> decode_changes_request(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY_VOID(check_version(in));
  ChangesRequest out;
  TETRAD_TRY(out.table.value, in.read_u32());
  TETRAD_TRY(out.log.value, in.read_u32());
  TETRAD_TRY(out.layout, in.read_varint());
  TETRAD_TRY(out.after, read_sequence(in));
  TETRAD_TRY(const uint64_t changes_max, in.read_varint());
  if (changes_max == 0 || changes_max > 0xffffffff)
    return fail(ErrorCode::kCorruption, "{} changes wanted", changes_max);
  out.changes_max = static_cast<uint32_t>(changes_max);
  TETRAD_TRY(out.bytes_max, in.read_varint());
  TETRAD_TRY(const uint8_t has_partition, in.read_u8());
  if (has_partition > 1)
    return fail(ErrorCode::kCorruption, "a partition that is {}", has_partition);
  if (has_partition == 1) {
    ChangesCommand::Partition& partition = out.partition.emplace();
    TETRAD_TRY(partition.position, read_position(in));
    TETRAD_TRY(const BytesView partition_key, in.read_bytes());
    partition.partition_key = Bytes(partition_key);
  }
  if (!in.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after what is asked", in.remaining());
  return out;
}

Bytes encode_changes_answer(const ChangesAnswer& answer) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u8(answer.exhausted ? 1 : 0);
  writer.varint(answer.scanned);
  writer.varint(answer.end);
  writer.varint(answer.reach);
  writer.varint(answer.changes.size());
  ChangeSequence before = 0;
  for (const auto& [sequence, change] : answer.changes) {
    writer.varint(sequence - before);
    before = sequence;
    write_position(change.position, writer);
    writer.bytes(change.partition_key);
    writer.u8(change.clustering_key ? kRowKind : kStaticKind);
    if (change.clustering_key) writer.bytes(*change.clustering_key);
  }
  return out;
}

Result<ChangesAnswer> decode_changes_answer(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY_VOID(check_version(in));
  ChangesAnswer out;
  TETRAD_TRY(const uint8_t exhausted, in.read_u8());
  out.exhausted = exhausted != 0;
  TETRAD_TRY(out.scanned, read_sequence(in));
  TETRAD_TRY(out.end, read_sequence(in));
  TETRAD_TRY(out.reach, read_sequence(in));
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining() / kChangeBytesMin)
    return fail(ErrorCode::kCorruption, "{} changes in {} bytes", count, in.remaining());
  out.changes.reserve(count);
  ChangeSequence before = 0;
  for (uint64_t i = 0; i < count; ++i) {
    LoggedChange& logged = out.changes.emplace_back();
    TETRAD_TRY(const ChangeSequence step, read_sequence(in));
    TETRAD_TRY(logged.sequence, checked(before + step));
    if (step == 0 || logged.sequence > out.scanned)
      return fail(ErrorCode::kCorruption, "changes out of order");
    before = logged.sequence;
    TETRAD_TRY(const bool is_row, read_change_head(in, logged.change));
    if (!is_row) continue;
    TETRAD_TRY(const BytesView clustering_key, in.read_bytes());
    logged.change.clustering_key = Bytes(clustering_key);
  }
  if (!in.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the changes", in.remaining());
  return out;
}

Bytes encode_change_places(const ChangePlaces& places) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u32(places.table.value);
  writer.u32(places.log.value);
  writer.zigzag(places.since_us);
  writer.varint(places.places.size());
  for (const auto& [store, place] : places.places) {
    writer.raw(store.host.value.view());
    writer.varint(store.store);
    writer.varint(place);
  }
  return out;
}

Result<ChangePlaces> decode_change_places(BytesView encoded) {
  auto places = read_places(encoded);
  if (!places)
    return fail(ErrorCode::kInvalid, "the place in the change feed cannot be read: {}",
                places.error().message);
  return places;
}

}  // namespace tetrad::replication
