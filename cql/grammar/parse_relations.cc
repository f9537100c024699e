// SPDX-License-Identifier: Apache-2.0
// The relations of WHERE and the conditions of IF.
//
// BETWEEN, NOT IN and NOT CONTAINS are beyond Cassandra 5.0. Words that are no keywords there
// (between, expr, the change feed's function) are recognized by their place only, so columns may
// still have these names.
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

using ast::RelationOperator;

std::vector<ast::Relation> Parser::whole_where() {
  std::vector<ast::Relation> result = where_clause();
  expect(TokenKind::kEnd);
  return result;
}

// A trailing AND is an error of the relation that is missing.
std::vector<ast::Relation> Parser::where_clause() {
  std::vector<ast::Relation> relations;
  do {
    relations.push_back(relation());
    check_count(relations.size());
  } while (accept(Keyword::kAnd));
  return relations;
}

// The first tokens decide; a column called token or expr needs quotes before a parenthesis.
ast::Relation Parser::relation() {
  Level level(*this);
  ast::Relation result;
  result.position = here();
  if (is(Keyword::kToken)) {
    token_relation(result);
  } else if (is(TokenKind::kLeftParenthesis)) {
    // (a) = … and (a, b) = … are relations over tuples; any other parenthesis encloses a relation.
    if (names(peek(1)) && is_any({TokenKind::kComma, TokenKind::kRightParenthesis}, 2)) {
      tuple_relation(result);
    } else {
      const size_t parenthesis = index_;
      advance();
      if (is(TokenKind::kRightParenthesis)) fail_no_viable(index_, parenthesis);
      result = relation();
      expect(TokenKind::kRightParenthesis);
    }
  } else if (raw(peek()) == "expr" && is(TokenKind::kLeftParenthesis, 1) &&
             peek(1).offset == peek().offset + 4) {  // `expr(` is one word to Cassandra
    advance();
    advance();
    result.target = ast::Relation::Target::kCustomIndex;
    result.op = RelationOperator::kCustomIndex;
    result.index = ast::QualifiedName{std::nullopt, name()};
    expect(TokenKind::kComma);
    result.values.push_back(term());
    expect(TokenKind::kRightParenthesis);
  } else if (is_word("cosmos_changefeed_start_time") && is(TokenKind::kLeftParenthesis, 1)) {
    change_feed_relation(result);
  } else {
    column_relation(result);
  }
  return result;
}

// = != < <= > >=; unset: no comparison is here, and nothing is consumed.
std::optional<RelationOperator> Parser::accept_comparison() {
  RelationOperator op;
  switch (peek().kind) {
    case TokenKind::kEqual:
      op = RelationOperator::kEqual;
      break;
    case TokenKind::kNotEqual:
      op = RelationOperator::kNotEqual;
      break;
    case TokenKind::kLess:
      op = RelationOperator::kLess;
      break;
    case TokenKind::kLessOrEqual:
      op = RelationOperator::kLessOrEqual;
      break;
    case TokenKind::kGreater:
      op = RelationOperator::kGreater;
      break;
    case TokenKind::kGreaterOrEqual:
      op = RelationOperator::kGreaterOrEqual;
      break;
    default:
      return std::nullopt;
  }
  advance();
  return op;
}

// BETWEEN a AND b; the word is no keyword of Cassandra 5.0.
// The lexer gives an identifier, so the letters are compared here in any case.
bool Parser::accept_between(ast::Relation& relation) {
  constexpr std::string_view kWord = "between";
  const Token& token = peek();
  if (token.kind != TokenKind::kIdentifier || token.length != kWord.size()) return false;
  for (size_t i = 0; i < kWord.size(); ++i) {
    if ((raw(token)[i] | 0x20) != kWord[i]) return false;
  }
  advance();
  relation.op = RelationOperator::kBetween;
  relation.values.push_back(term());
  expect(Keyword::kAnd);
  relation.values.push_back(term());
  return true;
}

// What stands behind IN: a marker for the whole list, or the list.
void Parser::in_values(bool& in_marker, std::vector<ast::Term>& values) {
  if (is_bind_marker()) {
    in_marker = true;
    values.push_back(bind_marker());
    return;
  }
  if (!is(TokenKind::kLeftParenthesis)) {
    fail_no_viable(index_, index_ >= 2 ? index_ - 2 : 0);
    return;
  }
  advance();
  values = terms_until(TokenKind::kRightParenthesis);
}

// (a, b) [NOT] IN (marker | ( tuples or markers )) | (a, b) BETWEEN x AND y | (a, b) comparison
// (tuple | marker)
void Parser::tuple_relation(ast::Relation& relation) {
  relation.target = ast::Relation::Target::kTuple;
  relation.columns = names_in_parentheses();
  // NOT is consumed only before IN: otherwise the error names it.
  const bool negated = is(Keyword::kNot) && is(Keyword::kIn, 1);
  if (negated) advance();
  if (accept(Keyword::kIn)) {
    relation.op = negated ? RelationOperator::kNotIn : RelationOperator::kIn;
    if (is_bind_marker()) {
      in_values(relation.in_marker, relation.values);
      return;
    }
    expect(TokenKind::kLeftParenthesis);
    if (accept(TokenKind::kRightParenthesis)) return;
    const bool markers = is_bind_marker();
    // As Cassandra: (?, (1, 2)) is no list of tuples.
    do {  // all tuples or all markers
      if (markers) {
        if (!is_bind_marker()) fail_no_viable();
        relation.values.push_back(bind_marker());
      } else {
        if (!is(TokenKind::kLeftParenthesis)) expect(TokenKind::kLeftParenthesis);
        relation.values.push_back(parenthesis_term());
      }
      check_count(relation.values.size());
    } while (accept(TokenKind::kComma));
    expect(TokenKind::kRightParenthesis);
    return;
  }
  if (accept_between(relation)) return;
  const size_t at = index_;
  const auto op = accept_comparison();
  if (!op) {
    fail_no_viable();
    return;
  }
  relation.op = *op;
  if (is_bind_marker()) {
    relation.values.push_back(bind_marker());
  } else if (is(TokenKind::kLeftParenthesis)) {
    relation.values.push_back(parenthesis_term());
  } else {
    fail_no_viable(index_, at);
  }
}

