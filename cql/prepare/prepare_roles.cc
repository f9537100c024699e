// SPDX-License-Identifier: Apache-2.0
// CREATE, ALTER, DROP, GRANT and REVOKE of roles and permissions: planned against the newest roles,
// proposed as a change of the schema, planned again when somebody else was faster.
//
// The steps of RoleStatement::execute():
//
// 1. Plan with an empty hash. This checks all rights, so a client who may not do it cannot make the
//    node hash passwords.
// 2. Hash the password of the statement, off the loop. Argon2id once all nodes know it, bcrypt
//    before.
// 3. Plan again against the newest roles, with the hash.
// 4. Check that the change leaves a superuser who can log in, and a schema that reads.
// 5. Propose it for this version of the schema. On a conflict go to 3, until the deadline.
//
// A plan changes copies of roles in `changed`; a role that ends as it was is left out. A
// change without objects is not proposed. The order of the checks decides which error a client
// gets; it is Cassandra's.
#include "cql/prepare/prepare_roles.h"

#include <algorithm>

#include "base/sleep.h"
#include "cql/execute/access.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/password.h"
#include "cql/prepare/prepare_modify.h"
#include "cql/prepare/schema_plan.h"
#include "cql/schema/schema_text.h"
#include "cql/system/virtual_tables.h"
#include "replication/meta/meta_command.h"

namespace tetrad::cql {
namespace {

/// One password is hashed at a time for statements.
constexpr uint32_t kHashLane = 0x48415348;
constexpr size_t kRoleNameBytesMax = 512;

template <class... Arguments>
std::unexpected<Error> unauthorized(fmt::format_string<Arguments...> format,
                                    Arguments&&... arguments) {
  return fail(ErrorCode::kUnauthorized, format, std::forward<Arguments>(arguments)...);
}

/// What a plan looks at, and what it leaves behind.
struct RolePlanner {
  const SchemaSnapshot& schema;
  const replication::MetaState& meta;
  const std::string& client;  // whose role asks
  const std::string& hash;    // of the password in the statement, "" if there is none
  const std::string& resource;
  PermissionSet permissions = 0;  // of GRANT and REVOKE; those that the resource can have
  std::map<std::string, std::optional<Role>> changed = {};

  const RoleSet& roles() const { return *schema.roles(); }
  bool is_superuser() const { return roles().is_superuser(client); }
  // A copy of the role to be changed; the role must be there or be planned already. Several calls
  // for one role return the same copy.
  Role& change(const std::string& name) {
    return *changed.try_emplace(name, *roles().find(name)).first->second;
  }

  Result<void> check_right(Permission permission, const std::string& on) const {
    if ((roles().permissions(client, on) & set_of(permission)) != 0) return {};
    return unauthorized(
        "User {} does not have sufficient privileges to perform the requested "
        "operation",
        client);
  }
  /// As Cassandra's, and beyond it: what makes or takes over a superuser is for superusers.
  Result<void> check_superuser(std::string_view role, std::string_view what) const {
    if (is_superuser() || !roles().is_superuser(role)) return {};
    return unauthorized("Only superusers can {} a role with superuser status", what);
  }
  Result<void> check_exists(const std::string& role) const {
    if (roles().find(role) == nullptr) return fail(ErrorCode::kInvalid, "{} doesn't exist", role);
    return {};
  }
  // What WITH says, apart from rights. Errors: kInvalid.
  Result<void> check_options(const ast::RoleOptions& options) const;
  Result<void> check_address_groups(const ast::RoleOptions& options) const;
  void apply(const ast::RoleOptions& options, Role& role) const;

