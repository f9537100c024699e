// SPDX-License-Identifier: Apache-2.0
// exp, log and log10 of decimals to 32 significant digits, or as many as the argument has.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

/// Arguments of more digits are refused: the work grows with more than their square.
inline constexpr int64_t kMathDigitsMax = 1000;

/// Errors of all three: kInvalid when the argument is too long, or no decimal can hold the result.
Result<Bytes> decimal_exp(BytesView bytes);
/// Errors: kInvalid for zero and less.
Result<Bytes> decimal_log(BytesView bytes);
Result<Bytes> decimal_log10(BytesView bytes);

}  // namespace tetrad::cql
