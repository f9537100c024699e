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
std::optional<std::string> parent_of(std::string_view resource);
/// As errors and LIST PERMISSIONS write it: "<table ks.t>".
std::string shown_resource(std::string_view resource);
/// What can be granted on it.
PermissionSet applicable_to(std::string_view resource);

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
  const Role* find(std::string_view name) const;
  /// The role and all that are granted to it, directly or not, sorted by name; empty if there is no
  /// such role.
  std::vector<const Role*> with_granted(std::string_view name) const;
  /// Whether it, or a role granted to it, is a superuser.
  bool is_superuser(std::string_view name) const;
  /// Whether `role` is `granted` or has it, directly or not.
  bool has_role(std::string_view role, std::string_view granted) const;
  /// What it may do with the resource: by itself, by its roles, by the resource's parents. All that
  /// applies for a superuser.
  PermissionSet permissions(std::string_view role, std::string_view resource) const;
  /// Whether anybody could log in and do everything.
  bool has_usable_superuser() const;

 private:
  Roles roles_;
};
using RoleSetPtr = std::shared_ptr<const RoleSet>;

}  // namespace tetrad::cql