  Result<void> plan(const ast::CreateRole& statement);
  Result<void> plan(const ast::AlterRole& statement);
  Result<void> plan(const ast::DropRole& statement);
  Result<void> plan(const ast::GrantRole& statement);
  Result<void> plan(const ast::RevokeRole& statement);
  // What GRANT and REVOKE of permissions share. Errors: kUnauthorized, kInvalid.
  Result<void> check_grant(const std::string& role) const;
  Result<void> plan(const ast::GrantPermissions& statement);
  Result<void> plan(const ast::RevokePermissions& statement);
};

Result<void> RolePlanner::check_options(const ast::RoleOptions& options) const {
  if (options.custom)
    return fail(ErrorCode::kInvalid,
                "org.apache.cassandra.auth.CassandraRoleManager doesn't support OPTIONS");
  if (options.hashed_password) TETRAD_TRY_VOID(check_hashed_password(*options.hashed_password));
  if (options.datacenters) {
    std::set<std::string> known;
    for (const auto& [host, node] : meta.nodes)
      if (node.state != replication::NodeState::kRemoved) known.insert(node.data_center);
    std::set<std::string> unknown;
    for (const std::string& name : *options.datacenters)
      if (!known.contains(name)) unknown.insert(name);
    if (!unknown.empty())
      return fail(ErrorCode::kInvalid,
                  "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                  fmt::join(unknown, ", "));
  }
  return check_address_groups(options);
}

Result<void> RolePlanner::check_address_groups(const ast::RoleOptions& options) const {
  if (!options.cidrs || options.cidrs->empty()) return {};
  const AddressGroups::Groups& known = schema.address_groups()->all();
  std::set<std::string> unknown;
  for (const std::string& name : *options.cidrs)
    if (!known.contains(name)) unknown.insert(name);
  if (!unknown.empty()) {
    std::vector<std::string> available;
    for (const auto& [name, group] : known) available.push_back(name);
    return fail(ErrorCode::kInvalid, "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
                fmt::join(unknown, ", "), fmt::join(available, ", "));
  }
  // A program that does not know them would let the role in from anywhere.
  if (meta.format < replication::kFormatAddressGroups)
    return fail(ErrorCode::kInvalid,
                "Roles bound to CIDR groups wait until all nodes run a program that knows them");
  return {};
}

void RolePlanner::apply(const ast::RoleOptions& options, Role& role) const {
  if (options.login) role.can_login = *options.login;
  if (options.superuser) role.is_superuser = *options.superuser;
  if (options.hashed_password) role.salted_hash = *options.hashed_password;
  // Not hashed yet in the first plan, which is thrown away. Nobody logs in with an empty one, so it
  // is none.
  if (options.password) role.salted_hash = options.password->empty() ? "" : hash;
  if (options.datacenters)
    role.datacenters = {options.datacenters->begin(), options.datacenters->end()};
  if (options.cidrs) role.address_groups = {options.cidrs->begin(), options.cidrs->end()};
}

Result<void> RolePlanner::plan(const ast::CreateRole& statement) {
  const std::string& name = statement.name.text;
  TETRAD_TRY_VOID(check_right(Permission::kCreate, kAllRoles));
  if (statement.options.superuser.value_or(false) && !is_superuser())
    return unauthorized("Only superusers can create a role with superuser status");
  TETRAD_TRY_VOID(check_options(statement.options));
  if (name.empty()) return fail(ErrorCode::kInvalid, "Role name can't be an empty string");
  if (name.size() > kRoleNameBytesMax)
    return fail(ErrorCode::kInvalid, "A role's name has {} bytes at most, not {}",
                kRoleNameBytesMax, name.size());
  if (roles().find(name) != nullptr) {
    if (statement.if_not_exists) return {};
    return fail(ErrorCode::kInvalid, "{} already exists", name);
  }
  // A role that this program cannot read is no free name: its text would be overwritten.
  TETRAD_TRY_VOID(schema.check_readable(role_key(name)));
  Role role;
  role.name = name;
  apply(statement.options, role);
  changed.emplace(name, std::move(role));
  // Whoever makes a role may do everything with it.
  change(client).grants[role_resource(name)] = applicable_to(role_resource(name));
  return {};
}

Result<void> RolePlanner::plan(const ast::AlterRole& statement) {
  const std::string& name = statement.name.text;
  const ast::RoleOptions& options = statement.options;
  // As in Cassandra, superusers may not, either: nobody changes the status that gives him the right
  // to.
  if (options.superuser && roles().has_role(client, name))
    return unauthorized(
        "You aren't allowed to alter your own superuser status or that of a role granted to you");
  if (options.superuser && !is_superuser())
    return unauthorized("Only superusers are allowed to alter superuser status");
  if (!is_superuser()) {
    // A role may change its own password, and nothing else.
    if (client == name) {
      if (options.login) return unauthorized("You aren't allowed to alter LOGIN");
      if (options.custom) return unauthorized("You aren't allowed to alter OPTIONS");
    } else {
      TETRAD_TRY_VOID(check_right(Permission::kAlter, role_resource(name)));
      TETRAD_TRY_VOID(check_superuser(name, "alter"));
    }
    if (options.datacenters)
      return unauthorized("Only superusers are allowed to alter access to datacenters.");
    if (options.cidrs)
      return unauthorized("Only superusers are allowed to alter access from CIDR groups.");
  }
  TETRAD_TRY_VOID(check_options(options));
  const bool is_empty = !options.password && !options.hashed_password && !options.superuser &&
                        !options.login && !options.datacenters && !options.cidrs;
  if (is_empty) return fail(ErrorCode::kInvalid, "ALTER [ROLE|USER] can't be empty");
  if (roles().find(name) == nullptr) {
    if (statement.if_exists) return {};
    return fail(ErrorCode::kInvalid, "Role {} doesn't exist", name);
  }
  apply(options, change(name));
  return {};
}

Result<void> RolePlanner::plan(const ast::DropRole& statement) {
  const std::string& name = statement.name.text;
  TETRAD_TRY_VOID(check_right(Permission::kDrop, role_resource(name)));
  TETRAD_TRY_VOID(check_superuser(name, "drop"));
  const bool is_unreadable = schema.unreadable(role_key(name)) != nullptr;
  if (roles().find(name) == nullptr && !is_unreadable) {
    if (statement.if_exists) return {};
    return fail(ErrorCode::kInvalid, "{} doesn't exist", name);
  }
  if (is_unreadable && !is_superuser())  // nobody knows what it may do
    return unauthorized("Only superusers can drop a role with superuser status");
  if (name == client)
    return fail(ErrorCode::kInvalid, "Cannot DROP primary role for current login");
  changed[name] = std::nullopt;
  // No membership of a role and no permission on it may outlive the role: a later role of that name
  // would inherit them.
  const std::string gone = role_resource(name);
  for (const auto& [other, role] : roles().all()) {
    if (other == name) continue;
    if (role->member_of.contains(name)) change(other).member_of.erase(name);
    if (role->grants.contains(gone)) change(other).grants.erase(gone);
  }
  return {};
}

Result<void> RolePlanner::plan(const ast::GrantRole& statement) {
  TETRAD_TRY_VOID(check_right(Permission::kAuthorize, role_resource(statement.role.text)));
  TETRAD_TRY_VOID(check_exists(statement.role.text));
  TETRAD_TRY_VOID(check_exists(statement.grantee.text));
  TETRAD_TRY_VOID(check_superuser(statement.role.text, "grant"));
  const auto refuse = [](const std::string& member, const std::string& of) {
    return fail(ErrorCode::kInvalid, "{} is a member of {}", member, of);
  };
  if (roles().has_role(statement.grantee.text, statement.role.text))
    return refuse(statement.grantee.text, statement.role.text);
  // Memberships must have no cycle.
  if (roles().has_role(statement.role.text, statement.grantee.text))
    return refuse(statement.role.text, statement.grantee.text);
  change(statement.grantee.text).member_of.insert(statement.role.text);
  return {};
}

Result<void> RolePlanner::plan(const ast::RevokeRole& statement) {
  TETRAD_TRY_VOID(check_right(Permission::kAuthorize, role_resource(statement.role.text)));
  TETRAD_TRY_VOID(check_exists(statement.role.text));
  TETRAD_TRY_VOID(check_exists(statement.revokee.text));
  TETRAD_TRY_VOID(check_superuser(statement.role.text, "revoke"));
  // Only a direct membership can be revoked.
  if (!roles().find(statement.revokee.text)->member_of.contains(statement.role.text))
    return fail(ErrorCode::kInvalid, "{} is not a member of {}", statement.revokee.text,
                statement.role.text);
  change(statement.revokee.text).member_of.erase(statement.role.text);
  return {};
}

Result<void> RolePlanner::check_grant(const std::string& role) const {
  // As in Cassandra: who grants must hold AUTHORIZE on the resource and each permission granted.
  TETRAD_TRY_VOID(check_permission(roles(), client, {Permission::kAuthorize, resource}));
  for (size_t i = 0; i < kPermissions; ++i)
    if ((permissions >> i & 1) != 0)
      TETRAD_TRY_VOID(check_permission(roles(), client, {static_cast<Permission>(i), resource}));
  if (roles().find(role) == nullptr)
    return fail(ErrorCode::kInvalid, "Role {} doesn't exist", role);
  if (!is_there(resource, schema))
    return fail(ErrorCode::kInvalid, "Resource {} doesn't exist", shown_resource(resource));
  return {};
}

Result<void> RolePlanner::plan(const ast::GrantPermissions& statement) {
  TETRAD_TRY_VOID(check_grant(statement.grantee.text));
  // System keyspaces can be made readable, not writable.
  constexpr PermissionSet kOfSystem =
      set_of(Permission::kSelect, Permission::kUnmask, Permission::kSelectMasked);
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    if (!is_system(*keyspace) || (permissions & ~kOfSystem) == 0) continue;
    const std::string path = keyspace_resource(name);
    if (resource == path || resource.starts_with(path + "/"))
      return unauthorized(
          "Granting permissions on system keyspaces is strictly limited, this "
          "operation is not permitted");
  }
  PermissionSet& held = change(statement.grantee.text).grants[resource];
  held = static_cast<PermissionSet>(held | permissions);
  return {};
}

Result<void> RolePlanner::plan(const ast::RevokePermissions& statement) {
  TETRAD_TRY_VOID(check_grant(statement.revokee.text));
  auto& grants = change(statement.revokee.text).grants;
  const auto held = grants.find(resource);
  if (held == grants.end()) return {};
  held->second = static_cast<PermissionSet>(held->second & ~permissions);
  if (held->second == 0) grants.erase(held);
  return {};
}

template <class T>
concept ChangesRoles = requires(RolePlanner& planner, const T& statement) {
  planner.plan(statement);
};

/// Errors: kInvalid, nobody could log in and repair anything any more.
Result<void> check_superuser_stays(const RoleSet& before, const RolePlanner& planner) {
  if (!before.has_usable_superuser()) return {};
  // The roles as they would be after the change.
  RoleSet::Roles after = before.all();
  for (const auto& [name, role] : planner.changed) {
    after.erase(name);
    if (role) after.emplace(name, std::make_shared<const Role>(*role));
  }
  if (RoleSet(std::move(after)).has_usable_superuser()) return {};
  return fail(ErrorCode::kInvalid,
              "The statement would leave no superuser who can log in with a password, in every "
              "data centre; make another one first");
}

/// A statement that changes roles or their permissions.
class RoleStatement final : public Statement {
 public:
  RoleStatement(ast::Statement statement, std::string resource, PermissionSet permissions)
      : statement_(std::move(statement)),
        resource_(std::move(resource)),
        permissions_(permissions) {}

