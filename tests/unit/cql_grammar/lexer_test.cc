// SPDX-License-Identifier: Apache-2.0
#include "cql/grammar/lexer.h"

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::cql {
namespace {

using Kind = TokenKind;

std::vector<std::pair<Kind, std::string>> tokens_of(std::string_view text) {
  std::vector<std::pair<Kind, std::string>> result;
  Lexer lexer(text);
  for (;;) {
    const Token token = lexer.next();
    if (token.kind == Kind::kEnd) return result;
    if (token.kind == Kind::kError) {
      result.emplace_back(Kind::kError, lexer.error());
      return result;
    }
    if (token.kind != Kind::kHidden) result.emplace_back(token.kind, token_value(text, token));
  }
}

using Tokens = std::vector<std::pair<Kind, std::string>>;

}  // namespace

TEST_CASE("numbers, durations and uuids are told apart by their first characters") {
  CHECK(tokens_of("12 -12 1.5 1. 1e5 -1.5E-7") == Tokens{{Kind::kInteger, "12"},
                                                         {Kind::kInteger, "-12"},
                                                         {Kind::kFloat, "1.5"},
                                                         {Kind::kFloat, "1."},
                                                         {Kind::kFloat, "1e5"},
                                                         {Kind::kFloat, "-1.5E-7"}});
  CHECK(tokens_of("1..2") ==
        Tokens{{Kind::kInteger, "1"}, {Kind::kRange, ".."}, {Kind::kInteger, "2"}});
  CHECK(tokens_of("1...2") ==
        Tokens{{Kind::kFloat, "1."}, {Kind::kRange, ".."}, {Kind::kInteger, "2"}});
  CHECK(tokens_of("1h30m -2mo1d 5us 5\xC2\xB5s 12ns P1Y2M PT1H -P1W P0001-02-03T04:05:06") ==
        Tokens{{Kind::kDuration, "1h30m"},
               {Kind::kDuration, "-2mo1d"},
               {Kind::kDuration, "5us"},
               {Kind::kDuration, "5\xC2\xB5s"},
               {Kind::kDuration, "12ns"},
               {Kind::kDuration, "P1Y2M"},
               {Kind::kDuration, "PT1H"},
               {Kind::kDuration, "-P1W"},
               {Kind::kDuration, "P0001-02-03T04:05:06"}});
  CHECK(tokens_of("P PT p1y P1Yx") == Tokens{{Kind::kIdentifier, "P"},
                                             {Kind::kIdentifier, "PT"},
                                             {Kind::kIdentifier, "p1y"},
                                             {Kind::kIdentifier, "P1Yx"}});
  CHECK(tokens_of("550e8400-e29b-41d4-a716-446655440000 abcdef01-e29b-41d4-a716-446655440000") ==
        Tokens{{Kind::kUuid, "550e8400-e29b-41d4-a716-446655440000"},
               {Kind::kUuid, "abcdef01-e29b-41d4-a716-446655440000"}});
  CHECK(tokens_of("0xAb 0x 0X1") ==
        Tokens{{Kind::kHex, "0xAb"}, {Kind::kHex, "0x"}, {Kind::kHex, "0X1"}});
}

TEST_CASE("a minus belongs to the number right behind it") {
  CHECK(tokens_of("a-5 a - 5 a--\n5") == Tokens{{Kind::kIdentifier, "a"},
                                                {Kind::kInteger, "-5"},
                                                {Kind::kIdentifier, "a"},
                                                {Kind::kMinus, "-"},
                                                {Kind::kInteger, "5"},
                                                {Kind::kIdentifier, "a"},
                                                {Kind::kInteger, "5"}});
  Lexer lexer("-NaN -infinity -nanx");
  CHECK(lexer.next().keyword == Keyword::kNegativeNan);
  lexer.next();
  CHECK(lexer.next().keyword == Keyword::kNegativeInfinity);
  lexer.next();
  CHECK(lexer.next().kind == Kind::kMinus);
}

TEST_CASE("strings and quoted names lose their quotes") {
  CHECK(tokens_of("'it''s' $$it's $ ok$$ '' \"A \"\"b\" \"\"") ==
        Tokens{{Kind::kString, "it's"},
               {Kind::kString, "it's $ ok"},
               {Kind::kString, ""},
               {Kind::kQuotedName, "A \"b"},
               {Kind::kEmptyName, "\"\""}});
}

TEST_CASE("keywords are found in any case and nothing else is") {
  CHECK(find_keyword("SeLeCt") == Keyword::kSelect);
  CHECK(find_keyword("select_masked") == Keyword::kSelectMasked);
  CHECK(find_keyword("selects") == std::nullopt);
  CHECK(find_keyword("") == std::nullopt);
  CHECK(find_keyword("between") == std::nullopt);
#define TETRAD_CQL_KEYWORD(name, text, use) CHECK(find_keyword(text) == Keyword::k##name);
  TETRAD_CQL_KEYWORDS(TETRAD_CQL_KEYWORD)
#undef TETRAD_CQL_KEYWORD
}

TEST_CASE("tokens know their line and column") {
  Lexer lexer("a\n  /* x\n y */ b 'c\nd' e");
  std::vector<std::pair<int, int>> places;
  for (Token t = lexer.next(); t.kind != Kind::kEnd; t = lexer.next()) {
    if (t.kind != Kind::kHidden) places.emplace_back(t.line, t.column);
  }
  CHECK(places == std::vector<std::pair<int, int>>{{1, 0}, {3, 6}, {3, 8}, {4, 3}});
}

TEST_CASE("what cannot be read ends the tokens with a reason") {
  const auto reason = [](std::string_view text) { return tokens_of(text).back().second; };
  CHECK(reason("a # b") == "no viable alternative at character '#'");
  CHECK(reason("\xC3\xA9") == "no viable alternative at character '\xC3\xA9'");
  CHECK(reason("_a") == "no viable alternative at character '_'");
  CHECK(reason("'abc") == "mismatched character '<EOF>' expecting '''");
  CHECK(reason("\"abc") == "mismatched character '<EOF>' expecting '\"'");
  CHECK(reason("$$abc") == "mismatched character 'c' expecting '$'");
  CHECK(reason("/* abc") == "mismatched character '<EOF>' expecting '*'");
  CHECK(reason("-- abc") == "mismatched character '<EOF>' expecting set null");
  CHECK(reason("! ") == "mismatched character ' ' expecting '='");
  CHECK(reason("12345678-x") == "mismatched character 'x' expecting set null");
  CHECK(reason(std::string_view("\0", 1)).starts_with("no viable alternative at character"));
}

}  // namespace tetrad::cql
