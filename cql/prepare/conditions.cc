// SPDX-License-Identifier: Apache-2.0
// IF conditions on columns: prepared from the tree (ConditionReader), bound to values
// (BoundCondition::bind), and tested on a row that Paxos has read (holds). Cassandra's rules for
// null differ from those of WHERE: `IF c = null` holds where c has no value, and a multi-cell
// collection without elements equals both null and an empty collection.
#include "cql/prepare/conditions.h"

#include <algorithm>

#include "base/assert.h"
#include "cql/grammar/ast_print.h"
#include "cql/types/compare.h"
#include "cql/types/empty_value.h"

namespace tetrad::cql {

namespace {

using Op = ast::RelationOperator;
using Part = ColumnCondition::Part;

bool is_slice(Op op) {
  return op == Op::kLess || op == Op::kLessOrEqual || op == Op::kGreater ||
         op == Op::kGreaterOrEqual;
}
/// Conditions on what a collection holds.
bool is_contains(Op op) { return op == Op::kContains || op == Op::kContainsKey; }

/// Durations have no order.
Result<void> check_durations(Op op, const DataType& type) {
  if (!is_slice(op) || !type.references_duration()) return {};
  const char* what = type.is_collection()              ? "collections"
                     : type.kind() == TypeKind::kTuple ? "tuples"
                     : type.kind() == TypeKind::kUdt   ? "UDTs"
                                                       : nullptr;
  if (what != nullptr) {
    return fail(ErrorCode::kInvalid,
                "Slice conditions are not supported on {} containing durations", what);
  }
  return fail(ErrorCode::kInvalid, "Slice conditions ( {} ) are not supported on durations",
              ast::relation_operator_name(op));
}

/// Reads one condition of IF. The checks stand in Cassandra's order.
class ConditionReader {
 public:
  ConditionReader(ExpressionBuilder& builder, const ColumnSchema& column) : builder_(builder) {
    made_.column = &column;
  }

  // The receiver is what values are compared with: the column, one of its elements, or a field.
  Result<ColumnCondition> read(const ast::Condition& source) {
    if (made_.column->type->is_counter()) {
      return fail(ErrorCode::kInvalid, "Conditions on counters are not supported");
    }
    made_.op = source.op;
    made_.in_marker = source.in_marker;
    Receiver receiver = Receiver::of(*made_.column);
    if (source.element) {
      TETRAD_TRY(receiver, read_element(*source.element));
    } else if (source.field) {
      TETRAD_TRY(receiver, read_field(*source.field));
    } else if (is_contains(source.op)) {
      TETRAD_TRY(receiver, contained());
    }
    // CONTAINS compares elements, so its type is the column's.
    made_.type = is_contains(source.op) ? made_.column->type : receiver.type;
    TETRAD_TRY_VOID(check_durations(source.op, *made_.type));
    if (source.in_marker) {
      receiver = {"in(" + receiver.name + ")", make_list(freeze(receiver.type), true), nullptr};
    }
    for (const ast::Term& term : source.values) {
      TETRAD_TRY(ExpressionPtr value, builder_.term(term, receiver));
      made_.values.push_back(std::move(value));
    }
    return std::move(made_);
  }

 private:
  /// c[x]: an index of a list or a key of a map. Returns the receiver of the element's value.
  Result<Receiver> read_element(const ast::Term& term) {
    const ColumnSchema& column = *made_.column;
    const TypePtr& type = column.type;
    if (!type->is_collection()) {
      return fail(ErrorCode::kInvalid, "Invalid element access syntax for non-collection column {}",
                  column.name);
    }
    if (type->kind() == TypeKind::kSet) {
      return fail(ErrorCode::kInvalid, "Invalid element access syntax for set column {}",
                  column.name);
    }
    made_.part = Part::kElement;
    const bool is_list = type->kind() == TypeKind::kList;
    const Receiver key = is_list ? Receiver{"idx(" + column.name + ")", int_type(), nullptr}
                                 : Receiver{"key(" + column.name + ")", type->key(), nullptr};
    TETRAD_TRY(made_.element, builder_.term(term, key));
    return Receiver{"value(" + column.name + ")", is_list ? type->element() : type->value(),
                    nullptr};
  }

