// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE, BATCH, TRUNCATE, USE.
//
// start_ is the position of the statement; inside a batch each part sets its own.
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

ast::Attributes Parser::attributes() {
  ast::Attributes result;
  if (!accept(Keyword::kUsing)) return result;
  do {  // the last one of a kind counts, as in Cassandra
    if (accept(Keyword::kTimestamp)) {
      result.timestamp = integer_or_marker();
    } else if (accept(Keyword::kTtl)) {
      result.ttl = integer_or_marker();
    } else if (is_timeout()) {
      result.timeout = timeout();
    } else {
      fail_no_viable();
    }
  } while (accept(Keyword::kAnd));
  return result;
}

// INSERT INTO table ( names ) VALUES ( terms ) [IF NOT EXISTS] [USING …]
//  INSERT INTO table JSON value [DEFAULT (NULL | UNSET)] [IF NOT EXISTS] [USING …]
ast::Modification Parser::insert() {
  const ast::Position position = start_;
  expect(Keyword::kInsert);
  expect(Keyword::kInto);
  ast::QualifiedName table = table_name();
  if (accept(Keyword::kJson)) {
    ast::InsertJson result;
    result.position = position;
    result.table = std::move(table);
    const ast::Position at = here();
    if (is(TokenKind::kString)) {
      result.value = ast::Term{*accept_literal(), at};
    } else if (is_bind_marker()) {
      result.value = bind_marker();
    } else {
      fail_no_viable();
    }
    // What becomes of columns that the object does not name: DEFAULT NULL, also when nothing is
    // written, or DEFAULT UNSET.
    if (accept(Keyword::kDefault)) {
      if (accept(Keyword::kUnset)) {
        result.default_unset = true;
      } else if (!accept(Keyword::kNull)) {
        fail_no_viable();
      }
    }
    result.if_not_exists = if_not_exists();
    result.attributes = attributes();
    return result;
  }
  ast::Insert result;
  result.position = position;
  result.table = std::move(table);
  if (!is(TokenKind::kLeftParenthesis)) fail_no_viable();
  result.columns = names_in_parentheses();
  expect(Keyword::kValues);
  expect(TokenKind::kLeftParenthesis);
  // Whether there are as many values as columns is checked when the statement is prepared, with
  // Cassandra's text.
  result.values.reserve(result.columns.size());
  do {
    result.values.push_back(term());
    check_count(result.values.size());
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kRightParenthesis);
  result.if_not_exists = if_not_exists();
  result.attributes = attributes();
  return result;
}

// UPDATE table [USING …] SET assignment, … WHERE relations [IF conditions]
ast::Update Parser::update() {
  ast::Update result;
  result.position = start_;
  expect(Keyword::kUpdate);
  result.table = table_name();
  result.attributes = attributes();
  expect(Keyword::kSet);
  do {
    result.assignments.push_back(assignment());
    check_count(result.assignments.size());
  } while (accept(TokenKind::kComma));
  if (!failed_) check_assignments(result.assignments);
  expect(Keyword::kWhere);
  result.where = where_clause();
  if (accept(Keyword::kIf)) condition_clause(result.if_exists, result.conditions);
  return result;
}

// The token behind the name decides which of the five forms it is.
ast::Assignment Parser::assignment() {
  using Kind = ast::Assignment::Kind;
  ast::Assignment result;
  result.column = name();
  if (accept(TokenKind::kEqual)) {
    assignment_value(result);
  } else if (is(TokenKind::kPlusEqual) || is(TokenKind::kMinusEqual)) {
    // `c += x` is `c = c + x`; there is no `-=` that prepends.
    result.kind = is(TokenKind::kPlusEqual) ? Kind::kAdd : Kind::kSubtract;
    advance();
    result.value = term();
  } else if (accept(TokenKind::kLeftBracket)) {
    result.kind = Kind::kElement;
    result.key = term();
    expect(TokenKind::kRightBracket);
    expect(TokenKind::kEqual);
    result.value = term();
  } else if (accept(TokenKind::kDot)) {
    result.kind = Kind::kField;
    result.field = name();
    expect(TokenKind::kEqual);
    result.value = term();
  } else {
    fail_no_viable();
  }
  return result;
}

// Behind `column =`: value | column ± value | value + column.
// `c = c - 1` may be read by the lexer as the tokens c, c and -1, since a sign belongs to the
// number behind it.
void Parser::assignment_value(ast::Assignment& assignment) {
  using Kind = ast::Assignment::Kind;
  // A name with a sign or a number behind it is the column itself; whether it is the same column is
  // checked only after the value was read, so an error in the value comes first.
  if (names(peek()) && !starts_function_call() &&
      (is_any({TokenKind::kPlus, TokenKind::kMinus, TokenKind::kInteger}, 1))) {
    const ast::Identifier column = name();
    const bool same = column.text == assignment.column.text;
    if (is(TokenKind::kInteger)) {  // v -1 and v 1: the sign belongs to the number
      const char sign = raw(peek())[0] == '-' ? '-' : '+';
      const ast::Position at = here();
      assignment.kind = Kind::kAdd;
      assignment.value = ast::Term{*accept_literal(), at};
      if (!same) {
        fail(fmt::format("Only expressions of the form X = X {} <value> are supported.", sign));
      }
      return;
    }
    const char sign = is(TokenKind::kPlus) ? '+' : '-';
    assignment.kind = sign == '+' ? Kind::kAdd : Kind::kSubtract;
    advance();
    assignment.value = term();
    if (!same) {
      fail(fmt::format("Only expressions of the form X = X {}<value> are supported.", sign));
    }
    return;
  }
  // term(true) stops before `+ c`, which makes it a prepending.
  assignment.value = term(true);
  if (accept(TokenKind::kPlus)) {
    assignment.kind = Kind::kPrepend;
    if (name().text != assignment.column.text) {
      fail("Only expressions of the form X = <value> + X are supported.");
    }
  }
}

