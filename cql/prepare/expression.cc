// SPDX-License-Identifier: Apache-2.0
// Expressions with values: each class is a node of a tree that evaluate() walks for a request, or
// for each row of a select list. Nodes are immutable and shared by all runs of a prepared
// statement, on the loop and on workers; all state is in the EvalContext. A result's bytes live in
// the context's arena, in the bound values, in the row or in the node itself, and as long as the
// shortest of these.
//
// Null and UNSET travel as values. Each node says what it does with them, with Cassandra's text
// where it refuses them.
#include "cql/prepare/expression.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/functions/user_function.h"
#include "cql/types/compare.h"

namespace tetrad::cql {

namespace {

// Small values are copied into a block of the arena; larger ones keep their own allocation.
Result<BoundValue> keep(EvalContext& context, OptionalBytes value) {
  if (!value) return BoundValue::null();
  if (value->size() <= 64) return BoundValue::of(context.arena.copy(*value));
  return BoundValue::of(context.arena.adopt(std::move(*value)));
}

/// With numbers of any length the work grows with the square of theirs.
constexpr uint64_t kCalculatedBytesPerNs = 64;

/// Of a part; none stands for null.
bool constant(const ExpressionPtr& part) { return !part || part->is_constant(); }

/// A literal, parsed when the statement was prepared.
class Constant final : public Expression {
 public:
  Constant(TypePtr type, OptionalBytes value)
      : Expression(std::move(type)), value_(std::move(value)) {}
  Result<BoundValue> evaluate(EvalContext&) const override {
    return value_ ? BoundValue::of(*value_) : BoundValue::null();
  }
  bool is_null_constant() const override { return !value_; }
  bool is_constant() const override { return true; }

 private:
  const OptionalBytes value_;
};

/// Clients may send sets and maps in any order; they are kept in that of their elements. As in
/// Cassandra this reaches into collections of collections, and not into tuples and vectors.
// A set or map that is compared, hashed or stored frozen must have one form, whatever the driver
// sent.
Result<BytesView> in_order(const DataType& type, BytesView bytes, EvalContext& context) {
  if (type.kind() == TypeKind::kMap) {
    TETRAD_TRY(auto entries, split_map(bytes));
    for (auto& [key, value] : entries) {
      if (type.key()->is_collection()) {
        TETRAD_TRY(key, in_order(*type.key(), key, context));
      }
      if (type.value()->is_collection()) {
        TETRAD_TRY(value, in_order(*type.value(), value, context));
      }
    }
    return context.arena.adopt(join_sorted_map(*type.key(), std::move(entries)));
  }
  const bool nested = type.element()->is_collection();
  if (type.kind() == TypeKind::kList && !nested) return bytes;
  TETRAD_TRY(std::vector<BytesView> parts, split_list(bytes));
  if (nested) {
    for (BytesView& part : parts) {
      TETRAD_TRY(part, in_order(*type.element(), part, context));
    }
  }
  return context.arena.adopt(type.kind() == TypeKind::kSet
                                 ? join_sorted_set(*type.element(), std::move(parts))
                                 : join_list(parts));
}

/// A bound collection is read, where bytes of other origin are only validated: a negative count is
/// none.
Result<void> check_count(const DataType& type, BytesView bytes) {
  if (bytes.size() < 4 || base::load_big_endian<int32_t>(bytes.data()) >= 0) return {};
  return fail(ErrorCode::kInvalid, "The data cannot be deserialized as a {}",
              type.kind() == TypeKind::kList  ? "list"
              : type.kind() == TypeKind::kSet ? "set"
                                              : "map");
}

/// A bind marker: the client's bytes, validated.
class Marker final : public Expression {
 public:
  Marker(TypePtr type, int32_t index) : Expression(std::move(type)) { marker_index_ = index; }
  Result<BoundValue> evaluate(EvalContext& context) const override {
    // The number of values was checked against the statement's markers before anything is
    // evaluated.
    TETRAD_ASSERT(static_cast<size_t>(marker_index_) < context.bound.size());
    const BoundValue& value = context.bound[static_cast<size_t>(marker_index_)];
    if (!value.has_bytes()) return value;
    if (type()->is_collection()) TETRAD_TRY_VOID(check_count(*type(), value.bytes));
    // Bound bytes come from a client and are checked here, where they are first used.
    TETRAD_TRY_VOID(validate(*type(), value.bytes));
    if (!type()->is_collection()) return value;
    TETRAD_TRY(const BytesView sorted, in_order(*type(), value.bytes, context));
    return BoundValue::of(sorted);
  }
};

/// Lists, sets and vectors.
class Collection final : public Expression {
 public:
  Collection(TypePtr type, std::vector<ExpressionPtr> items, bool takes_null)
      : Expression(std::move(type)), items_(std::move(items)), takes_null_(takes_null) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    if (takes_null_) return with_nulls(context);
    if (type()->kind() == TypeKind::kVector) return vector(context);
    std::vector<BytesView> parts;
    parts.reserve(items_.size());
    for (const auto& item : items_) {
      TETRAD_TRY(const BoundValue value, item->evaluate(context));
      if (value.is_unset())
        return fail(ErrorCode::kInvalid, "unset value is not supported inside collections");
      if (value.is_null())
        return fail(ErrorCode::kInvalid, "null is not supported inside collections");
      parts.push_back(value.bytes);
    }
    if (type()->kind() == TypeKind::kSet) {
      return keep(context, join_sorted_set(*type()->element(), std::move(parts)));
    }
    return keep(context, join_list(parts));
  }
  bool is_constant() const override { return std::ranges::all_of(items_, constant); }

