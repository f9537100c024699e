// SPDX-License-Identifier: Apache-2.0
// SELECT: reads a chunk at a time until the page is full or nothing is left, and turns rows into
// cells. Filters, groups and aggregates work on the merged rows, so what is held is one chunk, one
// group and the page.
//
// How a page is made (SelectRun::run):
//
// 1. bind() evaluates the values against the statement: partitions, clustering bounds, LIMIT, page
//    size, filters. Values that are large are bound on a worker thread (bind_off_loop).
// 2. set_deadline() fixes the absolute deadline and the limit of the work. Both come before the
//    first read, so that no read is without an end.
// 3. Where the table has a throughput limit, admit() waits for tokens for what the read will cost
//    at least.
// 4. count(*) and aggregates that replicas can fold are answered by count_in_place(), without rows.
// 5. Otherwise chunks are read and taken in turn: a range by one command at a time (read_one), a
//    list of partitions one by one or up to kPartitionsAtOnce together (run_partitions), ANN
//    searches by the names that replicas give (read_nearest).
// 6. Each live row goes through take_row: filters, then the search for near vectors or the masks,
//    then groups, ORDER BY or the page.
// 7. The run ends when the page or the LIMIT is full (done_) or nothing is left (exhausted_). Open
//    groups are ended, rows of ORDER BY are sorted, and finish() encodes the position of the next
//    page.
//
// The loop of step 5 can run a chunk twice: a replica withholds a chunk that is larger than the
// room taken for it, and the read is made again with more room (learn_from).
#include <algorithm>
#include <utility>

#include "cql/execute/access.h"
#include "cql/execute/aggregate_fold.h"
#include "cql/execute/change_feed.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/select_run.h"
#include "cql/execute/throughput.h"
#include "cql/prepare/column_masks.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/ordered_encoding.h"
#include "replication/consistency.h"

