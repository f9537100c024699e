// SPDX-License-Identifier: Apache-2.0
// Text to tokens.
//
// Made by hand after the lexer rules of Cassandra's ANTLR grammar (Lexer.g of 5.0): what it takes
// for one token, and which text an error gets, is the same. Outside of strings, quoted names and
// comments only ASCII is taken, but for the µ of a duration.
#pragma once

#include <string>
#include <string_view>

#include "cql/grammar/token.h"

namespace tetrad::cql {

/// Cuts a text into tokens, one per call. After kEnd or kError the next one is the same again.
/// The text must outlive the lexer and hold less than 4 GiB.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // Hidden tokens are returned, too: Parser::tokenize() leaves them out.
  Token next();

  /// Why the last token was kError: "no viable alternative at character '#'", and where.
  const std::string& error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

 private:
  // '\0' past the end. A text may hold zero bytes of its own, so nobody takes it for the end.
  char at(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  // Makes a token of the next `length` bytes and moves behind it.
  Token take(TokenKind kind, size_t length);
  /// take() of what may have ends of lines in it.
  Token take_lines(TokenKind kind, size_t length);
  // ANTLR's two kinds of lexer errors: inside a token one particular character was expected, or no
  // token begins with the character here. Both set error_ and return kError, at which the lexer
  // stays.
  Token fail_mismatch(size_t offset, std::string_view expected);
  Token fail_character(size_t offset);
  // The character as messages show it: the whole UTF-8 sequence at `offset`.
  std::string character_at(size_t offset) const;

  // Each reads the token that begins here; next() chooses by the first character. read_minus(): a
  // negative number or duration, -NaN, a line comment (--), -= or the sign alone.
  Token read_minus();
  Token read_hidden();
  Token read_line_comment();
  Token read_block_comment();
  /// From the quote here to the one that closes it, both counted; 0 if none does. Two quotes in a
  /// row are one of the text.
  size_t quoted_bytes() const;
  Token read_string();
  Token read_dollar_string();
  Token read_quoted_name();
  Token read_word();
  Token read_number(bool negative);
  // 36 characters: hexadecimal digits in groups of 8, 4, 4, 4 and 12 with dashes between them.
  bool matches_uuid(size_t offset) const;
  /// Eight hexadecimal digits and a dash can begin nothing but a uuid.
  bool begins_uuid(size_t offset) const;
  Token fail_uuid(size_t offset);
  /// Bytes of units like 1h30m from `offset` on, after an optional sign; 0 if there are none.
  size_t duration_bytes(size_t offset) const;
  /// Bytes of P1Y2M…, P1W or P0001-01-01T00:00:00 at `offset`; 0 if there is none.
  size_t iso_duration_bytes(size_t offset) const;
  // Bytes of decimal digits from `offset` on.
  size_t digits_bytes(size_t offset) const;

  std::string_view text_;
  // The next byte to read; the line that it is in and where that line starts, for Token::column.
  size_t offset_ = 0;
  int32_t line_ = 1;
  size_t line_start_ = 0;
  std::string error_;
  size_t error_offset_ = 0;
};

/// The characters a kString or kQuotedName token means; any other token as it stands.
std::string token_value(std::string_view text, const Token& token);

}  // namespace tetrad::cql
