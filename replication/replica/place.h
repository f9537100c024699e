// SPDX-License-Identifier: Apache-2.0
// Where in a node's map a request belongs that names an epoch (design, rule 8).
#pragma once

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// What a node's map says to a request that names an epoch.
enum class MapStanding { kCurrent, kAhead, kStaleSchema, kStaleEpoch };

/// Where a position lies in one version of the tablet map. The pointers live as long as the
/// snapshot that was asked.
struct Place {
  MapStanding standing;
  /// In the map that was asked, if it has the table.
  const partitioner::Tablet* tablet = nullptr;
  const TableInfo* table = nullptr;
};
Place place_of(const MetaState& state, TableIncarnation incarnation, RingPosition position,
               SetEpoch epoch);
/// All of the range lies in one tablet, or the epoch is stale: the sender's map has another cut.
Place place_of_range(const MetaState& state, TableIncarnation incarnation, const RingRange& range,
                     SetEpoch epoch);

}  // namespace tetrad::replication
