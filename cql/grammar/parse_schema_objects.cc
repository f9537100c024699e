// SPDX-License-Identifier: Apache-2.0
// Indexes, materialized views, functions, aggregates, triggers.
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

ast::CreateIndex Parser::create_index(bool custom) {
  ast::CreateIndex result;
  result.position = start_;
  result.custom = custom;
  result.if_not_exists = if_not_exists();
  if (names(peek())) result.name = ast::QualifiedName{std::nullopt, name()};
  expect(Keyword::kOn);
  result.table = table_name();
  expect(TokenKind::kLeftParenthesis);
  if (is(TokenKind::kLeftParenthesis)) {
    // An index local to each partition: ((partition key), column).
    result.local_partition_key = names_in_parentheses();
    expect(TokenKind::kComma);
    result.targets.push_back(index_target());
  } else if (!is(TokenKind::kRightParenthesis)) {
    do {
      result.targets.push_back(index_target());
      check_count(result.targets.size());
    } while (accept(TokenKind::kComma));
  }
  expect(TokenKind::kRightParenthesis);
  if (accept(Keyword::kUsing)) result.using_class = string_literal();
  if (accept(Keyword::kWith)) result.properties = properties();
  return result;
}

// name | (KEYS | VALUES | ENTRIES | FULL) ( name )
ast::IndexTarget Parser::index_target() {
  using Kind = ast::IndexTarget::Kind;
  ast::IndexTarget result;
  const auto kind = [&]() -> std::optional<Kind> {
    switch (peek().keyword) {
      case Keyword::kKeys:
        return Kind::kKeys;
      case Keyword::kValues:
        return Kind::kValues;
      case Keyword::kEntries:
        return Kind::kEntries;
      case Keyword::kFull:
        return Kind::kFull;
      default:
        return std::nullopt;
    }
  }();
  // keys and values may be columns, entries and full may not.
  if (kind && (is(TokenKind::kLeftParenthesis, 1) || !names(peek()))) {
    result.kind = *kind;
    advance();
    expect(TokenKind::kLeftParenthesis);
    result.column = name();
    expect(TokenKind::kRightParenthesis);
    return result;
  }
  if (!names(peek())) {
    expect(TokenKind::kRightParenthesis);
    return result;
  }
  result.column = name();
  return result;
}

// A view's SELECT has no clause but WHERE, and its PRIMARY KEY stands outside of any column list.
ast::CreateView Parser::create_view() {
  ast::CreateView result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = table_name();
  expect(Keyword::kAs);
  expect(Keyword::kSelect);
  result.items = select_items();
  expect(Keyword::kFrom);
  result.from = table_name();
  if (accept(Keyword::kWhere)) result.where = where_clause();
  result.primary_keys.push_back(primary_key());
  if (accept(Keyword::kWith)) result.options = table_options();
  return result;
}

// [IF EXISTS] name WITH properties
ast::AlterView Parser::alter_view() {
  ast::AlterView result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = table_name();
  expect(Keyword::kWith);
  result.options.properties = properties();
  return result;
}

// [IF NOT EXISTS] name ( [name type, …] ) (CALLED | RETURNS NULL) ON NULL INPUT RETURNS type
// LANGUAGE name AS 'body'
ast::CreateFunction Parser::create_function(bool or_replace) {
  ast::CreateFunction result;
  result.position = start_;
  result.or_replace = or_replace;
  result.if_not_exists = if_not_exists();
  result.name = function_name();
  expect(TokenKind::kLeftParenthesis);
  if (!accept(TokenKind::kRightParenthesis)) {
    do {
      ast::Identifier parameter = name();
      result.parameters.push_back(ast::FunctionParameter{std::move(parameter), type()});
      check_count(result.parameters.size());
    } while (accept(TokenKind::kComma));
    expect(TokenKind::kRightParenthesis);
  }
  // RETURNS NULL ON NULL INPUT | CALLED ON NULL INPUT
  if (accept(Keyword::kReturns)) {
    expect(Keyword::kNull);
  } else if (accept(Keyword::kCalled)) {
    result.called_on_null_input = true;
  } else {
    fail_no_viable();
  }
  expect(Keyword::kOn);
  expect(Keyword::kNull);
  expect(Keyword::kInput);
  expect(Keyword::kReturns);
  result.returns = type();
  expect(Keyword::kLanguage);
  // A keyword or a quoted name is no language.
  if (!is(TokenKind::kIdentifier)) expect(TokenKind::kIdentifier);
  result.language = take_identifier().text;
  expect(Keyword::kAs);
  result.body = string_literal();
  return result;
}

// [IF NOT EXISTS] name ( [types] ) SFUNC f STYPE type [FINALFUNC f] [INITCOND term]
ast::CreateAggregate Parser::create_aggregate(bool or_replace) {
  ast::CreateAggregate result;
  result.position = start_;
  result.or_replace = or_replace;
  result.if_not_exists = if_not_exists();
  // Without a keyspace: SFUNC and FINALFUNC are of the aggregate's own.
  const auto plain_function_name = [&]() -> ast::Identifier {
    if (names_function(peek())) return take_identifier();
    fail_no_viable();
    return {};
  };
  result.name = function_name();
  result.parameters = types_in_parentheses();
  expect(Keyword::kSfunc);
  result.state_function = plain_function_name();
  expect(Keyword::kStype);
  result.state_type = type();
  if (accept(Keyword::kFinalfunc)) result.final_function = plain_function_name();
  if (accept(Keyword::kInitcond)) result.initial_condition = term();
  return result;
}

// [IF NOT EXISTS] name ON table USING 'class'
ast::CreateTrigger Parser::create_trigger() {
  ast::CreateTrigger result;
  result.position = start_;
  result.if_not_exists = if_not_exists();
  result.name = name();
  expect(Keyword::kOn);
  result.table = table_name();
  expect(Keyword::kUsing);
  result.class_name = string_literal();
  return result;
}

// [IF EXISTS] name ON table
ast::DropTrigger Parser::drop_trigger() {
  ast::DropTrigger result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = name();
  expect(Keyword::kOn);
  result.table = table_name();
  return result;
}

}  // namespace tetrad::cql
