// SPDX-License-Identifier: Apache-2.0
// Roles, users, permissions, identities, DESCRIBE.
//
// Passwords are in the tree; audit and logs cut statements off before them (cql::up_to_password,
// up_to_secret).
#include <fmt/format.h>

#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

// name | "Name" | 'Name' | $$Name$$
ast::RoleName Parser::role_name() {
  ast::RoleName result;
  result.position = here();
  // Cassandra's grammar has a rule for the marker, only to refuse it with this text.
  if (is(TokenKind::kQuestionMark)) {
    fail("Bind variables cannot be used for role names");
  } else if (is(TokenKind::kString)) {
    result.text = string_literal();
  } else {
    result.text = name().text;
  }
  return result;
}

// Older than roles: no keyword, no quoted name, and case is kept.
ast::RoleName Parser::user_name() {
  ast::RoleName result;
  result.position = here();
  if (is(TokenKind::kString) || is(TokenKind::kIdentifier)) {
    result.text = value(peek());
    advance();
  } else if (is(TokenKind::kQuotedName)) {
    fail(
        "Quoted strings are are not supported for user names and USER is deprecated, please use "
        "ROLE");
  } else {
    fail_no_viable();
  }
  return result;
}

// [IF NOT EXISTS] name [WITH options]
ast::CreateRole Parser::create_role() {
  ast::CreateRole result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = role_name();
  if (accept(Keyword::kWith)) role_options(result.options);
  return result;
}

// [IF EXISTS] name [WITH options]
ast::AlterRole Parser::alter_role() {
  ast::AlterRole result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = role_name();
  if (accept(Keyword::kWith)) role_options(result.options);
  return result;
}

// [IF NOT EXISTS] name [WITH [HASHED] PASSWORD 'x'] [SUPERUSER | NOSUPERUSER]
ast::CreateRole Parser::create_user() {
  ast::CreateRole result;
  result.position = start_;
  result.is_user_statement = true;
  result.if_not_exists = if_not_exists();
  result.name = user_name();
  user_options(result.options);
  result.options.login = true;
  // CREATE USER always says both: a user can log in, and is no superuser unless it says so.
  if (!result.options.superuser) result.options.superuser = false;
  return result;
}

ast::AlterRole Parser::alter_user() {
  ast::AlterRole result;
  result.position = start_;
  result.is_user_statement = true;
  result.if_exists = if_exists();
  result.name = user_name();
  user_options(result.options);
  return result;
}

void Parser::user_options(ast::RoleOptions& options) {
  if (accept(Keyword::kWith)) {
    if (accept(Keyword::kHashed)) {
      expect(Keyword::kPassword);
      options.hashed_password = string_literal();
    } else {
      expect(Keyword::kPassword);
      options.password = string_literal();
    }
  }
  if (accept(Keyword::kSuperuser)) {
    options.superuser = true;
  } else if (accept(Keyword::kNosuperuser)) {
    options.superuser = false;
  }
}

// Each at most once, in any order.
void Parser::role_options(ast::RoleOptions& options) {
  do {
    role_option(options);
  } while (accept(Keyword::kAnd));
  if (options.password && options.hashed_password) {
    fail("Options 'password' and 'hashed password' are mutually exclusive");
  }
}

