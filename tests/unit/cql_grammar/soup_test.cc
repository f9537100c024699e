// SPDX-License-Identifier: Apache-2.0
// Random and damaged statements: an answer always, a crash never.
#include <array>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/token.h"
#include "tests/unit/cql_grammar/corpus.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {
namespace {

constexpr std::string_view kPieces[] = {
#define TETRAD_CQL_KEYWORD(name, text, use) text,
    TETRAD_CQL_KEYWORDS(TETRAD_CQL_KEYWORD)
#undef TETRAD_CQL_KEYWORD
        "a",
    "b",
    "\"Q\"",
    "\"\"",
    "'s'",
    "$$d$$",
    "1",
    "-1",
    "1.5",
    "1h",
    "0xab",
    "?",
    ":x",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "<=",
    ">=",
    "=",
    "!=",
    ",",
    ";",
    ":",
    ".",
    "..",
    "+",
    "-",
    "*",
    "/",
    "%",
    "+=",
    "-=",
    "550e8400-e29b-41d4-a716-446655440000",
    "expr(",
    "/*",
    "--",
    "\n",
    "'",
    "\"",
    "$$",
    "#",
    "\xC3\xA9",
    "\xFF",
    "between",
    "f("};

// Prints what the tree can print; reads every byte of it under the sanitizers.
size_t walk(const ast::Statement& statement) {
  const ast::Statement copy = statement;
  size_t bytes = 0;
  if (const auto* select = std::get_if<ast::Select>(&copy)) {
    for (const auto& item : select->items) bytes += ast::to_string(item.selector).size();
    for (const auto& relation : select->where) bytes += ast::to_string(relation).size();
  } else if (const auto* update = std::get_if<ast::Update>(&copy)) {
    for (const auto& relation : update->where) bytes += ast::to_string(relation).size();
    for (const auto& condition : update->conditions) bytes += ast::to_string(condition).size();
  } else if (const auto* insert = std::get_if<ast::Insert>(&copy)) {
    for (const auto& value : insert->values) bytes += ast::to_string(value).size();
  }
  return bytes;
}

}  // namespace

TEST_CASE("token soup is read or refused") {
  std::mt19937_64 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  size_t accepted = 0, bytes = 0;
  for (int run = 0; run < 50000; ++run) {
    std::string text;
    const size_t count = 1 + below(25);
    for (size_t i = 0; i < count; ++i) {
      text += kPieces[below(std::size(kPieces))];
      if (below(4) != 0) text += ' ';
    }
    auto statement = parse_statement(text);
    if (statement) {
      ++accepted;
      bytes += walk(*statement);
    } else {
      REQUIRE(statement.error().code == ErrorCode::kSyntax);
      REQUIRE_FALSE(statement.error().message.empty());
    }
    (void)parse_term(text);
    (void)parse_type(text);
    (void)parse_where(text);
  }
  INFO(accepted << " accepted, " << bytes << " bytes printed");
  SUCCEED();
}

TEST_CASE("statements with pieces replaced, cut and doubled are read or refused") {
  std::mt19937_64 random(2);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto valid = accepted_statements();
  size_t accepted = 0;
  for (int run = 0; run < 50000; ++run) {
    std::string text(valid[below(valid.size())]);
    for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(8));
          break;
        case 1:
          text.insert(at, kPieces[below(std::size(kPieces))]);
          break;
        case 2:
          text[at] = static_cast<char>(below(256));
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(20)));
      }
    }
    auto statement = parse_statement(text);
    if (statement) {
      ++accepted;
      walk(*statement);
    } else {
      REQUIRE_FALSE(statement.error().message.empty());
    }
  }
  CHECK(accepted > 1000);
}

}  // namespace tetrad::cql::test