  /// c.f of a user type. Returns the receiver of the field's value.
  Result<Receiver> read_field(const ast::Identifier& name) {
    const ColumnSchema& column = *made_.column;
    if (column.type->kind() != TypeKind::kUdt) {
      return fail(ErrorCode::kInvalid, "Invalid field access syntax for non-UDT column {}",
                  column.name);
    }
    const auto index = column.type->field_index(name.text);
    if (!index) {
      return fail(ErrorCode::kInvalid, "Unknown field {} for column {}", name.text, column.name);
    }
    made_.part = Part::kField;
    made_.field = *index;
    return Receiver{column.name + "." + name.text, column.type->components()[*index], nullptr};
  }

  /// CONTAINS and CONTAINS KEY: the receiver of what is looked for.
  Result<Receiver> contained() const {
    const ColumnSchema& column = *made_.column;
    const DataType& type = *column.type;
    if (made_.op == Op::kContainsKey) {
      if (type.kind() != TypeKind::kMap) {
        return fail(ErrorCode::kInvalid, "Cannot use CONTAINS KEY on non-map column {}",
                    column.name);
      }
      return Receiver{"key(" + column.name + ")", type.key(), nullptr};
    }
    if (!type.is_collection()) {
      return fail(ErrorCode::kInvalid, "Cannot use CONTAINS on non-collection column {}",
                  column.name);
    }
    return Receiver{"value(" + column.name + ")",
                    type.kind() == TypeKind::kMap ? type.value() : type.element(), nullptr};
  }

