// SPDX-License-Identifier: Apache-2.0
// Metadata of one table, as a test sets it; all nodes live and all disks are well.
#pragma once

#include <memory>
#include <utility>

#include "replication/meta/meta_service.h"

namespace tetrad::replication {

class OneTableMeta : public MetaService {
 public:
  HostId self() const override { return {}; }
  MetaSnapshot snapshot() const override { return state_; }
  std::shared_ptr<void> subscribe(Listener listener) override {
    listener_ = std::move(listener);
    return std::make_shared<char>();
  }
  Task<Result<void>> change_schema(SchemaChange, base::Deadline,
                                   std::vector<std::string>*) override {
    co_return Result<void>();
  }
  bool is_live(HostId) const override { return true; }
  const FillingDisks& filling_disks() const override { return filling_disks_; }
  bool takes_clients(HostId) const override { return true; }
  const StoreTroubles& store_troubles() const override { return store_troubles_; }
  uint64_t tablet_bytes(TabletId) const override { return 0; }

 protected:
  /// The whole state anew; its listener is told.
  void set_table(std::shared_ptr<TableInfo> table) {
    auto state = std::make_shared<MetaState>();
    state->applied = MetaIndex{++index_};
    state->next_incarnation = 9;
    state->put_table(std::move(table));
    const MetaSnapshot before = std::exchange(state_, std::move(state));
    if (listener_) listener_(before, state_);
  }

  MetaSnapshot state_ = std::make_shared<MetaState>();
  Listener listener_;

 private:
  const FillingDisks filling_disks_;
  const StoreTroubles store_troubles_;
  uint64_t index_ = 0;
};

}  // namespace tetrad::replication
