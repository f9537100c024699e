// SPDX-License-Identifier: Apache-2.0
// What is refused, and in which words.
#include <catch2/catch.hpp>

#include "tests/unit/cql_grammar/corpus.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {

TEST_CASE("syntax errors read word for word as Cassandra's") {
  for (const RefusedStatement& refused : refused_statements()) {
    INFO(refused.text);
    CHECK(message_of(refused.text) == refused.message);
  }
}

TEST_CASE("what Cassandra reads is read") {
  for (std::string_view text : accepted_statements()) {
    INFO(text);
    CHECK(message_of(text) == "accepted");
  }
}

TEST_CASE("every prefix of every statement is read or refused in order") {
  for (std::string_view text : accepted_statements()) {
    for (size_t length = 0; length < text.size(); ++length) {
      const std::string message = message_of(text.substr(0, length));
      if (message == "accepted" || message.starts_with("line ") ||
          message.starts_with("Only expressions") || message.starts_with("Invalid") ||
          message.starts_with("Multiple") || message.starts_with("Failed parsing")) {
        continue;
      }
      INFO(text.substr(0, length));
      FAIL_CHECK(message);
    }
  }
}

TEST_CASE("nesting is refused before the stack is at risk") {
  const auto repeated = [](std::string_view part, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += part;
    return text;
  };
  const auto refused_as_deep = [](const std::string& text) {
    const std::string message = message_of(text);
    INFO(text.substr(0, 60));
    CHECK(message.find("nested more than 100 levels deep") != std::string::npos);
  };
  for (size_t count : {size_t{101}, size_t{100000}}) {
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("[", count));
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("(", count) + "1");
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("{", count));
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("{a:", count));
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("f(", count));
    refused_as_deep("SELECT a FROM t WHERE k = " + repeated("(int)", count) + "1");
    refused_as_deep("SELECT a FROM t WHERE k = 1" + repeated(" + 1", count));
    refused_as_deep("SELECT a FROM t WHERE k = 1" + repeated(" * 1", count));
    refused_as_deep("SELECT a FROM t WHERE " + repeated("(", count) + "k = 1");
    refused_as_deep("SELECT " + repeated("f(", count) + " FROM t");
    refused_as_deep("SELECT " + repeated("(", count) + "a FROM t");
    refused_as_deep("SELECT " + repeated("- ", count) + "a FROM t");
    refused_as_deep("SELECT " + repeated("(int)", count) + "a FROM t");
    refused_as_deep("SELECT " + repeated("{a:", count) + "a FROM t");
    refused_as_deep("SELECT a" + repeated(".a", count) + " FROM t");
    refused_as_deep("SELECT a" + repeated("[1]", count) + " FROM t");
    refused_as_deep("SELECT a" + repeated(" + a", count) + " FROM t");
    refused_as_deep("SELECT " + repeated("cast(", count) + "a FROM t");
    refused_as_deep("CREATE TABLE t (a " + repeated("list<", count) + "int PRIMARY KEY)");
    refused_as_deep("CREATE TABLE t (a " + repeated("frozen<", count) + "int PRIMARY KEY)");
  }
  CHECK(message_of("SELECT a FROM t WHERE k = " + repeated("[", 40) + repeated("]", 40)) ==
        "accepted");
  CHECK(message_of("SELECT a FROM t WHERE k = 1" + repeated(" + 1", 90)) == "accepted");
}

TEST_CASE("size, tokens, elements and markers are limited") {
  ParseLimits limits;
  limits.text_bytes_max = 20;
  CHECK(message_of("SELECT a FROM t WHERE k = 1", limits).find("at most 20") != std::string::npos);
  limits = {};
  limits.token_count_max = 5;
  CHECK(message_of("SELECT a FROM t WHERE k = 1", limits).find("more than 5 tokens") !=
        std::string::npos);
  limits = {};
  limits.element_count_max = 3;
  CHECK(message_of("SELECT a FROM t WHERE k IN (1, 2, 3)", limits) == "accepted");
  CHECK(
      message_of("SELECT a FROM t WHERE k IN (1, 2, 3, 4)", limits).find("more than 3 elements") !=
      std::string::npos);
  std::string markers = "SELECT a FROM t WHERE k IN (?";
  for (int i = 1; i < 131'072; ++i) markers += ",?";
  CHECK(message_of(markers + ")", {}) == "accepted");
  const auto more = parse_statement(markers + ",?)");
  REQUIRE_FALSE(more);
  CHECK(more.error().code == ErrorCode::kInvalid);
  CHECK(more.error().message ==
        "Too many markers(?). More than 131072 exceed the allowed maximum of 65535");
}

TEST_CASE("an error never quotes much of a long statement") {
  const std::string longest(200000, 'x');
  CHECK(message_of("SELECT '" + longest + "' '" + longest + "'").size() < 5000);
  CHECK(message_of("SELECT " + longest + " " + longest).size() < 5000);
  CHECK(message_of("CREATE TABLE t (a vector<int," + std::string(200000, '9') + ">)").size() <
        5000);
}

}  // namespace tetrad::cql::test
