// SPDX-License-Identifier: Apache-2.0
// Conditional statements and batches: what they read, whether their conditions hold on it, and what
// they then write or answer.
#pragma once

#include <span>
#include <vector>

#include "cql/prepare/prepared_modify.h"
#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// A statement of a batch with its values.
struct StatementPart {
  const ModifyStatement* statement;
  std::span<const BoundValue> values;
};

Task<Result<StatementResult>> execute_conditional(ExecuteContext& context,
                                                  const ModifyStatement& statement,
                                                  std::span<const BoundValue> values);

/// Of one table; one at least has conditions. `shape`: of a statement that stands alone; null: they
/// are a batch, whose answer names rows by their keys.
Task<Result<StatementResult>> run_conditional(ExecuteContext& context,
                                              std::vector<StatementPart> parts,
                                              ConditionalShapePtr shape, int64_t timeout_us);

}  // namespace tetrad::cql
