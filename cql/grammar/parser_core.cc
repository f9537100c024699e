// SPDX-License-Identifier: Apache-2.0
// The parser's tools: tokens, look-ahead, errors. All tokens are read first. The parser is a
// hand-written recursive descent; its functions stand in parse_*.cc by theme.
//
// Errors: the first one wins (fail). It replaces the last token by the end of the text and moves
// there, so every rule that is open sees the end and returns; callers need not ask after each step.
// Texts are those of Cassandra's ANTLR grammar: "no viable alternative" where no rule fits,
// "mismatched input" where one token is expected. They name how far Cassandra has looked, so peek()
// notes the furthest token (seen_), and some calls of peek() exist only for that.
//
// Bounds (ParseLimits) keep a hostile text from using stack or memory: bytes, tokens, depth,
// elements, markers.
#include "cql/grammar/parser_core.h"

#include <fmt/format.h>

#include "cql/grammar/parser.h"

namespace tetrad::cql {
namespace {

// What Cassandra calls a token it misses.
std::string_view token_kind_text(TokenKind kind) {
  switch (kind) {
    case TokenKind::kEnd:
      return "EOF";
    case TokenKind::kIdentifier:
      return "IDENT";
    case TokenKind::kString:
      return "STRING_LITERAL";
    case TokenKind::kInteger:
      return "INTEGER";
    case TokenKind::kLeftParenthesis:
      return "'('";
    case TokenKind::kRightParenthesis:
      return "')'";
    case TokenKind::kLeftBracket:
      return "'['";
    case TokenKind::kRightBracket:
      return "']'";
    case TokenKind::kLeftBrace:
      return "'{'";
    case TokenKind::kRightBrace:
      return "'}'";
    case TokenKind::kComma:
      return "','";
    case TokenKind::kColon:
      return "':'";
    case TokenKind::kDot:
      return "'.'";
    case TokenKind::kEqual:
      return "'='";
    case TokenKind::kLess:
      return "'<'";
    case TokenKind::kGreater:
      return "'>'";
    default:
      return "another token";
  }
}

// Messages travel as strings of at most 64 KiB: nothing quoted in them may be long.
constexpr size_t kQuotedBytesMax = 1000;

// Cuts at a whole UTF-8 character, so that the message stays valid text.
std::string shortened(std::string text) {
  if (text.size() > kQuotedBytesMax) {
    text.resize(kQuotedBytesMax);
    while (!text.empty() && (static_cast<uint8_t>(text.back()) & 0xC0) == 0x80) text.pop_back();
    if (!text.empty() && static_cast<uint8_t>(text.back()) >= 0x80) text.pop_back();
    text += "...";
  }
  return text;
}

// Cassandra counts columns in UTF-16 units.
size_t utf16_units(std::string_view text) {
  size_t units = 0;
  for (char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte & 0xC0) != 0x80) units += byte >= 0xF0 ? 2 : 1;
  }
  return units;
}

// "line 3:7" of a byte's place in the text. Counts from the text's start, which is cheap enough for
// the one error of a statement.
std::string place_of_offset(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return fmt::format("line {}:{}", line, utf16_units(before.substr(start)));
}

}  // namespace

Parser::Parser(std::string_view text, const ParseLimits& limits) : text_(text), limits_(limits) {
  tokenize();
}

void Parser::tokenize() {
  // Token::offset has 32 bits, and positions are signed.
  constexpr size_t kOffsetMax = 0x7FFFFFFF;
  if (text_.size() > std::min(limits_.text_bytes_max, kOffsetMax)) {
    tokens_.emplace_back();
    fail(fmt::format("line 1:0 statement of {} bytes, at most {} are allowed", text_.size(),
                     std::min(limits_.text_bytes_max, kOffsetMax)));
    return;
  }
  // A guess for usual statements; never by the length that a client sent.
  tokens_.reserve(std::min<size_t>(text_.size() / 4 + 8, 256));
  Lexer lexer(text_);
  for (;;) {
    Token token = lexer.next();
    if (token.kind == TokenKind::kHidden) continue;
    tokens_.push_back(token);
    if (token.kind == TokenKind::kEnd) return;
    if (token.kind == TokenKind::kError) {
      // Kept until the parser comes to it: an error of the grammar before that place is reported
      // instead.
      lexer_error_ =
          fmt::format("{} {}", place_of_offset(text_, lexer.error_offset()), lexer.error());
      return;
    }
    if (tokens_.size() > limits_.token_count_max) {
      fail(fmt::format("line {}:{} statement of more than {} tokens", token.line, token.column,
                       limits_.token_count_max));
      return;
    }
  }
}

