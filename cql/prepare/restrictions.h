// SPDX-License-Identifier: Apache-2.0
// WHERE: which partitions, which part of each, and what is tested row by row. Built once when the
// statement is prepared, bound to values for each request.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ring_position.h"
#include "cql/grammar/ast.h"
#include "cql/prepare/access_path.h"
#include "cql/prepare/expression_builder.h"
#include "storage/row/mutation.h"

namespace tetrad::cql {

/// Whose WHERE it is: each statement allows other relations. That of a view is all tests, of the
/// key of its base's rows (view_condition.h).
enum class WhereOf : uint8_t { kSelect, kUpdate, kDelete, kView };

/// A value for each of some columns: one expression each, or one of a tuple type.
struct TupleTerm {
  std::vector<ExpressionPtr> items;
  ExpressionPtr whole;
};

/// The function of a WHERE that reads the change feed, and what a marker for its value is called.
inline constexpr std::string_view kChangeFeedFunction = "COSMOS_CHANGEFEED_START_TIME";
inline constexpr std::string_view kChangeFeedMarker = "cosmos_changefeed_start_time()";

/// Everything that is said of one column, or of some clustering columns together.
struct Restriction {
  /// What is asked; which of the members below are set follows from it.
  enum class Kind : uint8_t { kEqual, kIn, kSlice, kContains, kNotIn, kNotContains, kLike };
  /// One end of a slice.
  struct Bound {
    TupleTerm value;
    bool inclusive = false;
    size_t column_count = 1;  // the bound is on that many of `columns`
  };
  Kind kind = Kind::kEqual;
  std::vector<const ColumnSchema*> columns;
  bool is_multi = false;  // written with a tuple
  TupleTerm equal;        // also the pattern of LIKE
  std::vector<TupleTerm> in_values;
  ExpressionPtr in_list;  // IN ?
  std::optional<Bound> lower, upper;
  std::vector<ExpressionPtr> contains, contains_key;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;  // m[k] = v

  const ColumnSchema& first() const { return *columns.front(); }
};
/// Owned by Restrictions; filters and the chosen index point to it.
using RestrictionPtr = std::unique_ptr<Restriction>;

/// A logical partition that a statement names.
struct PartitionTarget {
  RingPosition position;
  Bytes key;
};

/// WHERE with its values.
struct BoundPartitions {
  bool is_range = false;
  RingRange range;                          // is_range
  std::vector<PartitionTarget> partitions;  // otherwise, in the order of the answer

  /// Errors: kInvalid, a key without a byte.
  Result<void> check_keys() const;
};
/// Which part of each partition: exact rows, or ranges of encoded clustering keys.
struct BoundClustering {
  /// Nothing can match.
  bool nothing = false;
  /// Exact rows, ascending; when `exact` is set every clustering column has a value.
  bool exact = false;
  std::vector<Bytes> rows;
  /// Of exact rows: the values, for the cell of lossy keys; one list for each row.
  std::vector<std::vector<Bytes>> row_values;
  /// Otherwise: ascending and disjoint; empty means everything.
  std::vector<storage::ClusteringRange> ranges;
};

/// Tuples of one width, one behind the other.
struct BoundTuples {
  size_t width = 1;
  std::vector<BytesView> values;

  size_t size() const { return values.size() / width; }
  std::span<const BytesView> operator[](size_t i) const {
    return std::span(values).subspan(i * width, width);
  }
};

/// Where the text of a LIKE must stand in a value.
enum class LikeShape : uint8_t { kWhole, kPrefix, kSuffix, kPart };

/// A test of one row with its values.
class BoundFilter {
 public:
  /// Whether the row passes.
  bool matches(const RowView& row) const;
  /// How often the values of a row are looked at, at most.
  size_t test_count() const {
    const size_t tests = 1 + contains_.size() + contains_key_.size() + entries_.size();
    // Analysis of a text is work. That of words takes up to 400 ns a byte.
    return texts_.does_nothing() ? tests : (texts_.values.has_words() ? 400 : 32) * tests;
  }
  /// No row can pass: the value has no word.
  bool is_barren() const { return texts_.values.has_words() && compared_equal_.empty(); }

 private:
  friend class Restrictions;
  const Restriction* restriction_ = nullptr;
  std::vector<int32_t> slots_;
  BoundTuples tuples_;  // EQ: one; IN: any of them, ascending; LIKE: the text in the pattern
  LikeShape like_ = LikeShape::kWhole;
  std::vector<BytesView> lower_, upper_;
  std::vector<BytesView> contains_, contains_key_;
  std::vector<std::pair<BytesView, BytesView>> entries_;
  ComparedTexts texts_;
  // The values above as an index analyses them; empty where texts_ does nothing.
  std::vector<BytesView> compared_equal_, compared_contains_, compared_contains_key_;

  /// The last step of binding: analyses the values, which must be complete. Errors: kInvalid.
  Result<void> prepare_texts(const ComparedTexts& texts, base::Arena& arena);
  bool matches_texts(BytesView value) const;
  bool is_like(BytesView term, BytesView wanted) const;
  bool matches_sasi_terms(BytesView value) const;
  bool matches_elements(BytesView collection) const;
  Result<void> read_pattern(BytesView pattern, const TableSchema& table);
};

/// WHERE of one statement, checked as a whole. Immutable after build(); belongs to the statement,
/// whose table its columns are of. bind_ functions may run on any thread.
class Restrictions {
 public:
  /// Checks the relations one by one and together. `only_static`: a SELECT of static columns and
  /// partition key only, or a modification of static columns only. `nearest_by`: the column of
  /// ORDER BY ... ANN OF; null: there is none.
  static Result<Restrictions> build(const std::vector<ast::Relation>& relations,
                                    ExpressionBuilder& builder, WhereOf of, bool allow_filtering,
                                    bool only_static, const ColumnSchema* nearest_by = nullptr);

