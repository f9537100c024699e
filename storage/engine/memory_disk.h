// SPDX-License-Identifier: Apache-2.0
// What MemoryStore and the memory local log keep their data in: ordered maps with an undo list of
// what has not been synced.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/engine/memory_store.h"

namespace tetrad::storage {

/// One store's or one log's directory.
struct MemoryArea {
  using Operation = std::pair<Bytes, std::optional<Bytes>>;  // unset: erase

  std::map<Bytes, Bytes, std::less<>> data;
  /// For each batch not yet synced, what its keys held before; oldest first.
  std::deque<std::vector<Operation>> undo;
  /// Bucket marks (rule 14); may stay too high after a crash, which is safe.
  std::unordered_map<uint16_t, int64_t> marks;
  uint64_t schema_version = 0;

  /// Applies a batch and remembers how to undo it.
  void write(std::vector<Operation> batch);
  void sync() { undo.clear(); }
};

struct MemoryDisk::Impl {
  std::map<std::string, MemoryArea> areas;  // by directory
};

}  // namespace tetrad::storage
