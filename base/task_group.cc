// SPDX-License-Identifier: Apache-2.0
#include "base/task_group.h"

#include <cstdio>
#include <unordered_set>

namespace tetrad::base {

struct TaskGroup::State {
  std::unordered_set<void*> frames;
};

struct TaskGroup::Runner {
  struct promise_type {
    std::shared_ptr<State> state;
    promise_type(const std::shared_ptr<State>& s, Task<void>&) : state(s) {
      state->frames.insert(std::coroutine_handle<promise_type>::from_promise(*this).address());
    }
    static void* operator new(size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, size_t size) { free_frame(frame, size); }
    Runner get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept {
      state->frames.erase(std::coroutine_handle<promise_type>::from_promise(*this).address());
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
      std::abort();
    }
  };
};

TaskGroup::Runner TaskGroup::run(std::shared_ptr<State>, Task<void> task) { co_await task; }

TaskGroup::TaskGroup() : state_(std::make_shared<State>()) {}
TaskGroup::~TaskGroup() { destroy_all(); }

void TaskGroup::spawn(Task<void> task) { run(state_, std::move(task)); }
size_t TaskGroup::running_count() const { return state_->frames.size(); }

void TaskGroup::destroy_all() {
  while (!state_->frames.empty()) {
    void* frame = *state_->frames.begin();
    state_->frames.erase(state_->frames.begin());
    std::coroutine_handle<>::from_address(frame).destroy();
  }
}

}  // namespace tetrad::base