  bool is_current(const SchemaSnapshot&) const override { return true; }
  // All that it needs is checked with the plan.
  void required_access(RequiredAccess&) const override {}

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_schema_change();
    TETRAD_CO_TRY_VOID(check_not_anonymous(context.client));
    const std::string client = context.client.user;
    const base::Deadline deadline{context.reactor.now_us() + context.settings.schema_timeout_us};
    // Who is refused does not get work done. A password to come counts as one.
    std::string hash = "not hashed yet";
    TETRAD_CO_TRY_VOID(plan_now(*context.schema, *context.meta.snapshot(), client, hash));
    auto hashed = co_await hash_of(context);
    TETRAD_CO_TRY(hash, std::move(hashed));
    SchemaPtr schema = context.schema;
    while (true) {
      const replication::MetaSnapshot meta = context.meta.snapshot();
      if (schema->version() != meta->schema_version)
        schema = SchemaSnapshot::build(*meta, schema.get(), context.virtual_tables.keyspaces());
      TETRAD_CO_TRY(replication::SchemaChange change, plan_now(*schema, *meta, client, hash));
      if (change.objects.empty()) co_return StatementResult();
      // The group refuses the change if the schema has another version by then.
      change.expected = meta->schema_version;
      TETRAD_CO_TRY_VOID(check_change(change, meta, *schema));
      auto changed =
          co_await context.meta.change_schema(std::move(change), deadline, &context.warnings);
      if (changed) co_return StatementResult();
      if (changed.error().code != ErrorCode::kConflict ||
          context.reactor.now_us() >= deadline.at_us)
        co_return std::unexpected(std::move(changed.error()));
      // A conflict, but this node has not heard of the change that caused it: wait 1 to 5 ms. At
      // random, lest statements on several nodes conflict again and again.
      if (context.meta.snapshot()->schema_version == meta->schema_version)
        co_await base::sleep_for(context.reactor,
                                 1'000 + static_cast<int64_t>(context.random.below(4'000)));
    }
  }

 private:
  // Null: the statement has no such option at all.
  const std::optional<std::string>* password() const {
    if (const auto* create = std::get_if<ast::CreateRole>(&statement_))
      return &create->options.password;
    if (const auto* alter = std::get_if<ast::AlterRole>(&statement_))
      return &alter->options.password;
    return nullptr;
  }

  Task<Result<std::string>> hash_of(ExecuteContext& context) const {
    const auto* const written = password();
    if (written == nullptr || !*written) co_return std::string();
    const bool all_know = context.meta.snapshot()->format >= replication::kFormatArgon2id;
    const std::string salt =
        new_salt(context.random, all_know ? PasswordHash::kArgon2id : PasswordHash::kBcrypt);
    Result<std::string> hash = std::string();
    const std::function<void()> work = [&] { hash = hash_password(**written, salt); };
    if (context.off_loop != nullptr) {
      co_await context.off_loop->run(kHashLane, work);
    } else {
      work();
    }
    co_return hash;
  }

  Result<replication::SchemaChange> plan_now(const SchemaSnapshot& schema,
                                             const replication::MetaState& meta,
                                             const std::string& client,
                                             const std::string& hash) const {
    // Nodes of an older program do not know the objects of roles.
    if (meta.format < replication::kFormatRoles)
      return fail(ErrorCode::kInvalid,
                  "Roles can be changed once all nodes of the cluster run a program that knows "
                  "them");
    RolePlanner planner{schema, meta, client, hash, resource_, permissions_};
    TETRAD_TRY_VOID(std::visit(
        [&](const auto& statement) -> Result<void> {
          if constexpr (ChangesRoles<std::decay_t<decltype(statement)>>) {
            return planner.plan(statement);
          } else {
            return fail(ErrorCode::kInvalid, "not supported yet: identities");
          }
        },
        statement_));
    std::erase_if(planner.changed, [&](const auto& entry) {
      const Role* const before = planner.roles().find(entry.first);
      return before != nullptr && entry.second && *entry.second == *before;
    });
    TETRAD_TRY_VOID(check_superuser_stays(planner.roles(), planner));
    replication::SchemaChange change;
    put_roles(planner.changed, change);
    return change;
  }

  const ast::Statement statement_;
  const std::string resource_;
  const PermissionSet permissions_;
};

