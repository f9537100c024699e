// SPDX-License-Identifier: Apache-2.0
// exp and logarithms of decimals: what Cassandra 5.0 answers, and bounds.
#include "cql/types/number_math.h"

#include <string>

#include <catch2/catch.hpp>

#include "cql/types/number.h"

namespace tetrad::cql {
namespace {

using Function = Result<Bytes> (*)(BytesView);

std::string answer(Function function, const std::string& argument) {
  const auto made = function(*decimal_from_text(argument));
  return made ? *decimal_to_text(*made) : made.error().message;
}

TEST_CASE("exp keeps 32 digits") {
  CHECK(answer(decimal_exp, "0") == "1");
  CHECK(answer(decimal_exp, "0.00") == "1");
  CHECK(answer(decimal_exp, "1") == "2.7182818284590452353602874713527");
  CHECK(answer(decimal_exp, "-1") == "0.36787944117144232159552377016146");
  CHECK(answer(decimal_exp, "100") == "2.6881171418161354484126255515800E+43");
  CHECK(answer(decimal_exp, "-12345.678") == "2.1886143661723983194640205650451E-5362");
  CHECK(answer(decimal_exp, "123456789") == "1.6451067310176607746541429329468E+53616602");
  CHECK(answer(decimal_exp, "1e-38") == "1.0000000000000000000000000000000");
  CHECK(answer(decimal_exp, "-1e-38") == "1.0000000000000000000000000000000");
  CHECK(answer(decimal_exp, "1e-2147483647") == "1.0000000000000000000000000000000");
  CHECK(answer(decimal_exp, "0.000000000000001") == "1.0000000000000010000000000000005");
  CHECK(answer(decimal_exp, "1e26") == "Overflow");
  CHECK(answer(decimal_exp, "1e10") == "Overflow");
  CHECK(answer(decimal_exp, "-1e10") == "Underflow");
}

TEST_CASE("log keeps 32 digits, near 1 as well") {
  CHECK(answer(decimal_log, "1") == "0");
  CHECK(answer(decimal_log, "1.00") == "0");
  CHECK(answer(decimal_log, "10") == "2.3025850929940456840179914546844");
  CHECK(answer(decimal_log, "0.5") == "-0.69314718055994530941723212145818");
  CHECK(answer(decimal_log, "1e100") == "230.25850929940456840179914546844");
  CHECK(answer(decimal_log, "1e-100") == "-230.25850929940456840179914546844");
  CHECK(answer(decimal_log, "1.0000000001") == "9.9999999995000000000333333333308E-11");
  CHECK(answer(decimal_log, "1.00000000000000000000000000000000000000001") ==
        "9.99999999999999999999999999999999999999995E-42");
  CHECK(answer(decimal_log, "99.999999999999999999999999999999999999999999999999999999999999999") ==
        "4.6051701859880913680359829093687284152022029772575459520666558019");
  CHECK(answer(decimal_log, "0") == "Natural log of number zero or less");
  CHECK(answer(decimal_log, "-1") == "Natural log of number zero or less");
}

TEST_CASE("log10 of powers of ten") {
  CHECK(answer(decimal_log10, "10") == "1");
  CHECK(answer(decimal_log10, "0.1") == "-1");
  CHECK(answer(decimal_log10, "1e100") == "1E+2");
  CHECK(answer(decimal_log10, "1000.00") == "3.0000000000000000000000000000000");
  CHECK(answer(decimal_log10, "1") == "0E+33");
  CHECK(answer(decimal_log10, "5e-100") == "-99.301029995663981195213738894724");
  CHECK(answer(decimal_log10, "-1") == "Log10 of number zero or less");
}

TEST_CASE("arguments are bounded") {
  const std::string digits(kMathDigitsMax, '7');
  for (const Function function : {decimal_exp, decimal_log, decimal_log10}) {
    CHECK(function(*decimal_from_text("0." + digits)));
    CHECK_FALSE(function(*decimal_from_text("0." + digits + "7")));
  }
}

}  // namespace
}  // namespace tetrad::cql
