// SPDX-License-Identifier: Apache-2.0
// How a read command is answered from ordered keys; the steps are in the header.
//
// The same code reads RocksDB and the model of the simulation, on the loop or on a reader's thread:
// it sees keys only through KeyView. Two shapes: one partition by its key, where range tombstones
// are looked up as needed (window_), and a range of the ring, where each partition's tombstones are
// read in passing (steps_).
#include "storage/engine/partition_reader.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/engine/dead_walk.h"
#include "storage/engine/partition_keys.h"
#include "storage/engine/partition_tombstones.h"
#include "storage/engine/row_counter.h"
#include "storage/engine/shown_record.h"
#include "storage/engine/tombstone_filter.h"
#include "storage/engine/tombstone_window.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// More named rows are taken for one slice where range tombstones are concerned. Up to this many,
/// each row looks for its own tombstones, which is cheaper than all between the first and the last.
constexpr size_t kRowsApart = 16;

/// Where a partition is left, so many keys are stepped over before the next one is sought: a step costs
/// a tenth of a seek, and most partitions are small. Not where rows are large: a step reads one.
constexpr int kStepsBeforeSeek = 4;
constexpr size_t kSteppedBytesMax = 1'024;

/// What becomes of the page after a row or a partition.
enum class Next { kGoOn, kPartitionDone, kPageDone };

/// Fewer rows that are dead are not worth remembering.
#ifdef TETRAD_DATA_MUTANTS
constexpr uint64_t kDeadRowsMin = 2;  // the simulation has few rows
#else
constexpr uint64_t kDeadRowsMin = 256;
#endif

class Reader {
 public:
  /// `sink`: gets the rows in place of the result; the command is then live_only.
  Reader(KeyView& view, const ReadCommand& command, const TableContents& contents,
         uint64_t keys_max, RowSink* sink = nullptr)
      : view_(view),
        command_(command),
        contents_(contents),
        keys_max_(keys_max),
        sink_(sink),
        counter_(command) {
    TETRAD_ASSERT(sink == nullptr || (command.live_only && !command.count_only));
    // Only answers that are compared are cut at the horizon (rule 6): one replica may have purged
    // what another still has.
    if (!command.live_only && !TETRAD_MUTANT(horizon_not_cut))
      bound_ = {command.horizon_s, command.horizon_s, command.now_s - kExpiredValueMargin_s};
  }

  Result<void> run() {
    // A fold that cannot go on is an error of the state that came with the command.
    if (command_.count_only) TETRAD_TRY_VOID(counter_.begin());
    if (command_.is_range) {
      TETRAD_TRY_VOID(run_range());
    } else {
      TETRAD_TRY_VOID(run_partition());
    }
    if (window_) result_.tombstones += 2 * window_->ranges_met();
    if (command_.count_only) keep_count();
    return {};
  }
  ReadResult& result() { return result_; }

 private:
  // ---- one partition ----

  Result<void> run_partition() {
    // The page before ended with this very partition.
    const auto& resume = command_.resume_after;
    if (resume && !resume->clustering_key) return {};
    begin_partition(command_.position, command_.partition_key);
    if (resume) resume_key_ = BytesView(*resume->clustering_key);
    // Most tables never had a static cell or a partition tombstone: no look-up then.
    if (contents_.headers) {
      TETRAD_TRY(const auto header, view_.get(keys_.key_of(KeyKind::kHeader, {})));
      if (header) TETRAD_TRY_VOID(take_header(*header));
    }
    if (contents_.any_range_tombstones())
      window_.emplace(view_, keys_.prefix(), contents_, header_.deletion, !command_.live_only);
    // The per-partition limit was used up by earlier pages.
    Next next = rows_left_ > 0 ? Next::kGoOn : Next::kPartitionDone;
    if (next == Next::kGoOn) {
      if (!command_.rows.empty()) {
        TETRAD_TRY(next, read_named_rows(nullptr));
      } else {
        KeyView::Bounds bounds{Bytes(keys_.key_of(KeyKind::kRow, command_.slices_start())),
                               Bytes(keys_.key_of(KeyKind::kRow, command_.slices_end())), true,
                               command_.reversed, keys_.prefix().size()};
        const std::unique_ptr<KeyIterator> it = view_.iterate(std::move(bounds));
        bounds_are_slice_ = command_.clustering_ranges.size() <= 1;
        TETRAD_TRY(next, read_slices(*it, false));
        TETRAD_TRY_VOID(it->status());
      }
    } else if (window_) {
      // No rows are wanted, but an answer that is compared must have all tombstones of the slices.
      window_->begin(command_.slices_start(), "\xFF", command_.reversed);
      TETRAD_TRY_VOID(window_->finish());
    }
    TETRAD_TRY_VOID(end_partition(next));
    TETRAD_ASSERT(partition_live_ <= rows_left_);
    if (next == Next::kPageDone) stop_inside();
    return {};
  }

