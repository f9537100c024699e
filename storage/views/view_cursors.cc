// SPDX-License-Identifier: Apache-2.0
// The cursors of rows' tasks and notes; view_cursors.h has the steps.
#include "storage/views/view_cursors.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::storage {

namespace {

constexpr size_t kReadsOfARowMax = 4;
constexpr uint64_t kNoNote = std::numeric_limits<uint64_t>::max();

}  // namespace

// Rows with notes on their way must stay: a read that begins must hear of these.
ViewCursors::Row& ViewCursors::row_of(const base::Hash128& row) {
  if (rows_.size() >= rows_max_ && !rows_.contains(row))
    std::erase_if(rows_, [](const auto& known) { return known.second.notes.empty(); });
  return rows_[row];
}

ViewRecordsFrom ViewCursors::begin_read(const base::Hash128& row, ViewStamp stamp) {
  Row& known = row_of(row);
  const auto lowest = std::ranges::min_element(known.notes);
  if (known.reads.size() == kReadsOfARowMax) known.reads.erase(known.reads.begin());
  known.reads.push_back({stamp, lowest == known.notes.end() ? kNoNote : *lowest});
  return known.from;
}

void ViewCursors::begin_note(const base::Hash128& row, uint64_t sequence) {
  TETRAD_ASSERT(sequence >= kViewNotes);
  Row& known = row_of(row);
  known.notes.push_back(sequence);
  known.from.notes = std::min(known.from.notes, sequence);
  for (Read& read : known.reads) read.lowest_unseen = std::min(read.lowest_unseen, sequence);
}

void ViewCursors::end_note(const base::Hash128& row, uint64_t sequence) {
  const auto known = rows_.find(row);
  TETRAD_ASSERT(known != rows_.end());
  const auto note = std::ranges::find(known->second.notes, sequence);
  TETRAD_ASSERT(note != known->second.notes.end());
  known->second.notes.erase(note);
}

void ViewCursors::settled(const base::Hash128& row, ViewStamp stamp,
                          const std::vector<uint64_t>& sequences) {
  const auto known = rows_.find(row);
  if (known == rows_.end()) return;
  auto& [from, notes, reads] = known->second;
  const auto read = std::ranges::find(reads, stamp, &Read::stamp);
  if (read == reads.end()) return;
  const auto first_note = std::ranges::lower_bound(sequences, kViewNotes);
  if (first_note != sequences.begin()) from.tasks = std::max(from.tasks, *(first_note - 1) + 1);
  if (first_note != sequences.end()) {
    // Behind the last note that it has seen, unless there are others that it has not.
    from.notes = std::max(from.notes, std::min(read->lowest_unseen, sequences.back() + 1));
  }
  if (TETRAD_MUTANT(view_cursor_past_notes))
    from.notes = kViewNotes + static_cast<uint64_t>(stamp.us) + 1;
  reads.erase(read);
}

}  // namespace tetrad::storage