// A comparison and its right side, and nothing else.
void Parser::compared_term(ast::Relation& relation) {
  const auto op = accept_comparison();
  if (!op) {
    fail_no_viable();
    return;
  }
  relation.op = *op;
  relation.values.push_back(term());
}

// token(a, b) (comparison term | BETWEEN term AND term)
void Parser::token_relation(ast::Relation& relation) {
  relation.target = ast::Relation::Target::kToken;
  advance();
  relation.columns = names_in_parentheses();
  if (accept_between(relation)) return;
  compared_term(relation);
}

// Only = has a meaning, which is not for the grammar to say.
void Parser::change_feed_relation(ast::Relation& relation) {
  relation.target = ast::Relation::Target::kChangeFeed;
  advance();
  advance();
  expect(TokenKind::kRightParenthesis);
  if (accept(Keyword::kIn)) {
    relation.op = RelationOperator::kIn;
    in_values(relation.in_marker, relation.values);
    return;
  }
  if (accept_between(relation)) return;
  compared_term(relation);
}

// One form after another, each by the first token behind the name.
void Parser::column_relation(ast::Relation& relation) {
  const size_t from = index_;
  relation.columns.push_back(name());
  if (accept(TokenKind::kLeftBracket)) {
    relation.target = ast::Relation::Target::kElement;
    relation.element = term();
    expect(TokenKind::kRightBracket);
    return compared_term(relation);
  }
  if (const auto op = accept_comparison()) {
    relation.op = *op;
    relation.values.push_back(term());
    return;
  }
  if (accept(Keyword::kIs)) {
    expect(Keyword::kNot);
    expect(Keyword::kNull);
    relation.op = RelationOperator::kIsNotNull;
    return;
  }
  if (accept(Keyword::kLike)) {
    relation.op = RelationOperator::kLike;
    relation.values.push_back(term());
    return;
  }
  const bool negated = is(Keyword::kNot) && is_any({Keyword::kIn, Keyword::kContains}, 1);
  if (negated) advance();
  if (accept(Keyword::kIn)) {
    relation.op = negated ? RelationOperator::kNotIn : RelationOperator::kIn;
    in_values(relation.in_marker, relation.values);
    return;
  }
  if (accept(Keyword::kContains)) {
    const bool key = accept(Keyword::kKey);
    relation.op = negated
                      ? (key ? RelationOperator::kNotContainsKey : RelationOperator::kNotContains)
                      : (key ? RelationOperator::kContainsKey : RelationOperator::kContains);
    relation.values.push_back(term());
    return;
  }
  if (accept_between(relation)) return;
  fail_no_viable(index_, from);
}

// Behind IF: EXISTS, or conditions joined by AND.
// A column may be called exists: what follows the word decides.
void Parser::condition_clause(bool& if_exists, std::vector<ast::Condition>& conditions) {
  if (is(Keyword::kExists) &&
      !is_any({TokenKind::kEqual, TokenKind::kNotEqual, TokenKind::kLess, TokenKind::kLessOrEqual,
               TokenKind::kGreater, TokenKind::kGreaterOrEqual, TokenKind::kLeftBracket,
               TokenKind::kDot},
              1) &&
      !is_any({Keyword::kIn, Keyword::kContains}, 1)) {
    if (!is_any({TokenKind::kEnd, TokenKind::kSemicolon, TokenKind::kError}, 1) &&
        !is_any({Keyword::kApply, Keyword::kInsert, Keyword::kUpdate, Keyword::kDelete}, 1)) {
      fail_no_viable(index_ + 1, index_);
    }
    if_exists = true;
    advance();
    return;
  }
  do {
    conditions.push_back(condition());
    check_count(conditions.size());
  } while (accept(Keyword::kAnd));
}

// name [[term] | .field] (comparison term | IN values | CONTAINS [KEY] term); CONTAINS of whole
// columns only.
ast::Condition Parser::condition() {
  ast::Condition result;
  result.column = name();
  if (accept(TokenKind::kLeftBracket)) {
    result.element = term();
    expect(TokenKind::kRightBracket);
  } else if (accept(TokenKind::kDot)) {
    result.field = name();
  }
  if (const auto op = accept_comparison()) {
    result.op = *op;
    result.values.push_back(term());
    return result;
  }
  if (accept(Keyword::kIn)) {
    result.op = RelationOperator::kIn;
    if (is_bind_marker() || is(TokenKind::kLeftParenthesis)) {
      in_values(result.in_marker, result.values);
    } else {
      fail_no_viable();
    }
    return result;
  }
  if (!result.element && !result.field && accept(Keyword::kContains)) {
    result.op =
        accept(Keyword::kKey) ? RelationOperator::kContainsKey : RelationOperator::kContains;
    result.values.push_back(term());
    return result;
  }
  fail_no_viable();
  return result;
}

}  // namespace tetrad::cql
