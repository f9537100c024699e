// SPDX-License-Identifier: Apache-2.0
// Reads of more than one tablet or partition: a range of the ring, one tablet after another, and
// many commands of one statement, side by side. Each tablet is read as read.cc says.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/ring_walk.h"

namespace tetrad::replication {

namespace {

// The walk stops between tablets, so the end is named by the last partition that was found: rule 5
// asks for a key, never a tablet.
/// There is more behind what a walk over tablets has found.
storage::ReadResult ended_with_its_last_partition(storage::ReadResult result) {
  TETRAD_ASSERT(!result.partitions.empty());
  const storage::PartitionData& last = result.partitions.back();
  result.exhausted = false;
  result.complete_up_to = {last.position, Bytes(last.partition_key), std::nullopt};
  return result;
}

}  // namespace

// Tablets one after another, in ring order, since a page has to end at one place. Limits count what
// the tablets before have given.
Task<Result<storage::ReadResult>> CoordinatorImpl::read_range(storage::ReadCommand command,
                                                              ReadOptions options) {
  storage::ReadResult out;
  const RingRange whole = command.range;
  RingPosition from = start_of(command);
  const uint64_t bytes_limit = command.bytes_limit;
  const uint32_t row_limit = command.row_limit;
  bool is_first = true;
  while (from < whole.end) {
    // Taken anew for each tablet: a split or merge between two of them only changes where the next
    // part ends.
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
    storage::ReadCommand part = command;
    part.range = {from, std::min(whole.end, tablet_after(*table, from).range.end)};
    // The place in a partition belongs to the first part only.
    if (!is_first) {
      part.resume_after.reset();
      part.partition_rows_done = 0;
    }
    if (row_limit != storage::ReadCommand::kNoLimit && !TETRAD_MUTANT(row_limit_anew))
      part.row_limit = row_limit - out.live_row_count;
    const uint64_t bytes_done = out.arena.allocated_bytes();
    // At least 1: a tablet then gives one row past the limit, and the walk comes forward.
    part.bytes_limit = bytes_limit - std::min<uint64_t>(bytes_limit - 1, bytes_done);
    if (command.bytes_max != storage::ReadCommand::kNoBytesMax)
      part.bytes_max = command.bytes_max - std::min(command.bytes_max, bytes_done);
    const RingPosition end = part.range.end;
    if (TETRAD_MUTANT(split_edge_lost) && end < whole.end) --part.range.end.hash;
    auto result = co_await read_tablet(std::move(part), end, options);
    // It was split meanwhile: what is left to be read is cut anew.
    if (!result && result.error().code == ErrorCode::kStaleEpoch) continue;
    if (!result) co_return std::unexpected(std::move(result.error()));
    if (TETRAD_MUTANT(split_edge_twice) && !is_first && !out.partitions.empty())
      out.partitions.push_back(out.partitions.back());
    // Enough for a page was found before: it is answered, and what does not fit is the next page's
    // trouble.
    if (result->withheld_bytes != 0) {
      if (out.partitions.empty()) co_return result;
      co_return ended_with_its_last_partition(std::move(out));
    }
    is_first = false;
    out.live_row_count += result->live_row_count;
    std::move(result->partitions.begin(), result->partitions.end(),
              std::back_inserter(out.partitions));
    // Nothing views the arena of an answer without rows, though it may hold the message that brought
    // it. Counted, many of them would leave the first row no room, however often it is read again.
    if (!result->partitions.empty()) out.arena.absorb(std::move(result->arena));
    // The tablet has more: its own end is the end of the page.
    if (!result->exhausted) {
      out.exhausted = false;
      out.complete_up_to = std::move(result->complete_up_to);
      co_return out;
    }
    // The next part begins where this one ended, whichever tablet that is in by then.
    from = end;
    if (TETRAD_MUTANT(page_ends_all)) co_return out;
    const bool is_full =
        out.live_row_count >= row_limit || out.arena.allocated_bytes() >= bytes_limit;
    if (is_full && from < whole.end && !out.partitions.empty())
      co_return ended_with_its_last_partition(std::move(out));
  }
  co_return out;
}

Task<void> CoordinatorImpl::read_into(
    CoordinatorImpl* self, storage::ReadCommand command, ReadOptions options,
    std::move_only_function<void(Result<storage::ReadResult>)> done) {
  std::optional<Result<storage::ReadResult>> result;
  // The last catch of this task: an exception of a library must reach the waiting window as an
  // error, else it would wait forever.
  try {
    auto read = co_await self->read(std::move(command), options);
    result.emplace(std::move(read));
  } catch (const std::exception& error) {
    result.emplace(failed_inside(error, self->logger_));
  }
  done(std::move(*result));
}

Task<Result<std::vector<storage::ReadResult>>> CoordinatorImpl::read_many(
    std::vector<storage::ReadCommand> commands, ReadOptions options) {
  // Commands in flight at once of one statement. It bounds memory, and the share that one client
  // gets of the members' queues.
  constexpr size_t kAtOnce = 64;
  std::vector<storage::ReadResult> out(commands.size());
  struct Window {
    size_t left = 1;
    std::optional<Error> error;
    std::vector<std::pair<size_t, storage::ReadResult>> results;
    base::OneShot<bool> done;
    void finish_one() {
      TETRAD_ASSERT(left != 0);
      if (--left == 0) done.setter().set(true);
    }
  };
  for (size_t first = 0; first < commands.size(); first += kAtOnce) {
    const auto window = std::make_shared<Window>();
    window->results.reserve(kAtOnce);  // nothing throws where a result arrives
    const size_t end = std::min(commands.size(), first + kAtOnce);
    for (size_t i = first; i < end; ++i) {
      ++window->left;
      tasks_.spawn(read_into(this, std::move(commands[i]), options,
                             [window, i](Result<storage::ReadResult> result) {
                               if (result) {
                                 window->results.emplace_back(i, std::move(*result));
                               } else if (!window->error) {
                                 window->error = std::move(result.error());
                               }
                               window->finish_one();
                             }));
    }
    window->finish_one();
    co_await window->done;
    // Only when all of the window have ended, so that none of its tasks is left behind.
    if (window->error) co_return std::unexpected(std::move(*window->error));
    for (auto& [index, result] : window->results) out[index] = std::move(result);
  }
  co_return out;
}

}  // namespace tetrad::replication
