// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: items of a select list that are no terms.
//
// late() makes an error that Cassandra finds after WHERE (failed_late_); SelectPreparer keeps it
// back until then.
#include <algorithm>
#include <utility>

#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_parts.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

/// A literal whose type is what it is needed for.
bool is_untyped(const Raw& raw) {
  return raw.kind == Kind::kTuple || raw.kind == Kind::kList || raw.kind == Kind::kSet ||
         raw.kind == Kind::kMap || raw.kind == Kind::kUdt;
}
/// The times of what a part lies in; null where the part is null.
class TimesOfPart final : public Expression {
 public:
  TimesOfPart(ExpressionPtr part, ExpressionPtr times)
      : Expression(times->type()), part_(std::move(part)), times_(std::move(times)) {}

  Result<BoundValue> evaluate(EvalContext& context) const override {
    TETRAD_TRY(const BoundValue part, part_->evaluate(context));
    if (!part.has_bytes()) return BoundValue::null();
    return times_->evaluate(context);
  }

 private:
  const ExpressionPtr part_, times_;
};

}  // namespace

// By the kind of node. What has no type of its own here, such as {a: 1} or a lone marker, cannot be
// inferred.
Result<ExpressionPtr> ExpressionBuilder::build_selector(const Raw& raw) {
  switch (raw.kind) {
    case Kind::kColumn: {
      TETRAD_TRY(const ColumnSchema* found, column(*raw.identifiers[0]));
      // A column outside of aggregates needs the first row of its group, so replicas cannot fold
      // alone.
      selects_columns_ = selects_columns_ || !inside_aggregate_;
      return make_column(found->type, slot_of(*found));
    }
    case Kind::kCountRows:
      aggregates_.push_back({count_rows_aggregate(), {}, true});
      return make_aggregate_reference(bigint_type(), aggregates_.size() - 1);
    case Kind::kTimes:
      return build_times(raw);
    case Kind::kFunction:
      return build_call(raw, nullptr);
    case Kind::kCast:
      return build_cast(raw);
    case Kind::kField:
      return build_field(raw);
    case Kind::kElement:
    case Kind::kSlice:
      return build_element(raw);
    case Kind::kArithmetic:
      return build_arithmetic(raw, nullptr);
    case Kind::kNegation:
      return build_negation(raw, nullptr);
    case Kind::kTypeHint: {
      TETRAD_TRY(TypePtr type, hinted_type(raw));
      if (test(raw.children[0], type) == Assignability::kNotAssignable) {
        const std::string text = raw.text(table_.keyspace);
        return late("Cannot assign value {} to {} of type {}", text, text, type->cql_text());
      }
      TETRAD_TRY(ExpressionPtr inner, build(raw.children[0], {"[selection]", type, nullptr}));
      return make_retyped(std::move(type), std::move(inner));
    }
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kSet: {
      const TypePtr type = exact_type_of(raw);
      if (!type) {
        failed_late_ = true;
        return cannot_infer(raw);
      }
      return build(raw, {"[selection]", type, nullptr});
    }
    default:
      failed_late_ = true;
      return cannot_infer(raw);
  }
}

bool ExpressionBuilder::is_descending(const Raw& raw) const {
  if (raw.kind != Kind::kColumn) return false;
  const ColumnSchema* column = table_.find(raw.identifiers[0]->text);
  return column != nullptr && column->descending;
}

// Found by the node's address: the tree lives as long as the builder.
bool ExpressionBuilder::casts_nothing(const ast::CastSelector& cast) const {
  return std::ranges::any_of(plain_casts_, [&](const ast::Selector* selector) {
    return selector != nullptr && selector->get_if<ast::CastSelector>() == &cast;
  });
}

