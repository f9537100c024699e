// SPDX-License-Identifier: Apache-2.0
// Which value each of those that a shard has accepted lately was proposed after. A coordinator whose
// proposal was refused by some finds out by it what became of that proposal when others have been
// decided since: registers alone tell of the newest value, and of the one before.
//
//   followed asked := ballot: of a value that was decided; ballot: as far back as this one
//   answered       := varint count, as many ballots: what it follows, what that one follows, and so on
//   No two proposals share a ballot, so nothing else has to be said; what is not known ends it.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/row/paxos_registers.h"

namespace tetrad::replication {

/// One per shard, on its thread. In memory only and bounded: the oldest are forgotten, and then nobody
/// can tell, as after a restart. What it says of a value that was decided is true.
class FollowedValues {
 public:
  static constexpr size_t kKeptMax = 4'096;
  static constexpr size_t kStepsMax = 64;

  /// A value has been accepted here, or committed. An empty proposal is none.
  void note(const storage::Proposal& proposal);
  /// From `origin` back to the first that is not after `until`, as far as it is known. Its cost is
  /// kKeptMax at most.
  std::vector<storage::Ballot> before(storage::Ballot origin, const storage::Ballot& until) const;

 private:
  struct Link {
    storage::Ballot origin, follows;
  };
  std::vector<Link> links_;  // a ring
  size_t next_ = 0;
};

Bytes encode_followed_request(const storage::Ballot& origin, const storage::Ballot& until);
/// Errors of decoding: kCorruption.
Result<std::pair<storage::Ballot, storage::Ballot>> decode_followed_request(BytesView body);
Bytes encode_followed_answer(const std::vector<storage::Ballot>& before);
Result<std::vector<storage::Ballot>> decode_followed_answer(BytesView body);

}  // namespace tetrad::replication
