// SPDX-License-Identifier: Apache-2.0
#include "cql/functions/aggregate.h"

#include "cql/functions/function_table.h"
#include "cql/types/compare.h"
#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

/// Rows, or values that are not null.
class Count final : public Aggregator {
 public:
  Result<void> add(FunctionArguments values) override {
    if (values.empty() || values[0]) ++count_;
    return {};
  }
  Result<OptionalBytes> finish() override { return make_bigint(std::exchange(count_, 0)); }

 private:
  int64_t count_ = 0;
};

class Extreme final : public Aggregator {
 public:
  Extreme(TypePtr type, bool wants_max) : type_(std::move(type)), wants_max_(wants_max) {}
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value) return {};
    const int order = best_ ? compare(*type_, *value, *best_) : 0;
    if (!best_ || (wants_max_ ? order > 0 : order < 0)) best_ = Bytes(*value);
    return {};
  }
  Result<OptionalBytes> finish() override { return std::exchange(best_, std::nullopt); }

 private:
  const TypePtr type_;
  const bool wants_max_;
  OptionalBytes best_;
};

/// The sum in the argument's own type, wrapping around; 0 of nothing.
class Sum final : public Aggregator {
 public:
  explicit Sum(TypePtr type) : type_(std::move(type)) { reset(); }
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    TETRAD_TRY(OptionalBytes sum, calculate('+', *type_, sum_, *value));
    if (sum) sum_ = std::move(*sum);
    return {};
  }
  Result<OptionalBytes> finish() override {
    Bytes sum = std::move(sum_);
    reset();
    return sum;
  }

 private:
  void reset() {
    switch (type_->kind()) {
      case TypeKind::kFloat:
        sum_ = make_float(0);
        break;
      case TypeKind::kDouble:
        sum_ = make_double(0);
        break;
      case TypeKind::kVarint:
        sum_ = make_varint(0);
        break;
      case TypeKind::kDecimal:
        sum_ = decimal_from_int64(0);
        break;
      default:
        sum_ = make_integer(*type_, 0);
        break;
    }
  }
  const TypePtr type_;
  Bytes sum_;
};

/// `sum` / `count` with the scale of the sum, half to even.
Result<OptionalBytes> decimal_mean(BytesView sum, int64_t count) {
  const BytesView unscaled = sum.substr(4);
  const Bytes divisor = make_varint(count), zero = make_varint(0);
  TETRAD_TRY(Bytes quotient, varint_arithmetic(ArithmeticOp::kDivide, unscaled, divisor));
  TETRAD_TRY(Bytes rest, varint_arithmetic(ArithmeticOp::kRemainder, unscaled, divisor));
  const bool negative = compare_varint(unscaled, zero) < 0;
  if (negative) rest = varint_negate(rest);
  TETRAD_TRY(const Bytes twice, varint_arithmetic(ArithmeticOp::kAdd, rest, rest));
  const int half = compare_varint(twice, divisor);
  if (half > 0 || (half == 0 && (varint_low_bits(quotient) & 1) != 0)) {
    TETRAD_TRY(quotient, varint_arithmetic(negative ? ArithmeticOp::kSubtract : ArithmeticOp::kAdd,
                                           quotient, make_varint(1)));
  }
  return Bytes(sum.substr(0, 4)) + quotient;
}

/// The mean in the argument's own type; sums never overflow.
class Average final : public Aggregator {
 public:
  explicit Average(TypePtr type) : type_(std::move(type)) {
    if (type_->kind() == TypeKind::kDecimal) {
      wide_ = decimal_from_int64(0);
    } else {
      wide_ = make_varint(0);
    }
  }
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    ++count_;
    switch (type_->kind()) {
      case TypeKind::kFloat:
      case TypeKind::kDouble:
        sum_ += double_of(*type_, *value);
        return {};
      case TypeKind::kVarint: {
        TETRAD_TRY(OptionalBytes sum, calculate('+', *type_, wide_, *value));
        wide_ = std::move(*sum);
        return {};
      }
      case TypeKind::kDecimal: {  // as Cassandra: the mean so far, rounded with each value
        TETRAD_TRY(const OptionalBytes off, calculate('-', *type_, *value, wide_));
        TETRAD_TRY(const OptionalBytes step, decimal_mean(*off, count_));
        TETRAD_TRY(OptionalBytes mean, calculate('+', *type_, wide_, *step));
        wide_ = std::move(*mean);
        return {};
      }
      default:
        integers_ += integer_of(*type_, *value).value_or(0);
        return {};
    }
  }
  Result<OptionalBytes> finish() override {
    const int64_t count = std::exchange(count_, 0);
    const int64_t divisor = count == 0 ? 1 : count;
    switch (type_->kind()) {
      case TypeKind::kFloat:
        return make_float(
            static_cast<float>(std::exchange(sum_, 0) / static_cast<double>(divisor)));
      case TypeKind::kDouble:
        return make_double(std::exchange(sum_, 0) / static_cast<double>(divisor));
      case TypeKind::kVarint: {
        const Bytes sum = std::exchange(wide_, make_varint(0));
        return calculate('/', *type_, sum, make_varint(divisor));
      }
      case TypeKind::kDecimal: {
        return std::exchange(wide_, decimal_from_int64(0));
      }
      default:
        return make_integer(*type_, static_cast<int64_t>(std::exchange(integers_, 0) / divisor));
    }
  }

 private:
  const TypePtr type_;
  int64_t count_ = 0;
  double sum_ = 0;
  __int128 integers_ = 0;
  Bytes wide_;
};

template <class Kind, class... Options>
AggregateFunctionPtr share(std::string name, std::vector<TypePtr> arguments, TypePtr result,
                           Options... options) {
  return std::make_shared<const AggregateFunction>(
      AggregateFunction{std::move(name), std::move(arguments), std::move(result),
                        [options...](const FunctionEnvironment&) -> std::unique_ptr<Aggregator> {
                          return std::make_unique<Kind>(options...);
                        }});
}

}  // namespace

bool is_native_aggregate(std::string_view name) {
  return name == "count" || name == "min" || name == "max" || name == "sum" || name == "avg";
}

AggregateFunctionPtr count_rows_aggregate() {
  static const AggregateFunctionPtr kCountRows = share<Count>("count", {}, bigint_type());
  return kCountRows;
}

AggregateFunctionPtr find_aggregate(std::string_view name, const TypePtr& argument) {
  if (name == "count") return share<Count>("count", {argument}, bigint_type());
  // The value of a collection is built anew for each row, so the result is that of a frozen one.
  const TypePtr type = freeze(argument);
  if (name == "min") return share<Extreme>("min", {type}, type, type, false);
  if (name == "max") return share<Extreme>("max", {type}, type, type, true);
  if (!is_number(*argument)) return nullptr;
  if (name == "sum") return share<Sum>("sum", {argument}, argument, argument);
  if (name == "avg") return share<Average>("avg", {argument}, argument, argument);
  return nullptr;
}

std::string aggregate_signatures(std::string_view name) {
  std::string text;
  for (const TypePtr& type : number_types()) {
    if (!text.empty()) text += ", ";
    text += fmt::format("system.{} : ({}) -> {}", name, type->cql_text(), type->cql_text());
  }
  return text;
}

}  // namespace tetrad::cql
