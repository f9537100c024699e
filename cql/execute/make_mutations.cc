// SPDX-License-Identifier: Apache-2.0
// What INSERT, UPDATE and DELETE write: one mutation for each partition, one record for each row.
//
// For each partition of the target (add_mutations):
//
// 1. The header: the tombstone of a whole partition, or the cells of static columns.
// 2. Range tombstones, where a DELETE names ranges of clustering keys, or otherwise
// 3. each row: a row tombstone, or the cells of the regular columns (CellMaker).
//
// A partition, a row or a header in which nothing was set (all values UNSET) is left out. INSERT
// has its own way (add_insert): it names one row at most, reads nothing and gives the row liveness.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/cell_maker.h"
#include "cql/prepare/prepared_modify.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using storage::RowRecord;
using Operation = ColumnOperation;

/// The cell that keeps the original bytes of a lossy clustering key.
void add_key_cell(std::optional<Bytes> value, const WriteMoment& moment, EvalContext& context,
                  std::vector<Cell>& cells) {
  if (!value) return;
  Cell cell;
  cell.column_id = storage::kKeyCellColumnId;
  cell.timestamp_us = moment.timestamp_us;
  cell.value = context.arena.adopt(std::move(*value));
  // Cells of a record ascend by column id, and the key cell has the lowest one.
  cells.insert(cells.begin(), cell);
}

storage::Mutation make_mutation(const TableSchema& table) {
  storage::Mutation mutation;
  mutation.incarnation = table.incarnation;
  mutation.schema_version = table.version;
  return mutation;
}

}  // namespace

/// One call of add_mutations(): what all partitions and rows of it are written with. It lives on
/// the stack of that call; everything that it refers to outlives it.
struct ModifyStatement::RowWrite {
  const ModifyStatement& statement;
  EvalContext& context;
  const WriteMoment& moment;
  const int32_t ttl_s;              // 0: the cells never expire
  const ListContents* const lists;  // null: no operation depends on what is stored
  CellMaker maker;

  /// Of a partition or a row that is deleted whole, and of each range.
  storage::Deletion deletion() const { return {moment.timestamp_us, moment.dated_s}; }

  // --- INSERT: `record` is used for the header, then for the row, so that its memory is kept ---

  Result<void> insert_header(RowRecord& record, storage::Mutation& mutation);
  Result<void> insert_liveness(RowRecord& record) const;
  /// True: each regular column got a value or a tombstone, none was UNSET.
  Result<bool> insert_cells(RowRecord& record, const storage::Mutation& mutation);

  // --- UPDATE and DELETE ---

  /// True: the partition is deleted whole, so there is nothing to say of its rows.
  Result<bool> add_header(storage::Mutation& mutation, const BoundClustering& clustering);
  Result<void> add_rows(storage::Mutation& mutation, const BoundClustering& clustering);
  /// The row `index` of `clustering`; of a table without clustering columns its only one.
  Result<void> add_row(storage::Mutation& mutation, const BoundClustering& clustering,
                       size_t index);
};

// --- INSERT ---

// Static cells go to the header of the partition. An INSERT of static columns alone names no
// clustering key and makes no row (writes_rows_ is false).
Result<void> ModifyStatement::RowWrite::insert_header(RowRecord& record,
                                                      storage::Mutation& mutation) {
  const CellMaker::Place nowhere{mutation.partition_key, {}, nullptr};
  for (const Operation& operation : statement.static_operations_) {
    TETRAD_TRY_VOID(maker.add(operation, nowhere, record.cells));
  }
  if (!record.cells.empty()) storage::encode_row_record(record, mutation.header);
  record.cells.clear();
  return {};
}

// A row of a compact table has no liveness of its own: it lives as long as one of its cells, as in
// Cassandra. Without a value column a hidden empty cell keeps it alive.
Result<void> ModifyStatement::RowWrite::insert_liveness(RowRecord& record) const {
  if (statement.table_->is_compact_storage) {
    if (!statement.regular_operations_.empty()) return {};
    return statement.add_empty_value(moment, ttl_s, record.cells);
  }
  record.liveness.timestamp_us = moment.timestamp_us;
  if (ttl_s != 0) {
    const auto expiry = moment.expiry_of(ttl_s);
    record.liveness.ttl_s = expiry.ttl_s;
    record.liveness.expiry_s = expiry.expiry_s;
  }
  return {};
}

Result<bool> ModifyStatement::RowWrite::insert_cells(RowRecord& record,
                                                     const storage::Mutation& mutation) {
  const CellMaker::Place place{mutation.partition_key, mutation.rows.back().clustering_key,
                               nullptr};
  TETRAD_TRY_VOID(maker.check_key(statement.clustering_limits_, place));
  bool all_set = true;
  for (const Operation& operation : statement.regular_operations_) {
    TETRAD_TRY(const bool set, maker.add(operation, place, record.cells));
    all_set = all_set && set;
  }
  return all_set;
}

