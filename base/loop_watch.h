// SPDX-License-Identifier: Apache-2.0
// Records which statement an event loop works on, so that a stall can be logged with it.
//
// The interface is here because room cql calls it; what is done with it is in
// server/runtime/stall_watch.h.
#pragma once

#include "base/bytes.h"

namespace tetrad::base {

/// One per shard, on its thread.
/// begin() is on the path of every statement, so an implementation copies bytes and reads a clock,
/// no more.
class LoopWatch {
 public:
  virtual ~LoopWatch() = default;
  /// From now on the loop works on this statement. `id`: of a prepared one, or empty; `text`: its
  /// beginning. Both are copied.
  virtual void begin(BytesView id, BytesView text) = 0;
};

}  // namespace tetrad::base
