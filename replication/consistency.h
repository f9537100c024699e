// SPDX-License-Identifier: Apache-2.0
// Quorums of n replicas: W = n/2 + 1 is the floor of every write, so that any two quorums meet
// (design, rule 1): n = 1, 2, 3, 4 gives 1, 2, 2, 3. Which levels a statement may have.
#pragma once

#include "base/consistency_level.h"
#include "base/result.h"

namespace tetrad::replication {

/// Levels of conditional statements: for their Paxos rounds, never for the write that follows.
constexpr bool is_serial(ConsistencyLevel level) {
  return level == ConsistencyLevel::kSerial || level == ConsistencyLevel::kLocalSerial;
}

template <class Count>
constexpr Count write_quorum(Count replica_count) {
  return replica_count / 2 + 1;
}
/// R: that many of any replicas have one with each acknowledged write (rule 1).
template <class Count>
constexpr Count read_quorum(Count replica_count) {
  return replica_count - write_quorum(replica_count) + 1;
}

/// ANY on a read and SERIAL on a plain write are refused, as in Cassandra. Errors: kInvalid.
Result<void> check_write_level(ConsistencyLevel level);
Result<void> check_read_level(ConsistencyLevel level);

}  // namespace tetrad::replication
