// SPDX-License-Identifier: Apache-2.0
// A page of a table's change feed: `SELECT ... WHERE <change feed marker> > start` (change_feed.h).
// The rows that have changed since a time, each as it is now, and a position from which the next
// page goes on. The feed never ends; a page without rows still has a position.
//
// 1. begin(): the start time and the position of the page before (execute/feed_position.h).
// 2. follow(): up to kChangesAtOnce entries from the change logs of the tablets, from the position
//    on. Entries name rows; they have no values.
// 3. group(), read_rows(): the rows that the entries name, read by partition at QUORUM or higher.
// 4. deliver(): each row in the order of the entries. A row that is gone is not shown: the feed has
//    no deletions.
// 5. When the logs do not reach back to the position (must_scan), scan() reads the table itself
//    once, in ring order, and shows rows written since the start; then the logs go on from where
//    they stood before the scan.
// 6. end_page(): the position is encoded with what the page has delivered, so a client that repeats
//    a page gets it again: at least once, never lost.
//
// A page ends when it is full (rows, or kPageBytes), when the logs are read to their end, or at
// half of its time. One without news is held back and looks once more: an empty page means that
// nothing had been written when it was asked for.
#include "cql/execute/change_feed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "cql/execute/feed_position.h"
#include "cql/execute/select_run.h"
#include "cql/execute/throughput.h"
#include "replication/repair/purge_horizon.h"

namespace tetrad::cql {

namespace {

using replication::Change;

constexpr int64_t kUsualPageSize = 5000;  // of drivers; for whoever names none
/// How many changes are looked at together, and of how many partitions the rows are read at once.
constexpr uint32_t kChangesAtOnce = 1000;
constexpr size_t kPartitionsAtOnce = 100;
/// What the rows of these may take, and after which a page is full whatever its size is: there is
/// always another one.
constexpr uint64_t kPageBytes = 4u << 20;
/// How long an answer is kept back when nothing has changed: drivers that fetch page after page
/// would ask again at once. Longer than a log keeps its newest entries (ChangeLogOptions::settle_us
/// and a fifth of it), so a second look then sees all that was written before the request came.
constexpr int64_t kHoldUs = 130'000;

/// ONE may ask a replica that lacks the write, and the feed has gone on.
// An entry of a log means that some member has the write; a quorum read then has it as well, since
// writes need a quorum.
ConsistencyLevel at_least_quorum(ConsistencyLevel level) {
  switch (level) {
    case ConsistencyLevel::kOne:
    case ConsistencyLevel::kTwo:
    case ConsistencyLevel::kLocalOne:
      return ConsistencyLevel::kQuorum;
    default:
      return level;
  }
}

/// Far from the ends, so that sums with it are numbers.
// Clients send any 64-bit number. Half of the range is left for additions of slack and offsets.
int64_t microseconds_of(int64_t unix_ms) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / 2000;
  return std::clamp(unix_ms, -kMax, kMax) * 1000;
}

/// Whether something that is live in it has been written since then. Timestamps are of the clocks
/// of nodes and clients.
Result<bool> is_news(BytesView encoded, int64_t since_us, int64_t now_s) {
  storage::RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(encoded));
  int64_t newest = storage::kNoTimestamp;
  if (reader.liveness().live_at(now_s)) newest = reader.liveness().timestamp_us;
  storage::Cell cell;
  while (reader.next(cell)) {
    if (cell.live_at(now_s)) newest = std::max(newest, cell.timestamp_us);
  }
  TETRAD_TRY_VOID(reader.status());
  // Deletions do not count: a row that is live shows what lives. The slack admits a little too much
  // rather than too little, since clocks differ.
  return newest >= since_us - replication::HorizonSlack().clock_skew_us;
}

}  // namespace

class ChangeFeedRun final : private SelectRun {
 public:
  using SelectRun::SelectRun;

  Task<Result<StatementResult>> run();

