// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/roles.h"

#include <algorithm>

#include <fmt/format.h>

#include "cql/schema/object_text.h"

namespace tetrad::cql {
namespace {

using nlohmann::json;
using enum Permission;

constexpr int kFormat = 1;

// "data/ks" is below "data"; "datax" is not.
bool is_below(std::string_view resource, std::string_view root) {
  return resource.size() > root.size() && resource.starts_with(root) &&
         resource[root.size()] == '/';
}

// The path without its root: "ks/t" of "data/ks/t".
std::string_view below(std::string_view resource, std::string_view root) {
  return resource.substr(root.size() + 1);
}

// Unset: this program does not know it. A role with such a permission does not read.
std::optional<Permission> permission_named(std::string_view name) {
  for (size_t i = 0; i < kPermissions; ++i)
    if (kPermissionNames[i] == name) return static_cast<Permission>(i);
  return std::nullopt;
}

}  // namespace

// One function for each kind of path; the header has the grammar.
std::string keyspace_resource(std::string_view keyspace) {
  return fmt::format("data/{}", keyspace);
}
std::string tables_resource(std::string_view keyspace) {
  return fmt::format("data/{}/*", keyspace);
}
std::string table_resource(std::string_view keyspace, std::string_view table) {
  return fmt::format("data/{}/{}", keyspace, table);
}
std::string functions_resource(std::string_view keyspace) {
  return fmt::format("functions/{}", keyspace);
}
std::string function_resource(std::string_view keyspace, std::string_view name,
                              const std::vector<std::string>& types) {
  return fmt::format("functions/{}/{}[{}]", keyspace, name, fmt::join(types, ", "));
}
std::string role_resource(std::string_view role) { return fmt::format("roles/{}", role); }

std::optional<std::string> parent_of(std::string_view resource) {
  if (is_below(resource, kAllRoles)) return kAllRoles;
  if (is_below(resource, kAllMbeans)) return kAllMbeans;
  // Names of keyspaces and of what is in them have no slash.
  const size_t first = resource.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = resource.find('/', first + 1);
  if (second == std::string_view::npos) {
    // As Cassandra: who may read all keyspaces is not shown roles and the server's own state.
    for (const char* own : {"data/system_auth", "data/system_views", "data/system_tetrad"})
      if (resource == own) return std::nullopt;
    return std::string(resource.substr(0, first));
  }
  const std::string_view keyspace = resource.substr(0, second);
  // The parent of a table is all tables of its keyspace, the parent of those the keyspace.
  if (!is_below(resource, kAllData) || resource.substr(second + 1) == "*")
    return std::string(keyspace);
  return fmt::format("{}/*", keyspace);
}

// The forms are Cassandra's, which clients see in errors and in LIST PERMISSIONS.
std::string shown_resource(std::string_view resource) {
  if (resource == kAllData) return "<all keyspaces>";
  if (resource == kAllFunctions) return "<all functions>";
  if (resource == kAllRoles) return "<all roles>";
  if (resource == kAllMbeans) return "<all mbeans>";
  if (is_below(resource, kAllRoles)) return fmt::format("<role {}>", below(resource, kAllRoles));
  if (is_below(resource, kAllMbeans)) return fmt::format("<mbean {}>", below(resource, kAllMbeans));
  const bool is_data = is_below(resource, kAllData);
  const std::string_view path = below(resource, is_data ? kAllData : kAllFunctions);
  const size_t slash = path.find('/');
  const std::string_view keyspace = path.substr(0, slash);
  if (slash == std::string_view::npos)
    return is_data ? fmt::format("<keyspace {}>", keyspace)
                   : fmt::format("<all functions in {}>", keyspace);
  const std::string_view name = path.substr(slash + 1);
  if (is_data && name == "*") return fmt::format("<all tables in {}>", keyspace);
  if (is_data) return fmt::format("<table {}.{}>", keyspace, name);
  // name[types] of a function becomes name(types).
  const size_t bracket = name.find('[');
  return fmt::format("<function {}.{}({})>", keyspace, name.substr(0, bracket),
                     name.substr(bracket + 1, name.size() - bracket - 2));
}

PermissionSet applicable_to(std::string_view resource) {
  // For each kind of resource what Cassandra lets be granted on it; GRANT ALL means this set.
  if (resource == kAllRoles) return set_of(kCreate, kAlter, kDrop, kAuthorize, kDescribe);
  if (is_below(resource, kAllRoles)) return set_of(kAlter, kDrop, kAuthorize, kDescribe);
  if (resource == kAllMbeans || is_below(resource, kAllMbeans))
    return set_of(kSelect, kModify, kAuthorize, kDescribe, kExecute);
  // Nothing can be created inside a table or a function.
  const size_t first = resource.find('/');
  const bool is_leaf = first != std::string_view::npos &&
                       resource.find('/', first + 1) != std::string_view::npos &&
                       !resource.ends_with("/*");
  const PermissionSet create = is_leaf ? PermissionSet{0} : set_of(kCreate);
  const bool is_data = resource == kAllData || is_below(resource, kAllData);
  return create |
         (is_data ? set_of(kAlter, kDrop, kSelect, kModify, kAuthorize, kUnmask, kSelectMasked)
                  : set_of(kAlter, kDrop, kAuthorize, kExecute));
}

std::string role_key(std::string_view role) { return fmt::format("{}{}", kRolePrefix, role); }

std::string role_text(const Role& role) {
  json out;
  out["format"] = kFormat;
  out["name"] = role.name;
  out["login"] = role.can_login;
  out["superuser"] = role.is_superuser;
  // What is empty is left out; readers take its default.
  if (!role.salted_hash.empty()) out["salted_hash"] = role.salted_hash;
  if (!role.member_of.empty()) out["member_of"] = role.member_of;
  if (!role.datacenters.empty()) out["datacenters"] = role.datacenters;
  if (!role.address_groups.empty()) out["cidr_groups"] = role.address_groups;
  // By name and not by bit, so that the order of Permission may change.
  for (const auto& [resource, permissions] : role.grants)
    for (size_t i = 0; i < kPermissions; ++i)
      if ((permissions >> i & 1) != 0) out["grants"][resource].push_back(kPermissionNames[i]);
  return object_text(out);
}

Result<RolePtr> read_role_text(const std::string& text) {
  return read_object_text(text, "role", kFormat, [](const json& in) -> Result<RolePtr> {
    auto role = std::make_shared<Role>();
    in.at("name").get_to(role->name);
    in.at("login").get_to(role->can_login);
    in.at("superuser").get_to(role->is_superuser);
    role->salted_hash = in.value("salted_hash", std::string());
    role->member_of = in.value("member_of", std::set<std::string>());
    role->datacenters = in.value("datacenters", std::set<std::string>());
    role->address_groups = in.value("cidr_groups", std::set<std::string>());
    const json grants = in.value("grants", json::object());
    for (const auto& [resource, names] : grants.items()) {
      PermissionSet permissions = 0;
      for (const auto& name : names) {
        const auto permission = permission_named(name.get<std::string>());
        if (!permission)
          return fail(ErrorCode::kCorruption, "a permission {}", name.get<std::string>());
        permissions |= set_of(*permission);
      }
      if (permissions != 0) role->grants[resource] = permissions;
    }
    return RolePtr(std::move(role));
  });
}

const Role* RoleSet::find(std::string_view name) const {
  const auto found = roles_.find(name);
  return found == roles_.end() ? nullptr : found->second.get();
}

std::vector<const Role*> RoleSet::with_granted(std::string_view name) const {
  std::map<std::string_view, const Role*> found;
  // From role to role, each once, however they are granted to each other.
  std::vector<std::string_view> waiting = {name};
  while (!waiting.empty()) {
    const Role* role = find(waiting.back());
    waiting.pop_back();
    if (role == nullptr || !found.emplace(role->name, role).second) continue;
    for (const std::string& granted : role->member_of) waiting.push_back(granted);
  }
  std::vector<const Role*> out;
  for (const auto& [role_name, role] : found) out.push_back(role);
  return out;
}

bool RoleSet::is_superuser(std::string_view name) const {
  const Role* role = find(name);
  if (role == nullptr) return false;
  // The common case without a walk: this is asked for each statement.
  if (role->is_superuser || role->member_of.empty()) return role->is_superuser;
  return std::ranges::any_of(with_granted(name), &Role::is_superuser);
}

bool RoleSet::has_role(std::string_view role, std::string_view granted) const {
  return std::ranges::any_of(with_granted(role),
                             [&](const Role* held) { return held->name == granted; });
}

PermissionSet RoleSet::permissions(std::string_view name, std::string_view resource) const {
  if (is_superuser(name)) return applicable_to(resource);
  PermissionSet out = 0;
  const std::vector<const Role*> roles = with_granted(name);
  // From the resource up to its root: what was granted on a parent holds for all below.
  for (std::optional<std::string> path = std::string(resource); path; path = parent_of(*path)) {
    for (const Role* role : roles) {
      const auto grant = role->grants.find(*path);
      if (grant != role->grants.end()) out |= grant->second;
    }
  }
  return out;
}

// A walk over all roles: asked only by statements about roles and at a start.
bool RoleSet::has_usable_superuser() const {
  return std::ranges::any_of(roles_, [this](const auto& entry) {
    const Role& role = *entry.second;
    return role.can_login && !role.salted_hash.empty() && role.datacenters.empty() &&
           role.address_groups.empty() && is_superuser(role.name);
  });
}

}  // namespace tetrad::cql
