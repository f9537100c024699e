// SPDX-License-Identifier: Apache-2.0
// Task<T>: a lazy coroutine for one thread. It starts when awaited and ends before its awaiter goes
// on.
//
// The awaiter resumes the child itself and asks whether it has finished; only if it has not does
// the child resume the parent at its end. So no stack grows over loops, at any optimization level
// and under sanitizers (symmetric transfer is a tail call in g++ 12 at -O2 only).
//
// Rules: parameters by value, or references to what outlives the owner; a co_await stands alone in
// its statement with a named result; lambdas that capture are never coroutines.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/frame_allocator.h"

namespace tetrad::base {

template <class T>
class Task;

namespace detail {

/// What promises of all results share: who waits, and the exception that ended the task. `parent` is
/// resumed only when it was suspended: a child that ends at once returns to it instead.
struct PromiseBase {
  std::coroutine_handle<> parent;
  // False until the child has suspended once: then await_suspend() is still on the stack and
  // resumes the parent itself.
  bool parent_suspended = false;
  std::exception_ptr exception;

  // The compiler calls these for the frame.
  static void* operator new(size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, size_t size) { free_frame(frame, size); }

  /// Lazy: the awaiter resumes it for the first time.
  std::suspend_always initial_suspend() noexcept { return {}; }
  /// Resumes the parent at the child's end, if it sleeps.
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    // A child that has ended inside await_suspend() of its awaiter resumes nobody: that one goes on
    // by itself.
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      PromiseBase& promise = self.promise();
      if (promise.parent_suspended)
        promise.parent.resume();  // may destroy self: nothing after this
    }
    void await_resume() noexcept {}
  };
  // The frame stays until its Task goes, since the result is in it.
  FinalAwaiter final_suspend() noexcept { return {}; }
  /// Kept until the awaiter takes the result, which throws it there.
  void unhandled_exception() { exception = std::current_exception(); }
};

/// Of a task with a result, which is moved out once.
template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& v) {
    value.emplace(std::forward<U>(v));
  }
  /// The result, once; throws what the task has thrown.
  T take() {
    if (exception) std::rethrow_exception(exception);
    TETRAD_ASSERT(value.has_value());
    return std::move(*value);
  }
};

/// Of a task without one.
template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (exception) std::rethrow_exception(exception);
  }
};

}  // namespace detail

/// Owns its coroutine frame, which goes with it. Awaited at most once; it does not start before.
/// A Task that is dropped without being awaited has done nothing.
template <class T = void>
class [[nodiscard]] Task {
 public:
  // What the compiler looks for in the return type of a coroutine.
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  // Of the promise; nobody else makes one.
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  /// Always suspends the awaiter first, so that the child runs with a parent to return to.
  bool await_ready() const noexcept { return false; }
  /// Runs the child up to its first suspension. False: it has ended, and the awaiter goes on at
  /// once, on its own stack.
  bool await_suspend(std::coroutine_handle<> parent) {
    TETRAD_ASSERT(handle_);
    auto& promise = handle_.promise();
    promise.parent = parent;
    handle_.resume();
    if (handle_.done()) return false;
    promise.parent_suspended = true;
    return true;
  }
  T await_resume() { return handle_.promise().take(); }

 private:
  // Null: empty, or moved from.
  Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace detail

/// A value that arrives once, awaited by at most one task; setter and awaiter on one thread. The
/// setter may come first, and may outlive the awaiting task (a timed-out request): the state is
/// shared by count.
/// For answers that come by a callback: a setter goes into the callback, the task awaits the
/// OneShot.
template <class T>
class OneShot {
  /// Shared by the setters and the awaiter; `waiter` is set only while one is suspended.
  struct State {
    std::optional<T> value;
    std::coroutine_handle<> waiter;
  };

 public:
  /// The side that sets; copyable so that it can be captured. A second set() is ignored.
  class Setter {
   public:
    explicit Setter(std::shared_ptr<State> state) : state_(std::move(state)) {}
    /// Resumes the waiting task inside this call.
    /// May destroy what the setter was captured in: nothing of it is used after resume().
    void set(T value) const {
      if (state_->value.has_value()) return;
      state_->value.emplace(std::move(value));
      if (auto waiter = std::exchange(state_->waiter, {})) waiter.resume();
    }
    // Also true when the value was taken.
    bool is_set() const { return state_->value.has_value(); }

   private:
    std::shared_ptr<State> state_;
  };

  /// Shares its state with the setters.
  OneShot() : state_(std::make_shared<State>()) {}
  // The frame that awaits it holds it: setters are what is copied.
  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;
  // Whoever sets later must not resume a frame that is gone.
  ~OneShot() { state_->waiter = {}; }

  Setter setter() const { return Setter(state_); }
  /// The value may be there already: then nobody suspends.
  bool await_ready() const noexcept { return state_->value.has_value(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    TETRAD_ASSERT(!state_->waiter);  // one task at most awaits it
    state_->waiter = waiter;
  }
  T await_resume() {
    TETRAD_ASSERT(state_->value.has_value());
    return std::move(*state_->value);
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tetrad::base

namespace tetrad {
using base::Task;
}
