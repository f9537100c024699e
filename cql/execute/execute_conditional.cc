// SPDX-License-Identifier: Apache-2.0
// Which rows are read and what is shown of them is Cassandra's choice:
//
//   read    the rows that conditions name; with conditions on static columns alone, the first live
//           row of the partition
//   seen    of a row all regular columns if any statement names rows, of the partition all static
//           ones if any with conditions writes them; otherwise those that have conditions. What is
//           not seen is null, and a row or a partition without anything that is seen is not there
//   shown   each row that was read, or the static columns where there is none; masked columns as
//           the client sees them, which is not Cassandra's choice
//
// The steps (ConditionalRun):
//
// 1. bind(): values, keys and conditions of all parts. All parts must be of one partition; a batch
//    is decided as one.
// 2. Checks of the levels, guardrails, and admission at the least price.
// 3. Coordinator::write_if reads the rows of read_command() in a Paxos round of the partition and
//    calls decide() with them. It may call decide() several times, when another statement of the
//    partition was faster. Each call begins anew; only the last one counts.
// 4. decide() evaluates the conditions on the rows and returns the mutation, or nothing when they
//    do not hold.
// 5. answer(): `[applied]` alone, or with the rows that refused it.
//
// The shard's thread runs everything but bind() and evaluate() of large values, which go to a
// worker while the task waits.
#include "cql/execute/execute_conditional.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/assert.h"
#include "cql/execute/access.h"
#include "cql/execute/disk_guard.h"
#include "cql/execute/join_mutations.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/row_materializer.h"
#include "cql/execute/statement_environment.h"
#include "cql/execute/throughput.h"
#include "cql/prepare/column_masks.h"
#include "cql/protocol/response.h"

namespace tetrad::cql {

namespace {

using storage::Mutation;
using storage::PartitionData;
using Kind = Conditions::Kind;

// Work of a part and of a row beyond its bytes, for the limit of the work; and the sizes from which
// work leaves the loop.
constexpr uint64_t kPartNs = 1'000, kRowNs = 500;  // estimated
constexpr size_t kPartsOnLoop = 256;
constexpr uint64_t kReadBytesOnLoop = 256u << 10;

/// What must hold of one row, or of the static columns.
struct RowTest {
  Kind kind = Kind::kNone;
  std::vector<BoundCondition> conditions;
};

/// A statement or a batch, from its values to its answer.
class ConditionalRun final : public replication::ConditionalStatement {
 public:
  ConditionalRun(ExecuteContext& context, std::vector<StatementPart> parts,
                 ConditionalShapePtr shape)
      : context_(context),
        parts_(std::move(parts)),
        is_batch_(shape == nullptr),
        shape_(std::move(shape)),
        functions_(make_function_environment(context)),
        guard_{context.settings.guardrails, context.warnings} {}

  // `timeout_us` is from now, for all rounds together.
  Task<Result<StatementResult>> run(int64_t timeout_us);

  storage::ReadCommand read_command() const override;
  Task<Result<std::optional<Mutation>>> decide(const storage::ReadResult& rows,
                                               replication::ConditionalMoment moment) override;

 private:
  const TableSchema& table() const { return parts_.front().statement->table(); }
  EvalContext evaluation_of(const StatementPart& part, base::Arena& arena) {
    return {part.values, arena, functions_, now_s_, nullptr, {}};
  }
  bool is_long() const;

  // --- values ---

  Result<void> bind();
  Result<void> bind(const StatementPart& part);
  Result<void> check_keys(const StatementPart& part, EvalContext& evaluation) const;
  Result<void> add_existence(RowTest& test, Kind kind) const;
  Result<void> add_conditions(const StatementPart& part, const Bytes& row_key,
                              EvalContext& evaluation);
  Result<void> make_shape();
  void choose_seen();
  Result<void> choose_masks();
  Result<void> check_levels() const;
  Result<void> check_nulls() const;
  Task<Result<void>> admit(base::Deadline deadline);
  void settle() const;

  // --- rows ---

