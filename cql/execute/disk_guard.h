// SPDX-License-Identifier: Apache-2.0
// Writes of clients to replicas whose disks are filling up: Cassandra 5.0's guardrail
// replica_disk_usage. As there, every member that would be written to counts, whatever the
// consistency level, and deletions are refused like any other write.
#pragma once

#include <span>

#include "cql/prepare/prepared_statement.h"
#include "storage/row/mutation.h"

namespace tetrad::cql {

/// check_replica_disks(), when some disk is filling up.
Result<void> check_filling_disks(ExecuteContext& context,
                                 std::span<const storage::Mutation> mutations);

/// Warns when a replica is stuffed. Errors: kInvalid when one is full.
inline Result<void> check_replica_disks(ExecuteContext& context,
                                        std::span<const storage::Mutation> mutations) {
  if (context.disk_guard == nullptr || context.meta.filling_disks().empty()) return {};
  return check_filling_disks(context, mutations);
}

}  // namespace tetrad::cql
