// SPDX-License-Identifier: Apache-2.0
// One relation of WHERE by itself: columns are found, operators checked against types, values made
// expressions. What relations mean together is decided in restrictions.cc. Each check has
// Cassandra's text and stands where Cassandra makes it, which decides between two errors of one
// statement.
#include "cql/prepare/relation_reader.h"

#include <algorithm>
#include <utility>

#include "cql/grammar/ast_print.h"
#include "cql/types/keyword.h"

namespace tetrad::cql {

namespace {

using Op = ast::RelationOperator;

/// The operators that become a Restriction of kind kSlice.
bool is_slice(Op op) {
  return op == Op::kLess || op == Op::kLessOrEqual || op == Op::kGreater ||
         op == Op::kGreaterOrEqual || op == Op::kBetween;
}

/// Reads the relations of one statement, one after the other; each gives one Restriction.
class RelationReader {
 public:
  RelationReader(ExpressionBuilder& expressions, WhereOf of) : expressions_(expressions), of_(of) {}

  Result<RestrictionPtr> read(const ast::Relation& relation) {
    TETRAD_TRY_VOID(check_operator(relation));
    switch (relation.target) {
      case ast::Relation::Target::kToken:
        return token(relation);
      case ast::Relation::Target::kTuple:
        return several_columns(relation);
      case ast::Relation::Target::kElement:
        return map_entry(relation);
      case ast::Relation::Target::kColumn:
        return single_column(relation);
      case ast::Relation::Target::kChangeFeed:
        return change_feed(relation);
      case ast::Relation::Target::kCustomIndex:
        break;
    }
    return custom_index(relation);
  }

 private:
  // Before columns are looked up: an unknown column with != is reported as the operator's error.
  Result<void> check_operator(const ast::Relation& relation) const {
    switch (relation.op) {
      case Op::kNotEqual:
        return fail(ErrorCode::kInvalid, "Unsupported \"!=\" relation: {}",
                    ast::to_string(relation));
      case Op::kContains:
      case Op::kContainsKey:
      case Op::kNotIn:
      case Op::kNotContains:
      case Op::kNotContainsKey:
        if (of_ == WhereOf::kSelect || of_ == WhereOf::kView) return {};
        return fail(ErrorCode::kInvalid, "Cannot use {} with {}", statement_name(of_),
                    ast::relation_operator_name(relation.op));
      default:
        return {};
    }
  }

  /// expr(index, value): for index classes that read their own expressions. Tetrad has none, so
  /// every use is an error.
  std::unexpected<Error> custom_index(const ast::Relation& relation) const {
    if (of_ != WhereOf::kSelect) {
      return fail(ErrorCode::kInvalid,
                  "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE "
                  "statements");
    }
    const TableSchema& table = expressions_.table();
    const std::string& name = relation.index->name.text;
    const auto index = std::ranges::find(table.indexes, name, &IndexSchema::name);
    if (index == table.indexes.end()) {
      return fail(
          ErrorCode::kInvalid, "Invalid index expression, index {} not found for {}", name,
          fmt::format("{}.{}", quote_identifier(table.keyspace), quote_identifier(table.name)));
    }
    if (index->index_class == IndexClass::kLegacy) {
      return fail(ErrorCode::kInvalid,
                  "Only CUSTOM indexes may be used in custom index expressions, {} is not valid",
                  name);
    }
    return fail(ErrorCode::kInvalid, "Index {} does not support custom expressions", name);
  }

  // --- single columns ---

