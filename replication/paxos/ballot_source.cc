// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/ballot_source.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

using storage::Ballot;

BallotSource::BallotSource(HostId host, uint64_t start, uint32_t shard)
    : last_{0, host, start & ~Ballot::kAhead, shard},
      ahead_shard_(static_cast<uint32_t>(start << 16) | shard) {
  TETRAD_ASSERT(shard < kShardsMax);
  if (TETRAD_MUTANT(lwt_ballot_without_start)) last_.start_number = 0;
}

Ballot BallotSource::next(int64_t now_us) {
  last_.us = std::max(last_.us + 1, now_us);
  return last_;
}

std::optional<Ballot> BallotSource::next_above(int64_t above_us, int64_t now_us) {
  // Cells need a timestamp below the ballot's and readers one above it.
  constexpr int64_t kLastUs = std::numeric_limits<int64_t>::max() - 2;
  if (TETRAD_MUTANT(lwt_ballot_pulled) && above_us < kLastUs)
    return next(std::max(above_us + 1, now_us));
  Ballot ballot = next(now_us);
  // Not just after it: of equal times those that are ahead are above the others.
  if (ballot.us - 1 > above_us) return ballot;
  if (above_us >= kLastUs) return std::nullopt;
  ballot.start_number = Ballot::kAhead | static_cast<uint64_t>(ballot.us);
  ballot.shard = ahead_shard_;
  ballot.us = above_us + 1;
  return ballot;
}

}  // namespace tetrad::replication
