// SPDX-License-Identifier: Apache-2.0
// varint (a two's complement number of any length) and decimal (an int scale, then such a number;
// the value is unscaled / 10^scale). Results equal java.math.BigDecimal and BigInteger as Cassandra
// uses them: 10,000 digits for sums and products, its rules for the scale of a quotient. Numbers
// that are longer than kNumberBytesMax are compared but not computed with, so no request works for
// longer than its bytes allow.
#include "cql/types/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/byte_io.h"
#include "cql/types/big_number.h"

namespace tetrad::cql {

namespace {

constexpr int64_t kPrecisionMax = 10000;  // digits that sums and products keep
constexpr int64_t kDigitsMax = 50000;     // more than kNumberBytesMax bytes can hold
// Both are Cassandra's, for division of decimals.
constexpr int64_t kQuotientDigitsMin = 32;
constexpr int64_t kQuotientScaleMax = 1000;

Result<void> check_length(BytesView bytes) {
  if (bytes.size() <= kNumberBytesMax) return {};
  return fail(ErrorCode::kInvalid, "a number of {} bytes is too long to compute with, at most {}",
              bytes.size(), kNumberBytesMax);
}

/// Removes trailing zeros while the scale stays above `preferred`.
void strip_zeros(Decimal& value, int64_t preferred) {
  if (value.unscaled.is_zero()) {
    value.scale = preferred;
    return;
  }
  // In halving steps: thousands of zeros one by one would cost a division each.
  for (int64_t step = 4096; step > 0; step /= 2) {
    const BigInt divisor = power_of_ten(step);
    while (value.scale - step >= preferred) {
      BigInt quotient, remainder;
      divide_qr(value.unscaled, divisor, quotient, remainder);
      if (!remainder.is_zero()) break;
      value.unscaled = quotient;
      value.scale -= step;
    }
  }
}

// `scale` is not below the value's own: zeros are added, never digits lost.
Decimal with_scale(const Decimal& value, int64_t scale) {
  return {value.unscaled * power_of_ten(scale - value.scale), scale};
}

/// One addend is zero: the other one, rounded, with the larger of both scales as far as the
/// precision goes (java.math.BigDecimal.add(BigDecimal, MathContext)).
Decimal add_to_zero(Decimal value, int64_t preferred) {
  round_to_digits(value, kPrecisionMax);
  if (value.scale > preferred) {
    strip_zeros(value, preferred);
  } else if (value.scale < preferred) {
    const int64_t room = kPrecisionMax - digit_count(value.unscaled);
    value = with_scale(value, std::min(preferred, value.scale + room));
  }
  return value;
}

Decimal add(Decimal a, Decimal b) {
  const int64_t preferred = std::max(a.scale, b.scale);
  if (a.unscaled.is_zero() && b.unscaled.is_zero()) return {0, preferred};
  if (a.unscaled.is_zero()) return add_to_zero(std::move(b), preferred);
  if (b.unscaled.is_zero()) return add_to_zero(std::move(a), preferred);
  // An addend far below the last digit that is kept only counts by its sign.
  Decimal& big = a.scale < b.scale ? a : b;
  Decimal& small = a.scale < b.scale ? b : a;
  const int64_t last_kept = big.scale - digit_count(big.unscaled) + kPrecisionMax;
  const int64_t small_high = small.scale - digit_count(small.unscaled) + 1;
  // As BigDecimal: without this 1E+1000000 + 1 would need a million digits for a result that is
  // rounded away.
  if (small_high > big.scale + 2 && small_high > last_kept + 2) {
    small.scale = std::max(big.scale, last_kept) + 3;
    small.unscaled = small.unscaled < 0 ? -1 : 1;
  }
  big = with_scale(big, std::max(big.scale, small.scale));
  Decimal sum{a.unscaled + b.unscaled, big.scale};
  round_to_digits(sum, kPrecisionMax);
  return sum;
}

Result<Decimal> divide(const Decimal& a, const Decimal& b) {
  if (b.unscaled.is_zero()) return fail(ErrorCode::kInvalid, "BigInteger divide by zero");
  const int64_t exponent =
      (digit_count(a.unscaled) - a.scale) - (digit_count(b.unscaled) - b.scale);
  // Enough digits for 32 significant ones, as Cassandra's DecimalType.divide.
  int64_t scale = std::max({kQuotientDigitsMin - exponent, a.scale, b.scale, kQuotientDigitsMin});
  scale = std::min(scale, kQuotientScaleMax);
  if (a.unscaled.is_zero()) return Decimal{0, 0};
  const int64_t shift = scale - a.scale + b.scale;
  if (shift > kDigitsMax)
    return fail(ErrorCode::kInvalid, "BigInteger would overflow supported range");
  Decimal quotient{0, scale};
  if (shift >= 0) {
    quotient.unscaled = divide_half_up(a.unscaled * power_of_ten(shift), b.unscaled);
  } else if (-shift <= kDigitsMax) {
    quotient.unscaled = divide_half_up(a.unscaled, b.unscaled * power_of_ten(-shift));
  }
  if (quotient.unscaled.is_zero()) return Decimal{0, 0};
  strip_zeros(quotient, std::numeric_limits<int32_t>::min());
  return quotient;
}

// BigDecimal.remainder: a - b * trunc(a / b), with the sign of a. The scale follows from that of
// Java's quotient.
Result<Decimal> remainder(const Decimal& a, const Decimal& b) {
  if (b.unscaled.is_zero()) {
    return fail(ErrorCode::kInvalid, "Division {}", a.unscaled.is_zero() ? "undefined" : "by zero");
  }
  const int64_t preferred = a.scale - b.scale;
  const int64_t exponent =
      (digit_count(a.unscaled) - a.scale) - (digit_count(b.unscaled) - b.scale);
  if (a.unscaled.is_zero() || exponent < -1) {  // the quotient is zero
    Decimal out = a;
    if (a.scale < std::max(a.scale, preferred + b.scale)) out = with_scale(a, preferred + b.scale);
    return out;
  }
  if (exponent > kDigitsMax || std::abs(preferred) > kDigitsMax)
    return fail(ErrorCode::kInvalid, "BigInteger would overflow supported range");
  const int64_t common = std::max(a.scale, b.scale);
  const BigInt left = with_scale(a, common).unscaled, right = with_scale(b, common).unscaled;
  BigInt whole, rest;
  divide_qr(left, right, whole, rest);
  // The scale of a - quotient * b, where the quotient loses zeros down to the preferred scale.
  Decimal quotient{whole, 0};
  if (whole.is_zero() || preferred >= 0) {
    quotient.scale = preferred;
  } else {
    strip_zeros(quotient, preferred);
  }
  Decimal out{rest, common};
  const int64_t scale = std::max(a.scale, quotient.scale + b.scale);
  if (scale < out.scale) {
    out.unscaled /= power_of_ten(out.scale - scale);
    out.scale = scale;
  } else if (scale > out.scale) {
    out = with_scale(out, scale);
  }
  return out;
}

}  // namespace

// Clients may send more sign bytes than needed; equal numbers must compare and hash as equal.
BytesView minimal_varint(BytesView bytes) {
  static constexpr char kZero = 0;
  if (bytes.empty()) return {&kZero, 1};
  size_t skip = 0;
  while (skip + 1 < bytes.size() && ((bytes[skip] == '\0' && !(bytes[skip + 1] & 0x80)) ||
                                     (bytes[skip] == '\xff' && (bytes[skip + 1] & 0x80)))) {
    ++skip;
  }
  return bytes.substr(skip);
}

// No arithmetic: shortest forms compare by sign, length and bytes.
int compare_varint(BytesView a, BytesView b) {
  a = minimal_varint(a);
  b = minimal_varint(b);
  const bool a_negative = a[0] & 0x80, b_negative = b[0] & 0x80;
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  if (a.size() != b.size()) return (a.size() < b.size()) != a_negative ? -1 : 1;
  const int order = std::memcmp(a.data(), b.data(), a.size());
  return (order > 0) - (order < 0);
}

Result<Bytes> varint_from_text(std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorCode::kInvalid, "unable to make int from '{}'", text);
  };
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || static_cast<int64_t>(digits.size()) > kDigitsMax ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return refuse();
  // Zeros in front would make Boost read the number as octal.
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  BigInt value{std::string(digits)};
  if (negative) value = -value;
  return from_big(value);
}

