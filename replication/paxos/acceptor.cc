// SPDX-License-Identifier: Apache-2.0
// The rules of a member, each over a copy of its registers: a promise only rises, what is accepted
// is at or above it, and a commit is final. Ballots below the floor are refused: what is known of
// them may have been purged.
#include "replication/paxos/acceptor.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::PaxosRegisters;
using storage::Proposal;

// The floor as a ballot: a proposer learns that it has to be above it as it learns of others'
// ballots.
Ballot last_of(const PaxosRegisters& registers, PaxosFloor floor_us) {
  return std::max(registers.last(), Ballot{floor_us, {}, 0, 0});
}

bool is_above_floor(const Ballot& ballot, PaxosFloor floor_us) {
  // By when it was made, not by its timestamp: a ballot that passed a client's timestamp of the
  // future is no newer for it.
  return (TETRAD_MUTANT(lwt_ahead_over_floor) ? ballot.us : ballot.made_us()) >= floor_us;
}

bool promise(PaxosRegisters& registers, const Ballot& ballot, PaxosFloor floor_us) {
  if (!is_above_floor(ballot, floor_us)) return false;
  const Ballot last = last_of(registers, floor_us);
  // The same proposer asks again, for the rows: it gets the same answer.
  const bool again = ballot == registers.promised && ballot == last;
  if (!again && ballot <= last) return false;
  TETRAD_ASSERT(!(ballot < registers.promised));
  registers.promised = ballot;
  return true;
}

bool accept(PaxosRegisters& registers, const Proposal& proposal, PaxosFloor floor_us) {
  // Paxos: at or above the promise.
  if (proposal.ballot < last_of(registers, floor_us)) return false;
  if (!is_above_floor(proposal.ballot, floor_us)) return false;
  if (!proposal.value.empty() && !is_above_floor(proposal.origin, floor_us)) return false;
  const auto& accepted = registers.accepted;
  // The same message again. Two values under one ballot would be a mistake of the proposer: the
  // first stays.
  if (accepted && accepted->ballot == proposal.ballot) return *accepted == proposal;
  // Cells carry the microseconds of the origin alone: no two values may share them.
  const auto& committed = registers.committed;
  const bool is_new = !committed || committed->origin != proposal.origin;
  if (is_new && !proposal.value.empty() && committed && proposal.origin.us <= committed->origin.us)
    return false;
  TETRAD_ASSERT(!(proposal.ballot < registers.promised));
  registers.accepted = proposal;
  // Accepting implies the promise, also for a member that was not asked for it.
  registers.promised = proposal.ballot;
  return true;
}

bool commit(PaxosRegisters& registers, const Proposal& proposal) {
  // A commit that is late: a later one is known, whose rows lie above it.
  if (registers.committed && registers.committed->ballot >= proposal.ballot) return false;
  // The same value under a later ballot: it stays settled.
  const bool was_settled = registers.settled && registers.committed->origin == proposal.origin;
  registers.committed = proposal;
  registers.settled = was_settled;
  if (was_settled) registers.committed->value.clear();
  // What was accepted no later is this, or can never be decided.
  if (registers.accepted && registers.accepted->ballot <= proposal.ballot)
    registers.accepted.reset();
  return true;
}

// W have the rows: the value is not needed to bring them anywhere. Ballot and origin stay, for they
// say what is over.
bool settle(PaxosRegisters& registers, const Ballot& origin) {
  if (!registers.committed || registers.committed->origin != origin || registers.settled)
    return false;
  registers.committed->value.clear();
  registers.settled = true;
  return true;
}

}  // namespace tetrad::replication
