// SPDX-License-Identifier: Apache-2.0
// The logs of changes of a shard's stores.
//
//   1. A log is opened when its table is first known: the marker says from where on it is complete,
//      the last entry where it goes on. Until then the store takes no rows of the table.
//   2. Each mutation gets numbers above all that were given, also before a power cut, and above the
//      time; the entries are one mutation of the log's own incarnation, which goes to the store
//      before the row does, so that both are in one write.
//   3. Readers get entries up to what is surely written (`settling`), so that no page passes over
//      one that is still on its way.
//   4. Slices that are older than the retention are erased whole; the marker rises first.
//
// Positions: a sequence is a time in microseconds that only rises; its upper bits (>> 30, about 18
// minutes) name the slice, which is the partition of the log that has the entry. The marker lies
// behind all slices. All on the thread of the shard.
#include "replication/changes/change_log.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "storage/row/row_record.h"

namespace tetrad::replication {
namespace {

// A slice is 2^30 us, about 18 minutes.
constexpr int kSliceBits = 30;
constexpr uint32_t kMarkerColumn = 1;
// Bounds of one read of a log.
constexpr uint32_t kSlicesAtOnce = 1000;
/// A page of a log is one piece of work of the I/O pool.
constexpr uint32_t kEntriesMax = 10'000;
constexpr uint64_t kPageBytesMax = 1 << 20;
constexpr int64_t kTryAgainUs = 1'000'000;

constexpr RingPosition kMarkerPosition{std::numeric_limits<int64_t>::max(), 0};
/// Of all entries.
constexpr RingPosition kLastPosition{std::numeric_limits<int64_t>::max() - 1,
                                     std::numeric_limits<uint64_t>::max()};

constexpr ChangeSequence slice_of(ChangeSequence sequence) { return sequence >> kSliceBits; }
constexpr ChangeSequence slice_start(ChangeSequence slice) { return slice << kSliceBits; }

constexpr RingPosition position_of(ChangeSequence sequence) {
  return {static_cast<int64_t>(slice_of(sequence)), 0};
}
constexpr RingPosition before_slice(ChangeSequence slice) {
  return {static_cast<int64_t>(slice) - 1, std::numeric_limits<uint64_t>::max()};
}

Bytes big_endian(uint64_t value) {
  Bytes out;
  base::ByteWriter(out).u64(value);
  return out;
}

storage::ReadCommand read_of(TableIncarnation log) {
  storage::ReadCommand command;
  command.incarnation = log;
  command.wants_static = false;
  command.bytes_limit = kPageBytesMax;
  return command;
}

storage::ReadCommand range_read_of(TableIncarnation log, ChangeSequence from_slice) {
  storage::ReadCommand command = read_of(log);
  command.is_range = true;
  command.range = {before_slice(from_slice), kLastPosition};
  return command;
}

/// Whether a record says more than that something was deleted whole: a row tombstone alone is no
/// change that readers are shown.
Result<bool> has_values(BytesView record) {
  storage::RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(record));
  return reader.liveness().present() || reader.cells_left() != 0;
}

uint64_t key_of(TableIncarnation log, uint32_t store) {
  return (uint64_t{log.value} << 32) | store;
}

}  // namespace

uint64_t layout_of(const TableInfo& table) {
  if (!TETRAD_MUTANT(merge_layout_sum)) return table.tablets.layout();
  uint64_t sum = 0;
  for (const partitioner::Tablet& tablet : table.tablets.tablets()) sum += tablet.epoch.value;
  return sum;
}

// Remembers, with a bound on its steps, which number was the last one at a time in the past: exact
// to step_us_, and never too high.
void SequenceTrail::give(base::MonotonicUs now_us, ChangeSequence last) {
  while (!steps_.empty() && steps_.front().newest_us <= now_us - reach_us_) {
    base_ = steps_.front().last;
    steps_.pop_front();
  }
  TETRAD_ASSERT(steps_.empty() ||
                (steps_.back().last <= last && steps_.back().newest_us <= now_us));
  if (steps_.empty() || now_us - steps_.back().begun_us >= step_us_)
    steps_.push_back({now_us, now_us, last});
  steps_.back().newest_us = now_us;
  steps_.back().last = last;
}

