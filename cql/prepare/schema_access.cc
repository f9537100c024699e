// SPDX-License-Identifier: Apache-2.0
// Permissions around statements that change the schema.
//
// Three moments: Rights says what the text of a statement alone demands, before it runs.
// check_change_access() checks what only the plan knows, such as which overload of a function is
// meant. follow_in_roles() changes roles in the same change of the schema: the creator gets all
// permissions on what he made, and permissions on what is dropped go. If they stayed, a later
// object of that name would have them.
#include "cql/execute/access.h"
#include "cql/prepare/prepare_roles.h"
#include "cql/prepare/schema_plan.h"

namespace tetrad::cql {
namespace {

using Target = SchemaChange::Target;
using Kind = SchemaChange::Kind;

/// Without a keyspace the statement is refused anyway.
std::string keyspace_in(const std::optional<ast::Identifier>& written, const std::string& used) {
  return written ? written->text : used;
}

/// One overload for each statement, so that a new one does not build before it has its rights.
struct Rights {
  const std::string& used;
  RequiredAccess& out;

  void table(Permission permission, const ast::QualifiedName& name) const {
    out.add(permission, table_resource(keyspace_in(name.keyspace, used), name.name.text));
  }
  void tables(Permission permission, const ast::QualifiedName& name) const {
    out.add(permission, tables_resource(keyspace_in(name.keyspace, used)));
  }
  void functions(const ast::FunctionName& name) const {
    out.add(Permission::kCreate, functions_resource(keyspace_in(name.keyspace, used)));
  }