 private:
  /// What has no bytes of its own, or none at all where a type has a fixed number, is no element.
  Result<BoundValue> vector(EvalContext& context) const {
    const bool is_fixed = type()->element()->is_fixed_length();
    std::vector<BytesView> parts;
    parts.reserve(items_.size());
    for (const auto& item : items_) {
      TETRAD_TRY(const BoundValue value, item->evaluate(context));
      if (!value.has_bytes() || (is_fixed && value.bytes.empty()))
        return fail(ErrorCode::kInvalid, "null is not supported inside vectors");
      parts.push_back(value.bytes);
    }
    return keep(context, join_vector(*type(), parts));
  }
  /// A list: its elements are written as the fields of a tuple are.
  // Only in select lists, where Cassandra makes lists of selected values that may be null.
  Result<BoundValue> with_nulls(EvalContext& context) const {
    std::vector<OptionalView> parts;
    for (const auto& item : items_) {
      TETRAD_TRY(const BoundValue value, item->evaluate(context));
      parts.push_back(optional_view(value));
    }
    return keep(context, make_int(static_cast<int32_t>(parts.size())) + join_tuple(parts));
  }

  const std::vector<ExpressionPtr> items_;
  const bool takes_null_;
};

/// A map literal; its entries are sorted by key.
class MapCollection final : public Expression {
 public:
  using Entries = std::vector<std::pair<ExpressionPtr, ExpressionPtr>>;
  MapCollection(TypePtr type, Entries entries)
      : Expression(std::move(type)), entries_(std::move(entries)) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    std::vector<std::pair<BytesView, BytesView>> parts;
    parts.reserve(entries_.size());
    for (const auto& [key, value] : entries_) {
      TETRAD_TRY(const BoundValue k, key->evaluate(context));
      TETRAD_TRY(const BoundValue v, value->evaluate(context));
      if (k.is_unset() || v.is_unset()) {
        return fail(ErrorCode::kInvalid, "unset value is not supported inside collections");
      }
      if (k.is_null() || v.is_null()) {
        return fail(ErrorCode::kInvalid, "null is not supported inside collections");
      }
      parts.emplace_back(k.bytes, v.bytes);
    }
    return keep(context, join_sorted_map(*type()->key(), std::move(parts)));
  }
  bool is_constant() const override {
    return std::ranges::all_of(entries_, [](const auto& entry) {
      return constant(entry.first) && constant(entry.second);
    });
  }

 private:
  const Entries entries_;
};

