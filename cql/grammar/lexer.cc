// SPDX-License-Identifier: Apache-2.0
// Text to tokens, one at a time, by the rules of Cassandra's Lexer.g. Where that grammar is unusual
// (signs, durations, UUIDs, comments without an end) its behaviour is copied, since statements that
// Cassandra takes must be taken and errors carry its texts. Offsets are bytes; lines and columns
// count from 1 and 0. Texts are not copied: a token says where it stands.
#include "cql/grammar/lexer.h"

#include <fmt/format.h>

namespace tetrad::cql {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) {
  const char l = static_cast<char>(c | 0x20);
  return is_digit(c) || (l >= 'a' && l <= 'f');
}
bool is_letter(char c) {
  const char l = static_cast<char>(c | 0x20);
  return l >= 'a' && l <= 'z';
}
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
// ASCII only: keywords and units have no other letters.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

// For tokens without an end of line in them: line_ and line_start_ stay.
Token Lexer::take(TokenKind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.offset = static_cast<uint32_t>(offset_);
  token.length = static_cast<uint32_t>(length);
  token.line = line_;
  token.column = static_cast<int32_t>(offset_ - line_start_);
  offset_ += length;
  return token;
}

// For tokens that may hold line ends.
Token Lexer::take_lines(TokenKind kind, size_t length) {
  const Token token = take(kind, length);
  for (size_t i = token.offset; i < offset_; ++i) {
    if (text_[i] == '\n') {
      ++line_;
      line_start_ = i + 1;
    }
  }
  return token;
}

std::string Lexer::character_at(size_t offset) const {
  if (offset >= text_.size()) return "<EOF>";
  size_t length = 1;  // a whole UTF-8 sequence, so that the message stays valid text
  if (static_cast<uint8_t>(text_[offset]) >= 0xC0) {
    while (length < 4 && (static_cast<uint8_t>(at(offset + length)) & 0xC0) == 0x80) ++length;
  }
  return std::string(text_.substr(offset, length));
}

Token Lexer::fail_mismatch(size_t offset, std::string_view expected) {
  error_offset_ = offset;
  error_ = fmt::format("mismatched character '{}' expecting {}", character_at(offset), expected);
  // Of no length: the lexer does not move, so the next call fails in the same way.
  Token token = take(TokenKind::kError, 0);
  return token;
}

Token Lexer::fail_character(size_t offset) {
  error_offset_ = offset;
  error_ = fmt::format("no viable alternative at character '{}'", character_at(offset));
  return take(TokenKind::kError, 0);
}

Token Lexer::next() {
  if (offset_ >= text_.size()) return take(TokenKind::kEnd, 0);
  const char c = text_[offset_];
  if (is_space(c)) return read_hidden();
  if (is_letter(c)) return read_word();
  if (is_digit(c)) return read_number(false);
  const char d = at(offset_ + 1);
  switch (c) {
    case '(':
      return take(TokenKind::kLeftParenthesis, 1);
    case ')':
      return take(TokenKind::kRightParenthesis, 1);
    case '[':
      return take(TokenKind::kLeftBracket, 1);
    case ']':
      return take(TokenKind::kRightBracket, 1);
    case '{':
      return take(TokenKind::kLeftBrace, 1);
    case '}':
      return take(TokenKind::kRightBrace, 1);
    case ',':
      return take(TokenKind::kComma, 1);
    case ';':
      return take(TokenKind::kSemicolon, 1);
    case ':':
      return take(TokenKind::kColon, 1);
    case '?':
      return take(TokenKind::kQuestionMark, 1);
    case '=':
      return take(TokenKind::kEqual, 1);
    case '*':
      return take(TokenKind::kStar, 1);
    case '%':
      return take(TokenKind::kPercent, 1);
    case '.':
      return d == '.' ? take(TokenKind::kRange, 2) : take(TokenKind::kDot, 1);
    case '<':
      return d == '=' ? take(TokenKind::kLessOrEqual, 2) : take(TokenKind::kLess, 1);
    case '>':
      return d == '=' ? take(TokenKind::kGreaterOrEqual, 2) : take(TokenKind::kGreater, 1);
    case '!':
      return d == '=' ? take(TokenKind::kNotEqual, 2) : fail_mismatch(offset_ + 1, "'='");
    case '+':
      return d == '=' ? take(TokenKind::kPlusEqual, 2) : take(TokenKind::kPlus, 1);
    case '/':
      // CQL has three kinds of comments: --, // and /* */.
      if (d == '/') return read_line_comment();
      if (d == '*') return read_block_comment();
      return take(TokenKind::kSlash, 1);
    case '-':
      return read_minus();
    case '\'':
      return read_string();
    case '"':
      return read_quoted_name();
    case '$':
      return read_dollar_string();
    default:
      return fail_character(offset_);
  }
}

