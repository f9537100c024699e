// SPDX-License-Identifier: Apache-2.0
// Checks SELECT against the schema.
#pragma once

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

Result<StatementPtr> prepare_select(const ast::Select& statement, const PrepareContext& context);

}  // namespace tetrad::cql
