// SPDX-License-Identifier: Apache-2.0
// Names and images of base rows in a view.
#include "storage/views/view_image.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kMicrosecondsPerSecond = 1'000'000;

/// How long something lasts.
struct Lifetime {
  int32_t ttl_s = 0;  // 0: for ever
  int64_t expiry_s = 0;
};

Lifetime shorter_of(const Lifetime& a, const Lifetime& b) {
  if (a.ttl_s == 0) return b;
  if (b.ttl_s == 0) return a;
  return b.expiry_s < a.expiry_s ? b : a;
}

/// Of two that expire together the longer TTL, whatever their order.
Lifetime longer_of(const Lifetime& a, const Lifetime& b) {
  if (a.ttl_s == 0 || b.ttl_s == 0) return {};
  if (a.expiry_s != b.expiry_s) return a.expiry_s > b.expiry_s ? a : b;
  return a.ttl_s > b.ttl_s ? a : b;
}

Lifetime lifetime_of(const Cell& cell) { return {cell.ttl_s, cell.expiry_s}; }

/// Of a row whose view has no key column. Unset: nothing of it has a value.
std::optional<Lifetime> lifetime_of_row(const RowRecord& row) {
  std::optional<Lifetime> lifetime;
  const auto add = [&](const Lifetime& more) {
    lifetime = lifetime ? longer_of(*lifetime, more) : more;
  };
  if (row.liveness.present()) add({row.liveness.ttl_s, row.liveness.expiry_s});
  for (const Cell& cell : row.cells)
    if (cell.kind == CellKind::kValue && cell.column_id != kKeyCellColumnId) add(lifetime_of(cell));
  return lifetime;
}

/// Of the key column's cell. Unset: the row has none.
std::optional<Lifetime> lifetime_of_key(const RowRecord& row, uint32_t key_column) {
  for (const Cell& cell : row.cells)
    if (cell.column_id == key_column && cell.kind == CellKind::kValue) return lifetime_of(cell);
  return std::nullopt;
}

/// Makes the cells of a complete image.
class ImageCells {
 public:
  ImageCells(const Lifetime& key, ViewStamp stamp, std::vector<Cell>& out)
      : key_(key), stamp_(stamp), out_(out) {}

  void add_key_cell(BytesView value) {
    Cell& cell = add(kKeyCellColumnId);
    cell.value = value;
  }
  /// The key cell of an earlier image would show the key as it is no more.
  void remove_key_cell() { add_tombstone(kKeyCellColumnId); }
  void add_simple(const ViewColumn& column, const RowRecord& row) {
    const auto own = std::ranges::find_if(row.cells, [&](const Cell& cell) {
      return cell.column_id == column.base_id && cell.kind == CellKind::kValue &&
             cell.timestamp_us > column.dropped_us;
    });
    if (own != row.cells.end()) {
      add_value(column, *own);
      return;
    }
    add_tombstone(column.view_id);
  }
  void add_elements(const ViewColumn& column, const RowRecord& row) {
    Cell& deletion = add(column.view_id);
    deletion.kind = CellKind::kColumnDeletion;
    // Below the stamp: the elements of this image stay. Stamps are even, so no other image has this
    // time.
    deletion.timestamp_us = stamp_.us - 1;
    deletion.expiry_s = stamp_.us / kMicrosecondsPerSecond;
    for (const Cell& cell : row.cells)
      if (cell.column_id == column.base_id && cell.kind == CellKind::kValue &&
          cell.timestamp_us > column.dropped_us)
        add_value(column, cell);
  }

 private:
  Cell& add(uint32_t column_id) {
    Cell& cell = out_.emplace_back();
    cell.column_id = column_id;
    cell.timestamp_us = stamp_.us;
    return cell;
  }
  void add_tombstone(uint32_t column_id) {
    Cell& tombstone = add(column_id);
    tombstone.kind = CellKind::kTombstone;
    tombstone.expiry_s = stamp_.us / kMicrosecondsPerSecond;
  }
  void add_value(const ViewColumn& column, const Cell& own) {
    const Lifetime lifetime = shorter_of(lifetime_of(own), key_);
    Cell& cell = out_.emplace_back(own);
    cell.column_id = column.view_id;
    cell.timestamp_us = stamp_.us;
    cell.ttl_s = lifetime.ttl_s;
    cell.expiry_s = lifetime.expiry_s;
  }

  const Lifetime key_;
  const ViewStamp stamp_;
  std::vector<Cell>& out_;
};

}  // namespace

ViewStamp stamp_above(ViewStamp highest_seen, int64_t now_us) {
  const int64_t above = std::max(highest_seen.us, now_us) + 1;
  // Even: the odd one below belongs to the image's own deletions.
  return {above + (above & 1)};
}

Result<void> add_view_names(const ViewMaker& maker, BytesView record, ViewNames& out) {
  const auto key_column = maker.key_column();
  RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(record));
  Cell cell;
  Bytes key_cell;
  while (reader.next(cell)) {  // the key cell comes first
    if (cell.kind != CellKind::kValue) continue;
    if (cell.column_id == kKeyCellColumnId) key_cell = cell.value;
    if (key_column && cell.column_id == *key_column) out.insert({Bytes(cell.value), key_cell});
  }
  TETRAD_TRY_VOID(reader.status());
  if (!key_column) out.insert({{}, std::move(key_cell)});
  return {};
}

std::optional<ViewName> view_name_of(const ViewMaker& maker, const RowRecord& base_row) {
  const auto key_column = maker.key_column();
  ViewName name;
  bool is_there = !key_column && lifetime_of_row(base_row).has_value();
  for (const Cell& cell : base_row.cells) {
    if (cell.kind != CellKind::kValue) continue;
    if (cell.column_id == kKeyCellColumnId) name.key_cell = cell.value;
    if (key_column && cell.column_id == *key_column) {
      name.key_value = cell.value;
      is_there = true;
    }
  }
  if (!is_there) return std::nullopt;
  return name;
}

RowRecord view_image(const ViewMaker& maker, const RowRecord& base_row, const ViewName& name,
                     BytesView key_cell, ViewStamp stamp) {
  TETRAD_ASSERT((stamp.us & 1) == 0);
  const auto key_column = maker.key_column();
  const bool is_current = view_name_of(maker, base_row) == name;
  std::optional<Lifetime> row_lifetime;
  if (is_current)
    row_lifetime = key_column ? lifetime_of_key(base_row, *key_column) : lifetime_of_row(base_row);
  RowRecord image;
  if (!row_lifetime) {
    image.deletion = {stamp.us, stamp.us / kMicrosecondsPerSecond};
    return image;
  }
  image.liveness = {stamp.us, row_lifetime->ttl_s, row_lifetime->expiry_s};
  // Without a key column no cell outlives the row anyway.
  ImageCells cells(*row_lifetime, stamp, image.cells);
  if (!key_cell.empty())
    cells.add_key_cell(key_cell);
  else if (maker.may_have_key_cells())
    cells.remove_key_cell();
  for (const ViewColumn& column : maker.columns())
    column.has_elements ? cells.add_elements(column, base_row) : cells.add_simple(column, base_row);
  return image;
}

}  // namespace tetrad::storage
