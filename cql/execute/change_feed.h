// SPDX-License-Identifier: Apache-2.0
// SELECT … WHERE COSMOS_CHANGEFEED_START_TIME() = …: a page of a table's change feed.
//
// The coordinator names rows that were written; here they are read, in that order, each as it is
// now. Rows that are gone are left out. Where the logs do not reach back the table is scanned for
// what is newer than the start time. There is always a next page.
#pragma once

#include <span>

#include "cql/prepare/prepared_select.h"

namespace tetrad::cql {

/// Errors: those of other SELECTs, and kInvalid when the paging state is of a table that is gone.
Task<Result<StatementResult>> read_change_feed(const SelectStatement& statement,
                                               ExecuteContext& context,
                                               std::span<const BoundValue> values);

}  // namespace tetrad::cql
