// SPDX-License-Identifier: Apache-2.0
// A Job is shared by the loop and a thread of the pool:
//
// 1. run() posts it to the lane and waits as a task.
// 2. The pool's thread runs the work; an exception is kept.
// 3. The loop goes on, and rethrows.
//
// If the waiting task is destroyed (its connection closed), Dropper's destructor makes sure that
// the work does not begin any more, or waits until it has ended: the work refers to the task's
// locals.
//
// Evaluations on the loop share its turns: worked() counts what was done in a turn, and requests
// beyond the room wait in order (next_room).
#include "cql/execute/off_loop.h"

#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/assert.h"

namespace tetrad::cql {
namespace {

/// Statements of more tokens are bound off the loop.
// Each token may be an expression to evaluate.
constexpr size_t kTokensOnLoopMax = 4096;

/// What both threads know of one call.
class Job {
 public:
  explicit Job(const std::function<void()>& work) : work_(work) {}

  /// On the pool's thread.
  void run() {
    {
      const std::lock_guard lock(mutex_);
      if (state_ == State::kDropped) return;
      state_ = State::kRunning;
    }
    try {
      work_();
    } catch (...) {
      exception_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    state_ = State::kDone;
    ended_.notify_all();
  }
  /// On the loop: not begun any more, or over.
  void drop() {
    std::unique_lock lock(mutex_);
    if (state_ == State::kWaiting) state_ = State::kDropped;
    ended_.wait(lock, [this] { return state_ != State::kRunning; });
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  enum class State : uint8_t { kWaiting, kRunning, kDone, kDropped };
  std::mutex mutex_;
  std::condition_variable ended_;
  State state_ = State::kWaiting;
  const std::function<void()>& work_;
  std::exception_ptr exception_;
};

struct Dropper {
  std::shared_ptr<Job> job;
  ~Dropper() { job->drop(); }
};

/// Of a value of such a type, by the byte: it is checked, put in order, cut into cells.
// Nanoseconds; estimates on the safe side.
uint64_t bind_ns_per_byte(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return 25;
    case TypeKind::kTuple:
    case TypeKind::kUdt:
    case TypeKind::kVector:
      return 15;
    case TypeKind::kDecimal:
    case TypeKind::kVarint:
      return 50;
    default:
      return 1;
  }
}

}  // namespace

Task<void> OffLoop::run(uint32_t lane, const std::function<void()>& work) {
  // In simulations and tests: one thread does all, in a fixed order.
  if (pool_ == nullptr) {
    work();
    co_return;
  }
  const auto job = std::make_shared<Job>(work);
  const Dropper dropper{job};
  base::OneShot<bool> over;
  pool_->run(
      reactor_, base::IoDuty::kParse, lane, [job] { job->run(); },
      [setter = over.setter()]() mutable { setter.set(true); });
  co_await over;
  job->rethrow();
}

Task<void> OffLoop::evaluate(FunctionEnvironment& functions, const std::function<void()>& work) {
  if (pool_ == nullptr) {
    work();
    co_return;
  }
  // What functions use of the shard (clock, random numbers, scripts) belongs to its thread. The
  // worker gets substitutes; the lane runs one evaluation at a time, so they need no lock.
  FunctionEnvironment mine = functions;
  // Time goes on by itself: the shard's clock is the loop's.
  const int64_t now_us = functions.next_timestamp_us ? functions.next_timestamp_us() : 0;
  functions.next_timestamp_us = [next_us = now_us]() mutable { return next_us++; };
  functions.random = &random_;
  functions.scripts = &scripts_;
  co_await run(evaluation_lane_, work);
  functions = std::move(mine);
}

Task<void> OffLoop::next_room() {
  base::OneShot<bool> room;
  waiting_.push_back(room.setter());
  // There is no room: work was done in this turn, and its end is awaited.
  TETRAD_ASSERT(awaits_turn_end_ || waiting_.size() > 1);
  co_await room;
}

void OffLoop::worked(uint64_t ns) {
  worked_ns_ += ns;
  if (awaits_turn_end_) return;
  awaits_turn_end_ = true;
  reactor_.at_turn_end([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) turn_ended();
  });
}

/// Waiting evaluations go on after all handlers that are ready now.
void OffLoop::turn_ended() {
  worked_ns_ = 0;
  awaits_turn_end_ = false;
  if (waiting_.empty()) return;
  reactor_.post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) go_on();
  });
}

/// One at least, whatever others have done in this turn.
void OffLoop::go_on() {
  if (waiting_.empty()) return;  // posted at the ends of two turns
  const std::weak_ptr<char> alive = alive_;
  worked(0);  // the others wait for the end of this turn
  do {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next.set(true);
    if (alive.expired()) return;
  } while (!waiting_.empty() && worked_ns_ < WorkMeter::kTurnNs);
}

// Freeing the tree of a huge statement takes milliseconds. The last owner's deleter hands it to the
// pool.
StatementPtr OffLoop::freed_off_loop(uint32_t lane, StatementPtr statement) {
  if (pool_ == nullptr) return statement;
  const Statement* const plain = statement.get();
  return {plain, [this, lane, kept = std::move(statement)](const Statement*) mutable {
            pool_->run(
                reactor_, base::IoDuty::kParse, lane, [last = std::move(kept)] {}, [] {});
          }};
}

uint64_t bind_ns(const Statement& statement, std::span<const BoundValue> values) {
  const auto& markers = statement.bind_variables();
  uint64_t ns = 0;
  for (size_t i = 0; i < values.size() && i < markers.size(); ++i) {
    const uint64_t of_type = markers[i].type == nullptr ? 1 : bind_ns_per_byte(*markers[i].type);
    ns += 10 + of_type * values[i].bytes.size();
  }
  return ns;
}

bool is_long_to_bind(const ExecuteContext& context, const Statement& statement,
                     std::span<const BoundValue> values) {
  if (statement.token_count() > kTokensOnLoopMax || statement.user_calls() > kUserCallsOnLoopMax)
    return true;
  return context.request_bytes > kBytesOnLoop && bind_ns(statement, values) > WorkMeter::kPieceNs;
}

Task<void> evaluate_off_loop(ExecuteContext& context, FunctionEnvironment& functions,
                             const std::function<void()>& work) {
  if (context.off_loop == nullptr) {
    work();
    co_return;
  }
  co_await context.off_loop->evaluate(functions, work);
}

}  // namespace tetrad::cql