std::string_view class_of(std::string_view resource) {
  if (resource.starts_with(kAllData)) return "DataResource";
  if (resource.starts_with(kAllRoles)) return "RoleResource";
  return resource.starts_with(kAllMbeans) ? "JMXResource" : "FunctionResource";
}

template <class T>
Result<StatementPtr> prepare_permissions(const T& statement, const PrepareContext& context) {
  TETRAD_TRY(std::string resource, resource_path(statement.resource, context));
  // ALL is all that the resource can have. What is written and does not apply is dropped; an error
  // only if nothing is left.
  PermissionSet permissions = applicable_to(resource);
  if (!statement.all) {
    PermissionSet written = 0;
    for (const Permission permission : statement.permissions) written |= set_of(permission);
    permissions &= written;
  }
  if (permissions == 0)
    return fail(ErrorCode::kSyntax,
                "Resource type {} does not support any of the requested permissions",
                class_of(resource));
  return std::make_shared<RoleStatement>(statement, std::move(resource), permissions);
}

/// "domain:key=value,…", as JMX names its objects.
bool is_object_name(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon + 1 == name.size()) return false;
  const std::string_view properties = name.substr(colon + 1);
  return properties == "*" || properties.find('=') != std::string_view::npos;
}

}  // namespace

bool is_role_statement(const ast::Statement& statement) {
  return std::visit(
      [](const auto& node) {
        using T = std::decay_t<decltype(node)>;
        return ChangesRoles<T> || std::is_same_v<T, ast::ListRoles> ||
               std::is_same_v<T, ast::ListPermissions> || std::is_same_v<T, ast::AddIdentity> ||
               std::is_same_v<T, ast::DropIdentity>;
      },
      statement);
}