// The newest step that had ended by then.
ChangeSequence SequenceTrail::given_by(base::MonotonicUs at_us) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
    if (step->newest_us <= at_us) return step->last;
  return base_;
}

struct ChangeLogs::Log {
  // A log that was made with its table has all of it: its incarnation is the lower one. `settling`
  // decides what readers may see, `ending` what no write can add to any more.
  Log(const TableInfo& table, uint32_t number, storage::Store& its_store,
      const ChangeLogOptions& options)
      : incarnation(*table.change_log),
        store_number(number),
        store(its_store),
        is_as_old_as_table(*table.change_log < table.incarnation),
        settling(options.settle_us / 5 + 1, options.settle_us * 2),
        ending(1'000'000, options.longest_deadline_us + 1'000'000) {}

  const TableIncarnation incarnation;
  const uint32_t store_number;
  storage::Store& store;
  const bool is_as_old_as_table;
  bool is_open = false, is_gone = false;
  ChangeSequence last = 0;     // given
  ChangeSequence written = 0;  // all up to it can be read
  ChangeSequence reach = 0;
  ChangeSequence swept_slices = 0;  // there is nothing in those before this one
  SequenceTrail settling, ending;
  bool is_adding = false;
  std::optional<Error> refused;
};

ChangeLogs::ChangeLogs(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
                       std::vector<storage::Store*> stores, const BehindStores& behind,
                       ChangeLogOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      stores_(std::move(stores)),
      behind_(behind),
      options_(options),
      logger_(std::move(logger)) {
  rpc_.handle(Verb::kChanges,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                auto request = decode_changes_request(body);
                if (!request) return reply.error(request.error());
                answer(context.store, std::move(*request),
                       [reply = std::move(reply)](Result<ChangesAnswer> page) mutable {
                         if (page)
                           reply.ok(encode_changes_answer(*page));
                         else
                           reply.error(page.error());
                       });
              });
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) on_state(before, now);
  });
}

ChangeLogs::~ChangeLogs() {
  rpc_.handle(Verb::kChanges, nullptr);
  if (timer_ != 0) reactor_.cancel(timer_);
}

/// Logs are opened when a table gets one, or is known for the first time in this life: what the
/// store takes from then on is in it.
void ChangeLogs::on_state(const MetaSnapshot& before, const MetaSnapshot& now) {
  using Tables = decltype(now->tables);
  Tables::compare(before->tables, now->tables,
                  [&](const TableId&, const auto* known, const auto* table) {
                    const auto log_of = [](const auto* entry) {
                      return entry == nullptr ? std::nullopt : (*entry)->change_log;
                    };
                    const auto old_log = log_of(known);
                    const auto new_log = log_of(table);
                    // At the first state of this life every log is opened.
                    if (old_log == new_log && before->applied.value != 0) return;
                    for (uint32_t store = 0; store < stores_.size(); ++store) {
                      if (stores_[store] == nullptr) continue;
                      if (old_log && old_log != new_log) {
                        const auto gone = logs_.find(key_of(*old_log, store));
                        if (gone != logs_.end()) {
                          // Tasks that still use it end by themselves.
                          gone->second->is_gone = true;
                          logs_.erase(gone);
                        }
                      }
                      if (new_log) (void)find_or_open(**table, store);
                    }
                  });
}

ChangeLogs::LogPtr ChangeLogs::find_or_open(const TableInfo& table, uint32_t store) {
  const uint64_t key = key_of(*table.change_log, store);
  const auto known = logs_.find(key);
  if (known != logs_.end()) return known->second;
  LogPtr log = std::make_shared<Log>(table, store, *stores_[store], options_);
  logs_.emplace(key, log);
  tasks_.spawn(open(log));
  return log;
}

bool ChangeLogs::may_take(const TableInfo& table, uint32_t store) {
  return find_or_open(table, store)->is_open;
}

// ---- opening ----