Result<std::string> varint_to_text(BytesView bytes) {
  TETRAD_TRY_VOID(check_length(bytes));
  return to_big(bytes).str();
}

Result<Bytes> varint_arithmetic(ArithmeticOp op, BytesView a, BytesView b) {
  TETRAD_TRY_VOID(check_length(a));
  TETRAD_TRY_VOID(check_length(b));
  const BigInt left = to_big(a), right = to_big(b);
  const bool divides = op == ArithmeticOp::kDivide || op == ArithmeticOp::kRemainder;
  if (divides && right.is_zero()) return fail(ErrorCode::kInvalid, "BigInteger divide by zero");
  switch (op) {
    case ArithmeticOp::kAdd:
      return from_big(left + right);
    case ArithmeticOp::kSubtract:
      return from_big(left - right);
    case ArithmeticOp::kMultiply:
      return from_big(left * right);
    case ArithmeticOp::kDivide:
      return from_big(left / right);
    case ArithmeticOp::kRemainder:
      return from_big(left % right);
  }
  std::unreachable();
}

// The smallest number of a length gets one byte more: -(-128) is 0080.
Bytes varint_negate(BytesView bytes) { return from_big(-to_big(bytes)); }

// As Java's longValue(): the low 64 bits, whatever is above.
int64_t varint_low_bits(BytesView bytes) {
  if (bytes.empty()) return 0;
  uint64_t value = bytes[0] & 0x80 ? ~uint64_t{0} : 0;
  const size_t start = bytes.size() > 8 ? bytes.size() - 8 : 0;
  for (size_t i = start; i < bytes.size(); ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<int64_t>(value);
}

std::optional<int64_t> varint_to_int64(BytesView bytes) {
  const BytesView shortest = minimal_varint(bytes);
  if (shortest.size() > 8) return std::nullopt;
  return varint_low_bits(shortest);
}

// Rounded to the nearest; too large a number is an infinity.
double varint_to_double(BytesView bytes) {
  if (const auto small = varint_to_int64(bytes)) return static_cast<double>(*small);
  const BytesView shortest = minimal_varint(bytes);
  if (shortest.size() > 130)  // beyond 2^1024
    return shortest[0] & 0x80 ? -std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::infinity();
  return to_big(shortest).convert_to<double>();
}

Bytes varint_from_double(double value) { return from_big(BigInt(std::trunc(value))); }

namespace {

/// The binary logarithm of |unscaled| * 10^-scale, good to 1e-5: exponents end at 2^31. `unscaled`
/// is minimal and not zero.
// From the first eight bytes and the length.
double log2_of(BytesView unscaled, int64_t scale) {
  constexpr double kLog2Of10 = 3.321928094887362;
  const size_t rest = unscaled.size() - std::min<size_t>(unscaled.size(), 8);
  const auto top = static_cast<double>(varint_low_bits(unscaled.substr(0, unscaled.size() - rest)));
  return std::log2(std::abs(top)) + 8 * static_cast<double>(rest) -
         kLog2Of10 * static_cast<double>(scale);
}

/// The first bits of a number, and how many bits behind them are missing.
struct Leading {
  BigInt bits;
  int64_t missing = 0;

  void cut(int64_t bits_max) {
    const int64_t drop = static_cast<int64_t>(msb(bits)) + 1 - bits_max;
    if (drop <= 0) return;
    bits >>= drop;
    missing += drop;
  }
};

constexpr int64_t kLeadingBits = 2048;

/// 10^exponent, cut: relatively too small by less than 2^(80 - kLeadingBits), as each of at most 64
/// steps cuts once and doubles what was cut before.
Leading leading_power_of_ten(int64_t exponent) {
  Leading power{1, 0};
  for (int bit = 62; bit >= 0; --bit) {
    power.bits *= power.bits;
    power.missing *= 2;
    if (exponent >> bit & 1) power.bits *= 10;
    power.cut(kLeadingBits);
  }
  return power;
}

/// Of two positive numbers that are nearly equal: they need all their digits. Where that are more
/// than kNumberBytesMax bytes the first five hundred count, and after them the scale.
int compare_near(Decimal a, Decimal b) {
  if (a.scale > b.scale) return -compare_near(std::move(b), std::move(a));
  // So near each other the power is about as long as the longer number.
  const int64_t shift = b.scale - a.scale;
  const auto bytes = static_cast<size_t>(msb(b.unscaled) / 8 + 1);
  if (bytes <= kNumberBytesMax) {
    const BigInt left = a.unscaled * power_of_ten(shift);
    return left.compare(b.unscaled) < 0 ? -1 : (left == b.unscaled ? 0 : 1);
  }
  Leading left{std::move(a.unscaled), 0}, right{std::move(b.unscaled), 0};
  left.cut(kLeadingBits);
  right.cut(kLeadingBits);
  const Leading power = leading_power_of_ten(shift);
  left.bits *= power.bits;
  left.missing += power.missing;
  // To the same place, with fewer bits than are sure.
  left.cut(kLeadingBits - 96);
  if (left.missing >= right.missing) {
    right.bits >>= left.missing - right.missing;
  } else {
    left.bits >>= right.missing - left.missing;
  }
  const BigInt apart = left.bits - right.bits;
  if (abs(apart) > 1) return apart < 0 ? -1 : 1;
  return 1;  // a has the smaller scale
}

}  // namespace

// Scales may be anything in 32 bits, so bringing both to one scale could take gigabytes. By sign,
// then by logarithm, and only numbers that are nearly equal digit by digit.
int compare_decimal(BytesView a, BytesView b) {
  const BytesView ua = minimal_varint(unscaled_bytes(a)), ub = minimal_varint(unscaled_bytes(b));
  const auto sign = [](BytesView u) {
    return u[0] & 0x80 ? -1 : (u.size() == 1 && u[0] == 0 ? 0 : 1);
  };
  const int sa = sign(ua), sb = sign(ub);
  if (sa != sb || sa == 0) return (sa > sb) - (sa < sb);
  const int64_t scale_a = scale_of(a), scale_b = scale_of(b);
  if (scale_a == scale_b) return compare_varint(ua, ub);
  const double difference = log2_of(ua, scale_a) - log2_of(ub, scale_b);
  if (std::abs(difference) > 1e-3) return difference < 0 ? -sa : sa;
  return sa * compare_near({abs(to_big(ua)), scale_a}, {abs(to_big(ub)), scale_b});
}

// Java's BigDecimal(String): sign, digits with a point among them, exponent. Scale = digits behind
// the point - exponent.
Result<Bytes> decimal_from_text(std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorCode::kInvalid, "unable to make BigDecimal from '{}'", text);
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  int64_t exponent = 0;
  if (const size_t e = rest.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view power = rest.substr(e + 1);
    if (power.starts_with('+')) {
      power.remove_prefix(1);
      if (power.starts_with('-')) return refuse();
    }
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || end != power.data() + power.size() ||
        exponent != static_cast<int32_t>(exponent))
      return refuse();
    rest = rest.substr(0, e);
  }
  std::string digits;
  int64_t scale = 0;
  bool point = false;
  for (const char c : rest) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits += c;
      scale += point;
    } else {
      return refuse();
    }
  }
  if (digits.empty() || static_cast<int64_t>(digits.size()) > kDigitsMax) return refuse();
  scale -= exponent;
  if (scale != static_cast<int32_t>(scale)) return refuse();
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  BigInt unscaled(digits);
  if (negative) unscaled = -unscaled;
  return make_decimal(static_cast<int32_t>(scale), from_big(unscaled));
}

