// SPDX-License-Identifier: Apache-2.0
// What becomes of the rows of a chunk, one after another, in the order of the answer:
//
// 1. take() gives them turns: on the loop as long as a row is short (estimate_rows), otherwise on a
//    worker thread while the task waits.
// 2. take_rows() reads the cells of each row. Rows that are not live are passed over; a partition of
//    which only static columns live gives one row of them.
// 3. take_row(): charge, filters; then the search for near vectors, or masks.
// 4. take_passed(): groups, PER PARTITION LIMIT, the page, ORDER BY, LIMIT; the row is written
//    (select_output.cc).
//
// Positions of rows stand here, too: where the next page goes on, and what rows are sorted by.
#include <algorithm>
#include <functional>
#include <utility>

#include "cql/execute/off_loop.h"
#include "cql/execute/select_run.h"
#include "cql/prepare/column_masks.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

using storage::PartitionData;
using storage::ReadResult;

/// Then other requests come in, and the clock is looked at.
constexpr uint64_t kTurnOffLoopNs = 20'000'000;

}  // namespace

// Sets row_factor_ (in units of kRowNs and bytes), functions_ns_ and functions_ns_per_byte_, from
// which read_ns() and row_ns_max() estimate a row. They decide whether rows are evaluated on the
// loop; they are upper estimates, since a row that is begun cannot be cut.
void SelectRun::estimate_rows() {
  const SelectStatement& s = statement_;
  // The factors 6 and 20 are rough prices: a multi-cell column is put together from many cells, and
  // JSON writes each value as text.
  const bool has_cells = std::ranges::any_of(s.layout_.is_multi_cell, std::identity());
  row_factor_ = has_cells ? 6 : 1;
  if (s.is_json_) row_factor_ += 20;
  if (s.is_aggregate_) row_factor_ += aggregators_.size();
  for (const BoundFilter& filter : filters_) row_factor_ += filter.test_count();
  if (is_masked_) {
    row_factor_ += 2 * s.masks_.size();
    if (s.mask_calls() > kUserCallsOnLoopMax) {
      functions_ns_ +=
          s.mask_calls() * WorkMeter::kScriptStepNs * context_.settings.script_limits.steps_max;
    }
  }
  if (!s.plain_slots_.empty()) return;
  // Every token may be something that looks at all of the row.
  functions_ns_per_byte_ = s.token_count();
  functions_ns_ += 20 * s.token_count();
  // Functions may take bound values as arguments, which are then read again for each row.
  if (context_.request_bytes > kBytesOnLoop) functions_ns_ += bind_ns(s, evaluation_.bound);
  if (s.user_calls() > kUserCallsOnLoopMax) {
    functions_ns_ +=
        s.user_calls() * WorkMeter::kScriptStepNs * context_.settings.script_limits.steps_max;
  }
}

// A partition may come in several chunks and over several pages. It counts as new once; after a
// page that ended inside it, its counts go on from the paging state.
void SelectRun::begin_partition(BytesView partition_key, bool has_rows) {
  partition_is_new_ = false;
  if (BytesView(current_partition_) != partition_key || !started_) {
    if (!started_ && current_partition_ == partition_key && context_.options.paging_position) {
      // The partition that the last page ended in: it has given rows.
      partition_has_rows_ = true;
    } else {
      partition_rows_done_ = 0;
      partition_has_rows_ = false;
      partition_is_new_ = true;
    }
    current_partition_.assign(partition_key);
    started_ = true;
  }
  if (has_rows && store_counts()) partition_with_rows_.assign(partition_key);
}

// `chunk` is a pointer since coroutines take no references to temporaries; it outlives the task.
// The shard's thread runs all of it, but for the pieces that evaluate_off_loop runs on a worker
// while this task waits.
Task<Result<void>> SelectRun::take(const ReadResult* chunk) {
  if (statement_.counts_only_ && store_counts()) co_return count(*chunk);
  // Many requests may have got their rows in one message: together they end the turn, too.
  const bool is_plain = !statement_.plain_slots_.empty() && !filters_active_ && !is_masked_;
  OffLoop* const turns = is_plain ? nullptr : context_.off_loop;
  if (turns != nullptr && !turns->has_room()) co_await turns->next_room();
  ChunkRows rows(*this, *chunk);
  Result<bool> all = false;
  while (true) {
    // A worker may do 20 ms at a stretch (kTurnOffLoopNs): it holds up no loop, but its lane is
    // shared by all evaluations of the shard.
    if (rows.off_loop) {
      context_.work.begin_turn(kTurnOffLoopNs);
      const std::function<void()> take_some = [this, &rows, &all] { all = take_rows(rows); };
      co_await evaluate_off_loop(context_, functions_, take_some);
    } else {
      context_.work.begin_turn();
      const uint64_t before_ns = context_.work.done_ns();
      all = take_rows(rows);
      if (turns != nullptr) turns->worked(context_.work.done_ns() - before_ns);
      // Only when rows are left: each turn given up costs the request the other handlers of the
      // loop.
      if (all && !*all) co_await next_turn(context_.reactor);
    }
    if (!all) co_return std::unexpected(std::move(all).error());
    if (*all) co_return Result<void>();
    TETRAD_CO_TRY_VOID(check_time());
  }
}