namespace tetrad::cql {

namespace {

using storage::PartitionData;
using storage::ReadCommand;
using storage::ReadEnd;
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
// Of an IN on the partition key: the reads that are under way together. It also bounds what is read
// in place before the loop gets its turn.
constexpr size_t kPartitionsAtOnce = 32;
/// Of ORDER BY over several partitions.
constexpr size_t kSortedOnLoopMax = 4096;
/// Then other requests come in, and the clock is looked at.
constexpr uint64_t kTurnOffLoopNs = 20'000'000;
/// What is read without asking for room.
constexpr size_t kAnsweredHereBytes = 256u << 10;

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

// USING TIMEOUT of the statement wins over the options range_request_timeout and
// read_request_timeout. The limit of the work is far above what can be done in that time
// (kWorkNsPerUs, since estimates err): it stops an evaluation on a worker thread, where nobody
// looks at the clock.
Result<int64_t> SelectRun::set_deadline() {
  const int64_t usual_us =
      partitions_.is_range ? context_.settings.range_timeout_us : context_.settings.read_timeout_us;
  TETRAD_TRY(const int64_t timeout_us,
             evaluate_timeout_us(statement_.timeout_, evaluation_, usual_us));
  deadline_.at_us = context_.reactor.now_us() + timeout_us;
  context_.work.set_limit(kWorkNsPerUs * static_cast<uint64_t>(timeout_us),
                          context_.options.consistency, false);
  return timeout_us;
}

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

Result<bool> SelectRun::bind_on_loop() {
  if (is_long_to_bind(context_, statement_, evaluation_.bound)) return false;
  TETRAD_TRY_VOID(bind());
  TETRAD_TRY_VOID(set_deadline());
  return true;
}

Task<Result<void>> SelectRun::bind_off_loop() {
  // The limit of the work comes first: the time that the user gives is bound, too.
  context_.work.set_limit(kWorkNsPerUs * static_cast<uint64_t>(context_.settings.range_timeout_us),
                          context_.options.consistency, false);
  // set_deadline() counts from now, but the client's time began before the work on the other
  // thread.
  const base::MonotonicUs began_us = context_.reactor.now_us();
  Result<void> bound;
  const std::function<void()> bind_all = [this, &bound] { bound = bind(); };
  co_await evaluate_off_loop(context_, functions_, bind_all);
  TETRAD_CO_TRY_VOID(std::move(bound));
  TETRAD_CO_TRY(const int64_t timeout_us, set_deadline());
  deadline_.at_us = began_us + timeout_us;
  co_return check_time();
}

Task<Result<StatementResult>> SelectRun::run() {
  TETRAD_CO_TRY(const bool is_bound, bind_on_loop());
  if (!is_bound) {
    auto bound = co_await bind_off_loop();
    TETRAD_CO_TRY_VOID(std::move(bound));
  }
  estimate_rows();
  // An empty IN, bounds that exclude each other, or a paging state with nothing left of LIMIT:
  // bind() has found that no row can match, so nothing is read.
  if (nothing_) co_return finish();
  if (is_limited(context_, statement_.table_->incarnation)) {
    auto admitted = co_await admit();
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  if (counts_in_place()) {
    auto counted = co_await count_in_place();
    if (!counted) co_return std::unexpected(std::move(counted).error());
    // False: the fold was given up, so the rows are read below and folded here.
    exhausted_ = done_ = *counted;
  }
  while (!done_) {
    if (asks_for_names()) {
      auto complete = co_await read_nearest();
      if (!complete) co_return std::unexpected(std::move(complete).error());
      exhausted_ = done_ = *complete;
    } else if (partitions_.is_range) {
      ask_for_more();
      auto chunk = co_await read_one(range_command());
      if (!chunk) co_return std::unexpected(std::move(chunk).error());
      if (learn_from(*chunk)) continue;
      auto taken = co_await take(&*chunk);
      if (!taken) co_return std::unexpected(std::move(taken).error());
      if (done_) break;
      if (chunk->exhausted) {
        exhausted_ = true;
        break;
      }
      // Not the last row of the chunk: a merge of several replicas' answers is complete only as far
      // as the shortest of them, and rows behind that place must be read again.
      after_ = chunk->complete_up_to;
    } else {
      if (next_partition_ == partitions_.partitions.size()) {
        exhausted_ = true;
        break;
      }
      auto more = co_await run_partitions();
      if (!more) co_return std::unexpected(std::move(more).error());
    }
    // A run of many chunks is bounded by time even where each read is quick.
    TETRAD_CO_TRY_VOID(check_time());
  }
  // Errors of a final function come here, before anything is remembered or sorted.
  if (statement_.is_aggregate_) TETRAD_CO_TRY_VOID(end_groups());
  remember_sizes();
  if (sorted_.size() > kSortedOnLoopMax) {
    const std::function<void()> sort = [this] { put_in_order(); };
    co_await evaluate_off_loop(context_, functions_, sort);
  }
  co_return finish();
}

// The estimate belongs to the prepared statement and is read by its next run (set_chunk_size).
// Statements that are run for the first time share one estimate of the shard.
void SelectRun::remember_sizes() const {
  if (!has_read_) return;
  if (!statement_.usual_bytes_.is_known()) context_.answers.learn_unknown(largest_chunk_);
  statement_.usual_bytes_.learn(largest_chunk_);
}

// Between chunks and turns only. Replicas get the same absolute deadline with each read and answer
// by it themselves.
Result<void> SelectRun::check_time() const {
  if (context_.reactor.now_us() <= deadline_.at_us) return {};
  base::TimeoutDetail detail{context_.options.consistency, 0, 1};
  return std::unexpected(
      Error(ErrorCode::kReadTimeout, "Operation timed out - the query took too long.", detail));
}

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

// Waits in the order of arrival until the budget of the shard has room for `reads` chunks of
// chunk_max_ bytes, at most until the deadline. The client gets OVERLOADED when it does not.
Task<Result<void>> SelectRun::take_room(size_t reads) {
  set_chunk_size();
  if (room_.promise(bytes_held(), reads * chunk_max_)) co_return Result<void>();
  const bool granted = co_await room_.wait(reads * chunk_max_, deadline_);
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

void SelectRun::limit(ReadCommand& command) const {
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

// Three ways, the cheapest that applies: one partition that is under way, or that must be read
// alone; partitions that the store of this shard gives at once (read_here); up to kPartitionsAtOnce
// reads together. All keep the order of the list, which is the order of the answer.
Task<Result<void>> SelectRun::run_partitions() {
  const auto& all = partitions_.partitions;
  if (after_ || all.size() - next_partition_ == 1 || statement_.table_->is_virtual ||
      reads_serially()) {
    ask_for_more();
    ReadCommand command = partition_command(all[next_partition_]);
    set_resume(command);
    if (const auto end = read_here(command)) {
      if (!*end) co_return std::unexpected(end->error());
      step_partition(**end);
      co_return Result<void>();
    }
    auto chunk = co_await read_one(std::move(command));
    if (!chunk) co_return std::unexpected(std::move(chunk).error());
    if (learn_from(*chunk)) co_return Result<void>();
    auto taken = co_await take(&*chunk);
    if (!taken) co_return std::unexpected(std::move(taken).error());
    step_partition(*chunk);
    co_return Result<void>();
  }
  // What the store has at hand needs no tasks, only a turn for others now and then.
  for (size_t i = 0; i < kPartitionsAtOnce && result_.cells.size() < kAnsweredHereBytes; ++i) {
    ReadCommand command = partition_command(all[next_partition_]);
    const auto end = read_here(command);
    if (!end) break;
    if (!*end) co_return std::unexpected(end->error());
    step_partition(**end);
    if (done_ || after_ || next_partition_ == all.size()) co_return Result<void>();
    if (i + 1 == kPartitionsAtOnce) {
      co_await next_turn(context_.reactor);
      co_return Result<void>();
    }
  }
  // reads_at_once() keeps the sum of all chunks below kChunkBytes, so an IN of many keys takes no
  // more room than one large read.
  const size_t count = std::min(reads_at_once(kPartitionsAtOnce), all.size() - next_partition_);
  std::vector<ReadCommand> commands;
  for (size_t i = 0; i < count; ++i)
    commands.push_back(partition_command(all[next_partition_ + i]));
  auto chunks = co_await read_many(std::move(commands));
  if (!chunks) co_return std::unexpected(std::move(chunks).error());
  for (ReadResult& chunk : *chunks) {
    // The chunks behind this one are dropped and read again: rows must come in the order of the
    // list.
    if (learn_from(chunk)) break;
    auto taken = co_await take(&chunk);
    if (!taken) co_return std::unexpected(std::move(taken).error());
    if (done_) break;
    step_partition(chunk);
    if (after_) break;  // this one has more: the rest is read again behind it
  }
  co_return Result<void>();
}

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
  result_.row_count = rows_before;
  result_.next_position.reset();
  return std::nullopt;
}

// Moves to the next partition of the list, or remembers where this one goes on. `done_` stops it:
// the position of the next page was encoded from the current place.
void SelectRun::step_partition(const ReadEnd& chunk) {
  if (done_) return;
  const bool limit_reached =
      !statement_.is_aggregate_ &&
      (statement_.distinct_ ? partition_rows_done_ > 0
                            : partition_limit_ >= 0 && partition_rows_done_ >= partition_limit_);
  if (chunk.exhausted || limit_reached) {
    ++next_partition_;
    after_.reset();
    partition_rows_done_ = 0;
  } else {
    after_ = chunk.complete_up_to;
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
  if (page_left_ > 0 && --page_left_ == 0) {
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
              "The result is larger than {} bytes: use paging or a smaller page", kResultBytesMax);
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

void SelectStatement::required_access(RequiredAccess& out) const {
  if (!is_readable_by_all(table_->keyspace, table_->name))
    // As in Cassandra: who may read the base table may read its views.
    out.add(
        Permission::kSelect,
        table_resource(table_->keyspace, table_->view ? table_->view->base_table : table_->name));
  // A difference from Cassandra (cql/README.md): hashes of passwords are shown to superusers only.
  if (table_->keyspace == "system_auth" &&
      std::ranges::any_of(layout_.slots,
                          [](const auto* column) { return column->name == "salted_hash"; }))
    out.superuser_only = "Only superusers are allowed to read salted_hash";
  used_functions_.add_required(out);
  if (!restricted_masks_.empty())
    out.restricted_masks.push_back({table_->keyspace, table_->name, restricted_masks_});
}

// False makes the processor prepare the text anew. A table of the same name with another id
// (dropped and made again), version (altered) or incarnation (truncated) is another table.
bool SelectStatement::is_current(const SchemaSnapshot& schema) const {
  const TablePtr now = schema.table(table_->keyspace, table_->name);
  return now && now->id == table_->id && now->version == table_->version &&
         now->incarnation == table_->incarnation && used_functions_.are_current(schema) &&
         mask_functions_.are_current(schema);
}

Task<Result<StatementResult>> SelectStatement::execute(ExecuteContext& context,
                                                       std::span<const BoundValue> values) const {
  if (where_.change_feed() != nullptr) {
    auto page = co_await read_change_feed(*this, context, values);
    co_return page;
  }
  SelectRun run(*this, context, values);
  auto result = co_await run.run();
  co_return result;
}

}  // namespace tetrad::cql
