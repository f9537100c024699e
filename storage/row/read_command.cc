// SPDX-License-Identifier: Apache-2.0
// Encoding of read commands and read results between nodes.
//
//   command   := u8 version (2; 3: by an index; 4: the nearest), u8 flags, u32 incarnation, u64 schema version,
//                (position, bytes partition key | position start, position end),
//                [place], varint count, (bytes row)*, varint count, (bytes start, bytes end)*,
//                u32 row limit, u32 per partition limit, varint bytes limit, [varint bytes max],
//                u32 rows done, zigzag now, zigzag horizon, [index | nearest],
//                [bytes fold, bytes state of the fold]
//   flags     := 0x01 a range of the ring, 0x02 has a place to go on after, 0x04 reversed,
//                0x08 static cells wanted, 0x10 distinct partitions, 0x20 live rows only,
//                0x40 count only (the fold, if any, is the rest), 0x80 has bytes max
//   index     := of version 3: u16 index id, u8 (1: has an upper bound, 2: keeps what is disproved,
//                4: names only), bytes lower, [bytes upper]
//   nearest   := of version 4: u32 column id, u8 similarity, u8 (1: favours recall), u32 rows, bytes
//                vector, position start, position end (of the tablet)
//   place     := position, bytes partition key, u8 has clustering key, [bytes clustering key]
//   position  := i64 token, u64 hash
//   example: 02 28 00000007 0000000000000001 0000000000000005 000000000000000f 01 6b
//            00 01 01 61 01 62 0000000a ffffffff 80808008 00000000 c801 ffffffffffffffffff01
//            table 7, schema version 1, token 5, hash 15, partition "k", rows from "a" to before
//            "b", at most 10, live at 100 s, no horizon
//
//   result    := u8 version (1), u8 flags, u32 live rows, [place], [count], [varint withheld bytes],
//                varint count, partition*
//   flags     := 0x01 exhausted (else place: complete up to there), 0x02 settled, 0x04 has count,
//                0x08 has withheld bytes, 0x10 count has weight, 0x20 count has a folded state
//   count     := u32 rows of the last partition, 16 bytes digest, [varint weight],
//                [bytes state of the fold]
//   partition := position, bytes partition key, bytes header,
//                varint count, (bytes start, bytes end, zigzag timestamp, zigzag deletion time)*,
//                varint count, (bytes clustering key, bytes record)*
//   example: 01 01 00000001 01 0000000000000005 000000000000000f 01 6b 00 00 01 01 61
//            08 01 14 00 01 10 01 01 76
//            exhausted, one live row: partition "k", row "a", column 1 = "v" at 10 us
#include "storage/row/read_command.h"

#include "base/assert.h"
#include "base/ring_position_io.h"
#include "storage/row/row_fold.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kVersion = 1;  // of an answer
constexpr uint8_t kCommandVersion = 2, kIndexCommandVersion = 3, kNearestCommandVersion = 4;
constexpr uint64_t kRowsWantedMax = 65536;
constexpr size_t kPartitionBytesMin = 20;

constexpr uint8_t kIsRange = 0x01;
constexpr uint8_t kHasResume = 0x02;
constexpr uint8_t kReversed = 0x04;
constexpr uint8_t kWantsStatic = 0x08;
constexpr uint8_t kDistinct = 0x10;
constexpr uint8_t kLiveOnly = 0x20;
constexpr uint8_t kCountOnly = 0x40;
constexpr uint8_t kHasBytesMax = 0x80;

constexpr uint8_t kHasUpper = 0x01;
constexpr uint8_t kKeepsDisproved = 0x02;
constexpr uint8_t kNamesOnly = 0x04;

constexpr uint8_t kExhausted = 0x01;
constexpr uint8_t kSettled = 0x02;
constexpr uint8_t kHasCount = 0x04;
constexpr uint8_t kWithheld = 0x08;
constexpr uint8_t kHasWeight = 0x10;
constexpr uint8_t kHasFolded = 0x20;
constexpr uint8_t kKnownResultFlags = 0x3f;

