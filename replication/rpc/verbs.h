// SPDX-License-Identifier: Apache-2.0
// What nodes ask each other. The numbers are on the wire: never renumber, never reuse.
#pragma once

#include <cstdint>

#include "replication/rpc/transport.h"

namespace tetrad::replication {

/// What a message asks for, by its number on the wire. Never renumber: nodes of two versions talk
/// to each other.
enum class Verb : uint8_t {
  // Control plane, 1 to 63: small, few, answered by shard 0 unless said otherwise.
  kRaft = 1,           // one-way: a message of the metadata group's Raft
  kJoin = 2,           // a node without a cluster, or back with a new address, asks a seed
  kHeartbeat = 3,      // one-way: liveness, applied index, wall clock
  kPropose = 4,        // a metadata command for the leader
  kCatchUp = 5,        // a learner too far behind asks any node for a snapshot of the metadata
  kLoad = 6,           // one-way, between the shards of one node and to its peers: tablet sizes
  kConfirmEpoch = 7,   // to a store: sync a tablet's set epoch, refuse older ones from now on
  kStreamRange = 8,    // to a store: a page of a range of a tablet
  kEcho = 9,           // tests and measurements
  kPullTablet = 10,    // to a store: become a member by streaming, or tell how far that is
  kRetireDone = 11,    // one-way: a store has retired incarnations
  kSyncApplied = 12,   // sync what is applied of the metadata; [u64 index]: at least that
  kSettleTablet = 13,  // to a store: read a tablet at the quorums of both its sets, or tell how far
                       // that is
  kBorrowThroughput = 14,  // a slice of a bucket of request units
  kIdentify = 15,          // what are you, and what am I to you: also between strangers
  kRepairBegin = 16,       // to a store: from when on what a repair leaves is complete there
  kRepairSync = 17,        // to a store: what the repair brought is on its disk
  kRecent = 18,            // to a store: a page of what was written to it since a moment
  kBatchFloor = 19,        // of the first shard: since when logged batches may yet be replayed
  kHeat = 20,              // one-way, as kLoad: the heat of tablets
  kRepairTogether = 21,  // to a store: give two neighbours one horizon, so that they can be merged
  kReturnThroughput =
      22,  // what was borrowed and not spent; or what a bucket has, for its new holder
  kShareThroughput = 23,  // what a node's tablets of a table do not use of its throughput
  kThroughputUse = 24,    // one-way, as kLoad: what tablets use of their throughputs
  kHoldTablets = 25,      // one-way, to all nodes: neither move nor merge these (held_tablets.h)

  // Data plane, 64 to 191: to a store.
  kMutate = 64,
  kRead = 65,
  kReadDigest = 66,
  kMutateMerged = 67,    // read repair, hint, stream: merged, never Put
  kBatchLogStore = 68,   // to a node: keep a logged batch (replication/batches)
  kBatchLogRemove = 69,  // one-way, to a node: its parts are on their replicas
  kPaxosPrepare = 70,
  kPaxosAccept = 71,
  kPaxosCommit = 72,
  kCounterApply = 73,
  kRepairTree = 74,
  kRepairRange = 75,
  kHint = 76,
  kTruncate = 77,
  kChanges = 78,         // a page of a store's change log
  kPaxosSettled = 79,    // one-way: a commit is on W of all sets
  kPaxosTurn = 80,       // to a store: whose turn a contended partition is
  kPaxosTurnEnded = 81,  // one-way, to a store: a turn is given back
  kViewRead = 82,        // to a store: a row of a base table, for an image (replication/views)
  kViewSettle = 83,      // to a store: tasks of views are done
  kViewMend = 84,        // to a store: make a task of a row whose view differs
  kPaxosFollowed = 85,   // to a store: what values were proposed after (paxos/followed_values.h)
  kViewAwait = 86,       // to a store of the own node: answer when views show what was written
};

/// Beside what else a message of this verb is sent. `is_request`: not one-way, and no reply.
constexpr Lane lane_of(Verb verb, bool is_request) {
  switch (verb) {
    case Verb::kRaft:  // as a request it carries an image of the whole metadata
      return is_request ? Lane::kBulk : Lane::kControl;
    case Verb::kLoad:
    case Verb::kHeat:
    case Verb::kThroughputUse:
    case Verb::kStreamRange:
    case Verb::kRecent:
    case Verb::kRepairTree:
    case Verb::kRepairRange:
    case Verb::kHint:
    case Verb::kChanges:
      return Lane::kBulk;
    default:
      return static_cast<uint8_t>(verb) < static_cast<uint8_t>(Verb::kMutate) ? Lane::kControl
                                                                              : Lane::kRequests;
  }
}

}  // namespace tetrad::replication