/// A tuple, or a value of a user type with its fields in the type's order.
class TupleValue final : public Expression {
 public:
  TupleValue(TypePtr type, std::vector<ExpressionPtr> fields)
      : Expression(std::move(type)), fields_(std::move(fields)) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    std::vector<OptionalView> parts;
    parts.reserve(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i]) {
        parts.emplace_back();
        continue;
      }
      TETRAD_TRY(const BoundValue value, fields_[i]->evaluate(context));
      if (value.is_unset()) {
        if (type()->kind() == TypeKind::kUdt) {
          return fail(ErrorCode::kInvalid,
                      "Invalid unset value for field '{}' of user defined type {}",
                      type()->field_names()[i], type()->name());
        }
        return fail(ErrorCode::kInvalid, "Invalid unset value for tuple field number {}", i);
      }
      parts.push_back(optional_view(value));
    }
    return keep(context, join_tuple(parts));
  }
  bool is_constant() const override { return std::ranges::all_of(fields_, constant); }

 private:
  const std::vector<ExpressionPtr> fields_;
};

/// A call of a native or user-defined function, or an operator.
class Call final : public Expression {
 public:
  Call(ScalarFunctionPtr function, std::vector<ExpressionPtr> arguments, std::string label)
      : Expression(function->return_type),
        function_(std::move(function)),
        arguments_(std::move(arguments)),
        label_(std::move(label)),
        makes_arguments_(std::ranges::any_of(
            arguments_, [](const ExpressionPtr& argument) { return argument->slot() < 0; })),
        calculates_(std::ranges::any_of(function_->argument_types, [](const TypePtr& type) {
          return type != nullptr &&
                 (type->kind() == TypeKind::kDecimal || type->kind() == TypeKind::kVarint);
        })) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    if (!makes_arguments_) return evaluate_with(context, context);
    // Of t + t + t no more is held than the last step needs.
    // The arguments' bytes are needed until the function has returned. Columns need no arena of
    // their own: their bytes are the row's.
    base::Arena arena;
    EvalContext inside{context.bound, arena,       context.functions,
                       context.now_s, context.row, context.aggregates};
    return evaluate_with(inside, context);
  }

 private:
  Result<BoundValue> evaluate_with(EvalContext& inside, EvalContext& context) const {
    std::vector<OptionalView> values;
    values.reserve(arguments_.size());
    bool has_null = false;
    for (const auto& argument : arguments_) {
      TETRAD_TRY(const BoundValue value, argument->evaluate(inside));
      if (value.is_unset()) {
        return fail(ErrorCode::kInvalid, "Invalid unset value for argument in call to function {}",
                    function_->name);
      }
      has_null = has_null || value.is_null();
      values.push_back(optional_view(value));
    }
    // RETURNS NULL ON NULL INPUT: the body does not run. What is wrong with another argument has
    // been told.
    if (has_null && !function_->called_on_null) return BoundValue::null();
    // Charged before the call: a call that is too much is not begun.
    if (WorkMeter* const work = context.functions.work) {
      uint64_t bytes = 0;
      for (const OptionalView& value : values) bytes += value ? value->size() : 0;
      uint64_t ns = WorkMeter::kCallNs + WorkMeter::kCallNsPerByte * bytes;
      if (calculates_) ns += bytes * bytes / kCalculatedBytesPerNs;
      TETRAD_TRY_VOID(work->spend(ns));
    }
    auto result = function_->body(context.functions, values);
    if (!result) {
      Error error = std::move(result).error();
      // The error names the operator for operators, and the function with its argument types for
      // calls, as Cassandra's FUNCTION_FAILURE.
      if (error.code == ErrorCode::kFunctionFailure) {
        if (!label_.empty()) {
          error.message = fmt::format("the operation '{}' failed: {}", label_, error.message);
        }
        error = function_failure(std::move(error), *function_);
      }
      return std::unexpected(std::move(error));
    }
    return keep(context, std::move(*result));
  }

  const ScalarFunctionPtr function_;
  const std::vector<ExpressionPtr> arguments_;
  const std::string label_;
  const bool makes_arguments_;  // others than columns
  const bool calculates_;       // with numbers of any length
};