void write_place(base::ByteWriter& w, const ReadPosition& place) {
  write_position(place.position, w);
  w.bytes(place.partition_key);
  w.u8(place.clustering_key ? 1 : 0);
  if (place.clustering_key) w.bytes(*place.clustering_key);
}

Result<ReadPosition> read_place(base::ByteReader& r) {
  ReadPosition place;
  TETRAD_TRY(place.position, read_position(r));
  TETRAD_TRY(place.partition_key, r.read_bytes());
  TETRAD_TRY(const uint8_t has_clustering_key, r.read_u8());
  if (has_clustering_key > 1)
    return fail(ErrorCode::kCorruption, "place with the flag {}", has_clustering_key);
  if (has_clustering_key == 1) {
    TETRAD_TRY(place.clustering_key, r.read_bytes());
  }
  return place;
}

/// A count of things that take at least `bytes_min` each: what a peer says is bounded by what it
/// has sent, before room is made for it.
Result<uint64_t> read_count(base::ByteReader& r, size_t bytes_min) {
  TETRAD_TRY(const uint64_t count, r.read_varint());
  if (count > r.remaining() / bytes_min)
    return fail(ErrorCode::kCorruption, "{} things wanted, {} bytes left", count, r.remaining());
  return count;
}

Result<void> read_slices(base::ByteReader& r, ReadCommand& command) {
  TETRAD_TRY(const uint64_t row_count, read_count(r, 1));
  if (row_count > kRowsWantedMax)
    return fail(ErrorCode::kCorruption, "{} rows wanted, at most {}", row_count, kRowsWantedMax);
  command.rows.reserve(row_count);
  for (uint64_t i = 0; i < row_count; ++i) {
    TETRAD_TRY(const BytesView key, r.read_bytes());
    if (i > 0 && key <= command.rows.back())
      return fail(ErrorCode::kCorruption, "wanted rows are not ascending");
    command.rows.emplace_back(key);
  }
  TETRAD_TRY(const uint64_t range_count, read_count(r, 2));
  command.clustering_ranges.reserve(range_count);
  for (uint64_t i = 0; i < range_count; ++i) {
    TETRAD_TRY(const BytesView start, r.read_bytes());
    TETRAD_TRY(const BytesView end, r.read_bytes());
    if (i > 0 && start < command.clustering_ranges.back().end)
      return fail(ErrorCode::kCorruption, "wanted clustering ranges are not ascending");
    command.clustering_ranges.push_back({Bytes(start), Bytes(end)});
  }
  return {};
}

void write_index(const IndexBounds& index, base::ByteWriter& w) {
  w.u16(index.index_id);
  w.u8(static_cast<uint8_t>((index.upper ? kHasUpper : 0) |
                            (index.keeps_disproved ? kKeepsDisproved : 0) |
                            (index.names_only ? kNamesOnly : 0)));
  w.bytes(index.lower);
  if (index.upper) w.bytes(*index.upper);
}

Result<IndexBounds> read_index(base::ByteReader& r) {
  IndexBounds index;
  TETRAD_TRY(index.index_id, r.read_u16());
  TETRAD_TRY(const uint8_t flags, r.read_u8());
  if (flags > (kHasUpper | kKeepsDisproved | kNamesOnly))
    return fail(ErrorCode::kCorruption, "index bounds with the flags {}", flags);
  index.keeps_disproved = (flags & kKeepsDisproved) != 0;
  index.names_only = (flags & kNamesOnly) != 0;
  TETRAD_TRY(index.lower, r.read_bytes());
  if ((flags & kHasUpper) != 0) {
    TETRAD_TRY(index.upper, r.read_bytes());
  }
  return index;
}

