// SPDX-License-Identifier: Apache-2.0
// Merging the answers of several replicas to one read command (rules 5 and 6 of the design).
//
//   1. The cut. A reply is complete up to a place: everything of the read's order up to there is in
//      it. The merge goes up to the smallest of these places: beyond it a reply may lack what its
//      replica holds.
//   2. Partition by partition, in the order of the read: headers are reconciled, range tombstones
//      become one step function, rows are reconciled key by key. Inside a partition a reply may
//      also have stopped at the per-partition limit: then its last row is how far it goes there.
//   3. What the merged deletions hide is dropped; live rows are answered, until a limit is reached.
//   4. What each reply lacks of the merge, up to where the merge went, becomes its repair: parts of
//      records, pieces of range tombstones. Nothing beyond that place is repaired.
//   5. A merge that stopped at the cut before its row limit is a short read: the caller asks for
//      more.
//
// Pure. Replies, their arenas and the command outlive the merge; the merged rows are copied into an
// arena of their own. Works on a reply of one replica, too: then it only leaves out what a client
// does not see.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// One reply's part of the partition being merged.
struct Piece {
  const PartitionData* data = nullptr;  // null: the replica holds nothing of it
  RowRecord header;
  size_t next_row = 0;
};

/// One row of the merge and what each reply has of it.
struct MergedRow {
  BytesView clustering_key;
  RowRecord record;
  std::vector<RowRecord> held;
};

/// One partition while it is merged. The views point into the replies.
struct Merging {
  const PartitionData& partition;     // of the reply that has it: only its name counts
  std::vector<Piece> pieces = {};     // one for each reply
  RowRecord header = {};              // of all pieces, joined
  TombstoneSteps steps = {};          // of all pieces' range tombstones
  std::optional<BytesView> cut = {};  // the last key for which all replies are complete
  uint32_t limit = 0;                 // live rows that are wanted
  bool limit_reached = false;         // the limit, not the cut, ended it
  PartitionData out = {};             // what the client gets
  std::vector<MergedRow> rows = {};   // dead ones as well: a member may lack a tombstone
  std::optional<BytesView> end = {};  // how far into it the merge goes; unset: its end
};

class Merger {
 public:
  Merger(const ReadCommand& command, std::span<const ReplicaReply> replies)
      : command_(command), replies_(replies), next_partition_(replies.size(), 0) {
    merged_.repairs.resize(replies.size());
  }

  Result<MergedRead> run() {
    // The smallest place of those that are not complete to the end (step 1).
    for (const ReplicaReply& reply : replies_)
      if (!reply.result.exhausted && !uncut(reply.result) &&
          (!cut_ || compare_places(reply.result.complete_up_to, *cut_) < 0))
        cut_ = reply.result.complete_up_to;
    // Partitions come in the read's order from each reply, so the smallest first key of all is the
    // next one.
    while (!stopped_) {
      const PartitionData* smallest = smallest_partition();
      if (smallest == nullptr) break;
      if (cut_ && compare_partitions(smallest->position, smallest->partition_key, cut_->position,
                                     cut_->partition_key) > 0)
        break;
      TETRAD_TRY_VOID(merge_partition(*smallest));
    }
    ReadResult& result = merged_.result;
    TETRAD_ASSERT(merged_.repairs.size() == replies_.size());
    if (!stopped_ && cut_) stop_at(*cut_);
    result.exhausted = !stopped_;
    merged_.short_read = stopped_ && result.live_row_count < command_.row_limit;
    return std::move(merged_);
  }

 private:
  bool uncut(const ReadResult& reply) const {
    return TETRAD_MUTANT(merge_uncut) ||
           (TETRAD_MUTANT(full_reply_uncut) && reply.live_row_count >= command_.row_limit);
  }
  bool before(BytesView a, BytesView b) const { return command_.reversed ? a > b : a < b; }

  int compare_places(const ReadPosition& a, const ReadPosition& b) const {
    const int order = compare_partitions(a.position, a.partition_key, b.position, b.partition_key);
    if (order != 0) return order;
    // A place without a clustering key lies behind all rows of its partition.
    if (!a.clustering_key || !b.clustering_key)
      return static_cast<int>(!a.clustering_key) - static_cast<int>(!b.clustering_key);
    const int rows = a.clustering_key->compare(*b.clustering_key);
    return command_.reversed ? -rows : rows;
  }

