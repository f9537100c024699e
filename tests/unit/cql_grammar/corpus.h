// SPDX-License-Identifier: Apache-2.0
// Statements and what Cassandra 5.0.9 answered them.
#pragma once

#include <span>
#include <string_view>

namespace tetrad::cql::test {

struct RefusedStatement {
  std::string_view text, message;
};

/// Refused as syntax errors, with the exact message.
std::span<const RefusedStatement> refused_statements();
/// Read without a syntax error (what they mean may have been refused).
std::span<const std::string_view> accepted_statements();

}  // namespace tetrad::cql::test
