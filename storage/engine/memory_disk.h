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
  /// Of a store: the key that each number wrote, from `log_start` on.
  bool keeps_log = false;
  std::deque<Bytes> log;
  uint64_t log_start = 1;
  uint64_t log_end() const { return log_start + log.size(); }

  /// Applies a batch and remembers how to undo it.
  void write(std::vector<Operation> batch);
  void sync() { undo.clear(); }
  /// Undoes the newest batch.
  void undo_last();
  /// Undoes batches first <= i < last of those that can be undone, but for keys that later ones
  /// wrote. The log has a hole there: it begins behind it.
  void take_out(size_t first, size_t last);
};

struct MemoryDisk::Impl {
  std::map<std::string, MemoryArea> areas;  // by directory
};

}  // namespace tetrad::storage
