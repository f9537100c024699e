// SPDX-License-Identifier: Apache-2.0
// Switches that put a known Raft bug back, to show that the simulation would find it. They exist
// only where TETRAD_MUTANTS is defined, which is in the simulation's own copy of the core.
#pragma once

#ifdef TETRAD_MUTANTS

#include <bitset>
#include <cstddef>

namespace tetrad::replication {

/// Mistakes that tests turn on, one at a time, to see that the simulation finds them.
enum class RaftMutant : size_t {
  kCommitEarlierTerm,          // commits an earlier term's entry by counting copies (figure 8)
  kNoNoop,                     // opens a term with nothing
  kChangeBeforeCommit,         // changes members before the term has a commit (Ongaro 2015)
  kOverlappingChanges,         // changes members while a change is under way
  kVoteBeforePersist,          // answers a vote before it is on disk
  kCampaignBeforePersist,      // asks for votes before its own vote is on disk
  kAckBeforePersist,           // acknowledges entries before they are on disk
  kLeaderCountsUnpersisted,    // the leader counts its own copy before it is on disk
  kVoteIgnoresLog,             // votes for a server with a shorter log
  kVoteTwice,                  // forgets in a term whom it voted for
  kAppendTruncatesAlways,      // an old append cuts off the entries after it
  kAppendIgnoresPreviousTerm,  // takes entries after an entry of another term
  kCommitBeyondMatch,          // believes a commit index for entries it never compared
  kLearnsAnyTerm,              // takes a peer's commit index for an entry of another term
  kFetchUncommitted,           // gives entries that it does not know to be committed
  kFetchKeepsOwn,              // keeps its own entry where a committed one is of another term
  kPersistedAba,               // a write of entries cut off since counts for their successors
  kReadWithoutRound,           // answers reads without asking whether it still leads
  kReadBeforeCommit,           // answers reads before its term has a commit
  kKeepTruncatedMembers,       // keeps a configuration whose entry was cut off
  kLearnersCount,              // counts learners in majorities
  kPreVoteIgnoresLog,          // tells a server with a shorter log that it would win
  kSnapshotKeepsLog,           // keeps entries that contradict an installed snapshot
  kSnapshotBehindCommit,       // installs a snapshot older than what it has
  kNoCheckQuorum,              // leads on without hearing from a majority
  kRemovedLeaderCounts,        // counts itself after having removed itself
  kStaleRepliesCount,          // counts replies of earlier terms
  kCount
};

using RaftMutants = std::bitset<static_cast<size_t>(RaftMutant::kCount)>;

}  // namespace tetrad::replication

#define TETRAD_RAFT_MUTANT(options, name) \
  ((options).mutants.test(static_cast<size_t>(::tetrad::replication::RaftMutant::name)))
#else
#define TETRAD_RAFT_MUTANT(options, name) false
#endif
