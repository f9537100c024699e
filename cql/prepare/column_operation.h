// SPDX-License-Identifier: Apache-2.0
// SET of an UPDATE and the columns of a DELETE: what one assignment or deletion means for the type
// of its column.
#pragma once

#include <vector>

#include "cql/grammar/ast.h"
#include "cql/prepare/prepared_modify.h"

namespace tetrad::cql {

/// Whether the assignments of one UPDATE go together: parts of a column may be set beside each
/// other, a whole value beside nothing, a field once. Errors: kSyntax.
Result<void> check_assignments(const std::vector<ast::Assignment>& assignments);

/// The operation of an assignment. `is_conditional`: the statement has IF. Errors: kInvalid, the
/// column's type has no such operation, or the value does not fit.
Result<ColumnOperation> operation_of(const ast::Assignment& source, const ColumnSchema& column,
                                     ExpressionBuilder& expressions, bool is_conditional);

/// The operation of DELETE c, c[key] or c.field. Errors: kInvalid.
Result<ColumnOperation> operation_of(const ast::Deletion& source, const ColumnSchema& column,
                                     ExpressionBuilder& expressions);

}  // namespace tetrad::cql
