// SPDX-License-Identifier: Apache-2.0
// What this node does when a proposer asks it as an acceptor (design, rules 21 and 27). The
// coordinator of the same shard calls it without a message. What is answered is on the disk first.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/metrics.h"
#include "base/reactor.h"
#include "replication/changes/change_log.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/paxos/followed_values.h"
#include "replication/paxos/paxos_keys.h"
#include "replication/paxos/paxos_messages.h"
#include "replication/repair/purge_horizon.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/replica/replica_service.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/store_cleanup.h"

namespace tetrad::replication {

/// Counters of one shard's votes, changed by its thread only.
struct PaxosMetrics {
  base::Counter promises, accepts, commits, refused;
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;
};

/// A member's side of conditional statements: promises, accepts and commits for the stores of its
/// shard. Owned by the shard, on its thread. Always: a message is let in by the epoch of its tablet
/// when it comes and again when it has its turn, and answered when what it tells is on the disk.
class PaxosService {
 public:
  using PrepareCallback = std::move_only_function<void(Result<PrepareAnswer>)>;
  using VoteCallback = std::move_only_function<void(Result<PaxosVote>)>;

  /// Registers its verbs; everything outlives it. `stores` by number; null: another shard's.
  PaxosService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
               HorizonSlack slack, std::vector<storage::Store*> stores, const Fences& fences,
               StoreCleanup& cleanup, ChangeLogs& changes, BehindStores& behind,
               ReplicaService& replicas, PaxosKeys& keys);
  ~PaxosService();
  PaxosService(const PaxosService&) = delete;
  PaxosService& operator=(const PaxosService&) = delete;

  /// Errors of all: kStaleEpoch, kStaleSchema, kBehind, kReplicaBehind, kClockOff (the ballot is of
  /// a time that clocks cannot be at), kTimedOut, those of the store.
  /// Promises the ballot unless a later one is known, and answers registers, and rows where they
  /// are asked for.
  void prepare(uint32_t store, PrepareRequest request, base::Deadline deadline,
               PrepareCallback done);
  /// Accepts the proposal unless a later ballot was promised.
  void accept(uint32_t store, ProposeRequest request, base::Deadline deadline, VoteCallback done);
  /// A vote for a commit is yes; kCorruption when its value is no mutation of the partition.
  void commit(uint32_t store, ProposeRequest request, base::Deadline deadline, VoteCallback done);
  /// W have the commit: its value may go. Nobody waits for it.
  void settle(uint32_t store, ProposeRequest request, base::Deadline deadline);

  /// The turn of a partition whose only member this store is: nobody else has a vote, so its
  /// coordinator needs none, only the registers.
  struct Alone {
    PaxosKeys::Turn turn;
    PaxosFloor floor_us = storage::kNoTimestamp;
    int64_t mark_us = storage::kNoTimestamp;
  };
  using AloneCallback = std::move_only_function<void(Result<Alone>)>;
  /// The turn, with what a promise would have told. Errors as of the others.
  void enter_alone(uint32_t store, const storage::ReadCommand& of, SetEpoch epoch,
                   base::Deadline deadline, AloneCallback done);
  /// Accepts, commits and settles in one write. No: a later ballot is known. Errors other than
  /// kStaleEpoch, kStaleSchema and kReplicaBehind: the write may have been done. `passed_on` runs
  /// when the next one may have the turn, if this is before `done`.
  void decide_alone(uint32_t store, Alone alone, const ProposeRequest& request,
                    base::Deadline deadline, base::Callback passed_on, VoteCallback done);
  /// Accepts an empty proposal, so that what a promise from before still allows is refused.
  void close_alone(uint32_t store, Alone alone, const ProposeRequest& request,
                   base::Deadline deadline, VoteCallback done);

  /// What values were proposed after, of those that the stores of this shard have accepted lately.
  const FollowedValues& followed() const { return followed_; }
  const PaxosMetrics& metrics() const { return metrics_; }

 private:
  void register_verbs();
  /// A store that is behind (rule 20) gives no answer from what it has, and takes what is decided,
  /// as it takes plain writes.
  enum class Asks : uint8_t { kVote, kWrite };
  /// Where a message stands in the map; unset: it may go on. kBehind: it may later.
  std::optional<Error> refusal(uint32_t store, TableIncarnation incarnation, RingPosition position,
                               SetEpoch epoch, Asks asks);
  /// Runs `go` when the map has come as far as the message, or `fail` when that takes too long.
  void when_in_map(uint32_t store, TableIncarnation incarnation, RingPosition position,
                   SetEpoch epoch, Asks asks, base::Deadline deadline,
                   std::move_only_function<void(Result<void>)> go);
  /// Called with each new map, and every 20 ms for deadlines.
  void run_waiting();
  /// A pass of the tablet's present epoch, and the deadline.
  storage::WriteGuard guard_of(uint32_t store, TableIncarnation incarnation, RingPosition position,
                               base::Deadline deadline);
  /// Ballots below it are refused: rows from before it may be purged.
  PaxosFloor floor_of(TableIncarnation incarnation, RingPosition position) const;
  Result<void> check_clock(const storage::Ballot& ballot) const;
  void prepare_after_reading(uint32_t store, PrepareRequest request, base::Deadline deadline,
                             PrepareCallback done);
  /// Steps 2 to 4 of the .cc file for each kind of message. The turn ends in them.
  void promise_in_turn(uint32_t store, PrepareRequest request, base::Deadline deadline,
                       PaxosKeys::Turn turn, PrepareCallback done);
  void read_rows(uint32_t store, PrepareRequest request, base::Deadline deadline,
                 PrepareAnswer answer, PrepareCallback done);
  void accept_in_turn(uint32_t store, const ProposeRequest& request, base::Deadline deadline,
                      PaxosKeys::Turn turn, VoteCallback done);
  void commit_in_turn(uint32_t store, const ProposeRequest& request, base::Deadline deadline,
                      PaxosKeys::Turn turn, VoteCallback done);
  void write_commit(uint32_t store, const ProposeRequest& request,
                    const storage::PaxosRegisters& changed, base::Deadline deadline,
                    PaxosKeys::Turn turn, base::Callback passed_on, VoteCallback done);
  /// Counts a commit as a write of its table here, and times some.
  PaxosKeys::SyncedCallback timed_commit(TableIncarnation table, PaxosKeys::SyncedCallback done);
  /// `passed_on`: the next one may have the turn. `done`: it is on the disk.
  void write_in_turn(uint32_t store, const storage::RegistersWrite& write,
                     storage::WriteGuard guard, PaxosKeys::Turn turn, base::Callback passed_on,
                     PaxosKeys::SyncedCallback done);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  HybridClock& clock_;
  const HorizonSlack slack_;
  const std::vector<storage::Store*> stores_;
  const Fences& fences_;
  StoreCleanup& cleanup_;
  ChangeLogs& changes_;
  BehindStores& behind_;
  ReplicaService& replicas_;
  PaxosKeys& keys_;
  PaxosMetrics metrics_;
  FollowedValues followed_;
  /// A message that is ahead of this node's map. It is tried again with each new map, and answered
  /// at its deadline.
  struct Waiting {
    base::MonotonicUs deadline_us;
    base::Callback retry;
  };
  std::deque<Waiting> waiting_;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::replication
