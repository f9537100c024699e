// SPDX-License-Identifier: Apache-2.0
// LIST ROLES, LIST USERS and LIST PERMISSIONS.
//
// All three read the roles of the request's schema snapshot; nothing is asked of other nodes. Who
// may see what is decided when they run, and not by required_access(): with DESCRIBE on all roles a
// client sees everything, without it himself and the roles that are granted to him.
#include <algorithm>

#include "cql/prepare/prepare_roles.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

/// A cell of RowsResult::cells: i32 size and bytes.
void append_cell(Bytes& out, BytesView value) {
  const Bytes size = make_int(static_cast<int32_t>(value.size()));
  out.append(size);
  out.append(value);
}

/// Of `options`, a column that Cassandra's answer has and that is always empty here.
TypePtr text_map() { return make_map(text_type(), text_type(), false); }

ResultMetadataPtr metadata(const char* table,
                           std::initializer_list<std::pair<const char*, TypePtr>> columns) {
  std::vector<ColumnSpec> specs;
  for (const auto& [name, type] : columns) specs.push_back({"system_auth", table, name, type});
  return std::make_shared<const ResultMetadata>(std::move(specs));
}

/// DESCRIBE ON ALL ROLES, his own or granted.
bool may_describe(const RoleSet& roles, std::string_view client) {
  return (roles.permissions(client, kAllRoles) & set_of(Permission::kDescribe)) != 0;
}

/// LIST ROLES and LIST USERS. LIST USERS shows the roles that can log in.
class ListRoles final : public Statement {
 public:
  explicit ListRoles(ast::ListRoles statement) : statement_(std::move(statement)) {
    result_metadata_ = statement_.is_user_statement
                           ? metadata("users", {{"name", text_type()},
                                                {"super", boolean_type()},
                                                {"datacenters", text_type()}})
                           : metadata("roles", {{"role", text_type()},
                                                {"super", boolean_type()},
                                                {"login", boolean_type()},
                                                {"options", text_map()},
                                                {"datacenters", text_type()}});
  }
  bool is_current(const SchemaSnapshot&) const override { return true; }
  void required_access(RequiredAccess&) const override {}  // shows what the client may see

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_read({}, context.options.consistency);
    TETRAD_CO_TRY_VOID(check_not_anonymous(context.client));
    const RoleSet& roles = *context.schema->roles();
    TETRAD_CO_TRY(const std::vector<const Role*> listed, select(roles, context.client.user));
    RowsResult result;
    result.metadata = result_metadata_;
    for (const Role* role : listed) {
      if (statement_.is_user_statement && !role->can_login) continue;
      append_row(*role, roles.is_superuser(role->name), result.cells);
      ++result.row_count;
    }
    co_return StatementResult(std::move(result));
  }

 private:
  /// The roles to list: all, those granted to the client, or those granted to the role of OF.
  /// NORECURSIVE leaves out what is held through another role.
  Result<std::vector<const Role*>> select(const RoleSet& roles, const std::string& client) const {
    const bool sees_all = may_describe(roles, client);
    if (!statement_.of) {
      if (!sees_all) return roles.with_granted(client);
      std::vector<const Role*> all;
      for (const auto& [name, role] : roles.all()) all.push_back(role.get());
      return all;
    }
    const std::string& name = statement_.of->text;
    const Role* const role = roles.find(name);
    if (role == nullptr)
      return fail(ErrorCode::kInvalid, "{} doesn't exist", shown_resource(role_resource(name)));
    if (!sees_all && !roles.has_role(client, name))
      return fail(ErrorCode::kUnauthorized, "You are not authorized to view roles granted to {} ",
                  name);
    std::vector<const Role*> listed = roles.with_granted(name);
    if (!statement_.recursive)
      std::erase_if(listed, [&](const Role* held) {
        return held != role && !role->member_of.contains(held->name);
      });
    return listed;
  }

  void append_row(const Role& role, bool is_superuser, Bytes& out) const {
    append_cell(out, role.name);
    append_cell(out, make_boolean(is_superuser));
    if (!statement_.is_user_statement) {
      append_cell(out, make_boolean(role.can_login));
      append_cell(out, make_int(0));  // an empty map
    }
    append_cell(out, !role.can_login ? "n/a"
                     : role.datacenters.empty()
                         ? "ALL"
                         : fmt::format("{}", fmt::join(role.datacenters, ", ")));
  }

  const ast::ListRoles statement_;
};

