// SPDX-License-Identifier: Apache-2.0
// How a node's memory is shared out between its caches and budgets.
#pragma once

#include <cstdint>

#include "server/config/options.h"

namespace tetrad::server {

/// In bytes. What options set is theirs; the rest are parts of the memory that the process may use,
/// up to what is enough for any: together no more than three quarters of it.
struct MemoryPlan {
  uint64_t block_cache = 0;    // of the node
  uint64_t row_cache = 0;      // of the node
  uint64_t vector_graphs = 0;  // of the node
  uint64_t write_buffer = 0;   // of a store; up to four of them are in memory, two if it has peers
  uint64_t write_queue = 0;    // of a store: writes that wait while it cannot take them
  uint64_t requests = 0;       // of the node
  uint64_t answers = 0;        // of the node
  uint64_t prepared = 0;       // of the node
  uint64_t peer_queue = 0;     // of a shard's connection to another node's
};

/// Pure. For example 8 GiB and 4 shards: 512 MiB of blocks, 64 MiB of rows, 64 MiB for each
/// memtable.
MemoryPlan plan_memory(const Options& options, uint64_t memory_bytes, uint32_t shards);

/// What caches, memtables and requests take when all of them are full.
uint64_t bytes_together(const MemoryPlan& plan, uint32_t shards);

}  // namespace tetrad::server
