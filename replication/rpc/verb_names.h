// SPDX-License-Identifier: Apache-2.0
// What log lines and errors call the messages between nodes. Nothing compares these texts.
#pragma once

#include <string_view>

#include "replication/rpc/verbs.h"

namespace tetrad::replication {

/// "unknown message" for a number that a later program has sent.
constexpr std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::kRaft:
      return "raft";
    case Verb::kJoin:
      return "join";
    case Verb::kHeartbeat:
      return "heartbeat";
    case Verb::kPropose:
      return "propose";
    case Verb::kCatchUp:
      return "catch up";
    case Verb::kLoad:
      return "load";
    case Verb::kConfirmEpoch:
      return "confirm epoch";
    case Verb::kStreamRange:
      return "stream range";
    case Verb::kEcho:
      return "echo";
    case Verb::kPullTablet:
      return "pull tablet";
    case Verb::kRetireDone:
      return "retire done";
    case Verb::kSyncApplied:
      return "sync applied";
    case Verb::kSettleTablet:
      return "settle tablet";
    case Verb::kBorrowThroughput:
      return "borrow throughput";
    case Verb::kIdentify:
      return "identify";
    case Verb::kRepairBegin:
      return "repair begin";
    case Verb::kRepairSync:
      return "repair sync";
    case Verb::kRecent:
      return "recent";
    case Verb::kBatchFloor:
      return "batch floor";
    case Verb::kHeat:
      return "heat";
    case Verb::kRepairTogether:
      return "repair together";
    case Verb::kReturnThroughput:
      return "return throughput";
    case Verb::kShareThroughput:
      return "share throughput";
    case Verb::kThroughputUse:
      return "throughput use";
    case Verb::kHoldTablets:
      return "hold tablets";
    case Verb::kMutate:
      return "mutate";
    case Verb::kRead:
      return "read";
    case Verb::kReadDigest:
      return "read digest";
    case Verb::kMutateMerged:
      return "mutate merged";
    case Verb::kBatchLogStore:
      return "batch log store";
    case Verb::kBatchLogRemove:
      return "batch log remove";
    case Verb::kPaxosPrepare:
      return "paxos prepare";
    case Verb::kPaxosAccept:
      return "paxos accept";
    case Verb::kPaxosCommit:
      return "paxos commit";
    case Verb::kCounterApply:
      return "counter apply";
    case Verb::kRepairTree:
      return "repair tree";
    case Verb::kRepairRange:
      return "repair range";
    case Verb::kHint:
      return "hint";
    case Verb::kTruncate:
      return "truncate";
    case Verb::kChanges:
      return "changes";
    case Verb::kPaxosSettled:
      return "paxos settled";
    case Verb::kPaxosTurn:
      return "paxos turn";
    case Verb::kPaxosTurnEnded:
      return "paxos turn ended";
    case Verb::kPaxosFollowed:
      return "paxos followed";
    case Verb::kViewRead:
      return "view read";
    case Verb::kViewSettle:
      return "view settle";
    case Verb::kViewMend:
      return "view mend";
    case Verb::kViewAwait:
      return "view await";
  }
  return "unknown message";
}

}  // namespace tetrad::replication