  /// Values that a token() or partition key restriction gives; sorted as IN lists answer.
  Result<BoundPartitions> bind_partitions(EvalContext& context, uint32_t product_max) const;
  /// `product_max` bounds the combinations of several INs. Errors: kInvalid.
  Result<BoundClustering> bind_clustering(EvalContext& context, uint32_t product_max) const;
  /// The tests of rows, in the order in which errors are reported. They refer to this object, the
  /// bound values and the context's arena. Errors: kInvalid.
  Result<std::vector<BoundFilter>> bind_filters(EvalContext& context) const;
  /// The part of an index to look at, from the values of `filters`; unset: no index is used.
  Result<std::optional<storage::IndexBounds>> bind_index(
      std::span<const BoundFilter> filters) const;

  /// Full partition keys are named (no scan).
  bool has_partitions() const { return !is_key_range_; }
  bool is_key_range() const { return is_key_range_; }
  bool has_partition_key_in() const;
  /// Anything is said of the partition key, token() included.
  bool has_partition_key() const;
  bool on_token() const { return on_token_; }
  bool has_clustering() const;
  bool has_clustering_slice() const;
  bool needs_filtering() const { return !filters_.empty(); }
  /// An index takes part, as Cassandra has it: what it serves needs no ALLOW FILTERING.
  bool uses_index() const { return uses_index_; }
  AccessKind access() const {
    if (is_key_range_ || on_token_) return index_ ? AccessKind::kIndex : AccessKind::kRange;
    return index_ ? AccessKind::kPartitionIndex : AccessKind::kPartitions;
  }
  const IndexSchema* used_index() const { return index_ ? index_->index : nullptr; }
  /// Whether rows are left out that no key names: by filters, or of each partition that a scan
  /// meets.
  bool leaves_out_rows() const {
    return needs_filtering() || ((is_key_range_ || on_token_) && has_clustering());
  }
  /// The same, but for what the index that is used answers by itself: EXPLAIN's "filters".
  bool leaves_out_rows_beside_index() const {
    if (!index_) return leaves_out_rows();
    return std::ranges::any_of(
        filters_, [&](const Filter& filter) { return filter.restriction != index_->restriction; });
  }
  /// A scan with restricted clustering columns, or a use of indexes that do not serve everything,
  /// that was not allowed to filter. Checked last, as Cassandra does.
  Result<void> check_filtering_allowed() const;
  bool all_clustering_equal() const;
  /// Non-key columns that are restricted, static ones left out.
  bool has_regular() const;
  /// Whether anything is said of the column, token() of the partition key included.
  bool is_restricted(const ColumnSchema& column) const;
  /// Restricted by one value (EQ).
  bool is_equal(const ColumnSchema& column) const;
  /// Restricted by IN of one column or several.
  bool is_in(const ColumnSchema& column) const;
  /// Every partition key column has a plain equality: the fast way.
  bool single_partition() const { return single_partition_; }
  /// The timestamp of COSMOS_CHANGEFEED_START_TIME() = …; null without one. Beside it nothing is
  /// restricted, or the whole partition key by equalities.
  const Expression* change_feed() const { return change_feed_.get(); }
  /// The equality terms of the partition key (single_partition()) and of the clustering key
  /// (all_clustering_equal()), in order; null where the value comes from a tuple marker.
  const Expression* partition_term(size_t position) const;
  const Expression* clustering_term(size_t position) const;

 private:
  class Builder;
  /// A test of rows without its values.
  struct Filter {
    const Restriction* restriction;
    std::vector<int32_t> slots;
    ComparedTexts texts;
  };

  /// bind_clustering() where every clustering column has a plain equality.
  Result<void> bind_whole_key(EvalContext& context, BoundClustering& bound) const;
  /// Gives a test, whose restriction is set, its values. Errors: kInvalid.
  Result<void> bind_filter(EvalContext& context, BoundFilter& test) const;

  const TableSchema* table_ = nullptr;
  WhereOf of_ = WhereOf::kSelect;
  // What the relations say, each restriction in exactly one place.
  std::vector<RestrictionPtr> partition_;   // by position; null: none
  RestrictionPtr token_;                    // on all partition key columns
  std::vector<RestrictionPtr> clustering_;  // by place of the first column, ascending
  std::vector<RestrictionPtr> others_;      // regular and static
  std::vector<RestrictionPtr> negated_;     // NOT IN … of key columns; filters always
  // What follows from them: the tests of rows and the index to look at. Both point to restrictions
  // above.
  std::vector<Filter> filters_;
  std::optional<IndexAccess> index_;
  ExpressionPtr change_feed_;
  size_t clustering_prefix_ = 0;  // of clustering_: those that select; the rest are filters
  // is_key_range_: the read goes over the ring. on_token_: token() says where, and not only tests
  // keys.
  bool is_key_range_ = false, on_token_ = false, single_partition_ = false;
  bool lacks_allow_filtering_ = false, filtering_enabled_ = true;
  bool uses_index_ = false;
};

/// Sorted, overlaps and neighbours joined, empty ones dropped.
std::vector<storage::ClusteringRange> normalized(std::vector<storage::ClusteringRange> ranges);
std::vector<storage::ClusteringRange> intersection(const std::vector<storage::ClusteringRange>& a,
                                                   const std::vector<storage::ClusteringRange>& b);

}  // namespace tetrad::cql
