// SPDX-License-Identifier: Apache-2.0
// Types.
//
// Types are a tree of names here: whether a user type exists is not known yet. skip_type() looks
// ahead over a type without building it, to tell a cast from parentheses.
#include <charconv>

#include <fmt/format.h>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {
namespace {

// KeywordUse::T marks the words of Cassandra's native types (types/keyword.h).
bool names_native_type(const Token& token) {
  return token.kind == TokenKind::kKeyword && keyword_use(token.keyword) == KeywordUse::T;
}

// What may stand behind a type, wherever a type may stand.
// Keywords that begin what follows a column's, an argument's or a state's type.
bool follows_type(const Token& token) {
  switch (token.kind) {
    case TokenKind::kComma:
    case TokenKind::kRightParenthesis:
    case TokenKind::kGreater:
    case TokenKind::kSemicolon:
    case TokenKind::kEnd:
    case TokenKind::kError:
      return true;
    case TokenKind::kKeyword:
      switch (token.keyword) {
        case Keyword::kStatic:
        case Keyword::kMasked:
        case Keyword::kPrimary:
        case Keyword::kFinalfunc:
        case Keyword::kInitcond:
        case Keyword::kLanguage:
          return true;
        default:
          return false;
      }
    default:
      return false;
  }
}

}  // namespace

ast::CqlType Parser::type() {
  using Kind = ast::CqlType::Kind;
  size_t marks = 0;
  while (is(Keyword::kFrozen) && is(TokenKind::kLess, 1)) {  // no level: DESCRIBE marks every one
    advance();
    advance();
    if (++marks > static_cast<size_t>(limits_.depth_max)) {
      fail_too_deep();
      return {};
    }
  }
  ast::CqlType result = unmarked_type();
  if (marks == 0) return result;
  if (result.kind == Kind::kNative || result.kind == Kind::kCustom) {
    fail(fmt::format(
        "frozen<> is only allowed on collections, tuples, and user-defined types (got {})",
        result.kind == Kind::kNative ? keyword_text(result.native) : result.class_name));
  }
  // frozen<frozen<x>> is frozen<x>: Cassandra takes any number.
  result.frozen = true;
  for (; marks > 0; --marks) expect(TokenKind::kGreater);
  return result;
}

// A type without frozen<> around it.
ast::CqlType Parser::unmarked_type() {
  using Kind = ast::CqlType::Kind;
  Level level(*this);
  ast::CqlType result;
  result.position = here();
  if (is(TokenKind::kString)) {
    result.kind = Kind::kCustom;
    result.class_name = string_literal();
    return result;
  }
  if (is_any({Keyword::kList, Keyword::kSet, Keyword::kVector, Keyword::kMap, Keyword::kTuple}) &&
      is(TokenKind::kLess, 1)) {
    return collection_type(std::move(result));
  }
  // A keyspace may be called like a native type.
  if (names_native_type(peek()) && !is(TokenKind::kDot, 1)) {
    const size_t at = index_;
    if (!follows_type(peek(1))) {
      fail_no_viable(at + 1, at);
    } else {
      peek(2);  // as far as Cassandra looks here: error texts show it
    }
    return native_type();
  }
  // `set` without < cannot be a user type's name as list or map can: it is reserved, and the error
  // says what is missing.
  if (is(Keyword::kSet)) {
    advance();
    expect(TokenKind::kLess);
    return result;
  }
  return user_type();
}

// list<…>, set<…>, map<…>, tuple<…> or vector<…>, from its keyword on. `result` has the position.
ast::CqlType Parser::collection_type(ast::CqlType result) {
  using Kind = ast::CqlType::Kind;
  const Keyword keyword = peek().keyword;
  advance();
  advance();
  result.parameters.push_back(type());
  switch (keyword) {
    case Keyword::kList:
      result.kind = Kind::kList;
      break;
    case Keyword::kSet:
      result.kind = Kind::kSet;
      break;
    case Keyword::kMap:
      result.kind = Kind::kMap;
      expect(TokenKind::kComma);
      result.parameters.push_back(type());
      break;
    case Keyword::kTuple:
      result.kind = Kind::kTuple;
      while (accept(TokenKind::kComma)) {
        result.parameters.push_back(type());
        check_count(result.parameters.size());
      }
      break;
    default:
      result.kind = Kind::kVector;
      expect(TokenKind::kComma);
      result.dimension = vector_dimension();
  }
  expect(TokenKind::kGreater);
  return result;
}

