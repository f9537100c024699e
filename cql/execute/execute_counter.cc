// SPDX-License-Identifier: Apache-2.0
// Writes to counter tables. UPDATE makes increments, which the leader of each partition turns into
// totals of its own shard (replication/counters); DELETE makes ordinary mutations with tombstones.
// An increment is not idempotent, so a timeout leaves it open whether it counted, as in Cassandra.
//
// 1. Checks of the level; the deadline.
// 2. Each part becomes deltas or mutations; those of one partition are joined.
// 3. Sizes, disks and throughput are judged by a likeness of what leaders will write.
// 4. Deletions are written first, then the increments.
#include "cql/execute/execute_counter.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cql/execute/batch_figures.h"
#include "cql/execute/cell_maker.h"
#include "cql/execute/disk_guard.h"
#include "cql/execute/join_mutations.h"
#include "cql/execute/statement_environment.h"
#include "cql/execute/throughput.h"
#include "cql/types/value.h"
#include "partitioner/token.h"
#include "replication/consistency.h"

namespace tetrad::cql {

namespace {

using replication::CounterDelta;
using replication::CounterIncrement;
using replication::CounterRow;

/// Estimated: a part that is neither large nor calls a function.
constexpr uint64_t kPartNs = 1'000;
/// What a leader writes of an increment: the name of its shard, its total and clock.
// An estimate of the encoded cell.
constexpr size_t kShardBytes = 48;

Result<void> check_counter_level(ConsistencyLevel level, const TableSchema& table) {
  if (level == ConsistencyLevel::kAny)
    return fail(ErrorCode::kInvalid,
                "Consistency level ANY is not yet supported for counter table {}", table.name);
  if (level == ConsistencyLevel::kSerial || level == ConsistencyLevel::kLocalSerial)
    return fail(ErrorCode::kInvalid, "Counter operations are inherently non-serializable");
  return {};
}

/// Of a size as the leaders will write, to be charged for and checked. Not to be written: its
/// records do not decode.
std::vector<storage::Mutation> likeness_of(const std::vector<CounterIncrement>& increments) {
  std::vector<storage::Mutation> out;
  for (const CounterIncrement& increment : increments) {
    storage::Mutation& mutation = out.emplace_back();
    mutation.incarnation = increment.incarnation;
    mutation.position = increment.position;
    mutation.partition_key = increment.partition_key;
    mutation.header.assign(kShardBytes * increment.statics.size(), '\0');
    for (const CounterRow& row : increment.rows) {
      storage::RowChange& change = mutation.rows.emplace_back();
      change.clustering_key = row.clustering_key;
      change.record.assign(row.key_cell.size() + kShardBytes * row.deltas.size(), '\0');
    }
  }
  return out;
}

/// One for each partition, in the order of their first statement.
std::vector<CounterIncrement> join_increments(std::vector<CounterIncrement> increments) {
  std::vector<CounterIncrement> out;
  std::map<std::pair<TableIncarnation, Bytes>, size_t> places;
  for (CounterIncrement& increment : increments) {
    const auto [place, is_new] =
        places.emplace(std::pair(increment.incarnation, increment.partition_key), out.size());
    if (is_new) {
      out.push_back(std::move(increment));
      continue;
    }
    CounterIncrement& to = out[place->second];
    to.statics.insert(to.statics.end(), increment.statics.begin(), increment.statics.end());
    std::ranges::move(increment.rows, std::back_inserter(to.rows));
  }
  return out;
}

/// Increments and deletions may be of one.
size_t partitions_of(std::span<const storage::Mutation> likeness) {
  std::set<std::tuple<TableIncarnation, RingPosition, BytesView>> partitions;
  for (const storage::Mutation& of : likeness)
    partitions.emplace(of.incarnation, of.position, of.partition_key);
  return partitions.size();
}

}  // namespace

Result<void> ModifyStatement::add_deltas(const std::vector<ColumnOperation>& operations,
                                         EvalContext& context,
                                         std::vector<CounterDelta>& out) const {
  for (const ColumnOperation& operation : operations) {
    TETRAD_TRY(const BoundValue value, operation.value->evaluate(context));
    // As Cassandra: the column is left as it is.
    if (value.is_unset()) continue;
    const auto delta = value.has_bytes() ? read_bigint(value.bytes) : std::nullopt;
    if (!delta) return fail(ErrorCode::kInvalid, "Invalid null value for counter increment");
    // -2^63 has no negation in 64 bits.
    const bool is_lowest = *delta == std::numeric_limits<int64_t>::min();
    if (operation.kind == ColumnOperation::Kind::kDecrement && is_lowest)
      return fail(ErrorCode::kInvalid,
                  "The negation of {} overflows supported counter precision (signed 8 bytes "
                  "integer)",
                  *delta);
    out.push_back({operation.column->id,
                   operation.kind == ColumnOperation::Kind::kDecrement ? -*delta : *delta});
  }
  return {};
}

// One increment for each partition, with its rows in the order of their keys.
Result<void> ModifyStatement::add_increments(EvalContext& context, uint32_t product_max,
                                             std::vector<CounterIncrement>& out) const {
  TETRAD_TRY(const BoundTarget target, bind_target(context, product_max));
  std::vector<CounterDelta> statics, regulars;
  TETRAD_TRY_VOID(add_deltas(static_operations_, context, statics));
  TETRAD_TRY_VOID(add_deltas(regular_operations_, context, regulars));
  for (const PartitionTarget& partition : target.partitions) {
    CounterIncrement increment;
    increment.incarnation = table_->incarnation;
    increment.schema_version = table_->version;
    increment.position = partition.position;
    increment.partition_key = partition.key;
    // A table without clustering columns has one row, and static columns alone are one, too.
    const bool is_exact = writes_rows_ && target.clustering.exact;
    const bool has_rows = !writes_rows_ || !target.clustering.nothing;
    const size_t row_count = !has_rows ? 0 : is_exact ? target.clustering.rows.size() : 1;
    for (size_t i = 0; i < row_count; ++i) {
      if (is_exact) TETRAD_TRY_VOID(check_row_keys(target.clustering.row_values[i]));
      // As in Cassandra a static column counts once for each row that is named.
      increment.statics.insert(increment.statics.end(), statics.begin(), statics.end());
      if (regulars.empty()) continue;
      CounterRow& row = increment.rows.emplace_back();
      row.deltas = regulars;
      if (!is_exact) continue;
      row.clustering_key = target.clustering.rows[i];
      const auto& values = target.clustering.row_values[i];
      const std::vector<BytesView> originals(values.begin(), values.end());
      if (lossy_clustering_) row.key_cell = key_cell_value(originals).value_or("");
    }
    if (!increment.statics.empty() || !increment.rows.empty()) out.push_back(std::move(increment));
  }
  return {};
}

Task<Result<StatementResult>> run_counters(ExecuteContext& context,
                                           std::vector<StatementPart> parts, bool is_batch,
                                           int64_t timeout_us) {
  const TableSchema& table = parts.front().statement->table();
  // As Cassandra: ANY in a batch is as ONE.
  if (!is_batch) TETRAD_CO_TRY_VOID(check_counter_level(context.options.consistency, table));
  TETRAD_CO_TRY_VOID(replication::check_write_level(context.options.consistency));
  const Guardrails& guardrails = context.settings.guardrails;
  TETRAD_CO_TRY_VOID(check_consistency(guardrails.write_consistency_levels,
                                       context.options.consistency, true, context.warnings));
  const base::Deadline deadline{context.reactor.now_us() + timeout_us};
  set_work_limit(context, timeout_us);
  base::Arena arena;
  FunctionEnvironment functions = make_function_environment(context);
  // Not the timestamp of the protocol: a client's clock that is a little off would leave what was
  // counted before, or hide what is counted later.
  const int64_t now_us = context.coordinator.next_timestamp_us();
  WriteMoment moment = moment_of(context);
  moment.timestamp_us = now_us;
  ListCellIds ids(context.random, now_us);
  const uint32_t product_max = context.settings.in_cartesian_product_max;
  std::vector<storage::Mutation> deletions;
  std::vector<CounterIncrement> increments;
  WorkMeter& work = context.work;
  work.begin_turn();
  for (const StatementPart& part : parts) {
    if (work.turn_is_over()) {
      co_await next_turn(context.reactor);
      work.begin_turn();
      if (context.reactor.now_us() > deadline.at_us) co_return std::unexpected(work.timed_out());
    }
    TETRAD_CO_TRY_VOID(work.spend(kPartNs));
    EvalContext evaluation{part.values, arena, functions, context.now_s, nullptr, {}};
    if (part.statement->kind() == ModifyStatement::Kind::kUpdate) {
      TETRAD_CO_TRY_VOID(part.statement->add_increments(evaluation, product_max, increments));
    } else {
      TETRAD_CO_TRY_VOID(
          part.statement->add_mutations(evaluation, moment, ids, nullptr, product_max, deletions));
    }
  }
  TETRAD_CO_TRY(deletions, join_by_partition(std::move(deletions)));
  increments = join_increments(std::move(increments));
  std::vector<storage::Mutation> likeness = likeness_of(increments);
  likeness.insert(likeness.end(), deletions.begin(), deletions.end());
  if (likeness.empty()) co_return StatementResult();
  if (is_batch && context.batches != nullptr)
    context.batches->note(BatchType::kCounter, partitions_of(likeness), context.reactor.now_us());
  TETRAD_CO_TRY_VOID(check_mutation_sizes(likeness, table, context.settings));
  TETRAD_CO_TRY_VOID(check_replica_disks(context, likeness));
  if (is_limited(context, likeness)) {
    auto admitted = co_await admit_writes(context, likeness, deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  context.charge.add_write(likeness);
  replication::WriteOptions options{
      context.options.consistency, deadline,     base::WriteType::kCounter,
      &context.warnings,           std::nullopt, context.trace};
  if (!deletions.empty()) {
    replication::WriteOptions of_deletions = options;
    of_deletions.server_timestamp_us = now_us;
    of_deletions.dated_us = moment.dated_s * 1'000'000;
    auto written = co_await context.coordinator.write(std::move(deletions), of_deletions);
    if (!written) co_return std::unexpected(std::move(written).error());
  }
  if (!increments.empty()) {
    auto counted = co_await context.coordinator.increment(std::move(increments), options);
    if (!counted) co_return std::unexpected(std::move(counted).error());
  }
  co_return StatementResult();
}

}  // namespace tetrad::cql
