// SPDX-License-Identifier: Apache-2.0
// Writes that read first: operations on lists by index or value, and sums of columns of one cell,
// depend on what the rows hold.
//
// read_lists() reads for a statement that stands alone or is part of a batch; a conditional
// statement has read its rows in its Paxos round and gives them to collect_lists(). Both make
// ListContents, from which CellMaker takes the path of the very element that a cell must replace
// (list_cells.cc). As in Cassandra the read and the write of read_lists() are not atomic.
#include <functional>
#include <utility>

#include "cql/execute/off_loop.h"
#include "cql/execute/statement_environment.h"
#include "cql/prepare/prepared_modify.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using Operation = ColumnOperation;

// Bytes of rows with lists; more are decoded on a worker thread.
constexpr uint64_t kListBytesOnLoop = 256u << 10;

}  // namespace

// The guardrail read_before_write_list_operations_enabled. `kAddToValue` reads as well but is no
// list operation.
Result<void> ModifyStatement::check_list_reads(const Guardrails& guardrails) const {
  if (guardrails.read_before_write_list_operations) return {};
  for (const auto* operations : {&static_operations_, &regular_operations_}) {
    for (const Operation& operation : *operations) {
      if (!operation.needs_read() || operation.kind == Operation::Kind::kAddToValue) continue;
      const char* what = operation.kind == Operation::Kind::kSetIndex
                             ? "Setting of list items by index requiring read before write"
                         : operation.kind == Operation::Kind::kDiscard
                             ? "Removal of list items requiring read before write"
                             : "Removal of list items by index requiring read before write";
      return check_enabled(false, "read_before_write_list_operations", what);
    }
  }
  return {};
}

Result<void> ModifyStatement::collect_lists(std::span<const storage::ReadResult> results,
                                            int64_t now_s, ListContents& lists,
                                            ReadWork& work) const {
  for (const storage::ReadResult& result : results) {
    for (const storage::PartitionData& partition : result.partitions) {
      work.weight += storage::row_weight(partition.header.size());
      TETRAD_TRY_VOID(collect_lists(partition, partition.header, {}, static_operations_, true,
                                    false, now_s, lists));
      for (const storage::RowData& row : partition.rows) {
        work.weight += storage::row_weight(row.clustering_key.size() + row.record.size());
        TETRAD_TRY_VOID(collect_lists(partition, row.record, row.clustering_key,
                                      regular_operations_, false, false, now_s, lists));
      }
    }
  }
  return {};
}

// Of one partition and, if given, one row of it. Lists that `lists` has already are kept: the parts
// of a batch that touch one list must see it as it was read, once.
Result<void> ModifyStatement::collect_lists(const storage::PartitionData& partition,
                                            const storage::RowData* row, int64_t now_s,
                                            ListContents& lists) const {
  TETRAD_TRY_VOID(
      collect_lists(partition, partition.header, {}, static_operations_, true, true, now_s, lists));
  if (row == nullptr) return {};
  return collect_lists(partition, row->record, row->clustering_key, regular_operations_, false,
                       true, now_s, lists);
}

Result<void> ModifyStatement::collect_lists(const storage::PartitionData& partition,
                                            BytesView record, BytesView clustering_key,
                                            const std::vector<Operation>& operations,
                                            bool is_static, bool may_be_known, int64_t now_s,
                                            ListContents& lists) const {
  if (record.empty()) return {};
  for (const Operation& operation : operations) {
    if (!operation.needs_read()) continue;
    // Only where several statements collect into one `lists`: the search is linear.
    if (may_be_known &&
        lists.find(partition.partition_key, clustering_key, *operation.column) != nullptr)
      continue;
    ListContents::Entry entry{
        Bytes(partition.partition_key), Bytes(clustering_key), is_static, operation.column->id, {}};
    storage::RowRecordReader reader;
    TETRAD_TRY_VOID(reader.open(record));
    Cell cell;
    while (reader.next(cell)) {
      // A multi-cell value is its cells with paths, a frozen one a single cell without.
      const bool has_path = operation.column->type->is_multi_cell();
      if (cell.column_id == operation.column->id && cell.has_path == has_path &&
          cell.live_at(now_s)) {
        entry.elements.push_back({Bytes(cell.path), Bytes(cell.value), cell.timestamp_us});
      }
    }
    TETRAD_TRY_VOID(reader.status());
    lists.entries.push_back(std::move(entry));
  }
  return {};
}

// Reads the rows that the statement names, at its own consistency level, with the rest of its time.
// Each live element comes with its path and timestamp, so that the write can name the very element.
Task<Result<ListContents>> ModifyStatement::read_lists(ExecuteContext& context,
                                                       EvalContext& evaluation,
                                                       base::Deadline deadline) const {
  ListContents lists;
  TETRAD_CO_TRY(const BoundPartitions partitions,
                where_.bind_partitions(evaluation, context.settings.in_cartesian_product_max));
  TETRAD_CO_TRY_VOID(partitions.check_keys());
  TETRAD_CO_TRY(const BoundClustering clustering,
                where_.bind_clustering(evaluation, context.settings.in_cartesian_product_max));
  if (context.options.consistency == ConsistencyLevel::kAny) {
    co_return fail(ErrorCode::kInvalid,
                   "Write operation require a read but consistency ANY is not supported on reads");
  }
  std::vector<storage::ReadCommand> commands;
  for (const PartitionTarget& target : partitions.partitions) {
    storage::ReadCommand command;
    command.incarnation = table_->incarnation;
    command.schema_version = table_->version;
    command.position = target.position;
    command.partition_key = target.key;
    command.rows = clustering.rows;
    command.now_s = context.now_s;
    commands.push_back(std::move(command));
  }
  const replication::ReadOptions options{
      .level = context.options.consistency, .deadline = deadline, .trace = context.trace};
  auto results = co_await context.coordinator.read_many(std::move(commands), options);
  if (!results) co_return std::unexpected(std::move(results).error());
  ReadWork work;
  work.partitions = results->size();
  Result<void> collected;
  const std::function<void()> collect = [&] {
    collected = collect_lists(*results, context.now_s, lists, work);
  };
  uint64_t bytes = 0;
  for (const storage::ReadResult& result : *results) bytes += result.arena.allocated_bytes();
  if (bytes > kListBytesOnLoop) {
    FunctionEnvironment functions = make_function_environment(context);
    co_await evaluate_off_loop(context, functions, collect);
  } else {
    collect();
  }
  TETRAD_CO_TRY_VOID(std::move(collected));
  context.charge.add_read(work, context.options.consistency);
  co_return lists;
}

}  // namespace tetrad::cql
