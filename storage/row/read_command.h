// SPDX-License-Identifier: Apache-2.0
// What a replica is asked and what it answers: rows of one logical partition, or of a range of the
// ring, in key order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/ring_position.h"
#include "storage/row/mutation.h"
#include "storage/row/purge.h"
#include "storage/vectors/distance.h"

namespace tetrad::storage {

/// A place in the order of a read: everything up to and with this key has been delivered.
/// In reversed reads clustering keys come in descending order inside the partition.
struct ReadPosition {
  RingPosition position;
  Bytes partition_key;
  /// Unset: the whole partition is done. Set: rows up to and with this key (in the order of the
  /// read) are done.
  std::optional<Bytes> clustering_key;
  friend bool operator==(const ReadPosition&, const ReadPosition&) = default;
};

class FoldPlan;  // row_fold.h
using FoldPlanPtr = std::shared_ptr<const FoldPlan>;
/// Makes a plan of the bytes that a peer has sent. Errors: kCorruption.
using FoldReader = Result<FoldPlanPtr> (*)(BytesView spec);

/// The part of an index that a read looks at: claims whose value component is in [lower, upper],
/// both inclusive and compared by memcmp. It narrows a read and decides nothing: the answer has
/// every row that matches, and may have others, so whoever asks tests the rows after the merge, and
/// counts them after that: per_partition_limit and distinct_partitions of the command are not
/// looked at.
struct IndexBounds {
  uint16_t index_id = 0;
  Bytes lower;
  std::optional<Bytes> upper;  // unset: to the end of the index
  /// These are the coordinator's. Rows are answered although they have no such value at the replica
  /// that is asked: another may lack what it has (rule 23).
  bool keeps_disproved = false;
  /// Rows are named only, those that have no such value, too: they come without records, and a
  /// partition that is named as a whole without rows. None of them is counted.
  bool names_only = false;
  friend bool operator==(const IndexBounds&, const IndexBounds&) = default;
};

/// The rows of a range whose vectors in one column are nearest to another vector. They are named
/// only: each comes with a record of eight bytes, its distance as the replica has it (a big-endian
/// double). An answer that is exhausted names every row that has a vector; else rows that it does
/// not name are at least as far as the furthest that it does, as this replica sees them, or, where
/// a graph was asked, probably. So an answer narrows a search and decides nothing (rule 23).
struct NearestSearch {
  uint32_t column_id = 0;  // of a regular column; its cells have no path
  Similarity similarity = Similarity::kCosine;
  Bytes vector;                 // as distance.h has it
  uint32_t rows_max = 0;        // rows that are named at most: 1 to kNearestRowsMax
  bool favours_recall = false;  // a graph is searched more widely
  RingRange graph_range;        // of the tablet: a store keeps a graph of all of it
  friend bool operator==(const NearestSearch&, const NearestSearch&) = default;
};
inline constexpr uint32_t kNearestRowsMax = 16'384;
inline constexpr size_t kNearestVectorBytesMax = 4 * 8192;

/// A value. The same command goes to every replica that is asked, so that answers can be compared.
struct ReadCommand {
  static constexpr uint32_t kNoLimit = 0xffffffff;
  static constexpr uint64_t kNoBytesMax = ~uint64_t{0};

  TableIncarnation incarnation;
  SchemaVersion schema_version;

  /// Exactly one of the two shapes: the logical partition `partition_key` at `position`, or all of
  /// `range`.
  bool is_range = false;
  RingPosition position;
  Bytes partition_key;
  RingRange range;
  /// Goes on after this place; its position is inside `range`, or its key is `partition_key`.
  std::optional<ReadPosition> resume_after;

  /// Set: only what this part of an index of the table names is looked at.
  std::optional<IndexBounds> by_index;

  /// Set: only what is nearest is named. Of a range; no slices, limits or counts go with it.
  std::optional<NearestSearch> nearest;

  /// Exact clustering keys wanted (ascending, at most 64 K); when empty, `clustering_ranges` count.
  std::vector<Bytes> rows;
  /// Ascending, disjoint, applied in each partition; empty means all rows.
  std::vector<ClusteringRange> clustering_ranges;
  bool reversed = false;
  /// False: nobody needs static cells (the partition tombstone is honoured all the same).
  bool wants_static = true;
  /// Deliver no rows at all beyond the header and the first live row of each partition (SELECT
  /// DISTINCT). per_partition_limit = 1 does it; this flag only lets the store skip to the next
  /// partition at once.
  bool distinct_partitions = false;

  /// Rows are counted, not delivered: the answer has no partitions but a RowCount.
  bool count_only = false;
  /// Only when count_only: the live rows are folded as well, going on from `fold_state`.
  FoldPlanPtr fold;
  Bytes fold_state;

