// SPDX-License-Identifier: Apache-2.0
// co_await sleep_until(reactor, at_us): suspends a task until a point of the monotonic clock.
//
// Sleeping ends early only when the task is destroyed: there is no wake-up.
#pragma once

#include <coroutine>

#include "base/assert.h"
#include "base/reactor.h"

namespace tetrad::base {

/// The awaitable of sleep_until(). Destroying the waiting task cancels the timer.
/// Lives in the frame of the task that waits, so it may hand `this` to the timer.
class SleepAwaiter {
 public:
  SleepAwaiter(Reactor& reactor, MonotonicUs at_us) : reactor_(reactor), at_us_(at_us) {}
  SleepAwaiter(const SleepAwaiter&) = delete;
  SleepAwaiter& operator=(const SleepAwaiter&) = delete;
  // A timer that fired into a destroyed task would resume freed memory.
  ~SleepAwaiter() {
    if (timer_ != 0) reactor_.cancel(timer_);
  }
  // Always waits, also for a time that has passed: the loop may go round.
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    TETRAD_ASSERT(timer_ == 0);
    timer_ = reactor_.call_at(at_us_, [this, waiter] {
      timer_ = 0;
      waiter.resume();
    });
  }
  void await_resume() const noexcept {}

 private:
  // 0 before the wait and when the timer has fired; otherwise the destructor has something to
  // cancel.
  Reactor& reactor_;
  const MonotonicUs at_us_;
  Reactor::TimerId timer_ = 0;
};

/// A time that has passed still takes a step of the loop: others get their turn.
inline SleepAwaiter sleep_until(Reactor& reactor, MonotonicUs at_us) { return {reactor, at_us}; }
/// From the time of this turn (Reactor::now_us), in microseconds.
/// The argument may be 0 or less: then as for a time that has passed.
inline SleepAwaiter sleep_for(Reactor& reactor, int64_t us) {
  return {reactor, reactor.now_us() + us};
}

}  // namespace tetrad::base
