// SPDX-License-Identifier: Apache-2.0
// Tasks of materialized views in a store (rule 24; view_task.h has their keys).
//
//   1. A mutation of a base table leaves a task for each row and each range that it deletes, in its
//      own batch (make_tasks).
//   2. A task of a range is turned into tasks of rows, some hundred at a time, with a cursor
//      (expand).
//   3. An execution reads a row with a stamp (read): the bucket's stamp rises first, and from then
//      on a lower one is refused. What the row may be called in the views by this store's record is
//      noted before the answer.
//   4. When all is written, settle() erases the tasks that the execution has seen, and leaves the
//      row's present names as a note.
//   5. A new view is built: each row gets a task, a page at a time.
//
// On the store's thread; reads may run on the readers' threads over a snapshot. The listener hears
// of each task as it is put.
#include "storage/views/store_views.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/io_pool.h"
#include "storage/engine/partition_reader.h"
#include "storage/row/partition_header.h"
#include "storage/views/view_rows.h"

namespace tetrad::storage {
namespace {

// Names of the keys below; of a sequence the bits from kLifeShift on are the life of the store, so
// sequences rise over restarts.
constexpr BytesView kBuildName = "viewbuild", kBoundName = "viewstamp";
constexpr unsigned kLifeShift = 40;  // of a sequence; below are tasks of one life
// Rows of one step of expand().
constexpr size_t kExpandedRowsMax = 256;

/// key   := the store's own, "viewbuild", u32 incarnation of the base, u32 incarnation of the view
/// value := as index_value(): u8 1 (built) | u8 0, place that the build goes on after
Bytes build_key(TableIncarnation base, TableIncarnation view) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(kBuildName);
  w.u32(base.value);
  w.u32(view.value);
  return key;
}

Bytes build_value(const ViewBuild& build) {
  return Bytes(1, build.built ? '\1' : '\0') + build.after;
}

/// key   := the store's own, "viewstamp"
/// value := u64 the bound of stamps, us
Bytes bound_key() {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(kBoundName);
  return key;
}

Bytes key_of(const ViewTaskEntry& entry) {
  return view_task_key({entry.row.base, entry.row.position, entry.row.partition_key, entry.of_range,
                        entry.row.clustering_key, entry.sequence});
}

/// Of a partition's deletion: all its rows.
const ClusteringRange kWholePartition;

std::unexpected<Error> no_views() {
  return fail(ErrorCode::kNotFound, "no views of the table are known here");
}

}  // namespace

bool StoreViews::Base::knows(TableIncarnation view) const {
  return makers != nullptr && std::ranges::any_of(*makers, [&](const ViewMakerPtr& maker) {
           return maker->incarnation() == view;
         });
}

// Called for keys of the store's own incarnation when the store is opened.
bool StoreViews::is_own_key(BytesView key) {
  const Bytes build = build_key({0}, {0});
  return key == bound_key() || (key.size() == build.size() &&
                                key.starts_with(BytesView(build).substr(0, 4 + kBuildName.size())));
}

void StoreViews::load(BytesView key, BytesView value) {
  if (key == bound_key()) {
    if (value.size() == sizeof(uint64_t))
      bound_.us = static_cast<int64_t>(base::load_big_endian<uint64_t>(value.data()));
    return;
  }
  if (!is_own_key(key) || value.empty()) return;
  const char* tail = key.data() + key.size() - 2 * sizeof(uint32_t);
  const TableIncarnation view{base::load_big_endian<uint32_t>(tail + 4)};
  bases_[base::load_big_endian<uint32_t>(tail)].builds[view] = {value[0] == '\1',
                                                                Bytes(value.substr(1))};
}

// No stamp that an earlier life has seen is above its bound (rule 24).
void StoreViews::begin_life(uint64_t life) {
  life_ = life;
  stamps_.emplace(TETRAD_MUTANT(view_bound_forgotten) ? ViewStamp{} : bound_);
}

