// SPDX-License-Identifier: Apache-2.0
// Memory for answers, of one shard. A read whose rows come from elsewhere (another shard, another
// node, the disk) is made before anybody here sees how large it is. So it takes room first, by what
// its statement has answered before, and the replica keeps back what would not fit. Bytes that
// clients have not taken count too; whoever leaves his unread waits for room, and keeps none from
// others.
//
// 1. AnswerRoom::may_begin() before a read; where it may not, await_turn(): large answers of one
//    client begin one after another, small ones pass them.
// 2. promise() before a read: the bytes that are held and those that may come. It holds at once
//    where there is room.
// 3. Otherwise wait(): until others have settled or their clients have taken their answers, or
//    until the deadline. Who has begun goes before those that have not.
// 4. settle() after the read: what it really takes.
// 5. The room's destructor gives all of it back. What has been appended to the connection's buffer
//    counts as unsent, which the connection reports (set_unsent).
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>

#include "base/reactor.h"
#include "base/task.h"

namespace tetrad::cql {

/// What answers of this kind have taken so far: up at once, down slowly.
class AnswerEstimate {
 public:
  bool is_known() const { return bytes_ != kUnknown; }
  uint64_t bytes() const { return bytes_; }
  void learn(uint64_t bytes) {
    bytes_ = !is_known() || bytes >= bytes_ ? bytes : bytes_ - (bytes_ - bytes + 15) / 16;
  }

 private:
  static constexpr uint64_t kUnknown = ~uint64_t{0};
  uint64_t bytes_ = kUnknown;
};

struct ClientAnswers;

/// Answers of one client that are to be large and hold little so far, in the order of arrival.
struct AnswerTurns {
  struct Waiting {
    uint64_t request_bytes;
    base::OneShot<bool>::Setter may_begin;  // false: the client has gone
  };
  ClientAnswers& client;  // lives while anything waits here
  std::list<Waiting> waiting = {};
  uint64_t request_bytes = 0;  // of all that wait
  bool look_scheduled = false;
};

/// One client's part of a budget. Stays where it is.
struct ClientAnswers {
  uint64_t unsent_bytes = 0;                     // made, and not taken by the client
  uint64_t promised_bytes = 0;                   // of reads under way, with what they have so far
  uint64_t turn_bytes = 0;                       // of these, of large ones that had their turn
  size_t large_waiting = 0;                      // for room, and have had their turn
  bool has_gone = false;                         // nobody takes its answers any more
  std::shared_ptr<AnswerTurns> turns = nullptr;  // null: nothing has waited yet
  size_t waiting() const { return turns == nullptr ? 0 : turns->waiting.size(); }
  uint64_t waiting_request_bytes() const { return turns == nullptr ? 0 : turns->request_bytes; }
};

class AnswerRoom;

/// Outlives its rooms. Belongs to its shard's thread.
class AnswerBudget {
 public:
  /// `bytes_max`: of all answers of the shard that are made and not yet taken.
  AnswerBudget(base::Reactor& reactor, uint64_t bytes_max)
      : reactor_(reactor), bytes_max_(bytes_max) {}
  ~AnswerBudget();
  AnswerBudget(const AnswerBudget&) = delete;
  AnswerBudget& operator=(const AnswerBudget&) = delete;

  /// Of one client's large answers, made and under way: beyond it no other begins. One that has
  /// begun is made whatever its size.
  static constexpr uint64_t kClientBytesMax = 4u << 20;

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t used_bytes() const { return unsent_bytes_ + held_bytes_ + promised_bytes_; }
  bool is_full() const { return used_bytes() >= bytes_max_; }
  /// A client that takes its answers has lately found no room, or none for a request.
  void note_wanted() { wanted_until_us_ = reactor_.now_us() + kWantedUs; }
  /// Whether unread answers keep room from such a client.
  bool is_wanted() const { return is_full() && reactor_.now_us() < wanted_until_us_; }
  void set_unsent(ClientAnswers& client, uint64_t now_bytes);
  /// How many large answers, of all clients, wait for their turn.
  size_t waiting_turns() const { return waiting_turns_; }
  /// Its connection has closed: what waits for its turn or for room ends.
  void let_go(ClientAnswers& client);