// A sign belongs to the number, the duration or the word behind it, as in Cassandra's lexer: `a -1`
// is two tokens, and the parser makes a difference of them.
Token Lexer::read_minus() {
  const char next = at(offset_ + 1);
  if (next == '-') return read_line_comment();
  if (next == '=') return take(TokenKind::kMinusEqual, 2);
  if (is_digit(next)) return read_number(true);
  if (const size_t iso = iso_duration_bytes(offset_ + 1); iso != 0) {
    return take(TokenKind::kDuration, iso + 1);
  }
  size_t end = offset_ + 1;
  while (is_word(at(end))) ++end;
  // -NaN and -Infinity are words of Cassandra's lexer with the sign in them.
  const auto keyword = find_keyword(text_.substr(offset_ + 1, end - offset_ - 1));
  if (keyword == Keyword::kNan || keyword == Keyword::kInfinity) {
    Token token = take(TokenKind::kKeyword, end - offset_);
    token.keyword = *keyword == Keyword::kNan ? Keyword::kNegativeNan : Keyword::kNegativeInfinity;
    return token;
  }
  return take(TokenKind::kMinus, 1);
}

// White space and comments are tokens too: error texts count them (Parser::snippet).
Token Lexer::read_hidden() {
  Token token = take(TokenKind::kHidden, 0);
  while (offset_ < text_.size() && is_space(text_[offset_])) {
    if (text_[offset_++] == '\n') {
      ++line_;
      line_start_ = offset_;
    }
  }
  token.length = static_cast<uint32_t>(offset_ - token.offset);
  return token;
}

// As Cassandra, a comment that no end of line ends is an error.
Token Lexer::read_line_comment() {
  size_t end = offset_;
  while (end < text_.size() && text_[end] != '\n' && text_[end] != '\r') ++end;
  if (end == text_.size()) return fail_mismatch(end, "set null");
  return take(TokenKind::kHidden, end - offset_);
}

Token Lexer::read_block_comment() {
  // Block comments do not nest.
  const size_t close = text_.find("*/", offset_ + 2);
  if (close == std::string_view::npos) return fail_mismatch(text_.size(), "'*'");
  return take_lines(TokenKind::kHidden, close + 2 - offset_);
}

// The length with its quotes; a doubled quote stands for one. 0: it does not end.
size_t Lexer::quoted_bytes() const {
  const char quote = text_[offset_];
  for (size_t i = offset_ + 1; i < text_.size(); ++i) {
    if (text_[i] != quote) continue;
    if (at(i + 1) != quote) return i + 1 - offset_;
    ++i;
  }
  return 0;
}

Token Lexer::read_string() {
  const size_t length = quoted_bytes();
  return length == 0 ? fail_mismatch(text_.size(), "'''") : take_lines(TokenKind::kString, length);
}

// $$…$$ of function bodies: nothing in it is escaped, so it cannot hold $$.
Token Lexer::read_dollar_string() {
  if (at(offset_ + 1) != '$') return fail_mismatch(offset_ + 1, "'$'");
  const size_t close = text_.find("$$", offset_ + 2);
  if (close == std::string_view::npos) return fail_mismatch(text_.size() - 1, "'$'");
  return take_lines(TokenKind::kString, close + 2 - offset_);
}

