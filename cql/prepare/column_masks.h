// SPDX-License-Identifier: Apache-2.0
// Masks of columns (dynamic data masking): from what a statement writes to what the schema keeps,
// and from there to an expression that a SELECT evaluates.
#pragma once

#include "cql/prepare/expression.h"
#include "cql/prepare/schema_plan.h"

namespace tetrad::cql {

/// The mask that a statement writes for a column of the table `keyspace`.`table`, which need not be
/// there yet. Errors: kInvalid with Cassandra's texts; masks are not enabled, or not all nodes know
/// them.
Result<ColumnMaskPtr> resolve_mask(const ast::ColumnMask& written, const ColumnSchema& column,
                                   const std::string& keyspace, const std::string& table,
                                   const PlanInput& input);
/// As long as no column has a mask nothing of this file is done. Errors: as above.
Result<void> check_masks_enabled(const PlanInput& input);

/// What is shown in place of the value in `slot` of a row. `used`: gets the function if it is a
/// user-defined one. Errors: kInvalid, it is not there, or such functions are disabled.
Result<ExpressionPtr> mask_expression(const ColumnSchema& column, int32_t slot,
                                      const SchemaSnapshot& schema, const QuerySettings& settings,
                                      UsedFunctions& used);

/// The tables of a keyspace with masks that call the function.
std::string tables_masked_by(const FunctionSchema& function, const KeyspaceSchema& keyspace);

}  // namespace tetrad::cql
