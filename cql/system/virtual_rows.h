// SPDX-License-Identifier: Apache-2.0
// Rows made in memory, answered as a replica answers: the keys encoded and sorted, the command
// applied.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "cql/schema/table_schema.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

/// The bytes of a value, as types/value.h encodes it; unset: null.
using VirtualCell = std::optional<Bytes>;
/// One cell per column, in the order of TableSchema::columns(). A set of texts is given as a frozen
/// one also where its column is not frozen; other collections that have values are frozen.
using VirtualRow = std::vector<VirtualCell>;

/// What a store with these rows would answer to the command: rows by ring position and clustering
/// key, bounds and limits applied, nothing but live rows.
Result<storage::ReadResult> select_virtual_rows(const TableSchema& table,
                                                std::vector<VirtualRow> rows,
                                                const storage::ReadCommand& command);

}  // namespace tetrad::cql
