// SPDX-License-Identifier: Apache-2.0
// The disk of the model engine and the local log over it.
#include <algorithm>
#include <set>

#include "base/assert.h"
#include "storage/engine/memory_disk.h"

namespace tetrad::storage {
namespace {

class MemoryLocalLog final : public LocalLog {
 public:
  MemoryLocalLog(std::shared_ptr<MemoryDisk> disk, base::Reactor& reactor,
                 const std::string& directory)
      : disk_(std::move(disk)),
        area_(disk_->impl().areas[directory]),
        reactor_(reactor),
        alive_(std::make_shared<bool>(true)) {}
  ~MemoryLocalLog() override { *alive_ = false; }

  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    std::vector<MemoryArea::Operation> operations;
    operations.reserve(batch.size());
    for (Operation& operation : batch)
      operations.emplace_back(std::move(operation.key), std::move(operation.value));
    queue({std::move(operations), std::nullopt, sync, std::move(done)});
  }

  Result<std::optional<Bytes>> get(BytesView key) override {
    const auto found = area_.data.find(key);
    if (found == area_.data.end()) return std::nullopt;
    return found->second;
  }

  Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                    size_t limit) override {
    std::vector<std::pair<Bytes, Bytes>> found;
    for (auto it = area_.data.lower_bound(start);
         it != area_.data.end() && it->first < end && found.size() < limit; ++it)
      found.emplace_back(*it);
    return found;
  }

  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    reactor_.post([this, alive = alive_, start = std::move(start), end = std::move(end), limit,
                   bytes_max, done = std::move(done)]() mutable {
      if (!*alive) return;
      Pairs found;
      uint64_t bytes = 0;
      for (auto it = area_.data.lower_bound(start);
           it != area_.data.end() && it->first < end && found.size() < limit; ++it) {
        bytes += it->first.size() + it->second.size();
        if (!found.empty() && bytes > bytes_max) break;
        found.emplace_back(*it);
      }
      done(std::move(found));
    });
  }

  void erase_range(Bytes start, Bytes end, DoneCallback done) override {
    queue({{}, std::pair(std::move(start), std::move(end)), false, std::move(done)});
  }

  Result<void> close() override {
    commit();
    area_.sync();
    return {};
  }

 private:
  struct Waiting {
    std::vector<MemoryArea::Operation> operations;
    std::optional<std::pair<Bytes, Bytes>> erased;
    bool sync;
    DoneCallback done;
  };

  void queue(Waiting waiting) {
    waiting_.push_back(std::move(waiting));
    if (waiting_.size() > 1) return;
    reactor_.at_turn_end([this, alive = alive_] {
      if (*alive) commit();
    });
  }

  void commit() {
    std::vector<DoneCallback> done;
    for (Waiting& waiting : std::exchange(waiting_, {})) {
      if (waiting.erased) {
        const auto end = area_.data.lower_bound(waiting.erased->second);
        for (auto it = area_.data.lower_bound(waiting.erased->first);
             it != end && it != area_.data.end() && it->first < waiting.erased->second; ++it)
          waiting.operations.emplace_back(it->first, std::nullopt);
      }
      area_.write(std::move(waiting.operations));
      if (waiting.sync) area_.sync();
      done.push_back(std::move(waiting.done));
    }
    for (DoneCallback& callback : done)
      if (callback) callback({});
  }

  const std::shared_ptr<MemoryDisk> disk_;
  MemoryArea& area_;
  base::Reactor& reactor_;
  const std::shared_ptr<bool> alive_;
  std::vector<Waiting> waiting_;
};

}  // namespace

void MemoryArea::write(std::vector<Operation> batch) {
  std::vector<Operation> before;
  before.reserve(batch.size());
  for (auto& [key, value] : batch) {
    if (keeps_log) log.push_back(key);
    auto found = data.find(key);
    before.emplace_back(key, found == data.end() ? std::nullopt : std::optional(found->second));
    if (value) {
      data.insert_or_assign(std::move(key), std::move(*value));
    } else if (found != data.end()) {
      data.erase(found);
    }
  }
  undo.push_back(std::move(before));
  mark_undo_ends.push_back(mark_undo.size());
}

void MemoryArea::raise_mark(uint16_t bucket, int64_t to) {
  const auto [mark, made] = marks.try_emplace(bucket, to);
  if (!made && mark->second >= to) return;
  mark_undo.emplace_back(bucket, made ? std::nullopt : std::optional(mark->second));
  mark->second = to;
}

MemoryDisk::MemoryDisk() : impl_(std::make_unique<Impl>()) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryArea::undo_last() {
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
  std::set<BytesView> written_later;
  size_t numbers_later = 0, numbers_from = 0;
  for (size_t i = last; i < undo.size(); ++i) {
    numbers_later += undo[i].size();
    for (const Operation& operation : undo[i]) written_later.insert(operation.first);
  }
  for (size_t i = first; i < undo.size(); ++i) numbers_from += undo[i].size();
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

void MemoryDisk::lose_unsynced(base::Random& random, bool with_hole) {
  for (auto& [directory, area] : impl_->areas) {
    const size_t kept = random.below(area.undo.size() + 1);
    while (area.undo.size() > kept) area.undo_last();
    if (with_hole && area.keeps_log && kept > 1) {
      const size_t first = random.below(kept - 1);
      area.take_out(first, first + 1 + random.below(kept - 1 - first));
    }
    area.sync();  // what was kept is on disk
  }
}

std::unique_ptr<LocalLog> make_memory_local_log(std::shared_ptr<MemoryDisk> disk,
                                                base::Reactor& reactor,
                                                const std::string& directory) {
  return std::make_unique<MemoryLocalLog>(std::move(disk), reactor, directory);
}

}  // namespace tetrad::storage
