// SPDX-License-Identifier: Apache-2.0
// Keys of a store, in byte order equal to CQL order.
//
//   key := u32 incarnation, u64 token (sign bit flipped), u64 hash of the partition key,
//          u16 length, partition key, u8 kind, clustering key
//   example: 00000007 7ffffffffffffffe 0000000000000003 0002 706b 02 636b
//            table 7, token -2, hash 3, partition key "pk", a row, clustering key "ck"
//
// Fixed integers are big-endian. Kind 0: partition header; 1: range tombstones that start at the
// clustering key; 2: rows; 3: the partition's Paxos registers (paxos_registers.h), without a
// clustering key: they are no row, and a partition that has nothing else is none to readers. The
// first 20 bytes are the prefix that Bloom filters know.
//
// Values: of kinds 0 and 2 a row record (row_record.h), of kind 1 a set of range tombstones
// (range_tombstones.h), of kind 3 registers; of each kind a bundle (engine/value_merge.h) where
// some of the versions do not decode.
//
// Incarnation 0xfffffffe has the claims of all tables (index/claim.h).
//
// Incarnation 0xffffffff is the store's own and holds none of these keys, but:
//   own := u32 0xffffffff, ("retired", u32 incarnation | "schema", u32 incarnation | "probe"
//          | "scrub" | "sync", u32 slot | "life" | "index", u32 incarnation, u16 index id)
//   retired: no value, the incarnation was dropped or truncated; schema: u64 schema version of the
//   last write; probe: no value, written to try the disk; scrub: engine/scrub.h; sync and life:
//   engine/sync_records.h; index: index/table_indexes.h
//   example: ffffffff 72657469726564 00000007   table incarnation 7 is retired
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/ring_position.h"

namespace tetrad::storage {

/// What lies at a key of a partition, in the order in which readers need it. The numbers are on
/// disk.
enum class KeyKind : uint8_t { kHeader = 0, kRangeTombstone = 1, kRow = 2, kRegisters = 3 };

inline constexpr TableIncarnation kStoreIncarnation{0xffffffff};
inline constexpr size_t kKeyPrefixBytes = 20;
inline constexpr size_t kPartitionKeyBytesMax = 65535;
/// Sorts after every kind: a partition prefix and this byte is the end of the partition.
inline constexpr char kPastKinds = 4;

/// Names a logical partition; the key outlives it.
struct PartitionName {
  TableIncarnation incarnation;
  RingPosition position;
  BytesView partition_key;
};

/// Views point into the key.
struct StorageKeyView {
  TableIncarnation incarnation;
  RingPosition position;
  BytesView partition_key;
  KeyKind kind = KeyKind::kHeader;
  BytesView clustering_key;
  /// The bytes before the kind: equal in all keys of one partition.
  BytesView partition_prefix;
};

/// Appends what all keys of a partition begin with.
void append_partition_prefix(Bytes& out, TableIncarnation incarnation, RingPosition position,
                             BytesView partition_key);
/// Appends a whole key.
void append_storage_key(Bytes& out, TableIncarnation incarnation, RingPosition position,
                        BytesView partition_key, KeyKind kind, BytesView clustering_key);
/// Where a partition's registers are.
Bytes registers_key(const PartitionName& partition);
/// Whether a key of a store is such a place; for every other key it costs next to nothing.
bool is_registers_key(BytesView key);
/// Unset for bytes that are no such key (the store's own keys are none).
std::optional<StorageKeyView> decode_storage_key(BytesView key);

/// Keys k with start <= k < end.
struct KeyRange {
  Bytes start, end;
};
KeyRange keys_of_incarnation(TableIncarnation incarnation);
KeyRange keys_of_range(TableIncarnation incarnation, const RingRange& range);

/// The order of partitions in a store: position, then length of the key, then its bytes. Negative,
/// 0 or positive.
int compare_partitions(RingPosition a, BytesView a_key, RingPosition b, BytesView b_key);

/// Which of the 64 K bucket marks (rule 14) a partition belongs to.
inline constexpr size_t kBucketCount = 65536;
uint16_t bucket_of(TableIncarnation incarnation, RingPosition position);

}  // namespace tetrad::storage
