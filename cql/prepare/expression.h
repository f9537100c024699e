// SPDX-License-Identifier: Apache-2.0
// Expressions: what terms and selectors become once their types are known. Evaluated with the
// bound values of a request and, in a select list, with a row.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/functions/scalar.h"
#include "cql/protocol/request.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"
#include "storage/row/row_record.h"

namespace tetrad::cql {

/// A value of a term: null, unset or bytes.
using BoundValue = WireValue;

/// Unset becomes null: for callers that have dealt with unset.
inline OptionalView optional_view(const BoundValue& value) {
  return value.has_bytes() ? OptionalView(value.bytes) : std::nullopt;
}
/// The other way: no bytes are null, never unset.
inline BoundValue bound_value(OptionalView view) {
  return view ? BoundValue::of(*view) : BoundValue::null();
}

/// When a cell was written and how long it lives.
struct CellTimes {
  int64_t timestamp_us = storage::kNoTimestamp;
  int32_t ttl_s = 0;
  int64_t expiry_s = 0;
  bool present() const { return timestamp_us != storage::kNoTimestamp; }
};

/// A row as a SELECT sees it: one slot for each column that the statement reads.
struct RowView {
  /// One element of a column of many cells, for WRITETIME and TTL; views into the row.
  struct Element {
    BytesView key;  // element of a set, key of a map, u16 index of a field; of a list: its path
    CellTimes times;
  };
  std::vector<OptionalView> values;
  std::vector<CellTimes> times;                // of columns of one cell
  std::vector<std::vector<Element>> elements;  // of columns of many cells, in their order
};

/// What an expression is evaluated with. Results point into the arena, the bound values, the row or
/// the expression itself.
struct EvalContext {
  std::span<const BoundValue> bound;  // by marker index
  base::Arena& arena;
  const FunctionEnvironment& functions;
  int64_t now_s = 0;
  const RowView* row = nullptr;
  std::span<const OptionalBytes> aggregates = {};
};

/// Something with a value: a constant, a marker, a column, a call. Immutable, so that shards share
/// it; all that changes is in the EvalContext.
class Expression {
 public:
  explicit Expression(TypePtr type) : type_(std::move(type)) {}
  virtual ~Expression() = default;
  const TypePtr& type() const { return type_; }
  /// Errors: kInvalid, kFunctionFailure.
  virtual Result<BoundValue> evaluate(EvalContext& context) const = 0;
  /// The marker's index when the expression is a plain marker.
  int32_t marker_index() const { return marker_index_; }
  /// The slot when it is a plain column.
  int32_t slot() const { return slot_; }
  /// A constant that is null.
  virtual bool is_null_constant() const { return false; }
  /// A constant, or a collection or tuple of such alone.
  virtual bool is_constant() const { return false; }

 protected:
  // -1: it is no plain marker, no plain column. Set by the makers below, before anybody has it.
  int32_t marker_index_ = -1;
  int32_t slot_ = -1;

 private:
  const TypePtr type_;
};
using ExpressionPtr = std::unique_ptr<const Expression>;

/// `value` has been checked against `type`; no bytes: null.
ExpressionPtr make_constant(TypePtr type, OptionalBytes value);
/// Checks the bytes given for the marker against the type.
ExpressionPtr make_marker(TypePtr type, int32_t index);
/// Lists, sets and vectors: a set is sorted when it is evaluated. `takes_null`: a list of a select
/// list, which may hold null.
ExpressionPtr make_collection(TypePtr type, std::vector<ExpressionPtr> items,
                              bool takes_null = false);
/// Entries in any order; sorted by key when it is evaluated, and the last of equal keys stays.
ExpressionPtr make_map_collection(TypePtr type,
                                  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries);
/// Tuples and user types; a missing field (null pointer) is null. `name` is that of the receiver.
ExpressionPtr make_tuple_value(TypePtr type, std::vector<ExpressionPtr> fields);
/// As many arguments as the function takes. `failure_label` names an operator in errors.
ExpressionPtr make_call(ScalarFunctionPtr function, std::vector<ExpressionPtr> arguments,
                        std::string failure_label = {});
/// The value in a slot of the row; needs EvalContext::row.
ExpressionPtr make_column(TypePtr type, int32_t slot);
/// source.field, by its place in the user type.
ExpressionPtr make_field(ExpressionPtr source, size_t index);
/// `source[key]` of a map or set.
ExpressionPtr make_element(ExpressionPtr source, ExpressionPtr key);
/// `source[lower..upper]`; either may be null.
ExpressionPtr make_slice(ExpressionPtr source, ExpressionPtr lower, ExpressionPtr upper);
/// The result of an aggregate; needs EvalContext::aggregates.
ExpressionPtr make_aggregate_reference(TypePtr type, size_t index);
/// Gives the value of `inner` another type of the same bytes.
ExpressionPtr make_retyped(TypePtr type, ExpressionPtr inner);

/// Which of the three functions.
enum class TimesKind : uint8_t { kWriteTime, kMaxWriteTime, kTtl };
/// WRITETIME, MAXWRITETIME or TTL of the column in `slot`, or of one of its elements, fields or a
/// slice of its elements. `column` is the column's type.
struct TimesTarget {
  int32_t slot = 0;
  TypePtr column;
  ExpressionPtr element;        // m[key]
  std::optional<size_t> field;  // u.field
  bool is_slice = false;        // m[lower..upper]
  ExpressionPtr lower, upper;
};
ExpressionPtr make_times(TimesKind kind, TimesTarget target);

}  // namespace tetrad::cql