  /// What a statement that nothing is known of is taken to answer: little, so that it asks again
  /// if it needs more.
  uint64_t unknown_bytes() const { return std::min(kUnknownBytesMax, unknown_.bytes()); }
  void learn_unknown(uint64_t bytes) { unknown_.learn(std::min(kUnknownBytesMax, bytes)); }

 private:
  friend class AnswerRoom;
  /// A read that waits for room: those that have begun first, in the order in which they began,
  /// then the others in the order of arrival.
  struct Waiting {
    AnswerRoom* room;
    uint64_t bytes;
    base::MonotonicUs deadline_us;
    base::OneShot<bool>::Setter granted;
  };
  using WaitingList = std::list<Waiting>;

  static constexpr uint64_t kUnknownBytesMax = 24u << 10;
  static constexpr int64_t kWantedUs = 5'000'000;

  /// Whether `bytes` more may be promised to this room now.
  bool has_room(const AnswerRoom& room, uint64_t bytes) const;
  /// Something was given back: waiting ones are looked at once in this turn.
  void room_is_free();
  /// Grants rooms in the order of `waiting_`.
  void grant();
  /// A client has less under way: its next large answer may begin, at the end of this turn.
  void look_at_turns(ClientAnswers& client);
  void leave_turns(AnswerTurns& turns, std::list<AnswerTurns::Waiting>::iterator one);
  /// Answers false to those whose deadline is over.
  void give_up_late_ones();

  base::Reactor& reactor_;
  const uint64_t bytes_max_;
  // Each byte counts in one of the three: in a connection's buffer, in an answer that is being
  // made, or promised to a read.
  uint64_t unsent_bytes_ = 0, held_bytes_ = 0, promised_bytes_ = 0;
  AnswerEstimate unknown_;
  WaitingList waiting_;
  uint64_t begun_ = 0;  // how many answers
  size_t waiting_turns_ = 0;
  AnswerRoom* first_ = nullptr;  // the one that does not wait for what others hold
  bool grant_scheduled_ = false;
  base::MonotonicUs wanted_until_us_ = 0;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

/// The room of one answer that is being made.
class AnswerRoom {
 public:
  AnswerRoom(AnswerBudget& budget, ClientAnswers& client) : budget_(budget), client_(client) {}
  ~AnswerRoom();
  AnswerRoom(const AnswerRoom&) = delete;
  AnswerRoom& operator=(const AnswerRoom&) = delete;

  /// Whether an answer may become as large as this now. Always, where it is small or had its turn.
  bool may_begin(uint64_t bytes) const;
  /// Where it may not: until it may. No deadline: it is as if the request had not come yet. False:
  /// the client has gone.
  Task<bool> await_turn(uint64_t request_bytes);
  /// Of the answer `held` bytes are there; a read may add `more`. False: not now, see wait().
  bool promise(uint64_t held, uint64_t more);
  /// After a promise() that failed: until it holds. False: at the deadline, or the client has gone.
  Task<bool> wait(uint64_t more, base::Deadline deadline);
  /// The read has ended.
  void settle(uint64_t held);

 private:
  friend class AnswerBudget;
  void set(uint64_t held, uint64_t promised);
  void stop_waiting();
  void take_turn();
  /// Promises, and remembers when the answer began.
  void begin(uint64_t promised);

  AnswerBudget& budget_;
  ClientAnswers& client_;
  uint64_t held_ = 0, promised_ = 0;
  uint64_t begun_ = 0;  // the how manieth of the budget's; 0: not begun
  bool had_turn_ = false;
  bool waits_ = false;
  AnswerBudget::WaitingList::iterator place_;  // when it waits
  // While it waits for its turn.
  std::shared_ptr<AnswerTurns> turns_;
  std::list<AnswerTurns::Waiting>::iterator turn_;
};

}  // namespace tetrad::cql
