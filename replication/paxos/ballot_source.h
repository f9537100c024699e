// SPDX-License-Identifier: Apache-2.0
// Where a coordinator's ballots come from. No two are equal, in no two lives of a node.
#pragma once

#include <optional>

#include "base/ids.h"
#include "storage/row/paxos_registers.h"

namespace tetrad::replication {

/// Of one shard.
class BallotSource {
 public:
  static constexpr uint32_t kShardsMax = 1u << 16;

  /// `start`: of this life of the node, never used before by it. `shard` < kShardsMax.
  BallotSource(HostId host, uint64_t start, uint32_t shard);

  /// Above all before it and not before `now_us`.
  storage::Ballot next(int64_t now_us);
  /// Just after `above_us`, which a client's timestamp has put so far ahead that the ballots of
  /// other partitions must not follow it. Unset: no timestamp is later than that, or too many were
  /// asked for.
  std::optional<storage::Ballot> next_above(int64_t above_us);

 private:
  storage::Ballot last_;
  uint32_t ahead_ = 0;  // given above others' timestamps
};

}  // namespace tetrad::replication