  const PartitionData* smallest_partition() const {
    const PartitionData* smallest = nullptr;
    for (size_t i = 0; i < replies_.size(); ++i) {
      const auto& partitions = replies_[i].result.partitions;
      if (next_partition_[i] == partitions.size()) continue;
      const PartitionData& p = partitions[next_partition_[i]];
      if (smallest == nullptr || compare_partitions(p.position, p.partition_key, smallest->position,
                                                    smallest->partition_key) < 0)
        smallest = &p;
    }
    return smallest;
  }

  /// Takes the partition's pieces out of the replies. A reply that lacks the partition gets an
  /// empty piece: it may lack all of it, and is repaired.
  Result<std::vector<Piece>> take_pieces(const PartitionData& partition) {
    std::vector<Piece> pieces(replies_.size());
    for (size_t i = 0; i < replies_.size(); ++i) {
      const auto& partitions = replies_[i].result.partitions;
      if (next_partition_[i] == partitions.size()) continue;
      const PartitionData& p = partitions[next_partition_[i]];
      if (compare_partitions(p.position, p.partition_key, partition.position,
                             partition.partition_key) != 0)
        continue;
      ++next_partition_[i];
      pieces[i].data = &p;
      if (!p.header.empty()) {
        TETRAD_TRY(pieces[i].header, decode_row_record(p.header));
        drop_hidden(pieces[i].header);
      }
    }
    return pieces;
  }

  uint32_t rows_done(const PartitionData& partition) const {
    const bool resumed =
        command_.resume_after && command_.resume_after->clustering_key &&
        compare_partitions(command_.resume_after->position, command_.resume_after->partition_key,
                           partition.position, partition.partition_key) == 0;
    if (TETRAD_MUTANT(partition_limit_anew)) return 0;
    return resumed ? command_.partition_rows_done : 0;
  }

  /// Live rows of one partition that are still wanted.
  uint32_t partition_limit(const PartitionData& partition) const {
    const uint32_t limit = command_.distinct_partitions ? 1 : command_.per_partition_limit;
    if (limit == ReadCommand::kNoLimit) return limit;
    const uint32_t done = rows_done(partition);
    return limit > done ? limit - done : 0;
  }

  /// The last row key up to which every reply is complete in this partition; null: its end.
  Result<std::optional<BytesView>> partition_cut(const PartitionData& partition,
                                                 const std::vector<Piece>& pieces) const {
    std::optional<BytesView> cut;
    if (cut_ && cut_->clustering_key &&
        compare_partitions(cut_->position, cut_->partition_key, partition.position,
                           partition.partition_key) == 0)
      cut = *cut_->clustering_key;
    const uint32_t limit = partition_limit(partition);
    if (limit == ReadCommand::kNoLimit) return cut;
    // Only live rows count against the limit, so a reply with many dead rows goes as far as it
    // went.
    for (const Piece& piece : pieces) {
      if (piece.data == nullptr || piece.data->rows.empty()) continue;
      uint32_t live = 0;
      for (const RowData& row : piece.data->rows) {
        TETRAD_TRY(const RowRecord record, decode_row_record(row.record));
        live += is_live(record, command_.now_s) ? 1 : 0;
      }
      const BytesView last = piece.data->rows.back().clustering_key;
      const bool is_sooner =
          !cut || (TETRAD_MUTANT(reversed_cut_forward) ? last < *cut : before(last, *cut));
      // It stopped here because it was full: what lies behind it is unknown.
      if (live >= limit && is_sooner) cut = last;
    }
    return cut;
  }

  /// The next row of the partition in the read's order, with what each reply has of it; unset at
  /// the end.
  Result<std::optional<MergedRow>> next_row(std::vector<Piece>& pieces) const {
    std::optional<BytesView> key;
    for (const Piece& piece : pieces) {
      if (piece.data == nullptr || piece.next_row == piece.data->rows.size()) continue;
      TETRAD_ASSERT(piece.next_row < piece.data->rows.size());
      const BytesView k = piece.data->rows[piece.next_row].clustering_key;
      if (!key || before(k, *key)) key = k;
    }
    if (!key) return std::nullopt;
    MergedRow row{*key, {}, std::vector<RowRecord>(pieces.size())};
    // Compared as bytes first: replies of equal replicas cost one decoding each, and one join in
    // all.
    BytesView known;  // most replies agree: equal bytes are decoded and joined once
    for (size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      if (piece.data == nullptr || piece.next_row == piece.data->rows.size()) continue;
      const RowData& data = piece.data->rows[piece.next_row];
      if (data.clustering_key != *key) continue;
      ++piece.next_row;
      TETRAD_TRY(row.held[i], decode_row_record(data.record));
      drop_hidden(row.held[i]);
      if (data.record == known) continue;
      if (!known.empty() && TETRAD_MUTANT(row_of_one)) continue;
      row.record = known.empty() ? row.held[i] : reconcile(row.record, row.held[i]);
      known = data.record;
    }
    return row;
  }

