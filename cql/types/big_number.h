// SPDX-License-Identifier: Apache-2.0
// Large integers and decimals as numbers, for what computes with them. Only within this folder: the
// rest of the house has them as bytes.
#pragma once

#include <cstdint>

#include <boost/multiprecision/cpp_int.hpp>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

using BigInt = boost::multiprecision::cpp_int;

/// unscaled x 10^-scale; the scale may leave its 32 bits while a result is being made.
struct Decimal {
  BigInt unscaled;
  int64_t scale = 0;
};

BigInt to_big(BytesView bytes);
Bytes from_big(const BigInt& value);
BigInt power_of_ten(int64_t exponent);
/// How many decimal digits |value| has; 1 for zero.
int64_t digit_count(const BigInt& value);
/// Quotient rounded half away from zero.
BigInt divide_half_up(const BigInt& a, const BigInt& b);

BytesView unscaled_bytes(BytesView bytes);
int32_t scale_of(BytesView bytes);
Decimal to_decimal(BytesView bytes);
Bytes make_decimal(int32_t scale, BytesView unscaled);
/// Errors: kInvalid when the scale does not fit.
Result<Bytes> from_decimal(const Decimal& value);
/// Rounds half up, to `digits` digits.
void round_to_digits(Decimal& value, int64_t digits);

}  // namespace tetrad::cql