/// A column of the row.
class Column final : public Expression {
 public:
  Column(TypePtr type, int32_t slot) : Expression(std::move(type)) { slot_ = slot; }
  Result<BoundValue> evaluate(EvalContext& context) const override {
    return bound_value(context.row->values[static_cast<size_t>(slot_)]);
  }
};

/// u.f. Null where the value was written before the field was added to the type.
class Field final : public Expression {
 public:
  Field(ExpressionPtr source, size_t index)
      : Expression(source->type()->components()[index]),
        source_(std::move(source)),
        index_(index) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    TETRAD_TRY(const BoundValue value, source_->evaluate(context));
    if (!value.has_bytes()) return BoundValue::null();
    TETRAD_TRY(const auto fields, split_tuple(*source_->type(), value.bytes));
    return bound_value(fields[index_]);
  }

 private:
  const ExpressionPtr source_;
  const size_t index_;
};

/// m[k] or s[k] in a select list; null where there is no such element.
class Element final : public Expression {
 public:
  Element(TypePtr type, ExpressionPtr source, ExpressionPtr key)
      : Expression(std::move(type)), source_(std::move(source)), key_(std::move(key)) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    TETRAD_TRY(const BoundValue key, key_->evaluate(context));
    if (key.is_unset()) {
      return fail(ErrorCode::kInvalid, "Invalid unset value for element selection");
    }
    if (key.is_null()) {
      return fail(ErrorCode::kInvalid, "Invalid null value for element selection");
    }
    TETRAD_TRY(const BoundValue value, source_->evaluate(context));
    if (!value.has_bytes()) return BoundValue::null();
    const DataType& collection = *source_->type();
    if (collection.kind() == TypeKind::kMap) {
      TETRAD_TRY(const auto entries, split_map(value.bytes));
      for (const auto& [k, v] : entries) {
        if (compare(*collection.key(), k, key.bytes) == 0) return BoundValue::of(v);
      }
      return BoundValue::null();
    }
    TETRAD_TRY(const auto elements, split_list(value.bytes));
    for (const BytesView element : elements) {
      if (compare(*collection.element(), element, key.bytes) == 0) return BoundValue::of(element);
    }
    return BoundValue::null();
  }

 private:
  const ExpressionPtr source_, key_;
};

/// Bounds of a slice; no bytes: open.
struct SliceBounds {
  OptionalView lower, upper;
  bool contains(const DataType& type, BytesView key) const {
    return (!lower || compare(type, key, *lower) >= 0) &&
           (!upper || compare(type, key, *upper) <= 0);
  }
};

/// Unset bounds are open, null is an error. The views live as results of evaluate() do.
Result<SliceBounds> evaluate_bounds(const ExpressionPtr& lower, const ExpressionPtr& upper,
                                    EvalContext& context) {
  SliceBounds bounds;
  for (const auto* side : {&lower, &upper}) {
    if (!*side) continue;
    TETRAD_TRY(const BoundValue value, (*side)->evaluate(context));
    if (value.is_unset()) continue;
    if (value.is_null()) {
      return fail(ErrorCode::kInvalid, "Invalid null value for slice selection");
    }
    (side == &lower ? bounds.lower : bounds.upper) = value.bytes;
  }
  return bounds;
}

/// m[a..b]: a frozen collection of the elements between the bounds, both inclusive.
class Slice final : public Expression {
 public:
  Slice(ExpressionPtr source, ExpressionPtr lower, ExpressionPtr upper)
      : Expression(freeze(source->type())),
        source_(std::move(source)),
        lower_(std::move(lower)),
        upper_(std::move(upper)) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    TETRAD_TRY(const SliceBounds bounds, evaluate_bounds(lower_, upper_, context));
    TETRAD_TRY(const BoundValue value, source_->evaluate(context));
    if (!value.has_bytes()) return BoundValue::null();
    const DataType& collection = *source_->type();
    if (collection.kind() == TypeKind::kMap) {
      TETRAD_TRY(auto entries, split_map(value.bytes));
      std::erase_if(entries, [&](const auto& entry) {
        return !bounds.contains(*collection.key(), entry.first);
      });
      // A multi-cell collection without elements is null; a frozen one is a value.
      if (entries.empty() && collection.is_multi_cell()) return BoundValue::null();
      return keep(context, join_map(entries));
    }
    TETRAD_TRY(auto elements, split_list(value.bytes));
    std::erase_if(elements, [&](BytesView element) {
      return !bounds.contains(*collection.element(), element);
    });
    if (elements.empty() && collection.is_multi_cell()) return BoundValue::null();
    return keep(context, join_list(elements));
  }

 private:
  const ExpressionPtr source_, lower_, upper_;
};