  Result<void> merge_partition(const PartitionData& partition) {
    Merging merging{.partition = partition};
    TETRAD_TRY(merging.pieces, take_pieces(partition));
    join_covers(merging);
    TETRAD_TRY(merging.cut, partition_cut(partition, merging.pieces));
    merging.limit = partition_limit(partition);
    merging.limit_reached = merging.limit == 0;
    merging.out.position = partition.position;
    TETRAD_TRY_VOID(merge_rows(merging));
    //   4. Ended at the cut: the caller learns where.
    if (!merging.limit_reached && !stopped_ && merging.cut) {
      merging.end = merging.cut;
      stop_at({partition.position, Bytes(partition.partition_key), Bytes(*merging.cut)});
    }
    TETRAD_ASSERT(merging.out.rows.size() <= merging.limit);
    deliver(merging);
    end_partition(merging);
    //   5. Repairs of every piece, up to where the merge of this partition went.
    for (size_t i = 0; i < merging.pieces.size(); ++i)
      add_repair(i, partition, merging.pieces[i], merging.header, merging.steps, merging.rows,
                 merging.end);
    return {};
  }

  /// What hides rows of the partition: headers and range tombstones of all pieces.
  static void join_covers(Merging& merging) {
    //   1. Join headers and tombstones of all pieces.
    std::vector<RangeTombstoneView> tombstones;
    RowRecord& header = merging.header;
    for (const Piece& piece : merging.pieces) {
      if (piece.data == nullptr) continue;
      if (!TETRAD_MUTANT(header_of_one) || header.empty()) header = reconcile(header, piece.header);
      tombstones.insert(tombstones.end(), piece.data->range_tombstones.begin(),
                        piece.data->range_tombstones.end());
    }
    //   2. One step function of all range tombstones, without those that the partition's deletion
    //      hides.
    merging.steps = make_steps(std::move(tombstones), header.deletion);
  }

  //   3. Row by row, up to the cut, a limit or the end. `rows` keeps dead rows as well: a member
  //      that lacks a tombstone is repaired.
  Result<void> merge_rows(Merging& merging) {
    while (!merging.limit_reached && !stopped_) {
      TETRAD_TRY(std::optional<MergedRow> row, next_row(merging.pieces));
      if (!row || (merging.cut && before(*merging.cut, row->clustering_key))) break;
      // After the join: a deletion that one member has hides what another member has (rule 7).
      if (!TETRAD_MUTANT(deletion_of_one))
        hide(row->record,
             later_of(merging.header.deletion, deletion_at(merging.steps, row->clustering_key)));
      if (is_live(row->record, command_.now_s)) take_live_row(merging, *row);
      merging.rows.push_back(std::move(*row));
    }
    return {};
  }

  /// Adds the row to the answer. At a limit, of the partition or of the read, the merge ends here.
  void take_live_row(Merging& merging, const MergedRow& row) {
    ReadResult& result = merged_.result;
    std::vector<RowData>& out = merging.out.rows;
    out.push_back({result.arena.copy(row.clustering_key), live_record(row.record)});
    ++result.live_row_count;
    if (TETRAD_MUTANT(page_row_lost) && result.live_row_count == command_.row_limit) out.pop_back();
    if ((TETRAD_MUTANT(limit_counts_dead) ? merging.rows.size() + 1 : out.size()) ==
        merging.limit) {
      merging.limit_reached = true;
      // LIMIT counts after the merge (rule 5).
      merging.end = row.clustering_key;
    } else if (result.live_row_count == command_.row_limit) {
      merging.end = row.clustering_key;
      if (TETRAD_MUTANT(page_row_twice) && out.size() > 1)
        merging.end = out[out.size() - 2].clustering_key;
      const PartitionData& partition = merging.partition;
      stop_at({partition.position, Bytes(partition.partition_key), Bytes(*merging.end)});
    }
  }

