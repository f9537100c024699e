// SPDX-License-Identifier: Apache-2.0
// What one attempt of a write (write_attempt.cc) leaves for the next one (write.cc).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "replication/coordinator/coordinator_impl.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// The client's message where no later timestamp helps.
inline constexpr const char* kClockWords =
    "The clocks of replicas and of this node are further apart than they may be; try again";

/// What a write needs to be sent again: with a newer map, or with a later timestamp.
struct CoordinatorImpl::Again {
  std::vector<storage::Mutation> mutations;
  /// After success: the highest mark that is not below the server timestamp.
  std::optional<int64_t> mark_us;
  /// Replicas found the deletions dated too long ago, or the server timestamp too far off.
  bool redate = false, restamp = false;
};

/// What a write knows over all of its attempts; lives in the frame of write().
struct CoordinatorImpl::Resending {
  /// A copy, made only where a mark of an own store is too far ahead to be stamped above: the way
  /// with one replica keeps nothing, and what hides the write has to be looked for.
  std::vector<storage::Mutation> kept;
  /// A mark that is not below the stamp still leads to a later stamp.
  bool heeds_marks = true;
  /// What the holders of a logged batch have is not what is sent next.
  bool is_entry_old = false;
  /// Whose the mutations' incarnations are; empty where all are of one table, and for views.
  std::map<TableIncarnation, TableId> tables;
};

}  // namespace tetrad::replication
