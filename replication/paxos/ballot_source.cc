// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/ballot_source.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

BallotSource::BallotSource(HostId host, uint64_t start, uint32_t shard)
    : last_{0, host, start, shard} {
  TETRAD_ASSERT(shard < kShardsMax);
  if (TETRAD_MUTANT(lwt_ballot_without_start)) last_.start_number = 0;
}

storage::Ballot BallotSource::next(int64_t now_us) {
  last_.us = std::max(last_.us + 1, now_us);
  return last_;
}

std::optional<storage::Ballot> BallotSource::next_above(int64_t above_us) {
  // Cells need a timestamp below the ballot's and readers one above it.
  constexpr int64_t kLastUs = std::numeric_limits<int64_t>::max() - 2;
  if (above_us >= kLastUs || ahead_ + 1 == kShardsMax) return std::nullopt;
  storage::Ballot ballot = last_;
  ballot.us = above_us + 1;
  ballot.shard |= ++ahead_ << 16;  // two of one time differ
  return ballot;
}

}  // namespace tetrad::replication
