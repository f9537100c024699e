// SPDX-License-Identifier: Apache-2.0
// A write is given a later server timestamp (design, rule 28). Pure.
#pragma once

#include "base/result.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// Everything in the mutation that carries `from_us` gets `to_us`; so does the deletion one below
/// it that goes before a whole collection. What a client stamped itself stays. Errors: kCorruption.
Result<void> restamp(storage::Mutation& mutation, int64_t from_us, int64_t to_us);

}  // namespace tetrad::replication
