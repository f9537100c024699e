// SPDX-License-Identifier: Apache-2.0
// The part of each partition that WHERE names: whole clustering keys, or ranges of them.
//
// Keys are ordered bytes (types/ordered_encoding.h): a prefix of columns is a prefix of bytes, and
// every key that begins with prefix P lies in [P, P + kAfter). So each restriction becomes
// half-open intervals of bytes, and AND is their intersection.
//
// A bound on several columns is a set of intervals. (a, b) > (1, 2) is: a = 1 and b > 2, or a > 1;
// each is one interval of encoded keys, whatever the columns' directions are, and where all point
// the same way the intervals touch and join into one.
//
// bind_clustering(): each equality or IN makes the known prefixes longer, by one for each of its
// values; a slice ends them, as ranges under each prefix. Prefixes of all columns are whole keys.
#include <algorithm>
#include <utility>

#include "cql/prepare/bound_values.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

using storage::ClusteringRange;
using Ranges = std::vector<ClusteringRange>;

// Bounds the keys that one read or write names; beyond it they are taken as intervals.
constexpr size_t kExactRowsMax = 65'536;
// Above each byte that a component of a key begins with: 0x10 to 0x30, inverted in descending
// columns (types/ordered_encoding.h).
constexpr char kAfter = '\xFF';

/// The encoded values of the first clustering columns, and the values as they were bound.
struct KeyPrefix {
  Bytes key;
  std::vector<Bytes> values;
};

/// One side of a slice under a prefix, as intervals.
// See the top of the file: for (a, b) > (x, y) the loop adds one interval for each column, under
// the equality of the columns before it. A descending column swaps below and above, since its bytes
// are inverted.
Result<Ranges> side_ranges(const Bytes& prefix, const Restriction& restriction,
                           const Restriction::Bound& bound, bool is_lower, EvalContext& context) {
  const std::span<const ColumnSchema* const> columns =
      std::span(restriction.columns).first(bound.column_count);
  TETRAD_TRY(const auto values,
             evaluate_tuple(bound.value, restriction.is_multi, columns, context));
  if (!restriction.is_multi && !values[0]) {
    // Null stands before everything, whichever way the column is ordered.
    Ranges ranges;
    if (is_lower != columns[0]->descending) ranges.push_back({prefix, prefix + kAfter});
    return ranges;
  }
  Ranges ranges;
  Bytes equal = prefix;  // the columns before the one that differs
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) return null_in_condition(*columns[i]);
    // Only the last column may be equal; equality of an earlier one is the prefix of the next
    // interval.
    const bool inclusive = bound.inclusive && i + 1 == values.size();
    Bytes at = equal;
    TETRAD_TRY_VOID(append_ordered(at, *columns[i]->type, values[i], columns[i]->descending));
    const Bytes after = at + kAfter;
    if (is_lower != columns[i]->descending) {
      ranges.push_back({inclusive ? at : after, equal + kAfter});
    } else {
      ranges.push_back({equal, inclusive ? after : at});
    }
    equal = std::move(at);
  }
  return normalized(std::move(ranges));
}

/// The ranges of a slice under each prefix. `is_write`: the statement is an UPDATE or DELETE.
Result<Ranges> slice_ranges(const std::vector<KeyPrefix>& prefixes, const Restriction& restriction,
                            bool is_write, EvalContext& context) {
  Ranges ranges;
  // Of the bounds of a write: how many there are, and how many of them are null.
  size_t bounds = 0, nulls = 0;
  if (is_write && !restriction.is_multi) {
    for (const auto* side : {&restriction.lower, &restriction.upper}) {
      if (!*side) continue;
      TETRAD_TRY(const auto values,
                 evaluate_tuple((*side)->value, false, restriction.columns, context));
      ++bounds;
      nulls += values[0] ? 0 : 1;
    }
  }
  for (const KeyPrefix& prefix : prefixes) {
    // All keys under the prefix, then narrowed by each side.
    Ranges under{{prefix.key, prefix.key + kAfter}};
    if (restriction.lower) {
      TETRAD_TRY(const Ranges side,
                 side_ranges(prefix.key, restriction, *restriction.lower, true, context));
      under = intersection(under, side);
    }
    if (restriction.upper) {
      TETRAD_TRY(const Ranges side,
                 side_ranges(prefix.key, restriction, *restriction.upper, false, context));
      under = intersection(under, side);
    }
    std::ranges::move(under, std::back_inserter(ranges));
  }
  // Cassandra reads with such a bound, and fails to write with it but where nothing is meant.
  if (nulls != 0 && (nulls == bounds || !ranges.empty())) {
    return null_in_condition(restriction.first());
  }
  return ranges;
}

/// Each prefix with each value of an equality or IN behind it. Errors: kInvalid, more than
/// `product_max`.
Result<std::vector<KeyPrefix>> longer_prefixes(const std::vector<KeyPrefix>& prefixes,
                                               const Restriction& restriction, uint32_t product_max,
                                               EvalContext& context) {
  TETRAD_TRY(const auto tuples, tuples_of(restriction, context, false));
  // Before the list is made.
  TETRAD_TRY_VOID(check_product(prefixes.size() * tuples.size(), product_max));
  std::vector<KeyPrefix> longer;
  longer.reserve(prefixes.size() * tuples.size());
  for (const KeyPrefix& prefix : prefixes) {
    for (size_t t = 0; t < tuples.size(); ++t) {
      const std::span<const BytesView> tuple = tuples[t];
      KeyPrefix next = prefix;
      for (size_t i = 0; i < tuple.size(); ++i) {
        TETRAD_TRY_VOID(append_ordered(next.key, *restriction.columns[i]->type, tuple[i],
                                       restriction.columns[i]->descending));
        next.values.emplace_back(tuple[i]);
      }
      longer.push_back(std::move(next));
    }
  }
  return longer;
}

