// SPDX-License-Identifier: Apache-2.0
// How many replicas a request needs. W = n/2 + 1 is the floor of every write, so that any two
// quorums meet (design, rule 1): n = 1, 2, 3, 4 gives 1, 2, 2, 3.
#pragma once

#include "base/consistency_level.h"
#include "base/result.h"

namespace tetrad::replication {

constexpr bool is_serial(ConsistencyLevel level) {
  return level == ConsistencyLevel::kSerial || level == ConsistencyLevel::kLocalSerial;
}

constexpr int write_quorum(int replica_count) { return replica_count / 2 + 1; }
/// R: that many of any replicas have one with each acknowledged write (rule 1).
constexpr int read_quorum(int replica_count) {
  return replica_count - write_quorum(replica_count) + 1;
}

/// Acks a write needs: the level's number, never less than W. May exceed the replica count (THREE
/// of two): Unavailable.
int required_acks(ConsistencyLevel level, int replica_count);

/// Replies a read needs. QUORUM asks W as long as no settled marks say that fewer will do (rule 4).
/// With the floor W on writes, any level but ONE and its kin sees every acknowledged write from n -
/// W + 1 replies on.
int required_replies(ConsistencyLevel level, int replica_count);

/// ANY on a read and SERIAL on a plain write are refused, as in Cassandra. Errors: kInvalid.
Result<void> check_write_level(ConsistencyLevel level);
Result<void> check_read_level(ConsistencyLevel level);

}  // namespace tetrad::replication
