// SPDX-License-Identifier: Apache-2.0
// system_auth: roles and permissions as Cassandra's tables show them. They are read only:
// statements about roles change what they show.
#include "cql/system/computed_tables.h"

namespace tetrad::cql {
namespace {

using namespace cells;

VirtualCell texts(const std::set<std::string>& values) {
  return text_set({values.begin(), values.end()});
}

VirtualRows rows_of_roles(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all())
    rows.push_back({text(name), flag(role->can_login), flag(role->is_superuser),
                    role->member_of.empty() ? kNull : texts(role->member_of),
                    role->salted_hash.empty() ? kNull : text(role->salted_hash)});
  return rows;
}

VirtualRows rows_of_members(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all())
    for (const std::string& granted : role->member_of) rows.push_back({text(granted), text(name)});
  return rows;
}

VirtualRows rows_of_permissions(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all()) {
    for (const auto& [resource, permissions] : role->grants) {
      std::set<std::string> names;
      for (size_t i = 0; i < kPermissions; ++i)
        if ((permissions >> i & 1) != 0) names.emplace(kPermissionNames[i]);
      rows.push_back({text(name), text(resource), texts(names)});
    }
  }
  return rows;
}

VirtualRows rows_by_resource(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all())
    for (const auto& [resource, permissions] : role->grants)
      rows.push_back({text(resource), text(name)});
  return rows;
}

VirtualRows rows_of_data_centers(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all())
    rows.push_back({text(role_resource(name)), texts(role->datacenters)});
  return rows;
}

}  // namespace

void define_role_tables(ComputedTables& tables) {
  tables.define("system_auth", "roles",
                {{"role", "text", "pk"},
                 {"can_login", "boolean"},
                 {"is_superuser", "boolean"},
                 {"member_of", "set<text>"},
                 {"salted_hash", "text"}},
                rows_of_roles);
  tables.define("system_auth", "role_members", {{"role", "text", "pk"}, {"member", "text", "ck"}},
                rows_of_members);
  tables.define("system_auth", "role_permissions",
                {{"role", "text", "pk"}, {"resource", "text", "ck"}, {"permissions", "set<text>"}},
                rows_of_permissions);
  tables.define("system_auth", "resource_role_permissons_index",
                {{"resource", "text", "pk"}, {"role", "text", "ck"}}, rows_by_resource);
  tables.define("system_auth", "network_permissions",
                {{"role", "text", "pk"}, {"dcs", "frozen<set<text>>"}}, rows_of_data_centers);
  tables.define("system_auth", "cidr_permissions",
                {{"role", "text", "pk"}, {"cidr_groups", "frozen<set<text>>"}}, no_rows);
  tables.define("system_auth", "identity_to_role", {{"identity", "text", "pk"}, {"role", "text"}},
                no_rows);
}

}  // namespace tetrad::cql