Result<std::string> decimal_to_text(BytesView bytes) {
  TETRAD_TRY_VOID(check_length(bytes));
  std::string digits = to_big(unscaled_bytes(bytes)).str();
  const int64_t scale = scale_of(bytes);
  if (scale == 0) return digits;
  std::string out;
  if (digits[0] == '-') {
    out = "-";
    digits.erase(0, 1);
  }
  const auto count = static_cast<int64_t>(digits.size());
  // The exponent if one digit stood before the point.
  const int64_t adjusted = count - 1 - scale;
  // BigDecimal.toString: plain down to 1E-6.
  if (scale > 0 && adjusted >= -6) {
    if (count <= scale) digits.insert(0, static_cast<size_t>(scale - count + 1), '0');
    digits.insert(digits.size() - static_cast<size_t>(scale), 1, '.');
    return out + digits;
  }
  if (count > 1) digits.insert(1, 1, '.');
  out += digits;
  if (adjusted != 0) out += fmt::format("E{:+}", adjusted);
  return out;
}

Result<Bytes> decimal_arithmetic(ArithmeticOp op, BytesView a, BytesView b) {
  TETRAD_TRY_VOID(check_length(a));
  TETRAD_TRY_VOID(check_length(b));
  Decimal left = to_decimal(a), right = to_decimal(b);
  switch (op) {
    case ArithmeticOp::kSubtract:
      right.unscaled = -right.unscaled;
      [[fallthrough]];
    case ArithmeticOp::kAdd:
      return from_decimal(add(std::move(left), std::move(right)));
    case ArithmeticOp::kMultiply: {
      Decimal product{left.unscaled * right.unscaled, left.scale + right.scale};
      round_to_digits(product, kPrecisionMax);
      return from_decimal(product);
    }
    case ArithmeticOp::kDivide: {
      TETRAD_TRY(const Decimal quotient, divide(left, right));
      return from_decimal(quotient);
    }
    case ArithmeticOp::kRemainder: {
      TETRAD_TRY(const Decimal rest, remainder(left, right));
      return from_decimal(rest);
    }
  }
  std::unreachable();
}

