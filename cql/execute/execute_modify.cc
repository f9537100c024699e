// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE and DELETE as statements that stand alone: from their values to the answer.
//
// ModifyStatement::execute, without conditions and counters:
//
// 1. Timestamp: USING TIMESTAMP, the protocol's default timestamp, or the coordinator's clock, in
//    this order. It is taken before anything waits, so that statements of one connection keep their
//    order.
// 2. Guardrails and the consistency level, then the timeout and the limit of the work.
// 3. Operations that depend on what is stored (a list's element by index, removal of elements,
//    `c = c + x` of a number or a text) read the rows first (read_lists.cc).
// 4. add_mutations makes one mutation for each partition (make_mutations.cc) with the keys of
//    bind_modify.cc; large ones are made on a worker thread.
// 5. Checks of the whole: sizes, the replicas' disks; then admission, where the table has a
//    throughput limit.
// 6. The coordinator writes. Nothing is written when any step before has failed.
//
// Conditional statements go through execute_conditional.cc, counters through execute_counter.cc,
// parts of a batch through execute_batch.cc. All make their mutations with add_mutations.
#include <algorithm>
#include <utility>

#include "cql/execute/disk_guard.h"
#include "cql/execute/execute_conditional.h"
#include "cql/execute/execute_counter.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/statement_environment.h"
#include "cql/execute/throughput.h"
#include "cql/prepare/prepared_modify.h"
#include "cql/types/value.h"
#include "replication/consistency.h"

