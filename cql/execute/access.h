// SPDX-License-Identifier: Apache-2.0
// Whether a client may run a statement. Asked each time one runs, prepared or not, of the roles
// that the shard knows then: what was revoked is not used once more.
#pragma once

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// Errors: kUnauthorized, with Cassandra's texts. Only for clients that must log in: others may do
/// everything. `data_center`: of this node.
Result<void> check_access(const Statement& statement, const ClientState& client,
                          const SchemaSnapshot& schema, std::string_view data_center);

/// Errors: kUnauthorized, "User … has no … permission on … or any of its parents".
Result<void> check_permission(const RoleSet& roles, std::string_view role,
                              const RequiredPermission& required);

/// Whether the client is shown the values of masked columns of the table: it may UNMASK them, or the
/// server does not ask who it is.
bool sees_unmasked(const ClientState& client, const SchemaSnapshot& schema,
                   const TableSchema& table);

/// Whether anybody who may log in may read the table: drivers and tools need it.
bool is_readable_by_all(std::string_view keyspace, std::string_view table);

}  // namespace tetrad::cql
