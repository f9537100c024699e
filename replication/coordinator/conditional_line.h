// SPDX-License-Identifier: Apache-2.0
// Conditional statements of one partition that one shard coordinates go one after another, so that
// they do not duel with each other.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"

namespace tetrad::replication {

/// The conditional statements of this shard, one partition after another: who is at the head of the
/// line of its partition goes on, the others wait. Owned by the coordinator, on its thread; in
/// memory only, so it saves ballots and decides nothing. Always: a line is there as long as
/// somebody has its place.
class ConditionalLine {
 public:
  /// The place at the head; ends with the object, which does not outlive the line.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : line_(std::exchange(other.line_, nullptr)), key_(std::move(other.key_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (line_ != nullptr) line_->leave(key_);
    }

   private:
    friend class ConditionalLine;
    Place(ConditionalLine* line, Bytes key) : line_(line), key_(std::move(key)) {}
    ConditionalLine* line_ = nullptr;
    Bytes key_;
  };

  /// The reactor outlives it.
  explicit ConditionalLine(base::Reactor& reactor) : reactor_(reactor) {}
  ConditionalLine(const ConditionalLine&) = delete;
  ConditionalLine& operator=(const ConditionalLine&) = delete;

  /// Errors: kTimedOut; kOverloaded: too many wait.
  Task<Result<Place>> enter(Bytes key, base::Deadline deadline);

 private:
  struct Waiter;
  using WaiterPtr = std::shared_ptr<Waiter>;
  using Waiters = std::list<WaiterPtr>;  // one may leave from the midst
  /// A statement that waits. Either `waits`, and it stands in its line, or it has left it for good.
  struct Waiter {
    explicit Waiter(base::OneShot<bool>::Setter its_turn) : turn(std::move(its_turn)) {}
    base::OneShot<bool>::Setter turn;
    base::Reactor::TimerId timer = 0;
    bool waits = true, has_turn = false;
    Waiters::iterator at;  // while it waits
  };
  /// In the frame of who waits, which may be destroyed at any time.
  struct Waiting;

  /// False: it does not wait any more.
  bool take_out(const Bytes& key, const WaiterPtr& waiter);
  void leave(const Bytes& key);

  base::Reactor& reactor_;
  std::map<Bytes, Waiters> lines_;  // behind who is at the head
  size_t waiting_ = 0;
};

}  // namespace tetrad::replication