StoreViews::Changed StoreViews::set(TableIncarnation base, ViewMakersPtr makers,
                                    TableIncarnation next) {
  Changed changed;
  if (makers == nullptr && !bases_.contains(base.value)) return changed;
  Base& known = bases_[base.value];
  known.makers = std::move(makers);
  // A view that is gone for good. One with a number that is not given yet is of a newer schema than
  // this.
  std::erase_if(known.builds, [&](const auto& build) {
    if (known.knows(build.first) || build.first.value >= next.value) return false;
    changed.erased.push_back(build_key(base, build.first));
    return true;
  });
  // Before the first task: from it a later life knows that there may be tasks and notes.
  if (known.makers != nullptr)
    for (const ViewMakerPtr& maker : *known.makers)
      if (known.builds.try_emplace(maker->incarnation()).second)
        changed.puts.emplace_back(build_key(base, maker->incarnation()), build_value({}));
  changed.none_left = known.makers == nullptr && known.builds.empty();
  if (changed.none_left) bases_.erase(base.value);
  return changed;
}

StoreViews::Changed StoreViews::erase(TableIncarnation base) {
  return set(base, nullptr, {std::numeric_limits<uint32_t>::max()});
}

std::vector<TableIncarnation> StoreViews::bases() const {
  std::vector<TableIncarnation> all;
  for (const auto& [base, known] : bases_) all.push_back({base});
  return all;
}

// A life makes fewer than 2^40 tasks.
uint64_t StoreViews::next_sequence() {
  const uint64_t sequence = (life_ << kLifeShift) + ++tasks_made_;
  TETRAD_ASSERT(sequence < kViewNotes);
  return sequence;
}

void StoreViews::put_task(const ViewTaskEntry& entry, const ViewTask& task, ViewRecords& puts) {
  puts.emplace_back(key_of(entry), view_task_value(task, entry.of_range));
  if (listener_) listener_(entry);
}

void StoreViews::make_tasks(const Mutation& mutation, ViewRecords& puts) {
  Base* const base = find(mutation.incarnation);
  if (base == nullptr) return;
  // A view that is not known here yet: rows that are written meanwhile have no task of it, so its
  // build begins anew.
  for (auto& [view, build] : base->builds) {
    if (base->knows(view) || (!build.built && build.after.empty())) continue;
    build = {};
    puts.emplace_back(build_key(mutation.incarnation, view), build_value(build));
  }
  if (base->makers == nullptr) return;
  ViewTask task;
  task.time_us = backend_.wall_time_us();
  ViewTaskEntry entry{{mutation.incarnation, mutation.position, mutation.partition_key, {}},
                      false,
                      0,
                      task.time_us};
  for (const RowChange& row : mutation.rows) {
    auto names = names_of_record(*base->makers, row.record);
    TETRAD_ASSERT(names.has_value());  // it was looked at before
    if (TETRAD_MUTANT(view_names_left_out)) names->clear();
    entry.row.clustering_key = row.clustering_key;
    entry.sequence = next_sequence();
    put_task(entry, {task.time_us, std::move(*names), {}, {}}, puts);
  }
  entry.of_range = true;
  // A range deletes rows that are not named, so it gets a task of its own.
  const auto add_range = [&](const ClusteringRange& range) {
    entry.row.clustering_key = range.start;
    entry.sequence = next_sequence();
    put_task(entry, {task.time_us, {}, range.end, {}}, puts);
  };
  if (TETRAD_MUTANT(view_ranges_forgotten)) return;
  for (const RangeTombstone& tombstone : mutation.range_tombstones) add_range(tombstone.range);
  if (deletes_partition(mutation.header)) add_range(kWholePartition);
}

ViewStamp StoreViews::highest_of(TableIncarnation base, RingPosition position) const {
  TETRAD_ASSERT(stamps_);
  return stamps_->highest_of(bucket_of(base, position));
}

// The bound is synced ahead of the stamps, so that most reads wait for no disk.
void StoreViews::ask_bound(ViewStamp bound) {
  Bytes value;
  base::ByteWriter(value).u64(static_cast<uint64_t>(bound.us));
  backend_.write({{bound_key(), std::move(value)}}, {}, [](const Result<void>&) {});
  backend_.sync([this, alive = alive_, bound](const Result<void>& synced) {
    if (!*alive) return;
    synced ? stamps_->synced(bound) : stamps_->not_synced();
    for (base::Callback& waiting : std::exchange(for_bound_, {})) waiting();
  });
}

