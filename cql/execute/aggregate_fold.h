// SPDX-License-Identifier: Apache-2.0
// Native aggregates of plain columns, folded by the replicas where the rows are: what storage knows
// as a FoldPlan.
//
//   spec   := u8 version (1), u8 flags (1: a partition of static columns only is a row),
//             u8 partition key columns,
//             u8 count, (u8 descending, type)*            clustering columns, as far as they are read
//             u8 count, (u8 kind, u32 number, type)*      columns read: their place in the key, or id
//             u8 count, (u8 function, u8 column | 0xff)*  aggregates
//   type   := the native protocol's option, of a native type
//   state  := what each aggregate saves, one after another
#pragma once

#include <memory>
#include <span>

#include "cql/functions/aggregate.h"
#include "cql/prepare/expression_builder.h"
#include "storage/row/row_fold.h"

namespace tetrad::cql {

/// The arguments of the calls are `slots`. Null: these calls are not folded.
storage::FoldPlanPtr make_aggregate_fold(const TableSchema& table,
                                         std::span<const ColumnSchema* const> slots,
                                         std::span<const AggregateCall> calls,
                                         bool static_only_rows);

/// A storage::FoldReader.
Result<storage::FoldPlanPtr> read_aggregate_fold(BytesView spec);

/// `state`: of a fold of the same calls; empty: no rows. Errors: kCorruption.
Result<void> load_aggregates(std::span<const std::unique_ptr<Aggregator>> aggregators,
                             BytesView state);

}  // namespace tetrad::cql
