// SPDX-License-Identifier: Apache-2.0
// Counting rows where they are: replicas answer with numbers and digests of what they counted.
// Where these differ, the rows of that page are fetched, merged and repaired as by any read. A fold
// goes with it: each page goes on from the state that the one before has left.
#include "base/assert.h"
#include "replication/consistency.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/ring_walk.h"
#include "storage/row/row_fold.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {
namespace {

/// A page is one piece of work of a replica's I/O pool, some milliseconds.
constexpr uint32_t kPageRows = 10'000;
constexpr uint64_t kPageBytes = 8u << 20;
/// When rows travel after all.
constexpr uint32_t kRepairRows = 2'000;
/// Tablets that one request counts at the same time.
constexpr size_t kTabletsAtOnce = 8;

}  // namespace

// Shared by the workers of one request; the last one sets `done`.
/// One request's ranges and what is known of them.
struct CoordinatorImpl::Counting {
  storage::ReadCommand command;
  ReadOptions options;
  std::vector<RingRange> ranges;
  size_t next = 0;  // range
  size_t working = 0;
  Counted counted;
  // In order of ranges: a fold in order goes on from the one before, any other is joined at the
  // end.
  std::vector<Bytes> states;  // of the fold, after each range
  bool gave_up = false;       // the fold is worth nothing
  std::optional<Error> error;
  base::OneShot<bool> done;

  const storage::FoldPlan* fold() const { return command.fold.get(); }
  bool folds_in_order() const { return fold() != nullptr && fold()->in_order(); }
  bool goes_on() const { return next < ranges.size() && !error && !gave_up; }
};

Task<Result<Counted>> CoordinatorImpl::count(storage::ReadCommand command, ReadOptions options) {
  TETRAD_CO_TRY_VOID(check_read_level(options.level));
  if (!check_clock()) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  const base::MonotonicUs started_us = reactor_.now_us();
  const bool is_range = command.is_range;
  TableLatencies::Scope timed(
      replicas_.latencies(),
      is_range ? TableFigure::kCoordinatorScan : TableFigure::kCoordinatorRead,
      command.incarnation);
  if (is_serial(options.level)) {
    // What was half done before is done then, and a quorum sees it.
    storage::ReadCommand first = command;
    first.count_only = false;
    first.fold = nullptr;
    first.row_limit = 1;
    Result<storage::ReadResult> seen = co_await read(std::move(first), options);
    if (!seen) co_return std::unexpected(std::move(seen.error()));
    options.level = options.level == ConsistencyLevel::kLocalSerial ? ConsistencyLevel::kLocalQuorum
                                                                    : ConsistencyLevel::kQuorum;
  }
  command.by_index.reset();  // a count is of all rows: who tests rows reads them
  command.row_limit = kPageRows;
  command.per_partition_limit = storage::ReadCommand::kNoLimit;
  command.bytes_limit = kPageBytes;
  if (command.fold == nullptr) command.reversed = false;
  const auto counting = std::make_shared<Counting>();
  counting->options = options;
  if (command.is_range) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
    // Ranges of this moment; a split cuts them further below.
    for (RingPosition from = command.range.start; from < command.range.end;) {
      const RingPosition end = std::min(command.range.end, tablet_after(*table, from).range.end);
      counting->ranges.push_back({from, end});
      from = end;
    }
  } else {
    counting->ranges.emplace_back();
  }
  counting->command = std::move(command);
  if (counting->fold() != nullptr) counting->states.resize(counting->ranges.size());
  // A fold in order leaves no two ranges side by side.
  const size_t workers =
      std::min(counting->folds_in_order() ? 1 : kTabletsAtOnce, counting->ranges.size());
  counting->working = workers;
  if (workers != 0) {
    for (size_t i = 0; i < workers; ++i) tasks_.spawn(count_parts(this, counting));
    co_await counting->done;
  }
  const Error* error = counting->error ? &*counting->error : nullptr;
  record_read(is_range, options.level, started_us, timed.end(), error);
  if (error != nullptr) co_return std::unexpected(std::move(*counting->error));
  Counted& counted = counting->counted;
  // The caller reads the rows then.
  if (counting->fold() == nullptr || counting->gave_up) co_return counted;
  std::vector<Bytes>& states = counting->states;
  if (counting->folds_in_order()) {
    counted.folded = states.empty() ? Bytes() : std::move(states.back());
  } else if (auto joined = counting->fold()->join(states)) {
    counted.folded = std::move(*joined);
  }
  co_return std::move(counted);
}

