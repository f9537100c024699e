// SPDX-License-Identifier: Apache-2.0
// Checks SELECT against the schema. The steps, and why they stand in their order, are at the top of
// prepare_select.cc; the result is a SelectStatement (prepared_select.h).
#pragma once

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// Errors: kInvalid, kUnauthorized with Cassandra's texts.
Result<StatementPtr> prepare_select(const ast::Select& statement, const PrepareContext& context);

}  // namespace tetrad::cql
