// SPDX-License-Identifier: Apache-2.0
// WHERE with its values: partition keys, byte ranges of clustering keys, row filters.
//
// A bound on several columns is a set of intervals. (a, b) > (1, 2) is: a = 1 and b > 2, or a > 1;
// each is one interval of encoded keys, whatever the columns' directions are, and where all point
// the same way the intervals touch and join into one.
//
// Keys are ordered bytes (types/ordered_encoding.h): a prefix of columns is a prefix of bytes, and
// every key that begins with prefix P lies in [P, P + kAfter). So each restriction becomes
// half-open intervals of bytes, and AND is their intersection.
//
// bind_partitions(): a range of the ring, one key, or the product of IN lists in the order of their
// values. bind_clustering(): whole keys (exact), or intervals. bind_filters(): values for the
// tests. Null and UNSET have another meaning in each of the three, each as in Cassandra, and the
// texts of their errors are Cassandra's.
#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "cql/prepare/restrictions.h"
#include "cql/types/compare.h"
#include "cql/types/empty_value.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

using storage::ClusteringRange;
using Ranges = std::vector<ClusteringRange>;

// Bounds the keys that one read or write names; beyond it they are taken as intervals.
constexpr size_t kExactRowsMax = 65'536;
// Above each byte that a component of a key begins with: 0x10 to 0x30, inverted in descending
// columns (types/ordered_encoding.h).
constexpr char kAfter = '\xFF';

std::unexpected<Error> invalid_null(const ColumnSchema& column) {
  return fail(ErrorCode::kInvalid, "Invalid null value in condition for column {}", column.name);
}
std::unexpected<Error> invalid_unset(const ColumnSchema& column) {
  return fail(ErrorCode::kInvalid, "Invalid unset value for column {}", column.name);
}

/// The values of a tuple term, one for each column; null allowed.
// The views live as long as the bound values and the context's arena.
Result<std::vector<OptionalView>> evaluate(const TupleTerm& term, bool is_multi,
                                           std::span<const ColumnSchema* const> columns,
                                           EvalContext& context) {
  std::vector<OptionalView> values;
  if (term.whole) {
    TETRAD_TRY(const BoundValue whole, term.whole->evaluate(context));
    if (whole.is_unset()) return invalid_unset(*columns.front());
    if (whole.is_null()) return invalid_null(*columns.front());
    TETRAD_TRY(values, split_tuple(*term.whole->type(), whole.bytes));
    return values;
  }
  values.reserve(term.items.size());
  for (size_t i = 0; i < term.items.size(); ++i) {
    TETRAD_TRY(const BoundValue value, term.items[i]->evaluate(context));
    if (value.is_unset()) {
      if (!is_multi) return invalid_unset(*columns[i]);
      return fail(ErrorCode::kInvalid, "Invalid unset value for tuple field number {}", i);
    }
    values.push_back(optional_view(value));
  }
  return values;
}

/// As evaluate(), for places where null is an error.
Result<std::vector<BytesView>> evaluate_all(const Restriction& restriction, const TupleTerm& term,
                                            EvalContext& context) {
  TETRAD_TRY(const auto values, evaluate(term, restriction.is_multi, restriction.columns, context));
  std::vector<BytesView> all;
  all.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      if (restriction.is_multi && restriction.kind == Restriction::Kind::kIn) {
        std::string names;
        for (const ColumnSchema* column : restriction.columns) {
          names += (names.empty() ? "" : ", ") + column->name;
        }
        return fail(ErrorCode::kInvalid, "Invalid null value in condition for columns: [{}]",
                    names);
      }
      if (restriction.is_multi && restriction.kind == Restriction::Kind::kEqual) {
        return fail(ErrorCode::kInvalid, "Invalid null value for column {}",
                    restriction.columns[i]->name);
      }
      return invalid_null(*restriction.columns[i]);
    }
    all.push_back(*values[i]);
  }
  return all;
}