Token Lexer::read_quoted_name() {
  const size_t length = quoted_bytes();
  if (length == 0) return fail_mismatch(text_.size(), "'\"'");
  // "" names nothing; Cassandra's lexer has a token of its own for it, which no rule takes.
  return take_lines(length == 2 ? TokenKind::kEmptyName : TokenKind::kQuotedName, length);
}

// A UUID may begin with letters, so it is looked for first; then ISO durations (P...), then words.
Token Lexer::read_word() {
  const char c = text_[offset_];
  if (is_hex(c) && begins_uuid(offset_)) {
    return matches_uuid(offset_) ? take(TokenKind::kUuid, 36) : fail_uuid(offset_);
  }
  if (c == 'P') {
    if (const size_t iso = iso_duration_bytes(offset_); iso != 0) {
      return take(TokenKind::kDuration, iso);
    }
  }
  size_t end = offset_ + 1;
  while (end < text_.size() && is_word(text_[end])) ++end;
  const auto keyword = find_keyword(text_.substr(offset_, end - offset_));
  Token token = take(keyword ? TokenKind::kKeyword : TokenKind::kIdentifier, end - offset_);
  if (keyword) token.keyword = *keyword;
  return token;
}

// In this order, each on a condition that excludes the next: a uuid or 0x… (never with a sign), a
// duration, a number. The offset is that of the sign if there is one, `start` that of the first
// digit.
Token Lexer::read_number(bool negative) {
  const size_t start = offset_ + (negative ? 1 : 0);
  if (!negative) {
    if (begins_uuid(start)) {
      return matches_uuid(start) ? take(TokenKind::kUuid, 36) : fail_uuid(start);
    }
    if (text_[start] == '0' && lower(at(start + 1)) == 'x') {
      size_t end = start + 2;
      while (is_hex(at(end))) ++end;
      return take(TokenKind::kHex, end - offset_);
    }
  }
  // Before plain numbers: 5h is one token.
  if (const size_t bytes = duration_bytes(start); bytes != 0) {
    const size_t end = start + bytes;
    const size_t digits = digits_bytes(end);  // 5h3: a number without its unit
    if (digits != 0) return fail_character(end + digits);
    return take(TokenKind::kDuration, end - offset_);
  }
  size_t end = start + digits_bytes(start);
  TokenKind kind = TokenKind::kInteger;
  // 1..2 is a range of integers; of three dots the first belongs to the number, as in Cassandra's lexer.
  if (at(end) == '.' && (at(end + 1) != '.' || at(end + 2) == '.')) {
    kind = TokenKind::kFloat;
    ++end;
    end += digits_bytes(end);
  }
  if (lower(at(end)) == 'e') {
    size_t exponent = end + 1;
    if (at(exponent) == '+' || at(exponent) == '-') ++exponent;
    const size_t digits = digits_bytes(exponent);
    if (digits == 0) return fail_character(exponent);
    return take(TokenKind::kFloat, exponent + digits - offset_);
  }
  // Digits with a letter from a to f behind them can only be the beginning of a uuid to Cassandra's
  // lexer.
  if (!negative && kind == TokenKind::kInteger && is_hex(at(end))) return fail_uuid(start);
  return take(kind, end - offset_);
}

size_t Lexer::digits_bytes(size_t offset) const {
  size_t end = offset;
  while (is_digit(at(end))) ++end;
  return end - offset;
}

bool Lexer::matches_uuid(size_t offset) const {
  if (text_.size() - offset < 36 || text_[offset + 8] != '-') return false;
  for (size_t i = 0; i < 36; ++i) {
    const char c = text_[offset + i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? c != '-' : !is_hex(c)) return false;
  }
  return true;
}

bool Lexer::begins_uuid(size_t offset) const {
  for (size_t i = 0; i < 8; ++i) {
    if (!is_hex(at(offset + i))) return false;
  }
  return at(offset + 8) == '-';
}

