// SPDX-License-Identifier: Apache-2.0
// Terms: literals, bind markers, collections, calls, casts, arithmetic.
//
// Precedence, lowest first: + and -, then * / %, then the sign, then simple terms; all
// left-associative. Level counts the recursion, set_height() the height of the tree.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "cql/grammar/parse_collections.h"

namespace tetrad::cql {
namespace {

// Of the five tokens that are operators.
ast::ArithmeticOperator operator_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::kPlus:
      return ast::ArithmeticOperator::kAdd;
    case TokenKind::kMinus:
      return ast::ArithmeticOperator::kSubtract;
    case TokenKind::kStar:
      return ast::ArithmeticOperator::kMultiply;
    case TokenKind::kSlash:
      return ast::ArithmeticOperator::kDivide;
    default:
      return ast::ArithmeticOperator::kModulo;
  }
}

}  // namespace

// For texts that are a term and nothing else: the initial condition of an aggregate.
ast::Term Parser::whole_term() {
  ast::Term result = term();
  expect(TokenKind::kEnd);
  return result;
}

// With `before_column` a `+` before a bare name is left alone: c = [1] + c.
// Operators of one rank group from the left: each round wraps what was read so far.
ast::Term Parser::term(bool before_column) {
  Level level(*this);
  ast::Term left = product();
  while (is(TokenKind::kPlus) || is(TokenKind::kMinus)) {
    if (before_column && is(TokenKind::kPlus) && names(peek(1)) && !starts_function_call(1)) break;
    const ast::ArithmeticOperator op = operator_of(peek().kind);
    const int32_t height = height_;
    advance();
    ast::Term right = product();
    set_height(std::max(height, height_) + 1);
    const ast::Position position = left.position;
    left = ast::Term{ast::ArithmeticTerm{op, std::move(left), std::move(right)}, position};
  }
  check_term_end();
  return left;
}

// As term(), one rank higher.
ast::Term Parser::product() {
  ast::Term left = factor();
  while (is_any({TokenKind::kStar, TokenKind::kSlash, TokenKind::kPercent})) {
    const ast::ArithmeticOperator op = operator_of(peek().kind);
    const int32_t height = height_;
    advance();
    ast::Term right = factor();
    set_height(std::max(height, height_) + 1);
    const ast::Position position = left.position;
    left = ast::Term{ast::ArithmeticTerm{op, std::move(left), std::move(right)}, position};
  }
  return left;
}

// One sign at most; select lists take several, as in Cassandra.
ast::Term Parser::factor() {
  const ast::Position position = here();
  if (!accept(TokenKind::kMinus)) return simple_term();
  ast::Term argument = simple_term();
  set_height(height_ + 1);
  return ast::Term{ast::NegationTerm{std::move(argument)}, position};
}

// Literals stay texts: their types are known when the statement is prepared.
std::optional<ast::Literal> Parser::literal_of(const Token& token) const {
  using Kind = ast::Literal::Kind;
  switch (token.kind) {
    case TokenKind::kString:
      return ast::Literal{Kind::kString, value(token)};
    case TokenKind::kInteger:
      return ast::Literal{Kind::kInteger, value(token)};
    case TokenKind::kFloat:
      return ast::Literal{Kind::kFloat, value(token)};
    case TokenKind::kDuration:
      return ast::Literal{Kind::kDuration, value(token)};
    case TokenKind::kUuid:
      return ast::Literal{Kind::kUuid, value(token)};
    case TokenKind::kHex:
      return ast::Literal{Kind::kHex, value(token)};
    case TokenKind::kKeyword:
      switch (token.keyword) {
        case Keyword::kTrue:
        case Keyword::kFalse:
          return ast::Literal{Kind::kBoolean, value(token)};
        case Keyword::kNull:
          return ast::Literal{Kind::kNull, "NULL"};
        case Keyword::kNan:
        case Keyword::kNegativeNan:  // there is only one NaN
          return ast::Literal{Kind::kFloat, "NaN"};
        case Keyword::kInfinity:
          return ast::Literal{Kind::kFloat, "Infinity"};
        case Keyword::kNegativeInfinity:
          return ast::Literal{Kind::kFloat, "-Infinity"};
        default:
          return std::nullopt;
      }
    default:
      return std::nullopt;
  }
}

