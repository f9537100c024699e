// SPDX-License-Identifier: Apache-2.0
// A conditional statement or batch before its Paxos round: values, keys and conditions of all parts,
// the columns of the answer, and the checks that need no row.
//
// All parts must be of one partition. What they test is kept by row (row_tests_), since several
// parts may test one row: a row has either an existence test or conditions on columns, never both.
// Static columns have one test for the partition (static_test_). Errors come in Cassandra's order.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/access.h"
#include "cql/execute/conditional_run.h"

namespace tetrad::cql {

namespace {

using Kind = Conditions::Kind;

}  // namespace

// Once for each request, before any round: an error in a value must not cost a ballot. Timestamps
// are not known yet; make_mutation() sets them.
Result<void> ConditionalRun::bind() {
  now_s_ = context_.now_s;
  for (const StatementPart& part : parts_) {
    TETRAD_TRY_VOID(context_.work.spend(kPartNs + bind_ns(*part.statement, part.values)));
    TETRAD_TRY_VOID(bind(part));
  }
  TETRAD_TRY_VOID(make_shape());
  choose_seen();
  return choose_masks();
}

Result<void> ConditionalRun::bind(const StatementPart& part) {
  const ModifyStatement& statement = *part.statement;
  EvalContext evaluation = evaluation_of(part, arena_);
  TETRAD_TRY_VOID(check_keys(part, evaluation));
  TETRAD_TRY(BoundTarget target,
             statement.bind_target(evaluation, context_.settings.in_cartesian_product_max));
  // check_keys() above has refused IN, the only way to name several.
  TETRAD_ASSERT(target.partitions.size() == 1);
  if (!targets_.empty() && target.partitions[0].key != targets_[0].partitions[0].key) {
    return fail(ErrorCode::kInvalid, "Batch with conditions cannot span multiple partitions");
  }
  for (const auto& values : target.clustering.row_values) {
    TETRAD_TRY_VOID(statement.check_row_keys(values));
  }
  names_rows_ = names_rows_ || statement.names_rows();
  writes_static_ = writes_static_ || (statement.has_conditions() && statement.writes_static());
  // The empty key stands for the only row of a table without clustering columns.
  const Bytes row_key = target.clustering.exact ? target.clustering.rows[0] : Bytes();
  if (statement.has_conditions()) TETRAD_TRY_VOID(add_conditions(part, row_key, evaluation));
  if (statement.needs_read()) {
    TETRAD_TRY_VOID(statement.check_list_reads(context_.settings.guardrails));
    if (statement.names_rows()) list_rows_.insert(row_key);
  }
  targets_.push_back(std::move(target));
  return {};
}

/// As Cassandra: IN is refused by what is written, not by how many values it has.
Result<void> ConditionalRun::check_keys(const StatementPart& part, EvalContext& evaluation) const {
  const ModifyStatement& statement = *part.statement;
  const char* what = statement.kind() == ModifyStatement::Kind::kDelete ? "deletions" : "updates";
  if (!statement.has_partition_in() && !statement.has_clustering_in()) return {};
  TETRAD_TRY_VOID(
      statement.check_partitions(evaluation, context_.settings.in_cartesian_product_max));
  if (statement.has_partition_in()) {
    if (is_batch_) {
      return fail(ErrorCode::kInvalid,
                  "Batch with conditions cannot span multiple partitions (you cannot use IN on the "
                  "partition key)");
    }
    return fail(ErrorCode::kInvalid, "IN on the partition key is not supported with conditional {}",
                what);
  }
  return fail(ErrorCode::kInvalid,
              "IN on the clustering key columns is not supported with conditional {}", what);
}

// A batch may repeat a condition on a row, but not mix kinds. The texts are Cassandra's.
Result<void> ConditionalRun::add_existence(RowTest& test, Kind kind) const {
  if (test.kind == Kind::kColumns) {
    return fail(ErrorCode::kInvalid, "Cannot mix IF conditions and IF {}EXISTS for the same row",
                kind == Kind::kNotExists ? "NOT " : "");
  }
  if (test.kind != Kind::kNone && test.kind != kind) {
    return fail(ErrorCode::kInvalid,
                "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row");
  }
  test.kind = kind;
  return {};
}

Result<void> ConditionalRun::add_conditions(const StatementPart& part, const Bytes& row_key,
                                            EvalContext& evaluation) {
  const Conditions& conditions = part.statement->conditions();
  if (conditions.on_existence()) {
    RowTest& test = part.statement->is_static_only() ? static_test_ : row_tests_[row_key];
    return add_existence(test, conditions.kind);
  }
  // Regular columns first, as Cassandra: it decides which of two errors is reported.
  for (const bool statics : {false, true}) {
    for (const ColumnCondition& condition : conditions.columns) {
      if ((condition.column->kind == ColumnKind::kStatic) != statics) continue;
      RowTest& test = statics ? static_test_ : row_tests_[row_key];
      if (test.kind != Kind::kNone &&
          test.kind != Kind::kColumns) {  // in these words whatever it is
        return fail(ErrorCode::kInvalid,
                    "Cannot mix IF conditions and IF NOT EXISTS for the same row");
      }
      test.kind = Kind::kColumns;
      TETRAD_TRY(BoundCondition bound, BoundCondition::bind(condition, evaluation));
      test.conditions.push_back(std::move(bound));
    }
  }
  return {};
}

/// Of a batch: its rows are named by their keys. Errors: kInvalid, the table was changed while the
/// parts were prepared, each against the table of its time.
Result<void> ConditionalRun::make_shape() {
  if (shape_ != nullptr) return {};
  const TablePtr table = parts_.front().statement->shared_table();
  std::vector<const ColumnSchema*> columns;
  std::set<const ColumnSchema*> known;
  for (const ColumnSchema& column : table->columns()) {
    if (column.is_primary_key() && !column.hidden) columns.push_back(&column);
  }
  bool all = false;
  for (const StatementPart& part : parts_) {
    all = all || part.statement->conditions().on_existence();
    for (const ColumnSchema* shown : part.statement->conditions().shown()) {
      const ColumnSchema* column = table->find(shown->name);
      if (column == nullptr || column->id != shown->id) {
        return fail(ErrorCode::kInvalid, "Undefined column name {} in table {}.{}", shown->name,
                    table->keyspace, table->name);
      }
      // As in Cassandra, the answer of a batch has the key columns first, then the columns of all
      // conditions, each once.
      if (known.insert(column).second) columns.push_back(column);
    }
  }
  if (all) columns = ConditionalShape::all_columns(*table);
  shape_ = std::make_shared<const ConditionalShape>(table, std::move(columns));
  return {};
}

// See the table at the top. seen_ has one entry for each slot of the shape's layout.
void ConditionalRun::choose_seen() {
  std::set<std::string_view> tested;
  for (const StatementPart& part : parts_) {
    for (const ColumnCondition& condition : part.statement->conditions().columns)
      tested.insert(condition.column->name);
  }
  for (const ColumnSchema* column : shape_->layout.slots) {
    const bool all = column->kind == ColumnKind::kStatic    ? writes_static_
                     : column->kind == ColumnKind::kRegular ? names_rows_
                                                            : true;
    seen_.push_back(all || tested.contains(column->name));
  }
}

// No masks when the client may see the values; then masks_ stays empty and show_row() copies.
Result<void> ConditionalRun::choose_masks() {
  const auto& slots = shape_->layout.slots;
  if (std::ranges::none_of(slots, [](const auto* column) { return column->mask != nullptr; }) ||
      sees_unmasked(context_.client, *context_.schema, table()))
    return {};
  TETRAD_TRY(masks_, make_masks(slots, *context_.schema, context_.settings, mask_functions_));
  return {};
}

// The commit level is that of the request (how many members must have the write), the serial level
// the one of Paxos. Each has values that only the other one may have.
Result<void> ConditionalRun::check_levels() const {
  const ConsistencyLevel level = context_.options.consistency;
  if (level == ConsistencyLevel::kSerial || level == ConsistencyLevel::kLocalSerial) {
    return fail(ErrorCode::kInvalid,
                "{} is not supported as conditional update commit consistency. Use ANY if you mean "
                "\"make sure it is accepted but I don't care how many replicas commit it for "
                "non-SERIAL reads\"",
                base::name_of(level));
  }
  const KeyspaceSchema* keyspace = context_.schema->keyspace(table().keyspace);
  if (level != ConsistencyLevel::kEachQuorum || keyspace == nullptr) return {};
  const auto strategy = keyspace->replication.find("class");
  if (strategy == keyspace->replication.end() || !strategy->second.ends_with(".SimpleStrategy"))
    return {};
  return fail(ErrorCode::kInvalid,
              "consistency level {} not compatible with replication strategy ({})",
              base::name_of(level), strategy->second);
}

// After all parts are bound, so that errors of keys and values come first, as in Cassandra.
Result<void> ConditionalRun::check_nulls() const {
  for (const BoundCondition& condition : static_test_.conditions)
    TETRAD_TRY_VOID(condition.check_null());
  for (const auto& [key, test] : row_tests_) {
    for (const BoundCondition& condition : test.conditions) TETRAD_TRY_VOID(condition.check_null());
  }
  return {};
}

}  // namespace tetrad::cql