void write_nearest(const NearestSearch& nearest, base::ByteWriter& w) {
  w.u32(nearest.column_id);
  w.u8(static_cast<uint8_t>(nearest.similarity));
  w.u8(nearest.favours_recall ? 1 : 0);
  w.u32(nearest.rows_max);
  w.bytes(nearest.vector);
  write_position(nearest.graph_range.start, w);
  write_position(nearest.graph_range.end, w);
}

Result<NearestSearch> read_nearest(base::ByteReader& r) {
  NearestSearch nearest;
  TETRAD_TRY(nearest.column_id, r.read_u32());
  TETRAD_TRY(const uint8_t similarity, r.read_u8());
  TETRAD_TRY(const uint8_t favours_recall, r.read_u8());
  TETRAD_TRY(nearest.rows_max, r.read_u32());
  TETRAD_TRY(nearest.vector, r.read_bytes());
  TETRAD_TRY(nearest.graph_range.start, read_position(r));
  TETRAD_TRY(nearest.graph_range.end, read_position(r));
  const size_t bytes = nearest.vector.size();
  if (similarity >= kSimilaritiesEnd || favours_recall > 1 || nearest.rows_max == 0 ||
      nearest.rows_max > kNearestRowsMax || bytes == 0 || bytes % sizeof(float) != 0 ||
      bytes > kNearestVectorBytesMax)
    return fail(ErrorCode::kCorruption,
                "a search for the {} nearest to a vector of {} bytes by the similarity {}",
                nearest.rows_max, bytes, similarity);
  nearest.similarity = static_cast<Similarity>(similarity);
  nearest.favours_recall = favours_recall == 1;
  return nearest;
}

Result<PartitionData> read_partition(base::ByteReader& r) {
  PartitionData partition;
  TETRAD_TRY(partition.position, read_position(r));
  TETRAD_TRY(partition.partition_key, r.read_bytes());
  TETRAD_TRY(partition.header, r.read_bytes());
  TETRAD_TRY(const uint64_t tombstone_count, read_count(r, 4));
  partition.range_tombstones.reserve(tombstone_count);
  for (uint64_t i = 0; i < tombstone_count; ++i) {
    RangeTombstoneView tombstone;
    TETRAD_TRY(tombstone.start, r.read_bytes());
    TETRAD_TRY(tombstone.end, r.read_bytes());
    TETRAD_TRY(tombstone.deletion.timestamp_us, r.read_zigzag());
    TETRAD_TRY(tombstone.deletion.deletion_time_s, r.read_zigzag());
    partition.range_tombstones.push_back(tombstone);
  }
  TETRAD_TRY(const uint64_t row_count, read_count(r, 2));
  partition.rows.reserve(row_count);
  for (uint64_t i = 0; i < row_count; ++i) {
    RowData row;
    TETRAD_TRY(row.clustering_key, r.read_bytes());
    TETRAD_TRY(row.record, r.read_bytes());
    partition.rows.push_back(row);
  }
  return partition;
}

}  // namespace

