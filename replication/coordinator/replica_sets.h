// SPDX-License-Identifier: Apache-2.0
// Which members of a tablet a write and a read go to, also while the set changes (design, rule 9):
// from "write both" to "read new" a write needs W of the old and W of the new set, tallied apart.
#pragma once

#include <vector>

#include "base/ids.h"
#include "partitioner/tablet_map.h"

namespace tetrad::replication {

/// The sets that a write needs W of, each by itself. A member may be in both.
struct WriteSets {
  std::vector<StoreAddress> old_set, new_set;  // new_set is empty unless two sets are written
};

inline WriteSets write_sets(const partitioner::Tablet& tablet) {
  using partitioner::TabletStage;
  switch (tablet.stage) {
    case TabletStage::kNormal:
      return {tablet.replicas, {}};
    case TabletStage::kWriteBoth:
    case TabletStage::kStream:
    case TabletStage::kReadNew:
      return {tablet.replicas, tablet.new_replicas};
    case TabletStage::kWriteNew:
      return {tablet.new_replicas, {}};
  }
  return {tablet.replicas, {}};
}

/// Where a read goes. While the stage is "read new" others may still read the old set (the stage
/// before is in use too), so that a quorum read takes a quorum of each: what it has answered is
/// then seen by either.
inline bool reads_both_sets(const partitioner::Tablet& tablet) {
  return tablet.stage == partitioner::TabletStage::kReadNew;
}

inline const std::vector<StoreAddress>& read_set(const partitioner::Tablet& tablet) {
  using partitioner::TabletStage;
  const bool reads_new =
      tablet.stage == TabletStage::kReadNew || tablet.stage == TabletStage::kWriteNew;
  return reads_new ? tablet.new_replicas : tablet.replicas;
}

}  // namespace tetrad::replication
