// SPDX-License-Identifier: Apache-2.0
// Arithmetic, conversions between numbers, and math functions. Integers wrap around as in Java.
//
// Results must equal Cassandra's bit by bit, so each conversion follows Java: what wraps, what
// stays at the end of a range, and what goes through a double. An operator first brings both
// operands to the type of the result (common_type, operand), then calculates in that type. An empty
// value, which Cassandra allows for numbers, gives null.
#include <array>
#include <cmath>
#include <limits>

#include "cql/functions/function_table.h"
#include "cql/types/number.h"
#include "cql/types/number_math.h"

namespace tetrad::cql {

namespace {

/// No column takes a longer text.
constexpr size_t kJoinedBytesMax = 16u << 20;

std::unexpected<Error> failure(std::string_view text) {
  return fail(ErrorCode::kFunctionFailure, "{}", text);
}

/// Java's narrowing of a double: NaN is 0, what is too large stays at the end of the range.
int64_t saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9.2233720368547758e18) return std::numeric_limits<int64_t>::max();
  if (value <= -9.2233720368547758e18) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}
int32_t saturated_int(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 2147483647.0) return std::numeric_limits<int32_t>::max();
  if (value <= -2147483648.0) return std::numeric_limits<int32_t>::min();
  return static_cast<int32_t>(value);
}

// Bytes of the type; 100 for varint and decimal, which have no bound.
int size_rank(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return 1;
    case TypeKind::kSmallint:
      return 2;
    case TypeKind::kInt:
    case TypeKind::kFloat:
      return 4;
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kDouble:
      return 8;
    default:
      return 100;
  }
}
bool is_floating(const DataType& type) {
  return type.kind() == TypeKind::kFloat || type.kind() == TypeKind::kDouble ||
         type.kind() == TypeKind::kDecimal;
}

/// The type of the result of an operation on two numbers.
// The larger size of the two, floating if one of them is: int + float is float, bigint + float is
// double, varint + float is decimal.
const TypePtr& common_type(const DataType& left, const DataType& right) {
  const int size = std::max(size_rank(left), size_rank(right));
  if (is_floating(left) || is_floating(right)) {
    return size <= 4 ? float_type() : size <= 8 ? double_type() : decimal_type();
  }
  switch (size) {
    case 1:
      return tinyint_type();
    case 2:
      return smallint_type();
    case 4:
      return int_type();
    case 8:
      return bigint_type();
    default:
      return varint_type();
  }
}

ArithmeticOp arithmetic_op(char op) {
  switch (op) {
    case '+':
      return ArithmeticOp::kAdd;
    case '-':
      return ArithmeticOp::kSubtract;
    case '*':
      return ArithmeticOp::kMultiply;
    case '/':
      return ArithmeticOp::kDivide;
    default:
      return ArithmeticOp::kRemainder;
  }
}

// Unsigned, because a signed overflow is undefined in C++; the bits are those of Java. Smaller
// types calculate in 64 bits, too, and make_integer() cuts the result.
Result<int64_t> integer_calculation(char op, int64_t left, int64_t right) {
  const auto l = static_cast<uint64_t>(left), r = static_cast<uint64_t>(right);
  switch (op) {
    case '+':
      return static_cast<int64_t>(l + r);
    case '-':
      return static_cast<int64_t>(l - r);
    case '*':
      return static_cast<int64_t>(l * r);
    default:
      if (right == 0) return failure("/ by zero");
      // The least bigint divided by -1 would trap the processor; in Java it is itself.
      if (right == -1) return op == '/' ? static_cast<int64_t>(0 - l) : 0;
      return op == '/' ? left / right : left % right;
  }
}

template <class Float>
Float float_calculation(char op, Float left, Float right) {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    default:
      return std::fmod(left, right);
  }
}

}  // namespace

bool is_integer(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kTinyint:
    case TypeKind::kSmallint:
    case TypeKind::kInt:
    case TypeKind::kBigint:
    case TypeKind::kCounter:
      return true;
    default:
      return false;
  }
}

bool is_number(const DataType& type) {
  return is_integer(type) || is_floating(type) || type.kind() == TypeKind::kVarint;
}

