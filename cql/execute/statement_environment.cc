// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/statement_environment.h"

#include "cql/types/value.h"
#include "replication/repair/purge_horizon.h"

namespace tetrad::cql {

FunctionEnvironment make_function_environment(ExecuteContext& context) {
  return {&context.random, context.reactor.wall_time_us() / 1000,
          [&coordinator = context.coordinator] { return coordinator.next_timestamp_us(); },
          &context.scripts, &context.work};
}

void set_work_limit(ExecuteContext& context, int64_t timeout_us) {
  context.work.set_limit(kWorkNsPerUs * static_cast<uint64_t>(timeout_us),
                         context.options.consistency, true);
}

Task<void> next_turn(base::Reactor& reactor) {
  base::OneShot<bool> turn;
  reactor.post([setter = turn.setter()] { setter.set(true); });
  co_await turn;
}

Result<int64_t> evaluate_timestamp(const Expression& expression, EvalContext& context,
                                   int64_t otherwise) {
  TETRAD_TRY(const BoundValue value, expression.evaluate(context));
  if (value.is_unset()) return otherwise;
  if (value.is_null()) return fail(ErrorCode::kInvalid, "Invalid null value of timestamp");
  const auto timestamp = read_bigint(value.bytes);
  if (!timestamp) return fail(ErrorCode::kInvalid, "Invalid timestamp value: null");
  if (*timestamp == storage::kNoTimestamp) {
    return fail(ErrorCode::kInvalid,
                "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]");
  }
  return *timestamp;
}

Result<int64_t> evaluate_timeout_us(const ExpressionPtr& expression, EvalContext& context,
                                    int64_t otherwise_us) {
  if (expression == nullptr) return otherwise_us;
  TETRAD_TRY(const BoundValue value, expression->evaluate(context));
  if (value.is_unset()) return otherwise_us;
  const auto timeout = value.is_null() ? std::nullopt : read_duration(value.bytes);
  if (!timeout) return fail(ErrorCode::kInvalid, "Timeout value cannot be null");
  if (timeout->months != 0 || timeout->days != 0) {
    return fail(ErrorCode::kInvalid, "Timeout values cannot be expressed in days/months");
  }
  if (timeout->nanos % 1'000'000 != 0) {
    return fail(ErrorCode::kInvalid,
                "Timeout values cannot have granularity finer than milliseconds");
  }
  if (timeout->nanos <= 0) return fail(ErrorCode::kInvalid, "Timeout values must be positive");
  // What is purged relies on no request going on for longer.
  constexpr int64_t kLongestUs = replication::HorizonSlack().longest_deadline_us;
  if (timeout->nanos / 1'000 > kLongestUs) {
    return fail(ErrorCode::kInvalid, "Timeout values cannot be longer than {} seconds",
                kLongestUs / 1'000'000);
  }
  return timeout->nanos / 1'000;
}

Result<void> check_mutation_sizes(std::span<const storage::Mutation> mutations,
                                  const TableSchema& table, const QuerySettings& settings) {
  for (const storage::Mutation& mutation : mutations) {
    const size_t size = mutation.size_bytes();
    if (size <= settings.mutation_bytes_max) continue;
    return fail(ErrorCode::kInvalid,
                "Encountered an oversized mutation ({}/{}) for keyspace: {}. Top keys are: {}.{}",
                size, settings.mutation_bytes_max, table.keyspace, table.name,
                base::to_hex(BytesView(mutation.partition_key).substr(0, 64)));
  }
  return {};
}

WriteMoment moment_of(ExecuteContext& context) {
  WriteMoment moment;
  moment.now_s = moment.dated_s = context.now_s;
  if (!context.options.now_in_seconds) return moment;
  moment.dated_s = context.coordinator.now_us() / 1'000'000;
  moment.warnings = &context.warnings;
  moment.clock_skew_s = context.coordinator.clock_skew_us() / 1'000'000;
  return moment;
}

}  // namespace tetrad::cql