// Goes on at `from` until the chunk ends (true), the page is done (true) or the turn is over
// (false). It may run on a worker thread: it touches only this run, the chunk and `functions_`,
// which evaluate_off_loop has replaced with functions that use nothing of the shard.
Result<bool> SelectRun::take_rows(ChunkRows& from) {
  const ReadResult& chunk = from.chunk;
  RowMaterializer& rows = from.evaluation.rows;
  WorkMeter& work = context_.work;
  const auto turn_is_over = [&](size_t bytes_of_next) {
    if (!from.off_loop && row_ns_max(bytes_of_next) > WorkMeter::kPieceNs) {
      from.off_loop = true;  // and the rest of the chunk
      return true;
    }
    return work.turn_is_over();
  };
  for (; from.partition < chunk.partitions.size(); from.next_partition()) {
    const PartitionData& partition = chunk.partitions[from.partition];
    if (turn_is_over(partition.header.size())) return false;
    if (!from.started) {
      from.started = true;
      work.charge(read_ns(partition.header.size()));
      begin_partition(partition.partition_key, !partition.rows.empty());
      TETRAD_TRY_VOID(rows.start_partition(partition));
      note_static(rows);
    }
    last_chunk_partition_ = from.partition + 1 == chunk.partitions.size();
    while (from.row < partition.rows.size()) {
      const size_t bytes = partition.rows[from.row].record.size();
      if (turn_is_over(bytes)) return false;
      const size_t r = from.row++;
      TETRAD_TRY_VOID(work.spend(read_ns(bytes)));
      TETRAD_TRY(const bool live, rows.read_row(partition.rows[r]));
      if (!live) continue;
      partition_has_rows_ = true;
      if (!store_counts()) partition_with_rows_.assign(partition.partition_key);
      // take_passed() needs this to leave out the position of a next page that would be empty.
      is_last_row_ = last_chunk_partition_ && r + 1 == partition.rows.size() && chunk.exhausted;
      TETRAD_TRY_VOID(take_row({partition.position, partition.partition_key,
                                &partition.rows[r].clustering_key, rows.row_bytes()},
                               from.evaluation.context));
      from.evaluation.end_row();
      if (done_) return true;
      // SELECT DISTINCT shows a partition once, by its first live row.
      if (statement_.distinct_) break;
    }
    // Without a live row there is one of the static columns.
    // The chunk ended inside this partition, so live rows may still come; whether the static
    // columns stand alone is known with the next chunk.
    const bool cut_short = last_chunk_partition_ && !chunk.exhausted &&
                           chunk.complete_up_to.clustering_key.has_value() &&
                           chunk.complete_up_to.partition_key == partition.partition_key;
    if (!statement_.static_only_rows_ || !rows.has_live_static() || partition_has_rows_ ||
        cut_short) {
      continue;
    }
    rows.clear_row();
    is_last_row_ = last_chunk_partition_ && chunk.exhausted;
    TETRAD_TRY_VOID(take_row({partition.position, partition.partition_key, nullptr, 0},
                             from.evaluation.context));
    if (done_) return true;
  }
  return true;
}

// For count(*) of rows that had to be read. The store gives live rows only (store_counts), so their
// number is enough, and no cell is decoded.
Result<void> SelectRun::count(const ReadResult& chunk) {
  uint64_t rows = 0;
  for (const PartitionData& partition : chunk.partitions) {
    if (!partition.rows.empty()) {
      rows += partition.rows.size();
      for (const storage::RowData& row : partition.rows)
        weight_read_ += storage::row_weight(row.clustering_key.size() + row.record.size());
      partition_with_rows_.assign(partition.partition_key);
    } else if (statement_.static_only_rows_ && !partition.header.empty()) {
      base::Arena arena;
      RowMaterializer materializer(statement_.layout_, arena, context_.now_s);
      TETRAD_TRY_VOID(materializer.start_partition(partition));
      rows += materializer.has_live_static() ? 1 : 0;
    }
  }
  rows_counted_ += rows;
  rows_read_ += rows;
  return {};
}

// Rows that only show that there is another page are not charged: the next page reads and charges
// them.
void SelectRun::note_row(const RowPlace& place) {
  if (!statement_.is_aggregate_ &&
      (page_left_ == 0 || (partition_limit_ >= 0 && partition_rows_done_ >= partition_limit_)))
    return;
  ++rows_read_;
  weight_read_ += storage::row_weight(place.bytes);
  last_position_ = place.position;
}

