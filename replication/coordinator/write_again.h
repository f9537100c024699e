// SPDX-License-Identifier: Apache-2.0
// What one attempt of a write (write_attempt.cc) leaves for the next one (write.cc).
#pragma once

#include <optional>
#include <vector>

#include "replication/coordinator/coordinator_impl.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// The client's message where no later timestamp helps.
inline constexpr const char* kClockWords =
    "The clocks of replicas and of this node are further apart than they may be; try again";

/// What a write needs to be sent again: with a newer map, or with a later timestamp.
struct CoordinatorImpl::Again {
  std::vector<storage::Mutation> mutations;
  /// After success: the highest mark that is not below the server timestamp.
  std::optional<int64_t> mark_us;
  /// Replicas found the deletions dated too long ago, or the server timestamp too far off.
  bool redate = false, restamp = false;
};

}  // namespace tetrad::replication
