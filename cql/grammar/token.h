// SPDX-License-Identifier: Apache-2.0
// Tokens of CQL.
//
// A token says where it stands and holds no text: raw() and value() of the parser take it from the
// statement.
#pragma once

#include <cstdint>

#include "cql/types/keyword.h"

namespace tetrad::cql {

/// What a token is, before any word has a meaning.
enum class TokenKind : uint8_t {
  kEnd,         // after the last one
  kError,       // what cannot be read; the lexer keeps why
  kHidden,      // white space or a comment; the parser never sees it
  kKeyword,     // Token::keyword says which
  kIdentifier,  // unquoted and no keyword
  // Quoted words are never keywords.
  kQuotedName,  // "…"
  kEmptyName,   // ""
  kString,      // '…' or $$…$$
  kInteger,     // -?digits
  kFloat,       // with a point or an exponent
  kDuration,    // 1h30m or P…
  // Without quotes: 8-4-4-4-12 hexadecimal digits.
  kUuid,
  kHex,  // 0x…
  // ( ) [ ] { } and the other signs, one token each.
  kLeftParenthesis,
  kRightParenthesis,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kSemicolon,
  kColon,
  kDot,
  kRange,  // ..
  kQuestionMark,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kPercent,
  // += and -=, of UPDATE only.
  kPlusEqual,
  kMinusEqual,
};

/// A piece of the text. Columns count bytes from 0, lines from 1.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  // Set for kKeyword only. Many keywords are also names where a name is expected: Parser::names()
  // knows which.
  Keyword keyword = Keyword::kNone;
  // In bytes from the start of the text, as the columns. 32 bits each: a text of 64 MiB has many
  // tokens.
  uint32_t offset = 0;
  uint32_t length = 0;
  int32_t line = 1;
  int32_t column = 0;
};

}  // namespace tetrad::cql
