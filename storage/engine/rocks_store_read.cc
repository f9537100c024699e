// SPDX-License-Identifier: Apache-2.0
// Reads of a RocksStore.
//
//   1. A read is tried on the loop with what is in memory, in at most kInlineStepsMax steps.
//   2. If it needs a file, or looks at too much, it is done again from its beginning by a reader of
//      the I/O pool, over a snapshot taken at once. Counting a range goes there at once.
//      An answer of more than the command's bytes_max stays there: many may be read at once, by
//      statements that took little room for them.
//   3. Back on the loop, values that took too many merge operands are put back as one (rule 19),
//      and runs of dead rows that it walked are remembered, unless something was written since.
//
// The order on the loop is what makes step 3 right: `seen` is taken before the read, and a write
// that came later has a higher number, so its bucket says so (rule 19).
//   4. What does not read marks the store damaged; the caller asks other replicas.
#include "storage/engine/rocks_store.h"

namespace tetrad::storage {
namespace {

/// A read that looks at more keys goes to the I/O pool: about a third of a millisecond.
constexpr uint64_t kInlineStepsMax = 2'000;

}  // namespace

void RocksStore::read_registers(const PartitionName& partition, base::Deadline deadline,
                                RegistersCallback done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(partition.incarnation)) return done(retired_error(partition.incarnation));
  if (auto checked = check_partition(partition); !checked)
    return done(std::unexpected(std::move(checked.error())));
  Bytes key = registers_key(partition);
  // A write of these registers is under way: after a sync of it they are on the disk, and may be
  // answered (rule 21).
  if (!turn_.writes_registers(key))
    return find_registers(std::move(key), deadline, std::move(done));
  turn_.sync([this, alive = alive_, incarnation = partition.incarnation, key = std::move(key),
              deadline, done = std::move(done)](Result<void> synced) mutable {
    if (!synced) return done(std::unexpected(std::move(synced.error())));
    if (!*alive || unusable()) return done(closed_error());
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    find_registers(std::move(key), deadline, std::move(done));
  });
}

void RocksStore::list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                                size_t partitions_max,
                                std::move_only_function<void(Result<RegistersPage>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  // After what this turn has added: a stream must not miss registers that were written before it
  // was asked.
  turn_.after_writes([this, alive = alive_, incarnation, range, after = std::move(after),
                      partitions_max, done = std::move(done)]() mutable {
    if (!*alive || unusable()) return done(closed_error());
    if (is_retired(incarnation)) return done(retired_error(incarnation));
    in_maintenance<RegistersPage>(
        0,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), incarnation, range,
         after = std::move(after), partitions_max] {
          RocksView view(snapshot->database().db(),
                         {.snapshot = snapshot->get(), .fill_cache = false});
          return registers_page(view, incarnation, range, after, partitions_max);
        },
        std::move(done));
  });
}

void RocksStore::latest_timestamp(ReadCommand command, base::Deadline deadline,
                                  std::move_only_function<void(Result<int64_t>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  // The same two attempts as read(): in memory, else on a reader.
  RocksView view(
      db(), {.memory_only = true, .steps_max = kInlineStepsMax, .block_hits = &block_reads_.hits});
  auto latest = latest_timestamp_of(view, command);
  if (!view.gave_up()) {
    if (!latest) heed(latest.error());
    return done(std::move(latest));
  }
  in_readers<int64_t>(
      deadline,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), command = std::move(command)] {
        RocksView files(snapshot->database().db(), {.snapshot = snapshot->get()});
        return latest_timestamp_of(files, command);
      },
      [this, alive = alive_, done = std::move(done)](Result<int64_t> from_files) mutable {
        if (*alive && !from_files) heed(from_files.error());
        done(std::move(from_files));
      });
}

