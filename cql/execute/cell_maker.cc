// SPDX-License-Identifier: Apache-2.0
// What each operation on a column becomes, as Cassandra's operations do:
//
//  c = value                one cell; null: a tombstone
//  c = {...} (multi-cell)   a column deletion one microsecond older, then a cell for each element
//  c = c + {...}            a cell for each element; lists: cells with new time UUIDs as paths
//  c = [...] + c            lists: paths that sort before all others
//  c = c - {...}            a tombstone for each key; lists: for each equal element, as read
//  c[k] = v, c.f = v        one cell at the path; null: a tombstone
//  DELETE c                 a tombstone; multi-cell and counters: a column deletion
//
// Paths of sets and maps are the ordered encoding of the key, so cells of a column sort as its
// elements do. Paths of list elements are time UUIDs (list_cells.cc); those of fields the field's
// number.
#include "cql/execute/cell_maker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/execute/map_entry.h"
#include "cql/functions/function_table.h"
#include "cql/index/index_options.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using storage::CellKind;
using Operation = ColumnOperation;

/// The guardrails on values. What Cassandra counts for a cell beside key and value: timestamp, TTL
/// and expiry.
// Of the guardrails column_value_size, collection_size and items_per_collection.
Result<void> check_values(const Operation& operation, std::span<const Cell> cells,
                          const ValueGuard& guard) {
  constexpr uint64_t kCellBytes = 20;
  const ColumnSchema& column = *operation.column;
  const DataType& type = *column.type;
  const bool is_set = type.kind() == TypeKind::kSet;
  const bool has_keys = type.is_multi_cell() && (is_set || type.kind() == TypeKind::kMap);
  uint64_t bytes = 0, items = 0;
  Bytes key;
  for (const Cell& cell : cells) {
    if (cell.kind == CellKind::kColumnDeletion) continue;
    uint64_t key_bytes = cell.path.size(), value_bytes = cell.value.size();
    if (has_keys) {
      BytesView path = cell.path;
      key.clear();
      TETRAD_TRY_VOID(decode_ordered_to(key, path, is_set ? *type.element() : *type.key(), false));
      key_bytes = key.size();
      if (is_set) value_bytes = 0;  // where it has a value, that is the key as it was written
    }
    if (cell.kind == CellKind::kValue) {
      ++items;
      bytes += kCellBytes + key_bytes + value_bytes;
      TETRAD_TRY_VOID(guard.check_size(column.name, value_bytes));
    }
    if (has_keys) TETRAD_TRY_VOID(guard.check_size(column.name, key_bytes));
  }
  // Single elements and those put before others it does not count.
  const bool counts = operation.kind == Operation::Kind::kSet ||
                      operation.kind == Operation::Kind::kSetWhole ||
                      operation.kind == Operation::Kind::kAdd;
  if (items == 0 || !counts || !type.is_collection()) return {};
  if (!type.is_multi_cell()) {
    const BytesView value = cells.back().value;
    items = value.size() < 4 ? 0 : base::load_big_endian<uint32_t>(value.data());
  }
  return guard.check_collection(column.name, bytes, items);
}

/// Of one operation, for one index.
constexpr uint64_t kClaimBytesMax = 16 << 20;

Result<void> check_size(const IndexLimit& limit, uint64_t bytes) {
  if (bytes <= limit.bytes_max) return {};
  return fail(ErrorCode::kInvalid,
              "Cannot index value of size {} for index {} (maximum allowed size={})", bytes,
              limit.title, limit.bytes_max);
}