/// Whether the list that is bound to the marker of IN ? has a null in it.
// Evaluating the list would refuse a null with another text, so it is looked for first.
bool has_null(const Expression& marker, EvalContext& context) {
  const BoundValue& bound = context.bound[static_cast<size_t>(marker.marker_index())];
  if (!bound.has_bytes()) return false;
  auto reader = CollectionReader::open(bound.bytes, 1);
  while (reader && !reader->at_end()) {
    const auto element = reader->next();
    if (!element) return false;  // evaluation reports it
    if (!*element) return true;
  }
  return false;
}

/// Sorts by value and keeps each once.
// Cassandra reads each value of an IN once, in the order of the type; the sorted list also lets
// filters search by halves.
void order_tuples(const Restriction& restriction, BoundTuples& tuples) {
  const size_t width = tuples.width;
  const auto order = [&](const BytesView* a, const BytesView* b) {
    for (size_t i = 0; i < width; ++i) {
      const int difference = compare(*restriction.columns[i]->type, a[i], b[i]);
      if (difference != 0) return difference;
    }
    return 0;
  };
  std::vector<BytesView>& values = tuples.values;
  if (width == 1) {
    std::ranges::stable_sort(
        values, [&](const BytesView& a, const BytesView& b) { return order(&a, &b) < 0; });
    const auto same = std::ranges::unique(
        values, [&](const BytesView& a, const BytesView& b) { return order(&a, &b) == 0; });
    values.erase(same.begin(), same.end());
    return;
  }
  std::vector<const BytesView*> places;
  places.reserve(tuples.size());
  for (size_t i = 0; i < tuples.size(); ++i) places.push_back(tuples[i].data());
  std::ranges::stable_sort(places, [&](const auto* a, const auto* b) { return order(a, b) < 0; });
  std::vector<BytesView> ordered;
  ordered.reserve(values.size());
  for (const BytesView* place : places) {
    if (ordered.empty() || order(&ordered[ordered.size() - width], place) != 0) {
      ordered.insert(ordered.end(), place, place + width);
    }
  }
  values = std::move(ordered);
}

/// The tuples of an EQ or IN restriction, sorted by value, each once. `filters`: rows are tested.
// As keys, null is an error. As a test, the list ends at the first null, as in Cassandra.
Result<BoundTuples> tuples_of(const Restriction& restriction, EvalContext& context, bool filters) {
  BoundTuples tuples;
  tuples.width = restriction.columns.size();
  if (restriction.kind == Restriction::Kind::kEqual) {
    TETRAD_TRY(tuples.values, evaluate_all(restriction, restriction.equal, context));
    return tuples;
  }
  if (restriction.in_list) {
    if (has_null(*restriction.in_list, context)) return invalid_null(restriction.first());
    TETRAD_TRY(const BoundValue list, restriction.in_list->evaluate(context));
    if (list.is_unset()) return invalid_unset(restriction.first());
    if (list.is_null()) {
      return fail(ErrorCode::kInvalid, "Invalid null value for column {}",
                  restriction.first().name);
    }
    TETRAD_TRY(CollectionReader reader, CollectionReader::open(list.bytes, 1));
    while (!reader.at_end()) {
      TETRAD_TRY(const OptionalView element, reader.next());
      const DataType& type = *restriction.in_list->type()->element();
      if (filters && !restriction.is_multi) {
        if (!element) break;
        tuples.values.push_back(*element);
        continue;
      }
      if (counts_as_null(type, element)) return invalid_null(restriction.first());
      if (!restriction.is_multi) {
        tuples.values.push_back(*element);
        continue;
      }
      TETRAD_TRY(const auto fields, split_tuple(type, *element));
      for (size_t i = 0; i < fields.size(); ++i) {
        if (!fields[i]) {
          return fail(ErrorCode::kInvalid, "Invalid null value for column {}",
                      restriction.columns[i]->name);
        }
        tuples.values.push_back(*fields[i]);
      }
    }
  } else {
    const bool is_test = filters && restriction.kind == Restriction::Kind::kIn;
    if (!is_test && !restriction.is_multi) {  // a null is reported before an unset value
      bool has_null = false;
      for (const TupleTerm& term : restriction.in_values) {
        TETRAD_TRY(const BoundValue value, term.items[0]->evaluate(context));
        has_null |= value.is_null();
      }
      if (has_null) return invalid_null(restriction.first());
    }
    for (const TupleTerm& term : restriction.in_values) {
      if (is_test && !restriction.is_multi) {
        // As Cassandra: unset stands for a value without bytes, and nothing is looked at behind
        // a null.
        TETRAD_TRY(const BoundValue value, term.items[0]->evaluate(context));
        if (value.is_null()) break;
        tuples.values.push_back(value.is_unset() ? BytesView() : value.bytes);
        continue;
      }
      TETRAD_TRY(const auto values, evaluate_all(restriction, term, context));
      tuples.values.insert(tuples.values.end(), values.begin(), values.end());
    }
  }
  order_tuples(restriction, tuples);
  return tuples;
}