namespace tetrad::cql {

namespace {

// The maximum is Cassandra's. Expiry times are 32-bit seconds, so a longer TTL would pass their
// end.
constexpr int32_t kTtlMax = 630'720'000;  // 20 years

bool is_same_table(const SchemaSnapshot& schema, const TableSchema& table) {
  const TablePtr now = schema.table(table.keyspace, table.name);
  return now && now->is_as(table);
}

}  // namespace

// --- the statement ---

bool ModifyStatement::is_current(const SchemaSnapshot& schema) const {
  return is_same_table(schema, *table_) && used_functions_.are_current(schema);
}

/// A condition tells what is there: it is a read as well. As in Cassandra what a table's views show
/// of a row is made of what is there, too.
void ModifyStatement::required_access(RequiredAccess& out) const {
  out.add(Permission::kModify, table_resource(table_->keyspace, table_->name));
  if (has_conditions() || !table_->views.empty())
    out.add(Permission::kSelect, table_resource(table_->keyspace, table_->name));
  used_functions_.add_required(out);
  if (!restricted_masks_.empty())
    out.restricted_masks.push_back({table_->keyspace, table_->name, restricted_masks_});
}

// Microseconds since 1970. `otherwise` is the request's default timestamp, or the coordinator's.
Result<int64_t> ModifyStatement::timestamp(EvalContext& context, int64_t otherwise) const {
  if (!attributes_.timestamp) return otherwise;
  return evaluate_timestamp(*attributes_.timestamp, context, otherwise);
}

// Seconds; 0: the cells never expire. As in Cassandra: UNSET leaves the table's default, NULL
// switches it off.
Result<int32_t> ModifyStatement::ttl(EvalContext& context) const {
  const int32_t fallback = table_->options.default_time_to_live_s;
  if (!attributes_.ttl) return fallback;
  TETRAD_TRY(const BoundValue value, attributes_.ttl->evaluate(context));
  if (value.is_unset()) return fallback;
  if (value.is_null()) return 0;
  const auto ttl = read_int(value.bytes);
  if (!ttl) return fail(ErrorCode::kInvalid, "Invalid TTL value: null");
  if (*ttl < 0) {
    return fail(ErrorCode::kInvalid, "A TTL must be greater or equal to 0, but was {}", *ttl);
  }
  if (*ttl > kTtlMax) {
    return fail(ErrorCode::kInvalid, "ttl is too large. requested ({}) maximum ({})", *ttl,
                kTtlMax);
  }
  return *ttl;
}

// Whether add_mutations() may hold the loop for more than a piece of work (WorkMeter::kPieceNs):
// large values, a large JSON text (30 ns for each byte, estimated) or more than 4,096 list
// elements.
bool ModifyStatement::is_long_to_make(const ExecuteContext& context,
                                      std::span<const BoundValue> values,
                                      const ListContents* lists) const {
  if (context.off_loop == nullptr) return false;
  if (is_long_to_bind(context, *this, values)) return true;
  constexpr uint64_t kJsonNsPerByte = 30;
  if (json_ && kJsonNsPerByte * context.request_bytes > WorkMeter::kPieceNs) return true;
  constexpr size_t kElementsOnLoop = 4096;
  size_t elements = 0;
  for (const ListContents::Entry& entry : lists->entries) elements += entry.elements.size();
  return elements > kElementsOnLoop;
}

namespace {

// USING TIMEOUT of a write to counters, otherwise the option counter_write_timeout_ms.
Result<int64_t> counter_timeout_us(ExecuteContext& context, const ModifyStatement& statement,
                                   std::span<const BoundValue> values) {
  base::Arena arena;
  const FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  return evaluate_timeout_us(statement.attributes().timeout, evaluation,
                             context.settings.counter_write_timeout_us);
}

// Whether the consistency level is one of writes, and whether guardrails let it and a timestamp of
// USING TIMESTAMP pass; other timestamps are not judged.
Result<void> check_level_and_timestamp(ExecuteContext& context, const ModifyStatement& statement,
                                       int64_t timestamp_us) {
  TETRAD_TRY_VOID(replication::check_write_level(context.options.consistency));
  const Guardrails& guardrails = context.settings.guardrails;
  TETRAD_TRY_VOID(check_consistency(guardrails.write_consistency_levels,
                                    context.options.consistency, true, context.warnings));
  if (!statement.has_timestamp()) return {};
  return check_timestamp(guardrails, timestamp_us, context.coordinator.now_us(),
                         statement.table().name, context.warnings);
}

// The write type is only what a timeout names; the mutations of one statement are not atomic across
// partitions, as in Cassandra. Only a timestamp of the coordinator's own clock (`now_us`) may be
// raised where a replica has seen a later one; a client's stands as it is.
replication::WriteOptions write_options(ExecuteContext& context, base::Deadline deadline,
                                        size_t mutation_count, const WriteMoment& moment,
                                        int64_t now_us) {
  return {context.options.consistency,
          deadline,
          mutation_count == 1 ? base::WriteType::kSimple : base::WriteType::kUnloggedBatch,
          &context.warnings,
          moment.timestamp_us == now_us ? std::optional(now_us) : std::nullopt,
          context.trace,
          moment.dated_s * 1'000'000};
}

}  // namespace

// The steps of the head of this file, in one piece: what it makes (evaluation, guard, ids, lists)
// must outlive every wait, so it lives in the frame of this one coroutine.
Task<Result<StatementResult>> ModifyStatement::execute(ExecuteContext& context,
                                                       std::span<const BoundValue> values) const {
  if (has_conditions()) {
    auto decided = co_await execute_conditional(context, *this, values);
    co_return decided;
  }
  if (table_->is_counter) {
    TETRAD_CO_TRY(const int64_t timeout_us, counter_timeout_us(context, *this, values));
    std::vector<StatementPart> parts{{this, values}};
    auto counted = co_await run_counters(context, std::move(parts), false, timeout_us);
    co_return counted;
  }
  // Unique and ascending on this shard, so two statements of one client that follow each other
  // never have equal timestamps.
  const int64_t now_us = context.coordinator.next_timestamp_us();
  base::Arena arena;
  FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  WriteMoment moment = moment_of(context);
  auto timestamp_us = timestamp(evaluation, context.options.timestamp_us.value_or(now_us));
  if (!timestamp_us) {
    // As Cassandra: a timestamp that is null is refused at once, one that is no valid number only
    // after the keys.
    TETRAD_CO_TRY(const BoundValue given, attributes_.timestamp->evaluate(evaluation));
    if (given.has_bytes()) {
      TETRAD_CO_TRY_VOID(check_keys(evaluation, context.settings.in_cartesian_product_max));
    }
    co_return std::unexpected(std::move(timestamp_us).error());
  }
  moment.timestamp_us = *timestamp_us;
  TETRAD_CO_TRY_VOID(check_level_and_timestamp(context, *this, moment.timestamp_us));
  const Guardrails& guardrails = context.settings.guardrails;
  const ValueGuard guard{guardrails, context.warnings};
  // Null when no guardrail on values is set, which spares a look at each of them.
  if (guardrails.on_values()) moment.guard = &guard;
  TETRAD_CO_TRY(const int64_t timeout_us, evaluate_timeout_us(attributes_.timeout, evaluation,
                                                              context.settings.write_timeout_us));
  const base::Deadline deadline{context.reactor.now_us() + timeout_us};
  set_work_limit(context, timeout_us);
  ListContents lists;
  if (needs_read_) {
    TETRAD_CO_TRY_VOID(check_list_reads(guardrails));
    auto read = co_await read_lists(context, evaluation, deadline);
    if (!read) co_return std::unexpected(std::move(read).error());
    lists = std::move(*read);
  }
  const bool is_long = is_long_to_make(context, values, &lists);
  // The shard's generator belongs to the shard's thread. The worker gets its own, seeded from it,
  // so that a simulation stays deterministic.
  base::Random own_random(is_long ? context.random.next() : 0);
  ListCellIds ids(is_long ? own_random : context.random, now_us);
  std::vector<storage::Mutation> mutations;
  const uint32_t product_max = context.settings.in_cartesian_product_max;
  Result<void> added;
  if (is_long) {
    const std::function<void()> add = [&] {
      added = add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
    };
    co_await evaluate_off_loop(context, functions, add);
    if (context.reactor.now_us() > deadline.at_us)
      co_return std::unexpected(context.work.timed_out());
  } else {
    added = add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
  }
  TETRAD_CO_TRY_VOID(std::move(added));
  // All values unset, or an empty IN: success without a write.
  if (mutations.empty()) co_return StatementResult();
  TETRAD_CO_TRY_VOID(check_mutation_sizes(mutations, *table_, context.settings));
  TETRAD_CO_TRY_VOID(check_replica_disks(context, mutations));
  if (is_limited(context, table_->incarnation)) {
    auto admitted = co_await admit_writes(context, mutations, deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  context.charge.add_write(mutations);
  const replication::WriteOptions options =
      write_options(context, deadline, mutations.size(), moment, now_us);
  auto written = co_await context.coordinator.write(std::move(mutations), options);
  if (!written) co_return std::unexpected(std::move(written).error());
  co_return StatementResult();
}

}  // namespace tetrad::cql
