// SPDX-License-Identifier: Apache-2.0
// Native aggregates. Each Aggregator folds the rows of one group and is then used again: finish()
// gives the result and begins anew.
//
// Those that replicas fold also have a state: save() writes it, load() takes its place, join() adds
// another one. Folding::kInParts: states of any parts may be joined in any order with the same
// result. kInOrder: the next rows must be added to the loaded state, since rounding depends on the
// order. States travel between nodes, so their formats are fixed, and load() and join() check what
// they read.
//
// Results are Cassandra's to the last digit: sums wrap around in the argument's type, means are in
// the argument's type, sums of floats are Kahan's.
#include "cql/functions/aggregate.h"

#include <bit>
#include <cmath>

#include "cql/functions/function_table.h"
#include "cql/types/compare.h"
#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

std::unexpected<Error> no_fold() {
  return fail(ErrorCode::kCorruption, "a state of an aggregate that does not fold");
}

Result<Bytes> read_number(base::ByteReader& in, const DataType& type) {
  TETRAD_TRY(const BytesView value, in.read_bytes());
  if (value.empty() || !validate(type, value))
    return fail(ErrorCode::kCorruption, "a state of {} bytes is no number", value.size());
  return Bytes(value);
}

/// A count that one more does not overflow.
Result<int64_t> read_values_seen(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count >= uint64_t{1} << 62)
    return fail(ErrorCode::kCorruption, "a state of {} values", count);
  return static_cast<int64_t>(count);
}

/// Rows, or values that are not null.
class Count final : public Aggregator {
 public:
  Result<void> add(FunctionArguments values) override {
    if (values.empty() || values[0]) ++count_;
    return {};
  }
  Result<OptionalBytes> finish() override {
    return make_bigint(static_cast<int64_t>(std::exchange(count_, 0)));
  }
  void save(base::ByteWriter& out) const override { out.varint(count_); }
  Result<void> load(base::ByteReader& in) override {
    count_ = 0;
    return join(in);
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const uint64_t count, in.read_varint());
    count_ += count;
    return {};
  }

 private:
  uint64_t count_ = 0;
};

/// Of equal values the first.
class Extreme final : public Aggregator {
 public:
  Extreme(TypePtr type, bool wants_max) : type_(std::move(type)), wants_max_(wants_max) {}
  Result<void> add(FunctionArguments values) override {
    if (values[0]) take(*values[0]);
    return {};
  }
  Result<OptionalBytes> finish() override { return std::exchange(best_, std::nullopt); }
  void save(base::ByteWriter& out) const override {
    out.u8(best_ ? 1 : 0);
    if (best_) out.bytes(*best_);
  }
  Result<void> load(base::ByteReader& in) override {
    best_.reset();
    return join(in);
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const uint8_t has_value, in.read_u8());
    if (has_value > 1) return fail(ErrorCode::kCorruption, "the flag {} of a value", has_value);
    if (has_value == 0) return {};
    TETRAD_TRY(const BytesView value, in.read_bytes());
    take(value);
    return {};
  }

 private:
  void take(BytesView value) {
    const int order = best_ ? compare(*type_, value, *best_) : 0;
    if (best_ && (wants_max_ ? order <= 0 : order >= 0)) return;
    if (!best_) best_.emplace();
    best_->assign(value);
  }
  const TypePtr type_;
  const bool wants_max_;
  OptionalBytes best_;
};

/// The sum in the argument's own type, wrapping around; 0 of nothing.
class IntegerSum final : public Aggregator {
 public:
  explicit IntegerSum(TypePtr type) : type_(std::move(type)) {}
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (value) sum_ += static_cast<uint64_t>(integer_of(*type_, *value).value_or(0));
    return {};
  }
  Result<OptionalBytes> finish() override {
    return make_integer(*type_, static_cast<int64_t>(std::exchange(sum_, 0)));
  }
  void save(base::ByteWriter& out) const override { out.u64(sum_); }
  Result<void> load(base::ByteReader& in) override {
    sum_ = 0;
    return join(in);
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const uint64_t sum, in.read_u64());
    sum_ += sum;
    return {};
  }

 private:
  const TypePtr type_;
  // Unsigned, since the overflow of signed numbers is undefined.
  uint64_t sum_ = 0;  // modulo 2^64, so modulo less too
};