  Result<std::optional<Mutation>> evaluate(const storage::ReadResult& rows,
                                           replication::ConditionalMoment moment);
  Result<bool> hold(const PartitionData* partition, RowMaterializer& reader, bool static_there);
  Result<bool> holds(const RowTest& test, bool is_there, const RowMaterializer& reader) const;
  bool is_static_there(const RowMaterializer& reader) const;
  /// Whether the row, which the reader then has, is there.
  Result<bool> read_row(const storage::RowData& row, RowMaterializer& reader) const;
  Result<void> show(const PartitionData* partition, RowMaterializer& reader, bool static_there);
  Result<void> show_row(const RowMaterializer& reader);
  /// Of the rows that are shown, by masks.
  bool makes_long_calls() const {
    return mask_functions_.call_count() * parts_.size() > kUserCallsOnLoopMax;
  }
  Result<Mutation> make_mutation(const PartitionData* partition,
                                 replication::ConditionalMoment moment);
  /// What parts must know of the lists of a row. One after another of the same row finds them here:
  /// they may be large.
  struct RowLists {
    std::optional<Bytes> row_key;
    ListContents lists;
  };
  Result<void> collect_lists(size_t part, const PartitionData* partition, RowLists& lists) const;
  StatementResult answer(bool applied);

  ExecuteContext& context_;
  const std::vector<StatementPart> parts_;
  const bool is_batch_;
  ConditionalShapePtr shape_;
  base::Arena arena_;  // of the conditions
  FunctionEnvironment functions_;
  const ValueGuard guard_;
  int64_t now_s_ = 0;

  std::vector<BoundTarget> targets_;  // of the parts
  std::map<Bytes, RowTest> row_tests_;
  RowTest static_test_;
  std::set<Bytes> list_rows_;  // that are read for their lists
  bool names_rows_ = false, writes_static_ = false;
  std::vector<bool> seen_;  // by slot
  std::vector<MaskedSlot> masks_;
  UsedFunctions mask_functions_;

