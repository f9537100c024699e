// SPDX-License-Identifier: Apache-2.0
// BATCH, as a statement and as a frame of the protocol: the changes of all statements, one mutation
// for each partition.
//
// Parts of one partition are one atomic write. Those of several partitions are independent writes
// in an unlogged batch; of a logged one all are written in the end, or none.
//
// 1. Batches of counters and conditional batches go their own ways.
// 2. Each part is bound and makes its mutations, in the order of the batch; long parts on a worker,
//    and a turn is given up between parts. All parts have one timestamp, but those with USING
//    TIMESTAMP.
// 3. Mutations of one partition are joined (join_mutations.h).
// 4. Sizes, disks, throughput; then one write, or the log of batches first (write_logged).
#include <algorithm>
#include <limits>
#include <utility>

#include "cql/execute/batch_figures.h"
#include "cql/execute/disk_guard.h"
#include "cql/execute/execute_conditional.h"
#include "cql/execute/execute_counter.h"
#include "cql/execute/join_mutations.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/statement_environment.h"
#include "cql/execute/throughput.h"
#include "cql/prepare/prepared_modify.h"
#include "replication/consistency.h"

namespace tetrad::cql {

namespace {

using storage::Mutation;

/// As Cassandra: an unlogged batch over more partitions carries a warning.
constexpr size_t kPartitionsWarned = 10;

/// Estimated: a part that is neither large nor calls a function.
constexpr uint64_t kPartNs = 1'000;
// Of parts or mutations; more may take longer than a turn to join.
constexpr size_t kJoinedOnLoopMax = 256;

int64_t usual_timeout_us(const QuerySettings& settings, BatchType type) {
  return type == BatchType::kCounter ? settings.counter_write_timeout_us
                                     : settings.write_timeout_us;
}

// Only a guess before lists are read; each part is looked at again when its lists are known.
bool may_be_long_batch(const ExecuteContext& context, std::span<const StatementPart> parts) {
  if (context.off_loop == nullptr) return false;
  const ListContents none;
  return parts.size() > kJoinedOnLoopMax ||
         std::ranges::any_of(parts, [&](const StatementPart& part) {
           return part.statement->needs_read() ||
                  part.statement->is_long_to_make(context, part.values, &none);
         });
}

/// The guardrails on a batch of several partitions; one partition is an ordinary write, however many
/// statements it has. Errors: kInvalid, above batch_fail_bytes.
Result<void> check_batch_size(ExecuteContext& context, BatchType type, const TableSchema& table,
                              std::span<const Mutation> mutations) {
  if (mutations.size() <= 1) return {};
  size_t size = 0;
  for (const Mutation& mutation : mutations) size += mutation.size_bytes();
  if (size > context.settings.batch_fail_bytes) {
    return fail(ErrorCode::kInvalid, "Batch too large");
  }
  if (size > context.settings.batch_warn_bytes) {
    context.warnings.push_back(
        fmt::format("Batch for [{}] is of size {}, exceeding specified threshold of {} by {}.",
                    table.qualified_name(), size, context.settings.batch_warn_bytes,
                    size - context.settings.batch_warn_bytes));
  }
  if (type == BatchType::kUnlogged && mutations.size() > kPartitionsWarned) {
    context.warnings.push_back(fmt::format(
        "Unlogged batch covering {} partitions detected against table [{}]. You should use a "
        "logged batch for atomicity, or asynchronous writes for performance.",
        mutations.size(), table.qualified_name()));
  }
  return {};
}

// The steps of the head of this file, in one piece: all parts share the arena, the guard and the ids
// of list elements, which must outlive every wait.
Task<Result<StatementResult>> run_batch(ExecuteContext& context, BatchType type,
                                        std::vector<StatementPart> parts,
                                        std::optional<int64_t> batch_timestamp_us,
                                        int64_t timeout_us) {
  if (parts.empty()) co_return StatementResult();
  if (parts.front().statement->table().is_counter) {
    auto counted = co_await run_counters(context, std::move(parts), true, timeout_us);
    co_return counted;
  }
  if (std::ranges::any_of(
          parts, [](const StatementPart& part) { return part.statement->has_conditions(); })) {
    auto decided = co_await run_conditional(context, std::move(parts), nullptr, timeout_us);
    co_return decided;
  }
  TETRAD_CO_TRY_VOID(replication::check_write_level(context.options.consistency));
  const Guardrails& guardrails = context.settings.guardrails;
  TETRAD_CO_TRY_VOID(check_consistency(guardrails.write_consistency_levels,
                                       context.options.consistency, true, context.warnings));
  const ValueGuard guard{guardrails, context.warnings};
  base::Arena arena;
  const int64_t now_us = context.coordinator.next_timestamp_us();
  FunctionEnvironment functions = make_function_environment(context);
  const base::Deadline deadline{context.reactor.now_us() + timeout_us};
  const int64_t timestamp_us =
      batch_timestamp_us.value_or(context.options.timestamp_us.value_or(now_us));
  set_work_limit(context, timeout_us);
  WorkMeter& work = context.work;
  const bool may_be_long = may_be_long_batch(context, parts);
  base::Random own_random(may_be_long ? context.random.next() : 0);
  ListCellIds ids(may_be_long ? own_random : context.random, now_us);
  std::vector<Mutation> mutations;
  // The oldest of the parts' dates: parts of a long batch may see the clock move.
  int64_t dated_s = std::numeric_limits<int64_t>::max();
  work.begin_turn();
  for (const StatementPart& part : parts) {
    if (work.turn_is_over()) {
      co_await next_turn(context.reactor);
      work.begin_turn();
      if (context.reactor.now_us() > deadline.at_us) co_return std::unexpected(work.timed_out());
    }
    TETRAD_CO_TRY_VOID(work.spend(kPartNs + bind_ns(*part.statement, part.values)));
    EvalContext evaluation{part.values, arena, functions, context.now_s, nullptr, {}};
    WriteMoment moment = moment_of(context);
    dated_s = std::min(dated_s, moment.dated_s);
    TETRAD_CO_TRY(moment.timestamp_us, part.statement->timestamp(evaluation, timestamp_us));
    if (part.statement->has_timestamp()) {
      TETRAD_CO_TRY_VOID(check_timestamp(guardrails, moment.timestamp_us,
                                         context.coordinator.now_us(), part.statement->table().name,
                                         context.warnings));
    }
    if (guardrails.on_values()) moment.guard = &guard;
    ListContents lists;
    if (part.statement->needs_read()) {
      TETRAD_CO_TRY_VOID(part.statement->check_list_reads(guardrails));
      auto read = co_await part.statement->read_lists(context, evaluation, deadline);
      if (!read) co_return std::unexpected(std::move(read).error());
      lists = std::move(*read);
    }
    const uint32_t product_max = context.settings.in_cartesian_product_max;
    Result<void> added;
    if (may_be_long && part.statement->is_long_to_make(context, part.values, &lists)) {
      const std::function<void()> add = [&] {
        added =
            part.statement->add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
      };
      co_await evaluate_off_loop(context, functions, add);
    } else {
      added =
          part.statement->add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
    }
    TETRAD_CO_TRY_VOID(std::move(added));
  }
  Result<std::vector<Mutation>> joined;
  const std::function<void()> join_all = [&] { joined = join_by_partition(std::move(mutations)); };
  if (may_be_long && mutations.size() > kJoinedOnLoopMax) {
    co_await evaluate_off_loop(context, functions, join_all);
    if (context.reactor.now_us() > deadline.at_us) co_return std::unexpected(work.timed_out());
  } else {
    join_all();
  }
  TETRAD_CO_TRY(mutations, std::move(joined));
  if (mutations.empty()) co_return StatementResult();
  const TableSchema& table = parts.front().statement->table();
  TETRAD_CO_TRY_VOID(check_batch_size(context, type, table, mutations));
  if (context.batches != nullptr)
    context.batches->note(type, mutations.size(), context.reactor.now_us());
  TETRAD_CO_TRY_VOID(check_mutation_sizes(mutations, table, context.settings));
  TETRAD_CO_TRY_VOID(check_replica_disks(context, mutations));
  if (is_limited(context, mutations)) {
    auto admitted = co_await admit_writes(context, mutations, deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  context.charge.add_write(mutations);
  const replication::WriteOptions options{
      context.options.consistency,
      deadline,
      type == BatchType::kLogged ? base::WriteType::kBatch : base::WriteType::kUnloggedBatch,
      &context.warnings,
      timestamp_us == now_us ? std::optional(now_us) : std::nullopt,
      context.trace,
      dated_s * 1'000'000};
  Result<void> written;
  if (type == BatchType::kLogged)
    written = co_await context.coordinator.write_logged(std::move(mutations), options);
  else
    written = co_await context.coordinator.write(std::move(mutations), options);
  if (!written) co_return std::unexpected(std::move(written).error());
  co_return StatementResult();
}

}  // namespace

void BatchStatement::required_access(RequiredAccess& out) const {
  for (const auto& statement : statements_) statement->required_access(out);
}

bool BatchStatement::is_current(const SchemaSnapshot& schema) const {
  return std::ranges::all_of(statements_,
                             [&](const auto& statement) { return statement->is_current(schema); });
}

Task<Result<StatementResult>> BatchStatement::execute(ExecuteContext& context,
                                                      std::span<const BoundValue> values) const {
  std::optional<int64_t> timestamp_us;
  base::Arena arena;
  const FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  if (timestamp_) {
    constexpr int64_t kUnset = storage::kNoTimestamp;
    // kUnset can be no timestamp: a marker that is not set leaves the request's.
    TETRAD_CO_TRY(const int64_t given, evaluate_timestamp(*timestamp_, evaluation, kUnset));
    if (given != kUnset) timestamp_us = given;
  }
  TETRAD_CO_TRY(
      const int64_t timeout_us,
      evaluate_timeout_us(timeout_, evaluation, usual_timeout_us(context.settings, type_)));
  std::vector<StatementPart> parts;
  for (const auto& statement : statements_) parts.push_back({statement.get(), values});
  auto result = co_await run_batch(context, type_, std::move(parts), timestamp_us, timeout_us);
  co_return result;
}

// The BATCH request (native protocol v5, section 4.1.7): parts were prepared one by one, so the
// checks of a batch run here.
Task<Result<StatementResult>> execute_protocol_batch(ExecuteContext& context, BatchType kind,
                                                     std::span<const BatchEntry> entries) {
  std::vector<StatementPart> parts;
  BatchCheck check;
  for (const BatchEntry& entry : entries) {
    const auto* statement = dynamic_cast<const ModifyStatement*>(entry.statement.get());
    if (statement == nullptr) {
      co_return fail(
          ErrorCode::kInvalid,
          "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
    }
    if (statement->has_timeout()) {
      co_return fail(ErrorCode::kInvalid,
                     "Timeout must be set on BATCH, not on individual statements");
    }
    check.add(*statement);
    parts.push_back({statement, entry.values});
  }
  TETRAD_CO_TRY_VOID(check.check(kind, false));
  auto result = co_await run_batch(context, kind, std::move(parts), std::nullopt,
                                   usual_timeout_us(context.settings, kind));
  co_return result;
}

}  // namespace tetrad::cql