/// Counts range after range until none is left or one has failed.
Task<void> CoordinatorImpl::count_parts(CoordinatorImpl* self, std::shared_ptr<Counting> counting) {
  try {
    while (counting->goes_on()) {
      storage::ReadCommand part = counting->command;
      const size_t index = counting->next++;
      TETRAD_ASSERT(index < counting->ranges.size());
      part.range = counting->ranges[index];
      if (index != 0 && counting->folds_in_order()) part.fold_state = counting->states[index - 1];
      auto counted = co_await self->count_part(std::move(part), counting->options);
      if (!counted) {
        if (!counting->error) counting->error = std::move(counted.error());
        // The other workers end by goes_on().
        continue;
      }
      counting->counted.rows += counted->rows;
      counting->counted.weight += counted->weight;
      if (counting->fold() == nullptr) continue;
      if (counted->folded) {
        counting->states[index] = std::move(*counted->folded);
      } else {
        counting->gave_up = true;
      }
    }
  } catch (const std::exception& error) {
    if (!counting->error) counting->error = failed_inside(error, self->logger_).error();
  }
  TETRAD_ASSERT(counting->working != 0);
  if (--counting->working == 0) counting->done.setter().set(true);
}

/// Page by page. The range was one tablet's when the count began; it may have been split since.
Task<Result<Counted>> CoordinatorImpl::count_part(storage::ReadCommand command,
                                                  ReadOptions options) {
  const RingRange whole = command.range;
  Counted counted;
  while (true) {
    storage::ReadCommand page = command;
    page.count_only = true;
    RingPosition inside = command.position;
    if (command.is_range) {
      // Each page lies in one tablet, as its epoch demands (rule 8).
      const RingPosition from = start_of(command);
      const MetaSnapshot state = meta_.snapshot();
      const TableInfo* table = state->table(command.incarnation);
      if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
      page.range = {from, std::min(whole.end, tablet_after(*table, from).range.end)};
      inside = page.range.end;
    }
    auto result = co_await read_tablet(std::move(page), inside, options);
    if (!result && result.error().code == ErrorCode::kStaleEpoch) continue;  // split meanwhile
    if (!result) co_return std::unexpected(std::move(result.error()));
    if (!result->count) co_return fail(ErrorCode::kCorruption, "a count without its numbers");
    counted.rows += result->live_row_count;
    counted.weight += result->count->weight;
    if (command.fold != nullptr) {
      // Some member could not fold: the count is good, the fold is not.
      if (!result->count->folded) co_return counted;
      command.fold_state = std::move(*result->count->folded);
    }
    if (result->exhausted) {
      if (!command.is_range || inside == whole.end) {
        if (command.fold != nullptr) counted.folded = std::move(command.fold_state);
        co_return counted;
      }
      command.range.start = inside;
      command.resume_after.reset();
      command.partition_rows_done = 0;
      continue;
    }
    // The place may lie in the partition of the page before: rows of it that were counted go on
    // counting.
    const storage::ReadPosition& place = result->complete_up_to;
    const bool same_partition = command.resume_after && place.clustering_key &&
                                command.resume_after->partition_key == place.partition_key;
    const uint32_t before = same_partition ? command.partition_rows_done : 0;
    command.partition_rows_done = before + result->count->rows_of_last;
    command.resume_after = std::move(result->complete_up_to);
    if (reactor_.now_us() >= options.deadline.at_us) {
      const base::TimeoutDetail detail{options.level, 0, 1};
      co_return std::unexpected(
          Error(ErrorCode::kReadTimeout, "Operation timed out - the count took too long.", detail));
    }
  }
}

/// The page's replicas do not hold the same: their rows are merged and repaired, and those counted.
Task<Result<storage::ReadResult>> CoordinatorImpl::count_and_repair(
    storage::ReadCommand command, TabletSeen seen, std::vector<StoreAddress> replicas,
    ReadOptions options) {
  // Rows come without the fold, which is made of the merge.
  const storage::FoldPlanPtr fold = std::move(command.fold);
  const Bytes state = std::move(command.fold_state);
  const int64_t now_s = command.now_s;
  command.count_only = false;
  command.row_limit = kRepairRows;
  auto merged = co_await read_and_repair(std::move(command), seen, std::move(replicas), options);
  if (!merged) co_return merged;
  storage::RowCount& count = merged->count.emplace();
  if (!merged->exhausted && merged->complete_up_to.clustering_key && !merged->partitions.empty() &&
      merged->partitions.back().partition_key == merged->complete_up_to.partition_key) {
    count.rows_of_last = static_cast<uint32_t>(merged->partitions.back().rows.size());
  }
  storage::RowRecord record;
  for (const storage::PartitionData& partition : merged->partitions) {
    for (const storage::RowData& row : partition.rows) {
      TETRAD_CO_TRY_VOID(storage::decode_row_record_into(row.record, record));
      count.weight +=
          storage::row_weight(row.clustering_key.size() + storage::live_bytes(record, now_s));
    }
  }
  if (fold != nullptr) {
    if (auto folded = storage::fold_rows(*fold, state, now_s, *merged))
      count.folded = std::move(*folded);
  }
  co_return merged;
}

}  // namespace tetrad::replication
