// SPDX-License-Identifier: Apache-2.0
// The digest of a read: XXH3-128 over the decoded fields, so that it does not depend on how a
// record happens to be encoded. Replicas of different programs compare digests, so this is a format
// between nodes although nobody decodes it.
//
//   hashed    := partition*
//   partition := u8 1, i64 token, u64 hash, bytes partition key, record of the header,
//                (u8 2, bytes start, bytes end, zigzag timestamp, zigzag deletion time)*,
//                (u8 3, bytes clustering key, record)*
//   record    := [u8 4, zigzag timestamp, varint ttl, zigzag expiry], [u8 5, zigzag timestamp,
//                zigzag deletion time], (u8 6, u8 kind | 4 if it has a path, varint column id,
//                zigzag timestamp, varint ttl, zigzag expiry, bytes path, bytes value)*,
//                [u8 7, bytes the whole record, if it does not decode]
#include "base/byte_io.h"
#include "storage/row/read_command.h"

namespace tetrad::storage {
namespace {

constexpr size_t kFlushBytes = 16 * 1024;

/// Tags keep neighbouring fields apart.
enum Tag : uint8_t { kPartition = 1, kTombstone, kRow, kMarker, kDeletion, kCell, kBroken };

class Digester {
 public:
  void add(const PartitionData& partition) {
    w_.u8(kPartition);
    w_.i64(partition.position.token);
    w_.u64(partition.position.hash);
    w_.bytes(partition.partition_key);
    if (!partition.header.empty()) add_record(partition.header);
    for (const RangeTombstoneView& tombstone : partition.range_tombstones) {
      w_.u8(kTombstone);
      w_.bytes(tombstone.start);
      w_.bytes(tombstone.end);
      w_.zigzag(tombstone.deletion.timestamp_us);
      w_.zigzag(tombstone.deletion.deletion_time_s);
    }
    for (const RowData& row : partition.rows) {
      w_.u8(kRow);
      w_.bytes(row.clustering_key);
      add_record(row.record);
      if (buffer_.size() >= kFlushBytes) flush();
    }
  }
  base::Hash128 finish() {
    flush();
    return hash_.digest();
  }

 private:
  void add_record(BytesView record) {
    RowRecordReader reader;
    if (!reader.open(record)) {
      w_.u8(kBroken);
      w_.bytes(record);
      return;
    }
    if (const Liveness& liveness = reader.liveness(); liveness.present()) {
      w_.u8(kMarker);
      w_.zigzag(liveness.timestamp_us);
      w_.varint(static_cast<uint64_t>(liveness.ttl_s));
      w_.zigzag(liveness.expiry_s);
    }
    if (const Deletion& deletion = reader.deletion(); deletion.present()) {
      w_.u8(kDeletion);
      w_.zigzag(deletion.timestamp_us);
      w_.zigzag(deletion.deletion_time_s);
    }
    Cell cell;
    while (reader.next(cell)) {
      w_.u8(kCell);
      w_.u8(static_cast<uint8_t>(static_cast<uint8_t>(cell.kind) | (cell.has_path ? 4 : 0)));
      w_.varint(cell.column_id);
      w_.zigzag(cell.timestamp_us);
      w_.varint(static_cast<uint64_t>(cell.ttl_s));
      w_.zigzag(cell.expiry_s);
      w_.bytes(cell.path);
      w_.bytes(cell.value);
    }
    if (!reader.status()) {
      w_.u8(kBroken);
      w_.bytes(record);
    }
  }
  void flush() {
    hash_.update(buffer_);
    buffer_.clear();
  }

  Bytes buffer_;
  base::ByteWriter w_{buffer_};
  base::StreamingHash128 hash_;
};

}  // namespace

base::Hash128 digest_of(const ReadResult& result) {
  Digester digester;
  for (const PartitionData& partition : result.partitions) digester.add(partition);
  return digester.finish();
}

}  // namespace tetrad::storage
