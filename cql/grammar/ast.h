// SPDX-License-Identifier: Apache-2.0
// The tree of a CQL statement: what was written, not yet what it means. Knows no schema.
//
// Plain values: movable, copyable, no pointer into the text. Every node that an error may be about
// has a Position; a field's comment says what it means.
#pragma once

#include <variant>

#include "cql/grammar/ast_auth.h"
#include "cql/grammar/ast_modify.h"
#include "cql/grammar/ast_schema.h"
#include "cql/grammar/ast_select.h"
#include "cql/grammar/ast_terms.h"
#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

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
