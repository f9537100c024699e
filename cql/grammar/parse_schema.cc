// SPDX-License-Identifier: Apache-2.0
// Keyspaces, tables, user types and the options behind WITH.
//
// Options are kept as they were written; what they mean is checked when the statement is prepared
// (prepare/table_properties.cc and others).
#include <unordered_set>

#include <fmt/format.h>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

// [IF NOT EXISTS] name WITH properties
ast::CreateKeyspace Parser::create_keyspace() {
  ast::CreateKeyspace result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = keyspace_name();
  expect(Keyword::kWith);
  result.properties = properties();
  return result;
}

// [IF EXISTS] name WITH properties
ast::AlterKeyspace Parser::alter_keyspace() {
  ast::AlterKeyspace result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = keyspace_name();
  expect(Keyword::kWith);
  result.properties = properties();
  return result;
}

// [IF NOT EXISTS] name ( column, … [, PRIMARY KEY (…)] ) [WITH options]
ast::CreateTable Parser::create_table() {
  ast::CreateTable result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = table_name();
  // `CREATE TABLE a b (…)`: Cassandra reports the second word as part of what began at the first.
  if (!result.name.keyspace && is(TokenKind::kIdentifier)) fail_no_viable(index_, index_ - 1);
  expect(TokenKind::kLeftParenthesis);
  table_column(result);
  while (accept(TokenKind::kComma)) {  // a comma too many is legal
    if (is(TokenKind::kComma) || is(TokenKind::kRightParenthesis)) continue;
    if (!is(Keyword::kPrimary) && !names(peek())) break;
    table_column(result);
    check_count(result.columns.size() + result.primary_keys.size());
  }
  expect(TokenKind::kRightParenthesis);
  if (accept(Keyword::kWith)) result.options = table_options();
  return result;
}

// Several PRIMARY KEY clauses are a tree here and an error when the statement is prepared, with
// Cassandra's text.
void Parser::table_column(ast::CreateTable& table) {
  if (is(Keyword::kPrimary)) {
    table.primary_keys.push_back(primary_key());
    return;
  }
  table.columns.push_back(column_definition());
  // The words PRIMARY KEY behind a column make it the whole partition key.
  const ast::Position position = here();
  if (accept(Keyword::kPrimary)) {
    expect(Keyword::kKey);
    table.primary_keys.push_back(ast::PrimaryKey{{table.columns.back().name}, {}, position});
  }
}

ast::ColumnDefinition Parser::column_definition() {
  ast::ColumnDefinition result;
  result.name = name();
  result.type = type();
  result.is_static = accept(Keyword::kStatic);
  if (is(Keyword::kMasked)) {
    const size_t from = index_;
    result.mask = column_mask();
    // `v int MASKED WITH DEFAULT STATIC` is an error: STATIC stands before the mask.
    if (is(Keyword::kStatic)) fail_no_viable(index_, from);
  }
  return result;
}

// MASKED WITH (DEFAULT | function ( terms ))
ast::ColumnMask Parser::column_mask() {
  ast::ColumnMask result;
  result.position = here();
  expect(Keyword::kMasked);
  expect(Keyword::kWith);
  // A function may be called default, so the parenthesis decides.
  if (is(Keyword::kDefault) && !is(TokenKind::kLeftParenthesis, 1)) {
    advance();
    result.is_default = true;
    return result;
  }
  result.function = function_name();
  expect(TokenKind::kLeftParenthesis);
  result.arguments = terms_until(TokenKind::kRightParenthesis);
  return result;
}

// PRIMARY KEY ( (a | (a, b …)) [, c …] )
ast::PrimaryKey Parser::primary_key() {
  ast::PrimaryKey result;
  result.position = here();
  expect(Keyword::kPrimary);
  expect(Keyword::kKey);
  expect(TokenKind::kLeftParenthesis);
  if (is(TokenKind::kLeftParenthesis)) {
    result.partition = names_in_parentheses();
  } else {
    result.partition.push_back(name());
  }
  while (accept(TokenKind::kComma)) {
    result.clustering.push_back(name());
    check_count(result.clustering.size());
  }
  expect(TokenKind::kRightParenthesis);
  return result;
}

// COMPACT STORAGE | CLUSTERING ORDER BY (…) | property, joined by AND.
ast::TableOptions Parser::table_options() {
  ast::TableOptions result;
  do {
    table_option(result);
  } while (accept(Keyword::kAnd));
  return result;
}