void RocksStore::read(ReadCommand command, base::Deadline deadline, ReadCallback done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  if (command.by_index) return read_narrowed(std::move(command), deadline, std::move(done));
  if (command.nearest) return read_nearest(std::move(command), deadline, std::move(done));
  // Headers, range tombstones and rows are read one after another. With batches that are written on
  // another thread they could be of two moments, so one snapshot is taken.
  const TableContents contents = contents_of(command);
  const bool fixed = needs_snapshot(command, contents);
  // A count looks at all rows: it would only waste the loop's steps first.
  const bool scans = command.is_range && command.count_only;
  std::shared_ptr<HeldSnapshot> snapshot;
  if (fixed) snapshot = std::make_shared<HeldSnapshot>(state_.database);
  const uint64_t seen = turn_.written_through();
  DeadRunList dead;
  if (!scans) {
    const DeadRunList* known = dead_runs_of(command);
    // memory_only: a block that is not in the cache ends the attempt, without a file's reading.
    RocksView view(db(), view_here(command, fixed ? snapshot->get() : nullptr, known));
    auto result = read_partitions(view, command, contents, options_.read_keys_max);
    if (!view.gave_up()) {
      if (!result) heed(result.error());
      write_back(view.take_merged(), seen);
      keep_dead(command, view.take_dead(), seen);
      return done(std::move(result));
    }
    // The walk was long: the reader that does it again may find dead runs worth keeping, if nothing
    // is written meanwhile.
    if (view.is_long()) watch_dead(command);
    if (known != nullptr) dead = *known;
  }
  if (snapshot == nullptr) snapshot = std::make_shared<HeldSnapshot>(state_.database);
  read_from_files(std::move(command), contents, {std::move(snapshot), seen, std::move(dead)},
                  deadline, std::move(done));
}

void RocksStore::read_from_files(ReadCommand command, const TableContents& contents,
                                 SecondAttempt attempt, base::Deadline deadline,
                                 ReadCallback done) {
  struct Found {
    ReadCommand command;
    std::vector<MergedValue> merged;
    DeadRunList dead;
  };
  // Shared with the reader's thread; the loop touches it again when that has ended.
  const auto found =
      std::make_shared<Found>(Found{std::move(command), {}, std::move(attempt.dead)});
  in_readers<ReadResult>(
      deadline,
      [snapshot = std::move(attempt.snapshot), contents, found, walks = walks_rows(found->command),
       operands_max = options_.read_operands_max, keys_max = options_.read_keys_max] {
        const RocksViewOptions view{.snapshot = snapshot->get(),
                                    .operands_max = operands_max,
                                    .dead = walks ? &found->dead : nullptr};
        RocksView files(snapshot->database().db(), view);
        auto from_files = read_partitions(files, found->command, contents, keys_max);
        // Once more, since a transient error of the disk would mark the whole store as damaged.
        if (!from_files && from_files.error().code == ErrorCode::kIo) {  // a disk may recover
          RocksView again(snapshot->database().db(), view);
          from_files = read_partitions(again, found->command, contents, keys_max);
          found->dead = {};
        } else {
          found->merged = files.take_merged();
          found->dead = files.take_dead();
        }
        if (from_files) withhold_if_larger(*from_files, found->command.bytes_max);
        return from_files;
      },
      [this, alive = alive_, found, seen = attempt.seen,
       done = std::move(done)](Result<ReadResult> from_files) mutable {
        // The store may have been closed while the read was out; the answer is good all the same.
        if (*alive) {
          write_back(std::move(found->merged), seen);
          if (from_files)
            keep_dead(found->command, std::move(found->dead), seen);
          else
            heed(from_files.error());
        }
        done(std::move(from_files));
      });
}

// The caller's fast way (Coordinator::read_here): no copy of rows, no callback. Unset: use read().
std::optional<Result<ReadEnd>> RocksStore::read_here(const ReadCommand& command, RowSink& sink) {
  if (const auto why = unusable()) return std::unexpected(*why);
  if (is_retired(command.incarnation)) return retired_error(command.incarnation);
  if (command.by_index || command.nearest) return std::nullopt;
  // With batches on another thread two look-ups could see two moments.
  const TableContents contents = contents_of(command);
  if (needs_snapshot(command, contents)) return std::nullopt;
  RocksView view(db(), view_here(command, nullptr, dead_runs_of(command)));
  auto end = read_partitions_into(view, command, contents, sink, options_.read_keys_max);
  if (view.gave_up()) return std::nullopt;
  if (!end) heed(end.error());
  // Nothing was written within this call, so the number is as good after the read as before it.
  const uint64_t seen = turn_.written_through();
  write_back(view.take_merged(), seen);
  keep_dead(command, view.take_dead(), seen);
  return end;
}

uint64_t RocksStore::approximate_bytes(TableIncarnation incarnation, const RingRange& range) {
  if (unusable() || is_retired(incarnation)) return 0;
  return approximate_bytes_of(db(), incarnation, range);
}

