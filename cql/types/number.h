// SPDX-License-Identifier: Apache-2.0
// varint and decimal: arithmetic, comparison and text on their serialized bytes, by the rules of
// Java's BigInteger and BigDecimal, which CQL arithmetic shows through.
//
// Every result is canonical: the shortest two's complement. Empty values are the caller's matter;
// here they count as zero. Operands above kNumberBytesMax are refused where the work would grow
// with the square of their length, so no value can hold a shard up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

inline constexpr size_t kNumberBytesMax = 16 * 1024;

/// The operations on varint and decimal.
enum class ArithmeticOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kRemainder };

// varint
int compare_varint(BytesView a, BytesView b);
/// Without the bytes that only repeat the sign; one byte at least. A view into `bytes`, or to a
/// static zero.
BytesView minimal_varint(BytesView bytes);
/// An optional sign and digits. Errors: kInvalid "unable to make int from '…'".
Result<Bytes> varint_from_text(std::string_view text);
Result<std::string> varint_to_text(BytesView bytes);
/// Truncating division; the remainder has the sign of `a`. Errors: kInvalid "BigInteger divide by
/// zero".
Result<Bytes> varint_arithmetic(ArithmeticOp op, BytesView a, BytesView b);
Bytes varint_negate(BytesView bytes);
/// The value when it fits 64 bits.
std::optional<int64_t> varint_to_int64(BytesView bytes);
/// The lowest 64 bits, as BigInteger.longValue().
int64_t varint_low_bits(BytesView bytes);
double varint_to_double(BytesView bytes);
/// Towards zero. `value` must be finite.
Bytes varint_from_double(double value);

// decimal
/// By value: 1.0 and 1.00 are equal. Never expands a power of ten of the scale's size.
int compare_decimal(BytesView a, BytesView b);
/// As BigDecimal's constructor: sign, digits, fraction, exponent; keeps the scale as written.
/// Errors: kInvalid "unable to make BigDecimal from '…'".
Result<Bytes> decimal_from_text(std::string_view text);
/// As BigDecimal.toString(): "1.50", "1E+3", "1E-7".
Result<std::string> decimal_to_text(BytesView bytes);
/// Cassandra's DecimalType: sum, difference and product rounded half up to 10000 digits; a quotient
/// of 32 significant digits at least and a scale of 1000 at most, trailing zeros stripped.
/// Errors: kInvalid "BigInteger divide by zero", "Division by zero", "Division undefined".
Result<Bytes> decimal_arithmetic(ArithmeticOp op, BytesView a, BytesView b);
Bytes decimal_negate(BytesView bytes);
Bytes decimal_from_varint(BytesView bytes);
Bytes decimal_from_int64(int64_t value);
/// BigDecimal.valueOf: through the shortest text of the double. Errors: kInvalid for NaN, infinity.
Result<Bytes> decimal_from_double(double value);
double decimal_to_double(BytesView bytes);
/// Towards zero. Errors: kInvalid when the result would be longer than kNumberBytesMax.
Result<Bytes> decimal_to_varint(BytesView bytes);

/// A decimal as sign, exponent and digits: sign * 0.d1d2d3… * 10^exponent, d1 != 0, no trailing
/// zeros; no digits for zero.
struct DecimalDigits {
  bool negative = false;
  int64_t exponent = 0;
  std::string digits;
};
/// Errors: kInvalid when the value is longer than kNumberBytesMax.
Result<DecimalDigits> decimal_digits(BytesView bytes);
/// The canonical bytes: the smallest scale that shows all digits. Errors: kCorruption when no
/// scale of 32 bits does.
Result<Bytes> decimal_from_digits(const DecimalDigits& value);

/// Java's Double.toString and Float.toString: "1.0", "1.0E10", "NaN".
std::string double_to_text(double value);
std::string float_to_text(float value);

}  // namespace tetrad::cql
