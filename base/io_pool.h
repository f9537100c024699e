// SPDX-License-Identifier: Apache-2.0
// Where blocking work goes, off the event loop: reads that miss the cache, synced writes, long
// maintenance. Threads are apart by duty, so that none waits for work of another kind. The real one
// is server/runtime/thread_io_pool.h; the simulated one runs the work inline as a later event.
#pragma once

#include <limits>

#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::base {

/// For work that nobody waits for with a clock.
inline constexpr Deadline kNoDeadline{std::numeric_limits<MonotonicUs>::max()};

/// What a job is for. Reads have a way of their own: IoPool::read().
enum class IoDuty : uint8_t {
  kCommit,       // writes and syncs of a log; each lane is one log and has a thread of its own
  kMaintenance,  // what may take minutes: flushes, compactions, exports, sweeps, samples
  kParse,        // texts too large for the loop; a thread for each lane
};

/// The blocking work of a node. Owned by the server, outlives the stores. `done` runs on the thread
/// of the reactor that was given, as an event of its own.
class IoPool {
 public:
  /// Called once, with what kept the work from running, or with success.
  using ReadDone = std::move_only_function<void(Result<void>)>;

  virtual ~IoPool() = default;
  /// Runs `work` off the loop, then `done` on `reactor`. Calls of one duty and lane run one after
  /// another; lane 0 of maintenance keeps no order.
  virtual void run(Reactor& reactor, IoDuty duty, uint32_t lane, Callback work, Callback done) = 0;
  /// As run(), on the readers: of those that wait, the one with the earliest deadline is next.
  /// `done` gets an error when `work` has not run: kTimedOut, the deadline came before its turn;
  /// kOverloaded, too many wait already. It never runs inside this call.
  virtual void read(Reactor& reactor, Deadline deadline, Callback work, ReadDone done) = 0;
};

}  // namespace tetrad::base
