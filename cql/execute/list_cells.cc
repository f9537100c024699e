// SPDX-License-Identifier: Apache-2.0
// Lists of many cells: the ids by which their elements sort, and the operations that need to know
// the elements that are stored.
//
// The path of an element is a time UUID, as in Cassandra: appending and prepending make a new id and
// read nothing. An element's index is stored nowhere; `c[i] = v` and `c = c - [...]` look for the
// i-th path, or for the paths of equal values, in ListContents, which was read before
// (read_lists.cc).
//
//   appended    time: now;                    sequence counts up from 2^29
//   prepended   time: as far before 2010-01-01 as now is behind it; each block of them has its
//               sequence below the last block's
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/cell_maker.h"
#include "cql/types/compare.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using storage::CellKind;
using Operation = ColumnOperation;

}  // namespace

// --- what a list holds ---

const std::vector<ListContents::Element>* ListContents::find(BytesView partition_key,
                                                             BytesView clustering_key,
                                                             const ColumnSchema& column) const {
  for (const Entry& entry : entries) {
    if (entry.column_id != column.id || entry.partition_key != partition_key) continue;
    if (column.kind == ColumnKind::kStatic ? entry.is_static
                                           : entry.clustering_key == clustering_key) {
      return &entry.elements;
    }
  }
  return nullptr;
}

// Sorted, so that a long list and many values to discard are not compared each with each.
Result<void> CellMaker::add_discarded(const ColumnSchema& column, BytesView taken,
                                      const Place& place, std::vector<Cell>& cells) {
  TETRAD_TRY(auto discarded, split_list(taken));
  const auto before = [&type = *column.type->element()](BytesView a, BytesView b) {
    return compare(type, a, b) < 0;
  };
  std::ranges::stable_sort(discarded, before);
  for (const auto& element : list_so_far(column, place, cells)) {
    const bool hit = std::ranges::binary_search(discarded, BytesView(element.value), before);
    if (hit) cells.push_back(at_path(tombstone(column.id), context_.arena.copy(element.path)));
  }
  return {};
}

Result<bool> CellMaker::add_at_index(const Operation& operation, const BoundValue& key,
                                     const BoundValue& value, const Place& place,
                                     std::vector<Cell>& cells) {
  const ColumnSchema& column = *operation.column;
  const bool is_set = operation.kind == Operation::Kind::kSetIndex;
  const int32_t index = read_int(key.bytes).value_or(0);
  const auto& list = list_so_far(column, place, cells);
  if (list.empty()) {
    if (is_set) {
      return fail(ErrorCode::kInvalid, "Attempted to set an element on a list which is null");
    }
    return fail(ErrorCode::kInvalid, "Attempted to delete an element from a list which is null");
  }
  if (index < 0 || static_cast<size_t>(index) >= list.size()) {
    return fail(ErrorCode::kInvalid, "List index {} out of bound, list has size {}", index,
                list.size());
  }
  // After the checks of the index, as in Cassandra.
  if (value.is_unset()) return false;
  const BytesView path = context_.arena.copy(list[static_cast<size_t>(index)].path);
  cells.push_back(at_path(
      is_set && value.has_bytes() ? value_cell(column.id, value.bytes) : tombstone(column.id),
      path));
  return true;
}

// Several operations of one statement on one list see each other's effect: `c[0] = 1, c[1] = 2`.
// The list as read is kept, and cells that were appended since are applied to it once, so many
// operations do not cost the square of the list.
const std::deque<ListContents::Element>& CellMaker::list_so_far(const ColumnSchema& column,
                                                                const Place& place,
                                                                const std::vector<Cell>& cells) {
  using Element = ListContents::Element;
  if (place.partition_key != lists_partition_ || place.clustering_key != lists_row_) {
    lists_.clear();
    lists_partition_ = place.partition_key;
    lists_row_ = place.clustering_key;
  }
  auto known = std::ranges::find(lists_, &column, &ListSoFar::column);
  // The vector was cleared for another row or header of the same key.
  if (known != lists_.end() && known->cells_taken > cells.size()) known = lists_.erase(known);
  if (known == lists_.end() || known->column != &column) {
    known = lists_.insert(lists_.end(), ListSoFar{&column, {}, 0});
    if (const auto* read = place.lists->find(place.partition_key, place.clustering_key, column))
      known->elements.assign(read->begin(), read->end());
  }
  auto& list = known->elements;
  for (; known->cells_taken < cells.size(); ++known->cells_taken) {
    const Cell& cell = cells[known->cells_taken];
    if (cell.column_id != column.id || !cell.has_path) continue;
    const auto at = std::ranges::lower_bound(list, cell.path, {}, &Element::path);
    const bool is_there = at != list.end() && at->path == cell.path;
    const bool is_value = cell.kind == CellKind::kValue;
    // The element read is newer than this write (USING TIMESTAMP): it stays.
    if (is_there && at->timestamp_us > cell.timestamp_us) continue;
    if (is_there && is_value && at->timestamp_us == cell.timestamp_us && at->value > cell.value) {
      continue;
    }
    if (!is_value) {
      if (is_there) list.erase(at);
    } else if (is_there) {
      at->value = Bytes(cell.value);
      at->timestamp_us = cell.timestamp_us;
    } else {
      list.insert(at, {Bytes(cell.path), Bytes(cell.value), cell.timestamp_us});
    }
  }
  return list;
}

// --- ids of list elements ---

// `ticks`: 100 ns since 1582, as in a UUID of version 1. `sequence` orders ids of one moment.
Bytes ListCellIds::make(uint64_t ticks, uint32_t sequence) {
  // Version 1 with the variant bits, then 30 bits of sequence so that the signed bytes of a
  // timeuuid's low half rise with it, then randomness: two coordinators never make the same id.
  Uuid uuid = base::make_time_uuid(ticks, 0, 0);
  uuid.octets[8] = static_cast<uint8_t>(0x80 | ((sequence >> 24) & 0x3f));
  for (int i = 0; i < 3; ++i) {
    uuid.octets[static_cast<size_t>(9 + i)] =
        static_cast<uint8_t>(((sequence >> (16 - 8 * i)) & 0xff) ^ 0x80);
  }
  const uint64_t noise = random_.next();
  for (size_t i = 0; i < 4; ++i) uuid.octets[12 + i] = static_cast<uint8_t>(noise >> (8 * i));
  Bytes path;
  const auto encoded = append_ordered(path, *timeuuid_type(), uuid.view(), false);
  TETRAD_ASSERT(encoded.has_value());
  return path;
}

std::vector<Bytes> ListCellIds::append(size_t count) {
  std::vector<Bytes> paths;
  paths.reserve(count);
  const uint64_t ticks = base::uuid_ticks_of_unix_us(now_us_);
  for (size_t i = 0; i < count; ++i) paths.push_back(make(ticks, next_append_++));
  return paths;
}

std::vector<Bytes> ListCellIds::prepend(size_t count) {
  // Time runs backwards before this moment, so that what is prepended later sorts first and all of
  // it before what is appended. 2010-01-01, as Cassandra has it.
  constexpr int64_t kReferenceUs = 1'262'304'000'000'000;
  const uint64_t ticks = base::uuid_ticks_of_unix_us(2 * kReferenceUs - now_us_);
  // A whole block before the last one, in which elements keep the order of the statement.
  next_prepend_ -= static_cast<uint32_t>(count);
  std::vector<Bytes> paths;
  paths.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    paths.push_back(make(ticks, next_prepend_ + static_cast<uint32_t>(i)));
  }
  return paths;
}

}  // namespace tetrad::cql
