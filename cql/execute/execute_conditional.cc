// SPDX-License-Identifier: Apache-2.0
// Conditional statements and batches (IF). Which rows are read and what is shown of them is
// Cassandra's choice:
//
//   read    the rows that conditions name; with conditions on static columns alone, the first live
//           row of the partition
//   seen    of a row all regular columns if any statement names rows, of the partition all static
//           ones if any with conditions writes them; otherwise those that have conditions. What is
//           not seen is null, and a row or a partition without anything that is seen is not there
//   shown   each row that was read, or the static columns where there is none; masked columns as
//           the client sees them, which is not Cassandra's choice
//
// The steps (ConditionalRun):
//
// 1. bind(): values, keys and conditions of all parts. All parts must be of one partition; a batch
//    is decided as one (bind_conditional.cc).
// 2. Checks of the levels, guardrails, and admission at the least price.
// 3. Coordinator::write_if reads the rows of read_command() in a Paxos round of the partition and
//    calls decide() with them. It may call decide() several times, when another statement of the
//    partition was faster. Each call begins anew; only the last one counts.
// 4. decide() evaluates the conditions on the rows and returns the mutation, or nothing when they
//    do not hold (decide_conditional.cc).
// 5. answer(): `[applied]` alone, or with the rows that refused it.
//
// The shard's thread runs everything but bind() and evaluate() of large values, which go to a
// worker while the task waits.
#include "cql/execute/execute_conditional.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cql/execute/conditional_run.h"
#include "cql/execute/throughput.h"