/// LIST PERMISSIONS, one row for each permission that a role has on a resource.
class ListPermissions final : public Statement {
 public:
  ListPermissions(ast::ListPermissions statement, std::optional<std::string> resource)
      : statement_(std::move(statement)), resource_(std::move(resource)) {
    for (const Permission permission : statement_.permissions) wanted_ |= set_of(permission);
    if (statement_.all) wanted_ = static_cast<PermissionSet>(~0u);
    columns_ = metadata("permissions", {{"role", text_type()},
                                        {"username", text_type()},
                                        {"resource", text_type()},
                                        {"permission", text_type()}});
  }
  bool is_current(const SchemaSnapshot&) const override { return true; }
  void required_access(RequiredAccess&) const override {}  // shows what the client may see

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_read({}, context.options.consistency);
    TETRAD_CO_TRY_VOID(check_not_anonymous(context.client));
    TETRAD_CO_TRY_VOID(check(*context.schema, context.client.user));
    const RoleSet& roles = *context.schema->roles();
    std::vector<const Role*> holders;
    if (statement_.of) {
      holders = roles.with_granted(statement_.of->text);
    } else {
      for (const auto& [name, role] : roles.all()) holders.push_back(role.get());
    }
    RowsResult result;
    result.metadata = columns_;
    for (const Role* role : holders) append_rows(*role, result);
    if (result.row_count == 0) co_return StatementResult();  // as Cassandra: no columns either
    co_return StatementResult(std::move(result));
  }

 private:
  /// Cassandra's order: the resource, the role, then the client's rights.
  Result<void> check(const SchemaSnapshot& schema, const std::string& client) const {
    if (resource_ && !is_there(*resource_, schema))
      return fail(ErrorCode::kInvalid, "{} doesn't exist", shown_resource(*resource_));
    const RoleSet& roles = *schema.roles();
    const std::string of = statement_.of ? statement_.of->text : "";
    if (statement_.of && roles.find(of) == nullptr)
      return fail(ErrorCode::kInvalid, "{} doesn't exist", shown_resource(role_resource(of)));
    if (may_describe(roles, client) || (statement_.of && roles.has_role(client, of))) return {};
    if (statement_.of &&
        (roles.permissions(client, role_resource(of)) & set_of(Permission::kDescribe)) != 0)
      return {};
    return fail(ErrorCode::kUnauthorized, "You are not authorized to view {}'s permissions",
                statement_.of ? of : "everyone");
  }

  /// Whether grants on `resource` are listed: on the one that was named and, unless NORECURSIVE, on
  /// those above it, which hold for it, too.
  bool is_asked(std::string_view resource) const {
    if (!resource_ || resource == *resource_) return true;
    if (!statement_.recursive) return false;
    for (auto above = parent_of(*resource_); above; above = parent_of(*above))
      if (resource == *above) return true;
    return false;
  }

  void append_rows(const Role& role, RowsResult& result) const {
    for (const auto& [resource, permissions] : role.grants) {
      if (!is_asked(resource)) continue;
      for (size_t i = 0; i < kPermissions; ++i) {
        if (((permissions & wanted_) >> i & 1) == 0) continue;
        // `role` and `username` are the same.
        append_cell(result.cells, role.name);
        append_cell(result.cells, role.name);
        append_cell(result.cells, shown_resource(resource));
        append_cell(result.cells, kPermissionNames[i]);
        ++result.row_count;
      }
    }
  }

  const ast::ListPermissions statement_;
  const std::optional<std::string> resource_;
  PermissionSet wanted_ = 0;
  ResultMetadataPtr columns_;  // not announced: where nothing is listed there are none
};

}  // namespace

StatementPtr make_list_roles(const ast::ListRoles& statement) {
  return std::make_shared<ListRoles>(statement);
}

StatementPtr make_list_permissions(const ast::ListPermissions& statement,
                                   std::optional<std::string> resource) {
  return std::make_shared<ListPermissions>(statement, std::move(resource));
}

}  // namespace tetrad::cql