/// What indexes do not take. Errors: kInvalid, with Cassandra's text.
Result<void> check_indexed(const Operation& operation, std::span<const Cell> cells) {
  const DataType& type = *operation.column->type;
  for (const Cell& cell : cells) {
    if (cell.kind != CellKind::kValue) continue;
    for (const IndexLimit& limit : operation.index_limits) {
      uint64_t bytes = cell.value.size();
      if (cell.has_path && type.kind() != TypeKind::kList) {
        const bool is_set = type.kind() == TypeKind::kSet;
        Bytes key;
        BytesView path = cell.path;
        TETRAD_TRY_VOID(
            decode_ordered_to(key, path, is_set ? *type.element() : *type.key(), false));
        if (is_set || limit.target == IndexTarget::kKeys) bytes = key.size();
        if (limit.target == IndexTarget::kEntries) bytes += key.size();
      }
      TETRAD_TRY_VOID(check_size(limit, bytes));
    }
  }
  return {};
}

/// `claims` of one row, each with the whole primary key, are written in one piece. Their work counts
/// before it is done: 27 ns a byte, four times since a request may do four times the work that its
/// time has room for. Errors: kInvalid; the timeout of `work`, which counts the rows of a batch
/// together.
Result<void> spend_claims(const IndexLimit& limit, std::string_view what, uint64_t claims,
                          uint64_t key_bytes, WorkMeter* work) {
  constexpr uint64_t kNsPerClaimByte = 4 * 27;
  if (claims * key_bytes > kClaimBytesMax)
    return fail(ErrorCode::kInvalid,
                "Cannot index {} {} of a row whose primary key has {} bytes for index {} (maximum "
                "allowed product={})",
                claims, what, key_bytes, limit.title, kClaimBytesMax);
  return work == nullptr ? Result<void>() : work->spend(kNsPerClaimByte * claims * key_bytes);
}

/// Each word that an index keeps is a claim.
Result<void> check_words(const IndexLimit& limit, size_t key_bytes, BytesView value,
                         WorkMeter* work) {
  constexpr size_t kUsualWordBytes = 4;
  // No analysis makes more than four terms of a byte; most writes are let through here.
  if (4 * value.size() * key_bytes <= kClaimBytesMax)
    return spend_claims(limit, "words", value.size() / kUsualWordBytes, key_bytes, work);
  std::vector<Bytes> terms;
  TETRAD_TRY_VOID(limit.words->add_value(value, terms));
  return spend_claims(limit, "words", terms.size(), key_bytes, work);
}

/// What one operation on a column claims: a word, or an element, for each of its `cells`.
Result<void> check_claims(std::span<const IndexLimit> limits, size_t key_bytes,
                          std::span<const Cell> cells, WorkMeter* work) {
  const auto is_value = [](const Cell& cell) { return cell.kind == CellKind::kValue; };
  for (const IndexLimit& limit : limits) {
    if (!limit.words) {
      TETRAD_TRY_VOID(
          spend_claims(limit, "elements", std::ranges::count_if(cells, is_value), key_bytes, work));
      continue;
    }
    for (const Cell& cell : cells)
      if (is_value(cell)) TETRAD_TRY_VOID(check_words(limit, key_bytes, cell.value, work));
  }
  return {};
}

/// The view could not have the row. Errors: kInvalid.
Result<void> check_view_key(const Operation& operation, std::span<const Cell> cells) {
  constexpr size_t kKeyBytesMax = 65'535;
  for (const Cell& cell : cells)
    if (cell.kind == CellKind::kValue && cell.value.size() > kKeyBytesMax)
      return fail(ErrorCode::kInvalid,
                  "Key length of {} is longer than maximum of {}: column {} is in the key of "
                  "materialized view {}",
                  cell.value.size(), kKeyBytesMax, operation.column->name, operation.key_of_view);
  return {};
}

}  // namespace

