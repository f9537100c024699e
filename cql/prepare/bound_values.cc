// SPDX-License-Identifier: Apache-2.0
// The values of the terms of WHERE: evaluated, checked for null and UNSET, lists sorted.
//
// Null and UNSET have another text for each kind of relation; the texts, and which of two errors is
// reported first, are Cassandra's.
#include "cql/prepare/bound_values.h"

#include <algorithm>
#include <utility>

#include "cql/types/compare.h"
#include "cql/types/empty_value.h"

namespace tetrad::cql {

std::unexpected<Error> null_in_condition(const ColumnSchema& column) {
  return fail(ErrorCode::kInvalid, "Invalid null value in condition for column {}", column.name);
}

std::unexpected<Error> unset_in_condition(const ColumnSchema& column) {
  return fail(ErrorCode::kInvalid, "Invalid unset value for column {}", column.name);
}

Result<std::vector<OptionalView>> evaluate_tuple(const TupleTerm& term, bool is_multi,
                                                 std::span<const ColumnSchema* const> columns,
                                                 EvalContext& context) {
  std::vector<OptionalView> values;
  if (term.whole) {
    TETRAD_TRY(const BoundValue whole, term.whole->evaluate(context));
    if (whole.is_unset()) return unset_in_condition(*columns.front());
    if (whole.is_null()) return null_in_condition(*columns.front());
    TETRAD_TRY(values, split_tuple(*term.whole->type(), whole.bytes));
    return values;
  }
  values.reserve(term.items.size());
  for (size_t i = 0; i < term.items.size(); ++i) {
    TETRAD_TRY(const BoundValue value, term.items[i]->evaluate(context));
    if (value.is_unset()) {
      if (!is_multi) return unset_in_condition(*columns[i]);
      return fail(ErrorCode::kInvalid, "Invalid unset value for tuple field number {}", i);
    }
    values.push_back(optional_view(value));
  }
  return values;
}

namespace {

/// As evaluate_tuple(), for places where null is an error.
Result<std::vector<BytesView>> evaluate_all(const Restriction& restriction, const TupleTerm& term,
                                            EvalContext& context) {
  TETRAD_TRY(const auto values,
             evaluate_tuple(term, restriction.is_multi, restriction.columns, context));
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
      return null_in_condition(*restriction.columns[i]);
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

/// Adds the tuples of the list that is bound to the marker of IN ?.
Result<void> add_bound_list(const Restriction& restriction, EvalContext& context, bool filters,
                            BoundTuples& tuples) {
  if (has_null(*restriction.in_list, context)) return null_in_condition(restriction.first());
  TETRAD_TRY(const BoundValue list, restriction.in_list->evaluate(context));
  if (list.is_unset()) return unset_in_condition(restriction.first());
  if (list.is_null()) {
    return fail(ErrorCode::kInvalid, "Invalid null value for column {}", restriction.first().name);
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
    if (counts_as_null(type, element)) return null_in_condition(restriction.first());
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
  return {};
}

/// Adds the tuples of IN (x, y, ...). As keys, all values are looked at for null before any is
/// taken.
Result<void> add_listed_values(const Restriction& restriction, EvalContext& context, bool filters,
                               BoundTuples& tuples) {
  const bool is_test = filters && restriction.kind == Restriction::Kind::kIn;
  if (!is_test && !restriction.is_multi) {  // a null is reported before an unset value
    bool has_null = false;
    for (const TupleTerm& term : restriction.in_values) {
      TETRAD_TRY(const BoundValue value, term.items[0]->evaluate(context));
      has_null |= value.is_null();
    }
    if (has_null) return null_in_condition(restriction.first());
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
  return {};
}

}  // namespace

// As keys, null is an error. As a test, the list ends at the first null, as in Cassandra.
Result<BoundTuples> tuples_of(const Restriction& restriction, EvalContext& context, bool filters) {
  BoundTuples tuples;
  tuples.width = restriction.columns.size();
  if (restriction.kind == Restriction::Kind::kEqual) {
    TETRAD_TRY(tuples.values, evaluate_all(restriction, restriction.equal, context));
    return tuples;
  }
  if (restriction.in_list) {
    TETRAD_TRY_VOID(add_bound_list(restriction, context, filters, tuples));
  } else {
    TETRAD_TRY_VOID(add_listed_values(restriction, context, filters, tuples));
  }
  order_tuples(restriction, tuples);
  return tuples;
}

Result<void> check_product(size_t product, uint32_t max) {
  if (product <= max) return {};
  return fail(ErrorCode::kInvalid,
              "The cartesian product of the IN restrictions is too large: more than {} "
              "combinations",
              max);
}

}  // namespace tetrad::cql
