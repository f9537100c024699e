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

VirtualRows rows_of_address_permissions(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, role] : schema.roles()->all())
    rows.push_back({text(name), texts(role->address_groups)});
  return rows;
}

/// A frozen set of (address, bits of the prefix).
VirtualCell ranges_cell(const std::set<AddressRange>& ranges) {
  std::vector<Bytes> tuples;
  for (const AddressRange& range : ranges) {
    const Bytes bits = make_smallint(range.prefix_bits);
    const OptionalView fields[] = {BytesView(range.start), BytesView(bits)};
    tuples.push_back(join_tuple(fields));
  }
  const std::vector<BytesView> views(tuples.begin(), tuples.end());
  return join_list(views);
}

VirtualRows rows_of_address_groups(const SchemaSnapshot& schema) {
  VirtualRows rows;
  for (const auto& [name, group] : schema.address_groups()->all())
    rows.push_back({text(name), ranges_cell(group->ranges)});
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
                {{"role", "text", "pk"}, {"cidr_groups", "frozen<set<text>>"}},
                rows_of_address_permissions);
  tables.define(
      "system_auth", "cidr_groups",
      {{"cidr_group", "text", "pk"}, {"cidrs", "frozen<set<frozen<tuple<inet, smallint>>>>"}},
      rows_of_address_groups);
  tables.define("system_auth", "identity_to_role", {{"identity", "text", "pk"}, {"role", "text"}},
                no_rows);
}

}  // namespace tetrad::cql
