// SPDX-License-Identifier: Apache-2.0
// Making and taking apart of tasks and notes of views; the formats stand in view_task.h.
#include "storage/views/view_task.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr size_t kSequenceBytes = sizeof(uint64_t);

KeyKind kind_of(const ViewTaskPlace& place) {
  return place.of_range ? KeyKind::kRangeTombstone : KeyKind::kRow;
}

Result<void> read_names(base::ByteReader& reader, ViewTask& task) {
  while (!reader.at_end()) {
    TETRAD_TRY(const uint32_t view, reader.read_u32());
    // One form for equal content: what is out of order was not written by this code.
    if (!task.names.empty() && !(task.names.rbegin()->first < TableIncarnation{view}))
      return fail(ErrorCode::kCorruption, "view {} of a task is out of order", view);
    TETRAD_TRY(const uint64_t count, reader.read_varint());
    ViewNames& names = task.names[{view}];
    for (uint64_t i = 0; i < count; ++i) {
      ViewName name;
      TETRAD_TRY(name.key_value, reader.read_bytes());
      TETRAD_TRY(name.key_cell, reader.read_bytes());
      if (!names.empty() && name <= *names.rbegin())
        return fail(ErrorCode::kCorruption, "a name of view {} of a task is out of order", view);
      names.insert(names.end(), std::move(name));
    }
  }
  return {};
}

}  // namespace

Bytes view_tasks_of_table(TableIncarnation base) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kViewTasksIncarnation.value);
  w.u32(base.value);
  return key;
}

Bytes view_tasks_of_row(const ViewTaskPlace& row) {
  Bytes of_base;
  append_storage_key(of_base, row.base, row.position, row.partition_key, kind_of(row),
                     row.clustering_key);
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kViewTasksIncarnation.value);
  w.raw(of_base);
  return key;
}

Bytes view_task_key(const ViewTaskPlace& place) {
  Bytes key = view_tasks_of_row(place);
  base::ByteWriter(key).u64(place.sequence);
  return key;
}

std::optional<ViewTaskPlace> decode_view_task_key(BytesView key) {
  constexpr size_t kPrefixBytes = sizeof(uint32_t);
  if (!is_view_task_key(key) || key.size() < kPrefixBytes + kSequenceBytes) return std::nullopt;
  const BytesView of_base = key.substr(kPrefixBytes, key.size() - kPrefixBytes - kSequenceBytes);
  const auto row = decode_storage_key(of_base);
  if (!row || (row->kind != KeyKind::kRow && row->kind != KeyKind::kRangeTombstone))
    return std::nullopt;
  return ViewTaskPlace{row->incarnation,
                       row->position,
                       row->partition_key,
                       row->kind == KeyKind::kRangeTombstone,
                       row->clustering_key,
                       base::load_big_endian<uint64_t>(key.data() + key.size() - kSequenceBytes)};
}

Bytes view_task_value(const ViewTask& task, bool of_range) {
  TETRAD_ASSERT(!of_range || task.names.empty());
  Bytes value;
  base::ByteWriter w(value);
  w.zigzag(task.time_us);
  if (of_range) {
    w.bytes(task.end);
    w.bytes(task.cursor);
    return value;
  }
  for (const auto& [view, names] : task.names) {
    w.u32(view.value);
    w.varint(names.size());
    for (const ViewName& name : names) {
      w.bytes(name.key_value);
      w.bytes(name.key_cell);
    }
  }
  return value;
}

Result<ViewTask> decode_view_task(BytesView value, bool of_range) {
  base::ByteReader reader(value);
  ViewTask task;
  TETRAD_TRY(task.time_us, reader.read_zigzag());
  if (!of_range) {
    TETRAD_TRY_VOID(read_names(reader, task));
    return task;
  }
  TETRAD_TRY(const BytesView end, reader.read_bytes());
  TETRAD_TRY(const BytesView cursor, reader.read_bytes());
  if (!reader.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes behind a task of a range", reader.remaining());
  task.end = end;
  task.cursor = cursor;
  return task;
}

}  // namespace tetrad::storage