void StoreViews::read(ViewRow row, ViewStamp stamp, base::Deadline deadline,
                      std::move_only_function<void(Result<ViewRowAnswer>)> done) {
  const Base* const base = find(row.base);
  if (base == nullptr || base->makers == nullptr) return done(no_views());
  TETRAD_ASSERT(stamps_);
  // A stamp above the bound waits until the bound is on the disk.
  if (const auto bound = stamps_->must_sync(stamp)) ask_bound(*bound);
  if (stamps_->may_raise(stamp))
    return read_raised(std::move(row), stamp, deadline, std::move(done));
  for_bound_.push_back(
      [this, row = std::move(row), stamp, deadline, done = std::move(done)]() mutable {
        if (!stamps_->may_raise(stamp))
          return done(fail(ErrorCode::kIo, "the bound of stamps is not on the disk"));
        read_raised(std::move(row), stamp, deadline, std::move(done));
      });
}

void StoreViews::read_raised(ViewRow row, ViewStamp stamp, base::Deadline deadline,
                             std::move_only_function<void(Result<ViewRowAnswer>)> done) {
  const Base* const base = find(row.base);
  if (base == nullptr || base->makers == nullptr) return done(no_views());
  const uint16_t bucket = bucket_of(row.base, row.position);
  if (!TETRAD_MUTANT(view_stamp_unheeded)) {
    const ViewStamp seen = stamps_->highest_of(bucket);
    // Another execution has read with this stamp or a later one.
    if (seen >= stamp || !stamps_->raise(bucket, stamp)) {
      ViewRowAnswer answer;
      answer.seen = seen;
      return done(std::move(answer));
    }
  }
  // Before the read: what is written later has a higher number.
  const uint64_t seen_number = backend_.seen_number();
  const TableContents contents = backend_.contents_of(read_of(row));
  const ViewRecordsFrom from = cursors_.begin_read(base::xxh3_128(records_of(row)), stamp);
  const auto shared =
      std::make_shared<std::pair<ViewRow, ViewRowAnswer>>(std::move(row), ViewRowAnswer());
  backend_.read(
      deadline,
      [shared, contents, from](KeyView& keys) -> Result<void> {
        TETRAD_TRY(shared->second, read_view_row(keys, shared->first, contents, from));
        return {};
      },
      [this, alive = alive_, shared, stamp, seen_number,
       done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(std::unexpected(std::move(read.error())));
        if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
        const Base* const known = find(shared->first.base);
        if (known == nullptr || known->makers == nullptr) return done(no_views());
        note_own_names(shared->first, *known, stamp, seen_number, std::move(shared->second),
                       std::move(done));
      });
}

// A later deletion of a range may have been turned into tasks by then, without this row.
void StoreViews::note_own_names(const ViewRow& row, const Base& base, ViewStamp stamp,
                                uint64_t seen, ViewRowAnswer answer,
                                std::move_only_function<void(Result<ViewRowAnswer>)> done) {
  auto unnamed = unnamed_of(*base.makers, answer);
  if (!unnamed) return done(std::unexpected(std::move(unnamed.error())));
  if (unnamed->empty() || TETRAD_MUTANT(view_names_left_out)) return done(std::move(answer));
  // Else the note could miss a name that the row has by now.
  const bool written_since = backend_.last_number(bucket_of(row.base, row.position)) > seen;
  const ViewTaskPlace note{row.base,           row.position,
                           row.partition_key,  false,
                           row.clustering_key, kViewNotes + static_cast<uint64_t>(stamp.us)};
  for (const auto& [view, names] : *unnamed) answer.names[view].insert(names.begin(), names.end());
  answer.sequences.push_back(note.sequence);
  ViewTask told;
  told.names = std::move(*unnamed);
  const base::Hash128 records = base::xxh3_128(records_of(row));
  cursors_.begin_note(records, note.sequence);
  backend_.write(
      {{view_task_key(note), view_task_value(told, false)}}, {},
      [this, alive = alive_, records, sequence = note.sequence, written_since,
       answer = std::move(answer), done = std::move(done)](Result<void> written) mutable {
        if (*alive) cursors_.end_note(records, sequence);
        if (!written) return done(std::unexpected(std::move(written.error())));
        if (written_since)
          return done(fail(ErrorCode::kConflict, "the row was written meanwhile; ask again"));
        done(std::move(answer));
      });
}