// A cast to the own type is no call, and result_name() must not name one (plain_casts_).
Result<ExpressionPtr> ExpressionBuilder::build_cast(const Raw& raw) {
  TETRAD_TRY(TypePtr to, resolve_type(*raw.type));
  TETRAD_TRY(ExpressionPtr argument, build_selector(raw.children[0]));
  // To Cassandra a descending column has another type than its own.
  const bool same = *argument->type() == *to;
  const bool descending = same && is_descending(raw.children[0]);
  if (same && !descending) {
    plain_casts_.push_back(raw.selector);
    return argument;
  }
  const bool as_varint =
      descending && (to->kind() == TypeKind::kInt || to->kind() == TypeKind::kBigint);
  if (as_varint) return make_retyped(std::move(to), std::move(argument));
  ScalarFunctionPtr function = same ? nullptr : find_cast(argument->type(), to);
  if (!function) {
    const std::string signatures = cast_signatures(to);
    if (signatures.empty()) {
      return late("{} cannot be cast to {}", raw.children[0].text(), to->cql_text());
    }
    return late(
        "Invalid call to function system.cast_as_{}, none of its type signatures match "
        "(known type signatures: {})",
        to->cql_text(), signatures);
  }
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(std::move(argument));
  return make_call(std::move(function), std::move(arguments));
}

/// The argument of an aggregate over any type must determine its type.
Result<void> ExpressionBuilder::check_aggregated(const Raw& raw) {
  const std::string name = name_of(raw);
  const Raw& child = raw.children[0];
  const bool may_be_open =
      child.kind == Kind::kMarker || child.kind == Kind::kLiteral || is_untyped(child);
  if (!takes_anything(name) || !may_be_open || type_of(child)) return {};
  return fail(ErrorCode::kInvalid,
              "Cannot infer type of argument {} in call to function system.{}(any): use type "
              "casts to disambiguate",
              child.text(), name);
}

// A native aggregate. The expression is a reference to a result (AggregateReference); the call
// itself goes to aggregates_, which the run feeds with rows. The checks stand in Cassandra's order.
Result<ExpressionPtr> ExpressionBuilder::build_aggregate(const Raw& raw) {
  const std::string name = name_of(raw);
  const bool is_sum = name == "sum" || name == "avg";
  if (raw.children.size() != 1 && name == "count") {
    return fail(ErrorCode::kInvalid,
                "Invalid number of arguments in call to function system.count: 1 required but {} "
                "provided",
                raw.children.size());
  }
  if (raw.children.size() != 1 && !is_sum) {
    return fail(ErrorCode::kInvalid, "Invalid number of arguments for function system.{}(any)",
                name);
  }
  const auto no_match = [&] {
    return fail(ErrorCode::kInvalid,
                "Invalid call to function {}, none of its type signatures match (known type "
                "signatures: {})",
                name, aggregate_signatures(name));
  };
  if (raw.children.size() != 1) return no_match();
  const Raw &child = raw.children[0], &inner = unwrapped(child);
  // The call is resolved before what it is given is made.
  TETRAD_TRY_VOID(resolve_inside(child));
  const TypePtr known = type_of(told_by(name, child));
  if (known && !find_aggregate(name, known)) return no_match();
  const bool is_open = inner.kind == Kind::kMarker || (inner.kind == Kind::kLiteral && !known);
  if (is_open && is_sum) {
    return fail(ErrorCode::kInvalid,
                "Ambiguous call to function {} (can be matched by following signatures: {}): use "
                "type casts to disambiguate",
                name, aggregate_signatures(name));
  }
  TETRAD_TRY_VOID(check_aggregated(raw));
  if (takes_anything(name)) TETRAD_TRY_VOID(check_fields(child, name, known));
  const bool is_constant = &inner != &child && inner.kind == Kind::kLiteral;
  if (name == "count" && (is_untyped(inner) || is_constant)) {
    return fail(ErrorCode::kInvalid,
                "Type error: {} cannot be passed as argument 0 of function system.count of type "
                "blob",
                child.text());
  }
  // Cassandra's count takes anything as a blob that does not say what it is.
  TETRAD_TRY(ExpressionPtr argument, inside_aggregate(inner, is_open ? blob_type() : nullptr));
  AggregateFunctionPtr function = find_aggregate(name, argument->type());
  if (!function) return no_match();
  TypePtr type = function->return_type;
  AggregateCall call{std::move(function), {}, false};
  call.arguments.push_back(std::move(argument));
  aggregates_.push_back(std::move(call));
  return make_aggregate_reference(std::move(type), aggregates_.size() - 1);
}