// Several INs multiply; the product must not take unbounded memory.
Result<void> check_product(size_t product, uint32_t max) {
  if (product <= max) return {};
  return fail(ErrorCode::kInvalid,
              "The cartesian product of the IN restrictions is too large: more than {} "
              "combinations",
              max);
}

/// One side of a slice under a prefix, as intervals.
// See the top of the file: for (a, b) > (x, y) the loop adds one interval for each column, under
// the equality of the columns before it. A descending column swaps below and above, since its bytes
// are inverted.
Result<Ranges> side_ranges(const Bytes& prefix, const Restriction& restriction,
                           const Restriction::Bound& bound, bool is_lower, EvalContext& context) {
  const std::span<const ColumnSchema* const> columns =
      std::span(restriction.columns).first(bound.column_count);
  TETRAD_TRY(const auto values, evaluate(bound.value, restriction.is_multi, columns, context));
  if (!restriction.is_multi && !values[0]) {
    // Null stands before everything, whichever way the column is ordered.
    Ranges ranges;
    if (is_lower != columns[0]->descending) ranges.push_back({prefix, prefix + kAfter});
    return ranges;
  }
  Ranges ranges;
  Bytes equal = prefix;  // the columns before the one that differs
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) return invalid_null(*columns[i]);
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

Result<void> BoundPartitions::check_keys() const {
  for (const PartitionTarget& target : partitions) {
    if (target.key.empty()) return fail(ErrorCode::kInvalid, "Key may not be empty");
  }
  return {};
}