namespace tetrad::cql {

namespace {

using storage::Mutation;

// The sizes from which work leaves the loop.
constexpr size_t kPartsOnLoop = 256;
constexpr uint64_t kReadBytesOnLoop = 256u << 10;

}  // namespace

bool ConditionalRun::is_long() const {
  const ListContents none;
  return parts_.size() > kPartsOnLoop ||
         std::ranges::any_of(parts_, [&](const StatementPart& part) {
           return part.statement->is_long_to_make(context_, part.values, &none);
         });
}

Task<Result<StatementResult>> ConditionalRun::run(int64_t timeout_us) {
  const Guardrails& guardrails = context_.settings.guardrails;
  for (const ConsistencyLevel level :
       {context_.options.consistency, context_.options.serial_consistency}) {
    TETRAD_CO_TRY_VOID(
        check_consistency(guardrails.write_consistency_levels, level, true, context_.warnings));
  }
  const base::MonotonicUs started_us = context_.reactor.now_us();
  const base::Deadline deadline{started_us + timeout_us};
  set_work_limit(context_, timeout_us);
  Result<void> bound;
  const std::function<void()> bind_all = [&] { bound = bind(); };
  if (is_long()) {
    co_await evaluate_off_loop(context_, functions_, bind_all);
    if (context_.reactor.now_us() > deadline.at_us)
      co_return std::unexpected(context_.work.timed_out());
  } else {
    bind_all();
  }
  TETRAD_CO_TRY_VOID(std::move(bound));
  TETRAD_CO_TRY_VOID(check_levels());
  TETRAD_CO_TRY_VOID(check_nulls());
  if (is_limited(context_, table().incarnation)) {
    auto admitted = co_await admit(deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  // decide() may run several times; each run starts from these and charges the last decision alone.
  charge_before_ = context_.charge;
  warnings_before_ = context_.warnings.size();
  replication::ConditionalOptions options;
  options.serial_level = context_.options.serial_consistency;
  options.commit_level = context_.options.consistency;
  options.deadline = deadline;
  // The option cas_contention_timeout: how long rounds that lose against others are tried again.
  options.contention_deadline = {
      std::min(deadline.at_us, started_us + context_.settings.cas_contention_timeout_us)};
  options.warnings = &context_.warnings;
  options.trace = context_.trace;
  auto applied = co_await context_.coordinator.write_if(*this, options);
  settle();
  if (!applied) co_return std::unexpected(std::move(applied).error());
  co_return answer(*applied);
}

/// For the least that it can cost; what it has cost is settled afterwards.
// A quorum read of nothing is what a refused condition costs at least.
Task<Result<void>> ConditionalRun::admit(base::Deadline deadline) {
  RequestCharge least;
  least.add_read({}, ConsistencyLevel::kQuorum);
  admitted_weight_ = least.weight();
  std::vector<replication::ThroughputUse> uses;
  uses.push_back({table().incarnation, targets_[0].partitions[0].position, least.weight()});
  return context_.throughput->admit(std::move(uses), deadline);
}

void ConditionalRun::settle() const {
  if (admitted_weight_ == 0 || !is_limited(context_, table().incarnation)) return;
  context_.throughput->settle(
      table().incarnation, targets_[0].partitions[0].position,
      static_cast<int64_t>(context_.charge.weight()) - static_cast<int64_t>(admitted_weight_));
}

storage::ReadCommand ConditionalRun::read_command() const {
  storage::ReadCommand command;
  command.incarnation = table().incarnation;
  command.schema_version = table().version;
  command.position = targets_[0].partitions[0].position;
  command.partition_key = targets_[0].partitions[0].key;
  // Conditions on static columns alone: the header is needed, and the first row shows whether the
  // partition has rows.
  if (row_tests_.empty() && list_rows_.empty()) {
    command.row_limit = 1;
  } else {
    // A set, since the store wants keys ascending and each once. By its key also where the partition
    // has one row only: a look-up costs half of what a walk over its keys does.
    std::set<Bytes> keys = list_rows_;
    for (const auto& [key, test] : row_tests_) keys.insert(key);
    command.rows.assign(keys.begin(), keys.end());
  }
  return command;
}

// Called by the coordinator for each round. An error ends the statement and writes nothing. All
// times come from `moment`, never from the clock: a round that is repeated must not mix the times
// of two.
Task<Result<std::optional<Mutation>>> ConditionalRun::decide(
    const storage::ReadResult& rows, replication::ConditionalMoment moment) {
  context_.charge = charge_before_;
  context_.warnings.resize(warnings_before_);
  Result<std::optional<Mutation>> decided;
  const std::function<void()> work = [&] { decided = evaluate(rows, moment); };
  if (context_.off_loop != nullptr &&
      (rows.arena.allocated_bytes() > kReadBytesOnLoop || is_long() || makes_long_calls())) {
    co_await evaluate_off_loop(context_, functions_, work);
  } else {
    work();
  }
  if (context_.trace != nullptr && decided) {
    context_.trace->add(*decided ? "Conditions hold; proposing the write"
                                 : "Conditions do not hold; nothing is written");
  }
  co_return decided;
}

StatementResult ConditionalRun::answer(bool applied) {
  // Without a row to show the answer is `[applied]` alone, as in Cassandra.
  if (!applied && refused_.row_count != 0) return std::move(refused_);
  RowsResult result;
  result.metadata = shape_->applied;
  result.row_count = 1;
  append_cell(result.cells, make_boolean(applied));
  return result;
}

Task<Result<StatementResult>> run_conditional(ExecuteContext& context,
                                              std::vector<StatementPart> parts,
                                              ConditionalShapePtr shape, int64_t timeout_us) {
  ConditionalRun run(context, std::move(parts), std::move(shape));
  auto result = co_await run.run(timeout_us);
  co_return result;
}

Task<Result<StatementResult>> execute_conditional(ExecuteContext& context,
                                                  const ModifyStatement& statement,
                                                  std::span<const BoundValue> values) {
  base::Arena arena;
  const FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  TETRAD_CO_TRY(const int64_t timeout_us,
                evaluate_timeout_us(statement.attributes().timeout, evaluation,
                                    context.settings.write_timeout_us));
  std::vector<StatementPart> parts{{&statement, values}};
  auto result = co_await run_conditional(context, std::move(parts), statement.shape(), timeout_us);
  co_return result;
}

}  // namespace tetrad::cql