Result<void> check_not_anonymous(const ClientState& client) {
  if (client.must_log_in && !client.user.empty()) return {};
  return unauthorized("You have to be logged in and not anonymous to perform this request");
}

Result<std::string> resource_path(const ast::Resource& resource, const PrepareContext& context) {
  using Kind = ast::Resource::Kind;
  const auto keyspace = [&] {
    return keyspace_named(*context.schema, resource.keyspace ? resource.keyspace->text : "");
  };
  switch (resource.kind) {
    case Kind::kAllKeyspaces:
      return kAllData;
    case Kind::kKeyspace:
      return keyspace_resource(keyspace());
    case Kind::kAllTables:
      return tables_resource(keyspace());
    case Kind::kTable: {
      const std::string in =
          resource.table.keyspace ? resource.table.keyspace->text : context.keyspace;
      if (in.empty())
        return fail(ErrorCode::kInvalid,
                    "No keyspace has been specified. USE a keyspace, or explicitly specify "
                    "keyspace.tablename");
      return table_resource(keyspace_named(*context.schema, in), resource.table.name.text);
    }
    case Kind::kAllRoles:
      return kAllRoles;
    case Kind::kRole:
      return role_resource(resource.role.text);
    case Kind::kAllFunctions:
      return kAllFunctions;
    case Kind::kKeyspaceFunctions:
      return functions_resource(keyspace());
    case Kind::kFunction: {
      if (!resource.function.keyspace)
        return fail(ErrorCode::kInvalid,
                    "In this context function name must be explictly qualified by a keyspace");
      const std::string& in = resource.function.keyspace->text;
      const KeyspaceSchema* const schema = context.schema->keyspace(in);
      if (schema == nullptr) return fail(ErrorCode::kInvalid, "keyspace {} does not exist", in);
      std::vector<std::string> types;
      for (const ast::CqlType& type : resource.arguments) {
        TETRAD_TRY(const TypePtr resolved, resolve_type(type, *schema));
        types.push_back(argument_text(*resolved));
      }
      return function_resource(in, resource.function.name.text, types);
    }
    case Kind::kAllMbeans:
      return kAllMbeans;
    case Kind::kMbean:
    case Kind::kMbeans:
      if (!is_object_name(resource.mbean))
        return fail(ErrorCode::kSyntax, "{} is not a valid JMX object name", resource.mbean);
      return fmt::format("{}/{}", kAllMbeans, resource.mbean);
  }
  return fail(ErrorCode::kServerError, "no resource");
}

