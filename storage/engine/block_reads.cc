// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/block_reads.h"

#include <rocksdb/perf_context.h>

namespace tetrad::storage {

uint64_t block_hits_here() { return rocksdb::get_perf_context()->block_cache_hit_count; }

// Misses are counted by level only (7.8). block_read_count is no measure of them: blocks that were
// read ahead are not in it.
BlockReads block_reads_here() {
  rocksdb::PerfContext& here = *rocksdb::get_perf_context();
  if (!here.per_level_perf_context_enabled) here.EnablePerLevelPerfContext();
  BlockReads reads{.hits = here.block_cache_hit_count};
  for (const auto& [level, of_level] : *here.level_to_perf_context)
    reads.misses += of_level.block_cache_miss_count;
  return reads;
}

}  // namespace tetrad::storage
