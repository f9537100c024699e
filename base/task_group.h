// SPDX-License-Identifier: Apache-2.0
// Owner of tasks that nobody awaits. Nothing is detached: what still runs when the group is
// destroyed is destroyed with it, frame by frame, so a crashed node of a simulation leaves nothing
// behind.
//
// Typical members: a heartbeat that runs for as long as its owner, writes to slow replicas after
// the client has its answer.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>

#include "base/task.h"

namespace tetrad::base {

/// Belongs to one thread. Make it the last member of its owner, so that it goes first.
class TaskGroup {
 public:
  TaskGroup();
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts the task at once, inside this call, up to its first suspension. An exception that
  /// leaves it is a programming error and ends the process.
  /// The task's arguments must outlive the group or be its own: nobody else waits for it.
  void spawn(Task<void> task);
  /// Tasks that were spawned and have not ended.
  /// For tests and for bounds on work without a waiter.
  size_t running_count() const;
  /// Destroys every task that still runs. Safe to call from outside of them only.
  void destroy_all();

 private:
  // Shared with the runners, which take themselves out of it when they end.
  struct State;
  struct Runner;
  static Runner run(std::shared_ptr<State> state, Task<void> task);
  std::shared_ptr<State> state_;
};

}  // namespace tetrad::base
