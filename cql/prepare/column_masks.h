// SPDX-License-Identifier: Apache-2.0
// Masks of columns (dynamic data masking): from what a statement writes to what the schema keeps,
// and from there to an expression that a SELECT evaluates.
#pragma once

#include <span>
#include <vector>

#include "cql/prepare/prepared_select.h"
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

/// What is shown in place of the values of masked columns; `slots`: the columns of a row. None
/// while masks are disabled. `used`: gets the functions that are user-defined. Errors: kInvalid, a
/// function is not there, or such functions are disabled.
Result<std::vector<MaskedSlot>> make_masks(std::span<const ColumnSchema* const> slots,
                                           const SchemaSnapshot& schema,
                                           const QuerySettings& settings, UsedFunctions& used);
/// Puts into `values`, a copy of those of `unmasked.row`, what is shown; they live in the
/// evaluation's arena, in the masks or in the row. Errors: of the masks' functions.
Result<void> mask_values(std::span<const MaskedSlot> masks, EvalContext& unmasked,
                         std::vector<OptionalView>& values);

/// The tables of a keyspace with masks that call the function.
std::string tables_masked_by(const FunctionSchema& function, const KeyspaceSchema& keyspace);

}  // namespace tetrad::cql
