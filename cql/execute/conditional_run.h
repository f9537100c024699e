// SPDX-License-Identifier: Apache-2.0
// One execution of a conditional statement or batch. How it runs stands in execute_conditional.cc,
// what its values mean in bind_conditional.cc, what rows decide in decide_conditional.cc.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cql/execute/execute_conditional.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/row_materializer.h"
#include "cql/execute/statement_environment.h"
#include "cql/prepare/column_masks.h"
#include "cql/protocol/response.h"

namespace tetrad::cql {

/// What must hold of one row, or of the static columns.
struct RowTest {
  Conditions::Kind kind = Conditions::Kind::kNone;
  std::vector<BoundCondition> conditions;
};

/// A statement or a batch, from its values to its answer. It lives in the frame of
/// run_conditional(); the coordinator calls read_command() and decide() while it waits in run().
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

  /// Once. `timeout_us` is from now, for all rounds together.
  Task<Result<StatementResult>> run(int64_t timeout_us);

  /// The rows that the conditions and the parts' lists need, of the one partition.
  storage::ReadCommand read_command() const override;
  /// For each round of the coordinator; unset: the conditions do not hold, nothing is written.
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment moment) override;

 private:
  // Work of a part beyond its bytes, estimated, for the limit of the work.
  static constexpr uint64_t kPartNs = 1'000;

  const TableSchema& table() const { return parts_.front().statement->table(); }
  EvalContext evaluation_of(const StatementPart& part, base::Arena& arena) {
    return {part.values, arena, functions_, now_s_, nullptr, {}};
  }
  bool is_long() const;

  // --- values (bind_conditional.cc) ---

  /// Of all parts, in their order; may run on a worker thread. Errors: kInvalid.
  Result<void> bind();
  Result<void> bind(const StatementPart& part);
  /// Errors: kInvalid, the part has IN in its key.
  Result<void> check_keys(const StatementPart& part, EvalContext& evaluation) const;
  /// IF EXISTS and IF NOT EXISTS. Errors: kInvalid, the row has a test of another kind already.
  Result<void> add_existence(RowTest& test, Conditions::Kind kind) const;
  Result<void> add_conditions(const StatementPart& part, const Bytes& row_key,
                              EvalContext& evaluation);
  Result<void> make_shape();
  void choose_seen();
  Result<void> choose_masks();
  Result<void> check_levels() const;
  /// Errors: kInvalid, a condition compares with null where its operator takes none,
  /// or with an empty collection.
  Result<void> check_nulls() const;

  // --- admission, where the table has a throughput limit ---

  Task<Result<void>> admit(base::Deadline deadline);
  /// Takes or gives back what the decision cost beside what admit() took.
  void settle() const;

  // --- rows (decide_conditional.cc) ---

  Result<std::optional<storage::Mutation>> evaluate(const storage::ReadResult& rows,
                                                    replication::ConditionalMoment moment);
  /// All tests: of the static columns, then of rows by their keys, to the first that fails.
  Result<bool> hold(const storage::PartitionData* partition, RowMaterializer& reader,
                    bool static_there);
  Result<bool> holds(const RowTest& test, bool is_there, const RowMaterializer& reader) const;
  bool is_static_there(const RowMaterializer& reader) const;
  /// Whether the row, which the reader then has, is there.
  Result<bool> read_row(const storage::RowData& row, RowMaterializer& reader) const;
  /// Into refused_: the rows that were tested, or the static columns where there is none.
  Result<void> show(const storage::PartitionData* partition, RowMaterializer& reader,
                    bool static_there);
  Result<void> show_row(const RowMaterializer& reader);
  /// Of the rows that are shown, by masks.
  bool makes_long_calls() const {
    return mask_functions_.call_count() * parts_.size() > kUserCallsOnLoopMax;
  }
  Result<storage::Mutation> make_mutation(const storage::PartitionData* partition,
                                          replication::ConditionalMoment moment);
  /// What parts must know of the lists of a row. One after another of the same row finds them here:
  /// they may be large.
  struct RowLists {
    std::optional<Bytes> row_key;
    ListContents lists;
  };
  Result<void> collect_lists(size_t part, const storage::PartitionData* partition,
                             RowLists& lists) const;
  StatementResult answer(bool applied);

  ExecuteContext& context_;  // of the request, which outlives this
  const std::vector<StatementPart> parts_;
  const bool is_batch_;
  ConditionalShapePtr shape_;  // of the answer; a batch's is made by bind()
  base::Arena arena_;          // of the conditions
  FunctionEnvironment functions_;
  const ValueGuard guard_;
  int64_t now_s_ = 0;  // the request's while values are bound, then the round's

  // What bind() makes of the parts; rounds only read it.
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

}  // namespace tetrad::cql
