// SPDX-License-Identifier: Apache-2.0
// UPDATE, DELETE and batches of tables with counters.
#pragma once

#include "cql/execute/execute_conditional.h"

namespace tetrad::cql {

/// Statements of tables with counters, one or those of a batch. Increments go to the leaders of
/// their partitions, what is deleted is an ordinary write before them.
Task<Result<StatementResult>> run_counters(ExecuteContext& context,
                                           std::vector<StatementPart> parts, bool is_batch,
                                           int64_t timeout_us);

}  // namespace tetrad::cql
