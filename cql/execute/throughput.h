// SPDX-License-Identifier: Apache-2.0
// Statements at the gate of their tables' throughputs (replication/throughput/throughput_gate.h).
// They ask to be let in only when is_limited() says so: other tables cost nothing.
#pragma once

#include <span>

#include "cql/prepare/prepared_statement.h"
#include "replication/throughput/throughput_gate.h"

namespace tetrad::cql {

/// Whether the table has a throughput limit. Inline: it is asked for each statement, most tables
/// have none.
inline bool is_limited(const ExecuteContext& context, TableIncarnation table) {
  return context.throughput != nullptr && context.throughput->limits(table);
}
/// Whether any of the mutations is of a table with a limit.
bool is_limited(const ExecuteContext& context, std::span<const storage::Mutation> mutations);

/// With what the request has cost before, which is reads of lists. Errors: kOverloaded.
Task<Result<void>> admit_writes(ExecuteContext& context,
                                const std::vector<storage::Mutation>& mutations,
                                base::Deadline deadline);

}  // namespace tetrad::cql
