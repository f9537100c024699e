// SPDX-License-Identifier: Apache-2.0
// Numbers of any length between Java's bytes (two's complement, big-endian) and Boost's, which have
// sign and magnitude.
#include "cql/types/big_number.h"

#include <iterator>
#include <limits>

#include "base/byte_io.h"
#include "cql/types/number.h"

namespace tetrad::cql {

BigInt to_big(BytesView bytes) {
  BigInt value;
  if (bytes.empty()) return value;
  const bool negative = (static_cast<uint8_t>(bytes.front()) & 0x80) != 0;
  Bytes complement;  // of -n in two's complement: n - 1
  if (negative) {
    complement = bytes;
    for (char& c : complement) c = static_cast<char>(~c);
    bytes = complement;
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  boost::multiprecision::import_bits(value, begin, begin + bytes.size(), 8);
  if (negative) value = -value - 1;
  return value;
}

Bytes from_big(const BigInt& value) {
  BigInt magnitude = value;
  const bool negative = value < 0;
  // -m in two's complement is the complement of m - 1.
  if (negative) magnitude = -magnitude - 1;
  Bytes out(1, '\0');  // room for the sign
  if (!magnitude.is_zero()) {
    boost::multiprecision::export_bits(magnitude, std::back_inserter(out), 8);
  }
  if (negative) {
    for (char& c : out) c = static_cast<char>(~c);
  }
  return Bytes(minimal_varint(out));
}

// `exponent` is not negative; callers bound it, since each step makes the number 3.3 bits longer.
BigInt power_of_ten(int64_t exponent) {
  return boost::multiprecision::pow(BigInt(10), static_cast<unsigned>(exponent));
}

// Decimal digits, by the logarithm and one or two comparisons, since printing would cost the square
// of the length.
int64_t digit_count(const BigInt& value) {
  if (value.is_zero()) return 1;
  const BigInt magnitude = abs(value);
  const auto bits = static_cast<int64_t>(msb(magnitude));
  // 10^estimate <= 2^bits, so the count is estimate + 1 or, rarely, one more.
  const int64_t estimate =
      bits * 1233 / 4096 > 0
          ? static_cast<int64_t>(static_cast<long double>(bits) * 0.30102999566398119521L)
          : 0;
  return magnitude >= power_of_ten(estimate + 1) ? estimate + 2
         : magnitude >= power_of_ten(estimate)   ? estimate + 1
                                                 : estimate;
}

// Away from zero at exactly one half, as Java's RoundingMode.HALF_UP.
BigInt divide_half_up(const BigInt& a, const BigInt& b) {
  BigInt quotient, remainder;
  divide_qr(a, b, quotient, remainder);
  if (abs(remainder) * 2 >= abs(b)) quotient += (a < 0) == (b < 0) ? 1 : -1;
  return quotient;
}

// decimal := i32 scale, varint unscaled. Too short a value is 0 of scale 0.
BytesView unscaled_bytes(BytesView bytes) {
  return bytes.size() > 4 ? bytes.substr(4) : BytesView();
}

int32_t scale_of(BytesView bytes) {
  return bytes.size() < 4 ? 0 : base::load_big_endian<int32_t>(bytes.data());
}

Decimal to_decimal(BytesView bytes) { return {to_big(unscaled_bytes(bytes)), scale_of(bytes)}; }

Bytes make_decimal(int32_t scale, BytesView unscaled) {
  Bytes out;
  out.reserve(4 + unscaled.size());
  base::ByteWriter(out).i32(scale);
  out.append(unscaled);
  return out;
}

// Scales have 32 bits on the wire; Java's words for those that do not fit.
Result<Bytes> from_decimal(const Decimal& value) {
  if (value.scale > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kInvalid, "Underflow");
  if (value.scale < std::numeric_limits<int32_t>::min())
    return fail(ErrorCode::kInvalid, "Overflow");
  return make_decimal(static_cast<int32_t>(value.scale), from_big(value.unscaled));
}

// Rounding 9.99 up makes a digit more, so it is looked at again.
void round_to_digits(Decimal& value, int64_t digits) {
  for (;;) {
    const int64_t drop = digit_count(value.unscaled) - digits;
    if (drop <= 0) return;
    value.unscaled = divide_half_up(value.unscaled, power_of_ten(drop));
    value.scale -= drop;
  }
}

}  // namespace tetrad::cql
