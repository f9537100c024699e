// SPDX-License-Identifier: Apache-2.0
// The one reconciliation: how two versions of a row become one. Used by the store's merge operator,
// by the coordinator over replies of replicas, by read repair and by streams.
//
// Cell by cell: the higher timestamp wins; on a tie a tombstone beats a value, a value with TTL
// beats one without, of two with TTL the later expiry wins, then the larger value; of two
// tombstones the later deletion time. Row, partition and column deletions hide what is not newer
// than they are. Associative, commutative, idempotent; it sees no clock.
#pragma once

#include <span>
#include <vector>

#include "storage/row/mutation.h"
#include "storage/row/read_command.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// The later of two, as Cassandra: higher timestamp, then later deletion time.
Deletion later_of(const Deletion& a, const Deletion& b);
Liveness reconcile_liveness(const Liveness& a, const Liveness& b);

/// The result's views point into those of `a` and `b`. What the row's own deletion hides is
/// dropped.
RowRecord reconcile(const RowRecord& a, const RowRecord& b);

/// Drops what the row's own deletion and its column deletions hide: the canonical form. Done by
/// reconcile().
void drop_hidden(RowRecord& record);

/// Drops what `cover` (a partition or range tombstone) hides; the row's own deletion is dropped too
/// if it is not newer.
void hide(RowRecord& record, const Deletion& cover);

/// Whether a SELECT shows the row: its marker is live, or one of its cells is (column 0 does not
/// count).
bool is_live(const RowRecord& record, int64_t now_s);

/// Leaves what a SELECT may show: no tombstone, nothing expired. The record must be canonical.
void keep_live(RowRecord& record, int64_t now_s);

/// An expired cell is a tombstone: its value goes, timestamp, TTL and expiry stay.
void drop_expired_values(RowRecord& record, int64_t now_s);

/// What of `wanted` is not likewise in `held`; both canonical. Views point into those of `wanted`.
RowRecord missing_part(const RowRecord& wanted, const RowRecord& held);

/// One replica's answer, to be merged.
struct ReplicaReply {
  StoreAddress from;
  ReadResult result;  // of a command that was not live_only
};

/// What a coordinator makes of the answers of a quorum.
struct MergedRead {
  ReadResult result;  // live rows only, limits of the command applied, cut where not every reply is
                      // complete (rule 5)
  /// For each reply, in its order: what that replica lacks of the merge; empty if nothing.
  std::vector<std::vector<Mutation>> repairs;
  /// The limit is not reached although a reply was cut short by its own limit: ask again for more
  /// (short read).
  bool short_read = false;
};

/// Merges answers to one command. All of them decode, or kCorruption.
Result<MergedRead> merge_replies(const ReadCommand& command, std::span<const ReplicaReply> replies);

}  // namespace tetrad::storage
