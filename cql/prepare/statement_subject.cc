// SPDX-License-Identifier: Apache-2.0
// The names of statements in the audit log. Types and categories are those of Cassandra 5.0
// (AuditLogEntryType), so INSERT is an UPDATE and EXPLAIN, which Cassandra lacks, a SELECT.
// Statements on roles name none.
#include "cql/prepare/statement_subject.h"

#include <array>

namespace tetrad::cql {
namespace {

/// One overload for each kind of statement: a new one does not compile without. `in_effect`: the
/// keyspace of names without one.
struct SubjectOf {
  const std::string& in_effect;
  using Category = AuditCategory;

  StatementSubject of_table(std::string_view type, Category category,
                            const ast::QualifiedName& name) const {
    return {type, category, name.keyspace ? name.keyspace->text : in_effect, name.name.text};
  }
  // Functions and aggregates, by name without argument types.
  StatementSubject of_function(std::string_view type, const ast::FunctionName& name) const {
    return {type, Category::kDdl, name.keyspace ? name.keyspace->text : in_effect, name.name.text};
  }
  static StatementSubject of_keyspace(std::string_view type, Category category,
                                      const ast::Identifier& name) {
    return {type, category, name.text, ""};
  }
  static StatementSubject of_roles(std::string_view type) { return {type, Category::kDcl, "", ""}; }

  StatementSubject operator()(const ast::Select& s) const {
    return of_table("SELECT", Category::kQuery, s.from);
  }
  StatementSubject operator()(const ast::Explain& s) const {
    return of_table("SELECT", Category::kQuery, s.select.from);
  }
  StatementSubject operator()(const ast::Insert& s) const {
    return of_table("UPDATE", Category::kDml, s.table);
  }
  StatementSubject operator()(const ast::InsertJson& s) const {
    return of_table("UPDATE", Category::kDml, s.table);
  }
  StatementSubject operator()(const ast::Update& s) const {
    return of_table("UPDATE", Category::kDml, s.table);
  }
  StatementSubject operator()(const ast::Delete& s) const {
    return of_table("DELETE", Category::kDml, s.table);
  }
  // A batch may write to several tables, so it names none.
  StatementSubject operator()(const ast::Batch&) const { return {"BATCH", Category::kDml, "", ""}; }
  StatementSubject operator()(const ast::Truncate& s) const {
    return of_table("TRUNCATE", Category::kDdl, s.table);
  }
  StatementSubject operator()(const ast::Use& s) const {
    return of_keyspace("USE_KEYSPACE", Category::kOther, s.keyspace);
  }
  StatementSubject operator()(const ast::CreateKeyspace& s) const {
    return of_keyspace("CREATE_KEYSPACE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::AlterKeyspace& s) const {
    return of_keyspace("ALTER_KEYSPACE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::DropKeyspace& s) const {
    return of_keyspace("DROP_KEYSPACE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::CreateTable& s) const {
    return of_table("CREATE_TABLE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::AlterTable& s) const {
    return of_table("ALTER_TABLE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::DropTable& s) const {
    return of_table("DROP_TABLE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::CreateType& s) const {
    return of_table("CREATE_TYPE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::AlterType& s) const {
    return of_table("ALTER_TYPE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::DropType& s) const {
    return of_table("DROP_TYPE", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::CreateIndex& s) const {
    return of_table("CREATE_INDEX", Category::kDdl, s.table);
  }
  StatementSubject operator()(const ast::DropIndex& s) const {
    return of_table("DROP_INDEX", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::CreateView& s) const {
    return of_table("CREATE_VIEW", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::AlterView& s) const {
    return of_table("ALTER_VIEW", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::DropView& s) const {
    return of_table("DROP_VIEW", Category::kDdl, s.name);
  }
  StatementSubject operator()(const ast::CreateFunction& s) const {
    return of_function("CREATE_FUNCTION", s.name);
  }
  StatementSubject operator()(const ast::DropFunction& s) const {
    return of_function("DROP_FUNCTION", s.name);
  }
  StatementSubject operator()(const ast::CreateAggregate& s) const {
    return of_function("CREATE_AGGREGATE", s.name);
  }
  StatementSubject operator()(const ast::DropAggregate& s) const {
    return of_function("DROP_AGGREGATE", s.name);
  }
  StatementSubject operator()(const ast::CreateTrigger& s) const {
    return of_table("CREATE_TRIGGER", Category::kDdl, s.table);
  }
  StatementSubject operator()(const ast::DropTrigger& s) const {
    return of_table("DROP_TRIGGER", Category::kDdl, s.table);
  }
  StatementSubject operator()(const ast::CreateRole&) const { return of_roles("CREATE_ROLE"); }
  StatementSubject operator()(const ast::AlterRole&) const { return of_roles("ALTER_ROLE"); }
  StatementSubject operator()(const ast::DropRole&) const { return of_roles("DROP_ROLE"); }
  StatementSubject operator()(const ast::ListRoles&) const { return of_roles("LIST_ROLES"); }
  StatementSubject operator()(const ast::GrantRole&) const { return of_roles("GRANT"); }
  StatementSubject operator()(const ast::RevokeRole&) const { return of_roles("REVOKE"); }
  StatementSubject operator()(const ast::GrantPermissions&) const { return of_roles("GRANT"); }
  StatementSubject operator()(const ast::RevokePermissions&) const { return of_roles("REVOKE"); }
  StatementSubject operator()(const ast::ListPermissions&) const {
    return of_roles("LIST_PERMISSIONS");
  }
  StatementSubject operator()(const ast::AddIdentity&) const { return of_roles("CREATE_IDENTITY"); }
  StatementSubject operator()(const ast::DropIdentity&) const { return of_roles("DROP_IDENTITY"); }
  StatementSubject operator()(const ast::Describe& s) const {
    return {"DESCRIBE", Category::kOther, s.keyspace ? s.keyspace->text : "",
            s.name ? s.name->text : ""};
  }
};

}  // namespace

std::string_view name_of(AuditCategory category) {
  // In the order of the enumeration.
  static constexpr std::array<std::string_view, kAuditCategories> kNames = {
      "QUERY", "DML", "DDL", "DCL", "OTHER", "AUTH", "ERROR", "PREPARE", "ADMIN"};
  return kNames[static_cast<size_t>(category)];
}

StatementSubject subject_of(const ast::Statement& statement, const std::string& keyspace) {
  return std::visit(SubjectOf{keyspace}, statement);
}

}  // namespace tetrad::cql
