// SPDX-License-Identifier: Apache-2.0
// SELECT once its meaning is known. Made by prepare_select.cc, run by execute/execute_select.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/prepare/prepared_statement.h"
#include "cql/prepare/restrictions.h"
#include "storage/row/row_fold.h"
#include "storage/vectors/distance.h"

namespace tetrad::cql {

/// Which columns a SELECT reads and where their values go.
struct RowLayout {
  static constexpr int32_t kUnknown = -2;  // an id of no column: dropped
  static constexpr int32_t kUnread = -1;

  TablePtr table;
  // By slot: the columns that are read, each once.
  std::vector<const ColumnSchema*> slots;
  std::vector<int32_t> slot_by_id;  // by column id; kUnknown, kUnread or a slot
  /// By column id: cells up to this timestamp went with the column when it was dropped; empty when
  /// no column was ever dropped and added again.
  std::vector<int64_t> dropped_until_us;
  // Where the parts of a row go. Each column that is read has one slot in exactly one of the lists.
  std::vector<int32_t> partition_slots;  // by position; kUnread if not read
  std::vector<int32_t> clustering_slots;
  std::vector<int32_t> static_slots, regular_slots;
  size_t clustering_read_count = 0;  // how many clustering columns are decoded, from the first
  // The encoded clustering key does not give back the bytes of some values
  // (types/ordered_encoding.h); a cell of the row has them.
  bool lossy_clustering = false;
  // WRITETIME or TTL is selected: times of cells are kept beside the values.
  bool wants_times = false;
  std::vector<bool> is_multi_cell;  // by slot

  /// `slots`: the columns to read, in the order of the expressions' slots.
  static RowLayout make(TablePtr table, std::vector<const ColumnSchema*> slots, bool wants_times);
};

/// What is shown of a slot to who may not see its values.
struct MaskedSlot {
  int32_t slot;
  ExpressionPtr shown;
};

/// ORDER BY column ANN OF vector.
struct NearestOrder {
  // The column has a vector index; `vector` is the value that rows are near to.
  const ColumnSchema* column = nullptr;  // of the statement's table
  int32_t slot = -1;
  ExpressionPtr vector;
  storage::Similarity similarity = storage::Similarity::kCosine;
  bool favours_recall = false;
  const IndexSchema* index = nullptr;  // the column's, of the statement's table
};

/// A SELECT, checked against one schema snapshot. Immutable, so that executions share it; SelectRun
/// is one execution.
class SelectStatement final : public Statement {
 public:
  bool is_current(const SchemaSnapshot& schema) const override;
  void required_access(RequiredAccess& out) const override;
  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue> values) const override;
  /// Calls of user-defined functions by masks.
  size_t mask_calls() const { return mask_functions_.call_count(); }
  /// Pages of rows end at a place in the table, and nothing else.
  bool shares_pages() const override {
    return !is_grouped_ && !is_aggregate_ && !distinct_ && where_.change_feed() == nullptr &&
           !nearest_;
  }

 private:
  friend class SelectPreparer;
  friend class SelectRun;
  friend class ChangeFeedRun;
  friend class ExplainRun;

  // What is read. `table_` keeps the columns alive that all the others point to.
  TablePtr table_;
  Restrictions where_;
  RowLayout layout_;
  // What is shown: one expression for each column of the result, on the slots of `layout_`. With
  // aggregates the outputs refer to their results by index.
  std::vector<ExpressionPtr> outputs_;
  std::vector<int32_t> plain_slots_;  // of the outputs when all of them are columns
  std::vector<std::string> json_names_;
  // Dynamic data masking. The masks are made with the statement; whether they apply depends on the
  // client's rights, and is decided when it runs.
  std::vector<MaskedSlot> masks_;
  std::vector<std::string> restricted_masks_;  // masked columns that WHERE or ANN OF tests
  bool masks_keys_ = false;                    // a column of the primary key is masked
  UsedFunctions mask_functions_;               // nobody needs the right to execute them
  // What outputs_ refer to (EvalContext::aggregates), and keys that are checked before any row is
  // read.
  std::vector<AggregateCall> aggregates_;
  std::vector<SelectedKey> selected_keys_;
  // GROUP BY: rows of a partition that are equal in their first `group_columns_` clustering
  // columns, and in what the function, if there is one, makes of the next.
  size_t group_columns_ = 0;
  ExpressionPtr group_function_;
  std::optional<Error> group_error_;  // of that function: reported when it is executed
  // LIMIT and PER PARTITION LIMIT; null where not written. Values are checked when they are bound.
  ExpressionPtr limit_, per_partition_limit_;
  ExpressionPtr timeout_;     // USING TIMEOUT; null where it is not written
  size_t order_columns_ = 0;  // ORDER BY: how many clustering columns it goes to
  std::optional<NearestOrder> nearest_;
  // Answers about the whole statement that execution asks often; each follows from the members
  // above.
  bool is_json_ = false, distinct_ = false, reversed_ = false;
  bool is_grouped_ = false;    // GROUP BY
  bool is_aggregate_ = false;  // one row for everything, or for each group
  // Static columns are read, too, or alone; then partitions without rows may answer a row.
  bool wants_static_ = false;
  bool static_only_rows_ = false;       // partitions without rows show their static columns
  bool counts_only_ = false;            // count(*) and nothing else
  bool tells_filtering_ = false;        // of ALLOW FILTERING that leaves out rows
  bool folds_ = false;                  // native aggregates of plain columns and nothing else
  mutable storage::FoldPlanPtr fold_;   // of these, once it was needed
  mutable AnswerEstimate usual_bytes_;  // of one read; a statement is its shard's own
};

}  // namespace tetrad::cql