Result<BoundPartitions> Restrictions::bind_partitions(EvalContext& context,
                                                      uint32_t product_max) const {
  BoundPartitions bound;
  RingRange range;
  if (token_) {
    const auto token_value = [&](const TupleTerm& term) -> Result<int64_t> {
      TETRAD_TRY(const BoundValue value, term.items[0]->evaluate(context));
      if (value.is_unset()) {
        return fail(ErrorCode::kInvalid, "Invalid unset value for partition key token");
      }
      const auto token = value.has_bytes() ? read_bigint(value.bytes) : std::nullopt;
      if (!token) return fail(ErrorCode::kInvalid, "Invalid null token value");
      return *token;
    };
    // The minimum token stands for both ends of the ring, as in Cassandra, but for a test of keys.
    constexpr int64_t kMinimum = partitioner::kMinimumToken;
    // The position before all keys of the token. Positions are 128 bits with the token in front, so
    // a token is an interval of positions.
    const auto before = [](int64_t token) {
      return token == kMinimum ? RingPosition::lowest() : RingPosition::end_of_token(token - 1);
    };
    const auto is_end = [&](int64_t token) { return token == kMinimum && is_key_range_; };
    if (token_->kind == Restriction::Kind::kEqual) {
      TETRAD_TRY(const int64_t token, token_value(token_->equal));
      if (!is_end(token)) range = {before(token), RingPosition::end_of_token(token)};
    } else {
      if (token_->lower) {
        TETRAD_TRY(const int64_t token, token_value(token_->lower->value));
        range.start = token_->lower->inclusive || is_end(token) ? before(token)
                                                                : RingPosition::end_of_token(token);
      }
      if (token_->upper) {
        TETRAD_TRY(const int64_t token, token_value(token_->upper->value));
        if (!is_end(token)) {
          range.end = token_->upper->inclusive ? RingPosition::end_of_token(token) : before(token);
        }
      }
    }
  }
  if (is_key_range_) {
    bound.is_range = true;
    bound.range = range;
    return bound;
  }
  if (single_partition_) {
    PartitionTarget target;
    // No allocation for keys of usual width.
    std::array<BytesView, 8> few;
    std::vector<BytesView> many(partition_.size() > few.size() ? partition_.size() : 0);
    const std::span<BytesView> components =
        many.empty() ? std::span(few).first(partition_.size()) : std::span(many);
    for (size_t i = 0; i < partition_.size(); ++i) {
      const ColumnSchema& column = partition_[i]->first();
      TETRAD_TRY(const BoundValue value, partition_[i]->equal.items[0]->evaluate(context));
      if (value.is_unset()) return invalid_unset(column);
      if (value.is_null()) return invalid_null(column);
      components[i] = value.bytes;
    }
    TETRAD_TRY_VOID(partitioner::append_partition_key(target.key, components));
    target.position = partitioner::position_of(target.key);
    bound.partitions.push_back(std::move(target));
    return bound;
  }
  std::vector<BoundTuples> choices;
  size_t product = 1;
  for (const auto& restriction : partition_) {
    TETRAD_TRY(auto values, tuples_of(*restriction, context, false));
    product *= values.size();
    TETRAD_TRY_VOID(check_product(product, product_max));
    choices.push_back(std::move(values));
  }
  // Counts through the product like a number whose last digit turns fastest: keys come in the order
  // of the IN lists.
  std::vector<size_t> at(choices.size(), 0);
  std::vector<BytesView> components(choices.size());
  for (size_t n = 0; n < product; ++n) {
    for (size_t i = 0; i < choices.size(); ++i) components[i] = choices[i][at[i]][0];
    PartitionTarget target;
    TETRAD_TRY_VOID(partitioner::append_partition_key(target.key, components));
    target.position = partitioner::position_of(target.key);
    // Beside the whole key a range may go round the ring.
    const bool wraps = range.end < range.start;
    const bool inside = wraps ? range.start <= target.position || target.position < range.end
                              : range.contains(target.position);
    if (!token_ || inside) bound.partitions.push_back(std::move(target));
    for (size_t i = choices.size(); i-- > 0;) {
      if (++at[i] < choices[i].size()) break;
      at[i] = 0;
    }
  }
  return bound;
}