void encode_read_command(const ReadCommand& command, Bytes& out) {
  TETRAD_ASSERT(command.fold == nullptr || command.count_only);
  base::ByteWriter w(out);
  TETRAD_ASSERT(!command.nearest || (command.is_range && !command.by_index && !command.count_only));
  w.u8(command.nearest    ? kNearestCommandVersion
       : command.by_index ? kIndexCommandVersion
                          : kCommandVersion);
  w.u8(static_cast<uint8_t>(
      (command.is_range ? kIsRange : 0) | (command.resume_after ? kHasResume : 0) |
      (command.reversed ? kReversed : 0) | (command.wants_static ? kWantsStatic : 0) |
      (command.distinct_partitions ? kDistinct : 0) | (command.live_only ? kLiveOnly : 0) |
      (command.count_only ? kCountOnly : 0) |
      (command.bytes_max != ReadCommand::kNoBytesMax ? kHasBytesMax : 0)));
  w.u32(command.incarnation.value);
  w.u64(command.schema_version.value);
  if (command.is_range) {
    write_position(command.range.start, w);
    write_position(command.range.end, w);
  } else {
    write_position(command.position, w);
    w.bytes(command.partition_key);
  }
  if (command.resume_after) write_place(w, *command.resume_after);
  w.varint(command.rows.size());
  for (const Bytes& key : command.rows) w.bytes(key);
  w.varint(command.clustering_ranges.size());
  for (const ClusteringRange& range : command.clustering_ranges) {
    w.bytes(range.start);
    w.bytes(range.end);
  }
  w.u32(command.row_limit);
  w.u32(command.per_partition_limit);
  w.varint(command.bytes_limit);
  if (command.bytes_max != ReadCommand::kNoBytesMax) w.varint(command.bytes_max);
  w.u32(command.partition_rows_done);
  w.zigzag(command.now_s);
  w.zigzag(command.horizon_s);
  if (command.by_index) write_index(*command.by_index, w);
  if (command.nearest) write_nearest(*command.nearest, w);
  if (command.fold != nullptr) {
    w.bytes(command.fold->spec());
    w.bytes(command.fold_state);
  }
}

Result<ReadCommand> decode_read_command(BytesView encoded, FoldReader read_fold) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version != kCommandVersion && version != kIndexCommandVersion &&
      version != kNearestCommandVersion)
    return fail(ErrorCode::kCorruption, "read command of format {}, this program reads {}", version,
                kCommandVersion);
  TETRAD_TRY(const uint8_t flags, r.read_u8());
  ReadCommand command;
  command.is_range = (flags & kIsRange) != 0;
  command.reversed = (flags & kReversed) != 0;
  command.wants_static = (flags & kWantsStatic) != 0;
  command.distinct_partitions = (flags & kDistinct) != 0;
  command.live_only = (flags & kLiveOnly) != 0;
  command.count_only = (flags & kCountOnly) != 0;
  TETRAD_TRY(command.incarnation.value, r.read_u32());
  TETRAD_TRY(command.schema_version.value, r.read_u64());
  if (command.is_range) {
    TETRAD_TRY(command.range.start, read_position(r));
    TETRAD_TRY(command.range.end, read_position(r));
  } else {
    TETRAD_TRY(command.position, read_position(r));
    TETRAD_TRY(command.partition_key, r.read_bytes());
  }
  if (flags & kHasResume) {
    TETRAD_TRY(command.resume_after, read_place(r));
  }
  TETRAD_TRY_VOID(read_slices(r, command));
  TETRAD_TRY(command.row_limit, r.read_u32());
  TETRAD_TRY(command.per_partition_limit, r.read_u32());
  TETRAD_TRY(command.bytes_limit, r.read_varint());
  if ((flags & kHasBytesMax) != 0) {
    TETRAD_TRY(command.bytes_max, r.read_varint());
  }
  TETRAD_TRY(command.partition_rows_done, r.read_u32());
  TETRAD_TRY(command.now_s, r.read_zigzag());
  TETRAD_TRY(command.horizon_s, r.read_zigzag());
  if (version == kIndexCommandVersion) {
    TETRAD_TRY(command.by_index, read_index(r));
  }
  if (version == kNearestCommandVersion) {
    if (!command.is_range || command.count_only)
      return fail(ErrorCode::kCorruption, "a search for the nearest that is of no range");
    TETRAD_TRY(command.nearest, read_nearest(r));
  }
  if (command.count_only && !r.at_end()) {
    TETRAD_TRY(const BytesView spec, r.read_bytes());
    TETRAD_TRY(command.fold_state, r.read_bytes());
    if (read_fold == nullptr) return fail(ErrorCode::kCorruption, "no rows are folded here");
    TETRAD_TRY(command.fold, read_fold(spec));
  }
  if (!r.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the read command", r.remaining());
  return command;
}

