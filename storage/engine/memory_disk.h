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
  using Map = std::map<Bytes, Bytes, std::less<>>;

  Map data;
  /// For each batch not yet synced, what its keys held before; oldest first.
  std::deque<std::vector<Operation>> undo;
  /// Bucket marks (rule 14). After a crash they may be those of what was queued, which is safe.
  std::unordered_map<uint16_t, int64_t> marks;
  /// What marks were before they rose, oldest first, and how many of these go with all batches of
  /// `undo` up to each.
  std::vector<std::pair<uint16_t, std::optional<int64_t>>> mark_undo;
  std::deque<size_t> mark_undo_ends;
  uint64_t schema_version = 0;
  /// Of a store: the key that each number wrote, from `log_start` on.
  bool keeps_log = false;
  std::deque<Bytes> log;
  uint64_t log_start = 1;
  /// The number from which on something is missing, for the next who opens it.
  std::optional<uint64_t> hole;
  uint64_t log_end() const { return log_start + log.size(); }

  /// Applies a batch and remembers how to undo it.
  void write(std::vector<Operation> batch);
  void sync() {
    undo.clear();
    mark_undo.clear();
    mark_undo_ends.clear();
  }
  void raise_mark(uint16_t bucket, int64_t to);
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
