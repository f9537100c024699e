// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/followed_values.h"

#include <algorithm>

#include "base/byte_io.h"

namespace tetrad::replication {

using storage::Ballot;

void FollowedValues::note(const storage::Proposal& proposal) {
  if (proposal.value.empty()) return;
  // A commit comes behind its accept: it need not be kept twice.
  const size_t last = (next_ + kKeptMax - 1) % kKeptMax;
  if (last < links_.size() && links_[last].origin == proposal.origin) return;
  const Link link{proposal.origin, proposal.follows};
  if (links_.size() < kKeptMax) {
    links_.push_back(link);
  } else {
    links_[next_] = link;
  }
  next_ = (next_ + 1) % kKeptMax;
}

std::vector<Ballot> FollowedValues::before(Ballot origin, const Ballot& until) const {
  std::vector<Ballot> out;
  // A value was accepted after the one that it follows. So one walk back finds the chain, unless an
  // accept came late.
  for (size_t i = 0; i < links_.size() && out.size() < kStepsMax && until < origin; ++i) {
    const Link& link = links_[(next_ + kKeptMax - 1 - i) % kKeptMax];
    if (link.origin != origin || !(link.follows < origin)) continue;
    origin = link.follows;
    out.push_back(origin);
  }
  return out;
}

Bytes encode_followed_request(const Ballot& origin, const Ballot& until) {
  Bytes out;
  base::ByteWriter writer(out);
  storage::write_ballot(writer, origin);
  storage::write_ballot(writer, until);
  return out;
}

Result<std::pair<Ballot, Ballot>> decode_followed_request(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY(const Ballot origin, storage::read_ballot(reader));
  TETRAD_TRY(const Ballot until, storage::read_ballot(reader));
  if (reader.remaining() != 0)
    return fail(ErrorCode::kCorruption, "a question for what a value follows that does not read");
  return std::pair(origin, until);
}

Bytes encode_followed_answer(const std::vector<Ballot>& before) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.varint(before.size());
  for (const Ballot& ballot : before) storage::write_ballot(writer, ballot);
  return out;
}

Result<std::vector<Ballot>> decode_followed_answer(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY(const uint64_t count, reader.read_varint());
  if (count > FollowedValues::kStepsMax)
    return fail(ErrorCode::kCorruption, "more values than anybody is asked for");
  std::vector<Ballot> out(count);
  for (Ballot& ballot : out) {
    TETRAD_TRY(ballot, storage::read_ballot(reader));
  }
  if (reader.remaining() != 0)
    return fail(ErrorCode::kCorruption, "what a value follows does not read");
  return out;
}

}  // namespace tetrad::replication
