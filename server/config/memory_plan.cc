// SPDX-License-Identifier: Apache-2.0
// Each part is a fraction of the memory within bounds: below the least a node would not work well,
// beyond the most more memory does not help. Fractions were chosen so that all together stay below
// three quarters.
#include "server/config/memory_plan.h"

#include <algorithm>
#include <limits>

namespace tetrad::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;

/// An option in MiB, or if that is automatic a part of the memory within bounds.
uint64_t chosen(uint64_t option_mb, uint64_t part_bytes, uint64_t least_bytes,
                uint64_t most_bytes) {
  if (option_mb != kAutomatic) return option_mb * kMiB;
  return std::clamp(part_bytes, least_bytes, most_bytes);
}

/// As many as may be in memory at a time (memory_plan.h).
uint64_t memtables_most(uint32_t shards) { return std::max<uint64_t>(4, uint64_t{2} * shards); }

}  // namespace

MemoryPlan plan_memory(const Options& options, uint64_t memory_bytes, uint32_t shards) {
  MemoryPlan out;
  const uint64_t stores = std::max<uint64_t>(shards, 1);
  out.block_cache = chosen(options.block_cache_mb, memory_bytes / 8, 8 * kMiB, 512 * kMiB);
  out.row_cache = chosen(options.row_cache_mb, memory_bytes / 64, kMiB, 64 * kMiB);
  out.vector_graphs =
      chosen(options.vector_graphs_mb, memory_bytes / 10, 0, std::numeric_limits<uint64_t>::max());
  out.write_buffer =
      chosen(options.write_buffer_mb, memory_bytes / 8 / memtables_most(shards), kMiB, 64 * kMiB);
  out.write_queue = std::clamp(memory_bytes / 32 / stores, 4 * kMiB, 64 * kMiB);
  out.requests =
      options.request_memory_mb != 0 ? options.request_memory_mb * kMiB : memory_bytes / 10;
  out.answers = std::clamp(memory_bytes / 16, 4 * kMiB, 32 * kMiB);
  out.prepared = std::clamp(memory_bytes / 16, 4 * kMiB, 128 * kMiB);
  out.peer_queue = std::clamp(memory_bytes / 32 / stores, 20 * kMiB, 64 * kMiB);
  return out;
}

uint64_t bytes_together(const MemoryPlan& plan, uint32_t shards) {
  return plan.block_cache + plan.row_cache + plan.vector_graphs +
         memtables_most(shards) * plan.write_buffer + plan.requests;
}

}  // namespace tetrad::server
