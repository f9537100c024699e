// SPDX-License-Identifier: Apache-2.0
// A write is given a later server timestamp (design, rule 28), or a later date of its deletions
// (rule 18). Pure.
#pragma once

#include "base/result.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// Everything in the mutation that carries `from_us` gets `to_us`; so does the deletion one below
/// it that goes before a whole collection. What a client stamped itself stays. Errors: kCorruption.
Result<void> restamp(storage::Mutation& mutation, int64_t from_us, int64_t to_us);

/// What the mutation deletes is dated `to_s` (seconds since 1970) where it was dated earlier; what
/// expires is counted from there, and lives as long as it should have. Errors: kCorruption.
Result<void> redate(storage::Mutation& mutation, int64_t to_s);

/// Takes out values that end at `from_s` or later and have lost their bytes already: a read whose
/// `now` was ahead of the time made them so, and must not write them to anybody. Errors:
/// kCorruption.
Result<void> leave_out_stripped(storage::Mutation& mutation, int64_t from_s);

}  // namespace tetrad::replication
