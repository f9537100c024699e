// SPDX-License-Identifier: Apache-2.0
// Where the tablets of a new table go, and which members a tablet should have. Pure.
//
// With at most four nodes in each data centre every tablet is on every node, and the ring is cut
// evenly. With more, tablets end at tokens of the ring, so that the members are those that a
// driver's own walk along the tokens finds; neighbours with the same members are one tablet.
#pragma once

#include <map>
#include <vector>

#include "base/result.h"
#include "partitioner/tablet_map.h"
#include "partitioner/topology.h"

namespace tetrad::partitioner {

/// How many tablets a store holds; a store that is not in it holds none.
using StoreLoad = std::map<StoreAddress, uint64_t>;

inline constexpr uint32_t kTabletsPerTableMax = 4096;

/// What CREATE TABLE asks of place_table().
struct PlacementOptions {
  /// 0: as many as give every store of the first four nodes a tablet.
  uint32_t tablets = 0;
  uint32_t replicas_max = kReplicasPerDataCenter;
  uint64_t first_tablet_id = 1;
};

/// How many tablets a new table has of which nothing else is asked.
size_t usual_tablets(const Ring& ring, uint32_t replicas_max = kReplicasPerDataCenter);

/// The tablets of a new table, ids counted up from first_tablet_id. `load` is brought up to date.
/// Errors: kInvalid without nodes or with too many tablets.
Result<std::vector<Tablet>> place_table(const Ring& ring, const PlacementOptions& options,
                                        StoreLoad& load);

/// The members `tablet` should have by the ring: nodes it is on keep their store, new ones get
/// the one that has the fewest tablets of the table (`of_table`), then of all. Equal to
/// tablet.replicas as a set when nothing is to do; members stay in front of new ones.
std::vector<StoreAddress> desired_replicas(const Ring& ring, const Tablet& tablet,
                                           uint32_t replicas_max, const StoreLoad& of_table,
                                           const StoreLoad& load);

}  // namespace tetrad::partitioner
