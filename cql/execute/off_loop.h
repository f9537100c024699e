// SPDX-License-Identifier: Apache-2.0
// Work that cannot be cut into turns of the event loop and may take longer than a few milliseconds:
// parsing a large text, sorting a large collection, a row of many megabytes. It runs on a thread of
// the pool while its request waits. One per shard.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/io_pool.h"
#include "base/random.h"
#include "base/task.h"
#include "cql/functions/scalar.h"
#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// One shard's way to do long work on other threads. Belongs to the shard's thread, which waits for
/// the work as a task.
class OffLoop {
 public:
  /// `pool` outlives it; null: all is done on the loop, at once. `evaluation_lane`: the shard's
  /// own.
  OffLoop(base::Reactor& reactor, base::IoPool* pool, uint32_t evaluation_lane,
          ScriptLimits script_limits, const base::Random& random)
      : reactor_(reactor),
        pool_(pool),
        evaluation_lane_(evaluation_lane),
        random_(random),
        scripts_(script_limits) {}

  /// Of the calls of one lane one runs at a time: what they need meanwhile is needed once. `work`,
  /// a named local of the caller, and what it uses are used by nobody else until the task ends; a
  /// task that is dropped waits for it.
  Task<void> run(uint32_t lane, const std::function<void()>& work);

  /// As run() in the lane of evaluations, with functions that touch nothing of the shard's.
  /// `functions` is the request's.
  Task<void> evaluate(FunctionEnvironment& functions, const std::function<void()>& work);

  /// Whether an evaluation may begin in this turn of the loop. However many requests have got their
  /// rows at once, they do not use up more than a turn's work together, and one piece.
  bool has_room() const { return waiting_.empty() && worked_ns_ < WorkMeter::kTurnNs; }
  /// Waits for a turn that has room, in the order of the calls.
  Task<void> next_room();
  /// An evaluation has worked for `ns` in this turn.
  void worked(uint64_t ns);

  /// The statement that is freed in that lane once nobody has it any more.
  StatementPtr freed_off_loop(uint32_t lane, StatementPtr statement);

 private:
  /// The shard's turn is over: what it may work is whole again.
  void turn_ended();
  /// Lets waiting evaluations go on, one at least.
  void go_on();

  base::Reactor& reactor_;
  base::IoPool* const pool_;
  const uint32_t evaluation_lane_;
  base::Random random_;
  ScriptEngine scripts_;
  std::deque<base::OneShot<bool>::Setter> waiting_;  // for a turn with room
  uint64_t worked_ns_ = 0;                           // in this turn
  bool awaits_turn_end_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

/// Calls of user-defined functions, each of which may take milliseconds.
constexpr size_t kUserCallsOnLoopMax = 4;
/// No values of a smaller request take long.
constexpr size_t kBytesOnLoop = 16u << 10;

/// Whether binding the values, or making mutations of them, may take longer than a piece of work on
/// the loop.
bool is_long_to_bind(const ExecuteContext& context, const Statement& statement,
                     std::span<const BoundValue> values);
/// Estimated, of all values.
uint64_t bind_ns(const Statement& statement, std::span<const BoundValue> values);

/// `work` off the loop where there is such a place.
Task<void> evaluate_off_loop(ExecuteContext& context, FunctionEnvironment& functions,
                             const std::function<void()>& work);

}  // namespace tetrad::cql
