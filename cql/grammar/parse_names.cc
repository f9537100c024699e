// SPDX-License-Identifier: Apache-2.0
// Names of all kinds, and the clauses IF [NOT] EXISTS.
#include <fmt/format.h>

#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

bool Parser::names(const Token& token) {
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kQuotedName) return true;
  if (token.kind != TokenKind::kKeyword) return false;
  const KeywordUse use = keyword_use(token.keyword);
  return use != KeywordUse::R && use != KeywordUse::F;
}

// Each word has one KeywordUse (types/keyword.h), after the rules of Cassandra's grammar: as a
// function's name more words may stand than as a column's, since a parenthesis follows.
bool Parser::names_function(const Token& token) {
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kQuotedName) return true;
  if (token.kind != TokenKind::kKeyword) return false;
  const KeywordUse use = keyword_use(token.keyword);
  return use == KeywordUse::T || use == KeywordUse::B || use == KeywordUse::C ||
         use == KeywordUse::F;
}

// Fewer words than for a function: native types are no user types, and reserved words are none.
bool Parser::names_type(const Token& token) {
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kQuotedName) return true;
  if (token.kind != TokenKind::kKeyword) return false;
  const KeywordUse use = keyword_use(token.keyword);
  return use == KeywordUse::B || use == KeywordUse::K;
}

// Lower case is of ASCII only: other letters cannot stand in an unquoted name.
ast::Identifier Parser::take_identifier() {
  const Token& token = peek();
  ast::Identifier identifier{value(token), token.kind == TokenKind::kQuotedName,
                             position_of(token)};
  if (!identifier.quoted) {
    for (char& c : identifier.text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    }
  }
  advance();
  return identifier;
}

ast::Identifier Parser::name() {
  if (names(peek())) return take_identifier();
  fail_no_viable();
  return {};
}

ast::Identifier Parser::keyspace_name() {
  if (is(TokenKind::kQuestionMark)) fail("Bind variables cannot be used for keyspace names");
  return name();
}

// `what` names the kind in the refusal of bind markers.
ast::QualifiedName Parser::qualified_name(std::string_view what) {
  ast::QualifiedName result;
  const auto refuse_marker = [&](std::string_view kind) {
    if (is(TokenKind::kQuestionMark)) {
      fail(fmt::format("Bind variables cannot be used for {} names", kind));
    }
  };
  if ((names(peek()) || is(TokenKind::kQuestionMark)) && is(TokenKind::kDot, 1)) {
    refuse_marker("keyspace");
    result.keyspace = name();
    expect(TokenKind::kDot);
  }
  refuse_marker(what);
  result.name = name();
  return result;
}

// f( or ks.f( ; the parenthesis decides.
bool Parser::starts_function_call(size_t ahead) {
  if (names_function(peek(ahead)) && is(TokenKind::kLeftParenthesis, ahead + 1)) return true;
  return names(peek(ahead)) && is(TokenKind::kDot, ahead + 1) && names_function(peek(ahead + 2)) &&
         is(TokenKind::kLeftParenthesis, ahead + 3);
}

// starts_function_call() has looked before, where it matters.
ast::FunctionName Parser::function_name() {
  ast::FunctionName result;
  if (is(TokenKind::kDot, 1)) {
    result.keyspace = keyspace_name();
    expect(TokenKind::kDot);
  }
  if (names_function(peek())) {
    result.name = take_identifier();
  } else {
    fail_no_viable();
  }
  return result;
}

// A copy of the token, because expect() moves on and a failure replaces the last token.
std::string Parser::string_literal() {
  const Token token = peek();
  if (!expect(TokenKind::kString)) return {};
  return value(token);
}

std::vector<ast::Identifier> Parser::names_in_parentheses() {
  std::vector<ast::Identifier> result;
  expect(TokenKind::kLeftParenthesis);
  do {
    result.push_back(name());
    check_count(result.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightParenthesis);
  return result;
}

// A false result may also be a failure; then nothing is accepted any more.
bool Parser::if_exists() {
  if (!accept(Keyword::kIf)) return false;
  return expect(Keyword::kExists);
}

bool Parser::if_not_exists() {
  if (!accept(Keyword::kIf)) return false;
  return expect(Keyword::kNot) && expect(Keyword::kExists);
}

}  // namespace tetrad::cql