// Any integer that fits 32 bits; whether a vector may have so many elements is decided when the
// type is made.
int32_t Parser::vector_dimension() {
  int32_t dimension = 0;
  const std::string_view digits = raw(peek());
  if (!expect(TokenKind::kInteger)) return dimension;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), dimension);
  if (error != std::errc()) {  // in Cassandra's own words
    fail(fmt::format(
        "Failed parsing statement: [{}] reason: NumberFormatException For input string: \"{}\"",
        text_.substr(0, 1000), digits.substr(0, 1000)));
  }
  return dimension;
}

// A native type alone, as CAST takes it.
ast::CqlType Parser::native_type() {
  ast::CqlType result;
  result.position = here();
  if (!names_native_type(peek())) {
    fail_no_viable();
    return result;
  }
  result.native = peek().keyword;
  advance();
  return result;
}

// [keyspace .] name
ast::CqlType Parser::user_type() {
  ast::CqlType result;
  result.kind = ast::CqlType::Kind::kUser;
  result.position = here();
  if (names(peek()) && is(TokenKind::kDot, 1)) {
    result.name.keyspace = name();
    expect(TokenKind::kDot);
  }
  const Token token = peek();
  if (!names_type(token)) {
    if (names(token)) {  // ttl, count …: only a keyspace may be called so
      advance();
      expect(TokenKind::kDot);
    } else {
      fail_no_viable();
    }
    return result;
  }
  result.name.name = take_identifier();
  if (token.kind == TokenKind::kIdentifier) {
    // Cassandra's list; a quoted name may be any.
    constexpr std::string_view kReserved[] = {"byte",     "complex", "enum",     "date",
                                              "interval", "macaddr", "bitstring"};
    for (std::string_view reserved : kReserved) {
      if (raw(token) == reserved)
        fail(fmt::format("Invalid (reserved) user type name {}", reserved));
    }
  }
  return result;
}

std::vector<ast::CqlType> Parser::types_in_parentheses() {
  std::vector<ast::CqlType> result;
  expect(TokenKind::kLeftParenthesis);
  if (accept(TokenKind::kRightParenthesis)) return result;
  do {
    result.push_back(type());
    check_count(result.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightParenthesis);
  return result;
}

// A look ahead that consumes and reports nothing: parenthesis_term() asks with it whether what
// stands in parentheses could be a type. 0 also where the nesting is too deep; the parser then
// reads a term and reports that.
size_t Parser::skip_type(size_t index, int32_t depth) const {
  if (index + 1 >= tokens_.size() || depth > limits_.depth_max) return 0;
  const Token& token = tokens_[index];
  const TokenKind next = tokens_[index + 1].kind;
  if (token.kind == TokenKind::kString) return index + 1;
  if (next == TokenKind::kLess && token.kind == TokenKind::kKeyword) {
    switch (token.keyword) {
      case Keyword::kList:
      case Keyword::kSet:
      case Keyword::kVector:
      case Keyword::kMap:
      case Keyword::kTuple:
      case Keyword::kFrozen:
        break;
      default:
        return 0;
    }
    size_t at = index + 2;
    for (;;) {
      // An integer is the dimension of a vector.
      at = tokens_[at].kind == TokenKind::kInteger ? at + 1 : skip_type(at, depth + 1);
      if (at == 0 || at >= tokens_.size()) return 0;
      if (tokens_[at].kind == TokenKind::kGreater) return at + 1;
      if (tokens_[at].kind != TokenKind::kComma) return 0;
      if (++at >= tokens_.size()) return 0;
    }
  }
  if (names(token) && next == TokenKind::kDot) {
    return index + 2 < tokens_.size() && names_type(tokens_[index + 2]) ? index + 3 : 0;
  }
  return names_type(token) || names_native_type(token) ? index + 1 : 0;
}

}  // namespace tetrad::cql