 private:
  using RowData = storage::RowData;

  /// The rows of one logical partition that changes name.
  struct PartitionRows {
    ReadCommand command;
    bool is_read = false;
    std::vector<ReadResult> chunks;

    const PartitionData* partition() const;
    /// Null: it is gone. Chunks and rows ascend.
    const RowData* find(BytesView clustering_key) const;
  };
  struct Changed {
    std::vector<Change> changes;
    std::vector<PartitionRows> partitions;
    std::vector<size_t> partition_of;  // by change

    size_t rows_read() const;
  };

  Result<void> begin();
  Result<int64_t> start_time_us();
  const Expression& start_time() const { return *statement_.where_.change_feed(); }

  /// Steps 2 to 5, until the page ends.
  Task<Result<void>> fill_page(base::MonotonicUs until_us);
  /// Goes on in the logs.
  Task<Result<void>> follow();
  Changed group(std::vector<Change> changes) const;
  /// False: it is more than a page may hold, some of it was read.
  Task<Result<bool>> read_rows(Changed* changed);
  /// Learns of read `chunk`; false when it is to be read once more, with more room.
  bool keep(PartitionRows& rows, ReadResult chunk);
  Task<Result<void>> deliver(const Changed* changed);

  /// Goes on in the table.
  Task<Result<void>> scan();
  ReadCommand scan_command() const;
  Task<Result<void>> take_scanned(const ReadResult* chunk);

  /// The row that `evaluation` stands on.
  Result<void> put(const RowPlace& place, Evaluation& evaluation);
  bool turn_is_over() const { return context_.work.turn_is_over(); }
  Task<Result<void>> end_turn();

  Task<void> hold_back() const;
  StatementResult end_page();

  FeedPosition at_;
  bool ends_ = false;    // the page
  bool is_news_ = true;  // there was something to look at
  /// A request without pages gets an end: it has all that there is so far.
  bool is_paged_ = true, is_up_to_date_ = false;
  bool scanned_ = false;  // for this page
  uint32_t changes_max_ = kChangesAtOnce;
  uint64_t partitions_read_ = 0;
};

// The position is taken out of the options before bind(): SelectRun would decode it as the position
// of an ordinary page.
Result<void> ChangeFeedRun::begin() {
  const std::optional<Bytes> position =
      std::exchange(context_.options.paging_position, std::nullopt);
  TETRAD_TRY_VOID(bind());
  TETRAD_TRY(at_.since_us, start_time_us());
  if (position) {
    TETRAD_TRY(at_, decode_feed_position(*position));
  }
  after_ = at_.scanned;
  is_paged_ = page_size_ >= 0;
  if (!is_paged_) page_size_ = kUsualPageSize;
  page_left_ = page_size_;
  if (after_) range_start_ = after_->position;
  context_.options.consistency = at_least_quorum(context_.options.consistency);
  return {};
}

Result<int64_t> ChangeFeedRun::start_time_us() {
  TETRAD_TRY(const BoundValue value, start_time().evaluate(evaluation_));
  if (value.is_unset()) {
    return fail(ErrorCode::kInvalid, "Invalid unset value for column {}", kChangeFeedMarker);
  }
  const auto unix_ms = value.has_bytes() ? read_bigint(value.bytes) : std::nullopt;
  if (!unix_ms) {
    return fail(ErrorCode::kInvalid, "Invalid null value in condition for column {}",
                kChangeFeedMarker);
  }
  return microseconds_of(*unix_ms);
}

