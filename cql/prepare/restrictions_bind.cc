// SPDX-License-Identifier: Apache-2.0
// WHERE with its values: partitions, row filters, the interval of an index.
//
// bind_partitions(): a range of the ring, one key, or the product of IN lists in the order of their
// values. bind_filters(): values for the tests of rows. (Clustering keys: bind_clustering.cc.)
// Null and UNSET have another meaning in each of the three, each as in Cassandra, and the texts of
// their errors are Cassandra's.
#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "cql/prepare/bound_values.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

/// The positions of the ring that token() of the partition key allows. `is_range`: the read goes
/// over the ring, and the range is where it goes; otherwise keys are named and the range tests
/// them.
Result<RingRange> token_range(const Restriction& restriction, bool is_range, EvalContext& context) {
  RingRange range;
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
  const auto is_end = [&](int64_t token) { return token == kMinimum && is_range; };
  if (restriction.kind == Restriction::Kind::kEqual) {
    TETRAD_TRY(const int64_t token, token_value(restriction.equal));
    if (!is_end(token)) range = {before(token), RingPosition::end_of_token(token)};
  } else {
    std::optional<int64_t> lower;
    if (restriction.lower) {
      TETRAD_TRY(const int64_t token, token_value(restriction.lower->value));
      lower = token;
      range.start = restriction.lower->inclusive || is_end(token)
                        ? before(token)
                        : RingPosition::end_of_token(token);
    }
    if (restriction.upper) {
      TETRAD_TRY(const int64_t token, token_value(restriction.upper->value));
      if (!is_end(token)) {
        range.end =
            restriction.upper->inclusive ? RingPosition::end_of_token(token) : before(token);
      }
      // After a token and before the same one is nothing; it is not once round the ring.
      if (lower == token && range.end < range.start) range.end = range.start;
    }
  }
  return range;
}

/// The partition of equalities on all columns of the key.
Result<PartitionTarget> one_partition(std::span<const RestrictionPtr> key, EvalContext& context) {
  PartitionTarget target;
  // No allocation for keys of usual width.
  std::array<BytesView, 8> few;
  std::vector<BytesView> many(key.size() > few.size() ? key.size() : 0);
  const std::span<BytesView> components =
      many.empty() ? std::span(few).first(key.size()) : std::span(many);
  for (size_t i = 0; i < key.size(); ++i) {
    const ColumnSchema& column = key[i]->first();
    TETRAD_TRY(const BoundValue value, key[i]->equal.items[0]->evaluate(context));
    if (value.is_unset()) return unset_in_condition(column);
    if (value.is_null()) return null_in_condition(column);
    components[i] = value.bytes;
  }
  TETRAD_TRY_VOID(partitioner::append_partition_key(target.key, components));
  target.position = partitioner::position_of(target.key);
  return target;
}

/// Every combination of the values of `key`; with `has_token`, those inside `range` only. Errors:
/// kInvalid, more than `product_max` combinations.
Result<std::vector<PartitionTarget>> partition_product(std::span<const RestrictionPtr> key,
                                                       bool has_token, const RingRange& range,
                                                       uint32_t product_max, EvalContext& context) {
  std::vector<PartitionTarget> partitions;
  std::vector<BoundTuples> choices;
  size_t product = 1;
  for (const auto& restriction : key) {
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
    if (!has_token || inside) partitions.push_back(std::move(target));
    for (size_t i = choices.size(); i-- > 0;) {
      if (++at[i] < choices[i].size()) break;
      at[i] = 0;
    }
  }
  return partitions;
}

/// The value of a test of rows, where null and UNSET are errors. `what`: how the error names it.
Result<BytesView> filter_value(const ExpressionPtr& expression, const ColumnSchema& column,
                               EvalContext& context, std::string_view what = "value") {
  TETRAD_TRY(const BoundValue value, expression->evaluate(context));
  if (!value.has_bytes()) {
    return fail(ErrorCode::kInvalid, "Unsupported {} {} for column {}",
                value.is_unset() ? "unset" : "null", what, column.name);
  }
  return value.bytes;
}

