// SPDX-License-Identifier: Apache-2.0
// Making and taking apart of keys. The format is described in storage_key.h.
#include "storage/row/storage_key.h"

#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr size_t kLengthAt = kKeyPrefixBytes;
constexpr size_t kPartitionKeyAt = kKeyPrefixBytes + 2;

void append_position(Bytes& out, TableIncarnation incarnation, RingPosition position) {
  char prefix[kKeyPrefixBytes];
  base::store_big_endian(prefix, incarnation.value);
  base::store_big_endian(prefix + 4, static_cast<uint64_t>(position.token) ^ kSignBit);
  base::store_big_endian(prefix + 12, position.hash);
  out.append(prefix, sizeof(prefix));
}

// The first key after everything at `position`.
Bytes key_past(TableIncarnation incarnation, RingPosition position) {
  if (++position.hash == 0) {
    if (position.token == std::numeric_limits<int64_t>::max())
      return keys_of_incarnation(incarnation).end;
    ++position.token;
  }
  Bytes key;
  append_position(key, incarnation, position);
  return key;
}

}  // namespace

void append_partition_prefix(Bytes& out, TableIncarnation incarnation, RingPosition position,
                             BytesView partition_key) {
  TETRAD_ASSERT(partition_key.size() <= kPartitionKeyBytesMax);
  append_position(out, incarnation, position);
  char length[2];
  base::store_big_endian(length, static_cast<uint16_t>(partition_key.size()));
  out.append(length, 2);
  out.append(partition_key);
}

void append_storage_key(Bytes& out, TableIncarnation incarnation, RingPosition position,
                        BytesView partition_key, KeyKind kind, BytesView clustering_key) {
  append_partition_prefix(out, incarnation, position, partition_key);
  out.push_back(static_cast<char>(kind));
  out.append(clustering_key);
}

Bytes registers_key(const PartitionName& partition) {
  Bytes key;
  append_storage_key(key, partition.incarnation, partition.position, partition.partition_key,
                     KeyKind::kRegisters, {});
  return key;
}

bool is_registers_key(BytesView key) {
  if (key.empty() || key.back() != static_cast<char>(KeyKind::kRegisters)) return false;
  const auto place = decode_storage_key(key);
  return place && place->kind == KeyKind::kRegisters;
}

std::optional<StorageKeyView> decode_storage_key(BytesView key) {
  if (key.size() < kPartitionKeyAt + 1) return std::nullopt;
  StorageKeyView view;
  view.incarnation.value = base::load_big_endian<uint32_t>(key.data());
  if (view.incarnation == kStoreIncarnation) return std::nullopt;
  view.position.token =
      static_cast<int64_t>(base::load_big_endian<uint64_t>(key.data() + 4) ^ kSignBit);
  view.position.hash = base::load_big_endian<uint64_t>(key.data() + 12);
  const size_t length = base::load_big_endian<uint16_t>(key.data() + kLengthAt);
  if (key.size() < kPartitionKeyAt + length + 1) return std::nullopt;
  view.partition_key = key.substr(kPartitionKeyAt, length);
  view.partition_prefix = key.substr(0, kPartitionKeyAt + length);
  const auto kind = static_cast<uint8_t>(key[kPartitionKeyAt + length]);
  if (kind >= static_cast<uint8_t>(kPastKinds)) return std::nullopt;
  view.kind = static_cast<KeyKind>(kind);
  TETRAD_ASSERT(view.partition_prefix.size() < key.size());
  view.clustering_key = key.substr(kPartitionKeyAt + length + 1);
  return view;
}

KeyRange keys_of_incarnation(TableIncarnation incarnation) {
  TETRAD_ASSERT(incarnation != kStoreIncarnation);
  KeyRange keys;
  base::ByteWriter(keys.start).u32(incarnation.value);
  base::ByteWriter(keys.end).u32(incarnation.value + 1);
  return keys;
}

KeyRange keys_of_range(TableIncarnation incarnation, const RingRange& range) {
  TETRAD_ASSERT(incarnation != kStoreIncarnation);
  KeyRange keys{key_past(incarnation, range.start), key_past(incarnation, range.end)};
  TETRAD_ASSERT(range.empty() || keys.start < keys.end);
  return keys;
}

int compare_partitions(RingPosition a, BytesView a_key, RingPosition b, BytesView b_key) {
  if (a != b) return a < b ? -1 : 1;
  if (a_key.size() != b_key.size()) return a_key.size() < b_key.size() ? -1 : 1;
  return a_key.compare(b_key);
}

uint16_t bucket_of(TableIncarnation incarnation, RingPosition position) {
  const uint64_t mixed = (position.hash ^ static_cast<uint64_t>(position.token) ^
                          (uint64_t{incarnation.value} << 32)) *
                         0x9E3779B97F4A7C15ULL;
  return static_cast<uint16_t>(mixed >> 48);
}

}  // namespace tetrad::storage
