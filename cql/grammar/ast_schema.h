// SPDX-License-Identifier: Apache-2.0
// Statements that change the schema: keyspaces, tables, types, indexes, views, functions, triggers.
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
struct Property {
  Identifier name;
  PropertyValue value;
};
using Properties = std::vector<Property>;

struct CreateKeyspace {
  Position position;
  Identifier name;
  bool if_not_exists = false;
  Properties properties;
};

struct AlterKeyspace {
  Position position;
  Identifier name;
  bool if_exists = false;
  Properties properties;
};

struct DropKeyspace {
  Position position;
  Identifier name;
  bool if_exists = false;
};

/// MASKED WITH DEFAULT, or MASKED WITH function(arguments).
struct ColumnMask {
  bool is_default = false;
  FunctionName function;
  std::vector<Term> arguments;
  Position position;
};

struct ColumnDefinition {
  Identifier name;
  CqlType type;
  bool is_static = false;
  std::optional<ColumnMask> mask;
};

/// PRIMARY KEY ((a, b), c): partition {a, b}, clustering {c}. Behind a column: partition {that
/// column}.
struct PrimaryKey {
  std::vector<Identifier> partition;
  std::vector<Identifier> clustering;
  Position position;
};

struct ClusteringOrder {
  Identifier column;
  bool descending = false;
};

/// What stands behind WITH of a table or a view. Clustering orders pile up when written twice.
struct TableOptions {
  bool compact_storage = false;
  std::vector<ClusteringOrder> clustering_order;
  Properties properties;  // also id = …
};

struct CreateTable {
  Position position;
  QualifiedName name;
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;
  std::vector<PrimaryKey> primary_keys;  // exactly one in a statement that makes sense
  TableOptions options;
};

struct AddColumns {
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;
};
struct DropColumns {
  bool if_exists = false;
  std::vector<Identifier> columns;
  std::optional<Term> timestamp;  // an integer, USING TIMESTAMP
};
struct RenameColumns {
  bool if_exists = false;
  std::vector<std::pair<Identifier, Identifier>> renames;
};
struct AlterColumnType {
  bool if_exists = false;
  Identifier column;
  CqlType type;
};
struct MaskColumn {
  bool if_exists = false;
  Identifier column;
  std::optional<ColumnMask> mask;  // none: DROP MASKED
};
struct DropCompactStorage {};

struct AlterTable {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  std::variant<AddColumns, DropColumns, RenameColumns, AlterColumnType, MaskColumn,
               DropCompactStorage, TableOptions>
      action;
};

struct DropTable {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

struct FieldDefinition {
  Identifier name;
  CqlType type;
};

struct CreateType {
  Position position;
  QualifiedName name;
  bool if_not_exists = false;
  std::vector<FieldDefinition> fields;
};

struct AddField {
  bool if_not_exists = false;
  FieldDefinition field;
};
struct RenameFields {
  bool if_exists = false;
  std::vector<std::pair<Identifier, Identifier>> renames;
};
struct AlterFieldType {
  bool if_exists = false;
  FieldDefinition field;
};

struct AlterType {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  std::variant<AddField, RenameFields, AlterFieldType> action;
};

struct DropType {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

struct IndexTarget {
  enum class Kind : uint8_t { kSimple, kKeys, kValues, kEntries, kFull };
  Kind kind = Kind::kSimple;
  Identifier column;
};

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

struct DropIndex {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

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

struct AlterView {
  Position position;
  QualifiedName name;
  bool if_exists = false;
  TableOptions options;
};

struct DropView {
  Position position;
  QualifiedName name;
  bool if_exists = false;
};

struct FunctionParameter {
  Identifier name;
  CqlType type;
};

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

struct DropFunction {
  Position position;
  FunctionName name;
  bool if_exists = false;
  std::optional<std::vector<CqlType>> parameters;  // none written: must be the only one of its name
};

struct DropAggregate {
  Position position;
  FunctionName name;
  bool if_exists = false;
  std::optional<std::vector<CqlType>> parameters;
};

struct CreateTrigger {
  Position position;
  Identifier name;
  QualifiedName table;
  std::string class_name;
  bool if_not_exists = false;
};

struct DropTrigger {
  Position position;
  Identifier name;
  QualifiedName table;
  bool if_exists = false;
};

}  // namespace tetrad::cql::ast