  ExpressionBuilder& builder_;
  ColumnCondition made_;
};

/// Of a list, set or map: an i32 count of 0.
constexpr BytesView kEmptyCollection("\0\0\0\0", 4);

const char* collection_name(const DataType& type) {
  return type.kind() == TypeKind::kMap ? "map" : type.kind() == TypeKind::kSet ? "set" : "list";
}

std::unexpected<Error> unset_value() {
  return fail(ErrorCode::kInvalid, "Invalid 'unset' value in condition");
}

}  // namespace

std::vector<const ColumnSchema*> Conditions::shown() const {
  std::vector<const ColumnSchema*> out;
  for (const bool statics : {false, true}) {
    for (const ColumnCondition& condition : columns) {
      const bool is_static = condition.column->kind == ColumnKind::kStatic;
      if (is_static == statics && std::ranges::find(out, condition.column) == out.end())
        out.push_back(condition.column);
    }
  }
  return out;
}

// A timestamp is refused here already, since Cassandra refuses it before it looks at the columns.
Result<Conditions> prepare_conditions(const std::vector<ast::Condition>& source,
                                      ExpressionBuilder& builder, bool has_timestamp) {
  Conditions made;
  if (source.empty()) return made;
  made.kind = Conditions::Kind::kColumns;
  if (has_timestamp) {
    return fail(ErrorCode::kInvalid, "Cannot provide custom timestamp for conditional updates");
  }
  for (const ast::Condition& condition : source) {
    TETRAD_TRY(const ColumnSchema* column, builder.column(condition.column));
    // The key is refused after the condition has been read, as in Cassandra.
    TETRAD_TRY(ColumnCondition read, ConditionReader(builder, *column).read(condition));
    if (column->is_primary_key()) {
      return fail(ErrorCode::kInvalid, "PRIMARY KEY column '{}' cannot have IF conditions",
                  column->name);
    }
    (column->kind == ColumnKind::kStatic ? made.on_static : made.on_regular) = true;
    made.columns.push_back(std::move(read));
  }
  return made;
}

// `applied` is the metadata of an answer without rows, `refused` of one with them; the layout has
// the same columns in the same order as slots.
ConditionalShape::ConditionalShape(const TablePtr& table,
                                   std::vector<const ColumnSchema*> columns) {
  std::vector<ColumnSpec> specs;
  specs.reserve(columns.size() + 1);
  specs.push_back({table->keyspace, table->name, "[applied]", boolean_type()});
  applied = std::make_shared<const ResultMetadata>(specs);
  for (const ColumnSchema* column : columns) {
    specs.push_back({table->keyspace, table->name, column->name, column->type});
  }
  refused = std::make_shared<const ResultMetadata>(std::move(specs));
  layout = RowLayout::make(table, std::move(columns), false);
}

std::vector<const ColumnSchema*> ConditionalShape::all_columns(const TableSchema& table) {
  std::vector<const ColumnSchema*> out;
  for (const ColumnSchema& column : table.columns()) {
    if (!column.hidden) out.push_back(&column);
  }
  return out;
}

// --- with values ---

// The element first, so that a wrong index or key is reported before a wrong value.
Result<BoundCondition> BoundCondition::bind(const ColumnCondition& condition,
                                            EvalContext& context) {
  BoundCondition bound(condition);
  if (condition.element) TETRAD_TRY_VOID(bound.bind_element(context));
  if (condition.op == Op::kIn) {
    TETRAD_TRY_VOID(bound.bind_in(context));
    return bound;
  }
  TETRAD_TRY(const BoundValue value, condition.values[0]->evaluate(context));
  if (value.is_unset()) {
    if (is_contains(condition.op)) return bound;  // as Cassandra: nothing contains it
    return unset_value();
  }
  bound.values_.push_back(optional_view(value));
  return bound;
}

// Only orders and CONTAINS refuse null; = and != and IN test for it.
Result<void> BoundCondition::check_null() const {
  const Op op = condition_->op;
  if (!is_slice(op) && !is_contains(op)) return {};
  if (values_.empty()) return {};
  if (values_[0]) {
    if (!is_slice(op) || !compares_cells() || *values_[0] != kEmptyCollection) return {};
    return fail(ErrorCode::kInvalid, "Invalid comparison with an empty {} for operator \"{}\"",
                collection_name(*condition_->type), ast::relation_operator_name(op));
  }
  return fail(ErrorCode::kInvalid, "Invalid comparison with null for operator \"{}\"",
              ast::relation_operator_name(op));
}

// As Cassandra: a negative index of a non-frozen list is refused when it is bound, one of a frozen
// list when it is tested.
Result<void> BoundCondition::bind_element(EvalContext& context) {
  const bool is_list = condition_->column->type->kind() == TypeKind::kList;
  TETRAD_TRY(const BoundValue value, condition_->element->evaluate(context));
  if (value.is_null()) {
    return fail(ErrorCode::kInvalid, "Invalid null value for {} element access",
                is_list ? "list" : "map");
  }
  if (!is_list) {
    key_ = optional_view(value);
    return {};
  }
  const auto index = value.is_unset() ? std::nullopt : read_int(value.bytes);
  if (!index) return fail(ErrorCode::kInvalid, "Invalid unset value for list element access");
  index_ = *index;
  if (index_ < 0 && condition_->column->type->is_multi_cell()) {
    return fail(ErrorCode::kInvalid, "Invalid negative list index {}", index_);
  }
  return {};
}

// IN (x, y). With all of them unset nothing is left, and the condition does not hold.
Result<void> BoundCondition::bind_in(EvalContext& context) {
  if (condition_->in_marker) return bind_in_marker(context);
  for (const ExpressionPtr& expression : condition_->values) {
    TETRAD_TRY(const BoundValue value, expression->evaluate(context));
    // As Cassandra: unset values of an IN list are left out.
    if (!value.is_unset()) values_.push_back(optional_view(value));
  }
  return {};
}

/// Its list may hold null, which no other list may; as Cassandra, an empty number is null in it.
Result<void> BoundCondition::bind_in_marker(EvalContext& context) {
  const Expression& marker = *condition_->values[0];
  const BoundValue list = context.bound[static_cast<size_t>(marker.marker_index())];
  if (list.is_unset()) return unset_value();
  if (list.is_null()) return fail(ErrorCode::kInvalid, "Invalid null list in IN condition");
  std::vector<OptionalView> items;
  bool has_null = false;
  if (auto reader = CollectionReader::open(list.bytes, 1)) {
    while (!reader->at_end()) {
      const auto item = reader->next();
      if (!item) break;
      has_null = has_null || !*item;
      items.push_back(*item);
    }
  }
  if (!has_null) TETRAD_TRY_VOID(marker.evaluate(context));  // tells what is wrong with it
  const DataType& type = *marker.type()->element();
  for (OptionalView& item : items) {
    if (item && has_null) TETRAD_TRY_VOID(validate(type, *item));
    if (!type.is_tuple_like() && counts_as_null(type, item)) item.reset();
    if (!item && compares_cells()) {  // as Cassandra, which reads it as a collection
      return fail(ErrorCode::kInvalid, "Not enough bytes to read a {}", collection_name(type));
    }
  }
  values_ = std::move(items);
  return {};
}

// What the condition is about: the value, an element of it, or a field. Empty: it is not there.
Result<OptionalView> BoundCondition::part_of(OptionalView value) const {
  if (!value || condition_->part == Part::kWhole) return value;
  const DataType& type = *condition_->column->type;
  if (condition_->part == Part::kField) {
    TETRAD_TRY(const auto fields, split_tuple(type, *value));
    return condition_->field < fields.size() ? fields[condition_->field] : std::nullopt;
  }
  TETRAD_TRY(CollectionReader reader, CollectionReader::open(type, *value));
  if (type.kind() == TypeKind::kList) {
    if (index_ < 0) return fail(ErrorCode::kInvalid, "Invalid negative list index {}", index_);
    for (int32_t i = 0; !reader.at_end(); ++i) {
      TETRAD_TRY(const OptionalView item, reader.next());
      if (i == index_) return item;
    }
    return OptionalView();
  }
  while (!reader.at_end()) {
    TETRAD_TRY(const OptionalView key, reader.next());
    TETRAD_TRY(const OptionalView item, reader.next());
    if (key && key_ && compare(*type.key(), *key, *key_) == 0) return item;
  }
  return OptionalView();
}

// Such a column is no value but a set of cells, so no cells are both null and the empty collection.
bool BoundCondition::compares_cells() const {
  return condition_->part == Part::kWhole && condition_->type->is_collection() &&
         condition_->type->is_multi_cell();
}

/// A column of many cells that has none equals an empty collection, and is in no order with others.
bool BoundCondition::compares(OptionalView current, OptionalView wanted) const {
  const DataType& type = *condition_->type;
  if (compares_cells() && wanted && !current && !is_slice(condition_->op))
    current = kEmptyCollection;
  // Null equals null only, and has no order.
  if (!current || !wanted) {
    const bool both = !current && !wanted;
    return condition_->op == Op::kNotEqual ? !both : both && !is_slice(condition_->op);
  }
  const int order = compare(type, *current, *wanted);
  switch (condition_->op) {
    case Op::kEqual:
    case Op::kIn:
      return order == 0;
    case Op::kNotEqual:
      return order != 0;
    case Op::kLess:
      return order < 0;
    case Op::kLessOrEqual:
      return order <= 0;
    case Op::kGreater:
      return order > 0;
    case Op::kGreaterOrEqual:
      return order >= 0;
    default:
      TETRAD_ASSERT(false);
      return false;
  }
}

Result<bool> BoundCondition::contains(OptionalView value) const {
  if (!value || values_.empty()) return false;
  const DataType& type = *condition_->type;
  const bool is_map = type.kind() == TypeKind::kMap;
  const bool of_keys = condition_->op == Op::kContainsKey;
  const DataType& item_type = !is_map ? *type.element() : of_keys ? *type.key() : *type.value();
  TETRAD_TRY(CollectionReader reader, CollectionReader::open(type, *value));
  while (!reader.at_end()) {
    TETRAD_TRY(OptionalView item, reader.next());
    if (is_map) {
      TETRAD_TRY(const OptionalView entry, reader.next());
      if (!of_keys) item = entry;
    }
    if (item && compare(item_type, *item, *values_[0]) == 0) return true;
  }
  return false;
}

Result<bool> BoundCondition::holds(OptionalView value) const {
  if (is_contains(condition_->op)) return contains(value);
  TETRAD_TRY(const OptionalView current, part_of(value));
  if (condition_->op == Op::kIn) {
    return std::ranges::any_of(
        values_, [&](const OptionalView& wanted) { return compares(current, wanted); });
  }
  return compares(current, values_[0]);
}

// An estimate for the work meter: each value of an IN list is compared with the whole column value
// at worst.
uint64_t BoundCondition::test_ns(size_t value_bytes) const {
  constexpr uint64_t kTestNs = 50;
  return (kTestNs + value_bytes) * std::max<size_t>(values_.size(), 1);
}

}  // namespace tetrad::cql
