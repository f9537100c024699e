// SPDX-License-Identifier: Apache-2.0
// The order of decimals against an oracle, and the order of those that would be long to expand.
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "cql/types/number.h"

namespace tetrad::cql {
namespace {

Bytes decimal_of(int32_t scale, BytesView unscaled) {
  Bytes out;
  base::ByteWriter(out).i32(scale);
  return out.append(unscaled);
}

TEST_CASE("decimals compare as their expanded digits do") {
  std::mt19937_64 random(7);
  const auto digits = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += static_cast<char>('0' + random() % 10);
    return out.empty() ? "0" : out;
  };
  // The oracle: both written with one scale, which varints then tell.
  const auto expanded = [](const std::string& number, int32_t scale) {
    return *varint_from_text(number + std::string(static_cast<size_t>(700 - scale), '0'));
  };
  const auto sign = [](int order) { return (order > 0) - (order < 0); };
  for (int i = 0; i < 20'000; ++i) {
    const std::string minus = random() % 2 == 0 ? "-" : "";
    const auto scale_a = static_cast<int32_t>(random() % 700),
               scale_b = static_cast<int32_t>(random() % 700);
    std::string a = digits(1 + random() % (i % 2 == 0 ? 8 : 400)), b = digits(1 + random() % 40);
    if (i % 3 == 0 && scale_b >= scale_a) {  // nearly equal, or equal
      b = a + std::string(static_cast<size_t>(scale_b - scale_a), '0');
      if (i % 9 != 0) b.back() = '1';
    }
    a.insert(0, minus);
    if (i % 5 != 0) b.insert(0, minus);
    const Bytes left = decimal_of(scale_a, *varint_from_text(a)),
                right = decimal_of(scale_b, *varint_from_text(b));
    const int expected = sign(compare_varint(expanded(a, scale_a), expanded(b, scale_b)));
    INFO(a << " scale " << scale_a << ", " << b << " scale " << scale_b);
    CHECK(compare_decimal(left, right) == expected);
    CHECK(compare_decimal(right, left) == -expected);
  }
}

TEST_CASE("decimals compare without expanding what their scales say") {
  // 128 KiB of digits against five bytes of about the same size: 10^315,652 between them.
  const Bytes large = decimal_of(0, Bytes(1, '\x01') + Bytes(128 * 1024, '\x00'));
  for (int32_t i = 0; i < 2000; ++i) {
    const Bytes small = decimal_of(-315'000 - i, Bytes(1, '\x07'));
    REQUIRE(compare_decimal(large, small) == (315'000 + i < 315'652 ? 1 : -1));
    REQUIRE(compare_decimal(small, large) == (315'000 + i < 315'652 ? -1 : 1));
  }
  const std::string ones(30'000, '1');
  for (const char* last : {"0", "1", "2"}) {  // all digits count up to 16 KiB
    const Bytes a = *decimal_from_text(ones), b = *decimal_from_text(ones + last + "E-1");
    CHECK(compare_decimal(a, b) == (last[0] == '0' ? 0 : -1));
  }
  // Of longer ones those in front: the order stays one.
  Bytes longer(64 * 1024, '\x11'), other = longer;
  other[100] = '\x12';
  const BytesView five("\x05", 1);
  Bytes fifty = *varint_arithmetic(ArithmeticOp::kMultiply, five, "\x0a");
  CHECK(compare_decimal(decimal_of(0, longer), decimal_of(0, other)) == -1);
  CHECK(compare_decimal(decimal_of(3, longer), decimal_of(2, longer)) == -1);
  CHECK(compare_decimal(decimal_of(0, longer), decimal_of(157'810, longer + longer)) != 0);
  const Bytes tiny = decimal_of(2147483647, five), huge = decimal_of(-2147483647 - 1, fifty);
  CHECK(compare_decimal(tiny, huge) == -1);
}

}  // namespace
}  // namespace tetrad::cql