void Parser::role_option(ast::RoleOptions& options) {
  // After the value was read, as Cassandra: an error in the value comes first.
  const auto once = [&](bool seen, std::string_view option) {
    if (seen) fail(fmt::format("Multiple definition for property '{}'", option));
  };
  // TRUE or FALSE behind the sign; what the grammar calls BOOLEAN has no other spelling.
  const auto boolean = [&] {
    expect(TokenKind::kEqual);
    if (accept(Keyword::kTrue)) return true;
    if (!accept(Keyword::kFalse) && !failed_) fail_mismatch(index_, "BOOLEAN");
    return false;
  };
  // PASSWORD = 'x' | HASHED PASSWORD = 'x' | OPTIONS = {…} | SUPERUSER = b | LOGIN = b
  //  ACCESS TO (ALL DATACENTERS | DATACENTERS {…}) | ACCESS FROM (ALL CIDRS | CIDRS {…})
  if (accept(Keyword::kPassword)) {
    expect(TokenKind::kEqual);
    std::string password = string_literal();
    once(options.password.has_value(), "PASSWORD");
    options.password = std::move(password);
  } else if (accept(Keyword::kHashed)) {
    expect(Keyword::kPassword);
    expect(TokenKind::kEqual);
    std::string password = string_literal();
    once(options.hashed_password.has_value(), "HASHED_PASSWORD");
    options.hashed_password = std::move(password);
  } else if (accept(Keyword::kOptions)) {
    expect(TokenKind::kEqual);
    if (!is(TokenKind::kLeftBrace)) expect(TokenKind::kLeftBrace);
    std::vector<std::pair<std::string, std::string>> custom;
    for (auto& [key, text] : property_map()) {
      custom.emplace_back(std::move(key.text), std::move(text.text));
    }
    once(options.custom.has_value(), "OPTIONS");
    options.custom = std::move(custom);
  } else if (accept(Keyword::kSuperuser)) {
    const bool superuser = boolean();
    once(options.superuser.has_value(), "SUPERUSER");
    options.superuser = superuser;
  } else if (accept(Keyword::kLogin)) {
    const bool login = boolean();
    once(options.login.has_value(), "LOGIN");
    options.login = login;
  } else if (accept(Keyword::kAccess)) {
    if (accept(Keyword::kTo)) {
      once(options.datacenters.has_value(), "ACCESS TO DATACENTERS");
      const bool all = accept(Keyword::kAll);
      expect(Keyword::kDatacenters);
      options.datacenters = all ? std::vector<std::string>{} : strings_in_braces();
    } else if (accept(Keyword::kFrom)) {
      once(options.cidrs.has_value(), "ACCESS FROM CIDRS");
      const bool all = accept(Keyword::kAll);
      expect(Keyword::kCidrs);
      options.cidrs = all ? std::vector<std::string>{} : strings_in_braces();
    } else {
      fail_no_viable();
    }
  } else {
    fail_no_viable();
  }
}