Result<void> SelectRun::take_row(const RowPlace& place, EvalContext& evaluation) {
  note_row(place);
  for (const BoundFilter& filter : filters_) {
    if (!filter.matches(*evaluation.row)) return {};
  }
  // The distance is measured on the value of the column, not on its mask; the masks come with the
  // output.
  if (query_) return take_nearest(evaluation);
  if (!is_masked_) return take_passed(place, evaluation);
  TETRAD_TRY(EvalContext shown, masked(evaluation));
  return take_passed(place, shown);
}

// Masks are evaluated into an arena of their own, which lives until the next row; the unmasked row
// stays with the caller, for ORDER BY and the paging state.
Result<EvalContext> SelectRun::masked(const EvalContext& evaluation) {
  mask_arena_ = base::Arena();
  EvalContext unmasked{evaluation.bound, mask_arena_,    functions_,
                       context_.now_s,   evaluation.row, {}};
  masked_row_ = *evaluation.row;
  TETRAD_TRY_VOID(mask_values(statement_.masks_, unmasked, masked_row_.values));
  return EvalContext{evaluation.bound, evaluation.arena, functions_,
                     context_.now_s,   &masked_row_,     evaluation.aggregates};
}

// The order of the tests: PER PARTITION LIMIT, then the page, then LIMIT. A row that the
// partition's limit refuses must not open another page.
Result<void> SelectRun::take_passed(const RowPlace& place, EvalContext& evaluation) {
  if (statement_.is_aggregate_) return take_grouped(place, evaluation);
  if (partition_limit_ >= 0 && partition_rows_done_ >= partition_limit_) return {};
  // The first row behind a full page proves that there is another page. It is not shown: the next
  // page begins with it.
  if (page_left_ == 0) {
    result_.next_position = std::move(page_end_);
    done_ = true;
    return {};
  }
  // ORDER BY over several partitions (IN): all rows are kept with their sort keys and written by
  // put_in_order(). Such statements have no pages.
  if (sorts_) {
    TETRAD_TRY(Bytes key, sort_key(place));
    ++partition_rows_done_;
    return write_for_sort(std::move(key), evaluation);
  }
  TETRAD_TRY_VOID(write(evaluation));
  if (is_too_large(result_.cells.size())) return fail_too_large();
  ++partition_rows_done_;
  if (rows_left_ > 0 && --rows_left_ == 0) {
    done_ = true;
    return {};
  }
  if (ends_page()) {
    page_end_ = encode_position(position_of(place));
    // Without filters the next page is only promised when its first row has been seen; with them
    // that could take the rest of the table.
    const bool last_of_all = is_last_row_ && (partitions_.is_range ||
                                              next_partition_ + 1 >= partitions_.partitions.size());
    if (filters_active_) {
      done_ = true;
      if (!last_of_all) result_.next_position = std::move(page_end_);
    }
  }
  return {};
}

std::unexpected<Error> SelectRun::fail_too_large() {
  return fail(ErrorCode::kInvalid,
              "The result is larger than {} bytes: use paging or fewer columns", kResultBytesMax);
}

// Assigns into `position` instead of making a new one: this runs for each row, and the memory of
// the keys is used again. Without a clustering key the position stands before the rows of the
// partition, or behind all of it, as the command reads it.
void SelectRun::set_position(storage::ReadPosition& position, const RowPlace& place) const {
  position.position = place.position;
  position.partition_key.assign(place.partition_key);
  if (place.clustering_key == nullptr || statement_.distinct_) {
    position.clustering_key.reset();
  } else if (position.clustering_key) {
    position.clustering_key->assign(*place.clustering_key);
  } else {
    position.clustering_key.emplace(*place.clustering_key);
  }
}

// What LIMIT and PER PARTITION LIMIT have left goes into the paging state, since the next page is a
// new run that knows nothing else (cql/execute/select_position.h).
Bytes SelectRun::encode_position(storage::ReadPosition after) const {
  return encode_select_position(
      {std::move(after), rows_left_, static_cast<uint32_t>(partition_rows_done_)});
}

// The bytes of the first `columns` columns of an ordered key. They sort by memcmp and are equal
// exactly when the columns are, so groups and sorting need no decoding.
Result<BytesView> SelectRun::clustering_prefix(const RowPlace& place, size_t columns) const {
  if (place.clustering_key == nullptr) return BytesView();
  BytesView rest = *place.clustering_key;
  for (size_t i = 0; i < columns; ++i) {
    const ColumnSchema& column = statement_.table_->clustering()[i];
    TETRAD_TRY_VOID(skip_ordered(rest, *column.type, column.descending));
  }
  return place.clustering_key->substr(0, place.clustering_key->size() - rest.size());
}

}  // namespace tetrad::cql
