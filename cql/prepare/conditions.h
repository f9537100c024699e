// SPDX-License-Identifier: Apache-2.0
// IF of INSERT, UPDATE and DELETE: conditions with their types, the test of a row, and what is
// shown of rows that do not fit.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cql/grammar/ast.h"
#include "cql/prepare/expression_builder.h"
#include "cql/prepare/prepared_select.h"

namespace tetrad::cql {

/// A condition on a column, on an element of a list or map, or on a field of a user type.
struct ColumnCondition {
  /// What of the column is compared.
  enum class Part : uint8_t { kWhole, kElement, kField };
  Part part = Part::kWhole;
  ast::RelationOperator op = ast::RelationOperator::kEqual;
  const ColumnSchema* column = nullptr;
  TypePtr type;                       // of what is compared
  ExpressionPtr element;              // kElement: an index or a key
  size_t field = 0;                   // kField
  bool in_marker = false;             // IN ?: one value, a list
  std::vector<ExpressionPtr> values;  // one, but of IN (…) any number
};

/// All of IF of one statement.
struct Conditions {
  /// Which form of IF was written.
  enum class Kind : uint8_t { kNone, kNotExists, kExists, kColumns };
  Kind kind = Kind::kNone;
  std::vector<ColumnCondition> columns;  // of kColumns, as they were written
  bool on_regular = false, on_static = false;

  bool any() const { return kind != Kind::kNone; }
  bool on_existence() const { return kind == Kind::kNotExists || kind == Kind::kExists; }
  /// The columns of kColumns, each once: regular ones, then static ones, in the order in which they
  /// were written.
  std::vector<const ColumnSchema*> shown() const;
};

/// Errors: kInvalid. `has_timestamp`: the statement has USING TIMESTAMP.
Result<Conditions> prepare_conditions(const std::vector<ast::Condition>& source,
                                      ExpressionBuilder& builder, bool has_timestamp);

/// What a conditional statement or batch answers with: [applied], and after it the columns of rows
/// that did not fit. Immutable.
struct ConditionalShape {
  /// `columns`: those shown. All of them are read, and nothing else is tested.
  ConditionalShape(const TablePtr& table, std::vector<const ColumnSchema*> columns);
  ResultMetadataPtr applied;  // also of an answer without rows
  ResultMetadataPtr refused;
  RowLayout layout;  // its slots are the columns of `refused` without the first

  /// The columns of SELECT *.
  static std::vector<const ColumnSchema*> all_columns(const TableSchema& table);
};
using ConditionalShapePtr = std::shared_ptr<const ConditionalShape>;

/// A condition with its values; these live as long as the evaluation's arena and bound values.
class BoundCondition {
 public:
  /// Errors: kInvalid, an unset value where none may be.
  static Result<BoundCondition> bind(const ColumnCondition& condition, EvalContext& context);
  /// Errors: kInvalid, the operator does not compare with null, or with an empty collection.
  /// Before holds().
  Result<void> check_null() const;

  const ColumnSchema& column() const { return *condition_->column; }
  /// Whether it holds of the column's value; null where the row or the value is not there. Errors:
  /// kInvalid, a list index below zero.
  Result<bool> holds(OptionalView value) const;
  /// Estimated, with a value of `value_bytes`.
  uint64_t test_ns(size_t value_bytes) const;

 private:
  explicit BoundCondition(const ColumnCondition& condition) : condition_(&condition) {}
  /// The index or key of c[x]. Errors: kInvalid.
  Result<void> bind_element(EvalContext& context);
  Result<void> bind_in(EvalContext& context);
  Result<void> bind_in_marker(EvalContext& context);
  /// What is compared: the value, an element or a field of it; unset: it is not there.
  Result<OptionalView> part_of(OptionalView value) const;
  /// A whole column of many cells, for which empty and null are the same.
  bool compares_cells() const;
  /// One comparison by the condition's operator, with Cassandra's rules for null.
  bool compares(OptionalView current, OptionalView wanted) const;
  Result<bool> contains(OptionalView value) const;

  const ColumnCondition* condition_;
  int32_t index_ = 0;  // of a list
  OptionalView key_;   // of a map; null: unset, of no entry
  std::vector<OptionalView> values_;
};

}  // namespace tetrad::cql