// A column is either set as a whole, once, or changed in parts, each field once.
void Parser::check_assignments(const std::vector<ast::Assignment>& assignments) {
  using Kind = ast::Assignment::Kind;
  if (assignments.size() < 2) return;
  // What was assigned to a column so far.
  struct Seen {
    size_t count = 0;
    bool whole = false;
    std::set<std::string_view> fields;
  };
  std::unordered_map<std::string_view, Seen> columns;
  for (const ast::Assignment& assignment : assignments) {
    Seen& seen = columns[assignment.column.text];
    ++seen.count;
    seen.whole |= assignment.kind == Kind::kSet;
    const bool twice =
        assignment.kind == Kind::kField && !seen.fields.insert(assignment.field->text).second;
    if (twice || (seen.whole && seen.count > 1)) {
      fail(fmt::format("Multiple incompatible setting of column {}", assignment.column.text));
      return;
    }
  }
}

// DELETE [column | column[term] | column.field, …] FROM table [USING TIMESTAMP t] WHERE relations
// [IF conditions]
ast::Delete Parser::delete_statement() {
  ast::Delete result;
  result.position = start_;
  expect(Keyword::kDelete);
  if (names(peek())) {
    do {
      ast::Deletion deletion;
      const size_t from = index_;
      deletion.column = name();
      if (accept(TokenKind::kLeftBracket)) {
        deletion.element = term();
        expect(TokenKind::kRightBracket);
      } else if (accept(TokenKind::kDot)) {
        deletion.field = name();
      } else if (!is(TokenKind::kComma) && !is(Keyword::kFrom)) {
        fail_no_viable(index_, from);
      }
      result.deletions.push_back(std::move(deletion));
      check_count(result.deletions.size());
    } while (accept(TokenKind::kComma));
  }
  expect(Keyword::kFrom);
  result.table = table_name();
  // Of Cassandra's grammar only TIMESTAMP; TIMEOUT may stand before or behind it. A TTL is a syntax
  // error.
  if (accept(Keyword::kUsing)) {
    if (is_timeout()) {
      result.attributes.timeout = timeout();
      if (is(Keyword::kAnd)) {
        advance();
        expect(Keyword::kTimestamp);
        result.attributes.timestamp = integer_or_marker();
      }
    } else {
      expect(Keyword::kTimestamp);
      result.attributes.timestamp = integer_or_marker();
      if (is(Keyword::kAnd) && is_timeout(1)) {
        advance();
        result.attributes.timeout = timeout();
      }
    }
  }
  expect(Keyword::kWhere);
  result.where = where_clause();
  if (accept(Keyword::kIf)) condition_clause(result.if_exists, result.conditions);
  return result;
}

// The header has the rule. `start_` moves with each statement, so result.position is taken first.
ast::Batch Parser::batch() {
  ast::Batch result;
  result.position = start_;
  expect(Keyword::kBegin);
  if (accept(Keyword::kUnlogged)) {
    result.type = ast::Batch::Type::kUnlogged;
  } else if (accept(Keyword::kCounter)) {
    result.type = ast::Batch::Type::kCounter;
  }
  expect(Keyword::kBatch);
  result.attributes = attributes();
  // No other statement may stand in a batch; the first word that begins none ends the list.
  while (is_any({Keyword::kInsert, Keyword::kUpdate, Keyword::kDelete})) {
    // Errors of a statement in a batch count from that statement.
    start_ = here();
    if (is(Keyword::kInsert)) {
      result.statements.push_back(insert());
    } else if (is(Keyword::kUpdate)) {
      result.statements.emplace_back(update());
    } else {
      result.statements.emplace_back(delete_statement());
    }
    check_count(result.statements.size());
    // One between two statements, or none.
    accept(TokenKind::kSemicolon);
  }
  expect(Keyword::kApply);
  expect(Keyword::kBatch);
  return result;
}

ast::Truncate Parser::truncate() {
  expect(Keyword::kTruncate);
  if (!accept(Keyword::kTable)) accept(Keyword::kColumnfamily);
  return ast::Truncate{start_, table_name()};
}

ast::Use Parser::use() {
  expect(Keyword::kUse);
  return ast::Use{start_, keyspace_name()};
}

}  // namespace tetrad::cql
