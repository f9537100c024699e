// SPDX-License-Identifier: Apache-2.0
// What WITH OPTIONS of an index means: checked when the index is made, read again where it is used.
// Errors have Cassandra 5.0's texts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cql/index/text_analysis.h"
#include "cql/schema/table_schema.h"
#include "storage/vectors/distance.h"

namespace tetrad::cql {

using IndexOptions = std::map<std::string, std::string>;

/// How a SASI index serves values: the beginnings of texts and ranges, any part of texts, ranges.
enum class SasiMode : uint8_t { kPrefix, kContains, kSparse };

/// Of a SASI index, over its column.
struct SasiOptions {
  SasiMode mode = SasiMode::kPrefix;
  bool is_literal = false;  // texts: LIKE, no ranges
  TextAnalysis analysis;
};
/// As in Cassandra a SASI index finds no larger texts, and no empty ones; this bounds the work of a
/// value.
inline constexpr size_t kSasiTextBytesMax = 1023;
/// Words of one LIKE on an index of words.
inline constexpr size_t kSasiWordsMax = 16;
/// Of texts whose words an index keeps, and of those of which it keeps all parts of the words, each of which is a
/// claim. Larger ones are not found.
inline constexpr size_t kSasiWordsBytesMax = 65'535, kSasiPartsBytesMax = 8'192;
/// Of the texts of such an index, before analysis; unset: it is none.
std::optional<size_t> sasi_words_bytes_max(const SasiOptions& options);
/// Whether an index can find LIKE with that wildcard. `is_open_before`: %text.
bool serves_like(const SasiOptions& options, bool is_open_before, bool is_open_behind);

/// Options that were checked never fail. Errors: kConfig.
Result<SasiOptions> sasi_options(const DataType& type,
                                 const std::map<std::string, std::string>& options);
/// Whether a SASI index may be on this. `options`: without `target` and `class_name`.
Result<void> check_sasi_index(const TableSchema& table, const ColumnSchema& column,
                              const std::map<std::string, std::string>& options);

/// The class that a name behind USING stands for; unset: there is none. kLegacy has no name here.
std::optional<IndexClass> index_class_named(std::string_view name);

/// The type whose values an index keeps: of a collection that of its elements; null for entries of
/// a map.
TypePtr indexed_type(const DataType& column_type, IndexTarget target);

/// Of an SAI index: kept as bytes, so that only equality is served. Null as indexed_type() has it.
bool is_literal_term(const DataType* type);

/// Of an SAI index. Options that were checked never fail.
Result<TextAnalysis> text_analysis(const IndexOptions& options);

/// Whether the index is one of vectors: it serves ORDER BY ... ANN OF and no condition, and keeps no
/// claims.
bool is_vector_index(const IndexSchema& index, const DataType& column_type);
/// Of an index of vectors, cosine where it names none.
storage::Similarity vector_similarity(const IndexSchema& index);
/// `optimize_for` of an index of vectors: a query looks further for the nearest, which takes longer.
bool favours_recall(const IndexSchema& index);
/// Whether a vector can be kept in the index, or looked for. Errors: kInvalid.
Result<void> check_vector(storage::Similarity similarity, BytesView vector);

inline constexpr size_t kIndexedBytesMax = 65'535;
/// Writes of larger values are refused; unset: there is no limit. Native indexes as Cassandra's; others where
/// analysis is work for each byte.
std::optional<size_t> written_bytes_max(const IndexSchema& index, const DataType& column_type);

/// Whether an SAI index may be on this. `options`: without `target` and `class_name`.
Result<void> check_sai_index(const TableSchema& table, const ColumnSchema& column,
                             IndexTarget target, const IndexOptions& options);

/// As system_schema.indexes shows it: `c`, `keys(c)`.
std::string target_text(IndexTarget target, std::string_view column);

}  // namespace tetrad::cql
