// SPDX-License-Identifier: Apache-2.0
// From a partition key to its place on the ring, exactly as Cassandra's Murmur3Partitioner.
//
//   partition key := the value's bytes, for one column
//                  | (u16 length, bytes, 0x00)*, for several columns
//   example: 6b                             "k"
//   example: 0001 6b 00 0004 00000007 00   "k" and the int 7
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/ring_position.h"

namespace tetrad::partitioner {

/// The token of a key that has no bytes; no other key has it.
inline constexpr int64_t kMinimumToken = std::numeric_limits<int64_t>::min();
/// A component, and a whole key, has a 16 bit length.
inline constexpr size_t kKeyComponentBytesMax = 65535;

/// The first 64 bits of MurmurHash3_x64_128 with seed 0, whose tail bytes are sign-extended
/// (Cassandra's variant, kept for ever), without the partitioner's treatment of the minimum.
int64_t murmur3_hash(BytesView bytes);

/// The token drivers compute for a serialized partition key: -2^63 becomes 2^63-1, the empty key is
/// the minimum token.
int64_t token_of(BytesView partition_key);

/// Token and XXH3-64 of a serialized partition key.
RingPosition position_of(BytesView partition_key);

/// Serializes the values of the partition key columns in order. One value: its bytes as they are.
/// Errors: kInvalid "Key length of n is longer than maximum of 65535".
Result<Bytes> serialize_partition_key(std::span<const BytesView> components);

/// Appends the serialized key to `out`; the hot path of serialize_partition_key.
Result<void> append_partition_key(Bytes& out, std::span<const BytesView> components);

/// Splits a serialized key into `count` components. The views point into `partition_key`.
/// Errors: kCorruption when the bytes are not such a key.
Result<std::vector<BytesView>> split_partition_key(BytesView partition_key, size_t count);

}  // namespace tetrad::partitioner
