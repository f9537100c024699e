// SPDX-License-Identifier: Apache-2.0
// Roles, users, identities, permissions, and DESCRIBE.
//
// CREATE USER and its kin are Cassandra's older words for roles. They share the nodes of the ROLE
// statements; is_user_statement tells which words were written, since error texts and the columns
// of LIST USERS differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

/// A role as meant: unquoted names are lower-cased, 'strings' and "quoted names" kept.
/// Names of users are case sensitive even without quotes.
struct RoleName {
  std::string text;
  Position position;
};

/// What stands behind WITH of CREATE ROLE and ALTER ROLE; an option that was not written has no
/// value.
/// An option that is written twice is a syntax error, and so is a password beside a hash.
struct RoleOptions {
  // PASSWORD is the text itself, HASHED PASSWORD its bcrypt hash. Neither may reach a log: whoever
  // prints a statement of roles leaves out its text.
  std::optional<std::string> password;
  std::optional<std::string> hashed_password;
  // SUPERUSER = true, LOGIN = true; the words SUPERUSER and NOSUPERUSER of the USER statements set
  // the first.
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
/// What was granted to it, and it to others, goes with it.
struct DropRole {
  Position position;
  RoleName name;
  bool if_exists = false;
  bool is_user_statement = false;
};

/// LIST ROLES or LIST USERS.
/// `of`: whose roles; without it all that the asking role may see. NORECURSIVE clears `recursive`:
/// then only roles that were granted to it directly are listed.
struct ListRoles {
  Position position;
  std::optional<RoleName> of;
  bool recursive = true;
  bool is_user_statement = false;
};

/// GRANT role TO grantee.
/// The grantee then may do what the role may. A circle of roles is refused when the statement is
/// prepared.
struct GrantRole {
  Position position;
  RoleName role, grantee;
};

/// REVOKE role FROM revokee.
/// A member of a member is not touched.
struct RevokeRole {
  Position position;
  RoleName role, revokee;
};

/// The permissions that Cassandra 5.0 knows; which of them fit a resource is checked when the
/// statement is prepared.
/// kPermissionNames in schema/roles.h is in the same order, and PermissionSet there has a bit for
/// each. The metadata keeps names.
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
/// At most the members that its kind names are set; the others keep their defaults. An object
/// without a keyspace is of the keyspace in use.
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
/// REVOKE has the same members. Permissions that do not fit the resource are refused when the
/// statement is prepared.
struct GrantPermissions {
  Position position;
  bool all = false;  // ALL [PERMISSIONS]; then `permissions` is empty
  std::vector<Permission> permissions;
  Resource resource;
  RoleName grantee;
};

/// REVOKE permissions ON resource FROM revokee.
/// Takes away what was granted on this resource; rights on its parents stay.
struct RevokePermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  Resource resource;
  RoleName revokee;
};

/// LIST permissions [ON resource] [OF role] [NORECURSIVE].
/// Without ON it lists those on all resources, without OF those of all roles. `all` and
/// `permissions` as in GrantPermissions.
struct ListPermissions {
  Position position;
  bool all = false;
  std::vector<Permission> permissions;
  std::optional<Resource> resource;
  std::optional<RoleName> of;
  bool recursive = true;
};

/// ADD IDENTITY 'identity' TO ROLE 'role': who may log in by a certificate.
/// Tetrad parses it and refuses it when it is prepared: it has no identities.
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
  // full, only and with_internals change the texts of the answer and not which objects it has,
  // except as said here. WITH INTERNALS adds ids of tables and dropped columns, so that the texts
  // make the same table again.
  bool full = false;  // FULL SCHEMA: the system keyspaces too
  bool only = false;  // ONLY KEYSPACE: without what is inside
  bool with_internals = false;
  // A function or a type may be named with its keyspace; where none is written the one in use
  // counts.
  std::optional<Identifier> keyspace;
  std::optional<Identifier> name;
};

}  // namespace tetrad::cql::ast
