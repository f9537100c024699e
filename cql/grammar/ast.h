// SPDX-License-Identifier: Apache-2.0
// The tree of a CQL statement: what was written, not yet what it means. Knows no schema.
//
// Plain values: movable, copyable, no pointer into the text. Every node that an error may be about
// has a Position; a field's comment says what it means.
//
// The way of a tree: parser.h makes it, cql/prepare checks it against a snapshot of the schema and
// turns it into a PreparedStatement, and then it is dropped. Nothing that runs a statement looks at
// a tree again.
#pragma once

#include <variant>

#include "cql/grammar/ast_auth.h"
#include "cql/grammar/ast_modify.h"
#include "cql/grammar/ast_schema.h"
#include "cql/grammar/ast_select.h"
#include "cql/grammar/ast_terms.h"
#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

// One alternative for each form of statement, in the order of the headers above. Whoever visits it
// handles all of them: a new statement is a new struct, an alternative here, a rule in
// parse_statement.cc and a case in prepare_statement.cc.
using Statement = std::variant<
    Select, Explain, Insert, InsertJson, Update, Delete, Batch, Truncate, Use,
    // schema
    CreateKeyspace, AlterKeyspace, DropKeyspace, CreateTable, AlterTable, DropTable, CreateType,
    AlterType, DropType, CreateIndex, DropIndex, CreateView, AlterView, DropView, CreateFunction,
    DropFunction, CreateAggregate, DropAggregate, CreateTrigger, DropTrigger,
    // roles and permissions
    CreateRole, AlterRole, DropRole, ListRoles, GrantRole, RevokeRole, GrantPermissions,
    RevokePermissions, ListPermissions, AddIdentity, DropIdentity, Describe>;

}  // namespace tetrad::cql::ast