/// The values of one end of a slice that tests rows, one for each of its columns.
Result<void> add_filter_bound(const Restriction& restriction, const Restriction::Bound& bound,
                              EvalContext& context, std::vector<BytesView>& to) {
  const ColumnSchema& column = restriction.first();
  if (!restriction.is_multi) {
    TETRAD_TRY(const BytesView value, filter_value(bound.value.items[0], column, context));
    to.push_back(value);
    return {};
  }
  TETRAD_TRY(const auto values,
             evaluate_tuple(bound.value, true,
                            std::span(restriction.columns).first(bound.column_count), context));
  for (const OptionalView& value : values) {
    if (!value) {
      return fail(ErrorCode::kInvalid, "Unsupported null value for column {}", column.name);
    }
    to.push_back(*value);
  }
  return {};
}

}  // namespace

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
    TETRAD_TRY(range, token_range(*token_, is_key_range_, context));
  }
  if (is_key_range_) {
    bound.is_range = true;
    bound.range = range;
    return bound;
  }
  if (single_partition_) {
    TETRAD_TRY(PartitionTarget target, one_partition(partition_, context));
    bound.partitions.push_back(std::move(target));
    return bound;
  }
  TETRAD_TRY(bound.partitions,
             partition_product(partition_, token_ != nullptr, range, product_max, context));
  return bound;
}

/// The values of one restriction, by its kind.
Result<void> Restrictions::bind_filter(EvalContext& context, BoundFilter& test) const {
  const Restriction& restriction = *test.restriction_;
  const ColumnSchema& column = restriction.first();
  switch (restriction.kind) {
    case Restriction::Kind::kEqual:
      if (restriction.is_multi) {
        TETRAD_TRY(test.tuples_, tuples_of(restriction, context, true));
      } else {
        TETRAD_TRY(const BytesView value,
                   filter_value(restriction.equal.items[0], column, context));
        test.tuples_.values.push_back(value);
      }
      break;
    case Restriction::Kind::kNotIn:
    case Restriction::Kind::kIn: {
      // A view's condition stays: a null among its values is a mistake.
      TETRAD_TRY(test.tuples_, tuples_of(restriction, context, of_ != WhereOf::kView));
      break;
    }
    case Restriction::Kind::kSlice:
      if (restriction.lower)
        TETRAD_TRY_VOID(add_filter_bound(restriction, *restriction.lower, context, test.lower_));
      if (restriction.upper)
        TETRAD_TRY_VOID(add_filter_bound(restriction, *restriction.upper, context, test.upper_));
      break;
    case Restriction::Kind::kLike: {
      TETRAD_TRY(const BoundValue value, restriction.equal.items[0]->evaluate(context));
      BytesView pattern;  // as Cassandra: unset is a pattern without text
      if (!value.is_unset()) {
        TETRAD_TRY(pattern, filter_value(restriction.equal.items[0], column, context));
      }
      TETRAD_TRY_VOID(test.read_pattern(pattern, *table_));
      break;
    }
    case Restriction::Kind::kNotContains:
    case Restriction::Kind::kContains:
      for (const auto& expression : restriction.contains) {
        TETRAD_TRY(const BytesView value, filter_value(expression, column, context));
        test.contains_.push_back(value);
      }
      for (const auto& expression : restriction.contains_key) {
        TETRAD_TRY(const BytesView value, filter_value(expression, column, context));
        test.contains_key_.push_back(value);
      }
      for (const auto& [key, entry] : restriction.entries) {
        TETRAD_TRY(const BytesView k, filter_value(key, column, context, "map key"));
        TETRAD_TRY(const BytesView v, filter_value(entry, column, context, "map value"));
        test.entries_.emplace_back(k, v);
      }
      break;
  }
  return {};
}

// In the order of filters_; the first error is that of the first filter, as in Cassandra.
Result<std::vector<BoundFilter>> Restrictions::bind_filters(EvalContext& context) const {
  std::vector<BoundFilter> bound;
  bound.reserve(filters_.size());
  for (const Filter& filter : filters_) {
    BoundFilter test;
    test.restriction_ = filter.restriction;
    test.slots_ = filter.slots;
    TETRAD_TRY_VOID(bind_filter(context, test));
    TETRAD_TRY_VOID(test.prepare_texts(filter.texts, context.arena));
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