  // The order of these tests is Cassandra's: durations, CONTAINS, then columns of many cells.
  Result<void> check_column(const ColumnSchema& column, const ast::Relation& relation) const {
    const DataType& type = *column.type;
    if (is_slice(relation.op) && type.references_duration()) {
      if (type.is_collection()) {
        return fail(ErrorCode::kInvalid,
                    "Slice restrictions are not supported on collections containing durations");
      }
      if (type.kind() == TypeKind::kTuple) {
        return fail(ErrorCode::kInvalid,
                    "Slice restrictions are not supported on tuples containing durations");
      }
      if (type.kind() == TypeKind::kUdt) {
        return fail(ErrorCode::kInvalid,
                    "Slice restrictions are not supported on UDTs containing durations");
      }
      return fail(ErrorCode::kInvalid, "Slice restrictions are not supported on duration columns");
    }
    // To Cassandra the type of a descending column is no collection.
    const std::string& name = column.name;
    const bool contains = relation.op == Op::kContains || relation.op == Op::kNotContains;
    const bool contains_key = relation.op == Op::kContainsKey || relation.op == Op::kNotContainsKey;
    if (contains && (column.descending || !type.is_collection())) {
      return fail(ErrorCode::kInvalid, "Cannot use {} on non-collection column {}",
                  ast::relation_operator_name(relation.op), name);
    }
    if (contains_key && (column.descending || type.kind() != TypeKind::kMap)) {
      return fail(ErrorCode::kInvalid, "Cannot use {} on non-map column {}",
                  ast::relation_operator_name(relation.op), name);
    }
    if (type.is_multi_cell()) {
      if (type.kind() == TypeKind::kUdt) {
        return fail(ErrorCode::kInvalid,
                    "Non-frozen UDT column '{}' ({}) cannot be restricted by any relation", name,
                    type.cql_text());
      }
      if (!contains && !contains_key) {
        return fail(ErrorCode::kInvalid,
                    "Collection column '{}' ({}) cannot be restricted by a '{}' relation", name,
                    type.cql_text(), ast::relation_operator_name(relation.op));
      }
    }
    return {};
  }

  // The kind of the restriction decides which of its members are set (restrictions.h).
  Result<RestrictionPtr> single_column(const ast::Relation& relation) {
    TETRAD_TRY(const ColumnSchema* column, expressions_.column(relation.columns[0]));
    TETRAD_TRY_VOID(check_column(*column, relation));
    auto restriction = std::make_unique<Restriction>();
    restriction->columns = {column};
    const Receiver receiver = Receiver::of(*column);
    switch (relation.op) {
      case Op::kEqual: {
        restriction->kind = Restriction::Kind::kEqual;
        TETRAD_TRY(TupleTerm term, single(relation.values[0], receiver));
        restriction->equal = std::move(term);
        break;
      }
      case Op::kNotIn:
      case Op::kIn:
        TETRAD_TRY_VOID(read_in(*restriction, relation, receiver));
        break;
      // CONTAINS of several relations on one column is merged later, so values are lists.
      case Op::kNotContains:
      case Op::kContains: {
        restriction->kind = relation.op == Op::kContains ? Restriction::Kind::kContains
                                                         : Restriction::Kind::kNotContains;
        const TypePtr& type = column->type;
        const Receiver value{"value(" + column->name + ")",
                             type->kind() == TypeKind::kMap ? type->value() : type->element(),
                             nullptr};
        TETRAD_TRY(ExpressionPtr term, expressions_.term(relation.values[0], value));
        restriction->contains.push_back(std::move(term));
        break;
      }
      case Op::kNotContainsKey:
      case Op::kContainsKey: {
        restriction->kind = relation.op == Op::kContainsKey ? Restriction::Kind::kContains
                                                            : Restriction::Kind::kNotContains;
        const Receiver key{"key(" + column->name + ")", column->type->key(), nullptr};
        TETRAD_TRY(ExpressionPtr term, expressions_.term(relation.values[0], key));
        restriction->contains_key.push_back(std::move(term));
        break;
      }
      case Op::kIsNotNull:
        return fail(ErrorCode::kInvalid, "Unsupported restriction: {}", ast::to_string(relation));
      case Op::kLike: {
        restriction->kind = Restriction::Kind::kLike;
        TETRAD_TRY(restriction->equal, single(relation.values[0], receiver));
        // Only SASI answers LIKE; without an index it cannot even be filtered, as in Cassandra.
        if (of_ == WhereOf::kSelect && has_index(expressions_.table(), *restriction)) break;
        return fail(ErrorCode::kInvalid,
                    "LIKE restriction is only supported on properly indexed columns. {} is not "
                    "valid.",
                    ast::to_string(relation));
      }
      default: {
        restriction->kind = Restriction::Kind::kSlice;
        TETRAD_TRY_VOID(add_bounds(*restriction, relation, [&](const ast::Term& value) {
          return single(value, receiver);
        }));
        break;
      }
    }
    return restriction;
  }