void RocksStore::sample_sizes(TableIncarnation incarnation, const RingRange& range, size_t count,
                              std::move_only_function<void(Result<std::vector<SizeSample>>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  in_maintenance<std::vector<SizeSample>>(
      0,
      [database = state_.database, incarnation, range, count] {
        return sample_sizes_of(database->db(), incarnation, range, count);
      },
      std::move(done));
}

void RocksStore::export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                              uint64_t bytes_max, ExportParts parts, ExportCallback done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(incarnation)) return done(retired_error(incarnation));
  // Taken on the loop: the maintenance thread sees no tables.
  const SchemaVersion version{state_.tables.at(incarnation).schema_version};
  in_maintenance<ExportPage>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), incarnation, version, range,
       after = std::move(after), bytes_max, parts] {
        RocksView view(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .fill_cache = false});
        return export_page(view, incarnation, version, range, after, bytes_max, parts);
      },
      std::move(done));
}

void RocksStore::recent(RecentCommand command, Bytes after, uint64_t bytes_max,
                        std::move_only_function<void(Result<RecentPage>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  turn_.when_written([this, alive = alive_, command = std::move(command), after = std::move(after),
                      bytes_max, done = std::move(done)]() mutable {
    if (!*alive || unusable()) return done(closed_error());
    // Where nothing has been written twice, the log between two sync records names the keys of the
    // time.
    auto place = recent_place(command, after);
    if (!place) return done(std::unexpected(place.error()));
    read_recent(std::move(command), std::move(*place), bytes_max, std::move(done));
  });
}

// kIo too: a block that cannot be read is as lost to this replica as one that does not decode.
void RocksStore::heed(const Error& error) {
  if (error.code != ErrorCode::kCorruption && error.code != ErrorCode::kIo) return;
  ++corruptions_;
  health_.take_damage(error.message);
}

// Of a table that is gone nothing may be written: its keys would come back behind the deletion.
void RocksStore::write_back(std::vector<MergedValue> values, uint64_t seen) {
  if (values.empty() || unusable()) return;
  std::erase_if(values, [this](const MergedValue& value) {
    const auto place = decode_storage_key(value.key);
    return !place || is_retired(place->incarnation);
  });
  turn_.write_back(values, seen);
}

Result<RecentPlace> RocksStore::recent_place(const RecentCommand& command, BytesView after) const {
  const uint64_t life = recovered().life;
  // A page that goes on must be of the same life of the store, since numbers of the log begin anew.
  if (!after.empty()) return RecentPlace::decode(after, life);
  const auto window = state_.records.window(command.since_us, command.until_us);
  if (!window)
    // A window from a sync record before `since` to one after `until`; more keys than asked for do
    // no harm.
    return fail(ErrorCode::kNotFound, "no sync record is older than {} us", command.since_us);
  return RecentPlace{life, window->from, 0, std::min(window->until, turn_.log_end()), {}};
}

void RocksStore::read_recent(RecentCommand command, RecentPlace place, uint64_t bytes_max,
                             std::move_only_function<void(Result<RecentPage>)> done) {
  std::unordered_map<uint32_t, SchemaVersion> versions;
  std::erase_if(command.ranges, [&](const auto& table) {
    const TableKnowledge* known = state_.tables.find(table.first);
    versions[table.first.value] = {known == nullptr ? 0 : known->schema_version};
    return is_retired(table.first);
  });
  in_maintenance<RecentPage>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), command = std::move(command),
       versions = std::move(versions), place = std::move(place),
       bytes_max]() -> Result<RecentPage> {
        rocksdb::DB& db = snapshot->database().db();
        // The log names keys, the snapshot has their current values.
        RecentKeys keys(command);
        TETRAD_TRY(const uint64_t end, read_log(db, place.from, place.stop(), keys));
        RocksView view(db, {.snapshot = snapshot->get(), .fill_cache = false});
        const auto version_of = [&](TableIncarnation table) { return versions.at(table.value); };
        return recent_page(view, place, keys, end, bytes_max, version_of);
      },
      [this, alive = alive_, done = std::move(done)](Result<RecentPage> page) mutable {
        if (*alive && !page) heed(page.error());
        done(std::move(page));
      });
}