// As Cassandra, which reads such a number as a decimal and as a double while it parses.
// Java's limits: an exponent of at most ten digits that fits 32 bits, a scale (digits behind the
// point minus the exponent) that does, and a double that is finite. 1e400 is refused although the
// column may be a decimal.
void Parser::check_range(std::string_view number) {
  const auto refuse = [&](std::string_view reason) {
    fail(fmt::format("Failed parsing statement: [{}] reason: NumberFormatException {}",
                     text_.substr(0, 1000), reason));
  };
  constexpr size_t kExponentDigitsMax = 10;
  int64_t exponent = 0;
  const size_t mark = std::min(number.find_first_of("eE"), number.size());
  if (mark != number.size()) {
    std::string_view digits = number.substr(mark + 1);
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.size() > kExponentDigitsMax) return refuse("Too many nonzero exponent digits.");
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (negative) exponent = -exponent;
    if (exponent != static_cast<int32_t>(exponent)) return refuse("Exponent overflow.");
  }
  const size_t point = std::min(number.find('.'), mark);
  const auto fraction = static_cast<int64_t>(point == mark ? 0 : mark - point - 1);
  const int64_t scale = fraction - exponent;
  if (scale != static_cast<int32_t>(scale)) return refuse("Scale out of range.");
  if (std::isinf(std::strtod(std::string(number).c_str(), nullptr))) {
    refuse(
        "Character I is neither a decimal digit number, decimal point, nor \"e\" notation "
        "exponential mark.");
  }
}

std::optional<ast::Literal> Parser::accept_literal() {
  std::optional<ast::Literal> literal = literal_of(peek());
  if (literal) {
    if (peek().kind == TokenKind::kFloat) check_range(literal->text);
    advance();
    behind_literal_ = index_;
  }
  return literal;
}

// For look-ahead only; it notes nothing as seen.
bool Parser::starts_term(size_t index) const {
  const Token& token = tokens_[std::min(index, tokens_.size() - 1)];
  switch (token.kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kDuration:
    case TokenKind::kUuid:
    case TokenKind::kHex:
    case TokenKind::kQuestionMark:
    case TokenKind::kColon:
    case TokenKind::kLeftBracket:
    case TokenKind::kLeftBrace:
    case TokenKind::kLeftParenthesis:
    case TokenKind::kIdentifier:
    case TokenKind::kQuotedName:
      return true;
    case TokenKind::kKeyword:
      switch (token.keyword) {
        case Keyword::kTrue:
        case Keyword::kFalse:
        case Keyword::kNull:
        case Keyword::kNan:
        case Keyword::kNegativeNan:
        case Keyword::kInfinity:
        case Keyword::kNegativeInfinity:
        case Keyword::kCast:
          return true;
        default:
          return names_function(token);
      }
    default:
      return false;
  }
}

// Cassandra notices behind a term whatever may follow no term at all.
void Parser::check_term_end() {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::kIdentifier:
    case TokenKind::kQuotedName:
    case TokenKind::kEmptyName:
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kDuration:
    case TokenKind::kUuid:
    case TokenKind::kHex:
    case TokenKind::kLeftParenthesis:
    case TokenKind::kLeftBrace:
    case TokenKind::kQuestionMark:
    case TokenKind::kDot:
      fail_no_viable();
      return;
    case TokenKind::kKeyword:
      switch (token.keyword) {
        // Keywords that begin what may follow a term somewhere: a condition, a clause, the next
        // statement of a batch.
        case Keyword::kAnd:
        case Keyword::kIf:
        case Keyword::kAllow:
        case Keyword::kLimit:
        case Keyword::kPer:
        case Keyword::kOrder:
        case Keyword::kGroup:
        case Keyword::kWhere:
        case Keyword::kAsc:
        case Keyword::kDesc:
        case Keyword::kPrimary:
        case Keyword::kApply:
        case Keyword::kInsert:
        case Keyword::kUpdate:
        case Keyword::kDelete:
        case Keyword::kAs:
          break;
        case Keyword::kUsing:
          if (is_timeout(1)) break;
          fail_no_viable();
          return;
        default:
          fail_no_viable();
          return;
      }
      break;
    default:
      break;
  }
  // Cassandra looks one token further behind a constant: error texts show it.
  if (index_ == behind_literal_) peek(1);
}

