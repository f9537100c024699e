// SPDX-License-Identifier: Apache-2.0
// The two ways of a SELECT without chunks. Both are tried first and give up without a trace; then
// the rows are read as chunks (select_chunks.cc).
//
//   read_here       at ONE, where this shard's store has the partition in memory: the store gives
//                   each row to Stream within one call, and it is written to the page at once
//   count_in_place  count(*) and aggregates that replicas know: each replica folds its rows, the
//                   coordinator joins the results, and no row travels
#include <utility>

#include "cql/execute/aggregate_fold.h"
#include "cql/execute/select_run.h"

namespace tetrad::cql {

namespace {

using storage::ReadCommand;
using storage::ReadEnd;

}  // namespace

/// Takes rows where the store finds them. No filters and no groups: nobody asks whether a row is
/// the last one.
class SelectRun::Stream final : public storage::RowSink {
 public:
  explicit Stream(SelectRun& run) : run_(run), evaluation_(run) {}

  // The store calls this for each partition before its rows, in ring order; the views are valid
  // during the call only.
  Result<void> begin_partition(RingPosition position, BytesView partition_key,
                               const storage::RowRecord& header, bool rows_follow) override {
    if (run_.done_) return {};
    place_ = {position, partition_key, nullptr, 0};
    // begin_partition() comes first: it decides whether this is a new partition, which
    // note_static() needs, and resets the row count that PER PARTITION LIMIT is compared with.
    run_.begin_partition(partition_key, rows_follow);
    RowMaterializer& rows = evaluation_.rows;
    TETRAD_TRY_VOID(rows.start_partition(partition_key, &header));
    run_.note_static(rows);
    if (rows_follow || !run_.statement_.static_only_rows_ || !rows.has_live_static() ||
        run_.partition_has_rows_)
      return {};
    // No row follows, but the static columns are live: as in Cassandra, the partition then shows as
    // one row whose clustering and regular columns are null.
    rows.clear_row();
    return put(rows.static_bytes());
  }

  Result<void> take_row(BytesView clustering_key, const storage::RowRecord& row) override {
    if (run_.done_ || (run_.statement_.distinct_ && place_.clustering_key != nullptr)) return {};
    TETRAD_TRY(const bool live, evaluation_.rows.read_row(clustering_key, row));
    if (!live) return {};
    run_.partition_has_rows_ = true;
    place_.clustering_key = &clustering_key;
    place_.bytes = evaluation_.rows.row_bytes();
    return put(place_.bytes);
  }

  /// It is more work than a turn has room for: what was taken does not count.
  bool gave_up() const { return gave_up_; }

 private:
  Result<void> put(uint64_t bytes) {
    WorkMeter& work = run_.context_.work;
    // The store cannot stop in the middle and go on later, so a row that would take too long ends
    // the attempt. read_here() then restores the progress, and the same rows are read again as a
    // chunk.
    const uint64_t expected_ns = run_.row_ns_max(bytes);
    gave_up_ = expected_ns > WorkMeter::kPieceNs || work.turn_is_over();
    if (gave_up_) return fail(ErrorCode::kCancelled, "not in this turn");
    work.charge(run_.read_ns(bytes));
    TETRAD_TRY_VOID(run_.take_row(place_, evaluation_.context));
    evaluation_.end_row();
    return {};
  }

  bool gave_up_ = false;
  SelectRun& run_;
  Evaluation evaluation_;
  RowPlace place_{};
};

// The path of most reads of one row at ONE: Coordinator::read_here gives the rows to Stream within
// one call, without a task, a message or a copy. It excludes everything that needs a whole chunk
// (filters, groups, ORDER BY) or may take long (user functions, masks).
std::optional<Result<ReadEnd>> SelectRun::read_here(ReadCommand& command) {
  if (statement_.is_aggregate_ || filters_active_ || sorts_ || is_masked_ || !store_counts() ||
      !statement_.used_functions_.is_empty() || statement_.table_->is_virtual || reads_serially())
    return std::nullopt;
  // The state that rows change is in SelectProgress and in result_. A failed attempt must leave no
  // trace, or the rows would show twice.
  const SelectProgress before = *this;
  const size_t cells_before = result_.cells.size();
  const uint32_t rows_before = result_.row_count;
  context_.work.begin_turn();
  Stream stream(*this);
  auto end = context_.coordinator.read_here(command, read_options(), stream);
  if (end && !stream.gave_up()) return end;
  static_cast<SelectProgress&>(*this) = before;
  result_.cells.resize(cells_before);
  // The room of what was taken back would not be counted while this run waits for its chunk.
  result_.cells.shrink_to_fit();
  result_.row_count = rows_before;
  result_.next_position.reset();
  return std::nullopt;
}

// All that makes the number of live rows differ from the number of counted rows excludes this path:
// filters, PER PARTITION LIMIT, masks, dropped columns. Virtual tables have no replicas, and a
// serial read must go through Paxos first.
bool SelectRun::counts_in_place() const {
  return (statement_.counts_only_ || statement_.folds_) && !is_masked_ && store_counts() &&
         !filters_active_ && partition_limit_ < 0 && !statement_.table_->is_virtual &&
         (partitions_.is_range || (partitions_.partitions.size() == 1 && !reads_serially()));
}

Task<Result<bool>> SelectRun::count_in_place() {
  const SelectStatement& s = statement_;
  if (s.folds_ && s.fold_ == nullptr) {
    // Made once for a statement and kept there. Null: one of the aggregates has no form that
    // replicas know.
    s.fold_ = make_aggregate_fold(*s.table_, s.layout_.slots, s.aggregates_, s.static_only_rows_);
    if (s.fold_ == nullptr) co_return false;
  }
  ReadCommand command =
      partitions_.is_range ? range_command() : partition_command(partitions_.partitions.front());
  // A partition without rows is one where static columns alone show.
  command.wants_static = s.folds_ ? s.wants_static_ : s.static_only_rows_;
  // Set for folds only; count(*) needs no fold, the number of rows is in each answer.
  command.fold = s.fold_;
  auto counted = co_await context_.coordinator.count(std::move(command), read_options());
  if (!counted) co_return std::unexpected(std::move(counted).error());
  if (s.folds_) {
    if (!counted->folded) co_return false;
    TETRAD_CO_TRY_VOID(load_aggregates(aggregators_, *counted->folded));
  }
  rows_counted_ = rows_read_ = counted->rows;
  weight_read_ = counted->weight;
  co_return true;
}

}  // namespace tetrad::cql
