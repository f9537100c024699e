// SPDX-License-Identifier: Apache-2.0
// Whether a client may run a statement. The order decides which error a client gets:
//
// 1. The connection has logged in, and its role is still there and may log in.
// 2. The role may use the data centre of this node.
// 3. A superuser may do everything else.
// 4. Each permission that the statement needs, on its resource or a parent of it, by the role or a
//    role it is a member of.
// 5. Statements for superusers only.
// 6. Masked columns in conditions need UNMASK or SELECT_MASKED.
//
// Roles are part of the schema snapshot, so a check takes no lock and no message. A GRANT or REVOKE
// holds on a node as soon as its shard has the new schema.
#include "cql/execute/access.h"

#include <algorithm>

namespace tetrad::cql {

bool is_readable_by_all(std::string_view keyspace, std::string_view table) {
  // What a driver reads when it connects: it must be able to with any role.
  constexpr std::string_view kFree[] = {"local", "peers", "peers_v2", "size_estimates",
                                        "table_estimates"};
  if (keyspace == "system") return std::ranges::find(kFree, table) != std::end(kFree);
  return keyspace == "system_schema" || keyspace == "system_virtual_schema" ||
         keyspace == kTracesKeyspace;
}

Result<void> check_permission(const RoleSet& roles, std::string_view role,
                              const RequiredPermission& required) {
  const PermissionSet held = roles.permissions(role, required.resource);
  if ((held & set_of(required.permission)) != 0) return {};
  return fail(ErrorCode::kUnauthorized, "User {} has no {} permission on {} or any of its parents",
              role, name_of(required.permission), shown_resource(required.resource));
}

namespace {

Result<void> check_masks(const RestrictedMasks& masks, const RoleSet& roles,
                         const std::string& user) {
  const PermissionSet held = roles.permissions(user, table_resource(masks.keyspace, masks.table));
  if ((held & set_of(Permission::kUnmask, Permission::kSelectMasked)) != 0) return {};
  return fail(ErrorCode::kUnauthorized,
              "User {} has no UNMASK nor SELECT_MASKED permission on table {}.{}, cannot query "
              "masked columns [{}]",
              user, masks.keyspace, masks.table, fmt::join(masks.columns, ", "));
}

}  // namespace

Result<void> check_access(const Statement& statement, const ClientState& client,
                          const SchemaSnapshot& schema, std::string_view data_center) {
  if (client.user.empty()) return fail(ErrorCode::kUnauthorized, "You have not logged in");
  const RoleSet& roles = *schema.roles();
  const Role* const role = roles.find(client.user);
  if (role == nullptr || !role->can_login)
    return fail(ErrorCode::kUnauthorized, "{} is not permitted to log in", client.user);
  if (!role->datacenters.empty() && !role->datacenters.contains(std::string(data_center)))
    return fail(ErrorCode::kUnauthorized, "You do not have access to this datacenter ({})",
                data_center);
  if (roles.is_superuser(client.user)) return {};
  // Collected only now: superusers do not pay for it.
  RequiredAccess required;
  statement.required_access(required);
  for (const RequiredPermission& permission : required.permissions)
    TETRAD_TRY_VOID(check_permission(roles, client.user, permission));
  if (required.superuser_only)
    return fail(ErrorCode::kUnauthorized, "{}", *required.superuser_only);
  for (const RestrictedMasks& masks : required.restricted_masks)
    TETRAD_TRY_VOID(check_masks(masks, roles, client.user));
  return {};
}

bool sees_unmasked(const ClientState& client, const SchemaSnapshot& schema,
                   const TableSchema& table) {
  // Without authentication nobody has permissions, and all see everything.
  if (!client.must_log_in) return true;
  const PermissionSet held =
      schema.roles()->permissions(client.user, table_resource(table.keyspace, table.name));
  return (held & set_of(Permission::kUnmask)) != 0;
}

}  // namespace tetrad::cql
