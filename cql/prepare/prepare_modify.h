// SPDX-License-Identifier: Apache-2.0
// Checks INSERT, UPDATE, DELETE and BATCH against the schema.
#pragma once

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

// Each gives a statement with its markers' names and types. Errors: kInvalid, kSyntax.
Result<StatementPtr> prepare_insert(const ast::Insert& statement, const PrepareContext& context);
Result<StatementPtr> prepare_insert_json(const ast::InsertJson& statement,
                                         const PrepareContext& context);
Result<StatementPtr> prepare_update(const ast::Update& statement, const PrepareContext& context);
Result<StatementPtr> prepare_delete(const ast::Delete& statement, const PrepareContext& context);
Result<StatementPtr> prepare_batch(const ast::Batch& statement, const PrepareContext& context);

/// The table of a name. Errors: kInvalid "keyspace ks does not exist", "table t does not exist",
/// "No keyspace has been specified. …".
Result<TablePtr> find_table(const ast::QualifiedName& name, const PrepareContext& context);
/// `tetrad` is what system_tetrad was called, and means it where no keyspace has that name.
std::string keyspace_named(const SchemaSnapshot& schema, const std::string& name);

}  // namespace tetrad::cql