Result<BoundClustering> Restrictions::bind_clustering(EvalContext& context,
                                                      uint32_t product_max) const {
  BoundClustering bound;
  const size_t clustering_count = table_->clustering().size();
  // The usual way: one row by its whole key.
  if (clustering_prefix_ == clustering_count && clustering_count == clustering_.size() &&
      clustering_count != 0 && all_clustering_equal() &&
      std::ranges::none_of(clustering_, [](const RestrictionPtr& r) { return r->is_multi; })) {
    Bytes& key = bound.rows.emplace_back();
    auto& values = bound.row_values.emplace_back();
    values.reserve(clustering_count);
    for (const auto& restriction : clustering_) {
      const ColumnSchema& column = restriction->first();
      TETRAD_TRY(const BoundValue value, restriction->equal.items[0]->evaluate(context));
      if (value.is_unset()) return invalid_unset(column);
      if (value.is_null()) return invalid_null(column);
      TETRAD_TRY_VOID(append_ordered(key, *column.type, value.bytes, column.descending));
      values.emplace_back(value.bytes);
    }
    bound.exact = true;
    return bound;
  }
  struct Prefix {
    Bytes key;
    std::vector<Bytes> values;
  };
  std::vector<Prefix> prefixes(1);
  size_t covered = 0;
  Ranges ranges;
  bool sliced = false;
  for (size_t n = 0; n < clustering_prefix_; ++n) {
    const Restriction& restriction = *clustering_[n];
    if (restriction.kind == Restriction::Kind::kSlice) {
      // Of the bounds of a write: how many there are, and how many of them are null.
      size_t bounds = 0, nulls = 0;
      if (of_ != WhereOf::kSelect && !restriction.is_multi) {
        for (const auto* side : {&restriction.lower, &restriction.upper}) {
          if (!*side) continue;
          TETRAD_TRY(const auto values,
                     evaluate((*side)->value, false, restriction.columns, context));
          ++bounds;
          nulls += values[0] ? 0 : 1;
        }
      }
      for (const Prefix& prefix : prefixes) {
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
        return invalid_null(restriction.first());
      }
      sliced = true;
      break;  // nothing selects after a slice
    }
    TETRAD_TRY(const auto tuples, tuples_of(restriction, context, false));
    // Before the list is made.
    TETRAD_TRY_VOID(check_product(prefixes.size() * tuples.size(), product_max));
    std::vector<Prefix> longer;
    longer.reserve(prefixes.size() * tuples.size());
    for (const Prefix& prefix : prefixes) {
      for (size_t t = 0; t < tuples.size(); ++t) {
        const std::span<const BytesView> tuple = tuples[t];
        Prefix next = prefix;
        for (size_t i = 0; i < tuple.size(); ++i) {
          TETRAD_TRY_VOID(append_ordered(next.key, *restriction.columns[i]->type, tuple[i],
                                         restriction.columns[i]->descending));
          next.values.emplace_back(tuple[i]);
        }
        longer.push_back(std::move(next));
      }
    }
    prefixes = std::move(longer);
    covered += restriction.columns.size();
  }
  if (!sliced && clustering_prefix_ == 0) return bound;  // everything
  if (of_ == WhereOf::kUpdate && covered < clustering_count) {
    // A row of a compact table by a part of its key: the rest is null.
    for (Prefix& prefix : prefixes) {
      for (const ColumnSchema& column : table_->clustering().subspan(covered)) {
        TETRAD_TRY_VOID(append_ordered(prefix.key, *column.type, std::nullopt, column.descending));
      }
    }
    covered = clustering_count;
  }
  if (!sliced && covered == clustering_count && prefixes.size() <= kExactRowsMax) {
    bound.exact = true;
    // By encoded key: descending columns turn the order of values around, and the store wants keys
    // ascending.
    std::ranges::sort(prefixes, {}, &Prefix::key);
    for (Prefix& prefix : prefixes) {
      bound.rows.push_back(std::move(prefix.key));
      bound.row_values.push_back(std::move(prefix.values));
    }
    bound.nothing = bound.rows.empty();
    return bound;
  }
  if (!sliced) {
    for (Prefix& prefix : prefixes) ranges.push_back({prefix.key, prefix.key + kAfter});
  }
  bound.ranges = normalized(std::move(ranges));
  bound.nothing = bound.ranges.empty();
  return bound;
}