Task<Result<StatementResult>> ChangeFeedRun::run() {
  TETRAD_CO_TRY_VOID(begin());
  TETRAD_CO_TRY(const int64_t timeout_us, set_deadline());
  if (is_limited(context_, statement_.table_->incarnation)) {
    auto admitted = co_await admit();
    if (!admitted && !is_paged_) co_return std::unexpected(std::move(admitted).error());
    // As in Azure Cosmos DB: an empty page, not an error.
    if (!admitted) {
      admitted_weight_ = 0;
      co_await hold_back();
      co_return end_page();
    }
  }
  // The other half is for the reads of the last turn and the way of the answer.
  const base::MonotonicUs half_us = deadline_.at_us - timeout_us / 2;
  auto filled = co_await fill_page(half_us);
  if (!filled) co_return std::unexpected(std::move(filled).error());
  if (is_paged_ && !is_news_ && result_.row_count == 0) {
    co_await hold_back();
    if (context_.reactor.now_us() < half_us) {
      ends_ = false;
      auto again = co_await fill_page(half_us);
      if (!again) co_return std::unexpected(std::move(again).error());
    }
  }
  remember_sizes();
  co_return end_page();
}

Task<Result<void>> ChangeFeedRun::fill_page(base::MonotonicUs until_us) {
  while (!ends_) {
    if (at_.scans) {
      auto went_on = co_await scan();
      if (!went_on) co_return std::unexpected(std::move(went_on).error());
    } else {
      auto went_on = co_await follow();
      if (!went_on) co_return std::unexpected(std::move(went_on).error());
    }
    // A page that has come some way ends well before its time: the next one goes on from there,
    // where an error would begin again.
    ends_ = ends_ || page_left_ == 0 || result_.cells.size() >= kPageBytes ||
            context_.reactor.now_us() >= until_us;
  }
  co_return Result<void>();
}

// One turn of steps 2 to 4. Unless everything was delivered, at_.after stays, and the next call
// asks for the same entries again.
Task<Result<void>> ChangeFeedRun::follow() {
  replication::ChangesCommand command;
  command.incarnation = statement_.table_->incarnation;
  command.after = at_.after;
  command.since_us = at_.since_us;
  if (!partitions_.is_range) {
    const PartitionTarget& target = partitions_.partitions.front();
    command.partition = {target.position, target.key};
  }
  command.changes_max = static_cast<uint32_t>(std::min<int64_t>(page_left_, changes_max_));
  const uint32_t changes_max = command.changes_max;
  auto page = co_await context_.coordinator.changes(std::move(command), read_options());
  if (!page) co_return std::unexpected(std::move(page).error());
  // The answer comes from other nodes, so its size is checked, not asserted.
  if (page->changes.size() > changes_max) {
    co_return fail(ErrorCode::kServerError, "{} changes where {} were asked for",
                   page->changes.size(), changes_max);
  }
  if (page->must_scan) {
    at_.after = std::move(page->next);
    at_.scans = true;
    at_.scanned.reset();
    after_.reset();
    range_start_ = partitions_.range.start;
    // A page with rows ends here: the scan has positions of its own, and one page has one.
    ends_ = result_.row_count != 0;
    co_return Result<void>();
  }
  Changed changed = group(std::move(page->changes));
  auto fits = co_await read_rows(&changed);
  kept_bytes_ = 0;
  if (!fits) co_return std::unexpected(std::move(fits).error());
  if (!*fits) {  // large rows: somewhat fewer at once than were read
    // At least one entry, at most half: one always fits (see read_rows), so this ends.
    const size_t fewer =
        std::clamp<size_t>(changed.rows_read() * 3 / 4, 1, changed.changes.size() / 2);
    changes_max_ = static_cast<uint32_t>(fewer);
    co_return Result<void>();
  }
  partitions_read_ += changed.partitions.size();
  auto delivered = co_await deliver(&changed);
  if (!delivered) co_return std::unexpected(std::move(delivered).error());
  at_.after = std::move(page->next);
  is_news_ = is_news_ && !page->exhausted;
  ends_ = is_up_to_date_ = page->exhausted;
  co_return Result<void>();
}