// The first token decides, but for a parenthesis: parenthesis_term() looks further.
ast::Term Parser::simple_term() {
  Level level(*this);
  const ast::Position position = here();
  height_ = 1;
  if (auto literal = accept_literal()) return ast::Term{std::move(*literal), position};
  switch (peek().kind) {
    case TokenKind::kQuestionMark:
    case TokenKind::kColon:
      return bind_marker();
    case TokenKind::kLeftBracket:
      advance();
      return ast::Term{ast::ListTerm{terms_until(TokenKind::kRightBracket)}, position};
    case TokenKind::kLeftBrace:
      return brace_term();
    case TokenKind::kLeftParenthesis:
      return parenthesis_term();
    case TokenKind::kIdentifier:
    case TokenKind::kQuotedName:
      return function_term();
    case TokenKind::kKeyword:
      if (is(Keyword::kCast)) return cast_term();
      if (names(peek()) || names_function(peek())) return function_term();
      break;
    default:
      break;
  }
  fail_no_viable();
  return ast::Term{ast::Literal{}, position};
}

// [term (, term)*] close
std::vector<ast::Term> Parser::terms_until(TokenKind close) {
  return items_until(close, [this] { return term(); });
}

// {} | {term, …} | {term: term, …} | {field: term, …}
ast::Term Parser::brace_term() {
  const ast::Position position = here();
  const size_t brace = index_;
  advance();
  if (accept(TokenKind::kRightBrace)) return ast::Term{ast::SetTerm{}, position};
  if (names(peek())) {
    // A bare name before a colon is a field of a user type: a map has terms as keys, and a name is
    // none.
    if (is(TokenKind::kColon, 1)) {
      int32_t height = 0;
      ast::UdtTerm udt;
      do {
        ast::Identifier field = name();
        expect(TokenKind::kColon);
        udt.fields.emplace_back(std::move(field), term());
        check_count(udt.fields.size());
        height = std::max(height, height_);
      } while (accept(TokenKind::kComma));
      expect(TokenKind::kRightBrace);
      set_height(height + 1);
      return ast::Term{std::move(udt), position};
    }
    if (is_any({TokenKind::kRightBrace, TokenKind::kComma}, 1)) fail_no_viable(index_ + 1, brace);
  }
  ast::Term first = term();
  return set_or_map<ast::SetTerm, ast::MapTerm>(std::move(first), position,
                                                [this] { return term(); });
}

// (type) term, or (term, …)
ast::Term Parser::parenthesis_term() {
  const ast::Position position = here();
  const size_t parenthesis = index_;
  const size_t behind = skip_type(parenthesis + 1);
  // A name that stands for a column or an alias and so cannot begin a term.
  const auto names_alone = [&](size_t index) {
    index = std::min(index, tokens_.size() - 1);
    if (is(Keyword::kCast, index - index_)) return false;
    return names(tokens_[index]) && !starts_function_call(index - index_);
  };
  // Behind a string in parentheses, which may be a class or a tuple. A colon is a marker's, or the
  // tuple is a key of a map.
  const auto starts_argument = [&](size_t index) {
    if (!starts_term(index)) return false;
    return tokens_[index].kind == TokenKind::kColon ? names_alone(index + 1) : !names_alone(index);
  };
  // (a) may be a tuple of one, (int) x a type hint: a type in parentheses with a term behind it is
  // a hint.
  const bool is_cast =
      behind != 0 && tokens_[behind].kind == TokenKind::kRightParenthesis &&
      (tokens_[parenthesis + 1].kind != TokenKind::kString || starts_argument(behind + 1));
  advance();
  if (is_cast) {
    ast::CqlType to = type();
    expect(TokenKind::kRightParenthesis);
    ast::Term argument = simple_term();
    set_height(height_ + 1);
    return ast::Term{ast::TypeCastTerm{std::move(to), std::move(argument)}, position};
  }
  if (!starts_term(index_) && !is(TokenKind::kMinus)) fail_no_viable(index_, parenthesis);
  return ast::Term{ast::TupleTerm{terms_until(TokenKind::kRightParenthesis)}, position};
}

