// SPDX-License-Identifier: Apache-2.0
// What reads find in the block cache. RocksDB counts it for each thread, at the level of counting
// with which every thread begins (PerfLevel::kEnableCount) and which nothing changes here: so it
// costs a look at these figures before and after, and no line is shared between threads.
#pragma once

#include <cstdint>

namespace tetrad::storage {

/// Blocks that were asked of the cache, of all kinds: of data, indexes and filters. Those that a
/// table file pins for itself (of level 0) are not asked for.
struct BlockReads {
  uint64_t hits = 0, misses = 0;

  BlockReads& operator+=(const BlockReads& other) {
    hits += other.hits;
    misses += other.misses;
    return *this;
  }
  friend BlockReads operator-(const BlockReads& a, const BlockReads& b) {
    return {a.hits - b.hits, a.misses - b.misses};
  }
};

/// Of this thread so far. What the loop reads from memory has no misses, so that it asks no more.
uint64_t block_hits_here();
/// Of this thread: hits so far, and misses since the first call.
BlockReads block_reads_here();

}  // namespace tetrad::storage
