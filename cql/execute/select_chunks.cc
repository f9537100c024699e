// SPDX-License-Identifier: Apache-2.0
// The reads of a SELECT: what is asked of the coordinator, and how much room its answer gets.
//
// A chunk is the answer to one read: of a range, or of one partition. It ends at kChunkRows, at the
// bytes that the command allows, or when nothing is left; the next read goes on behind it. Answers
// wait in memory until their rows are taken, so each read first takes room for the largest answer
// that it allows (prepare/answer_budget.h). The sizes:
//
//   chunk_limit_   where a replica ends the chunk: after the first row that reaches it
//   chunk_max_     what it may send, last row included; a larger chunk is withheld, and read again
//                  with room for it (learn_from)
//
// Both start from what the same statement answered before, or any first run on this shard, and grow
// while the rows do not fit.
#include <algorithm>
#include <utility>

#include "cql/execute/select_run.h"
#include "cql/system/virtual_tables.h"
#include "replication/repair/purge_horizon.h"

namespace tetrad::cql {

namespace {

using storage::ReadCommand;
using storage::ReadResult;

// The largest number of rows of one read. It is the default page size of Cassandra's drivers, so
// that a usual page needs one read.
constexpr uint32_t kChunkRows = 5000;
/// What is asked for at least where there are tests beside an index; grows from chunk to chunk.
constexpr int64_t kIndexRowsFirst = 32, kIndexRowsGrowth = 8;
// The bytes at which a replica ends a chunk, and the most that several reads at once may ask for
// together (reads_at_once).
constexpr uint64_t kChunkBytes = 4u << 20;
constexpr uint64_t kLastRowBytes = 64u << 10;  // by which a chunk may pass its limit, mostly
// A statement of small answers begins with a small chunk. While its rows do not fit, each chunk may
// be this many times larger than the one before, so a large answer needs few round trips.
constexpr uint64_t kChunkGrowth = 16;
constexpr const char* kClientGone = "the client has gone";  // nobody reads it

}  // namespace

// Rows that are dropped here (by filters or groups) or compared here (nearest vectors) cannot be
// counted before they are read, so those statements ask for whole chunks.
uint32_t SelectRun::rows_wanted() const {
  if (query_) return kChunkRows;
  if (statement_.is_aggregate_ || (filters_active_ && !index_bounds_)) return kChunkRows;
  int64_t wanted = kChunkRows;
  if (page_left_ >= 0) wanted = page_left_ + 1;  // one more tells whether there is another page
  if (rows_left_ >= 0) wanted = std::min(wanted, rows_left_);
  // Most of what an index names passes; where not, or while it is not heeded, more is asked for.
  if (filters_active_) wanted = std::min<int64_t>(std::max(wanted, index_rows_), kChunkRows);
  return static_cast<uint32_t>(std::clamp<int64_t>(wanted, 1, UINT32_MAX - 1));
}

// Grows the chunk of an index read, whose entries may name rows that other tests refuse: 32 rows,
// then 8 times as many, up to kChunkRows.
void SelectRun::ask_for_more() {
  index_rows_ = index_rows_ == 0 ? kIndexRowsFirst
                                 : std::min<int64_t>(kIndexRowsGrowth * index_rows_, kChunkRows);
}

// What all reads of the run have in common. `incarnation` and `schema_version` name the table as
// this statement was prepared; a replica with another version answers with an error instead of rows
// of another shape.
ReadCommand SelectRun::base_command() const {
  ReadCommand command;
  command.incarnation = statement_.table_->incarnation;
  command.schema_version = statement_.table_->version;
  command.reversed = statement_.reversed_;
  command.wants_static = statement_.wants_static_;
  command.row_limit = rows_wanted();
  command.bytes_limit = kChunkBytes;
  command.now_s = context_.now_s;
  command.by_index = index_bounds_;
  // Either whole keys (= and IN on all clustering columns) or ranges; a command never has both.
  if (clustering_.exact) {
    command.rows = clustering_.rows;
  } else {
    command.clustering_ranges = clustering_.ranges;
  }
  // Limits that the store may apply itself. It may do so only when each row that is live to it is
  // live here (store_counts) and each one is shown: a filter or a group must see all rows.
  if (!store_counts()) {
    // every row is looked at here
  } else if (statement_.distinct_) {
    command.distinct_partitions = true;
    command.per_partition_limit = 1;
  } else if (partition_limit_ >= 0 && !filters_active_ && !statement_.is_aggregate_) {
    command.per_partition_limit = static_cast<uint32_t>(partition_limit_);
  }
  return command;
}

ReadCommand SelectRun::range_command() const {
  ReadCommand command = base_command();
  command.is_range = true;
  command.range = partitions_.range;
  set_resume(command);
  return command;
}

ReadCommand SelectRun::partition_command(const PartitionTarget& target) const {
  ReadCommand command = base_command();
  command.position = target.position;
  command.partition_key = target.key;
  return command;
}

// A read that goes on inside a partition tells the store how many rows of it were given, since the
// store counts PER PARTITION LIMIT from its first row, and shows static columns as a row only where
// no other row came.
void SelectRun::set_resume(ReadCommand& command) const {
  if (!after_) return;
  command.resume_after = after_;
  if (command.per_partition_limit != ReadCommand::kNoLimit) {
    // A chunk may end in a partition of which nothing was sure yet: the rows are another one's.
    command.partition_rows_done =
        current_partition_ == after_->partition_key ? partition_rows_done_ : 0;
  } else if (after_->clustering_key && partition_with_rows_ == after_->partition_key) {
    command.partition_rows_done = 1;  // its static columns are no row of their own
  }
}

Task<Result<ReadResult>> SelectRun::read_one(ReadCommand command) {
  if (statement_.table_->is_virtual) {
    // Tables of system_* keyspaces are computed on this node, in this shard. They take no room of
    // the answer budget: they are small and made at once.
    auto prepared = co_await context_.virtual_tables.prepare_read(
        *statement_.table_, command, context_.reactor, context_.coordinator);
    if (!prepared) co_return std::unexpected(std::move(prepared).error());
    co_return context_.virtual_tables.read(*statement_.table_, command, *context_.schema);
  }
  // Room comes before the read: when the answer arrives it is in memory whether there is room or
  // not.
  auto room = co_await take_room(1);
  if (!room) co_return std::unexpected(std::move(room).error());
  limit(command);
  auto result = co_await context_.coordinator.read(std::move(command), read_options());
  // Until its rows are taken it is there.
  room_.settle(bytes_held() + (result ? result->arena.allocated_bytes() : 0));
  co_return result;
}

Task<Result<std::vector<ReadResult>>> SelectRun::read_many(std::vector<ReadCommand> commands) {
  auto room = co_await take_room(commands.size());
  if (!room) co_return std::unexpected(std::move(room).error());
  for (ReadCommand& command : commands) limit(command);
  auto results = co_await context_.coordinator.read_many(std::move(commands), read_options());
  uint64_t bytes = bytes_held();
  if (results) {
    for (const ReadResult& result : *results) bytes += result.arena.allocated_bytes();
  }
  room_.settle(bytes);
  co_return results;
}

// A slow client is in no hurry: an answer must not meet its deadline behind others of the same
// client. Where nothing has been read yet it is as if the request had come only now.
Task<Result<void>> SelectRun::await_turn() {
  const bool is_there = co_await room_.await_turn(context_.request_bytes);
  if (!is_there) co_return fail(ErrorCode::kUnavailable, kClientGone);
  // Somebody may have lost a right meanwhile: the request begins again, with all its checks.
  if (context_.client.must_log_in &&
      context_.meta.snapshot()->schema_version != context_.schema->version())
    co_return fail(ErrorCode::kStaleSchema, "roles or tables have changed meanwhile");
  TETRAD_CO_TRY_VOID(set_deadline());
  if (has_read_) {
    // All rows are seen as of one time, and what is purged relies on no request going on for longer.
    deadline_.at_us =
        std::min(deadline_.at_us, began_us_ + replication::HorizonSlack().longest_deadline_us);
    co_return check_time();
  }
  began_us_ = context_.reactor.now_us();
  if (!context_.options.now_in_seconds)
    evaluation_.now_s = context_.now_s = context_.coordinator.now_us() / 1'000'000;
  co_return Result<void>();
}

// First for its turn among the client's large answers, then in the order of arrival until the budget
// of the shard has room for `reads` chunks of chunk_max_ bytes, at most until the deadline. The
// client gets OVERLOADED when it does not.
Task<Result<void>> SelectRun::take_room(size_t reads) {
  set_chunk_size();
  const uint64_t more = reads * chunk_max_;
  if (context_.client.answers.has_gone) co_return fail(ErrorCode::kUnavailable, kClientGone);
  if (!room_.may_begin(bytes_held() + more)) {
    room_.settle(bytes_held());
    auto begun = co_await await_turn();
    if (!begun) co_return begun;
  }
  if (room_.promise(bytes_held(), more)) co_return Result<void>();
  const bool granted = co_await room_.wait(more, deadline_);
  if (granted) co_return Result<void>();
  co_return fail(ErrorCode::kOverloaded,
                 "Too many bytes of answers wait for slow clients of this node; try again");
}

// chunk_limit_ is where a replica ends the chunk, chunk_max_ what it may be at most with its last
// row. They start from what the statement answered before, with a quarter more, so that a repeated
// statement needs one read and takes little room.
void SelectRun::set_chunk_size() {
  if (chunk_limit_ != 0) return;
  const AnswerEstimate& usual = statement_.usual_bytes_;
  const uint64_t bytes = usual.is_known() ? usual.bytes() : context_.answers.unknown_bytes();
  const uint64_t expected = bytes + bytes / 4 + 512;
  chunk_limit_ = std::min(expected, kChunkBytes);
  chunk_max_ = std::max(expected, chunk_limit_ + std::min(chunk_limit_, kLastRowBytes));
}

size_t SelectRun::reads_at_once(size_t most) {
  set_chunk_size();
  return std::clamp<size_t>(kChunkBytes / chunk_max_, 1, most);
}

// What was not known before there was room.
void SelectRun::limit(ReadCommand& command) const {
  command.now_s = context_.now_s;
  command.bytes_limit = chunk_limit_;
  command.bytes_max = chunk_max_;
}

// `withheld_bytes` is the size of the answer that a replica did not send since it was larger than
// chunk_max_. The next attempt asks for that size and an eighth more: the rows may have grown.
bool SelectRun::learn_from(const ReadResult& chunk) {
  const bool is_withheld = chunk.withheld_bytes != 0;
  const uint64_t bytes = is_withheld ? chunk.withheld_bytes : chunk.arena.allocated_bytes();
  largest_chunk_ = std::max(largest_chunk_, bytes);
  has_read_ = true;
  if (is_withheld) {
    chunk_max_ = bytes + bytes / 8 + 512;
    return true;
  }
  if (!chunk.exhausted) {
    const uint64_t last_row = chunk_max_ - chunk_limit_;
    chunk_limit_ = std::min(kChunkGrowth * chunk_limit_, kChunkBytes);
    chunk_max_ = chunk_limit_ + std::max(last_row, std::min(chunk_limit_, kLastRowBytes));
  }
  return false;
}

// The estimate belongs to the prepared statement and is read by its next run (set_chunk_size).
// Statements that are run for the first time share one estimate of the shard.
void SelectRun::remember_sizes() const {
  if (!has_read_) return;
  if (!statement_.usual_bytes_.is_known()) context_.answers.learn_unknown(largest_chunk_);
  statement_.usual_bytes_.learn(largest_chunk_);
}

}  // namespace tetrad::cql
