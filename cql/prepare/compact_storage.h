// SPDX-License-Identifier: Apache-2.0
// Tables WITH COMPACT STORAGE as Cassandra 5.0 still has them: what may be one, and the columns
// that nobody declared.
#pragma once

#include <vector>

#include "base/result.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

/// Turns the columns of a CREATE TABLE into those that a compact table has: without clustering
/// columns the declared ones are static, and column1 and value are hidden behind them; with them a
/// value of the type empty is, where none is declared. Errors: kInvalid.
Result<void> make_compact(std::vector<ColumnSchema>& columns);

/// What DROP COMPACT STORAGE leaves: an ordinary table that shows all of its columns.
void drop_compact(TableSchema& table, std::vector<ColumnSchema>& columns);

}  // namespace tetrad::cql
