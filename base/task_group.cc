// SPDX-License-Identifier: Apache-2.0
// Tasks that nobody awaits, in a ring in the order they were started in: they are destroyed in that
// order, so that a simulation runs the same way again.
#include "base/task_group.h"

#include <cstdio>

#include "base/assert.h"

namespace tetrad::base {

namespace {

/// Of the ring of those that run, in the order they were started in.
struct Link {
  Link* before = this;
  Link* after = this;
};

}  // namespace

struct TaskGroup::State {
  Link running;
  size_t count = 0;

  void add(Link& one) {
    one.before = running.before;
    one.after = &running;
    one.before->after = running.before = &one;
    ++count;
  }
  void take_out(Link& one) {
    TETRAD_ASSERT(count != 0 && one.before != &one);
    one.before->after = one.after;
    one.after->before = one.before;
    one.before = one.after = &one;
    --count;
  }
};

// A coroutine that owns itself: it starts at once, and its frame goes when it ends.
struct TaskGroup::Runner {
  struct promise_type : Link {
    std::shared_ptr<State> state;
    // In the ring before its first step, so that destroy_all() finds it.
    promise_type(const std::shared_ptr<State>& s, Task<void>&) : state(s) { state->add(*this); }
    static void* operator new(size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, size_t size) { free_frame(frame, size); }
    Runner get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept {
      state->take_out(*this);
      return {};
    }
    void return_void() {}
    void unhandled_exception() {
      try {
        throw;
      } catch (const std::exception& e) {
        std::fprintf(stderr, "an exception left a task: %s\n", e.what());
      } catch (...) {
        std::fprintf(stderr, "an exception left a task\n");
      }
      // Without a waiter there is nobody to give it to.
      std::abort();
    }
  };
};

// The first parameter is for promise_type, which the compiler makes of run()'s parameters; it keeps
// the ring alive as long as a frame.
TaskGroup::Runner TaskGroup::run(std::shared_ptr<State>, Task<void> task) { co_await task; }

TaskGroup::TaskGroup() : state_(std::make_shared<State>()) {}
TaskGroup::~TaskGroup() { destroy_all(); }

// The runner needs no handle: it is found in the ring, and it frees itself.
void TaskGroup::spawn(Task<void> task) { run(state_, std::move(task)); }
size_t TaskGroup::running_count() const { return state_->count; }

// In the order of starting: what they let go as they end must not depend on addresses. Each is
// taken out of the ring before it is destroyed, since destructors in its frame may spawn or count.
void TaskGroup::destroy_all() {
  while (state_->count != 0) {
    TETRAD_ASSERT(state_->running.after != &state_->running);
    auto& promise = static_cast<Runner::promise_type&>(*state_->running.after);
    state_->take_out(promise);
    std::coroutine_handle<Runner::promise_type>::from_promise(promise).destroy();
  }
}

}  // namespace tetrad::base