  void operator()(const ast::CreateKeyspace&) const { out.add(Permission::kCreate, kAllData); }
  void operator()(const ast::AlterKeyspace& s) const {
    out.add(Permission::kAlter, keyspace_resource(s.name.text));
  }
  void operator()(const ast::DropKeyspace& s) const {
    out.add(Permission::kDrop, keyspace_resource(s.name.text));
  }
  void operator()(const ast::CreateTable& s) const { tables(Permission::kCreate, s.name); }
  void operator()(const ast::AlterTable& s) const { table(Permission::kAlter, s.name); }
  void operator()(const ast::DropTable& s) const { table(Permission::kDrop, s.name); }
  void operator()(const ast::Truncate& s) const { table(Permission::kModify, s.table); }
  void operator()(const ast::CreateType& s) const { tables(Permission::kCreate, s.name); }
  void operator()(const ast::AlterType& s) const { tables(Permission::kAlter, s.name); }
  void operator()(const ast::DropType& s) const { tables(Permission::kDrop, s.name); }
  void operator()(const ast::CreateIndex& s) const { table(Permission::kAlter, s.table); }
  // Which table they are of is not written: check_change_access().
  void operator()(const ast::DropIndex&) const {}
  void operator()(const ast::AlterView&) const {}
  void operator()(const ast::DropView&) const {}
  void operator()(const ast::CreateView& s) const { table(Permission::kAlter, s.from); }
  // The others are in check_change_access().
  void operator()(const ast::CreateFunction& s) const {
    if (!s.or_replace) functions(s.name);
  }
  void operator()(const ast::CreateAggregate& s) const {
    if (!s.or_replace) functions(s.name);
  }
  void operator()(const ast::DropFunction&) const {}
  void operator()(const ast::DropAggregate&) const {}
  void operator()(const ast::CreateTrigger&) const {
    out.superuser_only = "Only superusers are allowed to perform CREATE TRIGGER queries";
  }
  void operator()(const ast::DropTrigger&) const {  // the text is Cassandra's
    out.superuser_only = "Only superusers are allowed to perfrom DROP TRIGGER queries";
  }
};

/// Whether there is an overload for the statement; others are refused to all but superusers.
template <class T>
concept OnSchema = requires(const Rights& rights, const T& statement) {
  rights(statement);
};

bool is_function(Target target) {
  return target == Target::kFunction || target == Target::kAggregate;
}

/// The functions that an aggregate calls.
Result<void> check_parts(const ast::CreateAggregate& statement, const SchemaChange& answer,
                         const SchemaSnapshot& schema, std::string_view role) {
  const KeyspaceSchema* const keyspace = schema.keyspace(answer.keyspace);
  if (keyspace == nullptr) return {};
  TETRAD_TRY(const TypePtr state, resolve_type(statement.state_type, *keyspace));
  std::vector<std::string> types = {argument_text(*state)};
  if (statement.final_function)
    TETRAD_TRY_VOID(check_permission(
        *schema.roles(), role,
        {Permission::kExecute,
         function_resource(answer.keyspace, statement.final_function->text, types)}));
  types.insert(types.end(), answer.argument_types.begin(), answer.argument_types.end());
  return check_permission(
      *schema.roles(), role,
      {Permission::kExecute,
       function_resource(answer.keyspace, statement.state_function.text, types)});
}

/// Whether a permission on `resource` goes with what is dropped.
bool goes_with(std::string_view resource, const SchemaChange& dropped) {
  const auto is_or_below = [&](const std::string& root) {
    return resource == root || resource.starts_with(root + "/");
  };
  switch (dropped.target) {
    case Target::kKeyspace:
      return is_or_below(keyspace_resource(dropped.keyspace)) ||
             is_or_below(functions_resource(dropped.keyspace));
    case Target::kTable:
      return resource == table_resource(dropped.keyspace, dropped.name);
    case Target::kFunction:
    case Target::kAggregate:
      return resource == function_resource(dropped.keyspace, dropped.name, dropped.argument_types);
    case Target::kType:
      return false;
  }
  return false;
}

}  // namespace

void add_schema_access(const ast::Statement& statement, const std::string& keyspace,
                       RequiredAccess& out) {
  std::visit(
      [&](const auto& node) {
        if constexpr (OnSchema<std::decay_t<decltype(node)>>) {
          Rights{keyspace, out}(node);
        } else {
          out.superuser_only = "Only superusers are allowed to perform this statement";
        }
      },
      statement);
}

// `answer` names the object that the plan found; its kind says whether it is new.
Result<void> check_change_access(const ast::Statement& statement, const SchemaChange& answer,
                                 const SchemaSnapshot& schema, std::string_view role) {
  if (std::holds_alternative<ast::DropIndex>(statement)) {
    return check_permission(*schema.roles(), role,
                            {Permission::kAlter, table_resource(answer.keyspace, answer.name)});
  }
  if (std::holds_alternative<ast::AlterView>(statement) ||
      std::holds_alternative<ast::DropView>(statement)) {
    const TablePtr view = schema.table(answer.keyspace, answer.name);
    return check_permission(
        *schema.roles(), role,
        {Permission::kAlter,
         table_resource(answer.keyspace,
                        view && view->view ? view->view->base_table : answer.name)});
  }
  if (!is_function(answer.target)) return {};
  const bool is_new = answer.kind == Kind::kCreated;
  const std::string resource =
      is_new ? functions_resource(answer.keyspace)
             : function_resource(answer.keyspace, answer.name, answer.argument_types);
  const Permission permission = is_new                          ? Permission::kCreate
                                : answer.kind == Kind::kUpdated ? Permission::kAlter
                                                                : Permission::kDrop;
  TETRAD_TRY_VOID(check_permission(*schema.roles(), role, {permission, resource}));
  if (const auto* aggregate = std::get_if<ast::CreateAggregate>(&statement))
    return check_parts(*aggregate, answer, schema, role);
  return {};
}

// Unset: the role is dropped.
void put_roles(const std::map<std::string, std::optional<Role>>& changed,
               replication::SchemaChange& change) {
  for (const auto& [name, role] : changed)
    change.objects.emplace_back(role_key(name),
                                role ? std::optional(role_text(*role)) : std::nullopt);
}

// Only roles that change are written. Types have no permissions of their own.
void follow_in_roles(const SchemaChange& answer, const RoleSet& roles, const std::string& creator,
                     replication::SchemaChange& change) {
  std::map<std::string, std::optional<Role>> changed;
  if (answer.kind == Kind::kDropped) {
    for (const auto& [name, role] : roles.all()) {
      Role without = *role;
      std::erase_if(without.grants,
                    [&](const auto& grant) { return goes_with(grant.first, answer); });
      if (without != *role) changed.emplace(name, std::move(without));
    }
  } else if (const Role* role = roles.find(creator);
             role != nullptr && answer.kind == Kind::kCreated && answer.target != Target::kType) {
    Role with = *role;
    const auto grant = [&](const std::string& resource) {
      with.grants[resource] = applicable_to(resource);
    };
    if (answer.target == Target::kKeyspace) {
      grant(keyspace_resource(answer.keyspace));
      grant(functions_resource(answer.keyspace));
    } else if (answer.target == Target::kTable) {
      grant(table_resource(answer.keyspace, answer.name));
    } else {
      grant(function_resource(answer.keyspace, answer.name, answer.argument_types));
    }
    changed.emplace(creator, std::move(with));
  }
  put_roles(changed, change);
}

}  // namespace tetrad::cql