// Reads of the store itself, without a deadline: opening must succeed, however long it takes.
Task<Result<storage::ReadResult>> ChangeLogs::read(LogPtr log, storage::ReadCommand command) {
  base::OneShot<Result<storage::ReadResult>> found;
  storage::Store::ReadCallback done = [setter =
                                           found.setter()](Result<storage::ReadResult> result) {
    setter.set(std::move(result));
  };
  log->store.read(std::move(command), base::kNoDeadline, std::move(done));
  auto result = co_await found;
  co_return result;
}

Task<void> ChangeLogs::open(LogPtr log) {
  while (!log->is_gone) {
    Result<void> looked = co_await look_for_marker(log);
    if (looked) looked = co_await look_for_end(log);
    if (looked) break;
    // The table is gone, or the node ends.
    if (looked.error().code == ErrorCode::kStaleSchema ||
        looked.error().code == ErrorCode::kCancelled)
      co_return;
    logger_.error("a change log cannot be opened log={} store={} error={}", log->incarnation.value,
                  log->store_number, looked.error().message);
    co_await base::sleep_for(reactor_, kTryAgainUs);
  }
  if (log->is_gone) co_return;
  // Numbers begin above everything that may have been given: the last entry, the marker, and, after
  // a power cut, what readers may have been shown of what is lost.
  log->last = std::max(log->last, log->reach == 0 ? 0 : log->reach - 1);
  log->last = std::max(log->last, behind_.sequence_floor(log->store_number));
  if (TETRAD_MUTANT(change_sequence_restarts)) log->last = 0;
  TETRAD_ASSERT(!log->is_open);
  log->written = log->last;
  // All that is there counts as written and settled.
  log->settling.begin(log->last);
  log->ending.begin(log->last);
  log->is_open = true;
  if (opened_) opened_();
}

Task<Result<void>> ChangeLogs::look_for_marker(LogPtr log) {
  storage::ReadCommand command = read_of(log->incarnation);
  command.position = kMarkerPosition;
  auto found = co_await read(log, std::move(command));
  TETRAD_CO_TRY(const storage::ReadResult marker, std::move(found));
  if (!marker.partitions.empty() && !marker.partitions.front().rows.empty()) {
    TETRAD_CO_TRY(const storage::RowRecord record,
                  storage::decode_row_record(marker.partitions.front().rows.front().record));
    if (record.cells.size() != 1 || record.cells.front().value.size() != sizeof(uint64_t))
      co_return fail(ErrorCode::kCorruption, "a marker that is none");
    log->reach = base::load_big_endian<uint64_t>(record.cells.front().value.data());
    co_return Result<void>();
  }
  if (log->is_as_old_as_table) co_return Result<void>();
  // Marks that what the store took before is not in the log. If the marker is missing although
  // there are entries, it is written again with the present time, which is later.
  write_marker(*log, next_sequence(*log, 1), [](Result<void>) {});
  co_return Result<void>();
}

// Slice by slice, a row of each, to the last slice; then its last row.
Task<Result<void>> ChangeLogs::look_for_end(LogPtr log) {
  storage::ReadCommand slices = range_read_of(log->incarnation, 0);
  slices.distinct_partitions = true;
  slices.per_partition_limit = 1;
  slices.row_limit = kSlicesAtOnce;
  std::optional<RingPosition> last;
  bool exhausted = false;
  while (!exhausted) {
    // A copy for each page: the command is consumed.
    storage::ReadCommand command = slices;
    auto found = co_await read(log, std::move(command));
    TETRAD_CO_TRY(storage::ReadResult page, std::move(found));
    if (!page.partitions.empty()) last = page.partitions.back().position;
    exhausted = page.exhausted;
    slices.resume_after = std::move(page.complete_up_to);
    slices.resume_after->clustering_key.reset();
  }
  if (!last) co_return Result<void>();
  storage::ReadCommand newest = read_of(log->incarnation);
  newest.position = *last;
  newest.reversed = true;
  newest.row_limit = 1;
  auto found = co_await read(log, std::move(newest));
  TETRAD_CO_TRY(const storage::ReadResult end, std::move(found));
  if (end.partitions.empty() || end.partitions.front().rows.empty())
    co_return fail(ErrorCode::kCorruption, "the last entry of a change log is not there");
  TETRAD_CO_TRY(const LoggedChange entry,
                decode_log_entry(end.partitions.front().rows.front().clustering_key));
  log->last = std::max(log->last, entry.sequence);
  co_return Result<void>();
}