  /// IN or NOT IN of one column: a list, or a marker that stands for one.
  Result<void> read_in(Restriction& restriction, const ast::Relation& relation,
                       const Receiver& receiver) {
    const bool negated = relation.op == Op::kNotIn;
    restriction.kind = negated ? Restriction::Kind::kNotIn : Restriction::Kind::kIn;
    if (relation.in_marker) {
      // Drivers see the name of this marker in the metadata of PREPARED.
      const Receiver list{"in(" + restriction.first().name + ")",
                          make_list(freeze(restriction.first().type), true), nullptr};
      TETRAD_TRY(restriction.in_list, expressions_.term(relation.values[0], list));
      return {};
    }
    if (relation.values.size() == 1 && !negated) {  // as Cassandra: the same as an equality
      restriction.kind = Restriction::Kind::kEqual;
      TETRAD_TRY(restriction.equal, single(relation.values[0], receiver));
      return {};
    }
    for (const ast::Term& value : relation.values) {
      TETRAD_TRY(TupleTerm term, single(value, receiver));
      restriction.in_values.push_back(std::move(term));
    }
    return {};
  }

  /// A value for one column, as a tuple of one.
  Result<TupleTerm> single(const ast::Term& value, const Receiver& receiver) {
    TupleTerm term;
    TETRAD_TRY(ExpressionPtr item, expressions_.term(value, receiver));
    term.items.push_back(std::move(item));
    return term;
  }

  // BETWEEN is both bounds at once, and both are inclusive.
  template <class MakeTerm>
  Result<void> add_bounds(Restriction& restriction, const ast::Relation& relation, MakeTerm make) {
    const auto set = [&](std::optional<Restriction::Bound>& bound, const ast::Term& value,
                         bool inclusive) -> Result<void> {
      TETRAD_TRY(TupleTerm term, make(value));
      bound.emplace();
      bound->value = std::move(term);
      bound->inclusive = inclusive;
      bound->column_count = restriction.columns.size();
      return {};
    };
    switch (relation.op) {
      case Op::kGreater:
        return set(restriction.lower, relation.values[0], false);
      case Op::kGreaterOrEqual:
        return set(restriction.lower, relation.values[0], true);
      case Op::kLess:
        return set(restriction.upper, relation.values[0], false);
      case Op::kLessOrEqual:
        return set(restriction.upper, relation.values[0], true);
      case Op::kBetween:
        TETRAD_TRY_VOID(set(restriction.lower, relation.values[0], true));
        return set(restriction.upper, relation.values[1], true);
      default:
        return fail(ErrorCode::kInvalid, "Unsupported restriction: {}", ast::to_string(relation));
    }
  }

  // m[k] = v. Kept as a condition on elements: CONTAINS and entries of one column are tested
  // together.
  Result<RestrictionPtr> map_entry(const ast::Relation& relation) {
    TETRAD_TRY(const ColumnSchema* column, expressions_.column(relation.columns[0]));
    const TypePtr& type = column->type;
    if (type->kind() == TypeKind::kList) {
      return fail(ErrorCode::kInvalid,
                  "Indexes on list entries ({}[index] = value) are not currently supported.",
                  column->name);
    }
    if (type->kind() != TypeKind::kMap) {
      return fail(ErrorCode::kInvalid, "Column {} cannot be used as a map", column->name);
    }
    if (!type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid,
                  "Map-entry equality predicates on frozen map column {} are not supported",
                  column->name);
    }
    if (relation.op != Op::kEqual) {
      return fail(ErrorCode::kInvalid, "Only EQ relations are supported on map entries");
    }
    auto restriction = std::make_unique<Restriction>();
    restriction->kind = Restriction::Kind::kContains;
    restriction->columns = {column};
    TETRAD_TRY(ExpressionPtr key, expressions_.term(*relation.element, {"key(" + column->name + ")",
                                                                        type->key(), nullptr}));
    TETRAD_TRY(ExpressionPtr value,
               expressions_.term(relation.values[0],
                                 {"value(" + column->name + ")", type->value(), nullptr}));
    // One pair; merge() of restrictions.cc puts the pairs of several relations together.
    restriction->entries.emplace_back(std::move(key), std::move(value));
    return restriction;
  }