  // Of the last decision:
  RowsResult refused_;
  RequestCharge charge_before_;
  size_t warnings_before_ = 0;
  uint64_t admitted_weight_ = 0;
};

// --- values ---

bool ConditionalRun::is_long() const {
  const ListContents none;
  return parts_.size() > kPartsOnLoop ||
         std::ranges::any_of(parts_, [&](const StatementPart& part) {
           return part.statement->is_long_to_make(context_, part.values, &none);
         });
}

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

// --- how it runs ---

Task<Result<StatementResult>> ConditionalRun::run(int64_t timeout_us) {
  const Guardrails& guardrails = context_.settings.guardrails;
  for (const ConsistencyLevel level :
       {context_.options.consistency, context_.options.serial_consistency}) {
    TETRAD_CO_TRY_VOID(
        check_consistency(guardrails.write_consistency_levels, level, true, context_.warnings));
  }
  const base::MonotonicUs started_us = context_.reactor.now_us();
  const base::Deadline deadline{started_us + timeout_us};
  set_work_limit(context_, timeout_us);
  Result<void> bound;
  const std::function<void()> bind_all = [&] { bound = bind(); };
  if (is_long()) {
    co_await evaluate_off_loop(context_, functions_, bind_all);
    if (context_.reactor.now_us() > deadline.at_us)
      co_return std::unexpected(context_.work.timed_out());
  } else {
    bind_all();
  }
  TETRAD_CO_TRY_VOID(std::move(bound));
  TETRAD_CO_TRY_VOID(check_levels());
  TETRAD_CO_TRY_VOID(check_nulls());
  if (is_limited(context_, table().incarnation)) {
    auto admitted = co_await admit(deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  // decide() may run several times; each run starts from these and charges the last decision alone.
  charge_before_ = context_.charge;
  warnings_before_ = context_.warnings.size();
  replication::ConditionalOptions options;
  options.serial_level = context_.options.serial_consistency;
  options.commit_level = context_.options.consistency;
  options.deadline = deadline;
  // The option cas_contention_timeout: how long rounds that lose against others are tried again.
  options.contention_deadline = {
      std::min(deadline.at_us, started_us + context_.settings.cas_contention_timeout_us)};
  options.warnings = &context_.warnings;
  options.trace = context_.trace;
  auto applied = co_await context_.coordinator.write_if(*this, options);
  settle();
  if (!applied) co_return std::unexpected(std::move(applied).error());
  co_return answer(*applied);
}

/// For the least that it can cost; what it has cost is settled afterwards.
// A quorum read of nothing is what a refused condition costs at least.
Task<Result<void>> ConditionalRun::admit(base::Deadline deadline) {
  RequestCharge least;
  least.add_read({}, ConsistencyLevel::kQuorum);
  admitted_weight_ = least.weight();
  std::vector<replication::ThroughputUse> uses;
  uses.push_back({table().incarnation, targets_[0].partitions[0].position, least.weight()});
  return context_.throughput->admit(std::move(uses), deadline);
}

void ConditionalRun::settle() const {
  if (admitted_weight_ == 0 || !is_limited(context_, table().incarnation)) return;
  context_.throughput->settle(
      table().incarnation, targets_[0].partitions[0].position,
      static_cast<int64_t>(context_.charge.weight()) - static_cast<int64_t>(admitted_weight_));
}

storage::ReadCommand ConditionalRun::read_command() const {
  storage::ReadCommand command;
  command.incarnation = table().incarnation;
  command.schema_version = table().version;
  command.position = targets_[0].partitions[0].position;
  command.partition_key = targets_[0].partitions[0].key;
  // Conditions on static columns alone: the header is needed, and the first row shows whether the
  // partition has rows.
  if (row_tests_.empty() && list_rows_.empty()) {
    command.row_limit = 1;
  } else if (!table().clustering().empty()) {
    // A set, since the store wants keys ascending and each once.
    std::set<Bytes> keys = list_rows_;
    for (const auto& [key, test] : row_tests_) keys.insert(key);
    command.rows.assign(keys.begin(), keys.end());
  }
  return command;
}

// Called by the coordinator for each round. An error ends the statement and writes nothing. All
// times come from `moment`, never from the clock: a round that is repeated must not mix the times
// of two.
Task<Result<std::optional<Mutation>>> ConditionalRun::decide(
    const storage::ReadResult& rows, replication::ConditionalMoment moment) {
  context_.charge = charge_before_;
  context_.warnings.resize(warnings_before_);
  Result<std::optional<Mutation>> decided;
  const std::function<void()> work = [&] { decided = evaluate(rows, moment); };
  if (context_.off_loop != nullptr &&
      (rows.arena.allocated_bytes() > kReadBytesOnLoop || is_long() || makes_long_calls())) {
    co_await evaluate_off_loop(context_, functions_, work);
  } else {
    work();
  }
  if (context_.trace != nullptr && decided) {
    context_.trace->add(*decided ? "Conditions hold; proposing the write"
                                 : "Conditions do not hold; nothing is written");
  }
  co_return decided;
}

StatementResult ConditionalRun::answer(bool applied) {
  // Without a row to show the answer is `[applied]` alone, as in Cassandra.
  if (!applied && refused_.row_count != 0) return std::move(refused_);
  RowsResult result;
  result.metadata = shape_->applied;
  result.row_count = 1;
  append_cell(result.cells, make_boolean(applied));
  return result;
}

// --- rows ---

Result<std::optional<Mutation>> ConditionalRun::evaluate(const storage::ReadResult& rows,
                                                         replication::ConditionalMoment moment) {
  refused_ = {};
  now_s_ = moment.now_s();
  // The rows are read whole or the statement fails: a condition on a row that was cut off would be
  // decided on nothing. The read of the first row alone is never exhausted, and need not be.
  if (!rows.exhausted && !(row_tests_.empty() && list_rows_.empty())) {
    return fail(ErrorCode::kInvalid, "The rows of a conditional statement are too large");
  }
  TETRAD_ASSERT(rows.partitions.size() <= 1);
  const PartitionData* partition = rows.partitions.empty() ? nullptr : &rows.partitions[0];
  ReadWork work;
  if (partition != nullptr) {
    work.weight += storage::row_weight(partition->header.size());
    for (const storage::RowData& row : partition->rows)
      work.weight += storage::row_weight(row.clustering_key.size() + row.record.size());
    const uint64_t rows_ns = kRowNs * partition->rows.size() + rows.arena.allocated_bytes();
    // One nanosecond for each byte, and kRowNs for each row.
    TETRAD_TRY_VOID(context_.work.spend(rows_ns));
  }
  // Paxos reads at a quorum whatever level the client named.
  context_.charge.add_read(work, ConsistencyLevel::kQuorum);
  base::Arena arena;
  RowMaterializer reader(shape_->layout, arena, moment.now_s());
  if (partition != nullptr) TETRAD_TRY_VOID(reader.start_partition(*partition));
  const bool static_there = partition != nullptr && is_static_there(reader);
  TETRAD_TRY(const bool applies, hold(partition, reader, static_there));
  if (!applies) {
    TETRAD_TRY_VOID(show(partition, reader, static_there));
    return std::optional<Mutation>();
  }
  TETRAD_TRY(Mutation mutation, make_mutation(partition, moment));
  return std::optional<Mutation>(std::move(mutation));
}

// What IF EXISTS on static columns tests: any live static column when a part writes them, otherwise
// one that is seen.
bool ConditionalRun::is_static_there(const RowMaterializer& reader) const {
  if (writes_static_) return reader.has_live_static();
  return std::ranges::any_of(shape_->layout.static_slots, [&](int32_t slot) {
    // Rows of a partition ascend by clustering key.
    const auto at = static_cast<size_t>(slot);
    return seen_[at] && reader.row().values[at].has_value();
  });
}

// As Cassandra: where no part names a row, only the row's liveness makes it one, since its regular
// columns are not seen.
Result<bool> ConditionalRun::read_row(const storage::RowData& row, RowMaterializer& reader) const {
  TETRAD_TRY(const bool live, reader.read_row(row));
  if (names_rows_) return live;
  TETRAD_TRY(const storage::RowRecord record, storage::decode_row_record(row.record));
  return record.liveness.live_at(now_s_);
}

Result<bool> ConditionalRun::hold(const PartitionData* partition, RowMaterializer& reader,
                                  bool static_there) {
  TETRAD_TRY(const bool static_holds, holds(static_test_, static_there, reader));
  if (!static_holds) return false;
  for (const auto& [key, test] : row_tests_) {
    const storage::RowData* found = nullptr;
    if (partition != nullptr) {
      const auto& rows = partition->rows;
      const auto at =
          std::ranges::lower_bound(rows, BytesView(key), {}, &storage::RowData::clustering_key);
      if (at != rows.end() && at->clustering_key == key) found = &*at;
    }
    bool is_there = false;
    if (found == nullptr) {
      // A row that is not there has null in every column, which conditions may test (IF v = null).
      reader.clear_row();
    } else {
      TETRAD_TRY(is_there, read_row(*found, reader));
    }
    TETRAD_TRY(const bool row_holds, holds(test, is_there, reader));
    if (!row_holds) return false;
  }
  return true;
}

Result<bool> ConditionalRun::holds(const RowTest& test, bool is_there,
                                   const RowMaterializer& reader) const {
  if (test.kind == Kind::kNone) return true;
  if (test.kind == Kind::kExists) return is_there;
  if (test.kind == Kind::kNotExists) return !is_there;
  for (const BoundCondition& condition : test.conditions) {
    const int32_t slot = shape_->layout.slot_by_id[condition.column().id];
    TETRAD_ASSERT(slot >= 0);
    const OptionalView value = reader.row().values[static_cast<size_t>(slot)];
    TETRAD_TRY_VOID(context_.work.spend(condition.test_ns(value ? value->size() : 0)));
    TETRAD_TRY(const bool holds, condition.holds(value));
    if (!holds) return false;
  }
  return true;
}

Result<void> ConditionalRun::show(const PartitionData* partition, RowMaterializer& reader,
                                  bool static_there) {
  refused_.metadata = shape_->refused;
  if (partition == nullptr) return {};
  for (const storage::RowData& row : partition->rows) {
    // Rows that were read for their lists only are not shown.
    if (!row_tests_.empty() && !row_tests_.contains(Bytes(row.clustering_key))) continue;
    TETRAD_TRY(const bool is_there, read_row(row, reader));
    if (is_there) TETRAD_TRY_VOID(show_row(reader));
  }
  if (refused_.row_count == 0 && static_there) {
    reader.clear_row();
    TETRAD_TRY_VOID(show_row(reader));
  }
  return {};
}

Result<void> ConditionalRun::show_row(const RowMaterializer& reader) {
  base::Arena arena;  // of the masks
  EvalContext unmasked{{}, arena, functions_, now_s_, &reader.row(), {}};
  std::vector<OptionalView> values = reader.row().values;
  TETRAD_TRY_VOID(mask_values(masks_, unmasked, values));
  ++refused_.row_count;
  // The first column, `[applied]`.
  append_cell(refused_.cells, make_boolean(false));
  for (size_t i = 0; i < values.size(); ++i) {
    if (seen_[i] && values[i]) {
      append_cell(refused_.cells, *values[i]);
    } else {
      append_null_cell(refused_.cells);
    }
  }
  return {};
}

Result<void> ConditionalRun::collect_lists(size_t part, const PartitionData* partition,
                                           RowLists& lists) const {
  const ModifyStatement* const statement = parts_[part].statement;
  if (!statement->needs_read() || partition == nullptr) return {};
  const BoundClustering& clustering = targets_[part].clustering;
  const BytesView key =
      statement->names_rows() && clustering.exact ? BytesView(clustering.rows[0]) : BytesView();
  // Parts that follow each other and name one row share its lists, so that the second works on the
  // list that both read.
  if (lists.row_key != key) lists = {Bytes(key), {}};
  const storage::RowData* row = nullptr;
  if (statement->names_rows()) {
    const auto at =
        std::ranges::lower_bound(partition->rows, key, {}, &storage::RowData::clustering_key);
    if (at != partition->rows.end() && at->clustering_key == key) row = &*at;
  }
  return statement->collect_lists(*partition, row, now_s_, lists.lists);
}

// The mutations of all parts joined to one. The functions get the moment's time, so that now() in a
// value and the timestamp agree, and each decision of the statement has its own.
Result<Mutation> ConditionalRun::make_mutation(const PartitionData* partition,
                                               replication::ConditionalMoment moment) {
  functions_.now_ms = moment.now_us / 1000;
  WriteMoment write = moment_of(context_);
  write.dated_s = moment.now_s();
  if (!context_.options.now_in_seconds) write.now_s = moment.now_s();
  if (context_.settings.guardrails.on_values()) write.guard = &guard_;
  ListCellIds ids(*functions_.random, moment.now_us);
  base::Arena arena;  // of this evaluation: there may be many until one is decided
  RowLists lists;
  std::vector<Mutation> mutations;
  for (size_t i = 0; i < parts_.size(); ++i) {
    EvalContext evaluation = evaluation_of(parts_[i], arena);
    TETRAD_TRY_VOID(context_.work.spend(kPartNs + bind_ns(*parts_[i].statement, parts_[i].values)));
    TETRAD_TRY_VOID(collect_lists(i, partition, lists));
    // As Cassandra: what the other statements write stays.
    const bool is_range = parts_[i].statement->deletes_range(targets_[i]);
    // A tombstone wins a tie of timestamps, so a range deletion in the batch is one microsecond
    // older: the rows that other parts write then stay.
    write.timestamp_us = moment.timestamp_us - (is_range ? 1 : 0);
    TETRAD_TRY_VOID(parts_[i].statement->add_mutations(evaluation, write, ids, &lists.lists,
                                                       context_.settings.in_cartesian_product_max,
                                                       mutations, &targets_[i]));
  }
  TETRAD_TRY(mutations, join_by_partition(std::move(mutations)));
  TETRAD_ASSERT(mutations.size() <= 1);
  // The conditions hold, so the statement is applied and commits: a mutation without changes.
  if (mutations.empty()) {  // nothing was set
    Mutation& nothing = mutations.emplace_back();
    nothing.incarnation = table().incarnation;
    nothing.schema_version = table().version;
    nothing.position = targets_[0].partitions[0].position;
    nothing.partition_key = targets_[0].partitions[0].key;
  }
  TETRAD_TRY_VOID(check_mutation_sizes(mutations, table(), context_.settings));
  TETRAD_TRY_VOID(check_replica_disks(context_, mutations));
  context_.charge.add_write(mutations);
  return std::move(mutations[0]);
}

}  // namespace

Task<Result<StatementResult>> run_conditional(ExecuteContext& context,
                                              std::vector<StatementPart> parts,
                                              ConditionalShapePtr shape, int64_t timeout_us) {
  ConditionalRun run(context, std::move(parts), std::move(shape));
  auto result = co_await run.run(timeout_us);
  co_return result;
}

Task<Result<StatementResult>> execute_conditional(ExecuteContext& context,
                                                  const ModifyStatement& statement,
                                                  std::span<const BoundValue> values) {
  base::Arena arena;
  const FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  TETRAD_CO_TRY(const int64_t timeout_us,
                evaluate_timeout_us(statement.attributes().timeout, evaluation,
                                    context.settings.write_timeout_us));
  std::vector<StatementPart> parts{{&statement, values}};
  auto result = co_await run_conditional(context, std::move(parts), statement.shape(), timeout_us);
  co_return result;
}

}  // namespace tetrad::cql
