// SPDX-License-Identifier: Apache-2.0
// What an index keeps of a value: the component that a claim begins with. The one function for the
// replica that makes claims of what it writes, and for the coordinator that looks for them.
//
//   components of a column, by the index's target
//     simple, full    term(value)                 the column's type, key columns and static ones too
//     values          term(element)               one for each element of a list or set, or map value
//     keys            term(key)                   one for each key of a map
//     entries         term(key) term(value)       one for each entry of a map
//   Texts of an SAI index with options, up to kIndexedBytesMax, and of a SASI index go through
//   analyze() before (text_analysis.h). A SASI index of the mode CONTAINS has more components of a text:
//   gram  := 0x40 three code points in UTF-8      one for each code point, with the two behind it;
//                                                 behind the last one stands 0xFF
//   and none of empty texts and those above kSasiTextBytesMax, as other SASI indexes on texts. An index of words
//   has a term, and the grams, of each word (terms_of()) within the same limits.
//   term  := encoded                              of append_ordered(), always ascending; at most 256 B
//          | first 256 B of encoded, u64 its XXH3 of longer ones
//
// No component is the beginning of another one. memcmp of two components sorts as the values do, up
// to the first 256 bytes of a term: bounds of a range are cut there, so they take in all of its
// values and may take in more. Null has no component. On disk: never change.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/index/text_analysis.h"
#include "cql/schema/table_schema.h"
#include "cql/types/value.h"
#include "storage/row/read_command.h"
#include "storage/row/row_record.h"

namespace tetrad::cql {

/// Bytes of a term that are kept as they are.
inline constexpr size_t kTermBytesMax = 256;

/// Of several words in one LIKE a row must have each. Elsewhere Cassandra, whose index finds partitions, shows rows
/// with any of them.
bool needs_every_word(const TableSchema& table, const ColumnSchema& column);

/// Makes components of one index; keeps nothing of the schema that it was made from. Errors of all
/// functions: kInvalid for bytes that are no value of the type and decimals of more than
/// kNumberBytesMax bytes, kCorruption for keys and paths that do not decode. `components` then has
/// what was added before.
class IndexTerms {
 public:
  /// Errors: kInvalid when the table has no such column, or it cannot have such an index.
  static Result<IndexTerms> of(const TableSchema& table, const IndexSchema& index);

  uint16_t index_id() const { return index_id_; }
  ColumnKind column_kind() const { return kind_; }
  /// Of a static or regular column; 0 for key columns.
  uint32_t column_id() const { return column_id_; }

  /// Of a whole value of the column, not null: of a collection those of all its elements, one that
  /// is there twice twice.
  Result<void> add_value(BytesView value, std::vector<Bytes>& components) const;
  /// Of a cell of kind kValue of the column: the whole value, or an element with its path.
  Result<void> add_cell(const storage::Cell& cell, std::vector<Bytes>& components) const;
  /// Of the column in a serialized partition key, or in an encoded clustering key (which may end
  /// before the column: nothing is added then).
  Result<void> add_partition_key(BytesView partition_key, std::vector<Bytes>& components) const;
  Result<void> add_clustering_key(BytesView clustering_key, std::vector<Bytes>& components) const;
  /// The value of the column in an encoded clustering key; unset where the key ends before it.
  Result<OptionalBytes> clustering_value(BytesView clustering_key) const;

  /// `column = value`, `CONTAINS value`, `CONTAINS KEY value`, as the target is. Of several words, here
  /// and in beginning(): all that sorts between them, too; of none: the whole index, which is not to be read
  /// (BoundFilter::is_barren()).
  Result<storage::IndexBounds> equal(BytesView value) const;
  /// `column[key] = value`.
  Result<storage::IndexBounds> entry(BytesView key, BytesView value) const;
  /// LIKE of a SASI index: values that begin with `text`, that end with it, that have it somewhere.
  Result<storage::IndexBounds> beginning(BytesView text) const;
  Result<storage::IndexBounds> ending(BytesView text) const;
  Result<storage::IndexBounds> having(BytesView text) const;
  /// From `lower` to `upper`, both inclusive; what is not set is no bound.
  Result<storage::IndexBounds> between(OptionalView lower, OptionalView upper) const;

 private:
  IndexTerms() = default;
  Result<void> add_term(const DataType& type, BytesView value,
                        std::vector<Bytes>& components) const;
  Result<void> add_sasi_terms(const DataType& type, BytesView text,
                              std::vector<Bytes>& components) const;
  std::vector<Bytes> looked_for(BytesView text) const;
  Result<void> add_element(const storage::Cell& cell, std::vector<Bytes>& components) const;
  Result<void> append_term(Bytes& component, const DataType& type, BytesView value) const;
  Result<void> add_path(const DataType& type, BytesView path, std::vector<Bytes>& components) const;
  void add_grams(BytesView text, std::vector<Bytes>& components) const;
  const DataType& term_type() const;

  uint16_t index_id_ = 0;
  IndexTarget target_ = IndexTarget::kSimple;
  ColumnKind kind_ = ColumnKind::kRegular;
  uint32_t column_id_ = 0, position_ = 0;
  size_t partition_columns_ = 0;
  TextAnalysis analysis_;
  bool is_sasi_text_ = false, has_grams_ = false;
  bool needs_every_word_ = false;
  size_t text_bytes_max_ = SIZE_MAX, words_bytes_max_ = SIZE_MAX;
  TypePtr type_;                     // of the column
  std::vector<TypePtr> clustering_;  // up to the column, when it is a clustering column
  std::vector<bool> descending_;     // of these
};

/// All components of a value of the index's column. As IndexTerms::of() and add_value().
Result<std::vector<Bytes>> index_components(const TableSchema& table, const IndexSchema& index,
                                            BytesView value);

}  // namespace tetrad::cql
