// SPDX-License-Identifier: Apache-2.0
// What a proposer makes of the registers that W members of each set sent with their promises.
// Pure.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "replication/paxos/acceptor.h"
#include "storage/row/paxos_registers.h"

namespace tetrad::replication {

/// The registers of a member as they were before it promised.
struct RegistersOf {
  StoreAddress from;
  storage::PaxosRegisters registers;
};

/// What a quorum of answers says of earlier proposals of the partition. Its pointers are into the
/// answers that were judged, which outlive it.
struct Judgment {
  /// The newest proposal, when it is not empty and nobody knows it as committed: it may be decided,
  /// and is to be completed. Null: there is none.
  const storage::Proposal* open = nullptr;
  /// The newest value that somebody knows as committed; null: there is none.
  const storage::Proposal* committed = nullptr;
  /// It is on W of all sets; otherwise its value is here.
  bool is_settled = false;
  /// Those who do not know it.
  std::vector<StoreAddress> lacking;
  /// Origin of the newest value that was committed, as far as these answers show: they may have it
  /// only as what an accepted proposal follows.
  storage::Ballot newest;
  /// What a new proposal follows.
  storage::Ballot follows() const { return newest; }
};
/// Pointers go into `answers`. What is below the floor counts as nothing.
Judgment judge(std::span<const RegistersOf> answers, PaxosFloor floor_us);

/// What completes an open proposal: all that it says, and so the timestamps of its cells and what
/// it follows, with the ballot of this round.
storage::Proposal completion_of(const storage::Proposal& open, const storage::Ballot& ballot);

/// Origin of the newest value that one member shows to be committed. When it sent its registers,
/// whatever was decided before that value was on W of all sets.
storage::Ballot shown_by(const storage::PaxosRegisters& registers, PaxosFloor floor_us);

/// What a new ballot must come after, whatever the floor; kNoTimestamp: nothing.
struct Earlier {
  /// The timestamp of the newest value that these answers show to be decided. No other has it.
  int64_t value_us = storage::kNoTimestamp;
  /// The making of the ballot of anything that may be decided: so `now` does not go back.
  int64_t made_us = storage::kNoTimestamp;
};
/// Answers of one moment may know different statements: what one has accepted follows what all know
/// of, even if none of them does.
Earlier earlier_in(std::span<const RegistersOf> answers);

/// What has become of a proposal that some may have accepted.
enum class Fate : uint8_t {
  /// It is the open one: to be completed.
  kOpen,
  /// It was decided.
  kApplied,
  /// It was not decided before the promises of these answers. What becomes of it is certain when
  /// something else is decided with the ballot of these promises or a later one: until then a
  /// member that did not answer may hold it, and somebody may complete it.
  kNotDecided,
  /// It, or the record of it, is gone.
  kUnknown,
};
/// `origin`: of a value that this coordinator proposed. `gap`, if it is not null: where others were
/// decided since then, and that is why it is unknown, the earliest of them that these answers show;
/// none otherwise. fate_before() goes on there.
Fate fate_of(const storage::Ballot& origin, std::span<const RegistersOf> answers,
             PaxosFloor floor_us, storage::Ballot* gap = nullptr);
/// The same by what a value that was decided follows: `before` is what a member knows of it, back
/// from that value.
Fate fate_before(const storage::Ballot& origin, const storage::Ballot& decided,
                 std::span<const storage::Ballot> before);

}  // namespace tetrad::replication
