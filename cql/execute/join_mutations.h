// SPDX-License-Identifier: Apache-2.0
// The changes of several statements as one.
#pragma once

#include <vector>

#include "base/result.h"
#include "storage/row/mutation.h"

namespace tetrad::cql {

/// One mutation for each partition, in the order of their first change; in each a row stands once.
/// Errors: kCorruption.
Result<std::vector<storage::Mutation>> join_by_partition(std::vector<storage::Mutation> mutations);

}  // namespace tetrad::cql