Result<PaxosRegisters> RocksStore::registers_at(RocksView& view, BytesView key) {
  TETRAD_TRY(const auto value, view.get(key));
  if (!value) return PaxosRegisters();
  return decode_registers(*value);
}

// Registers are one key: no snapshot is needed.
void RocksStore::find_registers(Bytes key, base::Deadline deadline, RegistersCallback done) {
  RocksView view(db(), {.memory_only = true, .block_hits = &block_reads_.hits});
  auto registers = registers_at(view, key);
  if (!view.gave_up()) {
    if (!registers) heed(registers.error());
    return done(std::move(registers));
  }
  in_readers<PaxosRegisters>(
      deadline,
      [database = state_.database, key = std::move(key)] {
        RocksView files(database->db(), {});
        return registers_at(files, key);
      },
      [this, alive = alive_, done = std::move(done)](Result<PaxosRegisters> from_files) mutable {
        if (*alive && !from_files) heed(from_files.error());
        done(std::move(from_files));
      });
}

Bytes RocksStore::prefix_of(const ReadCommand& command) {
  Bytes prefix;
  append_partition_prefix(prefix, command.incarnation, command.position, command.partition_key);
  return prefix;
}

const DeadRunList* RocksStore::dead_runs_of(const ReadCommand& command) {
  const DeadRuns& runs = turn_.dead_runs();
  // A bucket without runs is passed without building a key.
  if (!walks_rows(command)) return nullptr;
  const uint16_t bucket = bucket_of(command.incarnation, command.position);
  return runs.knows(bucket) ? runs.find(prefix_of(command)) : nullptr;
}

void RocksStore::watch_dead(const ReadCommand& command) {
  if (!walks_rows(command)) return;
  const uint16_t bucket = bucket_of(command.incarnation, command.position);
  // From now on live rows that are written to the partition are noted, so that what is found is
  // only kept if it still holds.
  turn_.dead_runs().watch(bucket, prefix_of(command), turn_.last_number(bucket));
}

void RocksStore::keep_dead(const ReadCommand& command, DeadRunList found, uint64_t seen) {
  if (found.empty() || closed_) return;
  watch_dead(command);
  const Bytes prefix = prefix_of(command);
  for (DeadRun& run : found) turn_.dead_runs().keep(prefix, std::move(run), seen);
}

RocksViewOptions RocksStore::view_here(const ReadCommand& command,
                                       const rocksdb::Snapshot* snapshot, const DeadRunList* dead) {
  RocksViewOptions options{.snapshot = snapshot,
                           .memory_only = true,
                           .steps_max = kInlineStepsMax,
                           .operands_max = options_.read_operands_max,
                           .dead = dead,
                           .block_hits = &block_reads_.hits};
  // The cache serves walks over one partition only: named rows are single gets, and ranges would
  // flush it.
  if (!command.is_range && command.rows.empty()) {
    options.row_cache = &row_cache_;
    options.moment = {turn_.last_number(bucket_of(command.incarnation, command.position)),
                      turn_.written_through()};
  }
  return options;
}

bool RocksStore::needs_snapshot(const ReadCommand& command, const TableContents& contents) const {
  // One get sees one moment by itself.
  const bool one_get = !command.is_range && command.rows.size() == 1 && !contents.headers &&
                       !contents.any_range_tombstones();
  return (options_.sync == CommitLogSync::kGroup || turn_.writes_elsewhere()) && !one_get;
}

// What a table never had need not be looked up: most tables have no headers and no range
// tombstones.
TableContents RocksStore::contents_of(const ReadCommand& command) const {
  // Not known: a table that was never written has nothing, unless knowledge was lost with a file's
  // properties.
  const TableKnowledge* table = state_.tables.find(command.incarnation);
  if (table == nullptr) {
    TableContents all;
    all.scattered_tombstones = true;
    return state_.tables.unknown() ? all : TableContents::nothing();
  }
  TableContents contents = table->contents;
  contents.dead_rows = table->dead != 0 || state_.tables.unknown();
  if (command.is_range) return contents;
  const uint16_t bucket = bucket_of(command.incarnation, command.position);
  const auto has = [&](TableMarks::Seen what) { return table->marks.has(bucket, what); };
  contents.range_tombstones |= has(TableMarks::kRangeTombstones);
  contents.straddling_tombstones |= has(TableMarks::kStraddlingTombstones);
  return contents;
}

}  // namespace tetrad::storage
