// SPDX-License-Identifier: Apache-2.0
// Which levels a statement may have; the sentences are Cassandra's, which drivers' users search
// for.
#include "replication/consistency.h"

namespace tetrad::replication {
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
