// SPDX-License-Identifier: Apache-2.0
// Roles: who may log in, who belongs to whom, who may do what. They are objects of the metadata as
// tables are, one for each role, so that every node knows them without asking and a change is in
// force where it has been applied.
//
// What a permission is about is named by a path, as Cassandra names it:
//
//   data | data/<ks> | data/<ks>/* | data/<ks>/<table>        a parent's permissions hold for what
//   functions | functions/<ks> | functions/<ks>/<name>[types]  is below it; the parent of a table
//   roles | roles/<role>      mbean | mbean/<name>             is data/<ks>/*
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cql/grammar/ast_auth.h"

namespace tetrad::cql {

using ast::Permission;

// In the order of Permission. Texts of roles keep these names, so none may change.
inline constexpr std::string_view kPermissionNames[] = {
    "CREATE",    "ALTER",    "DROP",    "SELECT", "MODIFY",
    "AUTHORIZE", "DESCRIBE", "EXECUTE", "UNMASK", "SELECT_MASKED"};
inline constexpr size_t kPermissions = std::size(kPermissionNames);
constexpr std::string_view name_of(Permission permission) {
  return kPermissionNames[static_cast<size_t>(permission)];
}

/// A set of permissions: bit n is the n-th of Permission.
using PermissionSet = uint16_t;
constexpr PermissionSet set_of(Permission permission) {
  return static_cast<PermissionSet>(1u << static_cast<unsigned>(permission));
}
template <class... Permissions>
constexpr PermissionSet set_of(Permission first, Permissions... others) {
  return static_cast<PermissionSet>(set_of(first) | set_of(others...));
}

// Paths of resources.
// The roots, and the paths of what is below them. No name of a keyspace, table or function has a
// slash; names of roles may have.
inline const std::string kAllData = "data", kAllFunctions = "functions", kAllRoles = "roles",
                         kAllMbeans = "mbean";
std::string keyspace_resource(std::string_view keyspace);
std::string tables_resource(std::string_view keyspace);
std::string table_resource(std::string_view keyspace, std::string_view table);
std::string functions_resource(std::string_view keyspace);
/// `types`: as argument_text() (prepare/schema_plan.h) writes them.
std::string function_resource(std::string_view keyspace, std::string_view name,
                              const std::vector<std::string>& types);
std::string role_resource(std::string_view role);

/// The resource above; unset for a root.
/// The keyspaces system_auth, system_views and system_tetrad have none: rights on all keyspaces do
/// not reach them.
std::optional<std::string> parent_of(std::string_view resource);
/// As errors and LIST PERMISSIONS write it: "<table ks.t>".
std::string shown_resource(std::string_view resource);
/// What can be granted on it.
/// Rules of Cassandra: nothing can be created in a table, nothing executed but functions and
/// MBeans.
PermissionSet applicable_to(std::string_view resource);

/// A role as the metadata has it: its own attributes and grants, without those of the roles that it
/// is a member of (RoleSet has these). Immutable once it is a RolePtr.
struct Role {
  std::string name;
  std::string salted_hash;  // bcrypt; "": it has no password
  bool can_login = false, is_superuser = false;
  std::set<std::string> member_of;
  std::map<std::string, PermissionSet, std::less<>> grants;  // by resource; never an empty set
  std::set<std::string> datacenters;                         // empty: all
  std::set<std::string> address_groups;                      // empty: from anywhere
  bool operator==(const Role&) const = default;
};
using RolePtr = std::shared_ptr<const Role>;

// As the metadata keeps it.
// The key is "role/<name>"; the text, for example:
//  {"format":1,"grants":{"data/ks":["SELECT"]},"login":true,"member_of":["staff"],"name":"ann",
//   "salted_hash":"$2a$10$…","superuser":false}
// Empty members are left out.
inline constexpr std::string_view kRolePrefix = "role/";
std::string role_key(std::string_view role);
std::string role_text(const Role& role);
/// Errors: kCorruption.
Result<RolePtr> read_role_text(const std::string& text);

/// All roles of one version of the metadata. Immutable.
class RoleSet {
 public:
  using Roles = std::map<std::string, RolePtr, std::less<>>;
  RoleSet() = default;
  explicit RoleSet(Roles roles) : roles_(std::move(roles)) {}

  const Roles& all() const { return roles_; }
  /// Null if there is none.
  /// The pointer is good as long as this set.
  const Role* find(std::string_view name) const;
  /// The role and all that are granted to it, directly or not, sorted by name; empty if there is no
  /// such role.
  /// Circles of grants end: each role is visited once.
  std::vector<const Role*> with_granted(std::string_view name) const;
  /// Whether it, or a role granted to it, is a superuser.
  /// A name that is no role is none.
  bool is_superuser(std::string_view name) const;
  /// Whether `role` is `granted` or has it, directly or not.
  bool has_role(std::string_view role, std::string_view granted) const;
  /// What it may do with the resource: by itself, by its roles, by the resource's parents. All that
  /// applies for a superuser.
  PermissionSet permissions(std::string_view role, std::string_view resource) const;
  /// Whether anybody could log in and do everything.
  /// Such a role has a password and the right to log in, from any address and at any data centre.
  /// Statements that would leave a cluster without one are refused.
  bool has_usable_superuser() const;

 private:
  Roles roles_;
};
using RoleSetPtr = std::shared_ptr<const RoleSet>;

}  // namespace tetrad::cql
