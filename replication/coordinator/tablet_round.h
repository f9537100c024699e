// SPDX-License-Identifier: Apache-2.0
// One round of a read inside one tablet (read.cc): what its snapshot says, and what follows from it
// before any member is asked. A round that was refused or lost is followed by one with the next
// snapshot.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "replication/coordinator/coordinator_impl.h"
#include "replication/quorum.h"

namespace tetrad::replication {

/// Lives in the frame of read_tablet(). Its pointers are into `state`, which it keeps.
struct CoordinatorImpl::TabletRound {
  TabletRound(MetaSnapshot its_state, HostId self)
      : state(std::move(its_state)), levels(*state, self) {}
  TabletRound(const TabletRound&) = delete;
  TabletRound& operator=(const TabletRound&) = delete;

  /// True: `error` says that an index is not built yet. The next round goes without it by what
  /// `command` is now: all rows are read, slower and as right.
  bool drop_unbuilt_index(const Error& error, storage::ReadCommand& command) {
    if (error.code != ErrorCode::kIndexNotBuilt || !without_index.has_value()) return false;
    command = std::move(*without_index);
    return true;
  }
  /// The member whose answer is the answer, where the tablet has no other; null: it has others, or
  /// the level asks for more than one answer.
  const StoreAddress* sole() const { return alone && set->size() == 1 ? &set->front() : nullptr; }

  const MetaSnapshot state;
  const Levels levels;
  const TableInfo* table = nullptr;
  const partitioner::Tablet* tablet = nullptr;
  const std::vector<StoreAddress>* set = nullptr;  // that is read
  Need needed;                                     // of `set`
  /// The old set's quorum must answer, too (stage "read new").
  bool both = false;
  /// One answer is enough: nothing is compared.
  bool alone = false;
  /// The command to go on with where an index is not built; unset: it goes by no index.
  std::optional<storage::ReadCommand> without_index;
  /// For a repair; known once the members have been chosen.
  TabletSeen seen;
};

}  // namespace tetrad::replication
