// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/place.h"

#include "base/data_mutants.h"

namespace tetrad::replication {

using partitioner::Tablet;

Place place_of(const MetaState& state, TableIncarnation incarnation, RingPosition position,
               SetEpoch epoch) {
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr) {
    if (TETRAD_MUTANT(old_incarnation_accepted)) return {MapStanding::kCurrent};
    return {incarnation.value >= state.next_incarnation ? MapStanding::kAhead
                                                        : MapStanding::kStaleSchema};
  }
  const Tablet& tablet = table->tablets.find(position);
  if (epoch < tablet.epoch && !TETRAD_MUTANT(old_epoch_accepted))
    return {MapStanding::kStaleEpoch, &tablet, table};
  return {tablet.epoch < epoch ? MapStanding::kAhead : MapStanding::kCurrent, &tablet, table};
}

Place place_of_range(const MetaState& state, TableIncarnation incarnation, const RingRange& range,
                     SetEpoch epoch) {
  Place place = place_of(state, incarnation, range.end, epoch);
  if (place.standing == MapStanding::kCurrent && place.tablet != nullptr &&
      range.start < place.tablet->range.start && !TETRAD_MUTANT(range_fenced_at_end))
    place.standing = MapStanding::kStaleEpoch;
  return place;
}

}  // namespace tetrad::replication
