// SPDX-License-Identifier: Apache-2.0
// What a replica may say to a proposer: the rules of a Paxos acceptor over the registers of one
// logical partition. Pure: the caller reads the registers, writes what was changed, and answers
// when that is on the disk.
//
// What is below the floor of the tablet (its purge horizon) may be gone, what hides its rows too:
// nothing there is promised, no value from there is accepted or committed any more.
#pragma once

#include "storage/row/paxos_registers.h"

namespace tetrad::replication {

/// The purge horizon in microseconds; kNoTimestamp: there is none.
using PaxosFloor = int64_t;

/// Whether it was made since. A ballot that is ahead of the clock is as old as its making: its time
/// would be above all floors for ever.
bool is_above_floor(const storage::Ballot& ballot, PaxosFloor floor_us);

/// What a ballot must not be below.
storage::Ballot last_of(const storage::PaxosRegisters& registers, PaxosFloor floor_us);

/// Each says whether the registers allow it, and if so changes them. Done twice does no harm.
bool promise(storage::PaxosRegisters& registers, const storage::Ballot& ballot,
             PaxosFloor floor_us);
bool accept(storage::PaxosRegisters& registers, const storage::Proposal& proposal,
            PaxosFloor floor_us);
/// A decided value. False: a later one is known here, so the registers stay; the rows are to be
/// written all the same.
bool commit(storage::PaxosRegisters& registers, const storage::Proposal& proposal);
/// The commit of that origin is on W of all sets. False: it is not the newest here.
bool settle(storage::PaxosRegisters& registers, const storage::Ballot& origin);

}  // namespace tetrad::replication