  // --- several clustering columns ---

  /// Errors: kInvalid, a column is no clustering column, is repeated or does not follow the one
  /// before.
  Result<std::vector<const ColumnSchema*>> consecutive_columns(const ast::Relation& relation) {
    std::vector<const ColumnSchema*> columns;
    const ColumnSchema* previous = nullptr;
    for (const ast::Identifier& name : relation.columns) {
      TETRAD_TRY(const ColumnSchema* column, expressions_.column(name));
      if (column->kind != ColumnKind::kClustering) {
        return fail(ErrorCode::kInvalid,
                    "Multi-column relations can only be applied to clustering columns but was "
                    "applied to: {}",
                    column->name);
      }
      if (std::ranges::find(columns, column) != columns.end()) {
        return fail(ErrorCode::kInvalid, "Column \"{}\" appeared twice in a relation: {}",
                    column->name, ast::to_string(relation));
      }
      if (previous != nullptr && column->position != previous->position + 1) {
        return fail(ErrorCode::kInvalid,
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column "
                    "relations: {}",
                    ast::to_string(relation));
      }
      previous = column;
      columns.push_back(column);
    }
    return columns;
  }

  // (a, b) op (x, y): consecutive clustering columns from any of them on. A value is a tuple
  // literal, item by item, or one term for the whole tuple, such as a marker.
  Result<RestrictionPtr> several_columns(const ast::Relation& relation) {
    auto restriction = std::make_unique<Restriction>();
    restriction->is_multi = true;
    TETRAD_TRY(restriction->columns, consecutive_columns(relation));
    const auto& columns = restriction->columns;
    // The name of a marker for the whole tuple: "(a,b)", and "in(a,b)" of a list of tuples.
    const std::string names = "(" + join_names(columns, ",") + ")";
    std::vector<TypePtr> types;
    for (const ColumnSchema* column : columns) types.push_back(column->type);
    const auto make = [&](const ast::Term& value) -> Result<TupleTerm> {
      TupleTerm term;
      if (const auto* tuple = value.get_if<ast::TupleTerm>()) {
        if (tuple->items.size() != columns.size()) {
          return fail(ErrorCode::kInvalid, "Expected {} elements in value tuple, but got {}: {}",
                      columns.size(), tuple->items.size(), ast::to_string(value));
        }
        for (size_t i = 0; i < columns.size(); ++i) {
          TETRAD_TRY(ExpressionPtr item,
                     expressions_.term(tuple->items[i], Receiver::of(*columns[i])));
          term.items.push_back(std::move(item));
        }
        return term;
      }
      TETRAD_TRY(term.whole, expressions_.term(value, {names, make_tuple(types), nullptr}));
      return term;
    };
    switch (relation.op) {
      case Op::kEqual: {
        restriction->kind = Restriction::Kind::kEqual;
        TETRAD_TRY(restriction->equal, make(relation.values[0]));
        break;
      }
      case Op::kNotIn:
      case Op::kIn:
        restriction->kind =
            relation.op == Op::kIn ? Restriction::Kind::kIn : Restriction::Kind::kNotIn;
        if (relation.in_marker) {
          TETRAD_TRY(
              restriction->in_list,
              expressions_.term(relation.values[0],
                                {"in" + names, make_list(make_tuple(types), true), nullptr}));
          break;
        }
        if (relation.values.size() == 1 && relation.op == Op::kIn) {
          restriction->kind = Restriction::Kind::kEqual;
          TETRAD_TRY(restriction->equal, make(relation.values[0]));
          break;
        }
        for (const ast::Term& value : relation.values) {
          TETRAD_TRY(TupleTerm term, make(value));
          restriction->in_values.push_back(std::move(term));
        }
        break;
      default:
        if (!is_slice(relation.op)) {
          return fail(ErrorCode::kInvalid, "{} cannot be used for multi-column relations",
                      ast::relation_operator_name(relation.op));
        }
        restriction->kind = Restriction::Kind::kSlice;
        TETRAD_TRY_VOID(add_bounds(*restriction, relation, make));
        break;
    }
    return restriction;
  }

