// SPDX-License-Identifier: Apache-2.0
// Numbers here are integers of a unit 10^-places ("fixed"), with enough places that the digits
// that are kept are right.
#include "cql/types/number_math.h"

#include <algorithm>
#include <limits>

#include "cql/types/big_number.h"

namespace tetrad::cql {

namespace {

// Digits of a result, unless the argument has more; kGuard more are computed.
constexpr int64_t kDigits = 32;
constexpr int64_t kGuard = 12;
constexpr int kHalvings = 8;  // of the argument before its series: fewer terms

/// artanh(1/n): the sum of 1 / ((2i + 1) n^(2i + 1)).
BigInt artanh_of_inverse(unsigned n, const BigInt& unit) {
  BigInt power = unit / n;
  BigInt sum = power;
  for (unsigned i = 3; !power.is_zero(); i += 2) {
    power /= n * n;
    sum += power / i;
  }
  return sum;
}

// ln 10 = 46 artanh(1/31) + 34 artanh(1/49) + 20 artanh(1/161).
BigInt log_of_ten(const BigInt& unit) {
  return 46 * artanh_of_inverse(31, unit) + 34 * artanh_of_inverse(49, unit) +
         20 * artanh_of_inverse(161, unit);
}

/// e^x of 0 <= x < 3.
BigInt exp_fixed(const BigInt& x, const BigInt& unit) {
  const BigInt part = x >> kHalvings;
  BigInt term = unit, sum = unit;
  for (unsigned i = 1; !term.is_zero(); ++i) {
    term = term * part / unit / i;
    sum += term;
  }
  // e^x = (e^(x / 2^n))^(2^n).
  for (int i = 0; i < kHalvings; ++i) sum = sum * sum / unit;
  return sum;
}

/// ln x of 1 <= x < 10: of the root that lies near 1, by 2 artanh((r - 1) / (r + 1)).
BigInt log_fixed(const BigInt& x, const BigInt& unit) {
  BigInt root = x;
  for (int i = 0; i < kHalvings; ++i) root = sqrt(BigInt(root * unit));
  const BigInt ratio = (root - unit) * unit / (root + unit);
  const BigInt square = ratio * ratio / unit;
  BigInt power = ratio, sum = ratio;
  for (unsigned i = 3; !power.is_zero(); i += 2) {
    power = power * square / unit;
    sum += power / i;
  }
  return sum << (kHalvings + 1);
}

/// value x 10^places, cut off.
BigInt scaled(const Decimal& value, int64_t places) {
  const int64_t shift = places - value.scale;
  if (shift >= 0) return value.unscaled * power_of_ten(shift);
  return value.unscaled / power_of_ten(-shift);
}

// The bound on the digits bounds the work.
Result<Decimal> argument(BytesView bytes) {
  if (bytes.size() <= static_cast<size_t>(kMathDigitsMax)) {
    Decimal value = to_decimal(bytes);
    if (digit_count(value.unscaled) <= kMathDigitsMax) return value;
  }
  return fail(ErrorCode::kInvalid, "exp and logarithms take numbers of {} digits at most",
              kMathDigitsMax);
}

/// The result in `digits` digits, filled up with zeros.
Decimal rounded(Decimal value, int64_t digits) {
  round_to_digits(value, digits);
  const int64_t missing = digits - digit_count(value.unscaled);
  return {value.unscaled * power_of_ten(missing), value.scale + missing};
}

/// ln of a positive number other than 1, to `digits` digits.
Decimal log_to(const Decimal& x, int64_t digits) {
  const int64_t exponent = digit_count(x.unscaled) - 1 - x.scale;  // 1 <= x / 10^exponent < 10
  int64_t places = digits + kGuard;
  if (exponent == 0 || exponent == -1) {
    // Near 1 the logarithm begins with as many zeros as x - 1.
    const BigInt off = abs(BigInt(x.unscaled - power_of_ten(x.scale)));
    places += x.scale - digit_count(off) + 1;
  }
  const BigInt unit = power_of_ten(places);
  const BigInt mantissa = scaled({x.unscaled, x.scale + exponent}, places);
  const BigInt sum = log_fixed(mantissa, unit) + exponent * log_of_ten(unit);
  return rounded({sum, places}, digits);
}

// Also 1.0 and 1.00.
bool is_one(const Decimal& x) {
  if (x.scale < 0 || x.scale >= digit_count(x.unscaled)) return false;
  return x.unscaled == power_of_ten(x.scale);
}

int64_t digits_for(const Decimal& x) { return std::max(kDigits, digit_count(x.unscaled)); }

}  // namespace

Result<Bytes> decimal_exp(BytesView bytes) {
  TETRAD_TRY(const Decimal x, argument(bytes));
  if (x.unscaled.is_zero()) return from_decimal({1, 0});
  const int64_t digits = digits_for(x);
  const int64_t magnitude = digit_count(x.unscaled) - x.scale;  // |x| < 10^magnitude
  if (magnitude > 11) return fail(ErrorCode::kInvalid, "Overflow");
  if (magnitude < -digits - 1) return from_decimal(rounded({1, 0}, digits));
  const int64_t places = digits + kGuard + std::max<int64_t>(magnitude, 0);
  const BigInt unit = power_of_ten(places);
  const BigInt fixed = scaled(x, places), ten = log_of_ten(unit);
  // e^x = 10^tens * e^rest, with rest from 0 to ln 10, rounded down also for negative x.
  BigInt tens = fixed / ten;
  if (fixed < 0) --tens;
  const BigInt result = exp_fixed(fixed - tens * ten, unit);
  return from_decimal(rounded({result, places - tens.convert_to<int64_t>()}, digits));
}

Result<Bytes> decimal_log(BytesView bytes) {
  TETRAD_TRY(const Decimal x, argument(bytes));
  if (x.unscaled <= 0) return fail(ErrorCode::kInvalid, "Natural log of number zero or less");
  if (is_one(x)) return from_decimal({0, 0});
  return from_decimal(log_to(x, digits_for(x)));
}

Result<Bytes> decimal_log10(BytesView bytes) {
  TETRAD_TRY(const Decimal x, argument(bytes));
  if (x.unscaled <= 0) return fail(ErrorCode::kInvalid, "Log10 of number zero or less");
  // As Cassandra: the quotient of two logarithms of two digits more. Where it comes out even the
  // zeros behind it go.
  const int64_t digits = digits_for(x);
  const Decimal ten = log_to({1, -1}, digits + 2);
  if (is_one(x)) return from_decimal({0, -ten.scale});
  const Decimal log = log_to(x, digits + 2);
  const int64_t shift = digits + 8;
  const BigInt numerator = log.unscaled * power_of_ten(shift);
  BigInt quotient, remainder;
  divide_qr(numerator, ten.unscaled, quotient, remainder);
  Decimal out{divide_half_up(numerator, ten.unscaled), shift + log.scale - ten.scale};
  if (!remainder.is_zero()) return from_decimal(rounded(std::move(out), digits));
  while (out.scale > log.scale - ten.scale && out.unscaled % 10 == 0) {
    out.unscaled /= 10;
    --out.scale;
  }
  return from_decimal(out);
}

}  // namespace tetrad::cql