ast::Term Parser::function_term() {
  const ast::Position position = here();
  if (!starts_function_call()) {
    // A name that is no call: the error stands where a parenthesis should.
    const size_t from = index_;
    size_t at = from + 1;
    if (is(TokenKind::kDot, 1)) {
      at = names_function(peek(2)) ? from + 3 : from + 2;
    }
    fail_no_viable(std::min(at, tokens_.size() - 1), from);
    return ast::Term{ast::Literal{}, position};
  }
  ast::FunctionName function = function_name();
  expect(TokenKind::kLeftParenthesis);
  std::vector<ast::Term> arguments = terms_until(TokenKind::kRightParenthesis);
  return ast::Term{ast::FunctionTerm{std::move(function), std::move(arguments)}, position};
}

// CAST(term AS type) is a call of system.cast_as_<type>.
ast::Term Parser::cast_term() {
  const ast::Position position = here();
  if (!is(TokenKind::kLeftParenthesis, 1)) fail_no_viable(index_ + 1, index_);
  advance();
  expect(TokenKind::kLeftParenthesis);
  ast::Term argument = simple_term();
  const int32_t height = height_;
  expect(Keyword::kAs);
  const ast::CqlType to = native_type();
  expect(TokenKind::kRightParenthesis);
  ast::FunctionName function;
  function.keyspace = ast::Identifier{"system", false, position};
  function.name =
      ast::Identifier{fmt::format("cast_as_{}", keyword_text(to.native)), false, position};
  std::vector<ast::Term> arguments;
  arguments.push_back(std::move(argument));
  set_height(height + 1);
  return ast::Term{ast::FunctionTerm{std::move(function), std::move(arguments)}, position};
}

// Markers are numbered in the order of the text. Named ones (:name) keep their names; two of one
// name are two markers.
ast::Term Parser::bind_marker() {
  const ast::Position position = here();
  ast::BindMarker marker;
  marker.index = static_cast<int32_t>(marker_names_.size());
  if (!accept(TokenKind::kQuestionMark)) {
    expect(TokenKind::kColon);
    marker.name = name().text;
  }
  if (marker.index >= limits_.bind_marker_count_max) {
    fail_invalid(fmt::format("Too many markers(?). More than {} exceed the allowed maximum of {}",
                             limits_.bind_marker_count_max, ast::kBindMarkersMax));
  }
  marker_names_.push_back(marker.name);
  height_ = 1;
  return ast::Term{std::move(marker), position};
}

// What LIMIT, TTL and TIMESTAMP take.
ast::Term Parser::integer_or_marker() {
  const ast::Position position = here();
  if (is_bind_marker()) return bind_marker();
  if (is(TokenKind::kInteger)) return ast::Term{*accept_literal(), position};
  fail_no_viable();
  return ast::Term{ast::Literal{}, position};
}

// Reads tokens_ itself: peek() would move seen_, and the texts of errors with it.
bool Parser::is_word(std::string_view word, size_t ahead) const {
  const Token& token = tokens_[std::min(index_ + ahead, tokens_.size() - 1)];
  return token.kind == TokenKind::kIdentifier &&
         std::ranges::equal(raw(token), word, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + ('a' - 'A')) : a) == b;
         });
}

// TIMEOUT and a duration or a marker.
// The caller has seen TIMEOUT.
ast::Term Parser::timeout() {
  advance();
  const ast::Position position = here();
  if (is_bind_marker()) return bind_marker();
  if (is(TokenKind::kDuration)) return ast::Term{*accept_literal(), position};
  fail_no_viable();
  return ast::Term{ast::Literal{}, position};
}

}  // namespace tetrad::cql