/// Of varint and decimal; no digit is lost.
class NumberSum final : public Aggregator {
 public:
  explicit NumberSum(TypePtr type) : type_(std::move(type)) { reset(); }
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    return take(*value);
  }
  Result<OptionalBytes> finish() override {
    Bytes sum = std::move(sum_);
    reset();
    return sum;
  }
  void save(base::ByteWriter& out) const override { out.bytes(sum_); }
  Result<void> load(base::ByteReader& in) override {
    TETRAD_TRY(sum_, read_number(in, *type_));
    return {};
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const Bytes sum, read_number(in, *type_));
    return take(sum);
  }

 private:
  Result<void> take(BytesView value) {
    TETRAD_TRY(OptionalBytes sum, calculate('+', *type_, sum_, value));
    if (sum) sum_ = std::move(*sum);
    return {};
  }
  void reset() {
    sum_ = type_->kind() == TypeKind::kDecimal ? decimal_from_int64(0) : make_varint(0);
  }
  const TypePtr type_;
  Bytes sum_;
};

/// What was lost of each addition is made good by the next (Kahan).
// The same steps in the same order as Cassandra's: another order gives other last digits.
class CompensatedSum {
 public:
  void add(double number) {
    plain_ += number;
    const double wanted = number - lost_;
    const double next = sum_ + wanted;
    lost_ = (next - sum_) - wanted;
    sum_ = next;
  }
  double value() const {
    const double value = sum_ + lost_;  // as Cassandra
    // Compensation makes NaN of infinities.
    return std::isnan(value) && std::isinf(plain_) ? plain_ : value;
  }
  double so_far() const { return sum_; }

  void save(base::ByteWriter& out) const {
    for (const double part : {sum_, lost_, plain_}) out.u64(std::bit_cast<uint64_t>(part));
  }
  Result<void> load(base::ByteReader& in) {
    for (double* const part : {&sum_, &lost_, &plain_}) {
      TETRAD_TRY(const uint64_t bits, in.read_u64());
      *part = std::bit_cast<double>(bits);
    }
    return {};
  }

 private:
  double sum_ = 0, lost_ = 0;
  double plain_ = 0;  // the plain sum: infinite where the corrected one is NaN
};

Bytes make_floating(const DataType& type, double value) {
  return type.kind() == TypeKind::kFloat ? make_float(static_cast<float>(value))
                                         : make_double(value);
}

class FloatingSum final : public Aggregator {
 public:
  explicit FloatingSum(TypePtr type) : type_(std::move(type)) {}
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (value && !value->empty()) sum_.add(double_of(*type_, *value));
    return {};
  }
  Result<OptionalBytes> finish() override {
    return make_floating(*type_, std::exchange(sum_, {}).value());
  }
  void save(base::ByteWriter& out) const override { sum_.save(out); }
  Result<void> load(base::ByteReader& in) override { return sum_.load(in); }

 private:
  const TypePtr type_;
  CompensatedSum sum_;
};

/// `sum` / `count` with the scale of the sum, half to even.
// A decimal's first four bytes are its scale, the rest is the unscaled number.
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

/// Means are in the argument's own type.
class IntegerMean final : public Aggregator {
 public:
  explicit IntegerMean(TypePtr type) : type_(std::move(type)) {}
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    ++count_;
    sum_ += static_cast<Wide>(integer_of(*type_, *value).value_or(0));
    return {};
  }
  Result<OptionalBytes> finish() override {
    const auto sum = static_cast<__int128>(std::exchange(sum_, 0));
    const uint64_t count = std::exchange(count_, 0);
    return make_integer(*type_, count == 0 ? 0 : static_cast<int64_t>(sum / count));
  }
  void save(base::ByteWriter& out) const override {
    out.varint(count_);
    out.u64(static_cast<uint64_t>(sum_ >> 64));
    out.u64(static_cast<uint64_t>(sum_));
  }
  Result<void> load(base::ByteReader& in) override {
    count_ = 0;
    sum_ = 0;
    return join(in);
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const uint64_t count, in.read_varint());
    TETRAD_TRY(const uint64_t high, in.read_u64());
    TETRAD_TRY(const uint64_t low, in.read_u64());
    count_ += count;
    sum_ += (static_cast<Wide>(high) << 64) | low;
    return {};
  }

 private:
  using Wide = unsigned __int128;  // two's complement
  const TypePtr type_;
  uint64_t count_ = 0;
  Wide sum_ = 0;  // no number of values fills it
};

