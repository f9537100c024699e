// SPDX-License-Identifier: Apache-2.0
// The 128 bit place of a logical partition on the ring: the Murmur3 token that drivers know, then
// XXH3-64 of the serialized partition key, so that two keys with the same token stay distinct.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace tetrad::base {

/// A place on the ring: the token of a partition key, and its XXH3-64, which tells keys of one token
/// apart. Ordered by token, then by hash: the order of keys in a store.
/// Never changes for a key: it is the front of the key on disk (storage/row/storage_key.h).
struct RingPosition {
  int64_t token = 0;
  uint64_t hash = 0;

  friend constexpr auto operator<=>(const RingPosition&, const RingPosition&) = default;

  /// The ends of the ring. No key hashes to lowest(), so (lowest, highest] holds every key.
  static constexpr RingPosition lowest() { return {std::numeric_limits<int64_t>::min(), 0}; }
  static constexpr RingPosition highest() {
    return {std::numeric_limits<int64_t>::max(), std::numeric_limits<uint64_t>::max()};
  }
  /// The last position that carries `token`: the end of a range that is given in tokens.
  /// Both bounds of a token range in CQL are tokens; all keys of the last token belong to it.
  static constexpr RingPosition end_of_token(int64_t token) {
    return {token, std::numeric_limits<uint64_t>::max()};
  }
};

/// The positions p with start < p <= end; never wraps. The whole ring is (lowest, highest]: no key
/// has the token -2^63 (Murmur3Partitioner maps it to 2^63-1) but the empty key, which CQL refuses.
/// A tablet's range; empty when start is not below end.
struct RingRange {
  RingPosition start = RingPosition::lowest();
  RingPosition end = RingPosition::highest();

  friend constexpr auto operator<=>(const RingRange&, const RingRange&) = default;
  // Half open, so that tablets that lie next to each other share a bound and no position.
  constexpr bool contains(RingPosition p) const { return start < p && p <= end; }
  constexpr bool empty() const { return !(start < end); }
};

}  // namespace tetrad::base

namespace tetrad {
using base::RingPosition;
using base::RingRange;
}  // namespace tetrad