// Appends one mutation with at most one row. `target`, if given, has the keys from bind_target().
Result<void> ModifyStatement::add_insert(EvalContext& context, const WriteMoment& moment,
                                         int32_t ttl_s, ListCellIds& ids,
                                         std::vector<storage::Mutation>& out,
                                         const BoundTarget* target) const {
  storage::Mutation& mutation = out.emplace_back(make_mutation(*table_));
  if (target != nullptr) {
    mutation.partition_key = target->partitions[0].key;
  } else {
    TETRAD_TRY_VOID(insert_partition_key(context, mutation.partition_key));
  }
  mutation.position = partitioner::position_of(mutation.partition_key);

  RowWrite write{*this, context, moment, ttl_s, nullptr, CellMaker(context, moment, ttl_s, ids)};
  RowRecord record;
  if (!static_operations_.empty()) TETRAD_TRY_VOID(write.insert_header(record, mutation));
  if (!writes_rows_) return {};

  storage::RowChange& row = mutation.rows.emplace_back();
  std::vector<BytesView> originals;
  if (target != nullptr) {
    row.clustering_key = target->clustering.rows[0];
    if (lossy_clustering_) {
      const auto& values = target->clustering.row_values[0];
      originals.assign(values.begin(), values.end());
    }
  } else {
    TETRAD_TRY_VOID(insert_clustering_key(context, row.clustering_key,
                                          lossy_clustering_ ? &originals : nullptr));
  }

  record.cells.reserve(regular_operations_.size() + 1);
  TETRAD_TRY_VOID(write.insert_liveness(record));
  TETRAD_TRY(const bool all_set, write.insert_cells(record, mutation));
  if (lossy_clustering_ && !record.empty()) {
    add_key_cell(key_cell_value(originals), moment, context, record.cells);
  }
  if (record.empty()) {  // of a compact table, with nothing set
    mutation.rows.pop_back();
    if (mutation.header.empty()) out.pop_back();
    return {};
  }
  storage::encode_row_record(record, row.record);
  // An INSERT that sets every regular column: the store may Put the record in the place of what is
  // there instead of merging (RULES.md, rule 14). A value that is UNSET leaves its column as it
  // was, so it must make this false.
  row.complete = may_be_complete_ && all_set;
  return {};
}

Result<void> ModifyStatement::add_empty_value(const WriteMoment& moment, int32_t ttl_s,
                                              std::vector<Cell>& cells) const {
  const ColumnSchema& column = table_->regular_columns().front();
  if (!column.hidden) {
    return fail(ErrorCode::kInvalid, "Column {} is mandatory for this COMPACT STORAGE table",
                column.name);
  }
  Cell& cell = cells.emplace_back();
  cell.column_id = column.id;
  cell.timestamp_us = moment.timestamp_us;
  if (ttl_s != 0) {
    const auto expiry = moment.expiry_of(ttl_s);
    cell.ttl_s = expiry.ttl_s;
    cell.expiry_s = expiry.expiry_s;
  }
  return {};
}

// --- UPDATE and DELETE ---

Result<bool> ModifyStatement::RowWrite::add_header(storage::Mutation& mutation,
                                                   const BoundClustering& clustering) {
  const CellMaker::Place place{mutation.partition_key, {}, lists};
  RowRecord header;
  // DELETE by the partition key alone: one tombstone for the partition, not one for each row.
  if (statement.deletes_rows_ && !statement.where_.has_clustering()) header.deletion = deletion();
  // As Cassandra: a row that is named has the static operations done once more, so that lists
  // grow by as many copies.
  const size_t times = clustering.exact ? std::max<size_t>(clustering.rows.size(), 1) : 1;
  for (const Operation& operation : statement.static_operations_) {
    for (size_t i = 0; i < (operation.adds_to_list() ? times : 1); ++i) {
      TETRAD_TRY_VOID(maker.add(operation, place, header.cells));
    }
  }
  // A record has one cell for each place, in order; two operations on one column make two.
  if (statement.repeats_columns_ || times > 1) CellMaker::tidy(header.cells);
  if (!header.empty()) storage::encode_row_record(header, mutation.header);
  return header.deletion.present();
}

