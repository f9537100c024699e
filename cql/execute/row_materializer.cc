// SPDX-License-Identifier: Apache-2.0
// A stored row becomes values by slot (RowView). Views point into the record, the partition key,
// key_values_ (clustering values as decoded) or the arena (collections); they hold until the next
// row, the arena's until it is emptied.
//
// 1. start_partition(): components of the partition key; static cells from the header.
// 2. read_row(): clustering values are decoded as far as slots need them; then cells by column id.
//    Cells that have expired or are of dropped columns are left out.
// 3. Multi-cell columns collect their parts and are put together at the end of the record
//    (finish_collection).
//
// read_row() answers whether the row is live: its liveness, or any live cell that is not the key
// cell.
#include "cql/execute/row_materializer.h"

#include "base/byte_io.h"
#include "cql/execute/map_entry.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"
#include "replication/counters/counter_messages.h"

namespace tetrad::cql {

RowMaterializer::RowMaterializer(const RowLayout& layout, base::Arena& arena, int64_t now_s)
    : layout_(layout), arena_(arena), now_s_(now_s) {
  row_.values.resize(layout.slots.size());
  if (layout.wants_times) {
    row_.times.resize(layout.slots.size());
    row_.elements.resize(layout.slots.size());
  }
  for (const bool many : layout.is_multi_cell) {
    if (many) {
      parts_.resize(layout.slots.size());
      break;
    }
  }
}

Result<void> RowMaterializer::start_partition(const storage::PartitionData& partition) {
  if (partition.header.empty()) return start_partition(partition.partition_key, nullptr);
  TETRAD_TRY_VOID(storage::decode_row_record_into(partition.header, record_));
  return start_partition(partition.partition_key, &record_);
}

Result<void> RowMaterializer::start_partition(BytesView partition_key,
                                              const storage::RowRecord* header) {
  if (layout_.partition_slots.size() == 1) {
    if (const int32_t slot = layout_.partition_slots[0]; slot >= 0) {
      row_.values[static_cast<size_t>(slot)] = partition_key;
    }
  } else {
    TETRAD_TRY(const auto components,
               partitioner::split_partition_key(partition_key, layout_.partition_slots.size()));
    for (size_t i = 0; i < components.size(); ++i) {
      if (const int32_t slot = layout_.partition_slots[i]; slot >= 0) {
        row_.values[static_cast<size_t>(slot)] = components[i];
      }
    }
  }
  has_live_static_ = false;
  static_bytes_ = 0;
  clear(layout_.static_slots);
  if (header == nullptr) return {};
  TETRAD_TRY(has_live_static_, read_cells(*header, layout_.static_slots, true));
  return {};
}

void RowMaterializer::clear_row() {
  row_bytes_ = 0;
  for (const int32_t slot : layout_.clustering_slots) {
    if (slot >= 0) row_.values[static_cast<size_t>(slot)].reset();
  }
  clear(layout_.regular_slots);
}

void RowMaterializer::clear(const std::vector<int32_t>& slots) {
  for (const int32_t slot : slots) {
    row_.values[static_cast<size_t>(slot)].reset();
    if (layout_.wants_times) {
      row_.times[static_cast<size_t>(slot)] = {};
      row_.elements[static_cast<size_t>(slot)].clear();
    }
  }
}

Result<bool> RowMaterializer::read_row(const storage::RowData& row) {
  TETRAD_TRY_VOID(storage::decode_row_record_into(row.record, record_));
  return read_row(row.clustering_key, record_);
}

Result<bool> RowMaterializer::read_row(BytesView clustering_key, const storage::RowRecord& record) {
  const auto clustering = layout_.table->clustering();
  BytesView key = clustering_key;
  key_values_.clear();
  for (size_t i = 0; i < layout_.clustering_read_count; ++i) {
    const int32_t slot = layout_.clustering_slots[i];
    if (slot < 0) {
      TETRAD_TRY_VOID(skip_ordered(key, *clustering[i].type, clustering[i].descending));
      continue;
    }
    const size_t start = key_values_.size();
    TETRAD_TRY(const bool present,
               decode_ordered_to(key_values_, key, *clustering[i].type, clustering[i].descending));
    auto& value = row_.values[static_cast<size_t>(slot)];
    // key_values_ may move while it grows, so only sizes are noted first.
    if (present) {  // where it is, is said when all of them are there
      value = BytesView(nullptr, key_values_.size() - start);
    } else {
      value.reset();
    }
  }
  const char* at = key_values_.data();
  for (size_t i = 0; i < layout_.clustering_read_count; ++i) {
    const int32_t slot = layout_.clustering_slots[i];
    if (slot < 0) continue;
    auto& value = row_.values[static_cast<size_t>(slot)];
    if (!value) continue;
    value = BytesView(at, value->size());
    at += value->size();
  }
  clear(layout_.regular_slots);
  row_bytes_ = clustering_key.size();
  return read_cells(record, layout_.regular_slots, false);
}

Result<bool> RowMaterializer::read_cells(const storage::RowRecord& record,
                                         const std::vector<int32_t>& slots, bool is_static) {
  bool live = !is_static && record.liveness.live_at(now_s_);
  uint64_t bytes = 0;
  for (const storage::Cell& cell : record.cells) {
    if (!cell.live_at(now_s_)) continue;
    // Column 0 comes first in a record, but after the key was decoded: its bytes replace the
    // decoded ones.
    if (cell.column_id == storage::kKeyCellColumnId) {
      if (is_static || layout_.clustering_read_count == 0) continue;
      // The bytes that the clustering key had when it was written.
      const char* next = cell.value.data();
      const char* const end = next + cell.value.size();
      for (size_t i = 0; i < layout_.clustering_read_count && end - next >= 4; ++i) {
        const auto size = base::load_big_endian<int32_t>(next);
        next += 4;
        if (size < 0 || size > end - next) break;
        if (const int32_t slot = layout_.clustering_slots[i]; slot >= 0) {
          row_.values[static_cast<size_t>(slot)] = BytesView(next, static_cast<size_t>(size));
        }
        next += size;
      }
      continue;
    }
    if (cell.column_id >= layout_.slot_by_id.size()) continue;
    const int32_t slot = layout_.slot_by_id[cell.column_id];
    // A column that was dropped, or one that a newer schema has added.
    if (slot == RowLayout::kUnknown) continue;
    if (!layout_.dropped_until_us.empty() &&
        cell.timestamp_us <= layout_.dropped_until_us[cell.column_id]) {
      continue;
    }
    // Before the slot is looked at: a cell that the statement does not read makes the row live,
    // too.
    live = true;
    bytes += cell.path.size() + cell.value.size();
    if (slot < 0) continue;
    const auto at = static_cast<size_t>(slot);
    const CellTimes times{cell.timestamp_us, cell.ttl_s, cell.expiry_s};
    if (!layout_.is_multi_cell[at]) {
      row_.values[at] = cell.value;
      if (layout_.wants_times) row_.times[at] = times;
    } else if (cell.has_path) {
      parts_[at].push_back({cell.path, cell.value, times});
    }
  }
  // What the request units of the read are computed from.
  (is_static ? static_bytes_ : row_bytes_) += bytes;
  if (!parts_.empty()) {
    for (const int32_t slot : slots) {
      if (!parts_[static_cast<size_t>(slot)].empty()) TETRAD_TRY_VOID(finish_collection(slot));
    }
  }
  return live;
}

// Parts come sorted by path, which is the order of elements.
Result<void> RowMaterializer::finish_collection(int32_t slot) {
  const auto at = static_cast<size_t>(slot);
  const DataType& type = *layout_.slots[at]->type;
  std::vector<Part>& parts = parts_[at];
  const auto remember = [&](BytesView key, const Part& part) {
    if (layout_.wants_times) row_.elements[at].push_back({key, part.times});
  };
  if (type.kind() == TypeKind::kUdt) {
    std::vector<OptionalView> fields(type.components().size());
    for (const Part& part : parts) {
      if (part.path.size() != 2)
        return fail(ErrorCode::kCorruption, "a field's path of {} bytes", part.path.size());
      const auto index = base::load_big_endian<uint16_t>(part.path.data());
      // A field that a newer version of the type has added.
      if (index < fields.size()) {
        fields[index] = part.value;
        remember(part.path, part);
      }
    }
    row_.values[at] = arena_.adopt(join_tuple(fields));
    parts.clear();
    return {};
  }
  if (type.is_counter()) return finish_counter(at);
  CollectionBuilder builder;
  const bool marked = type.kind() == TypeKind::kMap && has_entry_mark(*type.key());
  const auto key_of = [&](const Part& part, const DataType& key_type) -> Result<BytesView> {
    BytesView path = part.path;
    scratch_.clear();
    TETRAD_TRY_VOID(decode_ordered_to(scratch_, path, key_type, false));
    return layout_.wants_times ? arena_.copy(scratch_) : BytesView(scratch_);
  };
  for (const Part& part : parts) {
    switch (type.kind()) {
      case TypeKind::kList:
        builder.add(part.value);
        remember(part.path, part);
        break;
      case TypeKind::kSet: {
        if (!part.value.empty()) {  // the original bytes of a lossy element
          builder.add(part.value);
          remember(part.value, part);
          break;
        }
        TETRAD_TRY(const BytesView element, key_of(part, *type.element()));
        builder.add(element);
        remember(element, part);
        break;
      }
      default: {
        MapEntry entry{part.value, std::nullopt};
        if (marked) {
          TETRAD_TRY(entry, decode_map_entry(part.value));
        }
        if (!entry.key) {
          TETRAD_TRY(entry.key, key_of(part, *type.key()));
        }
        builder.add(*entry.key);
        builder.add(entry.value);
        remember(*entry.key, part);
        break;
      }
    }
  }
  row_.values[at] = arena_.adopt(std::move(builder).finish(type.kind() == TypeKind::kMap ? 2 : 1));
  parts.clear();
  return {};
}

// A counter has a cell for each shard that has counted; its value is the sum of their totals.
Result<void> RowMaterializer::finish_counter(size_t at) {
  uint64_t sum = 0;  // wraps around, as Cassandra's
  CellTimes latest{storage::kNoTimestamp, 0, 0};
  for (const Part& part : parts_[at]) {
    const auto total = replication::decode_total(part.value);
    if (!total)
      return fail(ErrorCode::kCorruption, "a total of a counter of {} bytes", part.value.size());
    sum += static_cast<uint64_t>(*total);
    if (part.times.timestamp_us > latest.timestamp_us) latest = part.times;
  }
  row_.values[at] = arena_.adopt(make_bigint(static_cast<int64_t>(sum)));
  if (layout_.wants_times) row_.times[at] = latest;
  parts_[at].clear();
  return {};
}

}  // namespace tetrad::cql