/// The place of an aggregate in an output expression: what it came to for the group of rows.
class AggregateReference final : public Expression {
 public:
  AggregateReference(TypePtr type, size_t index) : Expression(std::move(type)), index_(index) {}
  Result<BoundValue> evaluate(EvalContext& context) const override {
    const OptionalBytes& value = context.aggregates[index_];
    return value ? BoundValue::of(*value) : BoundValue::null();
  }

 private:
  const size_t index_;
};

/// The value of another expression with its bytes unchanged.
class Retyped final : public Expression {
 public:
  Retyped(TypePtr type, ExpressionPtr inner)
      : Expression(std::move(type)), inner_(std::move(inner)) {
    slot_ = inner_->slot();
    marker_index_ = inner_->marker_index();
  }
  Result<BoundValue> evaluate(EvalContext& context) const override {
    return inner_->evaluate(context);
  }
  bool is_null_constant() const override { return inner_->is_null_constant(); }
  bool is_constant() const override { return inner_->is_constant(); }

 private:
  const ExpressionPtr inner_;
};

/// WRITETIME, MAXWRITETIME and TTL: of one cell a number, of a column of many cells a list of them,
/// or the largest for MAXWRITETIME.
class Times final : public Expression {
 public:
  Times(TypePtr type, TimesKind kind, TimesTarget target)
      : Expression(std::move(type)), kind_(kind), target_(std::move(target)) {}

  Result<BoundValue> evaluate(EvalContext& context) const override {
    const auto slot = static_cast<size_t>(target_.slot);
    if (!target_.column->is_multi_cell()) {
      // Key columns have no cells; preparing has refused them.
      const CellTimes& times = context.row->times[slot];
      if (!context.row->values[slot] || !times.present()) return BoundValue::null();
      return keep(context, one(times, context.now_s));
    }
    const auto& elements = context.row->elements[slot];
    if (target_.element || target_.field) return single(elements, context);
    std::vector<const CellTimes*> chosen;
    if (target_.is_slice) {
      TETRAD_TRY(const SliceBounds bounds, evaluate_bounds(target_.lower, target_.upper, context));
      for (const auto& element : elements) {
        if (bounds.contains(key_type(), element.key)) chosen.push_back(&element.times);
      }
    } else if (target_.column->kind() == TypeKind::kUdt) {
      // A user type answers one entry for each field, null for those without a cell.
      if (!elements.empty()) chosen.resize(target_.column->components().size());
      for (const auto& element : elements) {
        chosen[static_cast<size_t>(base::load_big_endian<uint16_t>(element.key.data()))] =
            &element.times;
      }
    } else {
      for (const auto& element : elements) chosen.push_back(&element.times);
    }
    if (chosen.empty()) return BoundValue::null();
    if (kind_ == TimesKind::kMaxWriteTime) {
      int64_t max = storage::kNoTimestamp;
      for (const auto* times : chosen) {
        if (times != nullptr) max = std::max(max, times->timestamp_us);
      }
      return keep(context, make_bigint(max));
    }
    Bytes list;
    base::ByteWriter writer(list);
    writer.i32(static_cast<int32_t>(chosen.size()));
    for (const auto* times : chosen) {
      const OptionalBytes value = times == nullptr ? std::nullopt : one(*times, context.now_s);
      writer.i32(value ? static_cast<int32_t>(value->size()) : -1);
      if (value) writer.raw(*value);
    }
    return keep(context, std::move(list));
  }