/// A row of a compact table by a part of its key: the columns from `covered` on are null.
Result<void> complete_with_nulls(std::span<const ColumnSchema> rest,
                                 std::vector<KeyPrefix>& prefixes) {
  for (KeyPrefix& prefix : prefixes) {
    for (const ColumnSchema& column : rest) {
      TETRAD_TRY_VOID(append_ordered(prefix.key, *column.type, std::nullopt, column.descending));
    }
  }
  return {};
}

/// The prefixes are whole keys: the rows that are named.
void take_rows(std::vector<KeyPrefix> prefixes, BoundClustering& bound) {
  bound.exact = true;
  // By encoded key: descending columns turn the order of values around, and the store wants keys
  // ascending.
  std::ranges::sort(prefixes, {}, &KeyPrefix::key);
  for (KeyPrefix& prefix : prefixes) {
    bound.rows.push_back(std::move(prefix.key));
    bound.row_values.push_back(std::move(prefix.values));
  }
  bound.nothing = bound.rows.empty();
}

}  // namespace

// Sorted, none empty, none touching another: what stores expect of a read command.
std::vector<ClusteringRange> normalized(std::vector<ClusteringRange> ranges) {
  std::erase_if(ranges, [](const ClusteringRange& range) { return range.empty(); });
  std::ranges::sort(ranges, {}, &ClusteringRange::start);
  Ranges joined;
  for (auto& range : ranges) {
    if (!joined.empty() && range.start <= joined.back().end) {
      if (joined.back().end < range.end) joined.back().end = std::move(range.end);
    } else {
      joined.push_back(std::move(range));
    }
  }
  return joined;
}

// Both are normalized; so is the result.
std::vector<ClusteringRange> intersection(const std::vector<ClusteringRange>& a,
                                          const std::vector<ClusteringRange>& b) {
  Ranges both;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    ClusteringRange range{std::max(a[i].start, b[j].start), std::min(a[i].end, b[j].end)};
    if (!range.empty()) both.push_back(std::move(range));
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return both;
}

// One row by its whole key, the usual way: one encoded key is built and nothing is sorted.
Result<void> Restrictions::bind_whole_key(EvalContext& context, BoundClustering& bound) const {
  Bytes& key = bound.rows.emplace_back();
  auto& values = bound.row_values.emplace_back();
  values.reserve(clustering_.size());
  for (const auto& restriction : clustering_) {
    const ColumnSchema& column = restriction->first();
    TETRAD_TRY(const BoundValue value, restriction->equal.items[0]->evaluate(context));
    if (value.is_unset()) return unset_in_condition(column);
    if (value.is_null()) return null_in_condition(column);
    TETRAD_TRY_VOID(append_ordered(key, *column.type, value.bytes, column.descending));
    values.emplace_back(value.bytes);
  }
  bound.exact = true;
  return {};
}

Result<BoundClustering> Restrictions::bind_clustering(EvalContext& context,
                                                      uint32_t product_max) const {
  BoundClustering bound;
  const size_t clustering_count = table_->clustering().size();
  if (clustering_prefix_ == clustering_count && clustering_count == clustering_.size() &&
      clustering_count != 0 && all_clustering_equal() &&
      std::ranges::none_of(clustering_, [](const RestrictionPtr& r) { return r->is_multi; })) {
    TETRAD_TRY_VOID(bind_whole_key(context, bound));
    return bound;
  }
  std::vector<KeyPrefix> prefixes(1);
  size_t covered = 0;  // clustering columns that the prefixes have
  Ranges ranges;
  bool sliced = false;
  for (size_t n = 0; n < clustering_prefix_; ++n) {
    const Restriction& restriction = *clustering_[n];
    if (restriction.kind == Restriction::Kind::kSlice) {
      TETRAD_TRY(ranges, slice_ranges(prefixes, restriction, of_ != WhereOf::kSelect, context));
      sliced = true;
      break;  // nothing selects after a slice
    }
    TETRAD_TRY(prefixes, longer_prefixes(prefixes, restriction, product_max, context));
    covered += restriction.columns.size();
  }
  if (!sliced && clustering_prefix_ == 0) return bound;  // everything
  if (of_ == WhereOf::kUpdate && covered < clustering_count) {
    TETRAD_TRY_VOID(complete_with_nulls(table_->clustering().subspan(covered), prefixes));
    covered = clustering_count;
  }
  if (!sliced && covered == clustering_count && prefixes.size() <= kExactRowsMax) {
    take_rows(std::move(prefixes), bound);
    return bound;
  }
  if (!sliced) {
    for (KeyPrefix& prefix : prefixes) ranges.push_back({prefix.key, prefix.key + kAfter});
  }
  bound.ranges = normalized(std::move(ranges));
  bound.nothing = bound.ranges.empty();
  return bound;
}

}  // namespace tetrad::cql