// As build_aggregate(), with arguments of the types that its state function takes.
Result<ExpressionPtr> ExpressionBuilder::build_user_aggregate(const Raw& raw,
                                                              const ScalarFunctionPtr& function) {
  AggregateCall call{function->aggregate, {}, false};
  for (size_t i = 0; i < raw.children.size(); ++i) {
    TETRAD_TRY(ExpressionPtr argument,
               inside_aggregate(raw.children[i], function->argument_types[i]));
    call.arguments.push_back(std::move(argument));
  }
  if (inside_aggregate_) {  // without arguments
    return late("aggregate functions cannot be used as arguments of aggregate functions");
  }
  aggregates_.push_back(std::move(call));
  return make_aggregate_reference(function->return_type, aggregates_.size() - 1);
}

/// An argument of an aggregate, which may hold no aggregate. `type`: null when the argument itself
/// tells its type.
Result<ExpressionPtr> ExpressionBuilder::inside_aggregate(const Raw& child, const TypePtr& type) {
  const auto nested = [this] {
    return late("aggregate functions cannot be used as arguments of aggregate functions");
  };
  if (inside_aggregate_) return nested();
  // Restored below; `before` shows an aggregate that was made inside.
  inside_aggregate_ = true;
  const size_t before = aggregates_.size();
  auto argument = [&]() -> Result<ExpressionPtr> {
    if (type) return build(child, {"[selection]", type, nullptr});
    const bool is_collection =
        child.kind == Kind::kList || child.kind == Kind::kSet || child.kind == Kind::kTuple;
    if (child.kind == Kind::kLiteral || child.kind == Kind::kMarker || is_collection) {
      const TypePtr known = type_of(child);
      if (!known) return cannot_infer(child);
      return build(child, {"[selection]", known, nullptr});
    }
    return build_selector(child);
  }();
  inside_aggregate_ = false;
  if (argument && aggregates_.size() != before) return nested();
  return argument;
}

// writetime, maxwritetime and ttl. Only columns and their direct parts have times: cells. What is
// named deeper (an element of a field) has the times of the part that it lies in, and null where it
// is null itself.
Result<ExpressionPtr> ExpressionBuilder::build_times(const Raw& raw) {
  const auto is_part = [](const Raw& part) {
    return part.kind == Kind::kElement || part.kind == Kind::kSlice || part.kind == Kind::kField;
  };
  const Raw* part = &raw.children[0];
  while (is_part(*part) && is_part(part->children[0])) part = &part->children[0];
  const Raw& target = *part;  // what has times of its own; what is named may lie deeper
  const Raw* source = is_part(target) ? &target.children[0] : &target;
  const bool is_ttl = raw.times == ast::WriteTimeSelector::Kind::kTtl;
  const bool is_max = raw.times == ast::WriteTimeSelector::Kind::kMaxWriteTime;
  const std::string_view name = is_ttl ? "ttl" : is_max ? "maxwritetime" : "writetime";
  if (source->kind != Kind::kColumn) {
    return late("Cannot use selection function {} on {}", name, source->text());
  }
  TETRAD_TRY(const ColumnSchema* found, column(*source->identifiers[0]));
  if (found->is_primary_key()) {
    return late("Cannot use selection function {} on PRIMARY KEY part {}", name, found->name);
  }
  TimesTarget times;
  ExpressionPtr inside;
  if (part != &raw.children[0]) {
    TETRAD_TRY(inside, build_selector(raw.children[0]));
  }
  times.slot = slot_of(*found);
  times.column = found->type;
  if (target.kind == Kind::kField) {
    TETRAD_TRY(ExpressionPtr checked, build_field(target));
    times.field = found->type->field_index(target.identifiers[0]->text);
  } else if (target.kind != Kind::kColumn) {
    const TypeKind kind = found->type->kind();
    if (kind != TypeKind::kMap && kind != TypeKind::kSet) {
      TETRAD_TRY(ExpressionPtr refused, build_element(target));
      return late("Cannot use selection function {} on {}", name, target.text());
    }
    const Receiver whole{found->name, found->type, nullptr};
    const Receiver key = kind == TypeKind::kMap ? key_receiver(whole) : element_receiver(whole);
    if (target.kind == Kind::kElement) {
      TETRAD_TRY(times.element, build_selected_key(target.children[1], key));
    } else {
      times.is_slice = true;
      if (target.children[1].kind != Kind::kNothing) {
        TETRAD_TRY(times.lower, build_selected_key(target.children[1], key));
      }
      if (target.children[2].kind != Kind::kNothing) {
        TETRAD_TRY(times.upper, build_selected_key(target.children[2], key));
      }
    }
  }
  ExpressionPtr made = make_times(
      is_ttl ? TimesKind::kTtl : (is_max ? TimesKind::kMaxWriteTime : TimesKind::kWriteTime),
      std::move(times));
  if (!inside) return made;
  return std::make_unique<TimesOfPart>(std::move(inside), std::move(made));
}