 private:
  const DataType& key_type() const {
    return target_.column->kind() == TypeKind::kMap ? *target_.column->key()
                                                    : *target_.column->element();
  }
  OptionalBytes one(const CellTimes& times, int64_t now_s) const {
    if (kind_ != TimesKind::kTtl) return make_bigint(times.timestamp_us);
    // Null: the cell does not expire. The TTL answered is what is left of it, at the request's
    // time.
    if (times.ttl_s == 0) return std::nullopt;
    return make_int(static_cast<int32_t>(times.expiry_s - now_s));
  }
  Result<BoundValue> single(const std::vector<RowView::Element>& elements,
                            EvalContext& context) const {
    if (target_.field) {
      for (const auto& element : elements) {
        if (base::load_big_endian<uint16_t>(element.key.data()) == *target_.field) {
          return keep(context, one(element.times, context.now_s));
        }
      }
      return BoundValue::null();
    }
    TETRAD_TRY(const BoundValue key, target_.element->evaluate(context));
    if (!key.has_bytes()) {
      return fail(ErrorCode::kInvalid, "Invalid {} value for element selection",
                  key.is_unset() ? "unset" : "null");
    }
    for (const auto& element : elements) {
      if (compare(key_type(), element.key, key.bytes) == 0) {
        return keep(context, one(element.times, context.now_s));
      }
    }
    return BoundValue::null();
  }

  const TimesKind kind_;
  const TimesTarget target_;
};

}  // namespace

ExpressionPtr make_constant(TypePtr type, OptionalBytes value) {
  return std::make_unique<Constant>(std::move(type), std::move(value));
}
ExpressionPtr make_marker(TypePtr type, int32_t index) {
  return std::make_unique<Marker>(std::move(type), index);
}
ExpressionPtr make_collection(TypePtr type, std::vector<ExpressionPtr> items, bool takes_null) {
  return std::make_unique<Collection>(std::move(type), std::move(items), takes_null);
}
ExpressionPtr make_map_collection(TypePtr type,
                                  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries) {
  return std::make_unique<MapCollection>(std::move(type), std::move(entries));
}
ExpressionPtr make_tuple_value(TypePtr type, std::vector<ExpressionPtr> fields) {
  return std::make_unique<TupleValue>(std::move(type), std::move(fields));
}
ExpressionPtr make_call(ScalarFunctionPtr function, std::vector<ExpressionPtr> arguments,
                        std::string failure_label) {
  return std::make_unique<Call>(std::move(function), std::move(arguments),
                                std::move(failure_label));
}
ExpressionPtr make_column(TypePtr type, int32_t slot) {
  return std::make_unique<Column>(std::move(type), slot);
}
ExpressionPtr make_field(ExpressionPtr source, size_t index) {
  return std::make_unique<Field>(std::move(source), index);
}
ExpressionPtr make_element(ExpressionPtr source, ExpressionPtr key) {
  TypePtr type = source->type()->kind() == TypeKind::kMap ? source->type()->value()
                                                          : source->type()->element();
  return std::make_unique<Element>(std::move(type), std::move(source), std::move(key));
}
ExpressionPtr make_slice(ExpressionPtr source, ExpressionPtr lower, ExpressionPtr upper) {
  return std::make_unique<Slice>(std::move(source), std::move(lower), std::move(upper));
}
ExpressionPtr make_aggregate_reference(TypePtr type, size_t index) {
  return std::make_unique<AggregateReference>(std::move(type), index);
}
ExpressionPtr make_retyped(TypePtr type, ExpressionPtr inner) {
  return std::make_unique<Retyped>(std::move(type), std::move(inner));
}
ExpressionPtr make_times(TimesKind kind, TimesTarget target) {
  const bool many = target.column->is_multi_cell() && !target.element && !target.field &&
                    kind != TimesKind::kMaxWriteTime;
  TypePtr one = kind == TimesKind::kTtl ? int_type() : bigint_type();
  TypePtr type = many ? make_list(one, true) : one;
  return std::make_unique<Times>(std::move(type), kind, std::move(target));
}

}  // namespace tetrad::cql