void StoreViews::settle(const ViewSettlement& settlement,
                        std::move_only_function<void(Result<void>)> done) {
  const ViewRow& row = settlement.row;
  if (!has_views(row.base)) return done({});
  ViewTaskPlace place{row.base, row.position, row.partition_key, false, row.clustering_key, 0};
  std::vector<Bytes> erased;
  // Only what the execution has seen; later tasks stay.
  for (const uint64_t sequence : settlement.sequences) {
    place.sequence = sequence;
    erased.push_back(view_task_key(place));
  }
  ViewRecords puts;
  const base::Hash128 records = base::xxh3_128(records_of(row));
  std::optional<uint64_t> noted;
  if (!settlement.names.empty()) {
    // For whoever executes next: under these names the row is in the views now.
    ViewTask note;
    note.names = settlement.names;
    place.sequence = kViewNotes + static_cast<uint64_t>(settlement.stamp.us);
    puts.emplace_back(view_task_key(place), view_task_value(note, false));
    std::erase(erased, puts.back().first);
    noted = place.sequence;
    cursors_.begin_note(records, *noted);
  }
  backend_.write(
      puts, erased,
      [this, alive = alive_, records, noted, stamp = settlement.stamp,
       sequences = settlement.sequences, done = std::move(done)](Result<void> written) mutable {
        if (*alive && noted) cursors_.end_note(records, *noted);
        if (*alive && written) cursors_.settled(records, stamp, sequences);
        done(std::move(written));
      });
}

void StoreViews::add_task(const ViewRow& row, ViewNamesByView names,
                          std::move_only_function<void(Result<void>)> done) {
  const Base* const base = find(row.base);
  if (base == nullptr || base->makers == nullptr) return done(no_views());
  ViewRecords puts;
  const int64_t now_us = backend_.wall_time_us();
  put_task({row, false, next_sequence(), now_us}, {now_us, std::move(names), {}, {}}, puts);
  backend_.write(puts, {}, std::move(done));
}

void StoreViews::expand(const ViewTaskEntry& range,
                        std::move_only_function<void(Result<bool>)> done) {
  // One that is not there then is over.
  // A range that was put in this turn is not in RocksDB before.
  backend_.when_written([this, alive = alive_, range, done = std::move(done)]() mutable {
    if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
    expand_written(range, std::move(done));
  });
}

void StoreViews::expand_written(const ViewTaskEntry& range,
                                std::move_only_function<void(Result<bool>)> done) {
  const auto expanded = std::make_shared<ExpandedRange>();
  backend_.read(
      base::kNoDeadline,
      [expanded, range](KeyView& keys) -> Result<void> {
        TETRAD_TRY(*expanded, expand_range(keys, range, kExpandedRowsMax));
        return {};
      },
      [this, alive = alive_, expanded, range, done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(std::unexpected(std::move(read.error())));
        if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
        if (!expanded->is_there) return done(true);
        ViewRecords puts;
        ViewTaskEntry entry{range.row, false, 0, expanded->task.time_us};
        for (Bytes& clustering_key : expanded->clustering_keys) {
          entry.row.clustering_key = std::move(clustering_key);
          entry.sequence = next_sequence();
          put_task(entry, {entry.time_us, {}, {}, {}}, puts);
        }
        std::vector<Bytes> erased;
        if (expanded->cursor) {
          // More rows are left: the range stays, with a cursor.
          expanded->task.cursor = *expanded->cursor;
          puts.emplace_back(key_of(range), view_task_value(expanded->task, true));
        } else {
          erased.push_back(key_of(range));
        }
        backend_.write(puts, erased,
                       [is_over = !expanded->cursor.has_value(),
                        done = std::move(done)](Result<void> written) mutable {
                         if (!written) return done(std::unexpected(std::move(written.error())));
                         done(is_over);
                       });
      });
}