bool Parser::is_any(std::initializer_list<Keyword> keywords, size_t ahead) {
  const Token& token = peek(ahead);
  if (token.kind != TokenKind::kKeyword) return false;
  return std::find(keywords.begin(), keywords.end(), token.keyword) != keywords.end();
}

bool Parser::is_any(std::initializer_list<TokenKind> kinds, size_t ahead) {
  return std::find(kinds.begin(), kinds.end(), peek(ahead).kind) != kinds.end();
}

bool Parser::accept(Keyword first, Keyword second) {
  if (!is(first) || !is(second, 1)) return false;
  advance();
  advance();
  return !failed_;
}

bool Parser::expect(TokenKind kind) {
  if (accept(kind)) return true;
  if (!failed_) fail_mismatch(index_, token_kind_text(kind));
  return false;
}

// Cassandra's tokens for keywords are called K_SELECT and so on: "expecting K_FROM".
bool Parser::expect(Keyword keyword) {
  if (accept(keyword)) return true;
  if (!failed_) {
    std::string name = "K_";
    for (char c : keyword_text(keyword)) {
      name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    }
    fail_mismatch(index_, name);
  }
  return false;
}

void Parser::fail(std::string message) {
  if (failed_) return;
  failed_ = true;
  error_ = std::move(message);
  // The end of the text comes at once, for every rule that is still open.
  tokens_.back() = Token{};
  index_ = tokens_.size() - 1;
}

void Parser::fail_invalid(std::string message) {
  if (!failed_) error_code_ = ErrorCode::kInvalid;
  fail(std::move(message));
}

std::string Parser::place(size_t at) const {
  const Token& token = tokens_[at];
  // As ANTLR, which has no place for the end of the input.
  if (token.kind == TokenKind::kEnd) return "line 0:-1";
  return place_of_offset(text_, token.offset);
}

std::string Parser::token_display(const Token& token) const {
  return token.kind == TokenKind::kEnd ? "<EOF>" : shortened(value(token));
}

void Parser::fail_no_viable(size_t at, size_t from) {
  fail_at(at, {});
  if (failed_) return;
  std::string message =
      fmt::format("{} no viable alternative at input '{}'", place(at), token_display(tokens_[at]));
  fail(message + snippet(from));
}

void Parser::fail_mismatch(size_t at, std::string_view expected) {
  fail_at(at, {});
  if (failed_) return;
  std::string message = fmt::format("{} mismatched input '{}' expecting {}", place(at),
                                    token_display(tokens_[at]), expected);
  fail(message + snippet(at));
}

// An unreadable character among the tokens looked at comes first, as the lexer met it first.
void Parser::fail_at(size_t at, std::string_view what) {
  if (failed_) return;
  seen_ = std::max(seen_, at);
  if (!lexer_error_.empty() && seen_ + 1 == tokens_.size()) {
    fail(lexer_error_);
  } else if (!what.empty()) {
    fail(fmt::format("{} {}", place(at), what));
  }
}

void Parser::fail_too_deep() {
  fail_at(index_, fmt::format("statement nested more than {} levels deep", limits_.depth_max));
}

void Parser::check_count(size_t count) {
  if (count > limits_.element_count_max) {
    fail_at(index_, fmt::format("more than {} elements", limits_.element_count_max));
  }
}

// The height of the tree made so far: later stages recurse over it. Left-recursive chains (a + b +
// c) grow it without recursion here.
void Parser::set_height(int32_t height) {
  height_ = height;
  if (height > limits_.depth_max) fail_too_deep();
}

