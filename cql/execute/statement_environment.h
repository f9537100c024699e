// SPDX-License-Identifier: Apache-2.0
// What statements on data share when they run: the surroundings of functions, timestamps, limits.
#pragma once

#include <span>

#include "cql/prepare/expression.h"
#include "cql/prepare/prepared_modify.h"
#include "cql/prepare/prepared_statement.h"
#include "storage/row/mutation.h"

namespace tetrad::cql {

/// What may be estimated of a request for each microsecond that it has: estimates err.
constexpr uint64_t kWorkNsPerUs = 4'000;

/// `context` outlives the result.
FunctionEnvironment make_function_environment(ExecuteContext& context);

/// Of a write, for what is estimated.
void set_work_limit(ExecuteContext& context, int64_t timeout_us);

/// Ends when the loop has let the others in.
Task<void> next_turn(base::Reactor& reactor);

/// The value of USING TIMESTAMP; `otherwise` when it is unset. Errors: kInvalid.
Result<int64_t> evaluate_timestamp(const Expression& expression, EvalContext& context,
                                   int64_t otherwise);

/// The value of USING TIMEOUT in microseconds; `otherwise_us` when it is not written or unset.
/// Errors: kInvalid.
Result<int64_t> evaluate_timeout_us(const ExpressionPtr& expression, EvalContext& context,
                                    int64_t otherwise_us);

/// Everything of a write but its timestamp.
WriteMoment moment_of(ExecuteContext& context);

/// Refuses a mutation above the limit.
Result<void> check_mutation_sizes(std::span<const storage::Mutation> mutations,
                                  const TableSchema& table, const QuerySettings& settings);

}  // namespace tetrad::cql
