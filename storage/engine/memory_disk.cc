// SPDX-License-Identifier: Apache-2.0
// Writing, syncing and losing of the model's data. What was not synced is undone batch by batch,
// from the newest, as a power cut would lose it; a hole is taken out in the middle.
#include "storage/engine/memory_disk.h"

#include <set>

#include "base/assert.h"

namespace tetrad::storage {

void MemoryArea::write(std::vector<Operation> batch) {
  std::vector<Operation> before;
  before.reserve(batch.size());
  for (auto& [key, value] : batch) {
    // Every key has a number, as in RocksDB's log: log_start is that of the first one kept.
    if (keeps_log) log.push_back(key);
    auto found = data.find(key);
    before.emplace_back(key, found == data.end() ? std::nullopt : std::optional(found->second));
    if (value) {
      data.insert_or_assign(std::move(key), std::move(*value));
    } else if (found != data.end()) {
      data.erase(found);
    }
  }
  // What undoes the batch; sync() forgets it.
  undo.push_back(std::move(before));
  mark_undo_ends.push_back(mark_undo.size());
  TETRAD_ASSERT(mark_undo_ends.size() == undo.size());
}

void MemoryArea::raise_mark(uint16_t bucket, int64_t to) {
  const auto [mark, made] = marks.try_emplace(bucket, to);
  if (!made && mark->second >= to) return;
  mark_undo.emplace_back(bucket, made ? std::nullopt : std::optional(mark->second));
  mark->second = to;
}

void MemoryArea::undo_last() {
  TETRAD_ASSERT(!undo.empty() && mark_undo_ends.size() == undo.size());
  // Backwards: a batch may have a key twice.
  for (auto it = undo.back().rbegin(); it != undo.back().rend(); ++it) {
    if (it->second) {
      data.insert_or_assign(it->first, std::move(*it->second));
    } else {
      data.erase(it->first);
    }
    if (keeps_log) log.pop_back();
  }
  undo.pop_back();
  mark_undo_ends.pop_back();
  const size_t marks_kept = mark_undo_ends.empty() ? 0 : mark_undo_ends.back();
  for (; mark_undo.size() > marks_kept; mark_undo.pop_back()) {
    const auto& [bucket, before] = mark_undo.back();
    if (before)
      marks.insert_or_assign(bucket, *before);
    else
      marks.erase(bucket);
  }
}

void MemoryArea::take_out(size_t first, size_t last) {
  TETRAD_ASSERT(keeps_log && first < last && last <= undo.size());
  // What a later batch has written stays as that left it.
  std::set<BytesView> written_later;
  size_t numbers_later = 0, numbers_from = 0;
  for (size_t i = last; i < undo.size(); ++i) {
    numbers_later += undo[i].size();
    for (const Operation& operation : undo[i]) written_later.insert(operation.first);
  }
  for (size_t i = first; i < undo.size(); ++i) numbers_from += undo[i].size();
  // The number from which on something may be missing: the next life begins to doubt there.
  hole = log_end() - numbers_from;
  for (size_t i = last; i-- > first;) {
    for (auto it = undo[i].rbegin(); it != undo[i].rend(); ++it) {
      if (written_later.contains(it->first)) continue;
      if (it->second) {
        data.insert_or_assign(it->first, *it->second);
      } else {
        data.erase(it->first);
      }
    }
  }
  for (; log.size() > numbers_later; ++log_start) log.pop_front();
}

MemoryDisk::MemoryDisk() : impl_(std::make_unique<Impl>()) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::lose_unsynced(base::Random& random, bool with_hole) {
  for (auto& [directory, area] : impl_->areas) {
    // Any prefix of the unsynced batches may have reached the disk.
    const size_t kept = random.below(area.undo.size() + 1);
    while (area.undo.size() > kept) area.undo_last();
    if (with_hole && area.keeps_log && kept > 1) {
      const size_t first = random.below(kept - 1);
      area.take_out(first, first + 1 + random.below(kept - 1 - first));
    }
    area.sync();  // what was kept is on disk
  }
}

}  // namespace tetrad::storage