// The checks see only the cells of this operation. Cells must be appended in the order of column
// ids; the caller's operations are sorted by them.
Result<bool> CellMaker::add(const Operation& operation, const Place& place,
                            std::vector<Cell>& cells) {
  const size_t first = cells.size();
  TETRAD_TRY(const bool set, add_unsorted(operation, place, cells));
  if (moment_.guard != nullptr) {
    TETRAD_TRY_VOID(check_values(operation, std::span(cells).subspan(first), *moment_.guard));
  }
  if (!operation.index_limits.empty()) {
    TETRAD_TRY_VOID(check_indexed(operation, std::span(cells).subspan(first)));
    TETRAD_TRY_VOID(check_claims(operation.index_limits, place.key_bytes(),
                                 std::span(cells).subspan(first), context_.functions.work));
  }
  if (operation.vector_index) {
    for (const Cell& cell : std::span(cells).subspan(first))
      if (cell.kind == CellKind::kValue)
        TETRAD_TRY_VOID(check_vector(*operation.vector_index, cell.value));
  }
  if (!operation.key_of_view.empty()) {
    TETRAD_TRY_VOID(check_view_key(operation, std::span(cells).subspan(first)));
  }
  if (cells.size() - first > 1)
    sort_paths(cells.begin() + static_cast<ptrdiff_t>(first), cells.end());
  return set;
}

Result<void> CellMaker::check_key(std::span<const IndexLimit> limits, const Place& place) const {
  for (const IndexLimit& limit : limits) {
    if (!limit.words) continue;
    TETRAD_TRY(const OptionalBytes value, limit.words->clustering_value(place.clustering_key));
    if (!value) continue;
    TETRAD_TRY_VOID(check_size(limit, value->size()));
    TETRAD_TRY_VOID(check_words(limit, place.key_bytes(), *value, context_.functions.work));
  }
  return {};
}

// A record may have one cell for each place. Of two the newer stays; of equal times a tombstone,
// then the larger value, as reconciliation of two replicas would decide (storage/row/reconcile.h).
void CellMaker::tidy(std::vector<Cell>& cells) {
  sort_paths(cells.begin(), cells.end());
  size_t kept = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (kept != 0) {
      Cell& last = cells[kept - 1];
      const Cell& cell = cells[i];
      const bool same =
          last.column_id == cell.column_id && last.has_path == cell.has_path &&
          last.path == cell.path &&
          (last.kind == CellKind::kColumnDeletion) == (cell.kind == CellKind::kColumnDeletion);
      if (same) {
        const bool replaces = last.timestamp_us < cell.timestamp_us ||
                              (last.kind == CellKind::kValue &&
                               (cell.kind != CellKind::kValue || last.value < cell.value));
        if (replaces) last = cell;
        continue;
      }
    }
    cells[kept++] = cells[i];
  }
  cells.resize(kept);
}

void CellMaker::sort_paths(std::vector<Cell>::iterator from, std::vector<Cell>::iterator to) {
  std::stable_sort(from, to, [](const Cell& a, const Cell& b) {
    if (a.column_id != b.column_id) return a.column_id < b.column_id;
    const bool a_deletion = a.kind == CellKind::kColumnDeletion;
    const bool b_deletion = b.kind == CellKind::kColumnDeletion;
    // The order of a record: of a column its deletion first, then cells without a path, then by
    // path.
    if (a_deletion != b_deletion) return a_deletion;
    if (a.has_path != b.has_path) return !a.has_path;
    return a.path < b.path;
  });
}

