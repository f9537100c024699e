// SPDX-License-Identifier: Apache-2.0
// The decision of a conditional statement on the rows that its Paxos round has read: whether the
// conditions hold, then the mutation, or otherwise the rows that refused it.
//
// evaluate() is the whole of it. It may run several times and on a worker thread, and each run
// begins anew: nothing but `refused_`, the charge and the warnings is left by a run, and decide()
// puts the last two back. All times are those of the round (`moment`). The table at the top of
// execute_conditional.cc says which rows are read, seen and shown.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/conditional_run.h"
#include "cql/execute/disk_guard.h"
#include "cql/execute/join_mutations.h"

namespace tetrad::cql {

namespace {

using storage::Mutation;
using storage::PartitionData;
using Kind = Conditions::Kind;

// Work of a row beyond its bytes, estimated, for the limit of the work.
constexpr uint64_t kRowNs = 500;

}  // namespace

Result<std::optional<Mutation>> ConditionalRun::evaluate(const storage::ReadResult& rows,
                                                         replication::ConditionalMoment moment) {
  refused_ = {};
  now_s_ = moment.now_s();
  // The rows are read whole or the statement fails: a condition on a row that was cut off would be
  // decided on nothing. The read of the first row alone is never exhausted, and need not be.
  if (!rows.exhausted && !(row_tests_.empty() && list_rows_.empty())) {
    return fail(ErrorCode::kInvalid, "The rows of a conditional statement are too large");
  }
  TETRAD_ASSERT(rows.partitions.size() <= 1);
  const PartitionData* partition = rows.partitions.empty() ? nullptr : &rows.partitions[0];
  ReadWork work;
  if (partition != nullptr) {
    work.weight += storage::row_weight(partition->header.size());
    for (const storage::RowData& row : partition->rows)
      work.weight += storage::row_weight(row.clustering_key.size() + row.record.size());
    const uint64_t rows_ns = kRowNs * partition->rows.size() + rows.arena.allocated_bytes();
    // One nanosecond for each byte, and kRowNs for each row.
    TETRAD_TRY_VOID(context_.work.spend(rows_ns));
  }
  // Paxos reads at a quorum whatever level the client named.
  context_.charge.add_read(work, ConsistencyLevel::kQuorum);
  base::Arena arena;
  RowMaterializer reader(shape_->layout, arena, moment.now_s());
  if (partition != nullptr) TETRAD_TRY_VOID(reader.start_partition(*partition));
  const bool static_there = partition != nullptr && is_static_there(reader);
  TETRAD_TRY(const bool applies, hold(partition, reader, static_there));
  if (!applies) {
    TETRAD_TRY_VOID(show(partition, reader, static_there));
    return std::optional<Mutation>();
  }
  TETRAD_TRY(Mutation mutation, make_mutation(partition, moment));
  return std::optional<Mutation>(std::move(mutation));
}

// What IF EXISTS on static columns tests: any live static column when a part writes them, otherwise
// one that is seen.
bool ConditionalRun::is_static_there(const RowMaterializer& reader) const {
  if (writes_static_) return reader.has_live_static();
  return std::ranges::any_of(shape_->layout.static_slots, [&](int32_t slot) {
    const auto at = static_cast<size_t>(slot);
    return seen_[at] && reader.row().values[at].has_value();
  });
}

// As Cassandra: where no part names a row, only the row's liveness makes it one, since its regular
// columns are not seen.
Result<bool> ConditionalRun::read_row(const storage::RowData& row, RowMaterializer& reader) const {
  TETRAD_TRY(const bool live, reader.read_row(row));
  if (names_rows_) return live;
  TETRAD_TRY(const storage::RowRecord record, storage::decode_row_record(row.record));
  return record.liveness.live_at(now_s_);
}

Result<bool> ConditionalRun::hold(const PartitionData* partition, RowMaterializer& reader,
                                  bool static_there) {
  TETRAD_TRY(const bool static_holds, holds(static_test_, static_there, reader));
  if (!static_holds) return false;
  for (const auto& [key, test] : row_tests_) {
    const storage::RowData* found = nullptr;
    if (partition != nullptr) {
      const auto& rows = partition->rows;  // they ascend by clustering key
      const auto at =
          std::ranges::lower_bound(rows, BytesView(key), {}, &storage::RowData::clustering_key);
      if (at != rows.end() && at->clustering_key == key) found = &*at;
    }
    bool is_there = false;
    if (found == nullptr) {
      // A row that is not there has null in every column, which conditions may test (IF v = null).
      reader.clear_row();
    } else {
      TETRAD_TRY(is_there, read_row(*found, reader));
    }
    TETRAD_TRY(const bool row_holds, holds(test, is_there, reader));
    if (!row_holds) return false;
  }
  return true;
}

Result<bool> ConditionalRun::holds(const RowTest& test, bool is_there,
                                   const RowMaterializer& reader) const {
  if (test.kind == Kind::kNone) return true;
  if (test.kind == Kind::kExists) return is_there;
  if (test.kind == Kind::kNotExists) return !is_there;
  for (const BoundCondition& condition : test.conditions) {
    const int32_t slot = shape_->layout.slot_by_id[condition.column().id];
    TETRAD_ASSERT(slot >= 0);
    const OptionalView value = reader.row().values[static_cast<size_t>(slot)];
    TETRAD_TRY_VOID(context_.work.spend(condition.test_ns(value ? value->size() : 0)));
    TETRAD_TRY(const bool holds, condition.holds(value));
    if (!holds) return false;
  }
  return true;
}

Result<void> ConditionalRun::show(const PartitionData* partition, RowMaterializer& reader,
                                  bool static_there) {
  refused_.metadata = shape_->refused;
  if (partition == nullptr) return {};
  for (const storage::RowData& row : partition->rows) {
    // Rows that were read for their lists only are not shown.
    if (!row_tests_.empty() && !row_tests_.contains(Bytes(row.clustering_key))) continue;
    TETRAD_TRY(const bool is_there, read_row(row, reader));
    if (is_there) TETRAD_TRY_VOID(show_row(reader));
  }
  if (refused_.row_count == 0 && static_there) {
    reader.clear_row();
    TETRAD_TRY_VOID(show_row(reader));
  }
  return {};
}

Result<void> ConditionalRun::show_row(const RowMaterializer& reader) {
  base::Arena arena;  // of the masks
  EvalContext unmasked{{}, arena, functions_, now_s_, &reader.row(), {}};
  std::vector<OptionalView> values = reader.row().values;
  TETRAD_TRY_VOID(mask_values(masks_, unmasked, values));
  ++refused_.row_count;
  // The first column, `[applied]`.
  append_cell(refused_.cells, make_boolean(false));
  for (size_t i = 0; i < values.size(); ++i) {
    if (seen_[i] && values[i]) {
      append_cell(refused_.cells, *values[i]);
    } else {
      append_null_cell(refused_.cells);
    }
  }
  return {};
}

Result<void> ConditionalRun::collect_lists(size_t part, const PartitionData* partition,
                                           RowLists& lists) const {
  const ModifyStatement* const statement = parts_[part].statement;
  if (!statement->needs_read() || partition == nullptr) return {};
  const BoundClustering& clustering = targets_[part].clustering;
  const BytesView key =
      statement->names_rows() && clustering.exact ? BytesView(clustering.rows[0]) : BytesView();
  // Parts that follow each other and name one row share its lists, so that the second works on the
  // list that both read.
  if (lists.row_key != key) lists = {Bytes(key), {}};
  const storage::RowData* row = nullptr;
  if (statement->names_rows()) {
    const auto at =
        std::ranges::lower_bound(partition->rows, key, {}, &storage::RowData::clustering_key);
    if (at != partition->rows.end() && at->clustering_key == key) row = &*at;
  }
  return statement->collect_lists(*partition, row, now_s_, lists.lists);
}

// The mutations of all parts joined to one. The functions get the moment's time, so that now() in a
// value and the timestamp agree, and each decision of the statement has its own.
Result<Mutation> ConditionalRun::make_mutation(const PartitionData* partition,
                                               replication::ConditionalMoment moment) {
  functions_.now_ms = moment.now_us / 1000;
  WriteMoment write = moment_of(context_);
  write.dated_s = moment.now_s();
  if (!context_.options.now_in_seconds) write.now_s = moment.now_s();
  if (context_.settings.guardrails.on_values()) write.guard = &guard_;
  ListCellIds ids(*functions_.random, moment.now_us);
  base::Arena arena;  // of this evaluation: there may be many until one is decided
  RowLists lists;
  std::vector<Mutation> mutations;
  for (size_t i = 0; i < parts_.size(); ++i) {
    EvalContext evaluation = evaluation_of(parts_[i], arena);
    TETRAD_TRY_VOID(context_.work.spend(kPartNs + bind_ns(*parts_[i].statement, parts_[i].values)));
    TETRAD_TRY_VOID(collect_lists(i, partition, lists));
    // As Cassandra: what the other statements write stays.
    const bool is_range = parts_[i].statement->deletes_range(targets_[i]);
    // A tombstone wins a tie of timestamps, so a range deletion in the batch is one microsecond
    // older: the rows that other parts write then stay.
    write.timestamp_us = moment.timestamp_us - (is_range ? 1 : 0);
    TETRAD_TRY_VOID(parts_[i].statement->add_mutations(evaluation, write, ids, &lists.lists,
                                                       context_.settings.in_cartesian_product_max,
                                                       mutations, &targets_[i]));
  }
  TETRAD_TRY(mutations, join_by_partition(std::move(mutations)));
  TETRAD_ASSERT(mutations.size() <= 1);
  // The conditions hold, so the statement is applied and commits: a mutation without changes.
  if (mutations.empty()) {  // nothing was set
    Mutation& nothing = mutations.emplace_back();
    nothing.incarnation = table().incarnation;
    nothing.schema_version = table().version;
    nothing.position = targets_[0].partitions[0].position;
    nothing.partition_key = targets_[0].partitions[0].key;
  }
  TETRAD_TRY_VOID(check_mutation_sizes(mutations, table(), context_.settings));
  TETRAD_TRY_VOID(check_replica_disks(context_, mutations));
  context_.charge.add_write(mutations);
  return std::move(mutations[0]);
}

}  // namespace tetrad::cql