class VarintMean final : public Aggregator {
 public:
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    return take(*value, 1);
  }
  Result<OptionalBytes> finish() override {
    const Bytes sum = std::exchange(sum_, make_varint(0));
    const int64_t count = std::exchange(count_, 0);
    return calculate('/', *varint_type(), sum, make_varint(std::max<int64_t>(count, 1)));
  }
  void save(base::ByteWriter& out) const override {
    out.varint(static_cast<uint64_t>(count_));
    out.bytes(sum_);
  }
  Result<void> load(base::ByteReader& in) override {
    count_ = 0;
    sum_ = make_varint(0);
    return join(in);
  }
  Result<void> join(base::ByteReader& in) override {
    TETRAD_TRY(const uint64_t count, in.read_varint());
    TETRAD_TRY(const Bytes sum, read_number(in, *varint_type()));
    return take(sum, count);
  }

 private:
  Result<void> take(BytesView value, uint64_t count) {
    TETRAD_TRY(OptionalBytes sum, calculate('+', *varint_type(), sum_, value));
    sum_ = std::move(*sum);
    count_ = static_cast<int64_t>(static_cast<uint64_t>(count_) + count);
    return {};
  }
  int64_t count_ = 0;
  Bytes sum_ = make_varint(0);
};

/// As Cassandra: the mean so far, rounded with each value.
class DecimalMean final : public Aggregator {
 public:
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    TETRAD_TRY(const OptionalBytes off, calculate('-', *decimal_type(), *value, mean_));
    TETRAD_TRY(const OptionalBytes step, decimal_mean(*off, ++count_));
    TETRAD_TRY(OptionalBytes mean, calculate('+', *decimal_type(), mean_, *step));
    mean_ = std::move(*mean);
    return {};
  }
  Result<OptionalBytes> finish() override {
    count_ = 0;
    return std::exchange(mean_, decimal_from_int64(0));
  }
  void save(base::ByteWriter& out) const override {
    out.varint(static_cast<uint64_t>(count_));
    out.bytes(mean_);
  }
  Result<void> load(base::ByteReader& in) override {
    TETRAD_TRY(count_, read_values_seen(in));
    TETRAD_TRY(mean_, read_number(in, *decimal_type()));
    return {};
  }

 private:
  int64_t count_ = 0;
  Bytes mean_ = decimal_from_int64(0);
};

/// Where a sum of doubles would be infinite it goes on as a decimal, as in Cassandra.
class FloatingMean final : public Aggregator {
 public:
  explicit FloatingMean(TypePtr type) : type_(std::move(type)) {}
  Result<void> add(FunctionArguments values) override {
    const OptionalView& value = values[0];
    if (!value || value->empty()) return {};
    const double number = double_of(*type_, *value);
    ++count_;
    if (large_) return add_large(number);
    const double before = sum_.so_far();
    sum_.add(number);
    if (!std::isinf(sum_.so_far()) || std::isinf(number) || std::isinf(before)) return {};
    // From here on the sum is exact, and only the mean becomes a double again.
    TETRAD_TRY(large_, decimal_from_double(before));
    return add_large(number);
  }
  Result<OptionalBytes> finish() override {
    const int64_t count = std::exchange(count_, 0);
    const double sum = std::exchange(sum_, {}).value();
    const OptionalBytes large = std::exchange(large_, std::nullopt);
    if (count == 0) return make_floating(*type_, 0);
    if (!large) return make_floating(*type_, sum / static_cast<double>(count));
    TETRAD_TRY(const OptionalBytes mean, decimal_mean(*large, count));
    return make_floating(*type_, decimal_to_double(*mean));
  }
  void save(base::ByteWriter& out) const override {
    out.varint(static_cast<uint64_t>(count_));
    sum_.save(out);
    out.u8(large_ ? 1 : 0);
    if (large_) out.bytes(*large_);
  }
  Result<void> load(base::ByteReader& in) override {
    TETRAD_TRY(count_, read_values_seen(in));
    TETRAD_TRY_VOID(sum_.load(in));
    TETRAD_TRY(const uint8_t is_large, in.read_u8());
    if (is_large > 1) return fail(ErrorCode::kCorruption, "the flag {} of a sum", is_large);
    large_.reset();
    if (is_large == 1) {
      TETRAD_TRY(large_, read_number(in, *decimal_type()));
    }
    return {};
  }

