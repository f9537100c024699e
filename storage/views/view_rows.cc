// SPDX-License-Identifier: Apache-2.0
// Rows of base tables with their tasks and notes, and lists of tasks, as a store reads them.
#include "storage/views/view_rows.h"

#include <algorithm>
#include <limits>

#include "base/byte_io.h"
#include "storage/engine/partition_reader.h"
#include "storage/engine/range_export.h"
#include "storage/index/claim.h"

namespace tetrad::storage {
namespace {

constexpr size_t kTasksOfAReadMax = 512, kNamesOfAReadBytes = 1 << 20;

ViewRow row_of(const ViewTaskPlace& place) {
  return {place.base, place.position, Bytes(place.partition_key), Bytes(place.clustering_key)};
}

Bytes at(BytesView prefix, uint64_t sequence) {
  Bytes key(prefix);
  base::ByteWriter(key).u64(sequence);
  return key;
}

void join(const ViewNamesByView& more, ViewNamesByView& names) {
  for (const auto& [view, of_view] : more) names[view].insert(of_view.begin(), of_view.end());
}

/// What the row's records of these keys say; of many those that come first, the others are of a
/// later execution.
Result<void> add_records(KeyView& keys, const ViewRow& row, const Bytes& start, Bytes end,
                         size_t count_max, ViewRowAnswer& answer) {
  const auto it = keys.iterate({start, std::move(end), false, false});
  size_t count = 0, bytes = 0;
  for (it->seek(start); it->valid(); it->next()) {
    const auto place = decode_view_task_key(it->key());
    // A clustering key may begin with another one: their records lie among each other.
    if (!place || place->of_range || place->clustering_key != row.clustering_key) continue;
    if (count >= count_max || (bytes >= kNamesOfAReadBytes && place->sequence < kViewNotes)) break;
    TETRAD_TRY(const ViewTask task, decode_view_task(it->value(), false));
    join(task.names, answer.names);
    answer.sequences.push_back(place->sequence);
    ++count;
    bytes += it->value().size();
  }
  return it->status();
}

}  // namespace

Bytes records_of(const ViewRow& row) {
  return view_tasks_of_row({row.base, row.position, row.partition_key, false, row.clustering_key});
}

Result<ViewNamesByView> names_of_record(const ViewMakers& makers, BytesView record) {
  ViewNamesByView names;
  for (const ViewMakerPtr& maker : makers) {
    ViewNames of_view;
    TETRAD_TRY_VOID(add_view_names(*maker, record, of_view));
    if (!of_view.empty()) names.emplace(maker->incarnation(), std::move(of_view));
  }
  return names;
}

ReadCommand read_of(const ViewRow& row) {
  ReadCommand command;
  command.incarnation = row.base;
  command.position = row.position;
  command.partition_key = row.partition_key;
  command.rows = {row.clustering_key};
  command.wants_static = false;
  command.live_only = false;
  command.bytes_limit = ReadCommand::kNoBytesMax;
  return command;
}

Result<ViewRowAnswer> read_view_row(KeyView& keys, const ViewRow& row,
                                    const TableContents& contents, ViewRecordsFrom from) {
  ViewRowAnswer answer;
  TETRAD_TRY(const ReadResult found,
             read_partitions(keys, read_of(row), contents, ReadCommand::kNoLimit));
  for (const PartitionData& partition : found.partitions)
    for (const RowData& data : partition.rows)
      if (data.clustering_key == row.clustering_key) answer.record = data.record;
  const Bytes prefix = records_of(row);
  TETRAD_TRY_VOID(add_records(keys, row, at(prefix, from.tasks), at(prefix, kViewNotes),
                              kTasksOfAReadMax, answer));
  // There are few: each execution makes one of those that it has read.
  TETRAD_TRY_VOID(add_records(keys, row, at(prefix, from.notes), past_prefix(prefix),
                              std::numeric_limits<size_t>::max(), answer));
  std::ranges::sort(answer.sequences);
  return answer;
}

Result<ViewNamesByView> unnamed_of(const ViewMakers& makers, const ViewRowAnswer& answer) {
  ViewNamesByView unnamed;
  if (answer.record.empty()) return unnamed;
  TETRAD_TRY(const RowRecord record, decode_row_record(answer.record));
  for (const ViewMakerPtr& maker : makers) {
    const auto name = view_name_of(*maker, record);
    if (!name) continue;
    const auto named = answer.names.find(maker->incarnation());
    if (named == answer.names.end() || !named->second.contains(*name))
      unnamed[maker->incarnation()].insert(*name);
  }
  return unnamed;
}

Result<ExpandedRange> expand_range(KeyView& keys, const ViewTaskEntry& range, size_t keys_max) {
  ExpandedRange expanded;
  const ViewRow& row = range.row;
  const Bytes own = view_task_key(
      {row.base, row.position, row.partition_key, true, row.clustering_key, range.sequence});
  TETRAD_TRY(const auto value, keys.get(own));
  // It has been expanded to its end and erased meanwhile.
  if (!value) {
    expanded.is_there = false;
    return expanded;
  }
  TETRAD_TRY(expanded.task, decode_view_task(*value, true));
  // Behind what an earlier page has done.
  const Bytes& from = std::max(row.clustering_key, expanded.task.cursor);
  const auto key_at = [&](BytesView clustering_key) {
    return view_tasks_of_row({row.base, row.position, row.partition_key, false, clustering_key});
  };
  const Bytes start = key_at(from), end = key_at(expanded.task.end);
  const auto it = keys.iterate({start, end, false, false});
  size_t looked_at = 0;
  for (it->seek(start); it->valid(); it->next()) {
    const auto place = decode_view_task_key(it->key());
    if (!place || place->of_range) continue;
    const bool is_new = expanded.clustering_keys.empty() ||
                        expanded.clustering_keys.back() != place->clustering_key;
    if (is_new && looked_at >= keys_max) {
      expanded.cursor = Bytes(place->clustering_key);
      break;
    }
    ++looked_at;
    const bool inside = from <= place->clustering_key && place->clustering_key < expanded.task.end;
    if (is_new && inside) expanded.clustering_keys.emplace_back(place->clustering_key);
  }
  TETRAD_TRY_VOID(it->status());
  return expanded;
}

Result<ViewTaskPage> list_tasks(KeyView& keys, TableIncarnation base, BytesView after,
                                size_t keys_max) {
  ViewTaskPage page;
  const Bytes prefix = view_tasks_of_table(base);
  const auto it = keys.iterate({prefix, past_prefix(prefix), false, false});
  size_t looked_at = 0;
  for (it->seek(after.empty() ? BytesView(prefix) : after); it->valid(); it->next()) {
    if (it->key() == after) continue;
    if (looked_at++ >= keys_max) {
      page.exhausted = false;
      break;
    }
    page.next = it->key();
    const auto place = decode_view_task_key(it->key());
    if (!place || place->sequence >= kViewNotes) continue;
    TETRAD_TRY(const ViewTask task, decode_view_task(it->value(), place->of_range));
    page.tasks.push_back({row_of(*place), place->of_range, place->sequence, task.time_us});
  }
  TETRAD_TRY_VOID(it->status());
  return page;
}

Result<BuiltTasks> tasks_of_rows(KeyView& keys, TableIncarnation base, const ViewMakers& makers,
                                 BytesView after, uint64_t bytes_max) {
  TETRAD_TRY(const Store::ExportPage page, export_page(keys, base, SchemaVersion{}, RingRange(),
                                                       after, bytes_max, ExportParts::kRows));
  BuiltTasks built;
  for (const Mutation& mutation : page.mutations) {
    built.position = mutation.position;
    for (const RowChange& row : mutation.rows) {
      TETRAD_TRY(ViewNamesByView names, names_of_record(makers, row.record));
      built.rows.emplace_back(
          ViewRow{base, mutation.position, mutation.partition_key, row.clustering_key},
          std::move(names));
    }
  }
  built.exhausted = page.exhausted;
  built.next = page.next;
  if (page.exhausted) built.position = RingPosition::highest();
  return built;
}

}  // namespace tetrad::storage
