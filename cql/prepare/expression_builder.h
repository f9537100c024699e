// SPDX-License-Identifier: Apache-2.0
// From the tree's terms and selectors to expressions: types are found, functions resolved, markers
// recorded. Errors are kInvalid with Cassandra's texts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cql/functions/aggregate.h"
#include "cql/grammar/ast.h"
#include "cql/prepare/bind_markers.h"
#include "cql/prepare/expression.h"

namespace tetrad::cql {

/// A term or selector in one shape; points into the tree.
struct RawExpression {
  /// What a node of the tree is, and what its children mean.
  enum class Kind : uint8_t {
    kColumn,
    kLiteral,
    kMarker,
    kCountRows,
    kTimes,     // children[0]
    kFunction,  // children
    kCast,      // children[0] AS type
    kField,     // children[0] . identifier
    kElement,   // children[0] [children[1]]
    kSlice,     // children[0] [children[1] .. children[2]], either may be kNothing
    kTuple,
    kList,
    kSet,
    kMap,       // keys and values in turn
    kUdt,       // children, field names in identifiers
    kTypeHint,  // (type) children[0]
    kArithmetic,
    kNegation,
    kNothing,
  };
  Kind kind = Kind::kNothing;
  const ast::Term* term = nullptr;  // one of the two, but for kNothing
  const ast::Selector* selector = nullptr;
  const ast::Literal* literal = nullptr;
  const ast::BindMarker* marker = nullptr;
  const ast::FunctionName* function = nullptr;
  const ast::CqlType* type = nullptr;
  std::vector<const ast::Identifier*> identifiers;
  ast::ArithmeticOperator op = ast::ArithmeticOperator::kAdd;
  ast::WriteTimeSelector::Kind times = ast::WriteTimeSelector::Kind::kWriteTime;
  std::vector<RawExpression> children;
  /// What type_of() found, so that nested calls are resolved once.
  mutable std::optional<TypePtr> known_type = std::nullopt;
  /// It and all below it have been resolved from the inside out. Without this each level would
  /// resolve those below it again, and they those below them.
  mutable bool is_resolved_inside = false;

  /// As Cassandra shows it. `keyspace`: of users' types that are named without one.
  std::string text(std::string_view keyspace = {}) const;
};
/// The two trees have other node types for the same things; the builder sees one. Terms and
/// selectors must outlive what is made.
RawExpression raw_of(const ast::Term& term);
RawExpression raw_of(const ast::Selector& selector);

/// A function of GROUP BY.
struct GroupFunction {
  const ColumnSchema* column = nullptr;  // the clustering column that it is of
  ExpressionPtr value;
  std::optional<Error> refused = std::nullopt;  // reported when the statement is executed
};

/// An aggregate of a select list with its arguments.
struct AggregateCall {
  AggregateFunctionPtr function;
  std::vector<ExpressionPtr> arguments;
  bool counts_rows = false;  // count(*)
};

/// The key in m[key], or a bound in m[lower..upper], of a select list: looked at before any row is.
struct SelectedKey {
  const Expression* key;
  bool is_slice;
  std::string source;  // as written

  /// Errors: kInvalid when it is null, or unset as a key.
  Result<void> check(EvalContext& context) const;
};

/// A type by the name of its Java class. Errors: kSyntax, there is no such class.
Result<TypePtr> type_of_class(const ast::CqlType& type);

/// Makes expressions of the terms and selectors of one statement, and collects its slots, markers
/// and aggregates. Lives as long as the statement is being prepared.
class ExpressionBuilder {
 public:
  /// All outlive it. `table` is the table of the statement.
  ExpressionBuilder(const PrepareContext& context, const TableSchema& table, BindMarkers& markers)
      : context_(context), table_(table), markers_(markers) {}

  const TableSchema& table() const { return table_; }
  /// Those of the preparation.
  const QuerySettings& settings() const;

  /// A term for something of a known type.
  Result<ExpressionPtr> term(const ast::Term& term, const Receiver& receiver);
  /// How well `raw` fits `type`, without making it. No errors: what cannot be is kNotAssignable.
  Assignability test(const RawExpression& raw, const TypePtr& type);

  /// An item of a select list. Columns get slots, aggregates places in aggregates().
  Result<ExpressionPtr> selector(const ast::Selector& selector);
  /// The columns that got slots, in the order of the slots.
  const std::vector<const ColumnSchema*>& slots() const { return slots_; }
  /// The slot of a column; makes one.
  int32_t slot_of(const ColumnSchema& column);
  /// The take_ functions end the collecting: once, after the last selector or term.
  std::vector<AggregateCall> take_aggregates() { return std::move(aggregates_); }
  std::vector<SelectedKey> take_selected_keys() { return std::move(selected_keys_); }
  UsedFunctions take_used_functions() { return std::move(used_functions_); }
  bool has_aggregates() const { return !aggregates_.empty(); }
  /// Whether selectors name columns outside of aggregates.
  bool selects_columns() const { return selects_columns_; }
  bool is_inside_aggregate() const { return inside_aggregate_; }

