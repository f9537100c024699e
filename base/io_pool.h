// SPDX-License-Identifier: Apache-2.0
// Where blocking work goes, off the event loop: reads that miss the cache, synced writes of the
// local log. The real one is a few threads (server/thread_io_pool.h); the simulated one runs the
// work inline as a later event.
#pragma once

#include "base/reactor.h"

namespace tetrad::base {

class IoPool {
 public:
  virtual ~IoPool() = default;
  /// Runs `work` off the loop, then `done` on `reactor`. Order between calls is not kept, unless
  /// `lane` is not 0: calls of one lane run one after another.
  virtual void run(Reactor& reactor, uint32_t lane, Callback work, Callback done) = 0;
};

}  // namespace tetrad::base