// At least one.
std::vector<std::string> Parser::strings_in_braces() {
  std::vector<std::string> result;
  expect(TokenKind::kLeftBrace);
  do {
    result.push_back(string_literal());
    check_count(result.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightBrace);
  return result;
}

// One table: each word that names a permission.
std::optional<ast::Permission> Parser::permission_at(size_t ahead) {
  switch (peek(ahead).keyword) {
    case Keyword::kCreate:
      return ast::Permission::kCreate;
    case Keyword::kAlter:
      return ast::Permission::kAlter;
    case Keyword::kDrop:
      return ast::Permission::kDrop;
    case Keyword::kSelect:
      return ast::Permission::kSelect;
    case Keyword::kModify:
      return ast::Permission::kModify;
    case Keyword::kAuthorize:
      return ast::Permission::kAuthorize;
    case Keyword::kDescribe:
      return ast::Permission::kDescribe;
    case Keyword::kExecute:
      return ast::Permission::kExecute;
    case Keyword::kUnmask:
      return ast::Permission::kUnmask;
    case Keyword::kSelectMasked:
      return ast::Permission::kSelectMasked;
    default:
      return std::nullopt;
  }
}

// ALL [PERMISSIONS] | permission [PERMISSION] (, permission [PERMISSION])*
void Parser::permissions(bool& all, std::vector<ast::Permission>& permissions) {
  if (accept(Keyword::kAll)) {
    all = true;
    // ALL and ALL PERMISSIONS mean the same, and so do SELECT and SELECT PERMISSION below.
    accept(Keyword::kPermissions);
    return;
  }
  do {
    const auto permission = permission_at();
    if (!permission) {
      fail_no_viable();
      return;
    }
    permissions.push_back(*permission);
    check_count(permissions.size());
    advance();
    accept(Keyword::kPermission);
  } while (accept(TokenKind::kComma));
}

// GRANT role TO grantee | GRANT permissions ON resource TO grantee
ast::Statement Parser::grant() {
  advance();
  // unmask, select_masked and all may be roles as well.
  if ((!permission_at() && !is(Keyword::kAll)) || (names(peek()) && is(Keyword::kTo, 1))) {
    ast::GrantRole result;
    result.position = start_;
    result.role = role_name();
    expect(Keyword::kTo);
    result.grantee = role_name();
    return result;
  }
  ast::GrantPermissions result;
  result.position = start_;
  permissions(result.all, result.permissions);
  expect(Keyword::kOn);
  result.resource = resource();
  expect(Keyword::kTo);
  result.grantee = role_name();
  return result;
}

// As grant(), with FROM.
ast::Statement Parser::revoke() {
  advance();
  if ((!permission_at() && !is(Keyword::kAll)) || (names(peek()) && is(Keyword::kFrom, 1))) {
    ast::RevokeRole result;
    result.position = start_;
    result.role = role_name();
    expect(Keyword::kFrom);
    result.revokee = role_name();
    return result;
  }
  ast::RevokePermissions result;
  result.position = start_;
  permissions(result.all, result.permissions);
  expect(Keyword::kOn);
  result.resource = resource();
  expect(Keyword::kFrom);
  result.revokee = role_name();
  return result;
}

// The word after LIST decides. What fits nothing is reported at that word, with LIST as the
// beginning of the input, since Cassandra's parser looks ahead from there.
ast::Statement Parser::list() {
  const size_t from = index_;
  advance();
  if (accept(Keyword::kUsers)) {
    ast::ListRoles result;
    result.position = start_;
    result.is_user_statement = true;
    return result;
  }
  if (accept(Keyword::kRoles)) {
    ast::ListRoles result;
    result.position = start_;
    if (accept(Keyword::kOf)) result.of = role_name();
    result.recursive = !accept(Keyword::kNorecursive);
    return result;
  }
  if (!permission_at() && !is(Keyword::kAll)) {
    fail_no_viable(index_, from);
    return ast::Use{};
  }
  ast::ListPermissions result;
  result.position = start_;
  permissions(result.all, result.permissions);
  if (accept(Keyword::kOn)) result.resource = resource();
  if (accept(Keyword::kOf)) result.of = role_name();
  result.recursive = !accept(Keyword::kNorecursive);
  return result;
}

// Keywords that name kinds of resources may also be names of tables, so each needs what follows it.
ast::Resource Parser::resource() {
  using Kind = ast::Resource::Kind;
  ast::Resource result;
  // A table may be called `all`: then no plural follows.
  if (is(Keyword::kAll) && is_any({Keyword::kKeyspaces, Keyword::kTables, Keyword::kRoles,
                                   Keyword::kFunctions, Keyword::kMbeans},
                                  1)) {
    advance();
    if (accept(Keyword::kKeyspaces)) {
      result.kind = Kind::kAllKeyspaces;
    } else if (accept(Keyword::kRoles)) {
      result.kind = Kind::kAllRoles;
    } else if (accept(Keyword::kMbeans)) {
      result.kind = Kind::kAllMbeans;
    } else if (accept(Keyword::kTables)) {
      result.kind = Kind::kAllTables;
      expect(Keyword::kIn);
      expect(Keyword::kKeyspace);
      result.keyspace = keyspace_name();
    } else {
      advance();
      result.kind = Kind::kAllFunctions;
      if (accept(Keyword::kIn)) {
        expect(Keyword::kKeyspace);
        result.kind = Kind::kKeyspaceFunctions;
        result.keyspace = keyspace_name();
      }
    }
    return result;
  }
  if (accept(Keyword::kKeyspace)) {
    result.kind = Kind::kKeyspace;
    result.keyspace = keyspace_name();
    return result;
  }
  if (is_any({Keyword::kMbean, Keyword::kMbeans}) && is(TokenKind::kString, 1)) {
    result.kind = is(Keyword::kMbean) ? Kind::kMbean : Kind::kMbeans;
    advance();
    result.mbean = string_literal();
    return result;
  }
  // A table may be called role or function: then no name follows.
  if (is(Keyword::kRole) && (names(peek(1)) || is(TokenKind::kString, 1))) {
    advance();
    result.kind = Kind::kRole;
    result.role = role_name();
    return result;
  }
  if (is(Keyword::kFunction) && (names(peek(1)) || names_function(peek(1)))) {
    advance();
    result.kind = Kind::kFunction;
    result.function = function_name();
    result.arguments = types_in_parentheses();
    return result;
  }
  // Everything else is a table, with or without the word in front.
  if (!accept(Keyword::kTable)) accept(Keyword::kColumnfamily);
  result.kind = Kind::kTable;
  result.table = table_name();
  return result;
}

// ADD IDENTITY [IF NOT EXISTS] identity TO ROLE name
ast::AddIdentity Parser::add_identity() {
  ast::AddIdentity result;
  result.position = start_;
  advance();
  expect(Keyword::kIdentity);
  result.if_not_exists = if_not_exists();
  result.identity = identity();
  expect(Keyword::kTo);
  expect(Keyword::kRole);
  result.role = role_name().text;
  return result;
}

// A string or a name.
std::string Parser::identity() { return is(TokenKind::kString) ? string_literal() : name().text; }

// (DESCRIBE | DESC) object [WITH INTERNALS]
ast::Describe Parser::describe() {
  ast::Describe result;
  result.position = start_;
  const size_t from = index_;
  advance();
  described_object(result, from);
  if (accept(Keyword::kWith)) {
    expect(Keyword::kInternals);
    result.with_internals = true;
  }
  return result;
}

// What stands behind the word DESCRIBE, which is the token at `from`. One table: each word that
// may follow is a case, so it stands in one piece.
void Parser::described_object(ast::Describe& result, size_t from) {
  using Target = ast::Describe::Target;
  // A word that is all that is described: a list, or the whole schema.
  const auto list_of = [&](Target target) {
    advance();
    result.target = target;
  };
  // A word that one object's name follows.
  const auto object = [&](Target target) {
    advance();
    named_object(result, target);
  };
  // The words of lists and kinds stand for themselves, so a keyspace `tables` needs quotes here.
  switch (peek().keyword) {
    case Keyword::kCluster:
      list_of(Target::kCluster);
      break;
    case Keyword::kFull:
      advance();
      expect(Keyword::kSchema);
      result.target = Target::kSchema;
      result.full = true;
      break;
    case Keyword::kSchema:
      list_of(Target::kSchema);
      break;
    case Keyword::kKeyspaces:
      list_of(Target::kKeyspaces);
      break;
    case Keyword::kTables:
      list_of(Target::kTables);
      break;
    case Keyword::kTypes:
      list_of(Target::kTypes);
      break;
    case Keyword::kFunctions:
      list_of(Target::kFunctions);
      break;
    case Keyword::kAggregates:
      list_of(Target::kAggregates);
      break;
    case Keyword::kOnly:
      if (!is(Keyword::kKeyspace, 1)) {
        fail_no_viable(index_ + 1, index_);
        break;
      }
      advance();
      result.only = true;
      [[fallthrough]];
    case Keyword::kKeyspace:
      list_of(Target::kKeyspace);
      if (names(peek())) result.keyspace = keyspace_name();
      break;
    case Keyword::kTable:
    case Keyword::kColumnfamily:
      object(Target::kTable);
      break;
    case Keyword::kIndex:
      object(Target::kIndex);
      break;
    case Keyword::kMaterialized:
      advance();
      if (!is(Keyword::kView)) expect(Keyword::kView);
      object(Target::kView);
      break;
    case Keyword::kType:
      object(Target::kType);
      break;
    case Keyword::kFunction:
      object(Target::kFunction);
      break;
    case Keyword::kAggregate:
      object(Target::kAggregate);
      break;
    default:
      if (!names(peek())) {
        fail_no_viable(index_, is(TokenKind::kEnd) ? from : index_);
        break;
      }
      if (is(TokenKind::kIdentifier) && !is(TokenKind::kDot, 1) &&
          name().text == "columnfamilies") {
        result.target = Target::kTables;
        break;
      }
      if (index_ > from + 1) --index_;  // the name just looked at
      named_object(result, Target::kGeneric);
  }
}

// One of several objects of a kind: keyspace.name or name.
void Parser::named_object(ast::Describe& result, ast::Describe::Target target) {
  result.target = target;
  ast::QualifiedName object_name = qualified_name("table");
  result.keyspace = std::move(object_name.keyspace);
  result.name = std::move(object_name.name);
}

}  // namespace tetrad::cql
