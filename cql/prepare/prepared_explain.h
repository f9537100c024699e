// SPDX-License-Identifier: Apache-2.0
// EXPLAIN SELECT once its meaning is known: an extension of Tetrad.
#pragma once

#include <memory>

#include "cql/prepare/prepared_select.h"

namespace tetrad::cql {

/// One row: how the SELECT would find its rows, how many physical partitions it would ask, and what
/// it would cost. Needs the rights of the SELECT, since the estimates are made of a sample of its
/// rows.
class ExplainStatement final : public Statement {
 public:
  /// The SELECT is prepared in full: what cannot be prepared cannot be explained.
  explicit ExplainStatement(std::shared_ptr<const SelectStatement> select);
  bool is_current(const SchemaSnapshot& schema) const override {
    return select_->is_current(schema);
  }
  void required_access(RequiredAccess& out) const override { select_->required_access(out); }
  /// Binds the SELECT's values and estimates; it is not run. Execution: execute/explain_select.cc.
  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue> values) const override;

 private:
  // Prepared for this statement alone; it also has the markers that EXPLAIN announces.
  const std::shared_ptr<const SelectStatement> select_;
};

/// Defined beside the execution, so that prepare/ does not need what EXPLAIN estimates with.
StatementPtr make_explain(std::shared_ptr<const SelectStatement> select);

}  // namespace tetrad::cql