// Several entries of one partition become one read command with all of their rows; `partition_of`
// remembers which entry belongs to which.
ChangeFeedRun::Changed ChangeFeedRun::group(std::vector<Change> changes) const {
  Changed changed;
  changed.changes = std::move(changes);
  std::map<BytesView, size_t> known;
  const bool has_clustering = !statement_.table_->clustering().empty();
  for (const Change& change : changed.changes) {
    const auto [found, is_new] = known.try_emplace(change.partition_key, changed.partitions.size());
    if (is_new) {
      PartitionRows& rows = changed.partitions.emplace_back();
      rows.command = partition_command({change.position, change.partition_key});
      rows.command.row_limit = ReadCommand::kNoLimit;
    }
    changed.partition_of.push_back(found->second);
    if (change.clustering_key && has_clustering) {
      changed.partitions[found->second].command.rows.push_back(*change.clustering_key);
    }
  }
  for (PartitionRows& rows : changed.partitions) {
    ReadCommand& command = rows.command;
    std::ranges::sort(command.rows);
    // A row that has changed twice is read once and shown for each entry.
    const auto twice = std::ranges::unique(command.rows);
    command.rows.erase(twice.begin(), twice.end());
    if (command.rows.empty()) {  // its static columns, or its only row
      command.distinct_partitions = true;
      command.per_partition_limit = 1;
    }
  }
  return changed;
}

Task<Result<bool>> ChangeFeedRun::read_rows(Changed* changed) {
  std::vector<PartitionRows*> wanted;
  for (PartitionRows& rows : changed->partitions) wanted.push_back(&rows);
  while (!wanted.empty()) {
    set_chunk_size();
    const size_t room_for = std::max<uint64_t>(kPageBytes / chunk_max_, 1);
    const size_t count = std::min({kPartitionsAtOnce, room_for, wanted.size()});
    std::vector<ReadCommand> commands;
    for (size_t i = 0; i < count; ++i) commands.push_back(wanted[i]->command);
    auto chunks = co_await read_many(std::move(commands));
    if (!chunks) co_return std::unexpected(std::move(chunks).error());
    for (size_t i = 0; i < count; ++i) {
      if (!keep(*wanted[i], std::move((*chunks)[i]))) break;
    }
    std::erase_if(wanted, [](const PartitionRows* rows) { return rows->is_read; });
    if (kept_bytes_ > kPageBytes && changed->changes.size() > 1) co_return false;
    // Each round reads at least one partition further, or asks for more room; the clock bounds
    // both.
    TETRAD_CO_TRY_VOID(check_time());
  }
  co_return true;
}

bool ChangeFeedRun::keep(PartitionRows& rows, ReadResult chunk) {
  if (learn_from(chunk)) return false;
  kept_bytes_ += chunk.arena.allocated_bytes();
  // A merge may stop before the first live row.
  const bool has_only_row = rows.command.distinct_partitions && !chunk.partitions.empty();
  rows.is_read = chunk.exhausted || has_only_row;
  if (!rows.is_read) rows.command.resume_after = chunk.complete_up_to;
  rows.chunks.push_back(std::move(chunk));
  return true;
}

const storage::PartitionData* ChangeFeedRun::PartitionRows::partition() const {
  for (const ReadResult& chunk : chunks) {
    if (!chunk.partitions.empty()) return &chunk.partitions.front();
  }
  return nullptr;
}

// The first chunk whose rows reach the key or pass it has the answer.
const storage::RowData* ChangeFeedRun::PartitionRows::find(BytesView clustering_key) const {
  for (const ReadResult& chunk : chunks) {
    if (chunk.partitions.empty()) continue;
    const auto& rows = chunk.partitions.front().rows;
    const auto at = std::ranges::lower_bound(rows, clustering_key, {}, &RowData::clustering_key);
    if (at != rows.end()) return at->clustering_key == clustering_key ? &*at : nullptr;
  }
  return nullptr;
}

size_t ChangeFeedRun::Changed::rows_read() const {
  size_t count = 0;
  for (const PartitionRows& rows : partitions) {
    for (const ReadResult& chunk : rows.chunks) {
      for (const PartitionData& partition : chunk.partitions) count += partition.rows.size();
    }
  }
  return count;
}

