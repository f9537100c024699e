// SPDX-License-Identifier: Apache-2.0
// The tablets (physical partitions) of one table: contiguous ranges of the ring, each with its
// replica set. A value: changes make a new map. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_io.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/ring_position.h"

namespace tetrad::partitioner {

/// Stages of a change of members, in order; two neighbours at most are in use at once (rule 9).
enum class TabletStage : uint8_t {
  kNormal = 0,
  kWriteBoth = 1,  // (a) writes need W of the old and W of the new set
  kStream = 2,     // (b) new members are being filled and checked
  kReadNew = 3,    // (c) reads go to the new set, writes still to both
  kWriteNew = 4,   // (d) only the new set
};

/// One physical partition. While stage != kNormal both sets are there; the stage says which of them
/// is read and written, the epoch whether a coordinator and a replica mean the same.
struct Tablet {
  TabletId id;
  RingRange range;  // (start, end]
  std::vector<StoreAddress>
      replicas;  // the old set while a change is under way; the first is preferred
  std::vector<StoreAddress> new_replicas;  // the whole new set while stage != kNormal, else empty
  TabletStage stage = TabletStage::kNormal;
  /// Rises with every change of members or stage, and by a merge; not by a split. At a position of
  /// the ring it never falls, and means the same members whenever it is the same.
  SetEpoch epoch;
  /// When the last repair that all members finished began (wall clock, us); 0: none. Never lowered.
  int64_t repaired_us = 0;
  bool full = false;       // a single logical partition at its size limit: inserts are refused
  bool is_merged = false;  // made of two, and not split since
  /// How often a merge here was undone by a split; kept by merges and splits.
  uint8_t bounces = 0;
};

inline constexpr uint8_t kBouncesMost = 3;  // more are not counted

/// Covers the whole ring without gap or overlap, sorted.
class TabletMap {
 public:
  TabletMap() = default;
  /// `tablets` sorted and covering the ring (asserted).
  explicit TabletMap(std::vector<Tablet> tablets, uint64_t version = 1, uint64_t merged_epochs = 0);

  const Tablet& find(RingPosition position) const;  // binary search
  const std::vector<Tablet>& tablets() const { return tablets_; }
  /// Rises with any change.
  uint64_t version() const { return version_; }
  /// Rises with every change of members or stage, every split and every merge: of two maps of a
  /// table, who may hold what differs only if this does.
  uint64_t layout() const { return layout_; }

  /// The tablet becomes two, cut after `at` (which belongs to the left half and lies strictly
  /// inside); members, stage and epoch stay. The left half keeps `id`. Errors: kNotFound, kInvalid.
  Result<TabletMap> with_split(TabletId id, RingPosition at, TabletId right_id) const;
  /// Two neighbours become one, with the left one's members and horizon. Neither may be changing
  /// its members or full; sets and horizons are the caller's to check. Errors: kNotFound, kInvalid.
  Result<TabletMap> with_merge(TabletId left, TabletId right, TabletId merged_id) const;
  /// Replaces the tablet of the same id and range.
  Result<TabletMap> with_tablet(Tablet changed) const;

 private:
  friend void encode_tablet_map(const TabletMap& map, Bytes& out);

  std::vector<Tablet> tablets_;
  uint64_t version_ = 0;
  uint64_t merged_epochs_ = 0;  // what merges took from the sum of the epochs, and one for each
  uint64_t layout_ = 0;         // the sum of the epochs and merged_epochs_
};

void encode_tablet_map(const TabletMap& map, Bytes& out);
Result<TabletMap> decode_tablet_map(base::ByteReader& in);

}  // namespace tetrad::partitioner