// A row of its own, stamped with the value, so that a later one always wins.
void ChangeLogs::write_marker(Log& log, ChangeSequence reach, storage::Store::ApplyCallback done) {
  log.reach = reach;
  const Bytes value = big_endian(reach);
  storage::RowRecord record;
  record.liveness.timestamp_us = static_cast<int64_t>(reach);
  storage::Cell& cell = record.cells.emplace_back();
  cell.column_id = kMarkerColumn;
  cell.timestamp_us = static_cast<int64_t>(reach);
  cell.value = value;
  storage::Mutation marker;
  marker.incarnation = log.incarnation;
  marker.position = kMarkerPosition;
  storage::encode_row_record(record, marker.rows.emplace_back().record);
  log.store.apply(marker, std::move(done));
}

// ---- writing ----

/// The first of `count`, all of one slice.
ChangeSequence ChangeLogs::next_sequence(Log& log, size_t count) {
  // Not below the time: readers of several stores compare numbers with times.
  const auto now_us = static_cast<ChangeSequence>(std::max<int64_t>(1, clock_.now_us(reactor_)));
  ChangeSequence first = std::max(log.last + 1, now_us);
  if (TETRAD_MUTANT(change_sequence_restarts)) first = log.last + 1;
  // Entries of one mutation are one write, so they are one partition of the log.
  if (slice_of(first) != slice_of(first + count - 1)) first = slice_start(slice_of(first) + 1);
  TETRAD_ASSERT(count > 0 && first > log.last);
  log.last = first + count - 1;
  log.settling.give(reactor_.now_us(), log.last);
  log.ending.give(reactor_.now_us(), log.last);
  return first;
}

Result<void> ChangeLogs::note(const TableInfo& table, uint32_t store,
                              const storage::Mutation& mutation, storage::WriteGuard guard) {
  // may_take() was asked in this turn.
  const auto known = logs_.find(key_of(*table.change_log, store));
  TETRAD_ASSERT(known != logs_.end() && known->second->is_open);
  const LogPtr log = known->second;
  bool has_static = false;
  if (!mutation.header.empty()) {
    TETRAD_TRY(has_static, has_values(mutation.header));
  }
  std::vector<BytesView> rows;
  rows.reserve(mutation.rows.size());
  for (const storage::RowChange& row : mutation.rows) {
    TETRAD_TRY(const bool counts, has_values(row.record));
    if (counts) rows.emplace_back(row.clustering_key);
  }
  const size_t count = rows.size() + (has_static ? 1 : 0);
  // Nothing that readers are shown: no number is used.
  if (count == 0) return {};
  ChangeSequence sequence = next_sequence(*log, count);
  storage::RowRecord record;
  record.liveness.timestamp_us = static_cast<int64_t>(sequence);
  Bytes encoded;
  storage::encode_row_record(record, encoded);
  storage::Mutation entries;
  entries.incarnation = log->incarnation;
  entries.position = position_of(sequence);
  entries.rows.reserve(count);
  const auto add = [&](std::optional<BytesView> clustering_key) {
    storage::RowChange& entry = entries.rows.emplace_back();
    append_log_entry(entry.clustering_key, sequence++, mutation.position, mutation.partition_key,
                     clustering_key);
    entry.record = encoded;
    entry.complete = true;
  };
  if (has_static) add(std::nullopt);
  for (const BytesView clustering_key : rows) add(clustering_key);
  TETRAD_ASSERT(sequence == log->last + 1);

  // The same guard as the rows': both are written or neither is. What the store refuses inside of
  // this call is kept, so that the rows do not go in either.
  log->is_adding = true;
  log->store.apply(entries, std::move(guard), [log, last = sequence - 1](Result<void> written) {
    TETRAD_ASSERT(last <= log->last);
    if (written)
      log->written = std::max(log->written, last);
    else if (log->is_adding)
      log->refused = std::move(written.error());
  });
  log->is_adding = false;
  if (log->refused) return std::unexpected(*std::exchange(log->refused, std::nullopt));
  metrics_.entries.add(count);
  return {};
}

