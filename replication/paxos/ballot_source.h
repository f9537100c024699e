// SPDX-License-Identifier: Apache-2.0
// Where a coordinator's ballots come from. No two are equal, in no two lives of a node.
//
// A ballot must be above each timestamp that its statement overwrites, and clients choose theirs.
// So there are two kinds. The time of most is that of the shard's clock. One that is ahead of the
// clock has a time just above a client's timestamp, and beside it the time of its making: it moves
// neither the shard's clock nor that of anybody who sees it, and says what was now for it.
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

  /// Made after all before it and not before `now_us`; its time is that of its making.
  storage::Ballot next(int64_t now_us);
  /// The same with a time after `above_us`: ahead of the clock if need be. Unset: no timestamp is
  /// later than that.
  std::optional<storage::Ballot> next_above(int64_t above_us, int64_t now_us);

 private:
  storage::Ballot last_;
  const uint32_t ahead_shard_;
};

}  // namespace tetrad::replication
