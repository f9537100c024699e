// SPDX-License-Identifier: Apache-2.0
// What StoreViews needs of a RocksStore. For the store's own files only.
#pragma once

#include "storage/engine/rocks_store.h"

namespace tetrad::storage {

/// Owned by the store.
/// Reads go to the readers' threads, writes into the turn's batch, on the store's thread.
class RocksStore::ViewSide final : public ViewBackend {
 public:
  explicit ViewSide(RocksStore& store) : store_(store) {}
  TableContents contents_of(const ReadCommand& command) const override {
    return store_.contents_of(command);
  }
  void read(base::Deadline deadline, std::function<Result<void>(KeyView&)> work,
            std::move_only_function<void(Result<void>)> done) override;
  void write(const ViewRecords& puts, const std::vector<Bytes>& erased,
             std::move_only_function<void(Result<void>)> done) override;
  void sync(std::move_only_function<void(Result<void>)> done) override;
  void when_written(base::Callback then) override;
  uint64_t seen_number() const override { return store_.turn_.written_through(); }
  uint64_t last_number(uint16_t bucket) const override { return store_.turn_.last_number(bucket); }
  int64_t wall_time_us() const override { return store_.reactor_.wall_time_us(); }

 private:
  RocksStore& store_;
};

}  // namespace tetrad::storage
