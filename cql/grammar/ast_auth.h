// SPDX-License-Identifier: Apache-2.0
// Roles, users, identities, permissions, and DESCRIBE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

/// A role as meant: unquoted names are lower-cased, 'strings' and "quoted names" kept.
struct RoleName {
  std::string text;
  Position position;
};

/// What stands behind WITH of CREATE ROLE and ALTER ROLE; an option that was not written has no
/// value.
struct RoleOptions {
  std::optional<std::string> password;
  std::optional<std::string> hashed_password;
  std::optional<bool> superuser;
  std::optional<bool> login;
  /// OPTIONS = {…}: keys and values as texts.
  std::optional<std::vector<std::pair<std::string, std::string>>> custom;
  /// ACCESS TO DATACENTERS {…}; empty for ACCESS TO ALL DATACENTERS.
  std::optional<std::vector<std::string>> datacenters;
  /// ACCESS FROM CIDRS {…}; empty for ACCESS FROM ALL CIDRS.
  std::optional<std::vector<std::string>> cidrs;
};

/// CREATE ROLE, or CREATE USER, which sets the option login.
struct CreateRole {
  Position position;
  RoleName name;
  bool if_not_exists = false;
  bool is_user_statement = false;
  RoleOptions options;
};

/// ALTER ROLE or ALTER USER.
struct AlterRole {
  Position position;
  RoleName name;
  bool if_exists = false;
  bool is_user_statement = false;
  RoleOptions options;
};

/// DROP ROLE or DROP USER.
struct DropRole {
  Position position;
  RoleName name;
  bool if_exists = false;
  bool is_user_statement = false;
};

/// LIST ROLES or LIST USERS.
struct ListRoles {
  Position position;
  std::optional<RoleName> of;
  bool recursive = true;
  bool is_user_statement = false;
};

/// GRANT role TO grantee.
struct GrantRole {
  Position position;
  RoleName role, grantee;
};

/// REVOKE role FROM revokee.
struct RevokeRole {
  Position position;
  RoleName role, revokee;
};

/// The permissions that Cassandra 5.0 knows; which of them fit a resource is checked when the
/// statement is prepared.
enum class Permission : uint8_t {
  kCreate,
  kAlter,
  kDrop,
  kSelect,
  kModify,
  kAuthorize,
  kDescribe,
  kExecute,
  kUnmask,
  kSelectMasked,
};

/// What a permission is about.
struct Resource {
  /// Which of the members of Resource are set stands behind each.
  enum class Kind : uint8_t {
    kAllKeyspaces,
    kKeyspace,   // keyspace
    kAllTables,  // of keyspace
    kTable,      // table
    kAllRoles,
    kRole,  // role
    kAllFunctions,
    kKeyspaceFunctions,  // keyspace
    kFunction,           // function, arguments
    kAllMbeans,
    kMbean,   // mbean
    kMbeans,  // mbean, a pattern
  };
  Kind kind = Kind::kAllKeyspaces;
  std::optional<Identifier> keyspace;
  QualifiedName table;
  RoleName role;
  FunctionName function;
  std::vector<CqlType> arguments;
  std::string mbean;
};

/// GRANT permissions ON resource TO grantee.
struct GrantPermissions {
  Position position;
  bool all = false;  // ALL [PERMISSIONS]; then `permissions` is empty
  std::vector<Permission> permissions;
  Resource resource;
  RoleName grantee;
};

/// REVOKE permissions ON resource FROM revokee.
struct RevokePermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  Resource resource;
  RoleName revokee;
};

/// LIST permissions [ON resource] [OF role] [NORECURSIVE].
struct ListPermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  std::optional<Resource> resource;
  std::optional<RoleName> of;
  bool recursive = true;
};

/// ADD IDENTITY 'identity' TO ROLE 'role': who may log in by a certificate.
struct AddIdentity {
  Position position;
  std::string identity;
  std::string role;
  bool if_not_exists = false;
};

/// DROP IDENTITY 'identity'.
struct DropIdentity {
  Position position;
  std::string identity;
  bool if_exists = false;
};

/// DESCRIBE, which Cassandra 4.0 and later answer on the server, as rows of text.
struct Describe {
  /// What is described, and which of the members of Describe name it.
  enum class Target : uint8_t {
    kCluster,
    kSchema,  // also FULL SCHEMA
    kKeyspaces,
    kTables,
    kTypes,
    kFunctions,
    kAggregates,
    kKeyspace,  // keyspace, or the one in use
    kTable,     // name
    kIndex,
    kView,
    kType,
    kFunction,
    kAggregate,
    kGeneric,  // a bare name: keyspace, table, index or view, the first there is
  };
  Position position;
  Target target = Target::kSchema;
  bool full = false;  // FULL SCHEMA: the system keyspaces too
  bool only = false;  // ONLY KEYSPACE: without what is inside
  bool with_internals = false;
  std::optional<Identifier> keyspace;
  std::optional<Identifier> name;
};

}  // namespace tetrad::cql::ast