// The asker learns the size and asks in smaller parts, or refuses its client: either is cheaper
// than to carry it.
void withhold_if_larger(ReadResult& result, uint64_t bytes_max) {
  const uint64_t bytes = result.arena.allocated_bytes();
  if (bytes <= bytes_max) return;
  result = ReadResult();
  result.withheld_bytes = bytes;
}

void encode_read_result(const ReadResult& result, Bytes& out) {
  TETRAD_ASSERT(result.withheld_bytes == 0 || result.partitions.empty());
  base::ByteWriter w(out);
  w.u8(kVersion);
  w.u8(static_cast<uint8_t>((result.exhausted ? kExhausted : 0) | (result.settled ? kSettled : 0) |
                            (result.count ? kHasCount : 0) |
                            (result.count && result.count->weight != 0 ? kHasWeight : 0) |
                            (result.count && result.count->folded ? kHasFolded : 0) |
                            (result.withheld_bytes != 0 ? kWithheld : 0)));
  w.u32(result.live_row_count);
  if (!result.exhausted) write_place(w, result.complete_up_to);
  if (result.count) {
    w.u32(result.count->rows_of_last);
    w.u64(result.count->digest.high);
    w.u64(result.count->digest.low);
    if (result.count->weight != 0) w.varint(result.count->weight);
    if (result.count->folded) w.bytes(*result.count->folded);
  }
  if (result.withheld_bytes != 0) w.varint(result.withheld_bytes);
  w.varint(result.partitions.size());
  for (const PartitionData& partition : result.partitions) {
    write_position(partition.position, w);
    w.bytes(partition.partition_key);
    w.bytes(partition.header);
    w.varint(partition.range_tombstones.size());
    for (const RangeTombstoneView& tombstone : partition.range_tombstones) {
      w.bytes(tombstone.start);
      w.bytes(tombstone.end);
      w.zigzag(tombstone.deletion.timestamp_us);
      w.zigzag(tombstone.deletion.deletion_time_s);
    }
    w.varint(partition.rows.size());
    for (const RowData& row : partition.rows) {
      w.bytes(row.clustering_key);
      w.bytes(row.record);
    }
  }
}

Result<ReadResult> decode_read_result(Bytes encoded) {
  ReadResult result;
  base::ByteReader r(result.arena.adopt(std::move(encoded)));
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "read result of format {}, this program reads {}", version,
                kVersion);
  TETRAD_TRY(const uint8_t flags, r.read_u8());
  if ((flags & ~kKnownResultFlags) != 0)
    return fail(ErrorCode::kCorruption, "read result with unknown flags 0x{:02x}", flags);
  result.exhausted = (flags & kExhausted) != 0;
  result.settled = (flags & kSettled) != 0;
  TETRAD_TRY(result.live_row_count, r.read_u32());
  if (!result.exhausted) {
    TETRAD_TRY(result.complete_up_to, read_place(r));
  }
  if ((flags & kHasCount) != 0) {
    RowCount& count = result.count.emplace();
    TETRAD_TRY(count.rows_of_last, r.read_u32());
    TETRAD_TRY(count.digest.high, r.read_u64());
    TETRAD_TRY(count.digest.low, r.read_u64());
    if ((flags & kHasWeight) != 0) {
      TETRAD_TRY(count.weight, r.read_varint());
    }
    if ((flags & kHasFolded) != 0) {
      TETRAD_TRY(count.folded, r.read_bytes());
    }
  }
  if ((flags & kWithheld) != 0) {
    TETRAD_TRY(result.withheld_bytes, r.read_varint());
  }
  TETRAD_TRY(const uint64_t count, read_count(r, kPartitionBytesMin));
  result.partitions.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(PartitionData partition, read_partition(r));
    result.partitions.push_back(std::move(partition));
  }
  if (!r.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the read result", r.remaining());
  return result;
}

}  // namespace tetrad::storage
