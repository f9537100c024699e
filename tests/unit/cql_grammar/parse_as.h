// SPDX-License-Identifier: Apache-2.0
// Parses in a test and fails it when the text is refused.
#pragma once

#include <string_view>

#include <catch2/catch.hpp>

#include "cql/grammar/parser.h"

namespace tetrad::cql::test {

template <class Kind>
Kind parse_as(std::string_view text) {
  auto statement = parse_statement(text);
  INFO(text);
  if (!statement) FAIL(statement.error().message);
  REQUIRE(std::holds_alternative<Kind>(*statement));
  return std::get<Kind>(std::move(*statement));
}

inline std::string message_of(std::string_view text, const ParseLimits& limits = {}) {
  auto statement = parse_statement(text, limits);
  if (statement) return "accepted";
  if (statement.error().code != ErrorCode::kSyntax) return "not a syntax error";
  return statement.error().message;
}

inline ast::Term term_of(std::string_view text) {
  auto term = parse_term(text);
  INFO(text);
  if (!term) FAIL(term.error().message);
  return std::move(*term);
}

/// The node of a term or selector as the kind it must be.
template <class Kind, class Node>
const Kind& as(const Node& node) {
  const Kind* kind = node.template get_if<Kind>();
  REQUIRE(kind != nullptr);
  return *kind;
}

}  // namespace tetrad::cql::test