Result<void> ModifyStatement::RowWrite::add_rows(storage::Mutation& mutation,
                                                 const BoundClustering& clustering) {
  // Only a DELETE can name a range; preparing refuses ranges of UPDATE.
  if (!clustering.exact && !clustering.ranges.empty()) {
    TETRAD_ASSERT(statement.deletes_rows_);
    for (const auto& range : clustering.ranges) {
      mutation.range_tombstones.push_back({range, deletion()});
    }
    return {};
  }
  // Without clustering columns the partition has one row, whose key is empty.
  const size_t row_count = clustering.exact ? clustering.rows.size() : 1;
  for (size_t i = 0; i < row_count; ++i) TETRAD_TRY_VOID(add_row(mutation, clustering, i));
  return {};
}

Result<void> ModifyStatement::RowWrite::add_row(storage::Mutation& mutation,
                                                const BoundClustering& clustering, size_t index) {
  storage::RowChange row;
  RowRecord record;
  if (clustering.exact) {
    row.clustering_key = clustering.rows[index];
    TETRAD_TRY_VOID(statement.check_row_keys(clustering.row_values[index]));
  }
  if (statement.deletes_rows_) {
    record.deletion = deletion();
  } else {
    const CellMaker::Place place{mutation.partition_key, row.clustering_key, lists};
    if (statement.kind_ == Kind::kUpdate)
      TETRAD_TRY_VOID(maker.check_key(statement.clustering_limits_, place));
    for (const Operation& operation : statement.regular_operations_) {
      TETRAD_TRY_VOID(maker.add(operation, place, record.cells));
    }
    if (statement.repeats_columns_) CellMaker::tidy(record.cells);
    // A DELETE of columns brings no row to life, so no read will ask for its key's bytes.
    if (statement.lossy_clustering_ && clustering.exact && statement.kind_ == Kind::kUpdate &&
        !record.cells.empty()) {
      const std::vector<BytesView> originals(clustering.row_values[index].begin(),
                                             clustering.row_values[index].end());
      add_key_cell(statement.key_cell_value(originals), moment, context, record.cells);
    }
  }
  // Every value was UNSET: nothing is written, as in Cassandra.
  if (record.empty()) return {};
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return {};
}

// Appends the mutations of the statement to `out`, one for each partition that gets a change. It
// may run on a worker thread: it uses only its arguments. On an error `out` has unfinished
// mutations and must not be written.
Result<void> ModifyStatement::add_mutations(EvalContext& context, const WriteMoment& moment,
                                            ListCellIds& ids, const ListContents* lists,
                                            uint32_t product_max,
                                            std::vector<storage::Mutation>& out,
                                            const BoundTarget* target) const {
  if (kind_ == Kind::kInsert) {
    const auto insert_ttl_s = ttl(context);
    // As Cassandra: an error in the keys is reported before one in the TTL.
    if (!insert_ttl_s) {
      TETRAD_TRY_VOID(check_keys(context, product_max));
      return std::unexpected(insert_ttl_s.error());
    }
    if (!json_) return add_insert(context, moment, *insert_ttl_s, ids, out, target);
    // The attributes may have markers of their own, the columns take theirs from the JSON text.
    TETRAD_TRY(const BoundValue text, json_->evaluate(context));
    TETRAD_TRY(const std::vector<BoundValue> values,
               decode_json(text, context.arena, context.functions.now_ms));
    EvalContext inner{values, context.arena, context.functions, context.now_s, nullptr, {}};
    return add_insert(inner, moment, *insert_ttl_s, ids, out, target);
  }
  BoundTarget own;
  if (target == nullptr) {
    TETRAD_TRY(own, bind_target(context, product_max));
    target = &own;
  }
  const BoundClustering& clustering = target->clustering;
  TETRAD_TRY(const int32_t ttl_s, kind_ == Kind::kUpdate ? ttl(context) : Result<int32_t>(0));
  RowWrite write{*this, context, moment, ttl_s, lists, CellMaker(context, moment, ttl_s, ids)};
  for (size_t p = 0; p < target->partitions.size(); ++p) {
    storage::Mutation mutation = make_mutation(*table_);
    mutation.position = target->partitions[p].position;
    if (target == &own) {
      mutation.partition_key = std::move(own.partitions[p].key);
    } else {
      mutation.partition_key = target->partitions[p].key;
    }
    TETRAD_TRY(const bool is_deleted, write.add_header(mutation, clustering));
    if (lacks_rows_ && !clustering.nothing) {
      return fail(ErrorCode::kInvalid, "Range deletions are not supported for specific columns");
    }
    // `nothing`: the restrictions exclude each other (an empty IN, for example), so no row can be
    // meant. It is no error, as in Cassandra.
    if (writes_rows_ && !is_deleted && !clustering.nothing) {
      TETRAD_TRY_VOID(write.add_rows(mutation, clustering));
    }
    if (!mutation.header.empty() || !mutation.range_tombstones.empty() || !mutation.rows.empty()) {
      out.push_back(std::move(mutation));
    }
  }
  return {};
}

}  // namespace tetrad::cql
