// SPDX-License-Identifier: Apache-2.0
// Why a write is given up: its tablet's epoch is over, or its time.
#include "storage/engine/write_guard.h"

#include "base/data_mutants.h"

namespace tetrad::storage {

std::optional<Error> refusal_of(const WriteGuard& guard, base::MonotonicUs now_us) {
  if (!guard.pass.is_valid() && !TETRAD_MUTANT(fence_at_enqueue))
    return Error(ErrorCode::kStaleEpoch, "the replica set has changed");
  if (now_us >= guard.deadline_us && !TETRAD_MUTANT(parked_past_deadline))
    return Error(ErrorCode::kTimedOut, "the store did not take the write in time");
  return std::nullopt;
}

}  // namespace tetrad::storage
