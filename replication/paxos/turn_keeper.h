// SPDX-License-Identifier: Apache-2.0
// Turns between coordinators that have conditional statements for one partition: the first live
// member of its tablet gives them one after another, so that the coordinators do not refuse each
// other's ballots again and again. Advisory: ballots alone make statements exact, so nothing is
// kept on disk, and who gets no turn goes on without one.
//
//   1. A coordinator whose ballot was refused, now or lately, asks for a turn of the partition.
//   2. Who asks first has it; the others wait in order of arrival. A coordinator asks for one turn
//      at a time, so coordinators take turns whatever they have waiting.
//   3. A turn ends when it is given back, and after a quarter of a second: who had it may be gone.
//
//   4. Who gives it back says when its last ballot was made, so that the next one's is later though
//      its clock may be behind.
//
//   turn asked := key
//   answered   := u64 number, u8 (1: others wait), i64 making of the last ballot; once it is the turn
//   turn ended := u64 number, i64 making of the last ballot, key; one-way
//   key        := u32 incarnation, partition key
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/reactor.h"
#include "base/result.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// A turn as it is given.
struct GrantedTurn {
  uint64_t number = 0;
  bool others_wait = false;
  int64_t last_made_us = 0;  // 0: not known
};

/// One per shard, on its thread.
class TurnKeeper {
 public:
  using Granted = std::move_only_function<void(Result<GrantedTurn>)>;

  /// Registers its verbs; both outlive it.
  TurnKeeper(base::Reactor& reactor, RpcNode& rpc);
  ~TurnKeeper();
  TurnKeeper(const TurnKeeper&) = delete;
  TurnKeeper& operator=(const TurnKeeper&) = delete;

  /// `granted` gets the turn, perhaps at once; kOverloaded: too many wait. Who has
  /// waited until the deadline need not be called.
  void ask(Bytes key, base::Deadline deadline, Granted granted);
  /// What is not the number of the turn that somebody has now is nothing.
  void end(const Bytes& key, uint64_t number, int64_t last_made_us);

  size_t waiting() const { return waiting_; }

 private:
  /// A coordinator that waits for its turn; past its deadline it is passed over.
  struct Waiter {
    base::Deadline deadline;
    Granted granted;
  };
  /// A partition whose turn somebody has. `timer` ends that turn when nobody gives it back.
  struct Line {
    uint64_t number = 0;  // of the turn that somebody has
    int64_t last_made_us = 0;
    base::Reactor::TimerId timer = 0;
    std::deque<Waiter> waiters;
  };
  void grant(const Bytes& key, Line& line, Granted granted);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  std::map<Bytes, Line, std::less<>> lines_;  // of partitions of which somebody has the turn
  size_t waiting_ = 0;
  uint64_t last_number_ = 0;
};

Bytes encode_turn_end(uint64_t number, int64_t last_made_us, BytesView key);
/// What is answered. Errors: kCorruption.
Result<GrantedTurn> decode_turn(BytesView answer);

}  // namespace tetrad::replication
