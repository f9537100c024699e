// SPDX-License-Identifier: Apache-2.0
// The rules of a member, each over a copy of its registers: a promise only rises, what is accepted is at or
// above it, and a commit is final. Ballots below the floor are refused: what is known of them may have
// been purged.
#include "replication/paxos/acceptor.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::PaxosRegisters;
using storage::Proposal;

Ballot last_of(const PaxosRegisters& registers, PaxosFloor floor_us) {
  return std::max(registers.last(), Ballot{floor_us, {}, 0, 0});
}

bool is_above_floor(const Ballot& ballot, PaxosFloor floor_us) {
  return (TETRAD_MUTANT(lwt_ahead_over_floor) ? ballot.us : ballot.made_us()) >= floor_us;
}

bool promise(PaxosRegisters& registers, const Ballot& ballot, PaxosFloor floor_us) {
  if (!is_above_floor(ballot, floor_us)) return false;
  const Ballot last = last_of(registers, floor_us);
  const bool again = ballot == registers.promised && ballot == last;
  if (!again && ballot <= last) return false;
  TETRAD_ASSERT(!(ballot < registers.promised));
  registers.promised = ballot;
  return true;
}

bool accept(PaxosRegisters& registers, const Proposal& proposal, PaxosFloor floor_us) {
  if (proposal.ballot < last_of(registers, floor_us)) return false;
  if (!is_above_floor(proposal.ballot, floor_us)) return false;
  if (!proposal.value.empty() && !is_above_floor(proposal.origin, floor_us)) return false;
  const auto& accepted = registers.accepted;
  if (accepted && accepted->ballot == proposal.ballot) return *accepted == proposal;
  // Cells carry the microseconds of the origin alone: no two values may share them.
  const auto& committed = registers.committed;
  const bool is_new = !committed || committed->origin != proposal.origin;
  if (is_new && !proposal.value.empty() && committed && proposal.origin.us <= committed->origin.us)
    return false;
  TETRAD_ASSERT(!(proposal.ballot < registers.promised));
  registers.accepted = proposal;
  registers.promised = proposal.ballot;
  return true;
}

bool commit(PaxosRegisters& registers, const Proposal& proposal) {
  if (registers.committed && registers.committed->ballot >= proposal.ballot) return false;
  const bool was_settled = registers.settled && registers.committed->origin == proposal.origin;
  registers.committed = proposal;
  registers.settled = was_settled;
  if (was_settled) registers.committed->value.clear();
  // What was accepted no later is this, or can never be decided.
  if (registers.accepted && registers.accepted->ballot <= proposal.ballot)
    registers.accepted.reset();
  return true;
}

bool settle(PaxosRegisters& registers, const Ballot& origin) {
  if (!registers.committed || registers.committed->origin != origin || registers.settled)
    return false;
  registers.committed->value.clear();
  registers.settled = true;
  return true;
}

}  // namespace tetrad::replication