  // ---- a range ----

  Result<void> run_range() {
    KeyRange keys = keys_of_range(command_.incarnation, command_.range);
    Bytes from = keys.start;
    const auto& resume = command_.resume_after;
    if (resume) {
      Bytes prefix;
      // Behind the last row of that partition, or from its header on: its tombstones hide what is
      // left of it.
      append_partition_prefix(prefix, command_.incarnation, resume->position,
                              resume->partition_key);
      prefix.push_back(resume->clustering_key ? '\0' : kPastKinds);
      from = std::max(from, prefix);
    }
    if (command_.range.empty() || from >= keys.end) return {};
    const std::unique_ptr<KeyIterator> it =
        view_.iterate({std::move(keys.start), std::move(keys.end), false, command_.reversed});
    it->seek(from);
    pass_over_registers(*it);
    Next next = Next::kGoOn;
    while (it->valid() && next != Next::kPageDone) {
      TETRAD_TRY(next, read_partition_of_range(*it));
    }
    return it->status();
  }

  /// The iterator stands on the partition's first key, and afterwards on that of the next one.
  Result<Next> read_partition_of_range(KeyIterator& it) {
    const auto key = decode_storage_key(it.key());
    if (!key) return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it.key().size());
    // A copy: the iterator's key moves on.
    const Bytes partition_key(key->partition_key);
    begin_partition(key->position, partition_key);
    const auto& resume = command_.resume_after;
    if (resume && resume->clustering_key &&
        compare_partitions(position_, partition_key_, resume->position, resume->partition_key) == 0)
      resume_key_ = BytesView(*resume->clustering_key);
    if (key->kind == KeyKind::kHeader) {
      TETRAD_TRY_VOID(take_header(it.value()));
      it.next();
    }
    TETRAD_TRY(steps_, read_range_tombstones(it, keys_.prefix(), command_.slices_start(),
                                             header_.deletion, partition_arena_, examined_));
    result_.tombstones += 2 * steps_.size();
    Next next = rows_left_ > 0 ? Next::kGoOn : Next::kPartitionDone;
    if (next == Next::kGoOn) {
      if (command_.rows.empty()) {
        TETRAD_TRY(next, read_slices(it, true));
      } else {
        TETRAD_TRY(next, read_named_rows(&it));
      }
    }
    TETRAD_TRY_VOID(it.status());
    // Also of a partition whose rows were not wanted: it may have a static row or tombstones to
    // deliver.
    TETRAD_TRY_VOID(end_partition(next));
    if (next == Next::kPageDone) {
      stop_inside();
      return next;
    }
    const bool is_inside = !command_.reversed && command_.rows.empty();
    for (int i = 0; is_inside && i < kStepsBeforeSeek && is_here(it); ++i) {
      if (it.value().size() > kSteppedBytesMax) break;
      it.next();
    }
    // Moving backwards, or to single rows, may have led anywhere.
    if (!is_inside || is_here(it)) it.seek(keys_.prefix() + kPastKinds);
    pass_over_registers(it);
    TETRAD_TRY_VOID(it.status());
    // Limits count between partitions as well as inside.
    if (result_.live_row_count >= command_.row_limit || bytes_ >= command_.bytes_limit ||
        examined_ >= keys_max_) {
      result_.exhausted = !it.valid();
      result_.complete_up_to = {position_, Bytes(partition_key_), std::nullopt};
      return Next::kPageDone;
    }
    return Next::kGoOn;
  }

  /// The iterator stands in the present partition.
  bool is_here(const KeyIterator& it) const {
    return it.valid() && it.key().starts_with(keys_.prefix());
  }
  /// Between partitions: those that have nothing else are none.
  static void pass_over_registers(KeyIterator& it) {
    while (it.valid() && is_registers_key(it.key())) it.next();
  }

  // ---- a partition's parts ----

  void begin_partition(RingPosition position, BytesView partition_key) {
    position_ = position;
    partition_key_ = partition_key;
    keys_.begin_partition(command_.incarnation, position, partition_key);
    header_ = {};
    steps_.clear();
    partition_arena_ = base::Arena();
    resume_key_.reset();
    rows_.clear();
    begun_in_sink_ = false;
    counter_.begin_partition();
    partition_live_ = 0;
    // Only the partition in which the page before stopped counts what it delivered.
    const bool resumed =
        command_.resume_after && command_.resume_after->clustering_key &&
        compare_partitions(position, partition_key, command_.resume_after->position,
                           command_.resume_after->partition_key) == 0;
    rows_done_ = resumed ? command_.partition_rows_done : 0;
    const uint32_t limit = command_.distinct_partitions ? 1 : command_.per_partition_limit;
    rows_left_ = limit == ReadCommand::kNoLimit ? limit : limit - std::min(limit, rows_done_);
  }

  Result<void> take_header(BytesView value) {
    ++examined_;
    // Copied: the iterator may move before the partition is over.
    TETRAD_TRY(header_, decode_row_record(partition_arena_.copy(value)));
    // A header without its static cells still hides rows by its deletion.
    drop_hidden(header_);
    if (!command_.wants_static) {
      header_.cells.clear();
      header_.liveness = {};
    }
    result_.tombstones += dead_cells_in(header_, command_.now_s);
    return {};
  }

  Result<Next> read_named_rows(KeyIterator* it) {
    const auto& rows = command_.rows;
    const bool one_slice = rows.size() > kRowsApart;
    if (window_ && one_slice) window_->begin(rows.front(), rows.back() + '\0', command_.reversed);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Bytes& row = command_.reversed ? rows[rows.size() - 1 - i] : rows[i];
      if (resume_key_ && (command_.reversed ? row >= *resume_key_ : row <= *resume_key_)) continue;
      if (window_ && !one_slice) window_->begin(row, row + '\0', command_.reversed);
      // Its tombstones are delivered even when the row is not.
      if (window_ && !command_.live_only) TETRAD_TRY_VOID(window_->at(row));
      const BytesView key = keys_.key_of(KeyKind::kRow, row);
      std::optional<BytesView> value;
      if (it == nullptr) {
        TETRAD_TRY(value, view_.get(key));
      } else {
        it->seek(key);
        if (it->valid() && it->key() == key) value = it->value();
      }
      if (!value) continue;
      TETRAD_TRY(const Next next, take_row(row, *value));
      // The last of the named rows: there is nothing to come back for.
      if (next == Next::kPageDone && i + 1 == rows.size()) return Next::kPartitionDone;
      if (next != Next::kGoOn) return next;
    }
    return Next::kPartitionDone;
  }

  /// `at_rows`: the iterator stands on the partition's first row already, if it has one.
  Result<Next> read_slices(KeyIterator& it, bool at_rows) {
    static const ClusteringRange everything;
    const auto& ranges = command_.clustering_ranges;
    const size_t count = std::max<size_t>(ranges.size(), 1);
    for (size_t i = 0; i < count; ++i) {
      const ClusteringRange& range = ranges.empty()      ? everything
                                     : command_.reversed ? ranges[count - 1 - i]
                                                         : ranges[i];
      BytesView start = range.start, end = range.end;
      // Behind the row where the page before stopped, in the read's direction.
      if (resume_key_ && command_.reversed) end = std::min(end, *resume_key_);
      if (resume_key_ && !command_.reversed) {
        resume_start_.assign(*resume_key_);
        resume_start_.push_back('\0');
        start = std::max(start, BytesView(resume_start_));
      }
      if (start >= end) continue;
      if (window_) window_->begin(start, end, command_.reversed);
      // A range's iterator stands there already: no seek for each partition.
      const bool in_place = at_rows && i == 0 && start.empty();
      TETRAD_TRY(const Next next, command_.reversed ? read_slice_reversed(it, start, end)
                                                    : read_slice(it, start, end, in_place));
      if (next != Next::kGoOn) return next;
      if (window_) TETRAD_TRY_VOID(window_->finish());
    }
    return Next::kPartitionDone;
  }

  Result<Next> read_slice(KeyIterator& it, BytesView start, BytesView end, bool in_place) {
    // Runs of dead rows that are known are stepped over; new ones of kDeadRowsMin rows or more are
    // remembered.
    DeadWalk dead(view_, command_, contents_, start, kDeadRowsMin);
    const BytesView first = dead.skip(start);
    if (first >= end) return Next::kGoOn;
    if (!in_place) it.seek(keys_.key_of(KeyKind::kRow, first));
    while (it.valid()) {
      const BytesView key = it.key();
      // With one slice the iterator's own bounds say it all, and two comparisons a row are saved.
      if (!bounds_are_slice_ && !keys_.is_row(key)) break;
      const BytesView clustering_key = keys_.clustering_key_of(key);
      if (!bounds_are_slice_ && clustering_key >= end) break;
      TETRAD_TRY(const Next next, take_row(clustering_key, it.value()));
      dead.walk_past(clustering_key, row_is_dead_);
      if (next != Next::kGoOn) {
        dead.end_page();
        return next;
      }
      // The row that was taken begins a known run: the run's other rows need not be looked at.
      if (const DeadRun* known = row_is_dead_ ? dead.begins_at(clustering_key) : nullptr) {
        if (known->end >= end) break;
        it.seek(keys_.key_of(KeyKind::kRow, known->end));
      } else {
        it.next();
      }
    }
    TETRAD_TRY_VOID(it.status());
    dead.end_slice(end);
    return Next::kGoOn;
  }

  // The mirror image of read_slice().
  Result<Next> read_slice_reversed(KeyIterator& it, BytesView start, BytesView end) {
    DeadWalk dead(view_, command_, contents_, end, kDeadRowsMin);
    const BytesView last = dead.skip_back(end);
    if (last <= start) return Next::kGoOn;
    it.seek_before(keys_.key_of(KeyKind::kRow, last));
    while (it.valid()) {
      const BytesView key = it.key();
      if (!keys_.is_row(key)) break;
      const BytesView clustering_key = keys_.clustering_key_of(key);
      if (clustering_key < start) break;
      TETRAD_TRY(const Next next, take_row(clustering_key, it.value()));
      dead.walk_past(clustering_key, row_is_dead_);
      if (next != Next::kGoOn) {
        dead.end_page();
        return next;
      }
      if (const DeadRun* known = row_is_dead_ ? dead.begins_at(clustering_key) : nullptr) {
        if (known->start <= start) break;
        it.seek_before(keys_.key_of(KeyKind::kRow, known->start));
      } else {
        it.prev();
      }
    }
    TETRAD_TRY_VOID(it.status());
    dead.end_slice(start);
    return Next::kGoOn;
  }

  // ---- a row ----

  /// What hides things in a row beside its own deletions.
  Result<Deletion> cover_of(BytesView clustering_key) {
    if (window_) {
      TETRAD_TRY(const Deletion range, window_->at(clustering_key));
      return later_of(header_.deletion, range);
    }
    if (steps_.empty()) return header_.deletion;
    return later_of(header_.deletion, deletion_at(steps_, clustering_key));
  }

  /// Delivers what is to be shown of a row, if anything, and counts it.
  Result<Next> take_row(BytesView clustering_key, BytesView value) {
    ++examined_;
    // The steps of a row: what covers it, what of it is hidden, whether it lives, what of it is
    // shown.
    TETRAD_TRY(const Deletion cover, cover_of(clustering_key));
    TETRAD_TRY_VOID(decode_row_record_into(value, row_));
    bool live = false;
    // Most rows have nothing hidden, dead or expired: their stored bytes are the answer, and
    // nothing is encoded.
    uint32_t tombstones = 0;
    const bool as_stored =
        is_shown_as_stored(row_, cover, bound_, command_.live_only, live, tombstones);
    if (!as_stored) {
      drop_hidden(row_);
      if (!TETRAD_MUTANT(digest_keeps_hidden) || command_.live_only) hide(row_, cover);
      live = is_live(row_, command_.now_s);
      tombstones = tombstones_in(row_, live, command_.now_s);
      if (command_.live_only) {
        // A live read leaves out what others would need for a merge.
        keep_live(row_, command_.now_s);
      } else {
        drop_long_dead(row_, bound_, command_.now_s);
      }
    }
    result_.tombstones += tombstones;
    row_is_dead_ = !live;
    // Dead rows count as looked at: a partition full of them must not hold the thread, so the page
    // ends at keys_max.
    if (row_.empty() || (command_.live_only && !live)) {
      if (examined_ < keys_max_) return Next::kGoOn;
      last_key_.assign(clustering_key);
      return Next::kPageDone;
    }
    TETRAD_TRY_VOID(deliver(clustering_key, value, as_stored));
    // LIMIT counts live rows, never tombstones.
    if (live) {
      if (command_.count_only) counter_.take_row(counted(), clustering_key, row_);
      ++partition_live_;
      ++result_.live_row_count;
      if (partition_live_ >= rows_left_) return Next::kPartitionDone;
    }
    if (result_.live_row_count < command_.row_limit && bytes_ < command_.bytes_limit &&
        examined_ < keys_max_)
      return Next::kGoOn;
    last_key_.assign(clustering_key);
    return Next::kPageDone;
  }

  /// row_ as it is shown; `stored`: its bytes if nothing was taken from it.
  Result<void> deliver(BytesView clustering_key, BytesView stored, bool as_stored) {
    bytes_ += clustering_key.size();
    if (sink_ != nullptr) {
      bytes_ += stored.size();
      TETRAD_TRY_VOID(begin_in_sink(true));
      return sink_->take_row(clustering_key, row_);
    }
    // A count of live rows keeps none of them.
    if (counts_alone()) {
      bytes_ += stored.size();
      return {};
    }
    BytesView shown = stored;
    if (!as_stored) {
      record_.clear();
      encode_row_record(row_, record_);
      shown = record_;
    }
    bytes_ += shown.size();
    rows_.push_back({result_.arena.copy(clustering_key), result_.arena.copy(shown)});
    return {};
  }

  Result<void> begin_in_sink(bool rows_follow) {
    if (begun_in_sink_) return {};
    begun_in_sink_ = true;
    // keep_live() would take the deletion away, and rows still need it.
    const Deletion deletion = header_.deletion;
    keep_live(header_, command_.now_s);
    const Result<void> begun =
        sink_->begin_partition(position_, partition_key_, header_, rows_follow);
    header_.deletion = deletion;  // it hides more rows
    return begun;
  }

  /// The page ends behind the row taken last. Rule 5: the answer says up to which key it is
  /// complete.
  void stop_inside() {
    result_.exhausted = false;
    result_.complete_up_to = {position_, Bytes(partition_key_), Bytes(last_key_)};
    rows_of_last_ = partition_live_;
  }

  // ---- what a partition delivers besides rows ----

  /// `how`: done, or cut after last_key_.
  Result<void> end_partition(Next how) {
    const bool cut = how == Next::kPageDone;
    TETRAD_ASSERT(!(counts_alone() || sink_ != nullptr) || rows_.empty());
    // A partition with a live static row and no other row is one result row, as in Cassandra. Not
    // on a later page of it.
    const bool static_live = is_live(header_, command_.now_s);
    const bool static_only = static_live && !cut && partition_live_ == 0 && rows_done_ == 0;
    if (static_only) {
      ++result_.live_row_count;
      if (command_.count_only) counter_.take_static_row(counted());
    }
    // With rows that are compared the partition is kept, for the digest.
    if (counts_alone()) return {};
    if (sink_ != nullptr) return static_only ? begin_in_sink(false) : Result<void>();
    PartitionData out{position_, {}, {}, {}, {}};
    if (command_.live_only) {
      // Nothing live here: no partition is delivered.
      if (rows_.empty() && !static_only) return {};
      keep_live(header_, command_.now_s);
      out.header = header_.cells.empty() ? BytesView() : encoded(header_);
    } else {
      drop_long_dead(header_, bound_, command_.now_s);
      if (!header_.empty()) out.header = encoded(header_);
      out.range_tombstones = shown_tombstones(cut);
      // Tombstones alone are worth delivering: another replica may have what they hide.
      if (rows_.empty() && out.header.empty() && out.range_tombstones.empty()) return {};
    }
    out.partition_key = result_.arena.copy(partition_key_);
    bytes_ += partition_key_.size() + out.header.size();
    out.rows = std::move(rows_);
    rows_ = {};
    result_.partitions.push_back(std::move(out));
    return {};
  }

  // ---- counting ----

  /// Nobody compares what is counted: the rows need not be kept.
  bool counts_alone() const { return command_.count_only && command_.live_only; }

  CountedPartition counted() const { return {position_, partition_key_, header_}; }

  void keep_count() {
    result_.count = counter_.count(rows_of_last_);
    // Equal digests of counted rows mean equal rows, so the rows themselves need not be sent.
    if (!command_.live_only) result_.count->digest = digest_of(result_);
    result_.partitions.clear();
    result_.arena = base::Arena();
  }

  BytesView encoded(const RowRecord& record) {
    record_.clear();
    encode_row_record(record, record_);
    return result_.arena.copy(record_);
  }

  /// The steps inside the slices, from the place of resumption to where the rows end.
  TombstoneSteps shown_tombstones(bool cut) {
    TombstoneSteps shown;
    const TombstoneSteps& steps = window_ ? window_->steps() : steps_;
    if (steps.empty()) return shown;
    Bytes from, to = "\xFF";
    if (resume_key_ && command_.reversed) to.assign(*resume_key_);
    if (resume_key_ && !command_.reversed) from = Bytes(*resume_key_) + '\0';
    // Rule 5: tombstones are cut to the part of the slice for which the answer is complete.
    // Reached the per-partition limit: the merge takes the last row as the place it goes up to.
    if (!cut && rows_left_ != ReadCommand::kNoLimit && partition_live_ >= rows_left_ &&
        !rows_.empty()) {
      last_key_.assign(rows_.back().clustering_key);
      cut = true;
    }
    if (TETRAD_MUTANT(tombstones_uncut)) cut = false;
    if (cut && command_.reversed) from = last_key_;
    if (cut && !command_.reversed) to = last_key_ + '\0';
    const auto add = [&](BytesView start, BytesView end) {
      bytes_ += append_shown_steps(steps, std::max(start, BytesView(from)),
                                   std::min(end, BytesView(to)), bound_, result_.arena, shown);
    };
    for (const Bytes& row : command_.rows) add(row, row + '\0');
    if (command_.rows.empty()) {
      for (const ClusteringRange& range : command_.clustering_ranges) add(range.start, range.end);
      if (command_.clustering_ranges.empty()) add("", "\xFF");
    }
    return shown;
  }

  KeyView& view_;
  const ReadCommand& command_;
  const TableContents contents_;
  const uint64_t keys_max_;
  RowSink* const sink_;
  RowCounter counter_;  // of a command with count_only
  PurgeBound bound_;    // what is left out of an answer that is compared
  ReadResult result_;
  uint64_t bytes_ = 0, examined_ = 0;
  uint32_t rows_of_last_ = 0;

  // the partition being read
  RingPosition position_;
  BytesView partition_key_;
  PartitionKeys keys_;
  RowRecord header_;
  TombstoneSteps steps_;                   // of a range's partition
  std::optional<TombstoneWindow> window_;  // of a partition that is read alone
  base::Arena partition_arena_;            // of header_ and steps_
  std::optional<BytesView> resume_key_;
  std::vector<RowData> rows_;
  bool begun_in_sink_ = false;
  bool bounds_are_slice_ = false;  // the iterator gives rows of the one slice only
  uint32_t partition_live_ = 0, rows_done_ = 0, rows_left_ = 0;
  Bytes last_key_;

  bool row_is_dead_ = false;     // the one taken last
  RowRecord row_;                // scratch: the row being looked at
  Bytes record_, resume_start_;  // scratch
};

}  // namespace

Result<ReadResult> read_partitions(KeyView& view, const ReadCommand& command,
                                   const TableContents& contents, uint64_t keys_max) {
  Reader reader(view, command, contents, keys_max);
  TETRAD_TRY_VOID(reader.run());
  return std::move(reader.result());
}

Result<ReadEnd> read_partitions_into(KeyView& view, const ReadCommand& command,
                                     const TableContents& contents, RowSink& sink,
                                     uint64_t keys_max) {
  Reader reader(view, command, contents, keys_max, &sink);
  TETRAD_TRY_VOID(reader.run());
  return ReadEnd(std::move(reader.result()));
}

}  // namespace tetrad::storage