void StoreViews::list(TableIncarnation base, Bytes after, size_t keys_max,
                      std::move_only_function<void(Result<ViewTaskPage>)> done) {
  const auto page = std::make_shared<ViewTaskPage>();
  backend_.read(
      base::kNoDeadline,
      [page, base, after = std::move(after), keys_max](KeyView& keys) -> Result<void> {
        TETRAD_TRY(*page, list_tasks(keys, base, after, keys_max));
        return {};
      },
      [page, done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(std::unexpected(std::move(read.error())));
        done(std::move(*page));
      });
}

// ---- building ----

bool StoreViews::is_built(TableIncarnation base, TableIncarnation view) const {
  const auto found = bases_.find(base.value);
  if (found == bases_.end() || !found->second.knows(view)) return false;
  const auto build = found->second.builds.find(view);
  return build != found->second.builds.end() && build->second.built;
}

void StoreViews::build(TableIncarnation base, TableIncarnation view, uint64_t bytes_max,
                       std::move_only_function<void(Result<ViewBuildPage>)> done) {
  Base* const known = find(base);
  if (known == nullptr || !known->knows(view)) return done(no_views());
  const ViewBuild& begun = known->builds[view];
  if (begun.built) {
    ViewBuildPage page;
    page.built = true;
    return done(page);
  }
  // Rows that are on their way to RocksDB when the view becomes known would be missed.
  // What was applied before the view was known has no task.
  if (TETRAD_MUTANT(view_built_without_barrier))
    return read_build(base, view, bytes_max, std::move(done));
  backend_.when_written(
      [this, alive = alive_, base, view, bytes_max, done = std::move(done)]() mutable {
        if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
        read_build(base, view, bytes_max, std::move(done));
      });
}

void StoreViews::read_build(TableIncarnation base, TableIncarnation view, uint64_t bytes_max,
                            std::move_only_function<void(Result<ViewBuildPage>)> done) {
  Base* const known = find(base);
  if (known == nullptr || !known->knows(view)) return done(no_views());
  const ViewBuild begun = known->builds[view];
  const auto built = std::make_shared<BuiltTasks>();
  backend_.read(
      base::kNoDeadline,
      [built, base, makers = known->makers, after = begun.after,
       bytes_max](KeyView& keys) -> Result<void> {
        TETRAD_TRY(*built, tasks_of_rows(keys, base, *makers, after, bytes_max));
        return {};
      },
      [this, alive = alive_, base, view, after = begun.after, built,
       done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(std::unexpected(std::move(read.error())));
        if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
        write_build(base, view, after, std::move(*built), std::move(done));
      });
}

void StoreViews::write_build(TableIncarnation base, TableIncarnation view, const Bytes& after,
                             BuiltTasks built,
                             std::move_only_function<void(Result<ViewBuildPage>)> done) {
  Base* const known = find(base);
  if (known == nullptr || !known->knows(view)) return done(no_views());
  ViewBuild& begun = known->builds[view];
  // Begun anew meanwhile (make_tasks): this page is of the old build.
  if (begun.after != after) return done(fail(ErrorCode::kConflict, "the build has begun anew"));
  ViewRecords puts;
  const int64_t now_us = backend_.wall_time_us();
  for (auto& [row, names] : built.rows)
    put_task({std::move(row), false, next_sequence(), now_us}, {now_us, std::move(names), {}, {}},
             puts);
  begun = {built.exhausted, built.next};
  puts.emplace_back(build_key(base, view), build_value(begun));
  ViewBuildPage page{built.exhausted, built.rows.size(), built.position};
  backend_.write(puts, {}, [page, done = std::move(done)](Result<void> written) mutable {
    if (!written) return done(std::unexpected(std::move(written.error())));
    done(page);
  });
}

}  // namespace tetrad::storage