  /// Whether selector() last failed where Cassandra checks after WHERE.
  bool failed_late() const { return failed_late_; }
  /// Whether the cast is to the type that its argument has; such a cast leaves no trace.
  bool casts_nothing(const ast::CastSelector& cast) const;

  /// The column of that name, or "Undefined column name x in table ks.t".
  Result<const ColumnSchema*> column(const ast::Identifier& name) const;
  /// A written type, user types from the table's keyspace. Errors: kInvalid, kSyntax.
  Result<TypePtr> resolve_type(const ast::CqlType& type) const;
  /// What GROUP BY names that is no column.
  Result<GroupFunction> group_function(const ast::Selector& selector);
  /// An expression of the receiver's type. Errors: kInvalid with the receiver's name in the text.
  Result<ExpressionPtr> build(const RawExpression& raw, const Receiver& receiver);
  /// "keyspace.name" of a function as result columns are named after it.
  std::string function_full_name(const ast::FunctionName& name) const;
  /// Whether there is any function or aggregate of the name that is called.
  bool is_known(const RawExpression& call) const;
  /// Whether the name is that of a native aggregate.
  bool names_native_aggregate(const RawExpression& call) const;
  /// The function that a call means; not of native aggregates.
  Result<ScalarFunctionPtr> resolve(const RawExpression& call, const TypePtr& receiver,
                                    const std::string& receiver_name);

