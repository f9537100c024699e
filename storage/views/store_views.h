// SPDX-License-Identifier: Apache-2.0
// What a store does for the materialized views of its base tables (rule 24): it keeps tasks and
// notes (view_task.h), and answers who executes a task.
//
//   1. Every change of a base table's row leaves a task in its own batch, whatever way it came: it
//      names what the change may have put into each view. A deletion of many rows leaves one task
//      of the range, which the store turns into tasks of the rows that it has tasks or notes of.
//   2. A read for an image raises the row's bucket to the image's stamp (view_stamps.h), and gives
//      the row, all its names and which tasks and notes it has seen. What the row's own value
//      names is noted before it is answered.
//   3. An execution that is over is settled: what its read has seen here goes, and a note of the
//      names that are in the view now comes. What came meanwhile stays.
//   4. A view is built by tasks for the rows that are there, a page at a time.
//
// So a name that any image may have been made of is on every store that image's read has asked,
// until an image with a later stamp, read here, has deleted it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/reactor.h"
#include "base/result.h"
#include "storage/engine/key_view.h"
#include "storage/views/view_cursors.h"
#include "storage/views/view_stamps.h"
#include "storage/views/view_task.h"

namespace tetrad::storage {

// Whose headers stand on this one: storage/engine/store.h and partition_reader.h.
struct ReadCommand;
struct TableContents;

/// Keys and values to put.
using ViewRecords = std::vector<std::pair<Bytes, Bytes>>;

/// What StoreViews needs of its store; all on the store's thread.
class ViewBackend {
 public:
  virtual ~ViewBackend() = default;
  /// What a read() that begins now may find beside the rows of `command`.
  virtual TableContents contents_of(const ReadCommand& command) const = 0;
  /// `work` sees one consistent state, in this call or on another thread, perhaps twice: what it
  /// made the first time counts for nothing then. `done` on the store's thread.
  virtual void read(base::Deadline deadline, std::function<Result<void>(KeyView&)> work,
                    std::move_only_function<void(Result<void>)> done) = 0;
  /// In one batch, behind all that was applied before.
  virtual void write(const ViewRecords& puts, const std::vector<Bytes>& erased,
                     std::move_only_function<void(Result<void>)> done) = 0;
  virtual void sync(std::move_only_function<void(Result<void>)> done) = 0;
  /// Runs `then`, perhaps at once, when reads see everything that was applied before.
  virtual void when_written(base::Callback then) = 0;
  /// A state that is read now has all mutations up to this one, and may lack later ones.
  virtual uint64_t seen_number() const = 0;
  /// Of the newest mutation of a bucket, in the order of seen_number().
  virtual uint64_t last_number(uint16_t bucket) const = 0;
  /// For tasks: only metrics of how long they wait come from it.
  virtual int64_t wall_time_us() const = 0;
};

/// A row of a base table.
struct ViewRow {
  TableIncarnation base;
  RingPosition position;
  Bytes partition_key, clustering_key;
  friend auto operator<=>(const ViewRow&, const ViewRow&) = default;
};

/// What a read for an image finds.
struct ViewRowAnswer {
  /// Set: a stamp as high as the read's was seen; all else is empty.
  std::optional<ViewStamp> seen;
  Bytes record;  // canonical, what its partition's tombstones hide left out; "": there is none
  ViewNamesByView names;
  std::vector<uint64_t> sequences;  // of its tasks and notes, ascending
};

/// What became of an execution.
struct ViewSettlement {
  ViewRow row;
  std::vector<uint64_t> sequences;  // that its read has seen here
  ViewNamesByView names;            // that are in views now
  ViewStamp stamp;
};

/// A task as it waits.
struct ViewTaskEntry {
  ViewRow row;  // of a range: its start
  bool of_range = false;
  uint64_t sequence = 0;
  int64_t time_us = 0;
};
/// A page of tasks, in the order of keys.
struct ViewTaskPage {
  std::vector<ViewTaskEntry> tasks;
  bool exhausted = true;
  Bytes next;
};

/// What comes of a page of a build.
struct ViewBuildPage {
  bool built = false;
  uint64_t rows = 0;
  RingPosition position;  // of the table's ring, how far the build is
};

/// How far a view is built in a store.
struct ViewBuild {
  bool built = false;
  Bytes after;  // what is before it has tasks; "" at the start
};

/// Belongs to its store. Callbacks run on the store's thread, perhaps inside the call, none after
/// the store was destroyed.
class StoreViews {
 public:
  /// `life`: of the store, above those of all before.
  StoreViews(ViewBackend& backend, std::shared_ptr<bool> alive)
      : backend_(backend), alive_(std::move(alive)) {}

