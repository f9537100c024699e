// SPDX-License-Identifier: Apache-2.0
// The values of the terms of WHERE, for the files that bind a Restrictions: as keys, as ranges and
// as tests of rows.
#pragma once

#include <span>
#include <vector>

#include "cql/prepare/restrictions.h"

namespace tetrad::cql {

// Cassandra's errors of a value that may not be null, or not UNSET. kInvalid.
std::unexpected<Error> null_in_condition(const ColumnSchema& column);
std::unexpected<Error> unset_in_condition(const ColumnSchema& column);

/// The values of a tuple term, one for each column; null is allowed, UNSET is not. The views live
/// as long as the bound values and the context's arena. `is_multi`: the relation was written with a
/// tuple, which decides the texts of errors.
Result<std::vector<OptionalView>> evaluate_tuple(const TupleTerm& term, bool is_multi,
                                                 std::span<const ColumnSchema* const> columns,
                                                 EvalContext& context);

/// The tuples of an EQ or IN restriction, sorted by value, each once. `filters`: the values are for
/// a test of rows, not for keys.
Result<BoundTuples> tuples_of(const Restriction& restriction, EvalContext& context, bool filters);

/// Several INs multiply; the product must not take unbounded memory. Errors: kInvalid.
Result<void> check_product(size_t product, uint32_t max);

}  // namespace tetrad::cql