// At the first character that fits no uuid; there is one.
Token Lexer::fail_uuid(size_t offset) {
  // h: a hexadecimal digit.
  constexpr std::string_view kShape = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  size_t i = 0;
  while (i + 1 < kShape.size() &&
         (kShape[i] == 'h' ? is_hex(at(offset + i)) : at(offset + i) == '-')) {
    ++i;
  }
  return fail_mismatch(offset + i, kShape[i] == 'h' ? "set null" : "'-'");
}

// Digits with a unit, as often as they come: 1y2mo3d. "m" is minutes, "mo" months, "ms"
// milliseconds.
size_t Lexer::duration_bytes(size_t offset) const {
  size_t end = offset;
  for (;;) {
    const size_t digits = digits_bytes(end);
    if (digits == 0) break;
    const size_t unit = end + digits;
    const char c = lower(at(unit));
    const char d = lower(at(unit + 1));
    size_t bytes = 0;
    if (c == 'm') {
      bytes = d == 'o' || d == 's' ? 2 : 1;
    } else if (c == 'y' || c == 'w' || c == 'd' || c == 'h' || c == 's') {
      bytes = 1;
    } else if ((c == 'u' || c == 'n') && d == 's') {
      bytes = 2;
    } else if (text_.substr(unit, 2) == "\xC2\xB5" && lower(at(unit + 2)) == 's') {
      bytes = 3;
    }
    if (bytes == 0) break;
    end = unit + bytes;
  }
  return end - offset;
}

// P1Y2M3DT4H5M6S, P1W or P0001-01-01T00:00:00. 0: it is none, and the P is part of a word.
size_t Lexer::iso_duration_bytes(size_t offset) const {
  if (at(offset) != 'P') return 0;
  size_t end = offset + 1;
  size_t parts = 0;
  // The alternative form, then weeks, then the ordinary one.
  constexpr std::string_view kAlternative = "dddd-dd-ddTdd:dd:dd";
  size_t i = 0;
  while (i < kAlternative.size() &&
         (kAlternative[i] == 'd' ? is_digit(at(end + i)) : at(end + i) == kAlternative[i])) {
    ++i;
  }
  if (i == kAlternative.size()) return is_word(at(end + i)) ? 0 : i + 1;
  // Units in this order, each at most once and with a number before it.
  const auto read_units = [&](std::string_view units) {
    for (char unit : units) {
      const size_t digits = digits_bytes(end);
      if (digits == 0) return;
      if (at(end + digits) != unit) continue;
      end += digits + 1;
      ++parts;
    }
  };
  if (const size_t digits = digits_bytes(end); digits != 0 && at(end + digits) == 'W') {
    end += digits + 1;
    ++parts;
  } else {
    read_units("YMD");
    if (at(end) == 'T') {
      const size_t before = parts;
      ++end;
      read_units("HMS");
      // A T without a part behind it does not belong to the duration.
      if (parts == before) --end;
    }
  }
  return parts == 0 || is_word(at(end)) ? 0 : end - offset;
}

// What the token means: strings and quoted names without their quotes.
std::string token_value(std::string_view text, const Token& token) {
  std::string_view raw = text.substr(token.offset, token.length);
  if (token.kind != TokenKind::kString && token.kind != TokenKind::kQuotedName) {
    return std::string(raw);
  }
  if (raw[0] == '$') return std::string(raw.substr(2, raw.size() - 4));
  const char quote = raw[0];
  raw = raw.substr(1, raw.size() - 2);
  if (raw.find(quote) == std::string_view::npos) return std::string(raw);
  std::string value;
  value.reserve(raw.size());
  // Of two quotes in a row the second is left out; a quote inside always has another behind it.
  for (size_t i = 0; i < raw.size(); ++i) {
    value.push_back(raw[i]);
    if (raw[i] == quote) ++i;
  }
  return value;
}

}  // namespace tetrad::cql
