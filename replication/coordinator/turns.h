// SPDX-License-Identifier: Apache-2.0
// The coordinator's side of turns (replication/paxos/turn_keeper.h): which partitions are contended,
// and asking for a turn of one. Nothing is asked where ballots meet no others.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "replication/paxos/turn_keeper.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// One per shard, on its thread.
class Turns {
 public:
  /// Gives the turn back when it goes; empty: none. Does not outlive its Turns.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept { *this = std::move(other); }
    Turn& operator=(Turn&& other) noexcept;
    ~Turn() { give_back(); }
    explicit operator bool() const { return turns_ != nullptr; }
    /// When the last ballot of who had the turn before was made; 0: not known.
    int64_t last_made_us() const { return last_made_us_; }
    /// The holder has made one.
    void note_ballot(int64_t made_us) { last_made_us_ = std::max(last_made_us_, made_us); }

   private:
    friend class Turns;
    Turn(Turns* turns, Bytes key, std::optional<StoreAddress> keeper, const GrantedTurn& turn)
        : turns_(turns),
          key_(std::move(key)),
          keeper_(keeper),
          number_(turn.number),
          last_made_us_(turn.last_made_us) {}
    void give_back();

    Turns* turns_ = nullptr;
    Bytes key_;
    std::optional<StoreAddress> keeper_;  // unset: this shard's own
    uint64_t number_ = 0;
    int64_t last_made_us_ = 0;
  };

  /// All outlive it. `keeper` is this shard's own.
  Turns(base::Reactor& reactor, RpcNode& rpc, TurnKeeper& keeper)
      : reactor_(reactor), rpc_(rpc), keeper_(keeper) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// A ballot for the partition has met another coordinator's.
  void note_contention(const Bytes& key);
  /// Whether one did lately.
  bool is_contended(const Bytes& key);

  /// Waits for the turn until the deadline. `keeper`: the member that gives it; unset: its store is
  /// of this shard. Errors, with which one goes on without a turn:
  /// kTimedOut, kOverloaded, those of a call.
  Task<Result<Turn>> ask(Bytes key, std::optional<StoreAddress> keeper, base::Deadline deadline);

 private:
  base::Reactor& reactor_;
  RpcNode& rpc_;
  TurnKeeper& keeper_;
  // Bounded (kContendedMax): what is over goes when it is full, then any. One that is forgotten too
  // early asks for no turn, and costs a ballot more.
  std::map<Bytes, base::MonotonicUs> contended_until_us_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::replication
