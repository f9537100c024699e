// SPDX-License-Identifier: Apache-2.0
#include "replication/consistency.h"

#include <algorithm>

#include "base/data_mutants.h"

namespace tetrad::replication {
namespace {

int number_of(ConsistencyLevel level, int replica_count) {
  switch (level) {
    case ConsistencyLevel::kAny:
    case ConsistencyLevel::kOne:
    case ConsistencyLevel::kLocalOne:
      return 1;
    case ConsistencyLevel::kTwo:
      return 2;
    case ConsistencyLevel::kThree:
      return 3;
    case ConsistencyLevel::kQuorum:
    case ConsistencyLevel::kLocalQuorum:
    case ConsistencyLevel::kEachQuorum:
    case ConsistencyLevel::kSerial:
    case ConsistencyLevel::kLocalSerial:
      return write_quorum(replica_count);
    case ConsistencyLevel::kAll:
      return replica_count;
  }
  return replica_count;
}

}  // namespace

int required_acks(ConsistencyLevel level, int replica_count) {
  if (TETRAD_MUTANT(write_acks_one)) return 1;
  if (TETRAD_MUTANT(floor_skipped)) return number_of(level, replica_count);
  return std::max(number_of(level, replica_count), write_quorum(replica_count));
}

int required_replies(ConsistencyLevel level, int replica_count) {
  if (TETRAD_MUTANT(quorum_asks_one) && level == ConsistencyLevel::kQuorum) return 1;
  return number_of(level, replica_count);
}

Result<void> check_write_level(ConsistencyLevel level) {
  if (level == ConsistencyLevel::kSerial || level == ConsistencyLevel::kLocalSerial) {
    return fail(ErrorCode::kInvalid, "You must use conditional updates for serializable writes");
  }
  return {};
}

Result<void> check_read_level(ConsistencyLevel level) {
  if (level == ConsistencyLevel::kAny) {
    return fail(ErrorCode::kInvalid, "ANY ConsistencyLevel is only supported for writes");
  }
  return {};
}

}  // namespace tetrad::replication