  /// Live rows, counted after reconciliation; a partition with live static cells and no live row
  /// counts as one row.
  uint32_t row_limit = kNoLimit;
  uint32_t per_partition_limit = kNoLimit;
  /// In bytes: the read stops soon after it has this much. At least one row is delivered.
  uint64_t bytes_limit = 16u << 20;
  /// An answer of more bytes stays where it was made: see ReadResult::withheld_bytes.
  uint64_t bytes_max = kNoBytesMax;
  /// Rows that precede in `resume_after`'s partition, counted against per_partition_limit.
  uint32_t partition_rows_done = 0;

  /// Decides what is expired.
  int64_t now_s = 0;
  /// The purge horizon that all answers to be compared are cut at (rule 6): tombstones from before
  /// it are left out, so that it does not matter which replica has purged them. Ignored when
  /// live_only.
  int64_t horizon_s = PurgeBound::kNothing;
  /// True: tombstones are left out and only live rows delivered (a read of one replica, for the
  /// client). False: everything a merge needs (dead rows, range tombstones, headers), cut to the
  /// read's slices.
  bool live_only = true;

  /// All clustering keys that are wanted of a partition lie in [slices_start(), slices_end()).
  /// "\xFF" lies behind every key.
  BytesView slices_start() const {
    if (!rows.empty()) return rows.front();
    return clustering_ranges.empty() ? BytesView() : BytesView(clustering_ranges.front().start);
  }
  BytesView slices_end() const {
    if (!rows.empty()) return "\xFF";
    return clustering_ranges.empty() ? BytesView("\xFF") : BytesView(clustering_ranges.back().end);
  }
};

void encode_read_command(const ReadCommand& command, Bytes& out);
/// `read_fold`: null where no rows are folded, then a command that wants it fails.
Result<ReadCommand> decode_read_command(BytesView encoded, FoldReader read_fold = nullptr);

/// Views live in the arena of the ReadResult.
struct RowData {
  BytesView clustering_key;
  BytesView record;  // encoded RowRecord, reconciled; what partition and range tombstones hide is
                     // gone from it
};

/// A step of a partition's range tombstones, as it is answered.
struct RangeTombstoneView {
  BytesView start, end;  // [start, end)
  Deletion deletion;
};

/// What an answer has of one partition. With nothing live in it, it is there for the merge only.
struct PartitionData {
  RingPosition position;
  BytesView partition_key;
  BytesView
      header;  // encoded RowRecord: partition tombstone and static cells, or "" if there is none
  std::vector<RangeTombstoneView>
      range_tombstones;       // by start; only when the command is not live_only
  std::vector<RowData> rows;  // in the order of the read
};

/// Result of a read with count_only, besides `live_row_count`.
struct RowCount {
  /// Live rows of the partition that the read stopped in, when it stopped inside one; without those
  /// before `resume_after`.
  uint32_t rows_of_last = 0;
  /// digest_of() what would have been delivered; zero when the command is live_only.
  base::Hash128 digest;
  /// Of the live rows, see row_weight(). 0 from nodes of older programs.
  uint64_t weight = 0;
  /// The fold's state after these rows; unset when none was wanted, or it was given up: the rows
  /// must be read then.
  std::optional<Bytes> folded;
  friend bool operator==(const RowCount&, const RowCount&) = default;
};

/// Where an answer ends.
struct ReadEnd {
  /// True: nothing is left after this. False: go on after `complete_up_to`.
  bool exhausted = true;
  ReadPosition complete_up_to;
  uint32_t live_row_count = 0;
  /// Dead things that the read came by and that nothing else hid: cells, rows, and the two ends of
  /// each deleted range. Of the store that was asked; it does not travel.
  uint64_t tombstones = 0;
};

/// An answer. Its views live in its arena, so it is moved, never copied.
struct ReadResult : ReadEnd {
  std::vector<PartitionData> partitions;  // ascending by (position, partition key)
  /// Rule 3 of the design: all that this replica holds of what it returned is known to be on W
  /// members.
  bool settled = false;
  std::optional<RowCount> count;  // when the command is count_only
  /// Not 0: the answer was withheld, since it has this many bytes, more than the command's
  /// bytes_max; all else is empty.
  uint64_t withheld_bytes = 0;
  base::Arena arena;
};

/// Takes live rows where they are found, decoded once and not copied: views are good during the
/// call.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// A partition that has something to show: rows that follow, or only `header`, its live static
  /// cells.
  virtual Result<void> begin_partition(RingPosition position, BytesView partition_key,
                                       const RowRecord& header, bool rows_follow) = 0;
  virtual Result<void> take_row(BytesView clustering_key, const RowRecord& row) = 0;
};

/// Leaves nothing but its size of an answer that is larger than `bytes_max`.
void withhold_if_larger(ReadResult& result, uint64_t bytes_max);

void encode_read_result(const ReadResult& result, Bytes& out);
/// The views of the result point into `encoded`, which its arena keeps.
Result<ReadResult> decode_read_result(Bytes encoded);

/// Digest of the canonical form (rule 6): hidden data left out. Two replicas that hold the same
/// give the same.
base::Hash128 digest_of(const ReadResult& result);

}  // namespace tetrad::storage