 private:
  Result<ExpressionPtr> build_literal_list(const RawExpression& raw, const Receiver& receiver);
  Result<ExpressionPtr> build_set(const RawExpression& raw, const Receiver& receiver);
  Result<ExpressionPtr> build_constant(const RawExpression& raw, const Receiver& receiver);
  Result<ExpressionPtr> build_hinted(const RawExpression& raw, const Receiver& receiver);
  /// Of a literal of a list, set or vector.
  Result<ExpressionPtr> build_items(const RawExpression& raw, std::string_view what,
                                    const Receiver& receiver);
  Result<ExpressionPtr> build_map(const RawExpression& raw, const Receiver& receiver);
  Result<ExpressionPtr> build_udt(const RawExpression& raw, const Receiver& receiver);
  Result<ExpressionPtr> build_tuple(const RawExpression& raw, const Receiver& receiver);
  /// Calls and operators may stand without a receiver, in select lists: then null.
  Result<ExpressionPtr> build_call(const RawExpression& raw, const Receiver* receiver);
  Result<ExpressionPtr> build_arithmetic(const RawExpression& raw, const Receiver* receiver);
  Result<ExpressionPtr> build_negation(const RawExpression& raw, const Receiver* receiver);
  /// test() of literals in braces, of tuples, and of what has a type of its own.
  Assignability test_braces(const RawExpression& raw, const TypePtr& type);
  Assignability test_tuple(const RawExpression& raw, const TypePtr& type);
  Assignability test_typed(const RawExpression& raw, const TypePtr& type);
  /// test() for a part of a literal. Errors: kInvalid where Cassandra fails to test.
  Result<bool> fits(const RawExpression& raw, const TypePtr& type);
  /// Resolves every function inside. Errors: kInvalid.
  Result<void> resolve_inside(const RawExpression& raw);
  Result<void> resolve_itself(const RawExpression& raw);
  /// Errors: kInvalid, an operand is a marker, whose type nothing tells.
  Result<void> check_operands(const RawExpression& arithmetic);
  /// group_function() without its value.
  Result<GroupFunction> check_group_function(const RawExpression& raw);
  /// The name of the aggregate that is called here, if one is.
  Result<std::optional<std::string>> called_aggregate(const RawExpression& raw);
  /// The scalar function that is called here, by name, operator or cast; null: none.
  Result<ScalarFunctionPtr> called_function(const RawExpression& raw);
  /// Whether it is the same for all rows.
  Result<bool> is_constant(const RawExpression& raw);
  /// Errors: kInvalid, it does not rise with its column.
  Result<void> check_monotonic(const RawExpression& raw);
  /// Of similarity functions. Errors: kInvalid, an argument is no float vector, or dimensions
  /// differ.
  Result<void> check_vectors(const RawExpression& call, const std::vector<TypePtr>& types);
  /// Names of columns are looked up before anything else of a select list's item.
  Result<void> check_columns(const RawExpression& raw) const;
  /// An expression of the type that it has by itself.
  Result<ExpressionPtr> build_selector(const RawExpression& raw);
  Result<ExpressionPtr> build_cast(const RawExpression& raw);
  Result<ExpressionPtr> build_aggregate(const RawExpression& raw);
  Result<ExpressionPtr> build_user_aggregate(const RawExpression& raw,
                                             const ScalarFunctionPtr& function);
  Result<ExpressionPtr> inside_aggregate(const RawExpression& raw, const TypePtr& type);
  /// The user-defined functions and aggregates that a call may mean by its name.
  std::vector<ScalarFunctionPtr> user_candidates(const RawExpression& call) const;
  /// The weakest fit of the arguments.
  Assignability test_arguments(const RawExpression& call, const ScalarFunction& function);
  /// Of those, the one whose arguments fit exactly: it hides a native one.
  ScalarFunctionPtr exact_user_function(const RawExpression& call);
  /// Remembers a user-defined function or aggregate for rights and currency. Errors: kInvalid, they
  /// are switched off.
  Result<void> note_use(const RawExpression& call, const ScalarFunction& function);
  /// writetime, maxwritetime and ttl of a column or a part of it.
  Result<ExpressionPtr> build_times(const RawExpression& raw);
  /// The key of an element, or a bound of a slice, in a select list.
  Result<ExpressionPtr> build_selected_key(const RawExpression& raw, const Receiver& key);
  Result<ExpressionPtr> build_element(const RawExpression& raw);
  Result<ExpressionPtr> build_field(const RawExpression& raw);
  Result<std::vector<ExpressionPtr>> build_arguments(const RawExpression& raw,
                                                     const ScalarFunction& function);
  /// Of a type written before an expression. In a select list what it stands for is frozen.
  Result<TypePtr> hinted_type(const RawExpression& raw) const;
  /// The type as far as the text determines it: of columns, casts and calls; the preferred one of
  /// constants.
  TypePtr type_of(const RawExpression& raw);
  /// type_of() without its memory, and its larger cases.
  TypePtr find_type(const RawExpression& raw);
  TypePtr type_of_call(const RawExpression& call);
  TypePtr type_of_times(const RawExpression& raw);
  TypePtr type_of_tuple(const RawExpression& raw);
  TypePtr type_of_items(const RawExpression& raw);
  /// As type_of(), but constants have none: what a select list takes a literal's type from.
  TypePtr exact_type_of(const RawExpression& raw);
  /// The operator that the operands' types determine; null: they do not.
  ScalarFunctionPtr operator_of(const RawExpression& arithmetic, bool tries_durations);
  /// As operator_of(), with the receiver's type where the operands' decide nothing. Null: none; the
  /// result may still not suit the receiver. Errors: kInvalid, ambiguous.
  Result<ScalarFunctionPtr> choose_operator(const RawExpression& arithmetic,
                                            const Receiver* receiver);
  /// As fits(); in a select list a value of the very type fits, frozen or not.
  Result<bool> fits_selected(const RawExpression& raw, const TypePtr& type);
  /// A native function that is made for the types of its arguments.
  Result<ScalarFunctionPtr> resolve_generic(const RawExpression& call, const std::string& name,
                                            const TypePtr& receiver);
  /// The arguments' own types, null where unknown.
  Result<std::vector<TypePtr>> generic_argument_types(const RawExpression& call,
                                                      bool wants_vectors);
  Result<ScalarFunctionPtr> check_only_candidate(const RawExpression& call,
                                                 const ScalarFunctionPtr& candidate,
                                                 const Receiver& receiver);
  /// `shown`: the name as error texts have it.
  Result<ScalarFunctionPtr> choose_candidate(const RawExpression& call,
                                             std::vector<ScalarFunctionPtr> candidates,
                                             const Receiver& receiver, const std::string& shown);
  /// mask_inner or mask_outer.
  Result<ScalarFunctionPtr> resolve_mask(const RawExpression& call);
  /// Errors: kInvalid when argument `i` does not fit.
  Result<void> check_argument(const RawExpression& call, const ScalarFunction& function, size_t i);
  bool has_cells_in_tuple(const RawExpression& raw);
  /// The first argument of a function that takes anything, `type` once it is known. Errors:
  /// kInvalid, a tuple in it has a field that is a column of many cells.
  Result<void> check_fields(const RawExpression& argument, std::string_view function,
                            const TypePtr& type);
  /// Of min and max. Errors: kInvalid when the argument does not tell its type.
  Result<void> check_aggregated(const RawExpression& raw);
  Result<ScalarFunctionPtr> token_function() const;
  /// Of an item of a literal, once it has been built: inner literals tell first.
  Result<void> check_no_markers(const RawExpression& item, std::string_view what,
                                const Receiver& receiver) const;
  std::string name_of(const RawExpression& call) const;
  bool is_descending(const RawExpression& raw) const;
  /// kInvalid, of a check that Cassandra makes after those of WHERE.
  template <class... Arguments>
  std::unexpected<Error> late(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    failed_late_ = true;
    return fail(ErrorCode::kInvalid, text, std::forward<Arguments>(arguments)...);
  }
  /// Whether a literal in braces can be a value of a user type: its keys are names.
  bool is_field_udt(const RawExpression& raw) const;

  const PrepareContext& context_;
  const TableSchema& table_;
  BindMarkers& markers_;
  bool in_selection_ = false;
  bool inside_aggregate_ = false;
  bool failed_late_ = false;
  std::optional<Error> misplaced_list_;  // what test() met
  std::vector<const ast::Selector*> plain_casts_;
  std::vector<const ColumnSchema*> slots_;
  std::vector<int32_t> slot_of_column_;  // by index in columns(); -1: none
  bool selects_columns_ = false;
  std::vector<AggregateCall> aggregates_;
  std::vector<SelectedKey> selected_keys_;
  UsedFunctions used_functions_;
  std::map<const ast::FunctionName*, std::string> full_names_;  // of the user-defined ones called
};

}  // namespace tetrad::cql
