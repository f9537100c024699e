// SPDX-License-Identifier: Apache-2.0
// ExpressionBuilder: the types of expressions before they are made, and what they fit.
//
// Two questions are answered without making an expression. test(): does a term fit a type, exactly,
// weakly or not at all? Overloads are chosen by it. type_of(): which type has a term by itself?
// Null where only the receiver can say (markers, most literals).
//
// type_of() remembers its answer in the node (known_type), so a deep tree is resolved once and not
// once for each level above it.
#include <algorithm>
#include <utility>

#include "cql/prepare/constant.h"
#include "cql/prepare/expression_parts.h"

namespace tetrad::cql {

namespace {

using Raw = RawExpression;
using Kind = RawExpression::Kind;

}  // namespace

Result<TypePtr> ExpressionBuilder::hinted_type(const Raw& raw) const {
  TETRAD_TRY(TypePtr type, resolve_type(*raw.type));
  return in_selection_ ? freeze(type) : type;
}

// test() has no place for an error, so a list where no list can be is noted in misplaced_list_ and
// becomes the error here.
Result<bool> ExpressionBuilder::fits(const Raw& raw, const TypePtr& type) {
  misplaced_list_.reset();
  const Assignability found = test(raw, type);
  if (misplaced_list_) return std::unexpected(*std::move(misplaced_list_));
  return found != Assignability::kNotAssignable;
}

/// Where Cassandra fails while it tests, misplaced_list_ says so.
Assignability ExpressionBuilder::test(const Raw& raw, const TypePtr& type) {
  const auto all_of = [&](const TypePtr& element) {
    // An empty collection fits each element type, so it decides nothing between overloads.
    auto all = raw.children.empty() ? Assignability::kWeak : Assignability::kExact;
    for (const Raw& child : raw.children) {
      all = weakest(all, test(child, element));
      if (all == Assignability::kNotAssignable) break;
    }
    return all;
  };
  switch (raw.kind) {
    case Kind::kLiteral:
      return test_constant(*raw.literal, *type);
    // A marker fits everything and chooses nothing.
    case Kind::kMarker:
      return Assignability::kWeak;
    case Kind::kList: {
      if (!takes_lists(*type)) {
        if (!misplaced_list_) misplaced_list_ = misplaced_list(*type).error();
        return Assignability::kNotAssignable;
      }
      if (type->kind() == TypeKind::kVector && raw.children.size() != type->dimension()) {
        return Assignability::kNotAssignable;
      }
      return all_of(type->element());
    }
    case Kind::kSet: {
      if (raw.children.empty() && type->kind() == TypeKind::kMap) return Assignability::kWeak;
      if (type->kind() != TypeKind::kSet) return Assignability::kNotAssignable;
      return all_of(type->element());
    }
    case Kind::kUdt:
    case Kind::kMap:
      return test_braces(raw, type);
    case Kind::kTuple:
      return test_tuple(raw, type);
    case Kind::kNothing:
      return Assignability::kNotAssignable;
    default:
      return test_typed(raw, type);
  }
}

// A literal in braces with colons: a map, or a user type where its keys are names.
Assignability ExpressionBuilder::test_braces(const Raw& raw, const TypePtr& type) {
  if (type->kind() == TypeKind::kUdt && is_field_udt(raw)) {
    auto all = Assignability::kExact;
    const auto misplaced = misplaced_list_;  // inside it is only another value that does not fit
    const size_t step = raw.kind == Kind::kMap ? 2 : 1;
    for (size_t i = 0; i < raw.children.size(); i += step) {
      const auto& name =
          step == 2 ? raw.children[i].identifiers[0]->text : raw.identifiers[i]->text;
      const auto index = type->field_index(name);
      if (!index) continue;  // an unknown field is an error of its own
      all = weakest(all, test(raw.children[i + step - 1], type->components()[*index]));
    }
    misplaced_list_ = misplaced;
    return all;
  }
  if (raw.kind == Kind::kUdt || type->kind() != TypeKind::kMap) {
    return Assignability::kNotAssignable;
  }
  auto all = Assignability::kExact;
  for (size_t i = 0; i < raw.children.size(); i += 2) {
    all = weakest(all, test(raw.children[i], type->key()));
    if (all == Assignability::kNotAssignable) break;
    all = weakest(all, test(raw.children[i + 1], type->value()));
    if (all == Assignability::kNotAssignable) break;
  }
  return all;
}

Assignability ExpressionBuilder::test_tuple(const Raw& raw, const TypePtr& type) {
  if (!type->is_tuple_like()) {
    // Parentheses around one expression.
    return raw.children.size() == 1 ? test(raw.children[0], type) : Assignability::kNotAssignable;
  }
  if (raw.children.size() > type->components().size()) return Assignability::kNotAssignable;
  auto all = Assignability::kExact;
  const auto misplaced = misplaced_list_;
  for (size_t i = 0; i < raw.children.size(); ++i) {
    all = weakest(all, test(raw.children[i], type->components()[i]));
  }
  misplaced_list_ = misplaced;
  return all;
}

// Columns, calls, operations, casts and hints.
Assignability ExpressionBuilder::test_typed(const Raw& raw, const TypePtr& type) {
  const TypePtr known = type_of(raw);
  // A call or operation that only its receiver can settle.
  if (!known) return Assignability::kWeak;
  const Assignability direct = test_assignment(*type, *known);
  // Constants adapt: 1 + 2 may be any number.
  if (direct == Assignability::kNotAssignable &&
      (raw.kind == Kind::kArithmetic || raw.kind == Kind::kNegation)) {
    auto all = Assignability::kWeak;
    for (const Raw& child : raw.children) all = weakest(all, test(child, type));
    // Among terms an operation that gives another type is refused when it is made.
    // So the error names the operation instead of the function it is an argument of.
    const bool later = raw.kind == Kind::kArithmetic && !in_selection_;
    return later ? Assignability::kWeak : all;
  }
  return direct;
}

TypePtr ExpressionBuilder::type_of(const Raw& raw) {
  if (!raw.known_type) raw.known_type = find_type(raw);
  return *raw.known_type;
}

TypePtr ExpressionBuilder::find_type(const Raw& raw) {
  switch (raw.kind) {
    case Kind::kColumn: {
      const ColumnSchema* found = table_.find(raw.identifiers[0]->text);
      return found == nullptr ? nullptr : found->type;
    }
    case Kind::kLiteral:
      return preferred_type(*raw.literal);
    case Kind::kCountRows:
      return bigint_type();
    case Kind::kFunction:
      return type_of_call(raw);
    case Kind::kCast:
    case Kind::kTypeHint: {
      const auto type = raw.kind == Kind::kCast ? resolve_type(*raw.type) : hinted_type(raw);
      return type ? *type : nullptr;
    }
    case Kind::kField: {
      const TypePtr source = type_of(raw.children[0]);
      if (!source || source->kind() != TypeKind::kUdt) return nullptr;
      const auto index = source->field_index(raw.identifiers[0]->text);
      return index ? source->components()[*index] : nullptr;
    }
    case Kind::kElement: {
      const TypePtr source = type_of(raw.children[0]);
      if (!source) return nullptr;
      if (source->kind() == TypeKind::kMap) return source->value();
      return source->kind() == TypeKind::kSet ? source->element() : nullptr;
    }
    case Kind::kSlice:
      return type_of(raw.children[0]);
    case Kind::kTimes:
      return type_of_times(raw);
    case Kind::kTuple:
      return type_of_tuple(raw);
    case Kind::kMap: {
      if (in_selection_) return nullptr;
      TypePtr key, value;
      for (size_t i = 0; i < raw.children.size(); i += 2) {
        if (!key) key = type_of(raw.children[i]);
        if (!value) value = type_of(raw.children[i + 1]);
      }
      return key && value ? make_map(key, value, true) : nullptr;
    }
    case Kind::kList:
      if (!in_selection_) return nullptr;
      [[fallthrough]];
    case Kind::kSet:
      return type_of_items(raw);
    case Kind::kArithmetic: {
      const auto function = operator_of(raw, in_selection_);
      return function ? function->return_type : nullptr;
    }
    case Kind::kNegation: {
      const TypePtr argument = type_of(unwrapped(raw.children[0]));
      const auto function = argument ? find_negation(argument) : nullptr;
      return function ? function->return_type : nullptr;
    }
    default:
      return nullptr;
  }
}

// A native aggregate has the type that its argument tells; another call that of the function that
// is meant, as far as it can be resolved without a receiver.
TypePtr ExpressionBuilder::type_of_call(const Raw& raw) {
  const std::string name = name_of(raw);
  const bool may_be_native = !raw.function->keyspace || raw.function->keyspace->text == "system";
  if (may_be_native && is_native_aggregate(name) && raw.children.size() == 1 &&
      !exact_user_function(raw)) {
    const TypePtr argument = type_of(told_by(name, raw.children[0]));
    const auto aggregate = argument ? find_aggregate(name, argument) : nullptr;
    return aggregate ? aggregate->return_type : nullptr;
  }
  auto function = resolve(raw, nullptr, {});
  return function ? (*function)->return_type : nullptr;
}

// writetime, maxwritetime and ttl: one number, or a list of them for a column of many cells.
TypePtr ExpressionBuilder::type_of_times(const Raw& raw) {
  const TypePtr& one = raw.times == ast::WriteTimeSelector::Kind::kTtl ? int_type() : bigint_type();
  const Raw& target = raw.children[0];
  const bool is_slice = target.kind == Kind::kSlice;
  if (raw.times == ast::WriteTimeSelector::Kind::kMaxWriteTime ||
      (target.kind != Kind::kColumn && !is_slice)) {
    return one;
  }
  const TypePtr source = type_of(is_slice ? target.children[0] : target);
  return source && source->is_multi_cell() ? make_list(one, true) : one;
}

TypePtr ExpressionBuilder::type_of_tuple(const Raw& raw) {
  // One expression in parentheses may be a tuple or none: Cassandra does not say.
  if (raw.children.size() == 1 && in_selection_) return nullptr;
  std::vector<TypePtr> fields;
  for (const Raw& child : raw.children) {
    if (!in_selection_ && child.kind == Kind::kLiteral) return nullptr;
    TypePtr type = type_of(child);
    if (!type) return nullptr;
    fields.push_back(std::move(type));
  }
  return make_tuple(std::move(fields));
}

// Lists and sets: the first item with a type gives the type of all.
TypePtr ExpressionBuilder::type_of_items(const Raw& raw) {
  for (const Raw& child : raw.children) {
    const TypePtr type = type_of(child);
    if (!type) continue;
    return raw.kind == Kind::kList ? make_list(type, true) : make_set(type, true);
  }
  return nullptr;
}

// The type of an item of a select list that has no receiver. Frozen inside, as Cassandra makes it.
TypePtr ExpressionBuilder::exact_type_of(const Raw& raw) {
  switch (raw.kind) {
    case Kind::kLiteral:
      return nullptr;
    case Kind::kTuple: {
      if (raw.children.size() == 1 && in_selection_) return nullptr;
      std::vector<TypePtr> fields;
      for (const Raw& child : raw.children) {
        TypePtr type = exact_type_of(child);
        if (!type) return nullptr;
        fields.push_back(freeze(type));
      }
      return make_tuple(std::move(fields));
    }
    case Kind::kList:
    case Kind::kSet:
      for (const Raw& child : raw.children) {
        const TypePtr type = exact_type_of(child);
        if (!type) continue;
        return raw.kind == Kind::kList ? make_list(freeze(type), false)
                                       : make_set(freeze(type), false);
      }
      return nullptr;
    default:
      return type_of(raw);
  }
}

Result<bool> ExpressionBuilder::fits_selected(const Raw& raw, const TypePtr& type) {
  if (in_selection_) {
    if (raw.kind == Kind::kLiteral) return true;  // refused where it is read
    const TypePtr exact = exact_type_of(raw);
    if (exact && *freeze(exact) == *freeze(type)) return true;
  }
  return fits(raw, type);
}

}  // namespace tetrad::cql