// In the order of filters_; the first error is that of the first filter, as in Cassandra.
Result<std::vector<BoundFilter>> Restrictions::bind_filters(EvalContext& context) const {
  std::vector<BoundFilter> bound;
  bound.reserve(filters_.size());
  const auto value_of = [&](const ExpressionPtr& expression, const ColumnSchema& column,
                            std::string_view what = "value") -> Result<BytesView> {
    TETRAD_TRY(const BoundValue value, expression->evaluate(context));
    if (!value.has_bytes()) {
      return fail(ErrorCode::kInvalid, "Unsupported {} {} for column {}",
                  value.is_unset() ? "unset" : "null", what, column.name);
    }
    return value.bytes;
  };
  for (const Filter& filter : filters_) {
    const Restriction& restriction = *filter.restriction;
    BoundFilter test;
    test.restriction_ = &restriction;
    test.slots_ = filter.slots;
    const ColumnSchema& column = restriction.first();
    const auto side = [&](const Restriction::Bound& from,
                          std::vector<BytesView>& to) -> Result<void> {
      if (!restriction.is_multi) {
        TETRAD_TRY(const BytesView value, value_of(from.value.items[0], column));
        to.push_back(value);
        return {};
      }
      TETRAD_TRY(const auto values,
                 evaluate(from.value, true, std::span(restriction.columns).first(from.column_count),
                          context));
      for (const OptionalView& value : values) {
        if (!value) {
          return fail(ErrorCode::kInvalid, "Unsupported null value for column {}", column.name);
        }
        to.push_back(*value);
      }
      return {};
    };
    switch (restriction.kind) {
      case Restriction::Kind::kEqual:
        if (restriction.is_multi) {
          TETRAD_TRY(test.tuples_, tuples_of(restriction, context, true));
        } else {
          TETRAD_TRY(const BytesView value, value_of(restriction.equal.items[0], column));
          test.tuples_.values.push_back(value);
        }
        break;
      case Restriction::Kind::kNotIn:
      case Restriction::Kind::kIn: {
        TETRAD_TRY(test.tuples_, tuples_of(restriction, context, true));
        break;
      }
      case Restriction::Kind::kSlice:
        if (restriction.lower) TETRAD_TRY_VOID(side(*restriction.lower, test.lower_));
        if (restriction.upper) TETRAD_TRY_VOID(side(*restriction.upper, test.upper_));
        break;
      case Restriction::Kind::kLike: {
        TETRAD_TRY(const BoundValue value, restriction.equal.items[0]->evaluate(context));
        BytesView pattern;  // as Cassandra: unset is a pattern without text
        if (!value.is_unset()) {
          TETRAD_TRY(pattern, value_of(restriction.equal.items[0], column));
        }
        TETRAD_TRY_VOID(test.read_pattern(pattern, *table_));
        break;
      }
      case Restriction::Kind::kNotContains:
      case Restriction::Kind::kContains:
        for (const auto& expression : restriction.contains) {
          TETRAD_TRY(const BytesView value, value_of(expression, column));
          test.contains_.push_back(value);
        }
        for (const auto& expression : restriction.contains_key) {
          TETRAD_TRY(const BytesView value, value_of(expression, column));
          test.contains_key_.push_back(value);
        }
        for (const auto& [key, entry] : restriction.entries) {
          TETRAD_TRY(const BytesView k, value_of(key, column, "map key"));
          TETRAD_TRY(const BytesView v, value_of(entry, column, "map value"));
          test.entries_.emplace_back(k, v);
        }
        break;
    }
    test.prepare_texts(filter.texts, context.arena);
    bound.push_back(std::move(test));
  }
  return bound;
}

// The interval of the index's terms. It may name more rows than match; the filter of the same
// restriction tests them (choose_filters adds it always).
Result<std::optional<storage::IndexBounds>> Restrictions::bind_index(
    std::span<const BoundFilter> filters) const {
  if (!index_) return std::nullopt;
  const auto found =
      std::ranges::find(filters, index_->restriction, [](const auto& f) { return f.restriction_; });
  TETRAD_ASSERT(found != filters.end());
  const BoundFilter& filter = *found;
  const IndexTerms& terms = index_->terms;
  const auto side = [](const std::vector<BytesView>& values) -> OptionalView {
    if (values.empty()) return std::nullopt;
    return values.front();
  };
  switch (index_->question) {
    case IndexQuestion::kEqual:
      return terms.equal(filter.tuples_.values.front());
    case IndexQuestion::kRange:
      return terms.between(side(filter.lower_), side(filter.upper_));
    case IndexQuestion::kContains:
      return terms.equal(filter.contains_.front());
    case IndexQuestion::kContainsKey:
      return terms.equal(filter.contains_key_.front());
    case IndexQuestion::kLike: {
      const BytesView text = filter.tuples_.values.front();
      switch (filter.like_) {
        case LikeShape::kWhole:
          return terms.equal(text);
        case LikeShape::kPrefix:
          return terms.beginning(text);
        case LikeShape::kSuffix:
          return terms.ending(text);
        case LikeShape::kPart:
          return terms.having(text);
      }
      std::unreachable();
    }
    case IndexQuestion::kEntry:
      return terms.entry(filter.entries_.front().first, filter.entries_.front().second);
  }
  std::unreachable();
}

}  // namespace tetrad::cql
