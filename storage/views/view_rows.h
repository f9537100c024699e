// SPDX-License-Identifier: Apache-2.0
// What tasks and notes are made of and what they say: the part of StoreViews that reads a view of
// the store's keys, on any thread.
#pragma once

#include "storage/engine/partition_reader.h"
#include "storage/views/store_views.h"

namespace tetrad::storage {

/// The names that a record gives in each view. Errors: kCorruption.
Result<ViewNamesByView> names_of_record(const ViewMakers& makers, BytesView record);

/// Reads one row with what hides parts of it.
ReadCommand read_of(const ViewRow& row);

/// What the keys of the row's tasks and notes begin with.
Bytes records_of(const ViewRow& row);

/// All but ViewRowAnswer::seen; of a row with many tasks the first ones. `contents`: what there may
/// be beside the row that read_of() asks for; `from`: the row has no records before. Errors:
/// kCorruption, and those of the view.
Result<ViewRowAnswer> read_view_row(KeyView& keys, const ViewRow& row,
                                    const TableContents& contents, ViewRecordsFrom from);

/// Names that the answer's record gives, and its tasks and notes do not. Errors: kCorruption.
Result<ViewNamesByView> unnamed_of(const ViewMakers& makers, const ViewRowAnswer& answer);

/// Some of the rows that a task of a range is to be turned into.
struct ExpandedRange {
  bool is_there = true;  // false: the task is over
  std::vector<Bytes> clustering_keys;
  std::optional<Bytes> cursor;  // unset: no row is left
  ViewTask task;
};
Result<ExpandedRange> expand_range(KeyView& keys, const ViewTaskEntry& range, size_t keys_max);

Result<ViewTaskPage> list_tasks(KeyView& keys, TableIncarnation base, BytesView after,
                                size_t keys_max);

/// A page of the rows of a base table, each with what a task of it says.
struct BuiltTasks {
  std::vector<std::pair<ViewRow, ViewNamesByView>> rows;
  bool exhausted = true;
  Bytes next;
  RingPosition position;
};
Result<BuiltTasks> tasks_of_rows(KeyView& keys, TableIncarnation base, const ViewMakers& makers,
                                 BytesView after, uint64_t bytes_max);

}  // namespace tetrad::storage