std::optional<int64_t> integer_of(const DataType& type, BytesView value) {
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return read_tinyint(value);
    case TypeKind::kSmallint:
      return read_smallint(value);
    case TypeKind::kInt:
      return read_int(value);
    default:
      return read_bigint(value);
  }
}

Bytes make_integer(const DataType& type, int64_t value) {
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return make_tinyint(static_cast<int8_t>(value));
    case TypeKind::kSmallint:
      return make_smallint(static_cast<int16_t>(value));
    case TypeKind::kInt:
      return make_int(static_cast<int32_t>(value));
    default:
      return make_bigint(value);
  }
}

double double_of(const DataType& type, BytesView value) {
  switch (type.kind()) {
    case TypeKind::kFloat:
      return read_float(value).value_or(0);
    case TypeKind::kDouble:
      return read_double(value).value_or(0);
    case TypeKind::kDecimal:
      return decimal_to_double(value);
    case TypeKind::kVarint:
      return varint_to_double(value);
    default:
      return static_cast<double>(integer_of(type, value).value_or(0));
  }
}

Bytes varint_of(const DataType& type, BytesView value) {
  if (type.kind() == TypeKind::kVarint) return Bytes(value);
  return make_varint(integer_of(type, value).value_or(0));
}

Result<Bytes> decimal_of(const DataType& type, BytesView value) {
  switch (type.kind()) {
    case TypeKind::kDecimal:
      return Bytes(value);
    case TypeKind::kVarint:
      return decimal_from_varint(value);
    case TypeKind::kFloat:
      // By its text: 0.1 is 0.1, not the binary number next to it.
      return decimal_from_text(float_to_text(read_float(value).value_or(0)));
    case TypeKind::kDouble:
      return decimal_from_double(read_double(value).value_or(0));
    default:
      return decimal_from_int64(integer_of(type, value).value_or(0));
  }
}

std::span<const TypePtr> number_types() {
  static const std::array<TypePtr, 10> kTypes = {
      counter_type(), varint_type(), decimal_type(), float_type(),    double_type(),
      bigint_type(),  int_type(),    tinyint_type(), smallint_type(),
  };
  return std::span(kTypes).first(9);
}

Result<Bytes> convert_number(const DataType& from, BytesView value, const DataType& to) {
  switch (to.kind()) {
    case TypeKind::kFloat:
      return make_float(static_cast<float>(double_of(from, value)));
    case TypeKind::kDouble:
      return make_double(double_of(from, value));
    case TypeKind::kDecimal:
      return decimal_of(from, value);
    case TypeKind::kVarint: {
      if (is_integer(from) || from.kind() == TypeKind::kVarint) return varint_of(from, value);
      if (from.kind() == TypeKind::kDecimal) {  // as Cassandra: by way of a bigint
        TETRAD_TRY(const Bytes integral, decimal_to_varint(value));
        return make_varint(varint_low_bits(integral));
      }
      return make_varint(saturated(double_of(from, value)));
    }
    default: {
      int64_t number = 0;
      if (is_integer(from)) {
        number = integer_of(from, value).value_or(0);
      } else if (from.kind() == TypeKind::kVarint) {
        number = varint_low_bits(value);
      } else if (from.kind() == TypeKind::kDecimal) {
        TETRAD_TRY(const Bytes integral, decimal_to_varint(value));
        number = varint_low_bits(integral);
      } else {
        // To types below int Java narrows to int first, where large numbers stay at the end, and
        // then cuts.
        const double d = double_of(from, value);
        number = to.kind() == TypeKind::kBigint || to.kind() == TypeKind::kCounter
                     ? saturated(d)
                     : saturated_int(d);
      }
      return make_integer(to, number);
    }
  }
}

Result<OptionalBytes> calculate(char op, const DataType& type, BytesView left, BytesView right) {
  if (left.empty() || right.empty()) return std::nullopt;
  // Errors of numbers become kFunctionFailure, which drivers know as FunctionFailure.
  const auto as_failure = [](Result<Bytes> result) -> Result<OptionalBytes> {
    if (!result) return failure(result.error().message);
    return std::move(*result);
  };
  switch (type.kind()) {
    case TypeKind::kFloat:
      return make_float(
          float_calculation(op, read_float(left).value_or(0), read_float(right).value_or(0)));
    case TypeKind::kDouble:
      return make_double(
          float_calculation(op, read_double(left).value_or(0), read_double(right).value_or(0)));
    case TypeKind::kVarint:
      return as_failure(varint_arithmetic(arithmetic_op(op), left, right));
    case TypeKind::kDecimal:
      return as_failure(decimal_arithmetic(arithmetic_op(op), left, right));
    default: {
      const auto l = integer_of(type, left), r = integer_of(type, right);
      if (!l || !r) return std::nullopt;
      TETRAD_TRY(const int64_t result, integer_calculation(op, *l, *r));
      return make_integer(type, result);
    }
  }
}

