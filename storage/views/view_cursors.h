// SPDX-License-Identifier: Apache-2.0
// Where the tasks and notes of a base row begin, as far as that is known. Each execution erases what
// it has read and writes a note with a higher sequence; until a flush drops what was erased, a read
// from the first sequence on would pass over all that the row ever had: a row that is written all
// the time would get slower with each write.
//
//   1. A read begins at what is known to be the row's first record (begin_read), and is remembered
//      by its stamp.
//   2. Notes that are on their way when a read begins, or are written later, may be missing in it:
//      the lowest of them is remembered with the read (begin_note).
//   3. When the settlement of a read is written, its tasks up to the last one that it has seen are
//      gone, since tasks are written in the order of their sequences, and so are its notes: the
//      row's first record is behind these, and not behind a note of 2 (settled).
//
// A note is written with the sequence of its stamp, so one may come before those that are known: it
// lowers the cursor at once. What is forgotten here costs a longer read and nothing else.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "storage/views/view_stamps.h"
#include "storage/views/view_task.h"

namespace tetrad::storage {

/// Sequences below which a row has no record.
struct ViewRecordsFrom {
  uint64_t tasks = 0, notes = kViewNotes;
};

/// Of the rows of one store that were read last. Owned by its StoreViews, on its thread. Always: no
/// record of a row that is in the store, or on its way there, is below the row's cursors.
class ViewCursors {
 public:
  explicit ViewCursors(size_t rows_max) : rows_max_(rows_max) {}

  /// `row`: of the bytes that its records' keys begin with.
  ViewRecordsFrom begin_read(const base::Hash128& row, ViewStamp stamp);
  /// A note is about to be written; each has its end, whatever became of it.
  void begin_note(const base::Hash128& row, uint64_t sequence);
  void end_note(const base::Hash128& row, uint64_t sequence);
  /// What the read of this stamp has seen is erased: `sequences`, ascending.
  void settled(const base::Hash128& row, ViewStamp stamp, const std::vector<uint64_t>& sequences);

  size_t size() const { return rows_.size(); }

 private:
  /// A read that may be settled.
  struct Read {
    ViewStamp stamp;
    uint64_t lowest_unseen = 0;  // note
  };
  struct Row {
    ViewRecordsFrom from;
    std::vector<uint64_t> notes;  // on their way
    std::vector<Read> reads;      // the last ones
  };
  struct Hasher {
    size_t operator()(const base::Hash128& row) const { return row.low; }
  };
  Row& row_of(const base::Hash128& row);

  const size_t rows_max_;
  std::unordered_map<base::Hash128, Row, Hasher> rows_;
};

}  // namespace tetrad::storage
