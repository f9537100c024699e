// SPDX-License-Identifier: Apache-2.0
// The door to the statements about roles and permissions, and what statements about the schema have
// to do with them.
#pragma once

#include "cql/prepare/prepared_statement.h"
#include "cql/protocol/schema_change.h"

namespace tetrad::cql {

bool is_role_statement(const ast::Statement& statement);

/// Errors: kSyntax for permissions that the resource cannot have, kInvalid, with Cassandra's texts.
/// Whether its client may run it is checked when it runs.
Result<StatementPtr> prepare_role_statement(const ast::Statement& statement,
                                            const PrepareContext& context);
/// LIST ROLES, LIST USERS and LIST PERMISSIONS. `resource`: of ON, as a path.
StatementPtr make_list_roles(const ast::ListRoles& statement);
StatementPtr make_list_permissions(const ast::ListPermissions& statement,
                                   std::optional<std::string> resource);

/// What a statement that changes the schema needs. `keyspace`: in effect.
void add_schema_access(const ast::Statement& statement, const std::string& keyspace,
                       RequiredAccess& out);
/// What it needs that only its plan tells: rights on functions, which have overloads, and on the
/// tables of indexes and views.
/// Errors: kUnauthorized.
Result<void> check_change_access(const ast::Statement& statement, const SchemaChange& answer,
                                 const SchemaSnapshot& schema, std::string_view role);
/// Adds to a change that who created something may do everything with it, and that permissions on
/// what is dropped go. `creator`: "" if nobody logged in.
void follow_in_roles(const SchemaChange& answer, const RoleSet& roles, const std::string& creator,
                     replication::SchemaChange& change);

/// Of the roles that a change is about, those that differ.
void put_roles(const std::map<std::string, std::optional<Role>>& changed,
               replication::SchemaChange& change);

/// Errors: kUnauthorized, nobody logged in: statements about roles need one who asks.
Result<void> check_not_anonymous(const ClientState& client);
/// The resource as a path; a table without a keyspace is in `keyspace`. Errors: kInvalid, kSyntax.
Result<std::string> resource_path(const ast::Resource& resource, const PrepareContext& context);
/// Whether there is such a thing.
bool is_there(std::string_view resource, const SchemaSnapshot& schema);

}  // namespace tetrad::cql