namespace {

/// A number as an operand of an operator of `type`. Where that is decimal, numbers other than
/// varint go through a double, as in Java's BigDecimal.valueOf(double): 7 becomes 7.0.
Result<Bytes> operand(const DataType& from, BytesView value, const DataType& type) {
  if (type.kind() == TypeKind::kDecimal && from.kind() != TypeKind::kDecimal &&
      from.kind() != TypeKind::kVarint) {
    auto made = decimal_from_double(double_of(from, value));
    if (!made) return failure(made.error().message);
    return made;
  }
  return convert_number(from, value, type);
}

/// Half up, away from zero, to no decimal places.
Result<OptionalBytes> rounded_decimal(BytesView value) {
  const bool negative = compare_decimal(value, decimal_from_int64(0)) < 0;
  // decimal_to_varint() cuts towards zero: with a half of the same sign it rounds.
  TETRAD_TRY(const Bytes half, decimal_from_text(negative ? "-0.5" : "0.5"));
  TETRAD_TRY(const Bytes shifted, decimal_arithmetic(ArithmeticOp::kAdd, value, half));
  TETRAD_TRY(const Bytes integral, decimal_to_varint(shifted));
  return decimal_from_varint(integral);
}

}  // namespace

ScalarFunctionPtr find_operator(char op, const TypePtr& left, const TypePtr& right) {
  if (is_number(*left) && is_number(*right)) {
    const TypePtr& type = common_type(*left, *right);
    ScalarFunction function = pure_function(
        {left, right}, type,
        [op, left, right, type](const FunctionEnvironment&,
                                FunctionArguments arguments) -> Result<OptionalBytes> {
          if (arguments[0]->empty() || arguments[1]->empty()) return std::nullopt;
          TETRAD_TRY(const Bytes l, operand(*left, *arguments[0], *type));
          TETRAD_TRY(const Bytes r, operand(*right, *arguments[1], *type));
          return calculate(op, *type, l, r);
        });
    function.name = std::string("_") + op;
    return std::make_shared<const ScalarFunction>(std::move(function));
  }
  const auto is_text = [](const DataType& type) {
    return type.kind() == TypeKind::kText || type.kind() == TypeKind::kAscii;
  };
  if (op == '+' && is_text(*left) && is_text(*right)) {
    const bool ascii = left->kind() == TypeKind::kAscii && right->kind() == TypeKind::kAscii;
    return std::make_shared<const ScalarFunction>(pure_function(
        {left, right}, ascii ? ascii_type() : text_type(),
        [](const FunctionEnvironment&, FunctionArguments arguments) -> Result<OptionalBytes> {
          const size_t size = arguments[0]->size() + arguments[1]->size();
          if (size > kJoinedBytesMax) {
            return fail(ErrorCode::kInvalid, "the texts joined by '+' have {} bytes, at most {}",
                        size, kJoinedBytesMax);
          }
          Bytes joined;
          joined.reserve(size);
          joined.append(*arguments[0]).append(*arguments[1]);
          return joined;
        }));
  }
  if ((op == '+' || op == '-') && right->kind() == TypeKind::kDuration &&
      (left->kind() == TypeKind::kTimestamp || left->kind() == TypeKind::kDate)) {
    // They are in the table of native functions (time_functions.cc), as they have fixed types.
    const auto& candidates = find_native_functions(
        left->kind() == TypeKind::kTimestamp ? (op == '+' ? "_timestamp_add" : "_timestamp_sub")
                                             : (op == '+' ? "_date_add" : "_date_sub"));
    return candidates.empty() ? nullptr : candidates.front();
  }
  return nullptr;
}

