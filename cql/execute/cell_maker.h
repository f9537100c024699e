// SPDX-License-Identifier: Apache-2.0
// The cells of one row: what an operation on a column writes.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "cql/prepare/prepared_modify.h"
#include "storage/row/row_record.h"

namespace tetrad::cql {

/// Makes the cells of one row or header. Their bytes live in the evaluation's arena, the bound
/// values or the statement.
class CellMaker {
 public:
  CellMaker(EvalContext& context, const WriteMoment& moment, int32_t ttl_s, ListCellIds& ids)
      : context_(context), moment_(moment), ttl_s_(ttl_s), ids_(ids) {}

  /// The row that the cells are of, and what its lists hold now; views, needed during one call.
  struct Place {
    BytesView partition_key, clustering_key;
    const ListContents* lists;
    size_t key_bytes() const { return partition_key.size() + clustering_key.size(); }
  };

  /// Appends the cells of an operation, sorted by path. Returns false when nothing was set (unset).
  Result<bool> add(const ColumnOperation& operation, const Place& place,
                   std::vector<storage::Cell>& cells);

  /// What indexes on words of clustering columns do not take. Errors: kInvalid; the timeout.
  Result<void> check_key(std::span<const IndexLimit> limits, const Place& place) const;

  /// For rows where several operations touch one column: orders the cells and keeps one of each
  /// place, as reconciliation of equal timestamps would.
  static void tidy(std::vector<storage::Cell>& cells);

 private:
  /// Into the order of a record: column id, column deletion, then paths.
  static void sort_paths(std::vector<storage::Cell>::iterator from,
                         std::vector<storage::Cell>::iterator to);

  /// With the statement's timestamp and TTL; `value` must outlive the encoding of the record.
  storage::Cell value_cell(uint32_t column_id, BytesView value) const;
  storage::Cell tombstone(uint32_t column_id) const;
  /// Hides all cells of the column up to the timestamp.
  storage::Cell column_deletion(uint32_t column_id, int64_t timestamp_us) const;
  storage::Cell at_path(storage::Cell cell, BytesView path) const;

  /// The path of a set's element or a map's entry, in the arena.
  Result<BytesView> key_path(const DataType& type, BytesView key);
  /// The path of a field of a user type: its number, u16.
  BytesView field_path(size_t index);

  Result<void> add_element(const DataType& type, uint32_t id, BytesView element,
                           std::vector<storage::Cell>& cells);
  Result<void> add_entry(const DataType& type, uint32_t id, BytesView key, BytesView value,
                         std::vector<storage::Cell>& cells);

  /// The elements of a collection's or user type's value.
  Result<void> add_elements(const ColumnOperation& operation, BytesView value,
                            std::vector<storage::Cell>& cells);
  static std::unexpected<Error> null_inside();

  /// add() without checks and order.
  Result<bool> add_unsorted(const ColumnOperation& operation, const Place& place,
                            std::vector<storage::Cell>& cells);
  /// map[key] = value; null takes the entry out.
  Result<void> add_element(const ColumnSchema& column, BytesView key, const BoundValue& value,
                           std::vector<storage::Cell>& cells);
  /// Takes keys out of a set or a map; `taken_keys` is a set.
  Result<void> add_removed_keys(const ColumnSchema& column, BytesView taken_keys,
                                std::vector<storage::Cell>& cells);
  /// Takes each element out of a list that equals one of the list `taken`.
  Result<void> add_discarded(const ColumnSchema& column, BytesView taken, const Place& place,
                             std::vector<storage::Cell>& cells);
  /// list[key] = value, or its removal.
  Result<bool> add_at_index(const ColumnOperation& operation, const BoundValue& key,
                            const BoundValue& value, const Place& place,
                            std::vector<storage::Cell>& cells);

  /// A list as it was read, with what the statement has done to it so far.
  struct ListSoFar {
    const ColumnSchema* column;
    std::deque<ListContents::Element> elements;  // by path
    size_t cells_taken = 0;                      // of the row's
  };
  /// Good until the next operation.
  const std::deque<ListContents::Element>& list_so_far(const ColumnSchema& column,
                                                       const Place& place,
                                                       const std::vector<storage::Cell>& cells);

  /// The value of a column of one cell as it was read, or as the cells before have set it.
  static OptionalView value_so_far(const ColumnSchema& column, const Place& place,
                                   const std::vector<storage::Cell>& cells);
  /// Of a column that has no value, as Cassandra, nothing is made.
  Result<bool> add_to_value(const ColumnSchema& column, const BoundValue& added, const Place& place,
                            std::vector<storage::Cell>& cells);

  /// Errors: kInvalid, the key or index is null or unset.
  static Result<void> check_key(const ColumnSchema& column, const BoundValue& key);

  EvalContext& context_;
  const WriteMoment& moment_;
  const int32_t ttl_s_;
  ListCellIds& ids_;
  Bytes lists_partition_, lists_row_;  // where the lists are
  std::vector<ListSoFar> lists_;
};

}  // namespace tetrad::cql
