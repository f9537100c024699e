// SPDX-License-Identifier: Apache-2.0
// Select lists: selectors and their aliases.
//
// Selectors and terms have grammars of their own in Cassandra, so they have here: a selector may be
// a column, a term may not. `*` is an empty list of items.
#include "cql/grammar/parse_collections.h"

namespace tetrad::cql {

std::vector<ast::SelectItem> Parser::select_items() {
  std::vector<ast::SelectItem> items;
  if (accept(TokenKind::kStar)) return items;
  do {
    ast::SelectItem item{selector(), std::nullopt};
    if (accept(Keyword::kAs)) item.alias = name();
    items.push_back(std::move(item));
    check_count(items.size());
  } while (accept(TokenKind::kComma));
  return items;
}

// The rules mirror those of terms (parse_terms.cc), with differences of Cassandra's grammar: signs
// may be repeated, and what may follow is checked behind bare columns only.
ast::Selector Parser::selector() {
  Level level(*this);
  ast::Selector left = selector_product();
  while (is(TokenKind::kPlus) || is(TokenKind::kMinus)) {
    const auto op =
        is(TokenKind::kPlus) ? ast::ArithmeticOperator::kAdd : ast::ArithmeticOperator::kSubtract;
    const int32_t height = height_;
    advance();
    ast::Selector right = selector_product();
    set_height(std::max(height, height_) + 1);
    const ast::Position position = left.position;
    left = ast::Selector{ast::ArithmeticSelector{op, std::move(left), std::move(right)}, position};
  }
  return left;
}

// As Parser::product(), of selectors.
ast::Selector Parser::selector_product() {
  ast::Selector left = selector_factor();
  while (is_any({TokenKind::kStar, TokenKind::kSlash, TokenKind::kPercent})) {
    const auto op = is(TokenKind::kStar)    ? ast::ArithmeticOperator::kMultiply
                    : is(TokenKind::kSlash) ? ast::ArithmeticOperator::kDivide
                                            : ast::ArithmeticOperator::kModulo;
    const int32_t height = height_;
    advance();
    ast::Selector right = selector_factor();
    set_height(std::max(height, height_) + 1);
    const ast::Position position = left.position;
    left = ast::Selector{ast::ArithmeticSelector{op, std::move(left), std::move(right)}, position};
  }
  return left;
}

// Several signs nest, so each is a level.
ast::Selector Parser::selector_factor() {
  Level level(*this);
  const ast::Position position = here();
  if (!accept(TokenKind::kMinus)) return selector_with_modifiers();
  ast::Selector argument = selector_factor();
  set_height(height_ + 1);
  return ast::Selector{ast::NegationSelector{std::move(argument)}, position};
}

// A simple selector with .field, [key] or [a..b] behind it, as often as they come.
ast::Selector Parser::selector_with_modifiers() {
  height_ = 1;
  const size_t from = index_;
  ast::Selector source = simple_selector();
  // Only for seen_: Cassandra has looked one token behind a constant, and error texts show it.
  if (std::holds_alternative<ast::TermSelector>(source.node)) peek(1);
  // Behind a bare column Cassandra notices at once what follows no column at all.
  if (std::holds_alternative<ast::ColumnSelector>(source.node) && index_ == from + 1) {
    peek(1);  // as far as Cassandra looks here: error texts show it
    const Token& next = peek();
    const bool odd_keyword = next.kind == TokenKind::kKeyword && next.keyword != Keyword::kAs &&
                             next.keyword != Keyword::kFrom && next.keyword != Keyword::kOrder &&
                             next.keyword != Keyword::kLimit && next.keyword != Keyword::kPer &&
                             next.keyword != Keyword::kAllow;
    if (odd_keyword ||
        is_any({TokenKind::kIdentifier, TokenKind::kQuotedName, TokenKind::kEmptyName,
                TokenKind::kString, TokenKind::kInteger, TokenKind::kFloat, TokenKind::kDuration,
                TokenKind::kUuid, TokenKind::kHex, TokenKind::kEqual, TokenKind::kNotEqual,
                TokenKind::kLess, TokenKind::kLessOrEqual, TokenKind::kGreater,
                TokenKind::kGreaterOrEqual, TokenKind::kPlusEqual, TokenKind::kMinusEqual,
                TokenKind::kQuestionMark, TokenKind::kLeftBrace})) {
      fail_no_viable(index_, from);
    }
  }
  return selector_modifiers(std::move(source));
}

// Of `source` as it stands; also for what WRITETIME and TTL enclose.
ast::Selector Parser::selector_modifiers(ast::Selector source) {
  // Each modifier wraps what stands in front of it, from left to right.
  for (;;) {
    if (accept(TokenKind::kDot)) {
      const ast::Position position = source.position;
      const bool column = std::holds_alternative<ast::ColumnSelector>(source.node);
      if (column && !names(peek())) fail_no_viable(index_, index_ - 2);
      ast::Identifier field = name();
      source = ast::Selector{ast::FieldSelector{std::move(source), std::move(field)}, position};
    } else if (is(TokenKind::kLeftBracket)) {
      source = bracket_modifier(std::move(source));
    } else {
      return source;
    }
    set_height(height_ + 1);
  }
}

// x[key], x[a..b], x[a..], x[..b]
ast::Selector Parser::bracket_modifier(ast::Selector source) {
  const ast::Position position = source.position;
  const size_t bracket = index_;
  const int32_t source_height = height_;
  advance();
  std::optional<ast::Term> lower, upper;
  // Cassandra does not see a subscript in x[] and x[..] and misses FROM.
  if (is(TokenKind::kRightBracket)) fail_mismatch(bracket, "K_FROM");
  int32_t height = 1;
  if (!is(TokenKind::kRange)) {
    lower = term();
    height = std::max(height, height_);
  }
  if (!is(TokenKind::kRange)) {
    expect(TokenKind::kRightBracket);
    height_ = std::max(source_height, height);
    return ast::Selector{ast::ElementSelector{std::move(source), std::move(*lower)}, position};
  }
  advance();
  if (!is(TokenKind::kRightBracket)) {
    upper = term();
    height = std::max(height, height_);
  } else if (!lower) {
    fail_mismatch(bracket, "K_FROM");
  }
  expect(TokenKind::kRightBracket);
  height_ = std::max(source_height, height);
  return ast::Selector{ast::SliceSelector{std::move(source), std::move(lower), std::move(upper)},
                       position};
}

// Also a name alone, which begins no term.
bool Parser::starts_selector(size_t index) const {
  return starts_term(index) || names(tokens_[std::min(index, tokens_.size() - 1)]);
}

// Words like ttl and cast are functions only with a parenthesis behind them; otherwise they name
// columns.
ast::Selector Parser::simple_selector() {
  const ast::Position position = here();
  if (auto literal = accept_literal()) {
    return ast::Selector{ast::TermSelector{ast::Term{std::move(*literal), position}}, position};
  }
  switch (peek().kind) {
    case TokenKind::kQuestionMark:
    case TokenKind::kColon:
      return ast::Selector{ast::TermSelector{bind_marker()}, position};
    case TokenKind::kLeftParenthesis:
      return parenthesis_selector();
    case TokenKind::kLeftBracket:
      advance();
      return ast::Selector{ast::ListSelector{selectors_until(TokenKind::kRightBracket)}, position};
    case TokenKind::kLeftBrace:
      return brace_selector();
    default:
      break;
  }
  if (is_any({Keyword::kCast, Keyword::kWritetime, Keyword::kMaxwritetime, Keyword::kTtl}) &&
      is(TokenKind::kLeftParenthesis, 1)) {
    return is(Keyword::kCast) ? cast_selector() : write_time_selector();
  }
  if (starts_function_call()) return function_selector();
  if (names(peek())) return ast::Selector{ast::ColumnSelector{name()}, position};
  if (is(Keyword::kToken)) {
    advance();
    expect(TokenKind::kLeftParenthesis);
  } else {
    fail_no_viable();
  }
  return ast::Selector{ast::CountRowsSelector{}, position};
}

// What cannot begin a selector is reported as a missing `close`.
std::vector<ast::Selector> Parser::selectors_until(TokenKind close) {
  if (!is(close) && !starts_selector(index_) && !is(TokenKind::kMinus)) expect(close);
  return items_until(close, [this] { return selector(); });
}

// WRITETIME of a column with modifiers: other expressions have no time of their own.
ast::Selector Parser::write_time_selector() {
  const ast::Position position = here();
  using Kind = ast::WriteTimeSelector::Kind;
  const Kind kind = is(Keyword::kTtl)         ? Kind::kTtl
                    : is(Keyword::kWritetime) ? Kind::kWriteTime
                                              : Kind::kMaxWriteTime;
  advance();
  expect(TokenKind::kLeftParenthesis);
  const ast::Position inner = here();
  height_ = 1;
  ast::Selector target = selector_modifiers(ast::Selector{ast::ColumnSelector{name()}, inner});
  expect(TokenKind::kRightParenthesis);
  set_height(height_ + 1);
  return ast::Selector{ast::WriteTimeSelector{kind, std::move(target)}, position};
}

// CAST ( selector AS native type )
ast::Selector Parser::cast_selector() {
  const ast::Position position = here();
  advance();
  expect(TokenKind::kLeftParenthesis);
  ast::Selector argument = selector();
  const int32_t height = height_;
  expect(Keyword::kAs);
  ast::CqlType to = native_type();
  expect(TokenKind::kRightParenthesis);
  set_height(height + 1);
  return ast::Selector{ast::CastSelector{std::move(argument), std::move(to)}, position};
}

ast::Selector Parser::function_selector() {
  const ast::Position position = here();
  // count(*), count(1) and system.count(1) count rows; count(column) is a function over values.
  // Only the bare word takes the star.
  bool is_count = is(Keyword::kCount) && is(TokenKind::kLeftParenthesis, 1);
  const bool counts_rows = is_count;
  ast::FunctionName function = function_name();
  is_count = is_count || (function.keyspace && function.keyspace->text == "system" &&
                          function.name.text == "count");
  expect(TokenKind::kLeftParenthesis);
  if (counts_rows && accept(TokenKind::kStar)) {
    expect(TokenKind::kRightParenthesis);
    height_ = 1;
    return ast::Selector{ast::CountRowsSelector{}, position};
  }
  std::vector<ast::Selector> arguments = selectors_until(TokenKind::kRightParenthesis);
  if (is_count && arguments.size() == 1) {  // count(1), count('x') count rows as well
    const auto* constant = arguments.front().get_if<ast::TermSelector>();
    const auto* literal = constant == nullptr ? nullptr : constant->term.get_if<ast::Literal>();
    if (literal != nullptr && literal->kind != ast::Literal::Kind::kNull) {
      return ast::Selector{ast::CountRowsSelector{}, position};
    }
  }
  return ast::Selector{ast::FunctionSelector{std::move(function), std::move(arguments)}, position};
}

/// An AS that gives a name to what stands before it, where a column could stand as well.
bool Parser::is_alias(size_t index) const {
  if (tokens_[index].keyword != Keyword::kAs) return false;
  const Token& next = tokens_[std::min(index + 1, tokens_.size() - 1)];
  return names(next) && next.keyword != Keyword::kAs;
}

// (type) x, (a, b) or parentheses. `(name) …` is a type hint when an operand follows directly;
// `(v) AS x` names a column.
ast::Selector Parser::parenthesis_selector() {
  const ast::Position position = here();
  const size_t parenthesis = index_;
  const size_t behind = skip_type(parenthesis + 1);
  const bool is_hint = behind != 0 && tokens_[behind].kind == TokenKind::kRightParenthesis &&
                       starts_selector(behind + 1) && !is_alias(behind + 1);
  advance();
  if (is_hint) {
    ast::CqlType hint = type();
    expect(TokenKind::kRightParenthesis);
    height_ = 1;
    Level level(*this);
    ast::Selector argument = simple_selector();
    set_height(height_ + 1);
    return ast::Selector{ast::TypeHintSelector{std::move(hint), std::move(argument)}, position};
  }
  if (is(TokenKind::kRightParenthesis)) fail_no_viable(index_, parenthesis);
  return ast::Selector{ast::TupleSelector{selectors_until(TokenKind::kRightParenthesis)}, position};
}

// {} | {selector, …} | {selector: selector, …}; which of set, map or user type is meant is not
// known here.
ast::Selector Parser::brace_selector() {
  const ast::Position position = here();
  advance();
  if (accept(TokenKind::kRightBrace)) return ast::Selector{ast::SetSelector{}, position};
  ast::Selector first = selector();
  return set_or_map<ast::SetSelector, ast::MapSelector>(std::move(first), position,
                                                        [this] { return selector(); });
}

}  // namespace tetrad::cql
