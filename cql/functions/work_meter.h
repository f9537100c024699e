// SPDX-License-Identifier: Apache-2.0
// The work of one request, estimated while it is done: bytes compared and copied, cells, digits,
// items, steps of scripts. Estimates, not clocks: the same request ends its turns at the same
// places on every machine, in a simulation as well.
#pragma once

#include <cstdint>

#include "base/consistency_level.h"
#include "base/result.h"

namespace tetrad::cql {

/// In nanoseconds, roughly. Belongs to whoever works on the request at the time.
class WorkMeter {
 public:
  /// What is done until the event loop runs its other handlers.
  static constexpr uint64_t kTurnNs = 1'000'000;
  /// What cannot be cut and may take longer is not done on the loop.
  static constexpr uint64_t kPieceNs = 2'000'000;
  /// Of one call of a function.
  static constexpr uint64_t kCallNs = 50, kCallNsPerByte = 2;
  static constexpr uint64_t kScriptStepNs = 2;

  /// Adds work that is done, or that is done next and cannot be cut.
  void charge(uint64_t ns) { done_ns_ += ns; }
  uint64_t done_ns() const { return done_ns_; }

  /// A turn ends when this much more work is done, whatever the clock says.
  void begin_turn(uint64_t ns = kTurnNs) { turn_end_ns_ = done_ns_ + ns; }
  bool turn_is_over() const { return done_ns_ >= turn_end_ns_; }

  /// No more than this from now on: far more than can be done until the request's deadline, which
  /// the clock tells at the ends of turns.
  void set_limit(uint64_t ns, ConsistencyLevel level, bool writes) {
    limit_ns_ = done_ns_ + ns;
    level_ = level;
    writes_ = writes;
  }
  bool is_used_up() const { return done_ns_ >= limit_ns_; }
  /// Cassandra's timeout.
  Error timed_out() const {
    return Error(writes_ ? ErrorCode::kWriteTimeout : ErrorCode::kReadTimeout,
                 "Operation timed out - the query took too long.",
                 base::TimeoutDetail{level_, 0, 1});
  }
  /// Errors: timed_out().
  Result<void> spend(uint64_t ns) {
    charge(ns);
    if (is_used_up()) [[unlikely]]
      return std::unexpected(timed_out());
    return {};
  }

 private:
  // All three count the work of the whole request, from its beginning.
  uint64_t done_ns_ = 0, turn_end_ns_ = kTurnNs, limit_ns_ = UINT64_MAX;
  ConsistencyLevel level_ = ConsistencyLevel::kOne;
  bool writes_ = false;
};

}  // namespace tetrad::cql