bool is_there(std::string_view resource, const SchemaSnapshot& schema) {
  // A resource is "root", "root/keyspace", or "root/keyspace/name"; of roles, "roles/name".
  const size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return true;  // a root
  const std::string_view root = resource.substr(0, slash), path = resource.substr(slash + 1);
  // This server has none; a grant on them is kept, as scripts for Cassandra write it.
  if (root == kAllMbeans) return true;
  if (root == kAllRoles) return schema.roles()->find(path) != nullptr;
  const size_t second = path.find('/');
  const KeyspaceSchema* const keyspace = schema.keyspace(path.substr(0, second));
  if (keyspace == nullptr || second == std::string_view::npos) return keyspace != nullptr;
  const std::string_view name = path.substr(second + 1);
  if (root == kAllData) return name == "*" || schema.table(keyspace->name, name) != nullptr;
  const auto is_named = [&](const auto& function) {
    std::vector<std::string> types;
    for (const TypePtr& type : function->argument_types) types.push_back(argument_text(*type));
    return function_resource(keyspace->name, function->name, types) == resource;
  };
  return std::ranges::any_of(keyspace->functions, is_named) ||
         std::ranges::any_of(keyspace->aggregates, is_named);
}

Result<StatementPtr> prepare_role_statement(const ast::Statement& statement,
                                            const PrepareContext& context) {
  if (const auto* grant = std::get_if<ast::GrantPermissions>(&statement))
    return prepare_permissions(*grant, context);
  if (const auto* revoke = std::get_if<ast::RevokePermissions>(&statement))
    return prepare_permissions(*revoke, context);
  if (const auto* list = std::get_if<ast::ListRoles>(&statement)) return make_list_roles(*list);
  if (const auto* list = std::get_if<ast::ListPermissions>(&statement)) {
    std::optional<std::string> resource;
    if (list->resource) {
      TETRAD_TRY(resource, resource_path(*list->resource, context));
    }
    return make_list_permissions(*list, std::move(resource));
  }
  return std::make_shared<RoleStatement>(statement, std::string(), PermissionSet{0});
}

}  // namespace tetrad::cql
