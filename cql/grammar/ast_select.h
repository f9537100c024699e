// SPDX-License-Identifier: Apache-2.0
// SELECT: selectors, relations (shared with UPDATE, DELETE and views), ordering, limits.
//
// Selectors are the expressions of a select list and of GROUP BY, which may name columns; terms
// (ast_terms.h) are those of WHERE and of values, which may not. They have nodes of their own
// because Cassandra's grammar keeps them apart: some forms are allowed in one and refused in the
// other.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/grammar/ast_terms.h"

namespace tetrad::cql::ast {

struct Selector;

/// The value of a column.
/// Whether the name is a column of the table is known when the statement is prepared.
struct ColumnSelector {
  Identifier name;
};
/// A literal or a bind marker.
struct TermSelector {
  Term term;
};
/// count(*) or count(1).
struct CountRowsSelector {};
/// WRITETIME(x), MAXWRITETIME(x) or TTL(x): not the value, but what is stored with it.
/// Microseconds for the first two, seconds left for TTL; null where the column has no value. A
/// collection has one of each element, and MAXWRITETIME is the largest of them.
struct WriteTimeSelector {
  /// Which of the three functions.
  enum class Kind : uint8_t { kWriteTime, kMaxWriteTime, kTtl };
  Kind kind;
  Box<Selector> target;  // a column, or an element, a slice or a field of a column
};
/// f(a, b), a scalar function or an aggregate.
/// Of which overload is decided by the types of the arguments (prepare/function_resolution.cc).
struct FunctionSelector {
  Box<FunctionName> name;
  std::vector<Selector> arguments;
};
/// CAST(x AS type); the type is native.
/// CAST converts the value, other than a TypeHintSelector.
struct CastSelector {
  Box<Selector> argument;
  Box<CqlType> type;
};
/// x.field of a user type.
struct FieldSelector {
  Box<Selector> source;
  Identifier field;
};
/// x[key] of a map, a set or a vector.
struct ElementSelector {
  Box<Selector> source;
  Term key;
};
/// x[lower..upper]; each end may be absent.
/// Both ends belong to the slice. Of maps and sets only, by their keys.
struct SliceSelector {
  Box<Selector> source;
  std::optional<Term> lower, upper;
};
/// (a, b); of one item: parentheses around an expression or a tuple of one.
struct TupleSelector {
  std::vector<Selector> items;
};
/// [a, b]: a list or a vector.
struct ListSelector {
  std::vector<Selector> items;
};
/// {a, b}; without items: an empty set or map.
struct SetSelector {
  std::vector<Selector> items;
};
/// {a: b}: a map, or a user type when every key is a ColumnSelector that names a field.
struct MapSelector {
  std::vector<std::pair<Selector, Selector>> entries;
};
/// (type) x: x is of that type; no conversion.
/// Needed where a marker or a literal alone does not say which overload is meant.
struct TypeHintSelector {
  Box<CqlType> type;
  Box<Selector> argument;
};
/// left op right, grouped by precedence.
struct ArithmeticSelector {
  ArithmeticOperator op;
  Box<Selector> left, right;
};
/// -x.
struct NegationSelector {
  Box<Selector> argument;
};

// A variant of boxes and small values, not a class hierarchy: visitors are checked for completeness
// by the compiler, and trees can be copied.
using SelectorVariant =
    std::variant<ColumnSelector, TermSelector, CountRowsSelector, WriteTimeSelector,
                 FunctionSelector, CastSelector, FieldSelector, ElementSelector, SliceSelector,
                 TupleSelector, ListSelector, SetSelector, MapSelector, TypeHintSelector,
                 ArithmeticSelector, NegationSelector>;

/// One expression of a select list or of GROUP BY, with the place where it begins.
struct Selector {
  SelectorVariant node;
  Position position;

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&node);
  }
};

/// One item of a select list.
/// The alias names the column of the answer, but cannot be used in WHERE or ORDER BY.
struct SelectItem {
  Selector selector;
  std::optional<Identifier> alias;
};

/// The operator of a relation or a condition.
enum class RelationOperator : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
  kContains,
  kContainsKey,
  kNotContains,
  kNotContainsKey,
  kBetween,
  kLike,
  kIsNotNull,
  kCustomIndex,  // expr(index, value)
};
/// "=", "IN", "CONTAINS KEY" …: as Cassandra prints it.
std::string_view relation_operator_name(RelationOperator op);

/// One condition of WHERE.
/// Relations of a WHERE are joined by AND; CQL has no OR. Which members are set follows from
/// `target` and `op`.
struct Relation {
  /// What stands on the left of the operator.
  enum class Target : uint8_t {
    kColumn,       // columns[0]
    kElement,      // columns[0] [element]
    kTuple,        // (columns…)
    kToken,        // token(columns…)
    kCustomIndex,  // expr(index, …)
    kChangeFeed,   // COSMOS_CHANGEFEED_START_TIME()
  };
  Target target = Target::kColumn;
  RelationOperator op = RelationOperator::kEqual;
  /// IN and NOT IN: `IN ?` has in_marker set and values[0] is that marker; `IN (…)` has the items
  /// as values.
  bool in_marker = false;
  std::vector<Identifier> columns;
  std::optional<Term> element;
  std::optional<QualifiedName> index;
  /// One value; two for BETWEEN; any number for IN (…); none for IS NOT NULL.
  std::vector<Term> values;
  Position position;
};

/// One item of ORDER BY.
/// At most one item may have ann_of, which orders rows by their vector's distance to the term and
/// needs an index on the column.
struct Ordering {
  Identifier column;
  bool descending = false;
  std::optional<Term> ann_of;  // ORDER BY column ANN OF term
};

/// SELECT, without what only its rows and the schema can say.
/// Clauses may be written in Cassandra's order only; the members follow it.
struct Select {
  Position position;
  bool json = false;
  bool distinct = false;
  std::vector<SelectItem> items;  // none: *
  QualifiedName from;
  std::vector<Relation> where;
  std::vector<Selector> group_by;  // columns or functions over a column
  std::vector<Ordering> order_by;
  // Rows of each partition, and of the whole answer over all its pages; 0 or less is refused when
  // they are bound.
  std::optional<Term> per_partition_limit;  // an integer or a bind marker
  std::optional<Term> limit;
  bool allow_filtering = false;
  std::optional<Term> timeout;  // USING TIMEOUT: a duration or a bind marker
};

/// EXPLAIN SELECT ...: how the SELECT would be run. Tetrad's own.
/// Its answer is rows of text about the plan; nothing is read.
struct Explain {
  Select select;
};

}  // namespace tetrad::cql::ast
