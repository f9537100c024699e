// SPDX-License-Identifier: Apache-2.0
// Which indexes serve the conditions of a WHERE, whether they serve all of them, and which one a
// SELECT looks at. The schema decides, never statistics: the same statement is taken or refused
// whatever the data is.
//
// Cassandra's rule of ALLOW FILTERING: what the primary key does not answer must be served by one
// group of indexes. All SAI indexes of a table are one group, each other index is one by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cql/index/index_options.h"
#include "cql/index/index_terms.h"

namespace tetrad::cql {

struct Restriction;

/// How the rows of a SELECT are found; `filter` beside it says whether rows are tested one by one.
enum class AccessKind : uint8_t {
  kPartitions,      // partitions that are named
  kPartitionIndex,  // an index, in partitions that are named
  kRange,           // the table, or a part of the ring
  kIndex,           // an index, over the table or a part of the ring
};
/// As EXPLAIN shows it.
std::string_view access_name(AccessKind kind);

/// What a restriction asks of an index.
enum class IndexQuestion : uint8_t { kEqual, kRange, kContains, kContainsKey, kEntry, kLike };

/// The part of an index that a SELECT looks at, before it has values.
struct IndexAccess {
  const IndexSchema* index = nullptr;  // of the statement's table
  IndexTerms terms;
  // Belongs to the Restrictions that has this IndexAccess.
  const Restriction* restriction = nullptr;
  IndexQuestion question = IndexQuestion::kEqual;
};

/// Whether Cassandra's index of this class and target answers such a question.
bool answers(const IndexSchema& index, const ColumnSchema& column, IndexQuestion question);

/// Whether any index of the table serves the restriction, or a part of it.
bool has_index(const TableSchema& table, const Restriction& restriction);

/// Whether one group of indexes serves all of these; `of_class`: one of that class.
bool serves_all(const TableSchema& table, std::span<const Restriction* const> restrictions,
                std::optional<IndexClass> of_class = std::nullopt);

/// The index to look at: that of the class which Cassandra prefers, then the condition that names
/// the fewest values, then the one written first. Unset: none serves any of these.
std::optional<IndexAccess> choose_index(const TableSchema& table,
                                        std::span<const Restriction* const> restrictions);

/// What is done to texts of a restriction before they are compared.
struct ComparedTexts {
  TextAnalysis values, keys;  // of the column or its elements; of CONTAINS KEY
  bool of_sasi = false;
  bool every_word = false;      // of those asked for must be in a value
  size_t bytes_max = SIZE_MAX;  // larger ones are not found; terms of SASI: kSasiTextBytesMax
  bool does_nothing() const { return values.does_nothing() && keys.does_nothing() && !of_sasi; }
};

/// With an index of the class `used` looked at. Nothing for most.
ComparedTexts compared_texts(const TableSchema& table, IndexClass used,
                             const Restriction& restriction);

}  // namespace tetrad::cql