Bytes decimal_negate(BytesView bytes) {
  return make_decimal(scale_of(bytes), varint_negate(unscaled_bytes(bytes)));
}

Bytes decimal_from_varint(BytesView bytes) { return make_decimal(0, minimal_varint(bytes)); }

Bytes decimal_from_int64(int64_t value) { return make_decimal(0, from_big(BigInt(value))); }

Result<Bytes> decimal_from_double(double value) {
  if (!std::isfinite(value)) {
    return fail(ErrorCode::kInvalid, "{} cannot be converted into a decimal",
                std::isnan(value) ? "A NaN" : "An infinite number");
  }
  return decimal_from_text(double_to_text(value));
}

// Through its text, so that it is rounded once. Numbers out of range of a double become 0 or an
// infinity.
double decimal_to_double(BytesView bytes) {
  const BytesView unscaled = unscaled_bytes(bytes);
  if (unscaled.size() > kNumberBytesMax) return std::numeric_limits<double>::quiet_NaN();
  const auto text = decimal_to_text(bytes);
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc()) return value;
  const bool negative = text->front() == '-';
  const bool tiny = text->find("E-") != std::string::npos;
  value = tiny ? 0 : std::numeric_limits<double>::infinity();
  return negative ? -value : value;
}

// Cut off towards zero, as BigDecimal.toBigInteger().
Result<Bytes> decimal_to_varint(BytesView bytes) {
  TETRAD_TRY_VOID(check_length(bytes));
  Decimal value = to_decimal(bytes);
  if (value.unscaled.is_zero() || value.scale > kDigitsMax) return from_big(0);
  if (value.scale < -kDigitsMax)
    return fail(ErrorCode::kInvalid, "a decimal of scale {} is too large for a varint",
                value.scale);
  if (value.scale > 0) return from_big(value.unscaled / power_of_ten(value.scale));
  return from_big(value.unscaled * power_of_ten(-value.scale));
}

