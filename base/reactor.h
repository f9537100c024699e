// SPDX-License-Identifier: Apache-2.0
// What a shard's thread offers to what runs on it: time, timers, posting, and the end of the loop's
// turn. The real one runs Asio (server/runtime/asio_reactor.h); the simulated one runs a whole cluster in
// one thread.
//
// Everything of a shard runs in callbacks of its reactor, one at a time, so objects of a shard need
// no locks. A callback must not block and should end within a millisecond.
#pragma once

#include <cstdint>
#include <functional>

namespace tetrad::base {

/// Moved, never copied, so that it may own what it works on. Called at most once.
using Callback = std::move_only_function<void()>;
/// A point on the monotonic clock, in microseconds.
using MonotonicUs = int64_t;

/// When a request stops being worth anything. Absolute, handed down through every hop.
struct Deadline {
  MonotonicUs at_us = 0;
};

/// One per shard; all methods but post_from_any_thread belong to the shard's thread.
/// Handlers never run inside the call that asked for them.
class Reactor {
 public:
  using TimerId = uint64_t;  // never 0

  virtual ~Reactor() = default;
  /// Monotonic. Read once per turn: constant between two handlers.
  virtual MonotonicUs now_us() const = 0;
  /// Wall clock, microseconds since 1970; may jump.
  virtual int64_t wall_time_us() const = 0;
  /// Microseconds since the machine started, those in which it was suspended included. As steady as
  /// now_us(), but of the moment of the call.
  virtual int64_t boot_time_us() const = 0;
  /// Runs `callback` in a later step of this thread, in order of posting.
  virtual void post(Callback callback) = 0;
  /// As post(), from threads of pools and of other shards. The order holds for one sender only.
  virtual void post_from_any_thread(Callback callback) = 0;
  /// Runs `callback` once when the handlers that are ready now have run: the place where batches
  /// leave (store writes, messages, replies). A callback may ask for the end of the same turn
  /// again.
  virtual void at_turn_end(Callback callback) = 0;
  /// Runs `callback` once, not before `at_us`; a time that has passed means the next step.
  virtual TimerId call_at(MonotonicUs at_us, Callback callback) = 0;
  /// Cancelling a timer that has run is allowed and does nothing.
  virtual void cancel(TimerId timer) = 0;
};

}  // namespace tetrad::base
