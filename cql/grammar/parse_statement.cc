// SPDX-License-Identifier: Apache-2.0
// Which statement it is.
// The first words choose the rule. A new statement gets a case here, a struct in ast_*.h, a rule in
// the parse_*.cc of its theme, a text in ast_print.cc and a preparation; CONTRIBUTING.md lists the
// files. Returning ast::Use{} after an error only gives the caller a value: a failed parse is never
// used.
#include "cql/grammar/parser_core.h"

namespace tetrad::cql {

ast::Statement Parser::whole_statement() {
  ast::Statement result = statement();
  while (accept(TokenKind::kSemicolon)) {
  }
  expect(TokenKind::kEnd);
  return result;
}

// For texts that are types and nothing else.
ast::CqlType Parser::whole_type() {
  ast::CqlType result = type();
  expect(TokenKind::kEnd);
  return result;
}

// Each case consumes its own words. The default answers a tree that nobody uses: the parser has
// failed.
ast::Statement Parser::statement() {
  start_ = here();
  const Keyword keyword = peek().keyword;
  switch (keyword) {
    case Keyword::kSelect:
      return select();
    case Keyword::kInsert:
      return std::visit([](auto&& s) { return ast::Statement(std::move(s)); }, insert());
    case Keyword::kUpdate:
      return update();
    case Keyword::kDelete:
      return delete_statement();
    // BEGIN opens a batch only: there are no transactions.
    case Keyword::kBegin:
      return batch();
    case Keyword::kTruncate:
      return truncate();
    case Keyword::kUse:
      return use();
    case Keyword::kCreate:
      return create_statement();
    case Keyword::kAlter:
      return alter_statement();
    case Keyword::kDrop:
      return drop_statement();
    case Keyword::kGrant:
      return grant();
    case Keyword::kRevoke:
      return revoke();
    case Keyword::kList:
      return list();
    case Keyword::kAdd:
      return add_identity();
    // DESC is DESCRIBE here and a direction elsewhere.
    case Keyword::kDescribe:
    case Keyword::kDesc:
      return describe();
    default:
      // No keyword of Cassandra: as a name it stays free.
      if (is_word("explain")) {
        advance();
        if (is(Keyword::kSelect)) return ast::Explain{select()};
        fail_at(index_, "EXPLAIN takes a SELECT");
        return ast::Use{};
      }
      fail_no_viable();
      return ast::Use{};
  }
}

// CREATE is the current token. Only OR REPLACE needs a look at more than the next one.
ast::Statement Parser::create_statement() {
  const size_t from = index_;
  advance();
  const Keyword keyword = peek().keyword;
  switch (keyword) {
    case Keyword::kKeyspace:
      advance();
      return create_keyspace();
    case Keyword::kTable:
    case Keyword::kColumnfamily:
      advance();
      return create_table();
    case Keyword::kType:
      advance();
      return create_type();
    case Keyword::kIndex:
      advance();
      return create_index(false);
    case Keyword::kCustom:
      advance();
      expect(Keyword::kIndex);
      return create_index(true);
    case Keyword::kMaterialized:
      advance();
      expect(Keyword::kView);
      return create_view();
    case Keyword::kFunction:
      advance();
      return create_function(false);
    case Keyword::kAggregate:
      advance();
      return create_aggregate(false);
    case Keyword::kOr:
      if (is(Keyword::kReplace, 1) && is(Keyword::kFunction, 2)) {
        for (int i = 0; i < 3; ++i) advance();
        return create_function(true);
      }
      if (is(Keyword::kReplace, 1) && is(Keyword::kAggregate, 2)) {
        for (int i = 0; i < 3; ++i) advance();
        return create_aggregate(true);
      }
      // At the first word that does not fit, with CREATE as the beginning of the input.
      fail_no_viable(is(Keyword::kReplace, 1) ? index_ + 2 : index_ + 1, from);
      return ast::Use{};
    case Keyword::kTrigger:
      advance();
      return create_trigger();
    case Keyword::kRole:
      advance();
      return create_role();
    case Keyword::kUser:
      advance();
      return create_user();
    default:
      fail_no_viable(index_, from);
      return ast::Use{};
  }
}

// ALTER is the current token.
ast::Statement Parser::alter_statement() {
  const size_t from = index_;
  advance();
  const Keyword keyword = peek().keyword;
  switch (keyword) {
    case Keyword::kKeyspace:
      advance();
      return alter_keyspace();
    case Keyword::kTable:
    case Keyword::kColumnfamily:
      advance();
      return alter_table();
    case Keyword::kType:
      advance();
      return alter_type();
    case Keyword::kMaterialized:
      advance();
      expect(Keyword::kView);
      return alter_view();
    case Keyword::kRole:
      advance();
      return alter_role();
    case Keyword::kUser:
      advance();
      return alter_user();
    default:
      fail_no_viable(index_, from);
      return ast::Use{};
  }
}

// [IF EXISTS] name [( types )], for functions and for aggregates.
template <class Drop>
Drop Parser::drop_function() {
  Drop result;
  result.position = start_;
  result.if_exists = if_exists();
  result.name = function_name();
  if (is(TokenKind::kLeftParenthesis)) result.parameters = types_in_parentheses();
  return result;
}

// DROP is the current token. `from` is its index: what fits no object is reported as input that
// began there.
ast::Statement Parser::drop_statement() {
  const size_t from = index_;
  advance();
  const Keyword keyword = peek().keyword;
  // A statement of position, IF EXISTS and a name.
  const auto simple = [&](auto statement, auto read_name) -> ast::Statement {
    advance();
    statement.position = start_;
    statement.if_exists = if_exists();
    statement.name = read_name();
    return statement;
  };
  const auto table = [&] { return table_name(); };
  switch (keyword) {
    case Keyword::kKeyspace:
      return simple(ast::DropKeyspace{}, [&] { return keyspace_name(); });
    case Keyword::kTable:
    case Keyword::kColumnfamily:
      return simple(ast::DropTable{}, table);
    case Keyword::kType:
      return simple(ast::DropType{}, [&] { return user_type().name; });
    case Keyword::kIndex:
      return simple(ast::DropIndex{}, [&] { return qualified_name("index"); });
    case Keyword::kMaterialized:
      advance();
      if (!is(Keyword::kView)) expect(Keyword::kView);
      return simple(ast::DropView{}, table);
    case Keyword::kFunction:
      advance();
      return drop_function<ast::DropFunction>();
    case Keyword::kAggregate:
      advance();
      return drop_function<ast::DropAggregate>();
    case Keyword::kTrigger:
      advance();
      return drop_trigger();
    case Keyword::kRole:
      return simple(ast::DropRole{}, [&] { return role_name(); });
    case Keyword::kUser: {
      ast::DropRole drop;
      drop.is_user_statement = true;
      return simple(std::move(drop), [&] { return user_name(); });
    }
    case Keyword::kIdentity: {
      ast::DropIdentity drop;
      drop.position = start_;
      advance();
      drop.if_exists = if_exists();
      drop.identity = identity();
      return drop;
    }
    default:
      fail_no_viable(index_, from);
      return ast::Use{};
  }
}

}  // namespace tetrad::cql