void Parser::table_option(ast::TableOptions& options) {
  // Properties may be called compact or clustering: those have an = behind them.
  if (is(Keyword::kCompact) && !is(TokenKind::kEqual, 1)) {
    const size_t from = index_;
    advance();
    if (!is(Keyword::kStorage)) fail_no_viable(index_, from);
    advance();
    options.compact_storage = true;
    return;
  }
  if (!is(Keyword::kClustering) || is(TokenKind::kEqual, 1)) {
    property(options.properties);
    return;
  }
  const size_t from = index_;
  advance();
  if (!is(Keyword::kOrder)) fail_no_viable(index_, from);
  advance();
  expect(Keyword::kBy);
  expect(TokenKind::kLeftParenthesis);
  do {
    ast::ClusteringOrder order;
    order.column = name();
    if (accept(Keyword::kDesc)) {
      order.descending = true;
    } else if (!accept(Keyword::kAsc)) {
      // Other than in ORDER BY the direction must be written.
      fail_no_viable();
    }
    options.clustering_order.push_back(std::move(order));
    check_count(options.clustering_order.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightParenthesis);
}

// name = value, joined by AND.
ast::Properties Parser::properties() {
  ast::Properties result;
  do {
    property(result);
  } while (accept(Keyword::kAnd));
  return result;
}

void Parser::property(ast::Properties& properties) {
  constexpr size_t kPropertyCountMax = 1000;  // they are compared with each other
  const size_t from = index_;
  ast::Property result;
  result.name = name();
  if (!is(TokenKind::kEqual)) fail_no_viable(index_, from);
  expect(TokenKind::kEqual);
  result.value.position = here();
  const Token& token = peek();
  if (is(TokenKind::kLeftBrace)) {
    result.value.value = property_map();
  } else if (auto literal = literal_of(token);
             literal && literal->kind != ast::Literal::Kind::kNull) {
    advance();
    result.value.value = std::move(*literal);
  } else if (token.kind == TokenKind::kKeyword && names(token)) {  // comment = ascii
    result.value.value = ast::Literal{ast::Literal::Kind::kString, value(token)};
    advance();
  } else {
    fail_no_viable(index_, from);
  }
  for (const ast::Property& other : properties) {
    if (other.name.text == result.name.text) {
      fail(fmt::format("Multiple definitions for property '{}'", result.name.text));
    }
  }
  properties.push_back(std::move(result));
  if (properties.size() > kPropertyCountMax) fail_at(index_, "too many properties");
}

// {'class': 'x', …}: constants only.
ast::PropertyValue::Map Parser::property_map() {
  ast::PropertyValue::Map map;
  std::unordered_set<std::string> keys;
  // Cassandra's grammar takes any term here and refuses those that are no constants afterwards, so
  // the error names the term.
  const auto constant = [&](const ast::Term& term, std::string_view part) -> ast::Literal {
    const auto* literal = term.get_if<ast::Literal>();
    if (literal != nullptr && literal->kind != ast::Literal::Kind::kNull) return *literal;
    if (failed_) return {};
    std::string message = fmt::format("Invalid property {}: {}", part, ast::to_string(term));
    if (part == "value" && !map.empty()) {
      message += fmt::format(" for property: {}", ast::to_string(map.back().first));
    }
    if (term.get_if<ast::BindMarker>() != nullptr) {
      message += " (bind variables are not supported in DDL queries)";
    }
    fail(std::move(message));
    return {};
  };
  expect(TokenKind::kLeftBrace);
  if (accept(TokenKind::kRightBrace)) return map;
  do {
    const ast::Term key = term();
    expect(TokenKind::kColon);
    const ast::Term value = term();
    if (failed_) return map;
    // In two steps, so that an error about the value can name the key in front of it.
    map.emplace_back(constant(key, "name"), ast::Literal{});
    map.back().second = constant(value, "value");
    if (!failed_ && !keys.insert(map.back().first.text).second) {
      fail(fmt::format("Multiple definition for property {}", map.back().first.text));
    }
    check_count(map.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightBrace);
  return map;
}

// [IF EXISTS] name (ADD … | DROP … | RENAME … | ALTER … | WITH properties)
ast::AlterTable Parser::alter_table() {
  ast::AlterTable result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = table_name();
  if (accept(Keyword::kAdd)) {
    add_columns(result);
  } else if (is(Keyword::kDrop)) {
    advance();
    drop_columns(result);
  } else if (accept(Keyword::kRename)) {
    ast::RenameColumns action;
    action.if_exists = if_exists();
    action.renames = renames();
    result.action = std::move(action);
  } else if (is(Keyword::kAlter)) {
    alter_column(result);
  } else if (accept(Keyword::kWith)) {
    ast::TableOptions options;
    options.properties = properties();
    result.action = std::move(options);
  } else {
    fail_no_viable();
  }
  return result;
}

// [IF NOT EXISTS] (column | ( column, column … )). The words belong to the columns here, and not to
// the table, for which they stand before its name.
void Parser::add_columns(ast::AlterTable& alter) {
  ast::AddColumns action;
  action.if_not_exists = if_not_exists();
  if (accept(TokenKind::kLeftParenthesis)) {
    do {
      action.columns.push_back(column_definition());
      check_count(action.columns.size());
    } while (accept(TokenKind::kComma));
    expect(TokenKind::kRightParenthesis);
  } else {
    action.columns.push_back(column_definition());
  }
  alter.action = std::move(action);
}

// COMPACT STORAGE | [IF EXISTS] (column | ( columns )) [USING TIMESTAMP integer]
void Parser::drop_columns(ast::AlterTable& alter) {
  // DROP COMPACT STORAGE is no column of the name compact.
  if (accept(Keyword::kCompact, Keyword::kStorage)) {
    alter.action = ast::DropCompactStorage{};
    return;
  }
  ast::DropColumns action;
  action.if_exists = if_exists();
  if (is(TokenKind::kLeftParenthesis)) {
    action.columns = names_in_parentheses();
  } else {
    action.columns.push_back(name());
  }
  if (accept(Keyword::kUsing)) {
    expect(Keyword::kTimestamp);
    const ast::Position at = here();
    if (is(TokenKind::kInteger)) {
      action.timestamp = ast::Term{*accept_literal(), at};
    } else {
      expect(TokenKind::kInteger);
    }
  }
  alter.action = std::move(action);
}

// ALTER column TYPE type | ALTER [IF EXISTS] column (MASKED WITH … | DROP MASKED)
void Parser::alter_column(ast::AlterTable& alter) {
  const size_t from = index_;
  advance();
  const bool exists_clause = if_exists();
  ast::Identifier column = name();
  // ALTER c TYPE t has no IF EXISTS in Cassandra's grammar; ALTER c MASKED and DROP MASKED have.
  if (is(Keyword::kType) && !exists_clause) {
    advance();
    ast::AlterColumnType action;
    action.column = std::move(column);
    action.type = type();
    alter.action = std::move(action);
    return;
  }
  ast::MaskColumn action;
  action.if_exists = exists_clause;
  action.column = std::move(column);
  if (is(Keyword::kMasked)) {
    action.mask = column_mask();
  } else if (accept(Keyword::kDrop)) {
    expect(Keyword::kMasked);
  } else if (exists_clause) {
    fail_no_viable();
  } else {
    fail_no_viable(index_, from);
  }
  alter.action = std::move(action);
}

std::vector<std::pair<ast::Identifier, ast::Identifier>> Parser::renames() {
  std::vector<std::pair<ast::Identifier, ast::Identifier>> result;
  do {
    ast::Identifier old_name = name();
    expect(Keyword::kTo);
    result.emplace_back(std::move(old_name), name());
    check_count(result.size());
  } while (accept(Keyword::kAnd));
  return result;
}

ast::CreateType Parser::create_type() {
  ast::CreateType result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = user_type().name;
  const auto field = [&] {
    ast::Identifier field_name = name();
    result.fields.push_back(ast::FieldDefinition{std::move(field_name), type()});
    check_count(result.fields.size());
  };
  expect(TokenKind::kLeftParenthesis);
  field();
  while (accept(TokenKind::kComma)) {
    if (is(TokenKind::kComma) || is(TokenKind::kRightParenthesis)) continue;
    field();
  }
  expect(TokenKind::kRightParenthesis);
  return result;
}

ast::AlterType Parser::alter_type() {
  ast::AlterType result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = user_type().name;
  if (accept(Keyword::kAdd)) {
    ast::AddField action;
    action.if_not_exists = if_not_exists();
    action.field.name = name();
    action.field.type = type();
    result.action = std::move(action);
  } else if (accept(Keyword::kRename)) {
    ast::RenameFields action;
    action.if_exists = if_exists();
    action.renames = renames();
    result.action = std::move(action);
  } else if (accept(Keyword::kAlter)) {
    ast::AlterFieldType action;
    action.field.name = name();
    expect(Keyword::kType);
    action.field.type = type();
    result.action = std::move(action);
  } else {
    fail_no_viable();
  }
  return result;
}

}  // namespace tetrad::cql