// Runs on the shard's thread and gives up its turn when the meter says so. `changed` outlives the
// task.
Task<Result<void>> ChangeFeedRun::deliver(const Changed* changed) {
  Evaluation evaluation(*this);
  RowMaterializer& rows = evaluation.rows;
  const PartitionData* started = nullptr;
  context_.work.begin_turn();
  for (size_t i = 0; i < changed->changes.size(); ++i) {
    const Change& change = changed->changes[i];
    const PartitionRows& read = changed->partitions[changed->partition_of[i]];
    const PartitionData* partition = read.partition();
    const RowData* row = change.clustering_key ? read.find(*change.clustering_key) : nullptr;
    // Deleted, or expired, since it was logged.
    if (partition == nullptr || (change.clustering_key && row == nullptr)) continue;
    if (partition != started) {
      started = partition;
      TETRAD_CO_TRY_VOID(rows.start_partition(*partition));
    }
    if (row != nullptr) {
      TETRAD_CO_TRY(const bool live, rows.read_row(*row));
      if (!live) continue;
    } else {
      if (!rows.has_live_static()) continue;
      rows.clear_row();
    }
    RowPlace place{change.position, change.partition_key, nullptr, rows.static_bytes()};
    if (row != nullptr) {
      place.clustering_key = &row->clustering_key;
      place.bytes = rows.row_bytes();
    }
    TETRAD_CO_TRY_VOID(put(place, evaluation));
    if (!turn_is_over()) continue;
    auto turn = co_await end_turn();
    if (!turn) co_return std::unexpected(std::move(turn).error());
  }
  co_return Result<void>();
}

// One chunk of the table. at_.scanned is the place of the last row that was looked at, so a page
// that is full ends behind a row it has shown and not at the end of a chunk.
Task<Result<void>> ChangeFeedRun::scan() {
  auto chunk = co_await read_one(scan_command());
  if (!chunk) co_return std::unexpected(std::move(chunk).error());
  if (learn_from(*chunk)) co_return Result<void>();
  partitions_read_ += scanned_ ? 0 : 1;
  scanned_ = true;
  auto taken = co_await take_scanned(&*chunk);
  if (!taken) co_return std::unexpected(std::move(taken).error());
  if (page_left_ == 0) co_return Result<void>();
  if (chunk->exhausted) {
    exhausted_ = true;
    at_.scans = false;
    at_.scanned.reset();
    // The scan is over. Its page ends, so that the next one goes on in the logs from at_.after.
    ends_ = true;
  } else {
    // A partition that has not come to a live row yet is not in the chunk.
    const BytesView last = chunk->complete_up_to.partition_key;
    // Whether the static columns of the partition in which the chunk ends were looked at: they come
    // before its rows and must not show again.
    at_.knows_static =
        (at_.knows_static && after_ && after_->partition_key == last) ||
        (!chunk->partitions.empty() && chunk->partitions.back().partition_key == last);
    at_.scanned = after_ = chunk->complete_up_to;
    last_position_ = after_->position;
  }
  co_return Result<void>();
}

storage::ReadCommand ChangeFeedRun::scan_command() const {
  ReadCommand command =
      partitions_.is_range ? range_command() : partition_command(partitions_.partitions.front());
  command.resume_after = after_;
  command.partition_rows_done =
      after_ && after_->clustering_key && at_.knows_static ? 1 : 0;  // that of static columns
  // Where the first rows were too old the next ones are likely to be.
  command.row_limit =
      static_cast<uint32_t>(scanned_ ? std::max<int64_t>(page_left_, kUsualPageSize) : page_left_);
  return command;
}

