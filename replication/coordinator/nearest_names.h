// SPDX-License-Identifier: Apache-2.0
// What members of a tablet name as the nearest to a vector, put together (nearest.cc has the whole).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/ring_position.h"
#include "storage/row/reconcile.h"

namespace tetrad::replication {

/// Rows that may be the nearest: to be read by their keys, and measured as they are then.
struct NearestNames {
  /// A row by its key. It is read again before it is answered: no member's word on what is in it
  /// counts.
  struct Row {
    double distance = 0;  // the smallest that a member gives
    RingPosition position;
    Bytes partition_key, clustering_key;
  };
  std::vector<Row> rows;  // nearest first; in ring order where they are as near
  /// Rows that are not named are at least so far; probably, where graphs were asked. Unset: all that
  /// have a vector are named.
  std::optional<double> beyond;
};

/// Of the members of one tablet that a level asks for. A row's newest write, as far as the level sees
/// it, is on one of them. If that one names the row the row is at least as far as it says; else at
/// least as far as the furthest that it names, hence as the nearest of all members' furthest ones.
/// Errors: kCorruption, a member gives no distance.
Result<NearestNames> join_names(std::span<const storage::ReplicaReply> replies);

/// Puts the names of another part of the ring to those that are there.
void add_names(NearestNames& names, NearestNames others);

}  // namespace tetrad::replication