// ---- reading ----

void ChangeLogs::answer(uint32_t store, ChangesRequest request, AnswerCallback done) {
  //   1. Is it this log, and complete here (rule 20)?
  if (store >= stores_.size() || stores_[store] == nullptr)
    return done(fail(ErrorCode::kNotFound, "store {} is not of this shard", store));
  // What is lost may have entries; where they are nobody knows.
  if (behind_.is_behind(store)) return done(std::unexpected(BehindStores::refusal()));
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(request.table);
  if (table == nullptr || table->change_log != request.log) {
    if (std::max(request.table, request.log).value >= state->next_incarnation)
      return done(fail(ErrorCode::kBehind, "this node has not heard of the change log yet"));
    return done(fail(ErrorCode::kStaleSchema, "the change log is gone"));
  }
  //   2. A layout that is newer here than the asker's map: it may be asking too few stores.
  if (layout_of(*table) > request.layout)
    return done(fail(ErrorCode::kStaleEpoch, "the replica set has changed"));
  const LogPtr log = find_or_open(*table, store);
  if (!log->is_open) return done(fail(ErrorCode::kBehind, "the change log is being opened"));

  //   3. From behind what was given, or from where the log is complete on, to what is settled.
  const ChangeSequence from = std::max(request.after + 1, log->reach);
  const ChangeSequence settled = log->settling.given_by(reactor_.now_us() - options_.settle_us);
  const ChangeSequence end = std::min(
      log->written, log->ending.given_by(reactor_.now_us() - options_.longest_deadline_us));
  if (from > std::min(settled, log->written)) {
    ChangesAnswer nothing;
    nothing.scanned = from - 1;
    nothing.end = end;
    nothing.reach = log->reach;
    return done(std::move(nothing));
  }
  storage::ReadCommand command = range_read_of(log->incarnation, slice_of(from));
  command.resume_after = storage::ReadPosition{position_of(from), "", big_endian(from)};
  // Of one partition all entries have to be looked at to find its own.
  command.row_limit = kEntriesMax;
  if (!request.partition)
    command.row_limit =
        static_cast<uint32_t>(std::min<uint64_t>(kEntriesMax, uint64_t{request.changes_max} + 1));
  command.bytes_limit = std::min(request.bytes_max, kPageBytesMax);
  //   4. The read may go to the readers' threads; the page is made when it comes back.
  const base::Deadline deadline{reactor_.now_us() + options_.longest_deadline_us};
  log->store.read(
      std::move(command), deadline,
      [alive = std::weak_ptr<char>(alive_), log, request = std::move(request), from, settled, end,
       done = std::move(done)](Result<storage::ReadResult> found) mutable {
        if (alive.expired()) return;
        if (!found) return done(std::unexpected(std::move(found.error())));
        auto page = page_of(*found, request, from, settled);
        if (page) {
          page->end = end;
          page->reach = log->reach;  // what was swept meanwhile may be missing
        }
        done(std::move(page));
      });
}

Result<ChangesAnswer> ChangeLogs::page_of(const storage::ReadResult& found,
                                          const ChangesRequest& request, ChangeSequence from,
                                          ChangeSequence settled) {
  ChangesAnswer page;
  page.scanned = from - 1;
  page.exhausted = found.exhausted;
  for (const storage::PartitionData& slice : found.partitions) {
    for (const storage::RowData& row : slice.rows) {
      TETRAD_TRY(LoggedChange entry, decode_log_entry(row.clustering_key));
      // What is still on its way could come before this entry.
      if (entry.sequence > settled) {
        page.exhausted = true;  // what is not settled comes with a later page
        return page;
      }
      const bool wanted =
          !request.partition || (entry.change.position == request.partition->position &&
                                 entry.change.partition_key == request.partition->partition_key);
      if (wanted && page.changes.size() >= request.changes_max) {
        page.exhausted = false;
        return page;
      }
      // Passed over or given: the next page begins behind it.
      page.scanned = entry.sequence;
      if (wanted) page.changes.push_back(std::move(entry));
    }
  }
  return page;
}

