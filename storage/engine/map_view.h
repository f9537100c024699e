// SPDX-License-Identifier: Apache-2.0
// KeyView over an ordered map: what the model store reads through.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "storage/engine/memory_disk.h"
#include "storage/engine/partition_reader.h"

namespace tetrad::storage {

/// Goes over the keys within its bounds, both ways. Its map does not change while it is used, and
/// outlives it; key() and value() are good until the next move.
class MapIterator final : public KeyIterator {
 public:
  MapIterator(const MemoryArea::Map& map, KeyView::Bounds bounds)
      : map_(map), bounds_(std::move(bounds)), at_(map.end()) {}
  /// Keys before the bounds count as their start, those behind as their end.
  void seek(BytesView key) override {
    at_ = map_.lower_bound(std::max(key, BytesView(bounds_.start)));
    settle(at_ != map_.end() && at_->first < bounds_.end);
  }
  void seek_before(BytesView key) override {
    at_ = map_.lower_bound(std::min(key, BytesView(bounds_.end)));
    prev();
  }
  void next() override {
    ++at_;
    settle(at_ != map_.end() && at_->first < bounds_.end);
  }
  void prev() override { settle(at_ != map_.begin() && (--at_)->first >= bounds_.start); }
  Result<void> status() const override { return {}; }

 private:
  /// The views point into the map: no copy is made.
  void settle(bool inside) {
    valid_ = inside;
    if (!inside) return;
    key_ = at_->first;
    value_ = at_->second;
  }

  const MemoryArea::Map& map_;
  const KeyView::Bounds bounds_;        // start is inside, end is not
  MemoryArea::Map::const_iterator at_;  // meaningful while valid_
};

/// The newest state of an area, without a snapshot: what is read within one event of the simulation is
/// consistent, since nothing is written meanwhile. The map outlives it.
class MapView final : public KeyView {
 public:
  explicit MapView(const MemoryArea::Map& map) : map_(map) {}
  Result<std::optional<BytesView>> get(BytesView key) override {
    const auto found = map_.find(key);
    if (found == map_.end()) return std::nullopt;
    return BytesView(found->second);
  }
  std::unique_ptr<KeyIterator> iterate(Bounds bounds) override {
    return std::make_unique<MapIterator>(map_, std::move(bounds));
  }

 private:
  const MemoryArea::Map& map_;
};

}  // namespace tetrad::storage