ScalarFunctionPtr find_negation(const TypePtr& argument) {
  if (!is_number(*argument)) return nullptr;
  return std::make_shared<const ScalarFunction>(pure_function(
      {argument}, argument,
      [argument](const FunctionEnvironment&, FunctionArguments arguments) -> Result<OptionalBytes> {
        const BytesView value = *arguments[0];
        if (value.empty()) return std::nullopt;
        switch (argument->kind()) {
          case TypeKind::kFloat:
            return make_float(-read_float(value).value_or(0));
          case TypeKind::kDouble:
            return make_double(-read_double(value).value_or(0));
          case TypeKind::kVarint:
            return varint_negate(value);
          case TypeKind::kDecimal:
            return decimal_negate(value);
          default:
            return make_integer(
                *argument, static_cast<int64_t>(0 - static_cast<uint64_t>(
                                                        integer_of(*argument, value).value_or(0))));
        }
      }));
}

/// As Java's Math.round: half up, an integer of 32 or 64 bits, whose ends take what is beyond.
static double java_round(double number, bool is_float) {
  if (std::isnan(number)) return 0;
  // + 0.0 makes 0 of -0, as an integer has no sign for it.
  const double end = is_float ? 2147483648.0 : 9223372036854775808.0;
  return std::clamp(std::floor(number + 0.5), -end, end) + 0.0;
}

/// The sign of NaN is Java's, where C's library has another one for -Infinity.
double java_log10(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return x == -kInfinity ? -std::numeric_limits<double>::quiet_NaN() : std::log10(x);
}

void add_math_functions(FunctionTable& table) {
  using Math = double (*)(double);
  using DecimalMath = Result<Bytes> (*)(BytesView);
  struct Named {
    std::string_view name;
    Math function;
    DecimalMath of_decimal;
  };
  const std::array<Named, 4> by_double = {
      Named{"exp", [](double x) { return std::exp(x); }, decimal_exp},
      Named{"log", [](double x) { return std::log(x); }, decimal_log},
      Named{"log10", java_log10, decimal_log10}, Named{"round", nullptr, nullptr}};
  for (const TypePtr& type : number_types()) {
    ScalarFunction abs = pure_function(
        {type}, type,
        [type](const FunctionEnvironment&, FunctionArguments arguments) -> Result<OptionalBytes> {
          const BytesView value = *arguments[0];
          if (value.empty()) return std::nullopt;
          switch (type->kind()) {
            case TypeKind::kFloat:
              return make_float(std::fabs(read_float(value).value_or(0)));
            case TypeKind::kDouble:
              return make_double(std::fabs(read_double(value).value_or(0)));
            case TypeKind::kVarint:
              return compare_varint(value, make_varint(0)) < 0 ? varint_negate(value)
                                                               : Bytes(value);
            case TypeKind::kDecimal:
              return compare_decimal(value, decimal_from_int64(0)) < 0 ? decimal_negate(value)
                                                                       : Bytes(value);
            default: {
              const int64_t number = integer_of(*type, value).value_or(0);
              return make_integer(
                  *type,
                  number < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(number)) : number);
            }
          }
        });
    table.add({"abs"}, abs);
    for (const Named& named : by_double) {
      const bool is_round = named.function == nullptr;
      table.add(
          {named.name},
          pure_function({type}, type,
                        [type, is_round, f = named.function, of_decimal = named.of_decimal](
                            const FunctionEnvironment&,
                            FunctionArguments arguments) -> Result<OptionalBytes> {
                          const BytesView value = *arguments[0];
                          if (value.empty()) return std::nullopt;
                          if (is_round) {
                            if (is_integer(*type) || type->kind() == TypeKind::kVarint) {
                              return Bytes(value);
                            }
                            if (type->kind() == TypeKind::kDecimal) return rounded_decimal(value);
                            const double rounded = java_round(double_of(*type, value),
                                                              type->kind() == TypeKind::kFloat);
                            return convert_number(*double_type(), make_double(rounded), *type);
                          }
                          if (type->kind() == TypeKind::kDecimal) return of_decimal(value);
                          if (type->kind() == TypeKind::kVarint) {
                            TETRAD_TRY(const Bytes exact, of_decimal(decimal_from_varint(value)));
                            return decimal_to_varint(exact);
                          }
                          return convert_number(*double_type(),
                                                make_double(f(double_of(*type, value))), *type);
                        }));
    }
  }
}

}  // namespace tetrad::cql