// `now_s` is the client's time where the request names one, `dated_s` this node's. The TTL is
// adjusted so that expiry less TTL is dated_s, from which others see when the cell was written. A
// cell that would have expired long ago expires clock_skew_s before dated_s.
WriteMoment::Expiry WriteMoment::expiry_of(int32_t ttl_s) const {
  if (now_s == dated_s) return {ttl_s, now_s + ttl_s};
  const int64_t expiry_s = std::max(now_s + ttl_s, dated_s - clock_skew_s);
  if (expiry_s != now_s + ttl_s && warnings != nullptr) {
    auto warning = fmt::format(
        "now_in_seconds {} with TTL {} ends {} s before this write; it is taken to end {} s before",
        now_s, ttl_s, dated_s - now_s - ttl_s, clock_skew_s);
    if (warnings->empty() || warnings->back() != warning) warnings->push_back(std::move(warning));
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return {static_cast<int32_t>(std::clamp<int64_t>(expiry_s - dated_s, 1, kMost)), expiry_s};
}

Cell CellMaker::value_cell(uint32_t column_id, BytesView value) const {
  Cell cell;
  cell.column_id = column_id;
  cell.timestamp_us = moment_.timestamp_us;
  cell.value = value;
  if (ttl_s_ != 0) {
    const auto [ttl_s, expiry_s] = moment_.expiry_of(ttl_s_);
    cell.ttl_s = ttl_s;
    cell.expiry_s = expiry_s;
  }
  return cell;
}

Cell CellMaker::tombstone(uint32_t column_id) const {
  Cell cell;
  cell.column_id = column_id;
  cell.kind = CellKind::kTombstone;
  cell.timestamp_us = moment_.timestamp_us;
  cell.expiry_s = moment_.dated_s;
  return cell;
}

Cell CellMaker::column_deletion(uint32_t column_id, int64_t timestamp_us) const {
  Cell cell;
  cell.column_id = column_id;
  cell.kind = CellKind::kColumnDeletion;
  cell.timestamp_us = timestamp_us;
  cell.expiry_s = moment_.dated_s;
  return cell;
}

Cell CellMaker::at_path(Cell cell, BytesView path) const {
  cell.has_path = true;
  cell.path = path;
  return cell;
}

Result<BytesView> CellMaker::key_path(const DataType& type, BytesView key) {
  Bytes path;
  TETRAD_TRY_VOID(append_ordered(path, type, key, false));
  return path.size() <= 64 ? context_.arena.copy(path) : context_.arena.adopt(std::move(path));
}

BytesView CellMaker::field_path(size_t index) {
  char path[2];
  base::store_big_endian(path, static_cast<uint16_t>(index));
  return context_.arena.copy({path, 2});
}

Result<void> CellMaker::add_element(const DataType& type, uint32_t id, BytesView element,
                                    std::vector<Cell>& cells) {
  TETRAD_TRY(const BytesView path, key_path(*type.element(), element));
  // The original bytes stand beside the path where that would not give them back.
  const bool lossy = can_be_lossy(*type.element()) && is_lossy(*type.element(), element);
  cells.push_back(at_path(value_cell(id, lossy ? element : BytesView()), path));
  return {};
}

// Where the path does not give back the key's bytes the value carries them (map_entry.h).
Result<void> CellMaker::add_entry(const DataType& type, uint32_t id, BytesView key, BytesView value,
                                  std::vector<Cell>& cells) {
  TETRAD_TRY(const BytesView path, key_path(*type.key(), key));
  if (has_entry_mark(*type.key())) {
    value = context_.arena.adopt(encode_map_entry(*type.key(), key, value));
  }
  cells.push_back(at_path(value_cell(id, value), path));
  return {};
}

Result<void> CellMaker::add_elements(const Operation& operation, BytesView value,
                                     std::vector<Cell>& cells) {
  const DataType& type = *operation.column->type;
  const uint32_t id = operation.column->id;
  switch (type.kind()) {
    case TypeKind::kSet: {
      TETRAD_TRY(CollectionReader reader, CollectionReader::open(value, 1));
      while (!reader.at_end()) {
        TETRAD_TRY(const OptionalView element, reader.next());
        if (!element) return null_inside();
        TETRAD_TRY_VOID(add_element(type, id, *element, cells));
      }
      return {};
    }
    case TypeKind::kMap: {
      TETRAD_TRY(CollectionReader reader, CollectionReader::open(value, 2));
      while (!reader.at_end()) {
        TETRAD_TRY(const OptionalView key, reader.next());
        TETRAD_TRY(const OptionalView entry, reader.next());
        if (!key || !entry) return null_inside();
        TETRAD_TRY_VOID(add_entry(type, id, *key, *entry, cells));
      }
      return {};
    }
    case TypeKind::kList: {
      TETRAD_TRY(const auto elements, split_list(value));
      const auto paths = operation.kind == Operation::Kind::kPrepend ? ids_.prepend(elements.size())
                                                                     : ids_.append(elements.size());
      for (size_t i = 0; i < elements.size(); ++i) {
        cells.push_back(at_path(value_cell(id, elements[i]), context_.arena.copy(paths[i])));
      }
      return {};
    }
    default: {
      TETRAD_TRY(const auto fields, split_tuple(type, value));
      for (size_t i = 0; i < fields.size(); ++i) {
        const Cell cell = fields[i] ? value_cell(id, *fields[i]) : tombstone(id);
        // After a column deletion a null field needs no tombstone.
        if (fields[i] || operation.kind != Operation::Kind::kSetWhole) {
          cells.push_back(at_path(cell, field_path(i)));
        }
      }
      return {};
    }
  }
}

std::unexpected<Error> CellMaker::null_inside() {
  return fail(ErrorCode::kInvalid, "null is not supported inside collections");
}

Result<void> CellMaker::add_element(const ColumnSchema& column, BytesView key,
                                    const BoundValue& value, std::vector<Cell>& cells) {
  if (value.has_bytes()) return add_entry(*column.type, column.id, key, value.bytes, cells);
  TETRAD_TRY(const BytesView path, key_path(*column.type->key(), key));
  cells.push_back(at_path(tombstone(column.id), path));
  return {};
}

// Keys that are not there get tombstones, too: nothing is read.
Result<void> CellMaker::add_removed_keys(const ColumnSchema& column, BytesView taken_keys,
                                         std::vector<Cell>& cells) {
  TETRAD_TRY(const auto keys, split_list(taken_keys));
  for (const BytesView taken : keys) {
    TETRAD_TRY(const BytesView path, key_path(*column.type->components()[0], taken));
    cells.push_back(at_path(tombstone(column.id), path));
  }
  return {};
}

// One table of the operations: first those without a value, then, once key and value are evaluated
// (in this order, which decides which error is reported), one case for each kind.
Result<bool> CellMaker::add_unsorted(const Operation& operation, const Place& place,
                                     std::vector<Cell>& cells) {
  const ColumnSchema& column = *operation.column;
  const uint32_t id = column.id;
  if (operation.kind == Operation::Kind::kRemove) {
    const bool has_parts = column.type->is_multi_cell() || column.type->is_counter();
    cells.push_back(has_parts ? column_deletion(id, moment_.timestamp_us) : tombstone(id));
    return true;
  }
  if (operation.kind == Operation::Kind::kRemoveField) {
    cells.push_back(at_path(tombstone(id), field_path(operation.field)));
    return true;
  }
  BoundValue key;
  if (operation.key) {
    TETRAD_TRY(key, operation.key->evaluate(context_));
    const bool takes_away = operation.kind == Operation::Kind::kRemoveIndex ||
                            (operation.kind == Operation::Kind::kRemoveElement &&
                             column.type->kind() == TypeKind::kSet);
    if (key.is_unset() && takes_away) return false;  // as Cassandra: nothing is taken away
    TETRAD_TRY_VOID(check_key(column, key));
  }
  BoundValue value;
  if (operation.value) {
    TETRAD_TRY(value, operation.value->evaluate(context_));
    // What is there is looked at all the same.
    const bool looks = operation.kind == Operation::Kind::kSetIndex ||
                       operation.kind == Operation::Kind::kAddToValue;
    if (value.is_unset() && !looks) return false;
  }
  switch (operation.kind) {
    case Operation::Kind::kSet:
      cells.push_back(value.has_bytes() ? value_cell(id, value.bytes) : tombstone(id));
      return true;
    case Operation::Kind::kSetWhole:
      // One microsecond older, so that it hides what was there and not the cells of this statement.
      cells.push_back(column_deletion(id, moment_.timestamp_us - 1));
      if (value.has_bytes()) TETRAD_TRY_VOID(add_elements(operation, value.bytes, cells));
      return true;
    case Operation::Kind::kAddToValue:
      return add_to_value(column, value, place, cells);
    case Operation::Kind::kAdd:
    case Operation::Kind::kPrepend:
      if (value.has_bytes()) TETRAD_TRY_VOID(add_elements(operation, value.bytes, cells));
      return true;
    case Operation::Kind::kRemoveKeys:
      if (value.has_bytes()) TETRAD_TRY_VOID(add_removed_keys(column, value.bytes, cells));
      return true;
    case Operation::Kind::kSetElement:
      TETRAD_TRY_VOID(add_element(column, key.bytes, value, cells));
      return true;
    case Operation::Kind::kRemoveElement: {
      TETRAD_TRY(const BytesView path, key_path(*column.type->components()[0], key.bytes));
      cells.push_back(at_path(tombstone(id), path));
      return true;
    }
    case Operation::Kind::kSetField:
      cells.push_back(at_path(value.has_bytes() ? value_cell(id, value.bytes) : tombstone(id),
                              field_path(operation.field)));
      return true;
    case Operation::Kind::kDiscard:
      if (value.has_bytes()) TETRAD_TRY_VOID(add_discarded(column, value.bytes, place, cells));
      return true;
    case Operation::Kind::kSetIndex:
    case Operation::Kind::kRemoveIndex:
      return add_at_index(operation, key, value, place, cells);
    default:
      TETRAD_ASSERT(false);
      return false;
  }
}

OptionalView CellMaker::value_so_far(const ColumnSchema& column, const Place& place,
                                     const std::vector<Cell>& cells) {
  OptionalView value;
  for (const Cell& cell : cells) {  // of the same moment: the larger value stays
    if (cell.column_id == column.id && (!value || *value < cell.value)) value = cell.value;
  }
  if (value) return value;
  const auto* read = place.lists->find(place.partition_key, place.clustering_key, column);
  if (read == nullptr || read->empty()) return std::nullopt;
  return read->front().value;
}

Result<bool> CellMaker::add_to_value(const ColumnSchema& column, const BoundValue& added,
                                     const Place& place, std::vector<Cell>& cells) {
  const OptionalView value = value_so_far(column, place, cells);
  if (!value) return false;
  const bool is_text = !is_number(*column.type);
  // As Cassandra, where a text is unset nothing is put behind it; it fails with a Java exception in
  // all the other cases.
  if (!added.has_bytes() && !(is_text && added.is_unset())) {
    return fail(ErrorCode::kInvalid, "Cannot add {} to column {}",
                added.is_unset() ? "an unset value" : "null", column.name);
  }
  if (is_text) {
    Bytes text(*value);
    if (added.has_bytes()) text += added.bytes;
    cells.push_back(value_cell(column.id, context_.arena.adopt(std::move(text))));
    return true;
  }
  auto sum = calculate('+', *column.type, *value, added.bytes);
  if (!sum) {
    return fail(ErrorCode::kInvalid, "Cannot add to column {}: {}", column.name,
                sum.error().message);
  }
  if (!*sum) {
    return fail(ErrorCode::kInvalid, "Cannot add to column {}: a number without bytes has no value",
                column.name);
  }
  cells.push_back(value_cell(column.id, context_.arena.adopt(std::move(**sum))));
  return true;
}

Result<void> CellMaker::check_key(const ColumnSchema& column, const BoundValue& key) {
  if (key.has_bytes()) return {};
  const std::string_view what = column.type->kind() == TypeKind::kList  ? "list index"
                                : column.type->kind() == TypeKind::kMap ? "map key"
                                                                        : "set element";
  if (key.is_unset()) {
    const bool map = column.type->kind() == TypeKind::kMap;
    return fail(ErrorCode::kInvalid, "Invalid unset {}{}", map ? "" : "value for ", what);
  }
  if (column.type->kind() == TypeKind::kList) {
    return fail(ErrorCode::kInvalid, "Invalid null value for {}", what);
  }
  return fail(ErrorCode::kInvalid, "Invalid null {}", what);
}

}  // namespace tetrad::cql
