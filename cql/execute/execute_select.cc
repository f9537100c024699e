// SPDX-License-Identifier: Apache-2.0
// SELECT: reads a chunk at a time until the page is full or nothing is left. Filters, groups and
// aggregates work on the merged rows, so what is held is one chunk, one group and the page.
//
// How a page is made (SelectRun::run):
//
// 1. bind() evaluates the values against the statement: partitions, clustering bounds, LIMIT, page
//    size, filters (bind_select.cc). Large values are bound on a worker thread (bind_off_loop).
// 2. set_deadline() fixes the absolute deadline and the limit of the work. Both come before the
//    first read, so that no read is without an end.
// 3. Where the table has a throughput limit, admit() waits for tokens for what the read will cost
//    at least.
// 4. count(*) and aggregates that replicas can fold are answered by count_in_place(), without rows
//    (select_in_place.cc).
// 5. Otherwise chunks are read (select_chunks.cc) and taken in turn: a range by one command at a
//    time (read_one), a list of partitions one by one or up to kPartitionsAtOnce together
//    (run_partitions), ANN searches by the names that replicas give (nearest_rows.cc).
// 6. Each live row goes through take_row (select_rows.cc): filters, then the search for near vectors
//    or the masks, then groups, ORDER BY or the page.
// 7. The run ends when the page or the LIMIT is full (done_) or nothing is left (exhausted_). Open
//    groups are ended, rows of ORDER BY are sorted, and finish() encodes the position of the next
//    page.
//
// The loop of step 5 can run a chunk twice: a replica withholds a chunk that is larger than the
// room taken for it, and the read is made again with more room (learn_from).
#include <algorithm>
#include <utility>

#include "cql/execute/access.h"
#include "cql/execute/change_feed.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/select_run.h"
#include "cql/execute/throughput.h"

namespace tetrad::cql {

namespace {

using storage::ReadCommand;
using storage::ReadEnd;
using storage::ReadResult;

// Of an IN on the partition key: the reads that are under way together. It also bounds what is read
// in place before the loop gets its turn.
constexpr size_t kPartitionsAtOnce = 32;
/// Of ORDER BY over several partitions.
constexpr size_t kSortedOnLoopMax = 4096;
/// What is read without asking for room.
constexpr size_t kAnsweredHereBytes = 256u << 10;

}  // namespace

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

// Between chunks and turns only. Replicas get the same absolute deadline with each read and answer
// by it themselves.
Result<void> SelectRun::check_time() const {
  if (context_.reactor.now_us() <= deadline_.at_us) return {};
  base::TimeoutDetail detail{context_.options.consistency, 0, 1};
  return std::unexpected(
      Error(ErrorCode::kReadTimeout, "Operation timed out - the query took too long.", detail));
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
// (dropped and made again), version (altered), incarnation (truncated) or with user types that were
// altered is another table.
bool SelectStatement::is_current(const SchemaSnapshot& schema) const {
  const TablePtr now = schema.table(table_->keyspace, table_->name);
  return now && now->is_as(*table_) && used_functions_.are_current(schema) &&
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