 private:
  Result<void> add_large(double number) {
    if (!std::isfinite(number)) {
      return fail(
          ErrorCode::kServerError,
          "java.lang.NumberFormatException: Character {} is neither a decimal digit number, "
          "decimal point, nor \"e\" notation exponential mark.",
          std::isnan(number) ? 'N' : 'I');
    }
    TETRAD_TRY(const Bytes value, decimal_from_double(number));
    TETRAD_TRY(OptionalBytes sum, calculate('+', *decimal_type(), *large_, value));
    large_ = std::move(*sum);
    return {};
  }
  const TypePtr type_;
  int64_t count_ = 0;
  CompensatedSum sum_;
  OptionalBytes large_;
};

// The function object holds what makes aggregators; each run makes its own.
template <class Kind, class... Options>
AggregateFunctionPtr share(std::string name, Folding folding, std::vector<TypePtr> arguments,
                           TypePtr result, Options... options) {
  const auto make = [options...]() -> std::unique_ptr<Aggregator> {
    return std::make_unique<Kind>(options...);
  };
  return std::make_shared<const AggregateFunction>(
      AggregateFunction{std::move(name), std::move(arguments), std::move(result),
                        [make](const FunctionEnvironment&) { return make(); }, folding, make});
}

AggregateFunctionPtr make_sum(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return share<FloatingSum>("sum", Folding::kInOrder, {type}, type, type);
    case TypeKind::kVarint:
    case TypeKind::kDecimal:
      return share<NumberSum>("sum", Folding::kInParts, {type}, type, type);
    default:
      return share<IntegerSum>("sum", Folding::kInParts, {type}, type, type);
  }
}

AggregateFunctionPtr make_mean(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return share<FloatingMean>("avg", Folding::kInOrder, {type}, type, type);
    case TypeKind::kVarint:
      return share<VarintMean>("avg", Folding::kInParts, {type}, type);
    case TypeKind::kDecimal:
      return share<DecimalMean>("avg", Folding::kInOrder, {type}, type);
    default:
      return share<IntegerMean>("avg", Folding::kInParts, {type}, type, type);
  }
}

}  // namespace

void Aggregator::save(base::ByteWriter&) const {}
Result<void> Aggregator::load(base::ByteReader&) { return no_fold(); }
Result<void> Aggregator::join(base::ByteReader&) { return no_fold(); }

bool is_native_aggregate(std::string_view name) {
  return name == "count" || name == "min" || name == "max" || name == "sum" || name == "avg";
}

AggregateFunctionPtr count_rows_aggregate() {
  static const AggregateFunctionPtr kCountRows =
      share<Count>("count", Folding::kInParts, {}, bigint_type());
  return kCountRows;
}

AggregateFunctionPtr find_aggregate(std::string_view name, const TypePtr& argument) {
  if (name == "count") return share<Count>("count", Folding::kInParts, {argument}, bigint_type());
  // The value of a collection is built anew for each row, so the result is that of a frozen one.
  const TypePtr type = freeze(argument);
  if (name == "min") return share<Extreme>("min", Folding::kInParts, {type}, type, type, false);
  if (name == "max") return share<Extreme>("max", Folding::kInParts, {type}, type, type, true);
  if (!is_number(*argument)) return nullptr;
  if (name == "sum") return make_sum(argument);
  if (name == "avg") return make_mean(argument);
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
