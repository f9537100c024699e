// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE, BATCH, TRUNCATE and USE.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "cql/grammar/ast_select.h"

namespace tetrad::cql::ast {

/// USING …: integers, a duration or bind markers.
struct Attributes {
  std::optional<Term> timestamp;
  std::optional<Term> ttl;
  std::optional<Term> timeout;  // as ScyllaDB has it
};

/// INSERT INTO table (columns) VALUES (values).
struct Insert {
  Position position;
  QualifiedName table;
  std::vector<Identifier> columns;
  std::vector<Term> values;  // as many as were written; the number is checked by who prepares
  bool if_not_exists = false;
  Attributes attributes;
};

/// INSERT INTO table JSON value.
struct InsertJson {
  Position position;
  QualifiedName table;
  Term value;                  // a string literal or a bind marker
  bool default_unset = false;  // DEFAULT UNSET; otherwise absent columns become null
  bool if_not_exists = false;
  Attributes attributes;
};

/// One item of UPDATE … SET.
struct Assignment {
  /// Which operator was written; which of them the column's type allows is checked when the
  /// statement is prepared.
  enum class Kind : uint8_t {
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
struct Condition {
  Identifier column;
  std::optional<Term> element;
  std::optional<Identifier> field;
  RelationOperator op = RelationOperator::kEqual;
  bool in_marker = false;    // as in Relation
  std::vector<Term> values;  // as in Relation
};

/// UPDATE table SET … WHERE … [IF …].
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
struct Deletion {
  Identifier column;
  std::optional<Term> element;
  std::optional<Identifier> field;
};

/// DELETE … FROM table WHERE … [IF …].
struct Delete {
  Position position;
  QualifiedName table;
  std::vector<Deletion> deletions;  // none: whole rows
  Attributes attributes;            // no TTL
  std::vector<Relation> where;
  bool if_exists = false;
  std::vector<Condition> conditions;
};

using Modification = std::variant<Insert, InsertJson, Update, Delete>;

/// BEGIN [UNLOGGED | COUNTER] BATCH … APPLY BATCH.
struct Batch {
  /// BEGIN BATCH is logged.
  enum class Type : uint8_t { kLogged, kUnlogged, kCounter };
  Position position;
  Type type = Type::kLogged;
  Attributes attributes;
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
