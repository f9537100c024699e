// SPDX-License-Identifier: Apache-2.0
// Statements that change the schema: keyspaces, tables, types, indexes, views, functions, triggers.
//
// Names of options, their values and whether they fit together are checked by cql/prepare
// (table_properties.h, schema_plan.h); here a property is a name and a constant. Statements that
// name an object without a keyspace mean the one in use.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/grammar/ast_select.h"

namespace tetrad::cql::ast {

/// The value of `name = value`: a constant (a bare keyword counts as a string) or a map of
/// constants.
struct PropertyValue {
  using Map = std::vector<std::pair<Literal, Literal>>;
  std::variant<Literal, Map> value;
  Position position;
};

/// The options after WITH, in the order written; names are distinct.
/// Whether a name is known depends on the statement. Names are compared in lower case unless they
/// were quoted.
struct Property {
  Identifier name;
  PropertyValue value;
};
using Properties = std::vector<Property>;

/// CREATE KEYSPACE name WITH properties.
/// Its property `replication` is a map with the class and the factor of each data centre.
struct CreateKeyspace {
  Position position;
  Identifier name;
  bool if_not_exists = false;
  Properties properties;
};

/// ALTER KEYSPACE name WITH properties; what is not written stays.
struct AlterKeyspace {
  Position position;
  Identifier name;
  bool if_exists = false;
  Properties properties;
};

/// DROP KEYSPACE name.
struct DropKeyspace {
  Position position;
  Identifier name;
  bool if_exists = false;
};

/// MASKED WITH DEFAULT, or MASKED WITH function(arguments).
/// The column itself is the function's first argument and is not written; `arguments` are those
/// behind it. MASKED WITH DEFAULT means mask_default().
struct ColumnMask {
  bool is_default = false;
  FunctionName function;
  std::vector<Term> arguments;
  Position position;
};

/// A column of CREATE TABLE or ALTER TABLE … ADD. Whether it is part of the key stands in
/// PrimaryKey.
/// A type of ALTER TABLE … ADD may name a user type that does not exist: preparing notices.
struct ColumnDefinition {
  Identifier name;
  CqlType type;
  bool is_static = false;
  std::optional<ColumnMask> mask;
};

/// PRIMARY KEY ((a, b), c): partition {a, b}, clustering {c}. Behind a column: partition {that
/// column}.
/// Order counts in both: that of the partition columns in the key's bytes, that of the clustering
/// columns in how rows of a partition are sorted.
struct PrimaryKey {
  std::vector<Identifier> partition;
  std::vector<Identifier> clustering;
  Position position;
};

/// One item of CLUSTERING ORDER BY.
/// The orders must name the clustering columns from the first one on, without a gap; checked when
/// the statement is prepared.
struct ClusteringOrder {
  Identifier column;
  bool descending = false;
};

/// What stands behind WITH of a table or a view. Clustering orders pile up when written twice.
/// `properties` may name the table's own id: `id = <uuid>`.
struct TableOptions {
  bool compact_storage = false;
  std::vector<ClusteringOrder> clustering_order;
  Properties properties;  // also id = …
};

/// CREATE TABLE name (columns, PRIMARY KEY (…)) WITH options.
/// Columns are in the order written; a schema sorts its own (TableSchema::columns()).
struct CreateTable {
  Position position;
  QualifiedName name;
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;
  std::vector<PrimaryKey> primary_keys;  // exactly one in a statement that makes sense
  TableOptions options;
};

/// ALTER TABLE … ADD.
struct AddColumns {
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;
};
/// ALTER TABLE … DROP.
/// `timestamp` is in microseconds since 1970; without one the time of the statement counts.
struct DropColumns {
  bool if_exists = false;
  std::vector<Identifier> columns;
  std::optional<Term> timestamp;  // an integer, USING TIMESTAMP
};
/// ALTER TABLE … RENAME old TO new AND …: pairs of the old and the new name.
/// Only columns of the primary key can be renamed, which is checked when the statement is prepared.
struct RenameColumns {
  bool if_exists = false;
  std::vector<std::pair<Identifier, Identifier>> renames;
};
/// ALTER TABLE … ALTER column TYPE type, which Cassandra parses and then refuses.
struct AlterColumnType {
  bool if_exists = false;
  Identifier column;
  CqlType type;
};
/// ALTER TABLE … ALTER column MASKED WITH …, or DROP MASKED.
/// The values on disk do not change: a mask is applied to answers.
struct MaskColumn {
  bool if_exists = false;
  Identifier column;
  std::optional<ColumnMask> mask;  // none: DROP MASKED
};
/// ALTER TABLE … DROP COMPACT STORAGE.
/// Shows the columns that the table hid, and ends its special rules about rows without values.
struct DropCompactStorage {};

/// ALTER TABLE name and one action; TableOptions are WITH.
struct AlterTable {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  std::variant<AddColumns, DropColumns, RenameColumns, AlterColumnType, MaskColumn,
               DropCompactStorage, TableOptions>
      action;
};

/// DROP TABLE name.
/// With its indexes; a table with views is refused when the statement is prepared.
struct DropTable {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

/// A field of a user type.
/// Values hold fields in this order and without names, so fields are added at the end only.
struct FieldDefinition {
  Identifier name;
  CqlType type;
};

/// CREATE TYPE name (fields).
/// The type itself is never frozen here; a column of it says whether it is.
struct CreateType {
  Position position;
  QualifiedName name;
  bool if_not_exists = false;
  std::vector<FieldDefinition> fields;
};

/// ALTER TYPE … ADD field type.
/// Values that were written before end in front of it: it reads as null there.
struct AddField {
  bool if_not_exists = false;
  FieldDefinition field;
};
/// ALTER TYPE … RENAME old TO new AND …: pairs of the old and the new name.
struct RenameFields {
  bool if_exists = false;
  std::vector<std::pair<Identifier, Identifier>> renames;
};
/// ALTER TYPE … ALTER field TYPE type, which Cassandra parses and then refuses.
struct AlterFieldType {
  bool if_exists = false;
  FieldDefinition field;
};

/// ALTER TYPE name and one action.
struct AlterType {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  std::variant<AddField, RenameFields, AlterFieldType> action;
};

/// DROP TYPE name.
/// Refused while a table, a type or a function uses it.
struct DropType {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

/// What an index is on: a column, or a part of a collection.
struct IndexTarget {
  /// column, KEYS(column), VALUES(column), ENTRIES(column) or FULL(column).
  enum class Kind : uint8_t { kSimple, kKeys, kValues, kEntries, kFull };
  Kind kind = Kind::kSimple;
  Identifier column;
};

/// CREATE [CUSTOM] INDEX [name] ON table (targets) [USING class] [WITH properties].
/// Without a name it is called <table>_<column>_idx, with a number behind it where that is taken.
/// using_class is the text as written: 'sai', 'StorageAttachedIndex' and the full Java name are the
/// same to preparing. It is unset for `CREATE INDEX`, which makes the legacy kind.
struct CreateIndex {
  Position position;
  bool custom = false;
  bool if_not_exists = false;
  std::optional<QualifiedName> name;
  QualifiedName table;
  /// ON table ((a, b), column): an index local to the partitions; names the partition key again.
  std::vector<Identifier> local_partition_key;
  std::vector<IndexTarget> targets;  // none: a custom index without a column
  std::optional<std::string> using_class;
  Properties properties;
};

/// DROP INDEX name.
struct DropIndex {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

/// CREATE MATERIALIZED VIEW name AS SELECT … PRIMARY KEY (…).
/// `where` must have an IS NOT NULL for each column of the view's key; `items` are columns only.
/// Every column of the base table's key is in the view's key, and at most one more.
struct CreateView {
  Position position;
  QualifiedName name;
  bool if_not_exists = false;
  std::vector<SelectItem> items;  // none: *
  QualifiedName from;
  std::vector<Relation> where;
  std::vector<PrimaryKey> primary_keys;  // as in CreateTable
  TableOptions options;
};

/// ALTER MATERIALIZED VIEW name WITH options.
/// Options only: columns of a view follow its base table.
struct AlterView {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  TableOptions options;
};

/// DROP MATERIALIZED VIEW name.
struct DropView {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

/// A parameter of a function, as its body calls it.
struct FunctionParameter {
  Identifier name;
  CqlType type;
};

/// CREATE FUNCTION. The body is a text here; the script engine compiles it when the statement is
/// prepared.
/// The parameter types are part of its name: functions of one name with other types stand beside
/// each other. `or_replace` and `if_not_exists` exclude each other.
struct CreateFunction {
  Position position;
  FunctionName name;
  bool or_replace = false;
  bool if_not_exists = false;
  std::vector<FunctionParameter> parameters;
  bool called_on_null_input = false;  // otherwise RETURNS NULL ON NULL INPUT
  CqlType returns;
  std::string language;  // lower case
  std::string body;
};

/// CREATE AGGREGATE. Its functions are of the same keyspace.
/// Runs state_function(state, arguments…) for each row, beginning with initial_condition (null if
/// none is written), and final_function(state) at the end; without one the state is the result.
struct CreateAggregate {
  Position position;
  FunctionName name;
  bool or_replace = false;
  bool if_not_exists = false;
  std::vector<CqlType> parameters;
  Identifier state_function;
  CqlType state_type;
  std::optional<Identifier> final_function;
  std::optional<Term> initial_condition;
};

/// DROP FUNCTION name [(types)].
/// An empty list means the function without arguments, which is not the same as no list.
struct DropFunction {
  Position position;
  FunctionName name;
  bool if_exists = false;
  std::optional<std::vector<CqlType>> parameters;  // none written: must be the only one of its name
};

/// DROP AGGREGATE name [(types)].
struct DropAggregate {
  Position position;
  FunctionName name;
  bool if_exists = false;
  std::optional<std::vector<CqlType>> parameters;
};

/// CREATE TRIGGER, which is parsed for its error's sake: there are no triggers.
struct CreateTrigger {
  Position position;
  Identifier name;
  QualifiedName table;
  std::string class_name;
  bool if_not_exists = false;
};

/// DROP TRIGGER name ON table.
struct DropTrigger {
  Position position;
  Identifier name;
  QualifiedName table;
  bool if_exists = false;
};

}  // namespace tetrad::cql::ast