Task<Result<void>> ChangeFeedRun::take_scanned(const ReadResult* chunk) {
  Evaluation evaluation(*this);
  RowMaterializer& rows = evaluation.rows;
  context_.work.begin_turn();
  for (const PartitionData& partition : chunk->partitions) {
    TETRAD_CO_TRY_VOID(rows.start_partition(partition));
    const auto end_at = [&](BytesView clustering_key) {
      at_.scanned = {partition.position, Bytes(partition.partition_key), Bytes(clustering_key)};
      at_.knows_static = true;
    };
    const bool is_new =
        !after_ || after_->partition_key != partition.partition_key || !at_.knows_static;
    if (is_new) weight_read_ += storage::row_weight(rows.static_bytes());
    if (is_new && rows.has_live_static()) {
      TETRAD_CO_TRY(const bool changed, is_news(partition.header, at_.since_us, context_.now_s));
      if (changed) {
        rows.clear_row();
        TETRAD_CO_TRY_VOID(
            put({partition.position, partition.partition_key, nullptr, 0}, evaluation));
        if (page_left_ == 0) {
          end_at("");  // before its rows: no clustering key is empty
          co_return Result<void>();
        }
      }
    }
    for (const RowData& row : partition.rows) {
      TETRAD_CO_TRY(const bool changed, is_news(row.record, at_.since_us, context_.now_s));
      if (!changed) continue;
      TETRAD_CO_TRY(const bool live, rows.read_row(row));
      if (!live) continue;
      TETRAD_CO_TRY_VOID(
          put({partition.position, partition.partition_key, &row.clustering_key, rows.row_bytes()},
              evaluation));
      if (page_left_ == 0) {
        end_at(row.clustering_key);
        co_return Result<void>();
      }
      if (!turn_is_over()) continue;
      auto turn = co_await end_turn();
      if (!turn) co_return std::unexpected(std::move(turn).error());
    }
  }
  co_return Result<void>();
}

// No filters and no groups: preparing refuses them in a feed.
Result<void> ChangeFeedRun::put(const RowPlace& place, Evaluation& evaluation) {
  note_row(place);
  TETRAD_TRY_VOID(context_.work.spend(read_ns(place.bytes)));
  if (is_masked_) {
    TETRAD_TRY(EvalContext shown, masked(evaluation.context));
    TETRAD_TRY_VOID(write(shown));
  } else {
    TETRAD_TRY_VOID(write(evaluation.context));
  }
  evaluation.end_row();
  --page_left_;
  return check_size(result_.cells.size());
}

Task<Result<void>> ChangeFeedRun::end_turn() {
  co_await next_turn(context_.reactor);
  context_.work.begin_turn();
  co_return check_time();
}

// Sleeps without holding anything but this request; the deadline bounds it.
Task<void> ChangeFeedRun::hold_back() const {
  base::OneShot<bool> over;
  context_.reactor.call_at(std::min(context_.reactor.now_us() + kHoldUs, deadline_.at_us),
                           [setter = over.setter()] { setter.set(true); });
  co_await over;
}

// A request without pages that has read to the end gets no position, so drivers see the last page.
StatementResult ChangeFeedRun::end_page() {
  result_.metadata = statement_.result_metadata_;
  if (is_paged_ || !is_up_to_date_) result_.next_position = encode_feed_position(at_);
  ReadWork work;
  work.weight = weight_read_;
  work.partitions = std::max<uint64_t>(partitions_read_, 1);
  if (scanned_) work.further_partitions = further_partitions(1);
  context_.charge.add_read(work, context_.options.consistency);
  if (!scanned_) exhausted_ = true;  // the logs of all tablets were read
  settle(context_.charge.weight(), 1);
  hide_position();
  return std::move(result_);
}

Task<Result<StatementResult>> read_change_feed(const SelectStatement& statement,
                                               ExecuteContext& context,
                                               std::span<const BoundValue> values) {
  ChangeFeedRun run(statement, context, values);
  auto page = co_await run.run();
  co_return page;
}

}  // namespace tetrad::cql
