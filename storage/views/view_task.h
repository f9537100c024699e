// SPDX-License-Identifier: Apache-2.0
// Records of materialized views (rule 24), which a store keeps of the rows of base tables. They are
// the store's own: none is streamed, compared or repaired. They lie behind the rows of all tables:
//
//   key   := u32 0xfffffffd, u32 incarnation of the base, u64 token (sign bit flipped), u64 hash of
//            the partition key, u16 length, partition key, u8 kind, clustering key, u64 sequence
//   value := zigzag time of the change us, (row | range)
//   row   := (u32 incarnation of a view, varint count, name*)*; each view once, ascending
//   name  := bytes value of the key column, bytes key cell; of a view each once, ascending
//   range := bytes end, bytes cursor
//   example: fffffffd 00000007 7ffffffffffffffe 0000000000000003 0002 706b 02 636b 0000000000000009
//            -> d00f 00000008 02 016b00 026b3200
//            base 7, token -2, hash 3, partition key "pk", the row "ck", sequence 9 -> at 1000 us; of
//            view 8 the key values "k" and "k2" are named
//   example: fffffffd 00000007 7ffffffffffffffe 0000000000000003 0002 706b 01 61 000000000000000a
//            -> d00f 01ff 0162
//            rows from "a" to the end of the partition were deleted; those before "b" are done
//
// Fixed integers of keys are big-endian. Kind 1: the rows from the clustering key to the end; 2:
// one row. A sequence below 2^63 is a task's: what the store must see done after it took a change,
// written in the change's own batch, gone when an execution is over that has read this store after
// it. Sequences of tasks are given once in all lives of a store, so a task that is erased by its
// key is the one that was read. From 2^63 on it is a note: these names may be in the view, whose
// images have this stamp (less 2^63). Tasks and notes together name every row that the view may
// have of a base row.
#pragma once

#include <map>
#include <optional>

#include "storage/row/mutation.h"
#include "storage/views/view_image.h"

namespace tetrad::storage {

/// No table's.
inline constexpr TableIncarnation kViewTasksIncarnation{0xfffffffd};
/// For every key of a store; it costs next to nothing.
inline bool is_view_task_key(BytesView key) { return key.starts_with("\xff\xff\xff\xfd"); }

/// Where a record is. Views point into the key.
struct ViewTaskPlace {
  TableIncarnation base;
  RingPosition position;
  BytesView partition_key;
  bool of_range = false;     // else of one row
  BytesView clustering_key;  // of a range: its start
  uint64_t sequence = 0;
};

/// The first sequence of a note.
inline constexpr uint64_t kViewNotes = uint64_t{1} << 63;

using ViewNamesByView = std::map<TableIncarnation, ViewNames>;

/// What a record says.
struct ViewTask {
  int64_t time_us = 0;    // when the store took the change
  ViewNamesByView names;  // of a row
  Bytes end, cursor;      // of a range: all rows before the cursor are done
  friend bool operator==(const ViewTask&, const ViewTask&) = default;
};

Bytes view_task_key(const ViewTaskPlace& place);
/// Unset for what is no task.
std::optional<ViewTaskPlace> decode_view_task_key(BytesView key);

Bytes view_task_value(const ViewTask& task, bool of_range);
/// Errors: kCorruption.
Result<ViewTask> decode_view_task(BytesView value, bool of_range);

/// What the records of a base row begin with; other rows' may, too.
Bytes view_tasks_of_row(const ViewTaskPlace& row);
/// What all records of a base table begin with.
Bytes view_tasks_of_table(TableIncarnation base);

}  // namespace tetrad::storage