  /// Moves the partition into the answer if a client sees anything of it.
  void deliver(Merging& merging) {
    ReadResult& result = merged_.result;
    PartitionData& out = merging.out;
    // As a store counts it: a static row alone is a result row, once.
    const bool static_live = command_.wants_static && is_live(merging.header, command_.now_s);
    const bool static_only = static_live && !stopped_ && out.rows.empty() && merging.limit != 0 &&
                             rows_done(merging.partition) == 0;
    if (static_only) ++result.live_row_count;
    if (!static_only && out.rows.empty()) return;
    out.partition_key = result.arena.copy(merging.partition.partition_key);
    if (static_live) out.header = live_record(merging.header);
    result.partitions.push_back(std::move(out));
  }

  /// Whether the read ends with this partition, and what its end means for the cut.
  void end_partition(const Merging& merging) {
    const PartitionData& partition = merging.partition;
    // A partition that is done ends a read of one partition; a read of a range may stop after it.
    if (!stopped_ && command_.is_range && merged_.result.live_row_count >= command_.row_limit)
      stop_at({partition.position, Bytes(partition.partition_key), std::nullopt});
    // The limit of the partition, not the cut, ended it: the cut inside of it is of no interest any
    // more, and a range goes on with the next partition.
    if (!merging.limit_reached) return;
    if (!command_.is_range) cut_.reset();
    if (cut_ && compare_partitions(cut_->position, cut_->partition_key, partition.position,
                                   partition.partition_key) == 0)
      cut_->clustering_key.reset();
  }

  /// Asks for what reply `i` lacks of the merge, up to `end`.
  void add_repair(size_t i, const PartitionData& partition, const Piece& piece,
                  const RowRecord& header, const TombstoneSteps& steps,
                  const std::vector<MergedRow>& rows, std::optional<BytesView> end) {
    Mutation repair;
    if (const RowRecord missing = missing_part(header, piece.header); !missing.empty())
      encode_row_record(missing, repair.header);

    // Beyond `end` a reply may be complete or not: nothing there is repaired.
    const ClusteringRange all;
    Bytes from = all.start, to = all.end;
    if (end && command_.reversed) from = Bytes(*end);
    if (end && !command_.reversed) to = Bytes(*end) + '\0';
    TombstoneSteps wanted, held;
    append_cut_steps(steps, from, to, wanted);
    if (piece.data != nullptr) append_cut_steps(piece.data->range_tombstones, from, to, held);
    for (const RangeTombstoneView& step : missing_steps(wanted, held))
      repair.range_tombstones.push_back({{Bytes(step.start), Bytes(step.end)}, step.deletion});

    for (const MergedRow& row : rows) {
      const RowRecord missing = missing_part(row.record, row.held[i]);
      if (missing.empty()) continue;
      // `complete` is false: parts of rows are merged by the store, never Put (rules 14 and 15).
      RowChange change{Bytes(row.clustering_key), {}, false};
      encode_row_record(missing, change.record);
      repair.rows.push_back(std::move(change));
    }
    if (repair.header.empty() && repair.range_tombstones.empty() && repair.rows.empty()) return;
    repair.incarnation = command_.incarnation;
    repair.schema_version = command_.schema_version;
    repair.position = partition.position;
    repair.partition_key = Bytes(partition.partition_key);
    merged_.repairs[i].push_back(std::move(repair));
  }

  BytesView live_record(RowRecord record) {
    keep_live(record, command_.now_s);
    scratch_.clear();
    encode_row_record(record, scratch_);
    return merged_.result.arena.copy(scratch_);
  }

  void stop_at(ReadPosition place) {
    TETRAD_ASSERT(!stopped_);
    stopped_ = true;
    merged_.result.complete_up_to = std::move(place);
  }

  const ReadCommand& command_;
  const std::span<const ReplicaReply> replies_;
  std::vector<size_t> next_partition_;
  std::optional<ReadPosition> cut_;
  bool stopped_ = false;
  MergedRead merged_;
  Bytes scratch_;
};

}  // namespace

Result<MergedRead> merge_replies(const ReadCommand& command,
                                 std::span<const ReplicaReply> replies) {
  return Merger(command, replies).run();
}

}  // namespace tetrad::storage