Result<DecimalDigits> decimal_digits(BytesView bytes) {
  TETRAD_TRY_VOID(check_length(bytes));
  DecimalDigits out;
  const BigInt unscaled = to_big(unscaled_bytes(bytes));
  if (unscaled.is_zero()) return out;
  out.negative = unscaled < 0;
  out.digits = BigInt(abs(unscaled)).str();
  // The value is 0.digits * 10^exponent.
  out.exponent = static_cast<int64_t>(out.digits.size()) - scale_of(bytes);
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  return out;
}

Result<Bytes> decimal_from_digits(const DecimalDigits& value) {
  if (value.digits.empty()) return make_decimal(0, BytesView("\0", 1));
  const auto count = static_cast<int64_t>(value.digits.size());
  int64_t scale = 0;
  if (count > kDigitsMax || __builtin_sub_overflow(count, value.exponent, &scale))
    return fail(ErrorCode::kCorruption, "no decimal has {} digits", count);
  std::string digits = value.digits;
  constexpr int64_t kScaleMin = std::numeric_limits<int32_t>::min();
  // Zeros that were cut off may be needed: a scale has 32 bits only.
  if (scale < kScaleMin && scale >= kScaleMin - kDigitsMax) {
    digits.append(static_cast<size_t>(kScaleMin - scale), '0');
    scale = kScaleMin;
  }
  if (scale != static_cast<int32_t>(scale))
    return fail(ErrorCode::kCorruption, "no decimal has the scale {}", scale);
  BigInt unscaled(digits);
  if (value.negative) unscaled = -unscaled;
  return make_decimal(static_cast<int32_t>(scale), from_big(unscaled));
}