  // --- token ---

  // token(...) must have exactly the columns of the partition key in their order: the token of
  // anything else is of no row.
  Result<RestrictionPtr> token(const ast::Relation& relation) {
    // Three errors in turn: too many columns, not all of them, another order.
    std::vector<const ColumnSchema*> key;
    for (const ColumnSchema& column : expressions_.table().partition_key()) key.push_back(&column);
    std::vector<const ColumnSchema*> columns;
    for (const ast::Identifier& name : relation.columns) {
      TETRAD_TRY(const ColumnSchema* column, expressions_.column(name));
      columns.push_back(column);
    }
    if (columns.size() > key.size()) {
      return fail(ErrorCode::kInvalid,
                  "The token() function must contains only partition key components");
    }
    const bool all_keys =
        columns.size() == key.size() && std::ranges::all_of(key, [&](const ColumnSchema* column) {
          return std::ranges::find(columns, column) != columns.end();
        });
    if (!all_keys) {
      return fail(ErrorCode::kInvalid,
                  "The token() function must be applied to all partition key components or none "
                  "of them");
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] != key[i]) {
        return fail(ErrorCode::kInvalid,
                    "The token function arguments must be in the partition key order: {}",
                    join_names(key, ", "));
      }
    }
    auto restriction = std::make_unique<Restriction>();
    restriction->columns = columns;
    // The marker's name in the metadata of PREPARED, as in Cassandra.
    const Receiver receiver{"partition key token", bigint_type(), nullptr};
    const auto make = [&](const ast::Term& value) { return single(value, receiver); };
    if (relation.op == Op::kEqual) {
      restriction->kind = Restriction::Kind::kEqual;
      TETRAD_TRY(restriction->equal, make(relation.values[0]));
    } else if (is_slice(relation.op)) {
      restriction->kind = Restriction::Kind::kSlice;
      TETRAD_TRY_VOID(add_bounds(*restriction, relation, make));
    } else {
      return fail(ErrorCode::kInvalid, "{} cannot be used with the token function",
                  ast::relation_operator_name(relation.op));
    }
    return restriction;
  }

  // --- the change feed ---

  // COSMOS_CHANGEFEED_START_TIME() = t has no column; Restrictions::Builder keeps its value apart.
  Result<RestrictionPtr> change_feed(const ast::Relation& relation) {
    if (of_ != WhereOf::kSelect) {
      return fail(ErrorCode::kInvalid, "{}() cannot be used in WHERE clauses for {} statements",
                  kChangeFeedFunction, statement_name(of_));
    }
    if (relation.op != Op::kEqual) {
      return fail(ErrorCode::kInvalid, "{}() can only be restricted by =: {}", kChangeFeedFunction,
                  ast::to_string(relation));
    }
    auto restriction = std::make_unique<Restriction>();
    TETRAD_TRY(restriction->equal, single(relation.values[0], {std::string(kChangeFeedMarker),
                                                               timestamp_type(), nullptr}));
    return restriction;
  }

  ExpressionBuilder& expressions_;
  const WhereOf of_;
};

}  // namespace

Result<RestrictionPtr> read_relation(const ast::Relation& relation, ExpressionBuilder& expressions,
                                     WhereOf of) {
  return RelationReader(expressions, of).read(relation);
}

// Nobody asks for SELECT: the texts that name the statement refuse a modification.
std::string_view statement_name(WhereOf of) {
  if (of == WhereOf::kView) return "CREATE MATERIALIZED VIEW";
  return of == WhereOf::kUpdate ? "UPDATE" : "DELETE";
}

std::string join_names(std::span<const ColumnSchema* const> columns, std::string_view between) {
  std::string text;
  for (const ColumnSchema* column : columns) {
    if (!text.empty()) text += between;
    text += column->name;
  }
  return text;
}

}  // namespace tetrad::cql
