// SPDX-License-Identifier: Apache-2.0
// The door to everything that is no statement on data: schema statements, USE, TRUNCATE, DESCRIBE,
// roles and permissions.
#pragma once

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// Checks such a statement against the snapshot. Errors: kInvalid, kConfig, kAlreadyExists with
/// Cassandra's texts.
Result<StatementPtr> prepare_schema_statement(const ast::Statement& statement,
                                              const PrepareContext& context);

}  // namespace tetrad::cql