namespace {

// Java's notation (plain from 1E-3 to below 1E7, otherwise with an exponent), with the shortest
// digits that read back as the number.
template <class Float>
std::string float_text(Float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::string out = std::signbit(value) ? "-" : "";
  value = std::abs(value);
  if (value == 0) return out + "0.0";
  char buffer[64];
  auto done = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  if (buffer[1] == 'e') {
    // Java always has two digits; where both of them fit the value, the nearest two.
    char two[64];
    const auto end = std::to_chars(two, two + sizeof(two), value, std::chars_format::scientific, 1);
    Float back = 0;
    std::from_chars(two, end.ptr, back, std::chars_format::scientific);
    if (back == value) {
      std::copy(two, end.ptr, buffer);
      done.ptr = buffer + (end.ptr - two);
    }
  }
  const std::string_view text(buffer, static_cast<size_t>(done.ptr - buffer));
  const size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  int exponent = 0;
  const char* power = text.data() + e + 1 + (text[e + 1] == '+');
  std::from_chars(power, done.ptr, exponent);
  if (exponent >= -3 && exponent < 7) {
    if (exponent < 0) {
      return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    }
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
    return out + digits.substr(0, whole) + "." + digits.substr(whole);
  }
  if (digits.size() == 1) digits += '0';
  return out + digits.substr(0, 1) + "." + digits.substr(1) + "E" + std::to_string(exponent);
}

}  // namespace

std::string double_to_text(double value) { return float_text(value); }
std::string float_to_text(float value) { return float_text(value); }

}  // namespace tetrad::cql