// ---- sweeping ----

void ChangeLogs::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.sweep_every_us, [this] {
    start();
    if (!sweeping_) sweep_now([] {});
  });
}

void ChangeLogs::sweep_now(std::function<void()> done) {
  sweeping_ = true;
  tasks_.spawn(sweep_all(std::move(done)));
}

Task<void> ChangeLogs::sweep_all(std::function<void()> done) {
  std::vector<LogPtr> logs;
  for (const auto& [key, log] : logs_) logs.push_back(log);
  // In one order on every run (the map is unordered).
  std::sort(logs.begin(), logs.end(), [](const LogPtr& a, const LogPtr& b) {
    return key_of(a->incarnation, a->store_number) < key_of(b->incarnation, b->store_number);
  });
  for (size_t i = 0; i < logs.size(); ++i) {
    const LogPtr log = logs[i];
    Result<void> swept = co_await sweep(log);
    if (!swept && !log->is_gone)
      logger_.debug("change log not swept log={} reason={}", log->incarnation.value,
                    swept.error().message);
  }
  sweeping_ = false;
  done();
}

/// The slices before the one that the retention begins in. First the marker says that they go.
// A slice goes when the retention has passed all of it.
Task<Result<void>> ChangeLogs::sweep(LogPtr log) {
  const int64_t keep_from_us = clock_.now_us(reactor_) - options_.retention_us;
  if (!log->is_open || keep_from_us <= 0) co_return Result<void>();
  const ChangeSequence end = slice_of(static_cast<ChangeSequence>(keep_from_us));
  if (end <= log->swept_slices) co_return Result<void>();
  storage::SweepCommand command;
  command.incarnation = log->incarnation;
  command.range = {before_slice(log->swept_slices), before_slice(end)};
  command.everything = true;

  storage::ReadCommand oldest = range_read_of(log->incarnation, 0);
  oldest.range = command.range;
  oldest.row_limit = 1;
  auto found = co_await read(log, std::move(oldest));
  TETRAD_CO_TRY(const storage::ReadResult first, std::move(found));
  // Readers that were slow must learn that entries are gone, before they go.
  if (!first.partitions.empty()) {
    const ChangeSequence reach = std::min(slice_start(end), log->last + 1);
    base::OneShot<Result<void>> marked;
    storage::Store::ApplyCallback done = [setter = marked.setter()](Result<void> result) {
      setter.set(std::move(result));
    };
    write_marker(*log, std::max(reach, log->reach), std::move(done));
    Result<void> result = co_await marked;
    TETRAD_CO_TRY_VOID(std::move(result));
  }
  storage::SweepPlace place;
  bool exhausted = first.partitions.empty();
  uint64_t erased = 0, skipped = 0;
  while (!exhausted) {
    base::OneShot<Result<storage::SweepPage>> swept;
    std::move_only_function<void(Result<storage::SweepPage>)> done =
        [setter = swept.setter()](Result<storage::SweepPage> page) { setter.set(std::move(page)); };
    log->store.sweep(command, std::move(place), std::move(done));
    Result<storage::SweepPage> page = co_await swept;
    if (!page) co_return std::unexpected<Error>(page.error());
    erased += page->erased;
    skipped += page->skipped;
    metrics_.erased.add(page->erased);
    exhausted = page->exhausted;
    place = std::move(page->next);
    // A pause between pages leaves the disk to others.
    if (!exhausted) co_await base::sleep_for(reactor_, options_.sweep_pause_us);
  }
  // Something was kept: look at these slices again next time.
  if (skipped == 0) log->swept_slices = end;
  if (erased != 0)
    logger_.debug("change log swept log={} store={} entries={}", log->incarnation.value,
                  log->store_number, erased);
  co_return Result<void>();
}

}  // namespace tetrad::replication