  /// Whether one of the store's own keys is for load().
  static bool is_own_key(BytesView key);
  /// Takes what it says. Before all else.
  void load(BytesView key, BytesView value);
  void begin_life(uint64_t life);

  /// What is to be written once another schema is known.
  struct Changed {
    ViewRecords puts;  // of the store's own keys
    std::vector<Bytes> erased;
    bool none_left = false;  // the base's last view is gone, and so may its tasks and notes be
  };
  /// The views of a base table as the schema has them from now on; null: it has none. `next`: above
  /// the incarnations of all tables that this schema ever had. A store may know views that the
  /// schema is too old for, since metadata may have fallen back: they stay.
  Changed set(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next);
  Changed erase(TableIncarnation base);
  bool has_views(TableIncarnation base) const { return bases_.contains(base.value); }
  /// Null: none are known.
  ViewMakersPtr makers(TableIncarnation base) const {
    const auto found = bases_.find(base.value);
    return found == bases_.end() ? nullptr : found->second.makers;
  }
  /// Tables of which there was something when the store was opened, or since.
  std::vector<TableIncarnation> bases() const;

  /// Adds the tasks of a mutation that is about to be written in the same batch, and own keys:
  /// builds of views that the present schema is too old for begin anew.
  void make_tasks(const Mutation& mutation, ViewRecords& puts);
  /// `listener` runs for each task that is made.
  void on_task(std::function<void(ViewTaskEntry)> listener) { listener_ = std::move(listener); }

  /// Errors: kNotFound: no views of the table are known here; kConflict: again with a new read;
  /// those of reading the store.
  void read(ViewRow row, ViewStamp stamp, base::Deadline deadline,
            std::move_only_function<void(Result<ViewRowAnswer>)> done);
  void settle(const ViewSettlement& settlement, std::move_only_function<void(Result<void>)> done);
  /// Has the row executed, with these names too.
  void add_task(const ViewRow& row, ViewNamesByView names,
                std::move_only_function<void(Result<void>)> done);
  /// False: it is not over.
  void expand(const ViewTaskEntry& range, std::move_only_function<void(Result<bool>)> done);
  void list(TableIncarnation base, Bytes after, size_t keys_max,
            std::move_only_function<void(Result<ViewTaskPage>)> done);
  ViewStamp highest() const { return stamps_->highest(); }
  ViewStamp highest_of(TableIncarnation base, RingPosition position) const;

  bool is_built(TableIncarnation base, TableIncarnation view) const;
  void build(TableIncarnation base, TableIncarnation view, uint64_t bytes_max,
             std::move_only_function<void(Result<ViewBuildPage>)> done);

 private:
  static constexpr size_t kRowsWithCursors = 8'192;
  /// Of one base table; null makers: the schema is not known yet, but the store had views of it.
  struct Base {
    ViewMakersPtr makers;
    std::map<TableIncarnation, ViewBuild> builds;
    bool knows(TableIncarnation view) const;
  };
  Base* find(TableIncarnation base) {
    const auto found = bases_.find(base.value);
    return found == bases_.end() ? nullptr : &found->second;
  }
  uint64_t next_sequence();
  void put_task(const ViewTaskEntry& entry, const ViewTask& task, ViewRecords& puts);
  void read_raised(ViewRow row, ViewStamp stamp, base::Deadline deadline,
                   std::move_only_function<void(Result<ViewRowAnswer>)> done);
  void note_own_names(const ViewRow& row, const Base& base, ViewStamp stamp, uint64_t seen,
                      ViewRowAnswer answer,
                      std::move_only_function<void(Result<ViewRowAnswer>)> done);
  void ask_bound(ViewStamp bound);
  void expand_written(const ViewTaskEntry& range, std::move_only_function<void(Result<bool>)> done);
  void read_build(TableIncarnation base, TableIncarnation view, uint64_t bytes_max,
                  std::move_only_function<void(Result<ViewBuildPage>)> done);
  void write_build(TableIncarnation base, TableIncarnation view, const Bytes& after,
                   struct BuiltTasks built,
                   std::move_only_function<void(Result<ViewBuildPage>)> done);

  ViewBackend& backend_;
  const std::shared_ptr<bool> alive_;
  uint64_t life_ = 0, tasks_made_ = 0;
  std::unordered_map<uint32_t, Base> bases_;
  ViewStamp bound_;  // of the life before
  std::optional<ViewStamps> stamps_;
  ViewCursors cursors_{kRowsWithCursors};
  std::vector<base::Callback> for_bound_;  // reads that wait until a bound is synced
  std::function<void(ViewTaskEntry)> listener_;
};

}  // namespace tetrad::storage
