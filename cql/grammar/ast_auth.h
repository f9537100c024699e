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

struct CreateRole {  // and CREATE USER, which sets login
  Position position;
  RoleName name;
  bool if_not_exists = false;
  bool is_user_statement = false;
  RoleOptions options;
};

struct AlterRole {  // and ALTER USER
  Position position;
  RoleName name;
  bool if_exists = false;
  bool is_user_statement = false;
  RoleOptions options;
};

struct DropRole {  // and DROP USER
  Position position;
  RoleName name;
  bool if_exists = false;
  bool is_user_statement = false;
};

struct ListRoles {  // and LIST USERS
  Position position;
  std::optional<RoleName> of;
  bool recursive = true;
  bool is_user_statement = false;
};

struct GrantRole {
  Position position;
  RoleName role, grantee;
};

struct RevokeRole {
  Position position;
  RoleName role, revokee;
};

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

struct GrantPermissions {
  Position position;
  bool all = false;  // ALL [PERMISSIONS]; then `permissions` is empty
  std::vector<Permission> permissions;
  Resource resource;
  RoleName grantee;
};

struct RevokePermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  Resource resource;
  RoleName revokee;
};

struct ListPermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  std::optional<Resource> resource;
  std::optional<RoleName> of;
  bool recursive = true;
};

struct AddIdentity {
  Position position;
  std::string identity;
  std::string role;
  bool if_not_exists = false;
};

struct DropIdentity {
  Position position;
  std::string identity;
  bool if_exists = false;
};

struct Describe {
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
