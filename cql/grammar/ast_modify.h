// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE, BATCH, TRUNCATE and USE.
//
// UPDATE and DELETE share relations with SELECT (ast_select.h): whether they name the whole primary
// key is checked when the statement is prepared, not here.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "cql/grammar/ast_select.h"

namespace tetrad::cql::ast {

/// USING …: integers, a duration or bind markers.
/// Their order does not matter, and of one that is written twice the last counts. INSERT has them
/// behind its values, UPDATE and BATCH in front. Timestamps are microseconds since 1970, a TTL is
/// seconds, 0: the value does not expire.
struct Attributes {
  std::optional<Term> timestamp;
  std::optional<Term> ttl;
  std::optional<Term> timeout;  // as ScyllaDB has it
};

/// INSERT INTO table (columns) VALUES (values).
/// An INSERT also writes the row's marker, so that the row stays when all its values are deleted;
/// an UPDATE does not.
struct Insert {
  Position position;
  QualifiedName table;
  std::vector<Identifier> columns;
  std::vector<Term> values;  // as many as were written; the number is checked by who prepares
  bool if_not_exists = false;
  Attributes attributes;
};

/// INSERT INTO table JSON value.
/// The names and values of the columns are in the JSON object, which may be bound: so they are
/// known only when the statement runs.
struct InsertJson {
  Position position;
  QualifiedName table;
  Term value;                  // a string literal or a bind marker
  bool default_unset = false;  // DEFAULT UNSET; otherwise absent columns become null
  bool if_not_exists = false;
  Attributes attributes;
};

/// One item of UPDATE … SET.
/// `key` is set for kElement, `field` for kField. Columns of the primary key are refused when the
/// statement is prepared.
struct Assignment {
  /// Which operator was written; which of them the column's type allows is checked when the
  /// statement is prepared.
  enum class Kind : uint8_t {
    // `value` is the term without the column. Which side the column stands on matters for lists:
    // kAdd appends, kPrepend puts in front; for counters, sets and maps only kAdd and kSubtract
    // make sense.
    kSet,       // column = value
    kAdd,       // column = column + value, column += value
    kPrepend,   // column = value + column
    kSubtract,  // column = column - value, column -= value
    kElement,   // column[key] = value
    kField,     // column.field = value
  };
  Kind kind = Kind::kSet;
  Identifier column;
  std::optional<Term> key;
  std::optional<Identifier> field;
  Term value;
};

/// One condition of IF: on a column, on column[element] or on column.field.
/// At most one of `element` and `field` is set. All conditions of a statement must hold, on the row
/// as it is before the statement: then it is applied, otherwise the answer has the values that it
/// met.
struct Condition {
  Identifier column;
  std::optional<Term> element;
  std::optional<Identifier> field;
  RelationOperator op = RelationOperator::kEqual;
  bool in_marker = false;    // as in Relation
  std::vector<Term> values;  // as in Relation
};

/// UPDATE table SET … WHERE … [IF …].
/// An assignment to a row that is not there makes one (upsert), unless IF says otherwise. At least
/// one assignment; if_exists and conditions exclude each other.
struct Update {
  Position position;
  QualifiedName table;
  Attributes attributes;
  std::vector<Assignment> assignments;
  std::vector<Relation> where;
  bool if_exists = false;
  std::vector<Condition> conditions;
};

/// What a DELETE with a list takes away: a column, column[element] or column.field.
/// An element of a list is named by its index, one of a set by itself, one of a map by its key.
struct Deletion {
  Identifier column;
  std::optional<Term> element;
  std::optional<Identifier> field;
};

/// DELETE … FROM table WHERE … [IF …].
/// WHERE may name a partition, a range of clustering keys or one row; each becomes another kind of
/// tombstone (storage/row).
struct Delete {
  Position position;
  QualifiedName table;
  std::vector<Deletion> deletions;  // none: whole rows
  Attributes attributes;            // no TTL
  std::vector<Relation> where;
  bool if_exists = false;
  std::vector<Condition> conditions;
};

// What a batch may hold: no SELECT, no nested batch, no schema.
using Modification = std::variant<Insert, InsertJson, Update, Delete>;

/// BEGIN [UNLOGGED | COUNTER] BATCH … APPLY BATCH.
struct Batch {
  /// BEGIN BATCH is logged.
  /// A logged batch takes effect as a whole, sooner or later, also over partitions; an unlogged one
  /// over partitions may stop half way. Counters need kCounter: their updates cannot be repeated.
  enum class Type : uint8_t { kLogged, kUnlogged, kCounter };
  Position position;
  Type type = Type::kLogged;
  Attributes attributes;
  // In the order written, which decides nothing: all get one timestamp unless they name their own.
  std::vector<Modification> statements;  // may be empty
};

/// TRUNCATE [TABLE] table.
struct Truncate {
  Position position;
  QualifiedName table;
};

/// USE keyspace.
struct Use {
  Position position;
  Identifier keyspace;
};

}  // namespace tetrad::cql::ast
