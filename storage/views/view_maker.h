// SPDX-License-Identifier: Apache-2.0
// What storage and replication know of materialized views: where a view has the rows of a base row,
// and which of its columns they take. A view is a table of its own, with an incarnation and tablets
// of its own; only images (view_image.h) are written to it.
//
// A view's key has all columns of the base's key, and at most one more: its key column, a column of
// the base that has one cell. So a base row and a value of the key column name one row of the view;
// without a key column the base row alone does.
//
// No writetimes of the base are kept in a view: a view's cells have the stamp of their image.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/ring_position.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// A column that base and view have, and that is in no key.
struct ViewColumn {
  uint32_t base_id = 0, view_id = 0;
  bool has_elements = false;  // a collection or UDT that is not frozen
  /// What is not newer is not shown: the column was dropped then, and added again.
  int64_t dropped_us = kNoTimestamp;
};

/// Where a row is in a view.
struct ViewPlace {
  Bytes partition_key;
  RingPosition position;
  Bytes clustering_key;
  Bytes key_cell;  // the value of the row's cell of kKeyCellColumnId; "": it has none
};

/// Names a base row. The views live as long as what they point into.
struct BaseRowName {
  BytesView partition_key;
  BytesView clustering_key;
  BytesView key_cell;  // of the base row, as in ViewPlace
};

/// The base row that a row of a view is of, and the value that the view's key column has in it.
struct ViewOrigin {
  Bytes partition_key;
  RingPosition position;
  Bytes clustering_key;
  Bytes key_cell;   // as in BaseRowName
  Bytes key_value;  // "" without a key column
};

/// A view as one schema has it. Made by cql; storage knows no types. An immutable value for all
/// threads.
class ViewMaker {
 public:
  virtual ~ViewMaker() = default;
  /// Of the view's own table.
  virtual TableIncarnation incarnation() const = 0;
  virtual SchemaVersion schema_version() const = 0;
  /// The id that the key column has in the base. Unset: the view has the base's key columns only.
  virtual std::optional<uint32_t> key_column() const = 0;
  /// Whether rows of the view may have a cell of kKeyCellColumnId.
  virtual bool may_have_key_cells() const { return false; }
  /// All that the view has besides its key, ascending by view_id.
  virtual const std::vector<ViewColumn>& columns() const = 0;
  /// Where the view has `row` when its key column has `key_value` (serialized; "" and not looked at
  /// without one). Unset: the view has no such row, since its conditions leave the row out or a key
  /// may not be so. Depends on nothing but what is given: a row that was written is found again.
  virtual std::optional<ViewPlace> place_of(const BaseRowName& row, BytesView key_value) const = 0;
  /// The inverse, of a row of the view with this key cell ("": none). Unset: no base row can be
  /// there.
  virtual std::optional<ViewOrigin> origin_of(const BaseRowName& view_row) const = 0;
};
using ViewMakerPtr = std::shared_ptr<const ViewMaker>;

/// The views of a base table as one schema has them, ascending by incarnation.
using ViewMakers = std::vector<ViewMakerPtr>;
/// Null: the table has no views.
using ViewMakersPtr = std::shared_ptr<const ViewMakers>;

}  // namespace tetrad::storage