// The words around the place where the parser stood, as Cassandra shows them: ten tokens before
// (white space counts), the token in brackets, two after as far as they were looked at.
std::string Parser::snippet(size_t from) const {
  constexpr size_t kBefore = 10, kAfter = 2;
  if (tokens_[from].kind == TokenKind::kEnd) return {};
  // The text is cut into tokens once more, since tokens_ has no hidden ones and Cassandra counts
  // them.
  const uint32_t from_offset = tokens_[from].offset;
  const Token& last_seen = tokens_[std::max(seen_, from)];

  std::vector<Token> window;  // all kinds of tokens
  size_t from_index = 0, last_index = 0;
  bool reached = false;
  Lexer lexer(text_);
  for (;;) {
    Token token = lexer.next();
    if (token.kind == TokenKind::kError) break;
    const bool end = token.kind == TokenKind::kEnd;
    if (!reached && window.size() > kBefore) window.erase(window.begin());
    window.push_back(token);
    if (token.offset == from_offset && !end) {
      reached = true;
      from_index = last_index = window.size() - 1;
    } else if (reached) {
      last_index = window.size() - 1;
    }
    if (end || token.offset >= last_seen.offset || (reached && last_index == from_index + kAfter)) {
      break;
    }
  }
  if (!reached || window[last_index].kind == TokenKind::kEnd) return {};
  const size_t first_index = from_index > kBefore ? from_index - kBefore : 0;

  // Cassandra measures a token by what it means: a string without its quotes.
  // The text shown may so end inside a string, as Cassandra's does.
  const auto display_end = [&](const Token& token) {
    size_t end = token.offset + std::min<size_t>(value(token).size(), token.length);
    while (end < text_.size() && (static_cast<uint8_t>(text_[end]) & 0xC0) == 0x80) ++end;
    return end;
  };
  const auto without_newlines = [](std::string_view part) {
    std::string kept;
    for (char c : part) {
      if (c != '\n') kept.push_back(c);
    }
    return shortened(std::move(kept));
  };
  const size_t begin = window[first_index].offset;
  const size_t bracket_end = display_end(window[from_index]);
  const size_t end = std::max(bracket_end, display_end(window[last_index]));
  return fmt::format(" ({}{}[{}]{}{})", begin == 0 ? "" : "...",
                     without_newlines(text_.substr(begin, from_offset - begin)),
                     without_newlines(text_.substr(from_offset, bracket_end - from_offset)),
                     without_newlines(text_.substr(bracket_end, end - bracket_end)),
                     end == text_.size() ? "" : "...");
}

Result<ParsedStatement> parse_with_markers(std::string_view text, const ParseLimits& limits) {
  Parser parser(text, limits);
  ast::Statement statement = parser.whole_statement();
  if (parser.failed()) return std::unexpected(parser.take_error());
  return ParsedStatement{std::move(statement), parser.take_marker_names(), parser.token_count()};
}

Result<ast::Statement> parse_statement(std::string_view text, const ParseLimits& limits) {
  Parser parser(text, limits);
  ast::Statement statement = parser.whole_statement();
  if (parser.failed()) return std::unexpected(parser.take_error());
  return statement;
}

Result<ast::CqlType> parse_type(std::string_view text, const ParseLimits& limits) {
  Parser parser(text, limits);
  ast::CqlType type = parser.whole_type();
  if (parser.failed()) return std::unexpected(parser.take_error());
  return type;
}

Result<ast::Term> parse_term(std::string_view text, const ParseLimits& limits) {
  Parser parser(text, limits);
  ast::Term term = parser.whole_term();
  if (parser.failed()) return std::unexpected(parser.take_error());
  return term;
}

Result<std::vector<ast::Relation>> parse_where(std::string_view text, const ParseLimits& limits) {
  Parser parser(text, limits);
  std::vector<ast::Relation> relations = parser.whole_where();
  if (parser.failed()) return std::unexpected(parser.take_error());
  return relations;
}

}  // namespace tetrad::cql
