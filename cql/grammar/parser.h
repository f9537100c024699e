// SPDX-License-Identifier: Apache-2.0
// Text to tree: CQL 3.4.7, the language of Cassandra 5.0. Knows no schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cql/grammar/ast.h"

namespace tetrad::cql {

/// What a text may cost. Crossing a limit is a syntax error (of markers: kInvalid), found before the
/// memory is taken.
/// A statement of a client is the only text here whose size nobody else has bounded; the defaults
/// are those of the server.
struct ParseLimits {
  size_t text_bytes_max = 64u << 20;
  size_t token_count_max = 4'000'000;
  size_t element_count_max = 65'536 * 4;  // items of one list, set, map, tuple, IN or batch
  int32_t depth_max = 100;                // nested types, terms, selectors
  // More than the protocol can bind (kBindMarkersMax), since a statement that has another mistake as
  // well is refused for that one, as in Cassandra.
  int32_t bind_marker_count_max = 131'072;
};

/// A statement and the name of each bind marker by index (none for `?`).
/// `token_count` measures what parsing has cost.
struct ParsedStatement {
  ast::Statement statement;
  std::vector<std::optional<std::string>> marker_names;
  size_t token_count = 0;
};

/// Reads exactly one statement; one `;` may end it. Errors: kSyntax, "line L:C …" with lines
/// from 1 and columns from 0; kInvalid for too many bind markers. Pure.
Result<ParsedStatement> parse_with_markers(std::string_view text, const ParseLimits& limits = {});

/// The same without the list of markers.
Result<ast::Statement> parse_statement(std::string_view text, const ParseLimits& limits = {});

/// Reads a type, as `system_schema` and function signatures keep them.
Result<ast::CqlType> parse_type(std::string_view text, const ParseLimits& limits = {});

/// Reads a term, for example the initial condition of an aggregate.
Result<ast::Term> parse_term(std::string_view text, const ParseLimits& limits = {});

/// Reads the relations of a WHERE clause without the word, as `system_schema.views` keeps them.
Result<std::vector<ast::Relation>> parse_where(std::string_view text,
                                               const ParseLimits& limits = {});

}  // namespace tetrad::cql