// The key of c[key] is checked by the rules of terms inside literals, and by those of selection
// otherwise.
Result<ExpressionPtr> ExpressionBuilder::build_selected_key(const Raw& raw, const Receiver& key) {
  const bool in_selection = in_selection_;
  // The parts of a literal are checked as those of a term.
  if (raw.kind == Kind::kTuple || raw.kind == Kind::kList || raw.kind == Kind::kSet ||
      raw.kind == Kind::kMap || raw.kind == Kind::kUdt) {
    in_selection_ = false;
  }
  auto built = build(raw, key);
  in_selection_ = in_selection;
  return built;
}

// m[k], s[k] and m[a..b]. Lists are refused, as in Cassandra.
Result<ExpressionPtr> ExpressionBuilder::build_element(const Raw& raw) {
  const Raw& source_raw = raw.children[0];
  TETRAD_TRY(ExpressionPtr source, build_selector(source_raw));
  const TypePtr& type = source->type();
  const std::string name = source_raw.text();
  const std::string_view what = raw.kind == Kind::kElement ? "Element" : "Slice";
  if (type->kind() == TypeKind::kList) {
    return late("{} selection is only allowed on sets and maps, but {} is a list", what, name);
  }
  if (type->kind() != TypeKind::kMap && type->kind() != TypeKind::kSet) {
    return late("Invalid {} selection: {} {}of type {} is not a collection",
                raw.kind == Kind::kElement ? "element" : "slice", name,
                raw.kind == Kind::kElement ? "is " : "", type->cql_text());
  }
  const Receiver whole{name, type, nullptr};
  const Receiver key =
      type->kind() == TypeKind::kMap ? key_receiver(whole) : element_receiver(whole);
  const auto build_key = [&](const Raw& written) -> Result<ExpressionPtr> {
    if (written.kind == Kind::kNothing) return nullptr;
    auto built = build_selected_key(written, key);
    if (!built) {
      failed_late_ = true;
      return built;
    }
    // Keys are checked once before rows are read, even where there are no rows, as in Cassandra.
    selected_keys_.push_back({built->get(), raw.kind == Kind::kSlice, name});
    return built;
  };
  TETRAD_TRY(ExpressionPtr lower, build_key(raw.children[1]));
  if (raw.kind == Kind::kElement) return make_element(std::move(source), std::move(lower));
  TETRAD_TRY(ExpressionPtr upper, build_key(raw.children[2]));
  return make_slice(std::move(source), std::move(lower), std::move(upper));
}

// u.f, also of a user type inside another.
Result<ExpressionPtr> ExpressionBuilder::build_field(const Raw& raw) {
  TETRAD_TRY(ExpressionPtr source, build_selector(raw.children[0]));
  const TypePtr& type = source->type();
  const std::string& field = raw.identifiers[0]->text;
  if (type->kind() != TypeKind::kUdt) {
    return late("Invalid field selection: {} of type {} is not a user type", raw.children[0].text(),
                type->cql_text());
  }
  const auto index = type->field_index(field);
  if (!index) {
    return late("{} of type {} has no field {}", raw.children[0].text(), type->cql_text(), field);
  }
  return make_field(std::move(source), *index);
}

}  // namespace tetrad::cql
