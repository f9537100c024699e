// SPDX-License-Identifier: Apache-2.0
// The local log of the model: writes of one turn become visible at its end, and a sync keeps them
// through a simulated power cut. Reads see what is committed only, as with RocksDB.
#include <algorithm>

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
  // A write, or an erasure of a range; it keeps its place in the order of the calls.
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
    // Called after the last of the turn's writes: a callback may write again.
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

std::unique_ptr<LocalLog> make_memory_local_log(std::shared_ptr<MemoryDisk> disk,
                                                base::Reactor& reactor,
                                                const std::string& directory) {
  return std::make_unique<MemoryLocalLog>(std::move(disk), reactor, directory);
}

}  // namespace tetrad::storage
